// <trap-filter>: show only the traps of the page that have a symptom.
//
// A trap is a heading of class `trap` with all that stands below it. The symptoms are the rows of the
// page's table of symptoms: a row's first cell names one, its links lead to the traps that have it.
// What the element holds is shown without JS.

const TEMPLATE = `
<style>
  :host { display: block; color: var(--ink, inherit); font-size: .75rem; line-height: 1.5; margin: 1.2em 0; }
  .choice { display: flex; flex-wrap: wrap; gap: .4rem; }
  button { background: var(--paper, transparent); border: .05rem solid var(--ink-soft, gray); border-radius: .2rem; color: inherit; cursor: pointer; font: inherit; min-height: 1.6rem; padding: .2rem .6rem; }
  button[aria-pressed="true"] { background: var(--accent, Highlight); border-color: var(--accent, Highlight); color: var(--paper, HighlightText); }
  :focus-visible { outline: .1rem solid var(--accent, currentColor); outline-offset: .1rem; }
  p { margin: .6rem 0 0; }
  @media print { :host { display: none; } }
</style>
<div class="choice" role="group" aria-label="Show the traps with this symptom"></div>
<p role="status"></p>`;

// From a heading up to the next one of its level or above.
function sectionOf(heading) {
  const section = [heading];
  let next = heading.nextElementSibling;
  while (next && !(/^H[1-6]$/.test(next.tagName) && next.tagName <= heading.tagName)) {
    section.push(next);
    next = next.nextElementSibling;
  }
  return section;
}

function readSymptoms(page) {
  return [...page.querySelectorAll("#symptom-table tbody tr")].map((row) => ({
    name: row.cells[0].textContent.trim(),
    traps: new Set([...row.querySelectorAll("a")].map((link) => link.hash.slice(1))),
  }));
}

function readTraps(page, symptoms) {
  return [...page.querySelectorAll("h3.trap")].map((heading) => ({
    section: sectionOf(heading),
    symptoms: symptoms.filter(({ traps }) => traps.has(heading.id)).map(({ name }) => name),
  }));
}

class TrapFilter extends HTMLElement {
  connectedCallback() {
    const page = this.closest("article");
    this.symptoms = readSymptoms(page);
    this.traps = readTraps(page, this.symptoms);
    this.groups = [...page.querySelectorAll("h2")]
      .map(sectionOf)
      .filter((section) => section.some((element) => element.matches("h3.trap")));
    if (!this.shadowRoot) this.build();
    this.choose("");
    this.onhash = () => this.uncover();
    addEventListener("hashchange", this.onhash);
  }

  disconnectedCallback() {
    removeEventListener("hashchange", this.onhash);
  }

  build() {
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = TEMPLATE;
    for (const { name } of this.symptoms) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => this.choose(name === this.symptom ? "" : name));
      root.querySelector(".choice").append(button);
    }
  }

  choose(symptom) {
    this.symptom = symptom;
    let shown = 0;
    for (const trap of this.traps) {
      const fits = !symptom || trap.symptoms.includes(symptom);
      for (const element of trap.section) element.hidden = !fits;
      shown += fits;
    }
    for (const group of this.groups) {
      const empty = group.every((element) => element.hidden || !element.matches("h3.trap"));
      for (const element of group) {
        if (empty) element.hidden = true;
        else if (!this.traps.some((trap) => trap.section.includes(element))) element.hidden = false;
      }
    }
    for (const button of this.shadowRoot.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.textContent === symptom));
    }
    this.shadowRoot.querySelector("[role=status]").textContent = symptom
      ? `${shown} of ${this.traps.length} traps: ${symptom}. Press it again for all.`
      : `All ${this.traps.length} traps are shown.`;
  }

  // A link to a trap that is filtered away shows everything again.
  uncover() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("[hidden]")) return;
    this.choose("");
    target.scrollIntoView();
  }
}

customElements.define("trap-filter", TrapFilter);
