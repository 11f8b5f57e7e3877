/* The search page asks the index of sections (book/_ext/section_search.py). Opened from the disk, where no script may
   read its files, it searches with Sphinx's own index, as it does without this script. */
(function () {
  "use strict";

  const { root, node } = window.Book;
  const LOADED = 100, MOST = 30; // entries that are loaded and put in order, and that are shown
  const QUIET = /^book\/(?:docstrings|exercises|teaching|peers)\.html/; // titles there repeat those of chapters
  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();

  /** What is called exactly what was asked for comes first, then what has it as its title. */
  function rank({ called, title, address }, asked) {
    if (called.split(" | ").some((name) => plain(name) === asked)) return 0;
    return plain(title.replace(/^(?:\d+\.|\[.*?\]) (?:The |A )?/, "")) === asked && !QUIET.test(address) ? 1 : 2;
  }

  /** Pagefind shortens a word that it does not know until it finds something: at least the beginning must be there. */
  function has(entry, asked) {
    const text = plain(`${entry.content} ${entry.meta.called}`);
    return asked.split(/\s+/).every((word) => text.includes(word.slice(0, 4)));
  }

  /** The words around what was found; where it was found among the other names of the entry, the beginning. */
  function excerpt({ excerpt: found, content, meta }) {
    const cut = found.split("‖")[0];
    if (cut.includes("<mark>")) return cut;
    const text = content.split("‖")[0].slice(meta.title.length + 1).trim();
    return text.length > 180 ? `${text.slice(0, 180).replace(/\s\S*$/, "")} …` : text;
  }

  async function search(query) {
    const pagefind = await import(new URL("pagefind/pagefind.js", root));
    const asked = plain(query), { results } = await pagefind.search(query);
    const loaded = await Promise.all(results.slice(0, LOADED).map((result) => result.data()));
    const found = loaded.filter((entry) => has(entry, asked)).map((entry) => ({ ...entry.meta, excerpt: excerpt(entry), rank: rank(entry.meta, asked) }));
    return found.sort((one, other) => one.rank - other.rank).slice(0, MOST);
  }

  function shown({ address, title, page, excerpt: found }) {
    const text = node("p", { class: "context" });
    text.innerHTML = found; // escaped by Pagefind, but for its marks
    const place = page ? [node("span", { class: "search-place" }, page)] : [];
    return node("li", {}, node("a", { href: new URL(address, root) }, title), ...place, text);
  }

  async function start() {
    const box = document.getElementById("search-results"), query = new URLSearchParams(location.search).get("q");
    if (!box || !location.protocol.startsWith("http")) return;
    window.BookSearch = search;
    if (!query) return;
    box.hidden = true; // Sphinx's search has begun, and would be seen first
    try {
      const found = await search(query);
      const summary = found.length === MOST ? `The first ${MOST} entries` : `${found.length} ${found.length === 1 ? "entry" : "entries"}`;
      document.querySelector("input[name=q]").value = query;
      const own = box.cloneNode();
      own.append(node("h2", {}, "Search results"), node("p", { class: "search-summary", role: "status" }, `${summary} for “${query}”.`),
        node("ul", { class: "search" }, ...found.map(shown)));
      own.hidden = false;
      box.replaceWith(own); // Sphinx's goes on in the old one
    } catch (error) {
      box.hidden = false;
      throw error;
    }
  }

  start();
})();
