/* The cells of a chapter or of its exercises, to be changed and run in the page. They speak to Python through python.js alone. */
(function (root) {
  "use strict";

  const PagePython = root.PagePython;
  const here = document.currentScript ? document.currentScript.src : "";
  const MARKS = { changed: "changed", stale: "out of date: a cell above was changed", running: "running …", failed: "failed", done: "computed in this page", fresh: "" };
  const LOST = "Stopped. Python was ended, and what the cells had computed is gone with it. “Run to here” runs the cells above again first.";
  const EARLIER = "A cell above may define this name: “Run to here” runs the cells above first.";

  /** An element with attributes and content. */
  function make(tag, attributes = {}, ...content) {
    const found = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "click") found.addEventListener("click", value);
      else found.setAttribute(name, value);
    }
    found.append(...content);
    return found;
  }

  /** Something of this page that the browser keeps, where it allows that. */
  class Kept {
    constructor(what) {
      this.name = `page-${what}:${root.location.pathname}`;
    }

    read() {
      try {
        return JSON.parse(root.localStorage.getItem(this.name)) || {};
      } catch {
        return {};
      }
    }

    write(found) {
      try {
        if (Object.keys(found).length) root.localStorage.setItem(this.name, JSON.stringify(found));
        else root.localStorage.removeItem(this.name);
      } catch {
        // not allowed here: it lasts as long as the page
      }
    }
  }

  const kept = new Kept("cells"); // {number of a cell: {was, now}}: what a reader has written
  const solved = new Kept("solved"); // {name of an exercise: true}
  const CHECK = /^course\.check\("([\w-]+)"/m;

  class Cell {
    constructor(page, place, box) {
      this.page = page;
      this.number = place + 1;
      this.box = box;
      this.pre = box.querySelector(".cell_input .highlight");
      this.original = box.querySelector(".cell_input pre").textContent.replace(/\n$/, "");
      this.exercise = (CHECK.exec(this.original) || [])[1]; // the name of the exercise that this cell checks
      this.hasRun = false;
    }

    open(text) {
      this.area = make("textarea", { class: "page-code", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": `Code of cell ${this.number}` });
      this.area.value = text;
      this.fit();
      this.area.addEventListener("input", () => this.edited());
      this.area.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.shiftKey || event.ctrlKey)) {
          event.preventDefault();
          this.page.run([this]);
        }
      });
      this.pre.hidden = true;
      this.pre.after(this.area);
      this.mark = make("span", { class: "page-mark", role: "status" });
      const run = make("button", { type: "button", click: () => this.page.run([this]) }, this.exercise ? "Check" : "Run");
      const upTo = make("button", { type: "button", click: () => this.page.runTo(this) }, "Run to here");
      run.setAttribute("aria-label", this.exercise ? `Check ${this.exercise}` : `Run cell ${this.number}`);
      upTo.setAttribute("aria-label", `Run to cell ${this.number}`);
      this.tools = make("div", { class: "page-tools" }, run, upTo, this.mark);
      this.output = make("div", { class: "page-output" });
      (this.area.closest("details") || this.area.closest(".cell_input")).after(this.tools, this.output);
      this.set(text === this.original ? "fresh" : "changed");
    }

    fit() {
      this.area.rows = this.area.value.split("\n").length;
    }

    edited() {
      this.fit();
      this.set("changed");
      this.page.edited(this);
    }

    set(state) {
      this.state = state;
      this.box.dataset.state = state;
      this.mark.textContent = MARKS[state];
    }

    /** The stored output gives way to what was computed; a figure keeps its caption. */
    hideStored(hidden) {
      for (const stored of this.box.querySelectorAll(":scope > .cell_output")) {
        const figure = stored.querySelector("figure");
        for (const part of figure ? figure.querySelectorAll(":scope > :not(figcaption)") : [stored]) part.hidden = hidden;
      }
    }

    clear() {
      this.output.replaceChildren();
      this.hideStored(true);
    }

    show(output) {
      const last = this.output.lastElementChild;
      if (output.kind === "stream") {
        if (last && last.dataset.stream === output.name) last.textContent += output.text;
        else this.output.append(make("pre", { "data-stream": output.name }, output.text));
      } else if (output.kind === "text") this.output.append(make("pre", {}, output.text));
      else if (output.kind === "html") {
        const part = make("div", { class: "text_html" });
        part.innerHTML = output.html; // the page's policy lets nothing in it run
        this.output.append(part);
      } else if (output.kind === "figure") this.output.append(make("img", { src: PagePython.picture(output), alt: "The figure that this cell draws" }));
      else if (output.kind === "error") {
        const reason = output.reason || (/^NameError/m.test(output.text) ? EARLIER : "");
        if (output.text) this.output.append(make("pre", { class: "page-error", tabindex: "0" }, output.text));
        if (reason) this.output.append(make("p", { class: "page-reason" }, reason));
        this.failed = true;
      }
    }

    async run(python) {
      this.clear();
      this.failed = false;
      this.set("running");
      const code = this.area.value;
      const { failed, memory } = await python.run(code, `<cell ${this.number}>`, (output) => this.show(output));
      this.hasRun = true;
      this.failed ||= failed;
      if (this.area.value !== code) this.set("changed"); // while it ran
      else this.set(this.failed ? "failed" : this.page.changedAbove(this) ? "stale" : "done");
      if (this.exercise) this.page.judged(this.exercise, this.output.textContent.includes(`${this.exercise}: correct.`));
      return memory;
    }

    restore() {
      this.area.value = this.original;
      this.fit();
      this.output.replaceChildren();
      this.hideStored(false);
      this.hasRun = false;
      this.set("fresh");
    }
  }

  class Page {
    constructor(boxes) {
      this.cells = boxes.map((box, place) => new Cell(this, place, box));
      this.python = new PagePython(new URL("../", here).href);
      this.busy = false;
      this.status = make("p", { class: "page-status", role: "status" });
      this.progress = make("progress", { max: "1", "aria-label": "Loading Python" });
      this.progress.hidden = true;
      this.begin = make("button", { type: "button", class: "page-begin", click: () => this.start() }, "Run in this page");
      this.all = make("button", { type: "button", click: () => this.runTo(this.cells.at(-1)) }, "Run all");
      this.stop = make("button", { type: "button", click: () => this.interrupt() }, "Stop");
      this.reset = make("button", { type: "button", click: () => this.restore() }, "Reset");
      for (const button of [this.all, this.stop, this.reset]) button.hidden = true;
      this.stop.disabled = true;
      this.bar = make("div", { class: "page-python", role: "group", "aria-label": "Python in this page" }, this.begin, this.all, this.stop, this.reset);
      this.exercises = this.cells.map((cell) => cell.exercise).filter(Boolean);
      if (this.exercises.length) {
        this.score = make("span", { class: "page-score", role: "status" });
        this.bar.append(make("button", { type: "button", click: () => this.download() }, "Save as a notebook"), this.score);
        this.count();
      }
      this.bar.append(this.progress, this.status);
      const changed = Object.keys(kept.read()).length;
      if (changed) this.say(`You have changed ${changed === 1 ? "a cell" : `${changed} cells`} here before; the text is kept.`);
    }

    say(text) {
      this.status.textContent = text;
    }

    /** Load Python and open the cells; on failure the page says why, and stays as it is. */
    async start() {
      this.begin.disabled = true;
      if (!(await this.load())) {
        this.begin.disabled = false;
        return;
      }
      const texts = kept.read();
      for (const cell of this.cells) cell.open(texts[cell.number] && texts[cell.number].was === cell.original ? texts[cell.number].now : cell.original);
      this.begin.hidden = true;
      for (const button of [this.all, this.stop, this.reset]) button.hidden = false;
      this.say("Python runs in this page. Change a cell, and run it.");
      this.all.focus();
    }

    async load() {
      const megabytes = (bytes) => (bytes / 1e6).toFixed(0);
      this.say("Loading Python …");
      try {
        await this.python.start((step) => {
          this.progress.hidden = step === null;
          if (step === null) return this.say("Starting Python …");
          this.progress.value = step.loaded / step.total;
          this.say(`Loading Python: ${megabytes(step.loaded)} of ${megabytes(step.total)} MB${step.kept ? ", kept from an earlier visit" : ""}`);
        });
        return true;
      } catch (error) {
        this.say(error.message);
        return false;
      } finally {
        this.progress.hidden = true;
      }
    }

    edited(changed) {
      const texts = {};
      for (const cell of this.cells) {
        if (cell.area.value !== cell.original) texts[cell.number] = { was: cell.original, now: cell.area.value };
        if (cell.number > changed.number && cell.state !== "changed") cell.set("stale");
      }
      kept.write(texts);
    }

    /** Whether a cell above waits to be run with what was written into it. */
    changedAbove(cell) {
      return this.cells.some((other) => other.number < cell.number && other.state === "changed");
    }

    /** What the reader has answered, as the notebook behind this page: to go on elsewhere, or to hand in. */
    async notebook() {
      const source = new URL(`../_sources/${root.location.pathname.replace(/^.*\/(notebooks\/.*)\.html$/, "$1")}.ipynb`, new URL("../", here));
      const answer = await fetch(source);
      if (!answer.ok) throw new Error(`${source} is not there`);
      const found = await answer.json();
      const shown = found.cells.filter((cell) => cell.cell_type === "code" && !(cell.metadata.tags || []).includes("remove-cell"));
      const texts = kept.read();
      for (const [place, cell] of this.cells.entries()) {
        const text = texts[cell.number];
        if (text && text.was === cell.original) shown[place].source = text.now;
      }
      return found;
    }

    async download() {
      try {
        const text = JSON.stringify(await this.notebook(), null, 1);
        const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: root.location.pathname.replace(/^.*\/(.*)\.html$/, "$1.ipynb") });
        link.click();
        URL.revokeObjectURL(link.href);
      } catch {
        this.say("The notebook could not be read; a page opened from the disk may not read its own files. Open the book from an address.");
      }
    }

    judged(exercise, right) {
      const found = solved.read();
      if (right) found[exercise] = true;
      else delete found[exercise];
      solved.write(found);
      this.count();
    }

    count() {
      const found = solved.read();
      this.score.textContent = `Solved: ${this.exercises.filter((name) => found[name]).length} of ${this.exercises.length}`;
    }

    runTo(last) {
      const first = this.cells.findIndex((cell) => !cell.hasRun || cell.state !== "done");
      return this.run(this.cells.slice(Math.min(first < 0 ? 0 : first, last.number - 1), last.number));
    }

    async run(cells) {
      if (this.busy) return this.say("Python is busy: wait, or press Stop.");
      this.setBusy(true);
      let running = null;
      const begun = performance.now();
      try {
        if (!this.python.started && !(await this.load())) return;
        let memory = 0;
        for (running of cells) {
          this.say(`Cell ${running.number} is running …`);
          memory = await running.run(this.python);
          if (running.failed) break;
        }
        const seconds = ((performance.now() - begun) / 1000).toFixed(1);
        this.say(running.failed ? `Cell ${running.number} failed.` : `Done in ${seconds} s; Python uses ${(memory / 1e6).toFixed(0)} MB.`);
      } catch (error) {
        if (running) running.set(running.area.value === running.original ? "fresh" : "changed");
        this.lose();
        this.say(error.message === "stopped" ? LOST : error.message);
      } finally {
        this.setBusy(false);
      }
    }

    setBusy(busy) {
      this.busy = busy;
      this.stop.disabled = !busy;
      this.bar.setAttribute("aria-busy", String(busy));
    }

    /** Python is gone: no cell has run. */
    lose() {
      for (const cell of this.cells) cell.hasRun = false;
    }

    interrupt() {
      this.python.interrupt();
      this.lose();
    }

    restore() {
      this.interrupt();
      for (const cell of this.cells) cell.restore();
      kept.write({});
      if (this.exercises.length) {
        solved.write({});
        this.count();
      }
      this.say("The page is as it was printed; Python starts anew with the next cell.");
    }
  }

  const boxes = [...document.querySelectorAll("div.cell")].filter((box) => box.querySelector(".cell_input pre"));
  const title = document.querySelector("article section h1");
  if (PagePython && boxes.length && title) {
    const page = new Page(boxes);
    title.after(page.bar);
    root.pageCells = page;
  }
})(this);
