/* The button "Notation" opens the table of symbols in a panel. Without this script it is a link to the page. */
(function () {
  "use strict";

  const { root, load, node, typeset } = window.Book;
  let panel = null;

  function filter(words) {
    const wanted = words.trim().toLowerCase();
    let found = 0;
    for (const row of panel.querySelectorAll("tbody tr")) {
      row.hidden = !row.dataset.words.includes(wanted);
      if (!row.hidden) found += 1;
    }
    panel.querySelector("[role=status]").textContent = wanted ? `${found} ${found === 1 ? "entry" : "entries"}` : "";
  }

  async function build(address) {
    await load("notation-table.js");
    const box = node("div", { class: "notation-table", tabindex: "0", role: "region", "aria-label": "Table of symbols" });
    box.innerHTML = window.BOOK_NOTATION;
    for (const row of box.querySelectorAll("tbody tr")) row.dataset.words = row.textContent.toLowerCase();
    for (const link of box.querySelectorAll("a[href]")) link.href = new URL(link.getAttribute("href"), root);
    const field = node("input", { type: "text", id: "notation-filter", autocomplete: "off", "aria-label": "Show only entries with" });
    const close = node("button", { type: "button", class: "btn btn-sm", "aria-label": "Close" }, "✕");
    const all = node("a", { href: address }, "the whole page");
    panel = node("dialog", { class: "notation-panel bd-article", "aria-labelledby": "notation-title" },
      node("div", { class: "notation-head" },
        node("strong", { id: "notation-title" }, "Notation"),
        node("label", { for: "notation-filter" }, "Show only"), field, node("span", { role: "status" }), all, close),
      box);
    field.addEventListener("input", () => filter(field.value));
    close.addEventListener("click", () => panel.close());
    panel.addEventListener("click", (event) => { if (event.target === panel) panel.close(); });
    document.body.append(panel);
  }

  async function open(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const button = event.currentTarget;
    const first = panel === null;
    try {
      if (first) await build(button.href);
    } catch {
      location.href = button.href;
      return;
    }
    panel.showModal();
    panel.querySelector("input").focus();
    if (first) await typeset(panel);
    panel.dataset.ready = "true";
  }

  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("a.btn-notation-button")) button.addEventListener("click", open);
  });
})();
