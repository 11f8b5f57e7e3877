"""Answers that can be recognised but not read.

`form(answer)` says in public what is asked for: the kind of each part, the number of parts, the tolerance.
`seal(…)` turns an answer into a stretched hash of its cells on a grid; `unseal(…)` tells whether another
answer lies in the same cells. A hint is encrypted under a key derived from the wrong answer that earns it,
so neither answers nor hints can be read in the files.

A number is taken on a relative grid (a logarithmic one) or on an absolute one. The grid is shifted so that
the sealed answer lies in the middle of its cell: whatever differs by at most the tolerance is accepted, and
whatever differs by more than twice the tolerance is not. The shift is stored; it says nothing about
the cell.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from numbers import Integral, Rational, Real

TOLERANCE = 1e-4
# Below, a float cannot tell one cell of the logarithmic grid from the next; above, "twice" would not hold.
SMALLEST_TOLERANCE, LARGEST_TOLERANCE = 1e-9, 0.3
_SHIFTS = 64  # shifts are rounded, so that the last bits of an answer do not change the files
_COST = {"n": 2**13, "r": 8, "p": 1}  # 8 MB and about 30 ms for one guess
_MOST_PARTS, _DEEPEST = 10**5, 10  # of an answer: more is a mistake, and would fill the memory

_WORDS = {
    "bool": "True or False",
    "text": "a text",
    "fraction": "an exact fraction (fractions.Fraction)",
    "whole": "a whole number",
    "number": "a number",
}


class WrongKind(TypeError):
    """An answer is not of the kind that the exercise asks for; the message says what is."""


def plain(answer):
    """Arrays and array scalars as Python's own lists and numbers; tuples as lists. WrongKind if it is too large."""
    parts = 0

    def convert(value, depth):
        nonlocal parts
        array = hasattr(value, "tolist") and not isinstance(value, (str, bytes, type))
        parts += getattr(value, "size", 1) if array else len(value) if isinstance(value, (list, tuple)) else 0
        if parts > _MOST_PARTS or depth > _DEEPEST:
            raise WrongKind(f"The answer has more than {_MOST_PARTS:,} parts, or is nested more than {_DEEPEST} deep.")
        if array:
            value = value.tolist()
        return [convert(part, depth + 1) for part in value] if isinstance(value, (list, tuple)) else value

    return convert(answer, 0)


def describe(form):
    """The form in words."""
    if "items" in form:
        return f"a sequence of {len(form['items'])} parts"
    return _WORDS[form["kind"]]


def form(answer, tolerance=None, absolute=None):
    """What may be known about an answer: its kind, and for numbers the tolerance.

    tolerance : relative; by default 1e-4 for floats, and whole numbers must be exact.
    absolute : the tolerance in the answer's own unit, for answers that may be zero.
    """
    answer = plain(answer)
    if isinstance(answer, list):
        return {"kind": "sequence", "items": [form(part, tolerance, absolute) for part in answer]}
    if isinstance(answer, bool):
        return {"kind": "bool"}
    if isinstance(answer, str):
        return {"kind": "text"}
    if isinstance(answer, Integral):
        if absolute is None and (tolerance is None or answer == 0):
            return {"kind": "whole"}
    elif isinstance(answer, Fraction):
        return {"kind": "fraction"}
    if not isinstance(answer, Real):
        raise WrongKind(f"an answer must be a number, a text, True or False, or a sequence of those; got {answer!r}")
    if absolute is not None:
        return {"kind": "number", "absolute": absolute}
    if answer == 0:
        raise ValueError("an answer of 0 has no relative tolerance; give an absolute one")
    tolerance = TOLERANCE if tolerance is None else tolerance
    if not SMALLEST_TOLERANCE <= tolerance <= LARGEST_TOLERANCE:
        raise ValueError(f"tolerance must be from {SMALLEST_TOLERANCE} to {LARGEST_TOLERANCE}; got {tolerance!r}")
    return {"kind": "number", "tolerance": tolerance}


