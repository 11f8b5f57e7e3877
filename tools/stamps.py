"""Which code the stored outputs of the notebooks belong to: notebooks/stamps.json, a line for each notebook.

A line holds a hash of the notebook's own code and outputs, and a hash of the contents of every module of the library
that was loaded when its kernel ended, and of the data beside it. A notebook is current where its own hash is the
same and the library still has all these contents, wherever they lie: the contents of a module are its syntax tree
without docstrings and comments, in which no module has a name, so that one that was moved or renamed is the same.
"""

import ast
import fcntl
import functools
import hashlib
import json
import os
import re
from pathlib import Path

import notebook_tools as tools
import one_move
from library_files import PACKAGE, ROOT, data_files, python_files

NAME = re.compile(rf"(?:{PACKAGE}|\.*)(?:\.[A-Za-z_]\w*)+")  # of a module of the library, in a string


def _digest(data, length=10):
    return hashlib.sha256(data).hexdigest()[:length]


# --- the library ----------------------------------------------------------------------------------


class _Skeleton(ast.NodeTransformer):
    """What remains of a module when everything is left out that may change without changing what it computes.

    code : without docstrings, comments, imports of the library; a module of the library is a number.
    modules : where those with numbers lie, in order. unused : modules that are imported and not used here.
    objects : (name, name here, where its module lies) of all else that is imported from the library.
    """

    def __init__(self, text, path, root):
        self.folder, self.top = path.parent, Path(root, PACKAGE)
        self._bound, self.objects, self._order = {}, set(), {}
        tree = ast.parse(text)
        for node in ast.walk(tree):
            for field, value in ast.iter_fields(node):
                if isinstance(value, list):
                    setattr(node, field, [item for item in value if not self._is_own_import(item)])
        self.code = ast.unparse(self.visit(tree))
        self.modules = [self._bound[name] for name in self._order]
        self.unused = [place for name, place in self._bound.items() if name not in self._order]

    def _is_own_import(self, node):
        if isinstance(node, ast.Import):
            found = [alias for alias in node.names if alias.name.split(".")[0] == PACKAGE]
            self._bound.update({alias.asname: self._place(alias.name) for alias in found if alias.asname})
            return bool(found)
        if not isinstance(node, ast.ImportFrom):
            return False
        base = self._place("." * node.level + (node.module or ""))
        for alias in node.names if base else ():
            if _file_of(base / alias.name):
                self._bound[alias.asname or alias.name] = base / alias.name
            else:
                self.objects.add((alias.name, alias.asname or alias.name, base))
        return base is not None

    def _place(self, name):
        """Where the module of this name would lie, relative names included, or None if it is not of the library."""
        parts = name.lstrip(".").split(".") if name.strip(".") else []
        level = len(name) - len(name.lstrip("."))
        if level:
            return self.folder.joinpath(*[".."] * (level - 1), *parts)
        return self.top.joinpath(*parts[1:]) if parts and parts[0] == PACKAGE else None

    def visit_Name(self, node):
        if node.id in self._bound:
            node.id = f"module {self._order.setdefault(node.id, len(self._order))}"
        return node

    def visit_Constant(self, node):
        """A module that is imported on first use is named in a string: `.name` or `dplib.name`."""
        if isinstance(node.value, str) and NAME.fullmatch(node.value) and _file_of(self._place(node.value)):
            node.value = "module"
        return node

    def _visit_body(self, node):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
            node.body = node.body[1:]
        return self.generic_visit(node)

    visit_Module = visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _visit_body


def _file_of(place):
    """The file of the module that lies there, or None."""
    files = place / "__init__.py", place.with_name(place.name + ".py")
    return next((file.resolve() for file in files if file.is_file()), None)


@functools.cache  # many notebooks use the same modules
def _skeleton(text, path, root):
    try:
        return _Skeleton(text, path, root)
    except SyntaxError:  # somebody is at work on it: other contents in any case
        return None


def contents(root=ROOT):
    """{file: hash of its contents} of all modules of the library and of their data.

    What a module imports from the library is known by the code that it is imported from, not by its name.
    """
    root = Path(root).resolve()
    texts = {path: path.read_text(encoding="utf-8") for path in python_files(root)}
    skeletons = {path: _skeleton(text, path, root) for path, text in texts.items()}
    codes = {path: _digest((found.code if found else texts[path]).encode()) for path, found in skeletons.items()}
    code = lambda place: codes.get(_file_of(place), "")
    known = {}
    for path, found in skeletons.items():
        parts = [codes[path]]
        if found:
            parts += [code(place) for place in found.modules] + sorted(code(place) for place in found.unused)
            parts += sorted(f"{name} {here} {code(place)}" for name, here, place in found.objects)
        known[path] = _digest("\n".join(parts).encode())
    return known | {path: _digest(path.read_bytes()) for path in data_files(root)}


def used(loaded, known):
    """Hashes of the contents of the loaded files, and of the data in packages among them, sorted."""
    packages = {path.parent for path in loaded if path.name == "__init__.py"}
    data = [path for path in known if path.suffix != ".py" and path.parent in packages]
    return sorted({known[path] for path in [*loaded, *data]})


# --- the notebooks --------------------------------------------------------------------------------


def own(notebook):
    """Hash of the notebook's code and outputs, the bootstrap cell apart."""
    digest = hashlib.sha256()
    for cell in tools.code_cells(notebook):
        if not tools.is_bootstrap(cell):
            outputs = json.dumps(cell["outputs"], sort_keys=True)
            digest.update(tools.source(cell).rstrip().encode() + b"\0" + outputs.encode() + b"\0")
    return digest.hexdigest()[:16]


def file(root=ROOT):
    return Path(root, "notebooks", "stamps.json")


def name(path, root=ROOT):
    return path.resolve().relative_to(Path(root, "notebooks").resolve()).as_posix()


def text(stamps):
    """One line for each notebook, sorted, with an empty one between two: then changes of neighbours merge."""
    lines = [f"{json.dumps(key)}: {json.dumps(stamps[key], sort_keys=True)}" for key in sorted(stamps)]
    return "{\n" + ",\n\n".join(lines) + "\n}\n"


def load(root=ROOT):
    """{notebook: stamp}. Raises OSError where the file cannot be understood."""
    path = file(root)
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except ValueError as error:
        advice = "keep either side of a conflict: what fits neither runs again"
        raise OSError(f"{path.name} is no valid JSON ({error}); {advice}") from None


def store(path, library, root=ROOT):
    """Write the line of a notebook whose outputs are stored; several threads and processes may do so at once."""
    folder = os.open(file(root).parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        there = {name(notebook, root) for notebook in tools.notebooks(root)}
        stamps = {key: stamp for key, stamp in load(root).items() if key in there}
        stamps[name(path, root)] = {"own": own(tools.read(path)), "library": library}
        one_move.write_text(file(root), text(stamps))
    finally:
        os.close(folder)


def stale_reason(path, root=ROOT):
    """Why the stored outputs of a notebook may not belong to its code, or None."""
    notebook = tools.read(path)
    cells = [cell for cell in tools.code_cells(notebook) if tools.source(cell).strip()]
    if any(cell.get("execution_count") is None for cell in cells):
        return "not executed"
    stamp = load(root).get(name(path, root))
    if stamp is None:
        return "no stamp"
    if stamp["own"] != own(notebook):
        return "code or outputs changed"
    if not set(stamp["library"]) <= set(contents(root).values()):
        return "library changed"
    return None
