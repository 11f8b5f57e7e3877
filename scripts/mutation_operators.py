"""What can be changed in a module's source, one place at a time, and how a place is named.

A place in the syntax tree is a function, method or class by its dotted name ("" for the module), a kind of node in it,
and which of them: "BinOp Add", where there is one, or "Name sigma#2", the second in the order of the tree.
"""

import ast
import copy
from dataclasses import dataclass

_SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt,
}  # fmt: skip
_NAMES = {
    "floor": "ceil", "ceil": "floor", "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "log1p": "expm1", "logaddexp": "maximum", "upper": "lower", "lower": "upper",
}  # fmt: skip
_WORDS = {"remove": "add", "add": "remove", "upper": "lower", "lower": "upper"}


@dataclass(frozen=True)
class Place:
    """One change at one place. `function` and `number` keep their meaning while that function stays as it is."""

    function: str  # dotted name of the function, method or class it stands in; "" for the module
    number: int  # of the place among those of the function
    change: str
    index: int  # in the walk of the module's tree
    line: int
    lines: range  # of the statement around it, without the statements inside


def functions(tree):
    """{id of node: (name, node)} of the module, its classes, methods and functions; not of functions inside others."""
    found = {id(tree): ("", tree)}

    def walk(body, prefix):
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found[id(node)] = prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                walk(node.body, prefix + node.name + ".")

    walk(tree.body, "")
    return found


def label(node):
    """The kind of a node, with its operator, name or value."""
    kind = type(node).__name__
    if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.AugAssign)):
        return f"{kind} {type(node.op).__name__}"
    if isinstance(node, ast.Compare):
        return f"{kind} {' '.join(type(op).__name__ for op in node.ops)}"
    if isinstance(node, ast.Constant):
        return f"{kind} {node.value!r}"
    function = node.func if isinstance(node, ast.Call) else node
    name = getattr(function, "attr", getattr(function, "id", None))
    return kind if name is None else f"{kind} {name}"


def nodes_of(tree, function):
    """The nodes that stand in one function, method, class or the module, not in those inside it, in order."""
    names, found = functions(tree), []

    def walk(node, owner):
        owner = names[id(node)][0] if id(node) in names else owner
        if owner == function:
            found.append(node)
        for child in ast.iter_child_nodes(node):
            walk(child, owner)

    walk(tree, "")
    return found


def node_at(tree, function, place):
    """The node at a place; LookupError where there is none, or several and no number."""
    kind, _, number = place.partition("#")
    found = [node for node in nodes_of(tree, function) if label(node) == kind]
    if not found or len(found) < int(number or 1) or not number and len(found) > 1:
        raise LookupError(f"{len(found)} nodes {kind!r} in {function or 'the module'}; {place!r} was asked for")
    return found[int(number or 1) - 1]


def nodes_without_names(node):
    """A node as code in which all names of variables and modules are the same."""
    node = copy.deepcopy(node)
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            part.id = "_"
    return ast.unparse(node)


def replaced(source, function, changes):
    """The source with each node at a place of `changes` replaced: {place: code, in which _ is the old node}.

    `_.left` and the like are its parts. A statement may be replaced by none.
    """
    tree = ast.parse(source)
    codes = {id(node_at(tree, function, place)): code for place, code in changes.items()}
    for node in list(ast.walk(tree)):
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                parts = [_new(item, codes[id(item)]) if id(item) in codes else [item] for item in value]
                setattr(node, field, [item for part in parts for item in part])
            elif id(value) in codes:
                setattr(node, field, _new(value, codes[id(value)])[0])
    return ast.unparse(ast.fix_missing_locations(tree))


def _new(old, code):
    """The nodes that `code` makes of an old one."""
    if isinstance(old, ast.Slice):
        found = [ast.parse(f"_[{code}]", mode="eval").body.slice]
    elif isinstance(old, ast.expr):
        found = [ast.parse(code, mode="eval").body]
    else:
        found = ast.parse(code).body
    return [_Parts(old).visit(node) for node in found]