def _leaves(form, answer):
    """(form, value) of every part that is not a sequence; WrongKind where the answer does not fit."""
    if "items" not in form:
        yield form, _fitting(form, answer)
        return
    if not isinstance(answer, list):
        raise WrongKind(f"The answer must be {describe(form)}; this is {shown(answer)}.")
    if len(answer) != len(form["items"]):
        raise WrongKind(f"The answer must be {describe(form)}; this one has {len(answer)}.")
    for number, (part, value) in enumerate(zip(form["items"], answer), start=1):
        try:
            yield from _leaves(part, value)
        except WrongKind as error:
            text = str(error).replace("of the answer", f"of part {number} of the answer", 1)
            raise WrongKind(text.replace("The answer", f"Part {number} of the answer", 1)) from None


def shown(value):
    """An unfit answer in words."""
    if callable(value):
        return "a function: call it"
    if hasattr(value, "upper") and hasattr(value, "lower") and not isinstance(value, str):
        return "a bracket: take one end, .upper or .lower, as the statement says"
    try:
        text = repr(value)
    except Exception:  # whole numbers of thousands of digits have none, nor have broken classes
        text = ""
    return f"{text} ({type(value).__name__})" if 0 < len(text) < 60 else f"a {type(value).__name__}"


def _fitting(form, value):
    kind = form["kind"]
    flag = isinstance(value, bool)
    fits = {
        "bool": flag,
        "text": isinstance(value, str),
        "fraction": isinstance(value, Rational) and not flag,
        "whole": isinstance(value, Real) and not flag and (isinstance(value, Integral) or float(value).is_integer()),
        "number": isinstance(value, Real) and not flag,
    }[kind]
    if not fits:
        raise WrongKind(f"The answer must be {_WORDS[kind]}; this is {shown(value)}.")
    if kind == "number":
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
        if math.isnan(value):
            raise WrongKind("The answer must be a number; this is nan: some step has no defined value.")
    return value


def _position(form, value):
    """Where a finite number lies on its grid, in cells; None where no grid helps (infinite, or zero among ratios)."""
    if math.isinf(value):
        return None
    half_share = 1 - 1 / _SHIFTS  # what rounding the shift leaves of half a cell
    if "absolute" in form:
        return value * half_share / (2 * form["absolute"])
    if value == 0:
        return None
    return math.log(abs(value)) * half_share / (-2 * math.log1p(-form["tolerance"]))


def _token(form, value, shift):
    """The text that stands for a value: equal for all values of a cell."""
    kind = form["kind"]
    if kind == "text":
        return " ".join(value.casefold().split())
    if kind == "fraction":
        return str(Fraction(value))
    if kind == "whole":
        return str(int(value))
    if kind == "bool":
        return str(value)
    position = _position(form, value)
    if position is None:
        return str(value)
    sign = "-" if value < 0 and "tolerance" in form else ""
    return f"{sign}cell {round(position - shift)}"


def _shift(form, value):
    """The shift that puts a value in the middle of its cell, in 64ths of a cell."""
    position = _position(form, value) if form["kind"] == "number" else None
    return 0 if position is None else round((position - math.floor(position)) * _SHIFTS) % _SHIFTS


def _digest(form, answer, shifts, salt):
    tokens = [_token(part, value, shift / _SHIFTS) for (part, value), shift in zip(_leaves(form, plain(answer)), shifts)]
    return hashlib.scrypt("\x1f".join(tokens).encode(), salt=salt.encode(), dklen=48, **_COST)


def _stream(key, data):
    return bytes(a ^ b for a, b in zip(data, hashlib.shake_256(key).digest(len(data))))


def seal(form, answer, salt, hint=""):
    """A record that recognises `answer` and then gives up the hint. Raises WrongKind if the answer does not fit."""
    shifts = [_shift(part, value) for part, value in _leaves(form, plain(answer))]
    digest = _digest(form, answer, shifts, salt)
    return {"shifts": shifts, "tag": digest[:16].hex(), "hint": _stream(digest[16:], hint.encode()).hex()}


def unseal(record, form, answer, salt):
    """The hint of a record ("" for a right answer), or None if the answer is another one."""
    digest = _digest(form, answer, record["shifts"], salt)
    if digest[:16].hex() != record["tag"]:
        return None
    return _stream(digest[16:], bytes.fromhex(record["hint"])).decode()
