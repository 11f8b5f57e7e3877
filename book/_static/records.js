/* Fields above a list of records that show only those of a source, a chapter or a verdict, or with some words. */
(function () {
  "use strict";

  const { node } = window.Book;
  const KINDS = ["source", "chapter", "verdict", "question"];

  /** The sections around these parts of the page, but for the page itself. */
  function around(parts) {
    const found = new Set();
    for (const part of parts) {
      for (let at = part.parentElement.closest("section"); at && at.parentElement.closest("section"); at = at.parentElement.closest("section")) found.add(at);
    }
    return [...found];
  }

  function build(records) {
    // A row of the index stands for the box with the full statement, and the sentence behind it.
    const boxes = new Map(records.map((record) => {
      const link = record.querySelector("td:first-child a[href^='#thm-']"), box = link && document.getElementById(link.hash.slice(1));
      return [record, box ? [box, ...(box.nextElementSibling && box.nextElementSibling.matches("p") ? [box.nextElementSibling] : [])] : []];
    }));
    const parts = [...records, ...[...boxes.values()].flat()], sections = around(parts);
    const words = node("input", { type: "search", id: "records-words", autocomplete: "off" });
    const status = node("span", { role: "status" });
    const bar = node("form", { class: "records-filter", role: "search", "aria-label": "Filter the list" },
      node("label", { for: words.id }, "with "), words);
    const choices = {};
    for (const kind of KINDS) {
      const values = new Set(records.flatMap((record) => (record.dataset[kind] || "").split("|")));
      values.delete("");
      if (!values.size) continue;
      const sorted = [...values].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
      const select = node("select", { "aria-label": kind },
        node("option", { value: "" }, `any ${kind}`), ...sorted.map((value) => node("option", { value }, value)));
      choices[kind] = select;
      bar.append(select);
    }
    bar.append(status);

    const texts = new Map(records.map((record) => [record, record.textContent.toLowerCase()]));
    function filter() {
      const wanted = words.value.trim().toLowerCase().split(/\s+/);
      let shown = 0;
      for (const record of records) {
        record.hidden = !(wanted.every((word) => texts.get(record).includes(word))
          && Object.entries(choices).every(([kind, { value }]) => !value || (record.dataset[kind] || "").split("|").includes(value)));
        for (const part of boxes.get(record)) part.hidden = record.hidden;
        shown += !record.hidden;
      }
      for (const table of document.querySelectorAll("table.records")) table.hidden = !table.querySelector(".record:not([hidden])");
      for (const section of sections) section.hidden = !parts.some((part) => !part.hidden && section.contains(part));
      status.textContent = shown === records.length ? `${shown} entries` : `${shown} of ${records.length}`;
    }
    bar.addEventListener("input", filter);
    bar.addEventListener("submit", (event) => event.preventDefault());
    filter();

    let first = records[0].closest("table.records") || records[0];
    while (first.parentElement.closest("section section")) first = first.parentElement.closest("section");
    first.before(bar);
  }

  /** A link to a record opens what is folded in it. */
  function open() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest(".record") && target.closest(".record").querySelector("details");
    if (folded) folded.open = true;
  }

  document.addEventListener("DOMContentLoaded", () => {
    const records = [...document.querySelectorAll("article .record")];
    if (!records.length) return;
    build(records);
    open();
    window.addEventListener("hashchange", open);
  });
})();
