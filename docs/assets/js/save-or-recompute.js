// <save-or-recompute points="lesson/example#cell">: weigh saving an element against recomputing it.
// `points` names a run on the same page whose output holds measured times.

import {
  MACHINES, crossover, measuredCrossover, readPoints, recomputeSeconds, saveSeconds, verdict,
} from "./recompute-cost.js";

const UNITS = {
  tensor: { name: "Tensor core", work: "flops" },
  fp32: { name: "fp32 ALU", work: "flops" },
  special: { name: "Exponential unit", work: "calls" },
};
const WORK = { flops: "flops", calls: "special-function calls" };
const BYTES = [
  [4 / 16384, "one fp32 number for a row of 16,384"],
  [4 / 4096, "one fp32 number for a row of 4,096"],
  [4 / 1024, "one fp32 number for a row of 1,024"],
  [1, "1 byte (fp8)"],
  [2, "2 bytes (bf16)"],
  [4, "4 bytes (fp32)"],
  [8, "8 bytes (fp64)"],
];
const FLOPS = [...new Set(Array.from({ length: 49 }, (_, i) => Math.round(2 ** (i / 4))))];

const round = (k) => (k < 100 ? Math.round(k * 10) / 10 : Math.round(k));
const SCALES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]];

function seconds(value) {
  const [scale, unit] = SCALES.find(([scale]) => value >= scale) ?? SCALES.at(-1);
  return `${(value / scale).toPrecision(3)} ${unit}`;
}

const slider = (name, label, max, value) => `
  <div class="row">
    <label for="${name}">${label}</label>
    <output for="${name}" id="${name}-text"></output>
    <input type="range" id="${name}" min="0" max="${max}" value="${value}">
  </div>`;

const bar = (name, label) => `
  <div class="bar" data-bar="${name}">
    <span class="name">${label}</span><span class="time"></span>
    <span class="track"><span class="fill"></span></span>
  </div>`;

const TEMPLATE = `
<style>
  :host { display: block; color: var(--ink, inherit); font-size: .75rem; line-height: 1.5; margin: 1.2em 0; }
  .frame { border-top: .05rem solid var(--line, gray); border-bottom: .05rem solid var(--line, gray); padding: .8rem 0; }
  .columns { display: grid; gap: .8rem 2rem; grid-template-columns: repeat(auto-fit, minmax(min(15rem, 100%), 1fr)); }
  fieldset { border: 0; margin: 0 0 .5rem; padding: 0; min-width: 0; }
  legend, label, .name { font-weight: 600; padding: 0; }
  .choice { display: flex; flex-wrap: wrap; gap: .2rem .9rem; }
  .choice label { align-items: center; display: flex; font-weight: 400; gap: .35rem; min-height: 1.6rem; }
  input { accent-color: var(--accent, currentColor); font: inherit; color: inherit; }
  input[type="radio"] { height: 1rem; margin: 0; width: 1rem; }
  input[type="range"] { display: block; height: 1.6rem; margin: 0; width: 100%; grid-column: 1 / -1; }
  input[type="number"] { background: var(--paper, transparent); border: .05rem solid var(--ink-soft, gray); border-radius: .1rem; box-sizing: border-box; padding: .2rem .4rem; width: 100%; }
  :focus-visible { outline: .1rem solid var(--accent, currentColor); outline-offset: .1rem; }
  .row { display: grid; grid-template-columns: 1fr auto; margin-top: .5rem; column-gap: .5rem; }
  .row output { text-align: right; }
  .own { display: grid; gap: .8rem; grid-template-columns: 1fr 1fr; margin: .4rem 0 .6rem; }
  [hidden] { display: none; }
  .off { color: var(--ink-soft, gray); }
  .bar { display: grid; grid-template-columns: 1fr auto; margin-bottom: .5rem; }
  .track { background: var(--ground, #8883); grid-column: 1 / -1; height: .7rem; }
  .fill { background: var(--ink-soft, gray); display: block; height: 100%; min-width: 1px; }
  .cheaper .fill { background: var(--accent, currentColor); }
  .verdict { font-size: .85rem; margin: .4rem 0; }
  svg { display: block; height: auto; max-width: 30rem; overflow: visible; width: 100%; font-size: 12px; }
  svg text { fill: currentColor; }
  .axis { fill: none; stroke: var(--ink-soft, gray); }
  .save { fill: none; stroke: var(--ink-soft, gray); stroke-dasharray: 5 3; stroke-width: 2; }
  .recompute { fill: none; stroke: var(--accent, currentColor); stroke-width: 2; }
  .dot-save { fill: var(--paper, white); stroke: var(--ink-soft, gray); stroke-width: 1.5; }
  .dot-recompute { fill: var(--accent, currentColor); }
  .here { fill: none; stroke: currentColor; stroke-width: 1.5; }
  @media print { :host { display: none; } }
  @media (forced-colors: active) { .fill { background: CanvasText; } .cheaper .fill { background: Highlight; } }
</style>
<div class="frame" role="group" aria-label="Save or recompute">
  <div class="columns">
    <div>
      <fieldset id="machines"><legend>Machine</legend><div class="choice"></div></fieldset>
      <div class="own" hidden>
        <label>Bandwidth, TB/s<input type="number" id="bandwidth" min="0.001" step="any" inputmode="decimal"></label>
        <label>Rate, T operations/s<input type="number" id="rate" min="0.001" step="any" inputmode="decimal"></label>
      </div>
      <fieldset id="units"><legend>Unit that does the work</legend><div class="choice"></div></fieldset>
      ${slider("flops", "Recompute: flops an element", FLOPS.length - 1, FLOPS.indexOf(64))}
      ${slider("calls", "Recompute: special-function calls", 64, 2)}
      ${slider("bytes", "Saved for an element", BYTES.length - 1, 4)}
      ${slider("size", "Elements", 20, 14)}
    </div>
    <div>
      ${bar("save", "Save: write, then read back")}
      ${bar("recompute", "Recompute")}
      <p class="verdict" role="status"></p>
      <svg viewBox="0 0 360 220" role="img"></svg>
      <p class="note"></p>
    </div>
  </div>
</div>`;

