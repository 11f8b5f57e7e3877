/* Formulas within a line of text that are wider than the line get a class, so that they scroll by themselves. */
(function () {
  function mark() {
    document.querySelectorAll('.bd-article mjx-container:not([display="true"])').forEach(function (node) {
      node.classList.remove("wide");
      var block = node.closest("p, li, td, th, dd, dt, h1, h2, h3, h4, div");
      if (block && node.getBoundingClientRect().width > block.clientWidth) node.classList.add("wide");
    });
  }
  function start() {
    if (!window.MathJax || !MathJax.startup || !MathJax.startup.promise) return;
    MathJax.startup.promise.then(mark);
    var waiting;
    window.addEventListener("resize", function () {
      clearTimeout(waiting);
      waiting = setTimeout(mark, 150);
    });
  }
  window.addEventListener("load", start);
})();
