/* The Python runtime behind python.js, in a worker of its own: CPython with NumPy, SciPy and Matplotlib in one WebAssembly
   module for WASI. It has files in memory and nothing else: no network, no keyboard, no file of the reader's. */

const say = (message, moved = []) => self.postMessage(message, moved);
const NOTHING = 8; // ERRNO_BADF
const UNSUPPORTED = 58; // ERRNO_NOTSUP

/** The bytes of a file, from the browser's store where it is there already; counts what arrives. */
async function load(base, file, onBytes) {
  const url = new URL(`${file.name}?${file.sha256.slice(0, 16)}`, base);
  const store = self.caches ? await caches.open("page-python").catch(() => null) : null;
  let response = store && (await store.match(url));
  const kept = Boolean(response);
  if (!response) response = await fetch(url);
  if (!response.ok) throw new Error(`${file.name} could not be loaded (status ${response.status}).`);
  const reader = response.body.getReader(), bytes = new Uint8Array(file.bytes);
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > bytes.length) throw new Error(`${file.name} is longer than stated; load the page again.`);
    bytes.set(value, at);
    at += value.length;
    onBytes(value.length, kept);
  }
  if (at !== bytes.length) throw new Error(`${file.name} is shorter than stated; load the page again.`);
  if (store && !kept) await store.put(url, new Response(bytes)).catch(() => {}); // a full store is no failure
  return bytes;
}

function compile(bytes) {
  const stream = new Blob([bytes]).stream();
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b; // some servers have unpacked it on the way
  const plain = packed ? stream.pipeThrough(new DecompressionStream("gzip")) : stream;
  return WebAssembly.compileStreaming(new Response(plain, { headers: { "Content-Type": "application/wasm" } }));
}

