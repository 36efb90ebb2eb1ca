// Turns each link to a runnable script into a button that copies the script.
//
// The link stays what it is: without this file, or with a modifier key, it opens the script.
// One listener on the document serves pages that instant navigation puts in later.

const SAID_MS = 3000;

/** Fetches a script of this site; throws where it is not to be had. */
export async function scriptAt(href, fetcher = fetch) {
  const response = await fetcher(href, { credentials: "same-origin" });
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.text();
}

/** Writes the text that `pending` will give to the clipboard, within the click that asked. */
async function copy(pending) {
  // Safari allows writing after an await only to a promise that the click itself handed over.
  if (globalThis.ClipboardItem && navigator.clipboard.write) {
    const blob = pending.then((text) => new Blob([text], { type: "text/plain" }));
    return navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
  }
  return navigator.clipboard.writeText(await pending);
}

/** The one live region of the page, made anew where navigation took it away. */
function announcer() {
  const found = document.getElementById("runnable-status");
  if (found) return found;
  const region = document.createElement("div");
  region.id = "runnable-status";
  region.className = "run-status";
  region.setAttribute("role", "status");
  // Heard, not seen; the link itself shows what happened.
  region.style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)";
  document.body.append(region);
  return region;
}

function say(link, words, state) {
  link.dataset.words ??= link.textContent;
  link.textContent = words;
  link.dataset.state = state;
  announcer().textContent = words;
  clearTimeout(Number(link.dataset.timer));
  link.dataset.timer = setTimeout(() => {
    link.textContent = link.dataset.words;
    delete link.dataset.state;
    announcer().textContent = ""; // the same words are not heard twice in a row
  }, SAID_MS);
}

async function onClick(event) {
  const link = event.target.closest?.("a.run-script");
  const opens = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button;
  if (!link || opens || !navigator.clipboard || link.origin !== location.origin) return;
  event.preventDefault();
  event.stopPropagation(); // instant navigation would follow the link
  try {
    await copy(scriptAt(link.href));
    say(link, "script copied", "done");
  } catch {
    say(link, "could not copy, opening", "failed");
    location.assign(link.href);
  }
}

// Space presses a button; a link that copies is one to whoever uses the keyboard.
function onKey(event) {
  if (event.key !== " " || !event.target.matches?.("a.run-script")) return;
  event.preventDefault();
  event.target.click();
}

if (globalThis.document) {
  announcer(); // a live region must stand before it speaks
  document.addEventListener("click", onClick, { capture: true });
  document.addEventListener("keydown", onKey);
}