class SaveOrRecompute extends HTMLElement {
  connectedCallback() {
    if (!this.shadowRoot) this.build();
    this.points = this.readMeasured();
    this.update();
  }

  build() {
    const root = this.attachShadow({ mode: "open" });
    root.innerHTML = TEMPLATE;
    const choose = (id, values, chosen) => {
      root.querySelector(`#${id} .choice`).innerHTML = values
        .map(([value, name]) => `<label><input type="radio" name="${id}" value="${value}"${value === chosen ? " checked" : ""}>${name}</label>`)
        .join("");
    };
    choose("machines", [...Object.keys(MACHINES).map((name) => [name, name]), ["own", "own numbers"]], "H100");
    choose("units", Object.entries(UNITS).map(([unit, { name }]) => [unit, name]), "fp32");
    this.fill(MACHINES.H100.bandwidth, MACHINES.H100.rates.fp32);
    root.addEventListener("input", () => this.update());
  }

  get(selector) {
    return this.shadowRoot.querySelector(selector);
  }

  fill(bandwidth, rate) {
    this.get("#bandwidth").value = bandwidth / 1e12;
    this.get("#rate").value = rate / 1e12;
  }

  readMeasured() {
    const code = document.querySelector(`.run-code[data-run="${this.getAttribute("points")}"]`)
      ?? document.querySelector(`[data-run="${this.getAttribute("points")}"]`);
    if (!code) return { machine: null, rows: [] };
    const follows = (element) => code.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
    const after = (selector) => Array.from(document.querySelectorAll(selector)).find(follows);
    const label = after(".run-label")?.textContent ?? "";
    return {
      machine: Object.keys(MACHINES).find((name) => label.includes(name)) ?? null,
      rows: readPoints(after(".run-output")?.textContent ?? ""),
    };
  }

  state() {
    const machine = this.get("#machines input:checked").value;
    const unit = this.get("#units input:checked").value;
    const { work } = UNITS[unit];
    const index = (name) => Number(this.get(`#${name}`).value);
    if (machine !== "own") this.fill(MACHINES[machine].bandwidth, MACHINES[machine].rates[unit]);
    return {
      machine, unit, work,
      flops: FLOPS[index("flops")],
      calls: index("calls"),
      operations: work === "flops" ? FLOPS[index("flops")] : index("calls"),
      bytes: BYTES[index("bytes")],
      elements: 2 ** (10 + index("size")),
      bandwidth: Number(this.get("#bandwidth").value) * 1e12,
      rate: Number(this.get("#rate").value) * 1e12,
    };
  }

