/* Formulas within a line of text that are wider than the line get a class, so that they scroll by themselves.
   Tables that scroll can be reached by keyboard. */
(function () {
  function mark() {
    document.querySelectorAll('.bd-article mjx-container:not([display="true"])').forEach(function (node) {
      node.classList.remove("wide");
      var block = node.closest("p, li, td, th, dd, dt, h1, h2, h3, h4, div");
      if (block && node.getBoundingClientRect().width > block.clientWidth) node.classList.add("wide");
    });
    document.querySelectorAll(".pst-scrollable-table-container").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  function start() {
    var math = window.MathJax && MathJax.startup && MathJax.startup.promise;
    (math || Promise.resolve()).then(mark);
    var waiting;
    function soon() {
      clearTimeout(waiting);
      waiting = setTimeout(mark, 150);
    }
    window.addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true); // what was folded had no width
  }
  window.addEventListener("load", start);
})();
