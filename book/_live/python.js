/* Python in the page: the one interface that cells and pages speak to. What stands behind it is python_worker.js, and can be
   another runtime. Nothing is loaded before `start`.

     const python = new PagePython(folder);        the address of _static/
     PagePython.obstacle()                         null, or the sentence that says why this page cannot compute
     await python.start(tell)                      tell({loaded, total, kept}) while bytes arrive, tell(null) when it starts
     await python.run(code, name, show)            show(output) for each; {failed, memory} at the end
     python.interrupt()                            ends it at once; what was computed is gone, start again
     PagePython.picture(output)                    the address of a figure

   An output is {kind: "stream", name, text}, {kind: "text", text}, {kind: "html", html}, {kind: "figure", png} or
   {kind: "error", text, reason}. */
(function (root) {
  "use strict";

  const MISSING = "This copy of the book was built without Python for the pages. `make live` adds it; or download the notebook and run it in Jupyter.";
  const ENDED = "Python ended unexpectedly, perhaps because too little memory was left. What was computed is gone; run the cells again.";

  class PagePython {
    constructor(folder) {
      this.folder = new URL(folder, root.location.href);
      this.worker = this.waiting = null;
    }

    static obstacle() {
      if (root.location.protocol === "file:")
        return "A page opened from the disk may not start Python. Serve the book (`make serve`) and open it there, or download the notebook and run it in Jupyter.";
      if (!root.Worker || !root.WebAssembly || !root.DecompressionStream || !WebAssembly.compileStreaming)
        return "This browser lacks what Python in a page needs (WebAssembly and streams): take a current one, or download the notebook.";
      return null;
    }

    get started() {
      return this.worker !== null;
    }

    async start(tell = () => {}) {
      const obstacle = PagePython.obstacle();
      if (obstacle) throw new Error(obstacle);
      const at = (name) => new URL(name, this.folder);
      const [manifest, driver] = await Promise.all([fetch(at("python/runtime.json")), fetch(at("live/page_driver.py"))]).catch(() => {
        throw new Error("The page's server does not answer; Python could not be loaded.");
      });
      if (!manifest.ok || !driver.ok) throw new Error(MISSING);
      const text = await driver.text();
      this.worker = new Worker(at("live/python_worker.js"), { type: "module" });
      await this.ask({ what: "start", base: at("python/").href, driver: text }, (message) => {
        if (message.kind === "progress") tell(message);
        if (message.kind === "starting") tell(null);
      });
    }

    run(code, name, show = () => {}) {
      if (!this.worker) throw new Error("Python has not been started");
      return this.ask({ what: "run", code, name }, show);
    }

    interrupt() {
      if (this.worker) this.worker.terminate();
      this.worker = null;
      if (this.waiting) this.waiting(new Error("stopped"));
      this.waiting = null;
    }

    static picture(output) {
      return `data:image/png;base64,${output.png}`;
    }

    /** One question at a time; its promise ends with the answer, or fails with a sentence. */
    ask(message, show) {
      if (this.waiting) throw new Error("Python is busy");
      return new Promise((resolve, reject) => {
        const end = (settle) => (value) => {
          this.waiting = null;
          settle(value);
        };
        this.waiting = end(reject);
        const broken = (reason) => {
          const fail = this.waiting;
          this.waiting = null;
          this.interrupt();
          if (fail) fail(new Error(reason));
        };
        this.worker.onerror = (event) => {
          event.preventDefault();
          broken(ENDED);
        };
        this.worker.onmessage = ({ data }) => {
          if (data.kind === "ready" || data.kind === "done") end(resolve)({ failed: Boolean(data.failed), memory: data.memory });
          else if (data.kind === "broken") broken(message.what === "start" ? data.text : ENDED);
          else show(data);
        };
        this.worker.postMessage(message);
      });
    }
  }

  root.PagePython = PagePython;
})(this);