class _Parts(ast.NodeTransformer):
    """Puts the old node in the place of `_`, and its parts in that of `_.part` and `_.parts[0]`."""

    def __init__(self, old):
        self.old = old

    def visit(self, node):
        part = self._part(node)
        return copy.deepcopy(part) if isinstance(part, ast.AST) else self.generic_visit(node)

    def _part(self, node):
        if isinstance(node, ast.Name):
            return self.old if node.id == "_" else None
        if isinstance(node, ast.Attribute):
            return getattr(self._part(node.value), node.attr, None)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            whole = self._part(node.value)
            return whole[node.slice.value] if isinstance(whole, list) else None
        return None


def places(source):
    """Every `Place` of a module."""
    tree = ast.parse(source)
    index = {id(node): i for i, node in enumerate(ast.walk(tree))}
    names, skipped = functions(tree), _lines_without_meaning(tree)
    found, count = [], {}

    def walk(node, function, statement):
        if id(node) in names:
            function = names[id(node)][0]
        if isinstance(node, ast.stmt):
            statement = _lines(node)
        changes = _changes(node)
        if changes and node.lineno not in skipped:
            number = count[function] = count.get(function, 0) + 1
            for change in changes:
                found.append(Place(function, number, change, index[id(node)], node.lineno, statement))
        for child in ast.iter_child_nodes(node):
            walk(child, function, statement)

    walk(tree, "", range(0))
    return found


def mutated(source, place):
    """The source with the change made, or None where it makes no difference."""
    tree = ast.parse(source)
    before = ast.unparse(tree)
    node = next(node for i, node in enumerate(ast.walk(tree)) if i == place.index)
    _apply(node, place.change)
    after = ast.unparse(ast.fix_missing_locations(tree))
    return after if after != before else None


def _lines(statement):
    body = getattr(statement, "body", None)
    last = max(body[0].lineno - 1, statement.lineno) if body else statement.end_lineno
    return range(statement.lineno, last + 1)


def _changes(node):
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        return [f"{type(node.op).__name__} to {_SWAPS[type(node.op)].__name__}"]
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        return ["comparison turned round"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ["sign dropped"]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0:
        return ["constant doubled", "constant halved"]
    if isinstance(node, ast.Constant) and node.value in _WORDS and isinstance(node.value, str):
        return [f"{node.value} to {_WORDS[node.value]}"]
    if isinstance(node, ast.Attribute) and node.attr in _NAMES and isinstance(node.ctx, ast.Load):
        return [f"{node.attr} to {_NAMES[node.attr]}"]
    if isinstance(node, ast.Name) and node.id in ("min", "max") and isinstance(node.ctx, ast.Load):
        return [f"{node.id} to {_NAMES[node.id]}"]
    if isinstance(node, ast.AugAssign) and type(node.op) in _SWAPS:
        return ["term dropped"]
    return []


def _apply(node, change):
    if isinstance(node, ast.BinOp):
        node.op = _SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = _SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        node.value = _WORDS[node.value]
    elif isinstance(node, ast.Constant):
        value = node.value * 2 if change.endswith("doubled") else node.value / 2
        node.value = max(int(value), 0) if isinstance(node.value, int) else value
    elif isinstance(node, ast.Attribute):
        node.attr = _NAMES[node.attr]
    elif isinstance(node, ast.Name):
        node.id = _NAMES[node.id]
    elif isinstance(node, ast.AugAssign):
        neutral = 0.0 if isinstance(node.op, (ast.Add, ast.Sub)) else 1.0
        node.value = ast.Constant(neutral)


def _lines_without_meaning(tree):
    """Lines of raised errors and docstrings: their words are no part of a number."""
    lines = set()
    for node in ast.walk(tree):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Raise) or text or isinstance(node, ast.JoinedStr):
            lines.update(range(node.lineno, node.end_lineno + 1))
    return lines
