/* A page on paper is light, its answers are open, its checks closed, and no formula is wider than the sheet; afterwards
   everything is as it was. What else changes on paper stands in book.css. */
(function () {
  "use strict";

  const PAPER = 680; // A4 less its margins, in CSS pixels: see @page in book.css
  let undo = [];

  function change(object, name, value) {
    const before = object[name];
    if (before === value) return;
    object[name] = value;
    undo.push(() => { object[name] = before; });
  }

  window.addEventListener("beforeprint", () => {
    const article = document.querySelector(".bd-article");
    change(document.documentElement.dataset, "theme", "light");
    for (const fold of article.querySelectorAll("details")) change(fold, "open", fold.classList.contains("answer"));
    const size = 14 / parseFloat(getComputedStyle(article).fontSize), width = article.clientWidth;
    for (const formula of article.querySelectorAll("mjx-container")) {
      const inner = formula.querySelector("mjx-math"), block = formula.closest("p, li, td, th, dd, div, blockquote");
      const room = block.closest("table") ? 0 : PAPER - (width - block.clientWidth), wide = inner ? inner.scrollWidth * size : 0;
      if (room > 0 && wide > room) change(formula.style, "fontSize", `${Math.floor(98 * room / wide)}%`);
    }
  });
  window.addEventListener("afterprint", () => {
    for (const back of undo.reverse()) back();
    undo = [];
  });
})();
