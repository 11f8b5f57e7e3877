/* What the live pages share: fields and their complaints, the address that holds a page's state, drawing. */
(function (root) {
  "use strict";

  /** The tools of the page whose form this is; its parts have the form's id, a hyphen and a name as their id. */
  function of(form) {
    const field = (name) => form.elements[name];
    const part = (name) => document.getElementById(`${form.id}-${name}`);

    /** Say at a field what is wrong with it; an empty message takes that back. */
    function complain(name, message) {
      part(name + "-error").textContent = message;
      field(name).setAttribute("aria-invalid", message ? "true" : "false");
    }

    // Inside a chapter the address belongs to the chapter, whose sections it names.
    const inside = "inside" in form.dataset;

    /** Put the values of the named fields into the address, so that a link shares them. */
    function save(names) {
      if (inside) return;
      const state = new URLSearchParams(names.map((name) => [name, field(name).value.trim()]));
      if (location.hash !== "#" + state) history.replaceState(null, "", "#" + state);
    }

    /** Fill the fields from the address; `allowed(name, value)` says which entries count. */
    function restore(allowed) {
      if (inside) return;
      for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
        if (!allowed(name, value)) continue;
        const target = field(name);
        if (target instanceof RadioNodeList) {
          const option = [...target].find((button) => button.value === value);
          if (option) option.checked = true;
        } else target.value = value;
      }
    }

    return { field, part, complain, save, restore };
  }

  /** An element of a drawing. */
  function svg(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  /** A row of a table with these texts. */
  function row(texts) {
    const made = document.createElement("tr");
    made.append(...texts.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    return made;
  }

  /** x to `digits` significant digits, rounded down (-1), up (+1) or to nearest (0). */
  function rounded(x, digits, way = 0) {
    if (x === 0 || !Number.isFinite(x)) return String(x);
    let text = x.toPrecision(digits);
    const back = Number(text);
    if ((way > 0 && back < x) || (way < 0 && back > x)) {
      const unit = 10 ** (Math.floor(Math.log10(Math.abs(x))) - digits + 1);
      text = (back + way * unit).toPrecision(digits);
    }
    if (/e/.test(text)) return Number(text).toExponential().replace("e+", "e");
    return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
  }

  /** Numbers in [0, 1) from a seed (mulberry32), the same on every machine. */
  function random(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let x = Math.imul(state ^ (state >>> 15), 1 | state);
      x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
      return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    };
  }

  const UNUSABLE = "Some numbers cannot be used; what is wrong stands beside the fields.";

  root.LivePage = { of, svg, row, rounded, random, UNUSABLE };
})(window);