class Guest {
  constructor(shim, module, files, driver) {
    const { WASI, Fd, File, Inode, Directory, PreopenDirectory, OpenFile, ConsoleStdout, wasi } = shim;
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    const stream = (name) => new ConsoleStdout((bytes) => say({ kind: "stream", name, text: decoders[name].decode(bytes, { stream: true }) }));
    let line = "";
    const messages = new TextDecoder();
    const receive = (bytes) => {
      line += messages.decode(bytes, { stream: true });
      const lines = line.split("\n");
      line = lines.pop();
      for (const text of lines) say(JSON.parse(text));
    };
    /** What Python writes into /page/messages arrives here, a JSON object a line. */
    class Mailbox extends Inode {
      path_open() {
        return { ret: 0, fd_obj: new ConsoleStdout(receive) };
      }
      stat() {
        return new wasi.Filestat(this.ino, wasi.FILETYPE_CHARACTER_DEVICE, 0n);
      }
    }
    /** A folder that says it may be written to: Python asks before it tries. */
    class Folder extends PreopenDirectory {
      fd_fdstat_get() {
        const { ret, fdstat } = super.fd_fdstat_get();
        fdstat.fs_rights_base = fdstat.fs_rights_inherited = 0x1fffffffn;
        return { ret, fdstat };
      }
    }
    const libraries = new Directory([["python315.zip", new File(files.libraries, { readonly: true })]]);
    const book = new Directory([["dplib.zip", new File(files.dplib, { readonly: true })], ["data.zip", new File(files.data, { readonly: true })],
      ["page_driver.py", new File(driver, { readonly: true })]]);
    const descriptors = [
      new OpenFile(new File([])), stream("stdout"), stream("stderr"),
      new Folder("/usr/local/lib", libraries.contents),
      new Folder("/usr/local/lib/python315.zip/matplotlib/mpl-data", new Map()),
      new Folder("/page", new Map([["messages", new Mailbox()]])),
      new Folder("/book", book.contents),
      new Folder("/tmp", new Map()),
    ];
    const environment = ["HOME=/tmp", "TMPDIR=/tmp", "PYTHONTZPATH=", "MPLCONFIGDIR=/tmp/matplotlib", "MPLBACKEND=module://page_figures",
      "OPENBLAS_NUM_THREADS=1"];
    this.wasi = new WASI(["/usr/local/bin/python.wasm", "/book", "/tmp/site"], environment, descriptors, { debug: false });
    const imports = { wasi_snapshot_preview1: {}, host: { call: () => -1 } };
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      if (from !== "wasi_snapshot_preview1") continue;
      const found = this.wasi.wasiImport[name];
      imports[from][name] = name.startsWith("sock_") || !found ? () => NOTHING : found;
    }
    imports.wasi_snapshot_preview1.sched_yield = () => 0;
    imports.wasi_snapshot_preview1.poll_oneoff = (...places) => this.wait(...places);
    this.instance = new WebAssembly.Instance(module, imports);
    this.wasi.initialize(this.instance);
  }

  /** What `time.sleep` asks for: one wait for a clock. The shim looks for the flag of an absolute time at another place. */
  wait(question, answer, count, counted) {
    const view = new DataView(this.instance.exports.memory.buffer), CLOCK = 0, MONOTONIC = 1;
    if (count !== 1 || view.getUint8(question + 8) !== CLOCK) return UNSUPPORTED;
    const monotonic = view.getUint32(question + 16, true) === MONOTONIC;
    const now = () => BigInt(Math.round((monotonic ? performance.now() : Date.now()) * 1e6));
    const time = view.getBigUint64(question + 24, true), absolute = view.getUint16(question + 40, true) & 1;
    const end = absolute ? time : now() + time;
    while (now() < end); // a worker has nothing else to wait with
    view.setBigUint64(answer, view.getBigUint64(question, true), true);
    view.setUint16(answer + 8, 0, true);
    view.setUint8(answer + 10, CLOCK);
    view.setUint32(counted, 1, true);
    return 0;
  }

  /** Run a program text in the interpreter's main module; its exit status. */
  turn(text) {
    const { host_alloc, turn, memory } = this.instance.exports;
    const bytes = new TextEncoder().encode(text), place = host_alloc(bytes.length) >>> 0;
    if (!place) throw new Error("no memory is left");
    new Uint8Array(memory.buffer).set(bytes, place);
    return turn(place, bytes.length);
  }
}

// The module comes with Python started, and remembers the directory of another archive of libraries.
const FORGET = "import sys; sys.path_importer_cache.clear(); __import__('zipimport')._zip_directory_cache.clear()";

let guest = null;

async function start({ base, driver }) {
  const manifest = await (await fetch(new URL("runtime.json", base))).json();
  const total = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
  let loaded = 0;
  const count = (bytes, kept) => say({ kind: "progress", loaded: (loaded += bytes), total, kept });
  const [shim, ...contents] = await Promise.all([import(new URL("shim/index.js", base)), ...manifest.files.map((file) => load(base, file, count))]);
  const files = Object.fromEntries(manifest.files.map((file, place) => [file.name.split(".")[0], contents[place]]));
  say({ kind: "starting" });
  const module = await compile(files.python);
  guest = new Guest(shim, module, files, new TextEncoder().encode(driver));
  guest.turn(FORGET);
  if (guest.turn("import page_driver; page_driver.prepare()") !== 0) throw new Error("Python did not start.");
  say({ kind: "ready", memory: guest.instance.exports.memory.buffer.byteLength });
}

function run({ code, name }) {
  const status = guest.turn(`__import__("page_driver").run(${JSON.stringify(code)}, ${JSON.stringify(name)})`);
  say({ kind: "done", failed: status !== 0, memory: guest.instance.exports.memory.buffer.byteLength });
}

self.onmessage = async ({ data }) => {
  try {
    await (data.what === "start" ? start(data) : run(data));
  } catch (error) {
    say({ kind: "broken", text: String(error && error.message ? error.message : error) });
  }
};
