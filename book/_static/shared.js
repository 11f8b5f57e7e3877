/* What the scripts of the pages share: the site's root, scripts with data that are loaded when they are needed, elements. */
window.Book = (function () {
  "use strict";

  const root = new URL("../", document.currentScript.src);
  const loading = {};

  /** Load a script of _static once; pages opened from the disk may load scripts, but no other files. */
  function load(name) {
    loading[name] = loading[name] || new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = new URL("_static/" + name, root);
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
    return loading[name];
  }

  function node(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  /** Set the formulas in an element, also on a page that has none of its own and so no MathJax yet. */
  async function typeset(element) {
    if (!window.MathJax) window.MathJax = { startup: { typeset: false } };
    if (!window.MathJax.typesetPromise) await load("mathjax/tex-chtml.js");
    await window.MathJax.startup.promise;
    await window.MathJax.typesetPromise([element]);
  }

  return { root, load, node, typeset };
})();
