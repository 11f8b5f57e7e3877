/* A link to a statement shows the statement in a card, on hover and on focus. Without this script it is a link. */
(function () {
  "use strict";

  const { load, node, typeset } = window.Book;
  const card = node("div", { class: "statement-card bd-article", role: "tooltip", id: "statement-card", hidden: "" });
  let waiting = 0, current = null;

  function hide() {
    clearTimeout(waiting);
    card.hidden = true;
    if (current) current.removeAttribute("aria-describedby");
    current = null;
  }

  /** Below the link, or above it where there is more room; never wider than the screen. */
  function place(link) {
    const at = link.getBoundingClientRect(), width = document.documentElement.clientWidth;
    card.style.maxHeight = Math.max(at.top, innerHeight - at.bottom) - 16 + "px";
    const above = innerHeight - at.bottom < Math.min(card.offsetHeight, at.top);
    card.style.left = Math.max(8, Math.min(at.left, width - card.offsetWidth - 8)) + scrollX + "px";
    card.style.top = (above ? at.top - card.offsetHeight - 6 : at.bottom + 6) + scrollY + "px";
  }

  async function show(link) {
    if (current === link) return;
    await load("statements-data.js");
    const statement = window.BOOK_STATEMENTS[link.hash.slice(1)];
    if (!statement) return;
    hide();
    current = link;
    card.innerHTML = statement;
    link.setAttribute("aria-describedby", card.id);
    card.hidden = false;
    place(link);
    await typeset(card);
    if (current === link) place(link);
  }

  const soon = (act, moment) => { clearTimeout(waiting); waiting = setTimeout(act, moment); };
  const statement = (event) => event.target.closest && event.target.closest("article a[href*='#thm-'], article a[href*='#tag-']");

  document.addEventListener("DOMContentLoaded", () => document.body.append(card));
  document.addEventListener("mouseover", (event) => {
    const link = statement(event);
    if (link) soon(() => show(link), 200);
    else if (card.contains(event.target)) clearTimeout(waiting); // the card may be read and scrolled
    else if (current || waiting) soon(hide, 300);
  });
  document.addEventListener("focusin", (event) => { const link = statement(event); if (link) show(link); else hide(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
