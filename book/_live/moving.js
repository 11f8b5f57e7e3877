/* Figures of chapters that a reader can move: sliders above the stored picture, a sentence with the number that they
   give, and a drawing that takes the picture's place from the first move on. What moves is in lessons.js. */
(function (root) {
  "use strict";

  const { svg: element } = root.LivePage;
  const WIDE = 720, NARROW = 360; // widths of a drawing, in its own units: panels beside or below each other

  const superscript = (n) => [...String(n)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

  /** A number for readers: 0.1269, or 3.21 · 10⁻⁹ where the zeros would be too many; `way` as in LivePage.rounded. */
  function number(x, digits = 4, way = 0) {
    if (x !== 0 && x < 1e-3) {
      const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
      return `${mantissa} · 10${superscript(Number(exponent))}`;
    }
    if (x >= 10 ** digits && x < 1e15) return String(way > 0 ? Math.ceil(x) : way < 0 ? Math.floor(x) : Math.round(x));
    return root.LivePage.rounded(x, digits, way);
  }

  /** Part of a drawing with two axes: {from, to, label, log}, or {ticks: {value: text}} in place of the usual ones. */
  class Panel {
    constructor(picture, box, x, y, title = "") {
      const left = 62, right = 12, top = title ? 26 : 10, bottom = 46;
      this.inner = element("svg", { x: box.x + left, y: box.y + top, width: box.width - left - right, height: box.height - top - bottom });
      this.width = box.width - left - right;
      this.height = box.height - top - bottom;
      this.axes = { x, y };
      const outer = element("g", { transform: `translate(${box.x + left} ${box.y + top})` });
      for (const [value, text] of Panel.ticks(x)) {
        outer.append(element("line", { x1: this.x(value), x2: this.x(value), y1: 0, y2: this.height, class: "moving-grid" }));
        outer.append(element("text", { x: this.x(value), y: this.height + 18, "text-anchor": "middle" }, text));
      }
      for (const [value, text] of Panel.ticks(y)) {
        outer.append(element("line", { x1: 0, x2: this.width, y1: this.y(value), y2: this.y(value), class: "moving-grid" }));
        outer.append(element("text", { x: -8, y: this.y(value) + 5, "text-anchor": "end" }, text));
      }
      outer.append(element("path", { d: `M0 0V${this.height}H${this.width}`, class: "moving-axis" }));
      outer.append(element("text", { x: this.width / 2, y: this.height + 39, "text-anchor": "middle" }, x.label));
      outer.append(element("text", { transform: `translate(-48 ${this.height / 2}) rotate(-90)`, "text-anchor": "middle" }, y.label));
      outer.append(element("text", { x: 0, y: -11 }, title));
      picture.append(outer, this.inner);
    }

    static ticks({ from, to, log, ticks }) {
      if (ticks) return Object.entries(ticks).map(([value, text]) => [Number(value), text]);
      const found = [];
      if (log) {
        const low = Math.ceil(Math.log10(from) - 1e-9), high = Math.floor(Math.log10(to) + 1e-9), every = Math.ceil((high - low) / 6);
        if (high - low > 2) for (let e = high; e >= low; e -= every) found.push([10 ** e, e === 0 ? "1" : e === 1 ? "10" : `10${superscript(e)}`]);
        else for (let e = low - 1; e <= high; e++) for (const m of [1, 2, 5]) if (m * 10 ** e >= from && m * 10 ** e <= to) found.push([m * 10 ** e, number(m * 10 ** e)]);
      } else {
        const rough = (to - from) / 4, unit = 10 ** Math.floor(Math.log10(rough)), every = unit * [5, 2, 1].find((m) => m * unit <= rough);
        for (let i = Math.ceil(from / every); i * every <= to; i++) found.push([i * every, String(Number((i * every).toPrecision(6))).replace("-", "−")]);
      }
      return found;
    }

    static share({ from, to, log }, value) {
      return log ? Math.log(Math.max(value, 1e-300) / from) / Math.log(to / from) : (value - from) / (to - from);
    }

    x(value) {
      return Panel.share(this.axes.x, value) * this.width;
    }

    y(value) {
      return (1 - Panel.share(this.axes.y, value)) * this.height;
    }

    /** As many abscissae as a smooth curve needs. */
    grid(count = 240) {
      const { from, to, log } = this.axes.x, part = (i) => i / count;
      return Array.from({ length: count + 1 }, (_, i) => (log ? from * (to / from) ** part(i) : from + (to - from) * part(i)));
    }

    path(xs, f) {
      return xs.filter((x) => f(x) !== null).map((x) => `${this.x(x).toFixed(2)},${Math.min(Math.max(this.y(f(x)), -1e4), 1e4).toFixed(2)}`);
    }

    /** The curve of f in the look of number i: colour and dashes of the stored figures; i = "faint" stands back. */
    curve(f, i, xs = this.grid()) {
      this.inner.append(element("polyline", { points: this.path(xs, f).join(" "), class: `moving-curve moving-${i}` }));
    }

    /** The area between g and f where f lies above. */
    area(f, g, i) {
      const xs = this.grid(480), above = this.path(xs, (x) => Math.max(f(x), g(x))), below = this.path(xs, g);
      this.inner.append(element("polygon", { points: [...above, ...below.reverse()].join(" "), class: `moving-area moving-${i}` }));
    }

    dot(x, y, i) {
      if (y === null) return;
      this.inner.append(element("circle", { cx: this.x(x), cy: this.y(y), r: 5, class: `moving-dot moving-${i}` }));
    }

    /** Many small dots, [[x, y], …]; those outside the panel are left out. */
    cloud(points, i) {
      const inside = points.map(([x, y]) => [this.x(x), this.y(y)]).filter(([x, y]) => x > 0 && x < this.width && y > 0 && y < this.height);
      this.inner.append(element("path", { d: inside.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join(""), class: `moving-cloud moving-${i}` }));
    }

    /** A vertical line at x, and what stands there. */
    rule(x, words = "") {
      this.inner.append(element("line", { x1: this.x(x), x2: this.x(x), y1: 0, y2: this.height, class: "moving-rule" }));
      const left = this.x(x) > 0.6 * this.width; // more room for the words on this side
      this.inner.append(element("text", { x: this.x(x) + (left ? -6 : 6), y: 16, class: "moving-key", "text-anchor": left ? "end" : "start" }, words));
    }

    text(x, y, words) {
      this.inner.append(element("text", { x: this.x(x), y: this.y(y), class: "moving-key" }, words));
    }

    /** Which curve is which, [[words, number], …], from a corner downwards: at the left or right end, at a share of the height. */
    key(entries, { end = "right", from = 0 } = {}) {
      const right = end === "right", sample = right ? this.width - 30 : 6;
      entries.forEach(([words, i], place) => {
        const y = from * this.height + 14 + 19 * place;
        this.inner.append(element("polyline", { points: `${sample},${y - 5} ${sample + 26},${y - 5}`, class: `moving-curve moving-${i}` }));
        this.inner.append(element("text", { class: "moving-key", x: right ? sample - 6 : sample + 34, y, "text-anchor": right ? "end" : "start" }, words));
      });
    }
  }

  /** A place to draw `count` panels in, beside each other where the picture is wide enough: {picture, box(place)}. */
  function frame(picture, count, height) {
    const across = picture.parentElement.clientWidth > 520, width = across ? WIDE : NARROW, each = across ? WIDE / count : NARROW;
    picture.setAttribute("viewBox", `0 0 ${width} ${across ? height : count * height}`);
    picture.classList.add("panels");
    const box = (place) => ({ x: across ? place * each : 0, y: across ? 0 : place * height, width: each, height });
    return { picture: element("g", {}), box };
  }

  /** Put the sliders of a lesson above its figure, if the page has it.

      lesson.sliders : {name: {label, values, at}}; lesson.says(values) : the sentence; lesson.draw(values, panel) : draws,
      a generator that may yield between pieces of work; panel(place, x, y, title) makes panel number `place` of lesson.panels. */
  function move(lesson) {
    const figure = document.getElementById(lesson.figure), image = figure && figure.querySelector("img");
    if (!image) return;
    const box = document.createElement("div"), sentence = document.createElement("p"), picture = element("svg", { role: "img" }), inputs = {};
    const back = Object.assign(document.createElement("button"), { type: "button", textContent: "Back to the figure of the book", hidden: true });
    box.className = "moving";
    sentence.className = "moving-says";
    sentence.setAttribute("role", "status");
    back.className = "calculator-button";
    for (const [name, { label, values, at }] of Object.entries(lesson.sliders)) {
      const line = document.createElement("label"), shown = document.createElement("output");
      const input = Object.assign(document.createElement("input"), { type: "range", min: 0, max: values.length - 1, step: 1, name });
      input.value = values.indexOf(at);
      inputs[name] = { input, shown, values, symbol: label.split(" ").pop(), first: input.value };
      line.append(label, input, shown);
      box.append(line);
    }
    box.append(sentence, back);
    figure.prepend(box);
    image.before(picture);

    const read = () => Object.fromEntries(Object.entries(inputs).map(([name, { input, values }]) => [name, values[Number(input.value)]]));
    let turn = 0;

    function say() {
      for (const { input, shown, values, symbol } of Object.values(inputs)) {
        shown.value = `${symbol} = ${values[Number(input.value)]}`;
        input.setAttribute("aria-valuetext", shown.value);
      }
      sentence.textContent = lesson.says(read());
    }

    /** Draw in pieces of a few hundredths of a second, so that the sliders keep moving. */
    function draw() {
      const mine = ++turn, { picture: next, box: place } = frame(picture, lesson.panels || 1, lesson.height || 250);
      const panel = (number, x, y, title) => new Panel(next, place(number), x, y, title);
      const work = lesson.draw(read(), panel);
      const go = () => {
        if (mine !== turn) return;
        const until = performance.now() + 30;
        let step = work.next();
        while (!step.done && performance.now() < until) step = work.next();
        if (!step.done) return void setTimeout(go, 0);
        picture.setAttribute("aria-label", `The figure with other numbers. ${sentence.textContent}`);
        picture.replaceChildren(next);
        figure.classList.add("moved");
      };
      go();
    }

    box.addEventListener("input", () => {
      back.hidden = false;
      say();
      draw();
    });
    back.addEventListener("click", () => {
      turn++;
      for (const { input, first } of Object.values(inputs)) input.value = first;
      say();
      figure.classList.remove("moved");
      back.hidden = true;
      box.querySelector("input").focus();
    });
    say();
  }

  root.Moving = { Panel, frame, move, number };
})(window);
