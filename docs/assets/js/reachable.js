// What Material leaves out of reach of a keyboard or a screen reader.

const SCROLLING = ".md-typeset__scrollwrap, div.arithmatex, pre, pre > code, .jp-OutputArea-output";

// A box that scrolls sideways takes focus, and only while it does scroll.
function reachScrolling() {
  for (const box of document.querySelectorAll(SCROLLING)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// One landmark for every copy button would drown those of the page.
function quietCodeNavs() {
  for (const nav of document.querySelectorAll(".md-code__nav")) nav.setAttribute("role", "presentation");
}

// The empty corner of a table heads nothing.
function plainCorners() {
  for (const corner of document.querySelectorAll("th:empty")) {
    corner.replaceWith(document.createElement("td"));
  }
}

function reach() {
  reachScrolling();
  quietCodeNavs();
  plainCorners();
}

document.querySelector("[data-md-component=search]")?.setAttribute("aria-label", "Search");
new ResizeObserver(reachScrolling).observe(document.body);
new MutationObserver(reach).observe(document.body, { childList: true, subtree: true });
reach();