  update() {
    const state = this.state();
    this.get(".own").hidden = state.machine !== "own";
    this.say("flops", `${state.flops} flops`, state.work === "flops");
    this.say("calls", `${state.calls} calls`, state.work === "calls");
    this.say("bytes", state.bytes[1]);
    this.say("size", state.elements.toLocaleString("en"));
    if (!(state.bandwidth > 0 && state.rate > 0)) {
      this.get(".verdict").textContent = "Bandwidth and rate must be numbers above zero.";
      return;
    }
    const save = saveSeconds(state.elements, state.bytes[0], state.bandwidth);
    const recompute = recomputeSeconds(state.elements, state.operations, state.rate);
    const answer = verdict(state.elements, state.operations, state.bytes[0], state.bandwidth, state.rate);
    for (const [name, time] of Object.entries({ save, recompute })) {
      const element = this.get(`[data-bar="${name}"]`);
      element.classList.toggle("cheaper", answer === name);
      element.querySelector(".time").textContent = seconds(time);
      element.querySelector(".fill").style.width = `${(100 * time) / Math.max(save, recompute)}%`;
    }
    const meets = crossover(state.bytes[0], state.bandwidth, state.rate);
    this.dataset.verdict = answer;
    this.dataset.crossover = round(meets);
    const words = { save: "Save", recompute: "Recompute", equal: "Both cost the same" }[answer];
    this.get(".verdict").textContent = `${words}. The crossover is at ${round(meets)} ${WORK[state.work]} an element.`;
    this.plot(state, meets);
  }

  // A slider's words; `counts` is false where the chosen unit does not do this kind of work.
  say(name, text, counts = true) {
    const input = this.get(`#${name}`);
    input.disabled = !counts;
    input.setAttribute("aria-valuetext", text);
    this.get(`#${name}-text`).textContent = counts ? text : "not this unit's work";
    input.closest(".row").classList.toggle("off", !counts);
  }

  // Time added for each element, over the operations: two lines and the measured points.
  plot(state, meets) {
    const measured = this.measured(state);
    const right = Math.max(2 * meets, 1.1 * state.operations, ...measured.map((point) => point.operations));
    const saved = saveSeconds(1, state.bytes[0], state.bandwidth);
    const slope = 1 / state.rate;
    const top = Math.max(2.2 * saved, ...measured.flatMap((point) => [point.save, point.recompute]));
    const x = (operations) => 44 + (306 * operations) / right;
    const y = (time) => 180 - (160 * time) / top;
    const end = Math.min(right, top / slope);
    const dots = (name) => measured
      .map((point) => `<circle class="dot-${name}" cx="${x(point.operations)}" cy="${y(Math.max(point[name], 0))}" r="3.5"/>`)
      .join("");
    const svg = this.get("svg");
    svg.innerHTML = `
      <path class="axis" d="M44 14V180H350"/>
      <text x="44" y="10">added time an element: ${seconds(top)} at the top</text>
      <text x="44" y="196">0</text><text x="350" y="196" text-anchor="end">${round(right)}</text>
      <text x="197" y="213" text-anchor="middle">${WORK[state.work]} an element</text>
      <path class="save" d="M${x(0)} ${y(saved)}H${x(right)}"/>
      <path class="recompute" d="M${x(0)} ${y(0)}L${x(end)} ${y(end * slope)}"/>
      ${dots("save")}${dots("recompute")}
      <circle class="here" cx="${x(Math.min(state.operations, end))}" cy="${y(Math.min(state.operations * slope, top))}" r="6"/>
      <text x="348" y="${y(Math.max(saved, ...measured.map((point) => point.save))) - 7}" text-anchor="end">save</text>
      <text x="${x(end * 0.9) - 8}" y="${y(end * 0.9 * slope)}" text-anchor="end">recompute</text>`;
    svg.setAttribute("aria-label",
      `Saving costs ${seconds(saved)} an element whatever the work; recomputing grows with it and passes saving at ${round(meets)} ${WORK[state.work]}.`);
    this.get(".note").textContent = this.note(state, measured);
  }

  // What the run measured, without what both ways share: the traffic, and the forward's own work.
  measured({ machine, unit, bytes }) {
    if (machine !== this.points.machine || bytes[0] !== 2) return [];
    const rows = this.points.rows.filter((row) => row.unit === unit);
    const idle = rows.find((row) => row.operations === 0);
    if (!idle) return [];
    const saved = (idle.save - idle.recompute) * 1e-12;
    return rows.map(({ operations, save, recompute }) => ({
      operations, save: saved, recompute: saved + (recompute - save) * 1e-12,
    }));
  }

  note({ unit, work }, measured) {
    if (unit === "tensor") return "Tensor cores only multiply matrices: elementwise work cannot run on them.";
    const { machine, rows } = this.points;
    if (!measured.length) {
      return rows.length && machine
        ? `Choose the ${machine} and 2 bytes to see measured points.` : "";
    }
    const meets = measuredCrossover(measured);
    const where = meets === null ? "beyond the points" : `at ${round(meets)} ${WORK[work]}`;
    return `Dots: measured on the ${machine}, saving hollow, recomputing filled. They cross ${where}.`;
  }
}

if (!customElements.get("save-or-recompute")) customElements.define("save-or-recompute", SaveOrRecompute);
