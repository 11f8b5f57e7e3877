"""How a place in a module's source is named, and changed.

A place in the syntax tree is a function, method or class by its dotted name ("" for the module), a kind of node in it,
and which of them: "BinOp Add", where there is one, or "Name sigma#2", the second in the order of the tree.
"""

import ast
import copy


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

    def walk(node):
        found.append(node)
        for child in ast.iter_child_nodes(node):
            if id(child) not in names:
                walk(child)

    for name, node in names.values():
        if name == function:
            walk(node)
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
    for node in nodes_of(tree, function):
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
