"""python -m dplib: epsilon, noise or number of rounds of a run from the command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import matrices
from .._base import validate as check
from ..mechanisms import BallsInBins, FixedBatchDPSGD, LastIterate, PoissonDPSGD
from ..mechanisms.calibration import calibrate
from ..results import Bracket, NoBracketError
from .ledger import Ledger


@dataclass(frozen=True)
class _Scheme:
    """A way to choose batches: what it needs to be told, its mechanism, and what its guarantee rests on."""

    needs: tuple[str, ...]
    make: Callable
    told: str
    assumes: tuple[str, ...]
    theorems: str


_GROUP = ("group_size",)
_COMMON = (
    "The contribution of each record is clipped to norm 1 (one clip norm) before it is summed.",
    "Gaussian noise with a standard deviation of noise-multiplier clip norms is added to every sum, in every coordinate.",
    "What divides the sum is fixed in advance: it must not depend on the data, the size of the batch included.",
)
_EVERY = "Every intermediate model may be released; losses, models and learning rates are arbitrary, and may depend on what was released."


def _bins(noise_multiplier, batches_per_epoch, epochs):
    b = check.whole("batches_per_epoch", batches_per_epoch, at_least=1, at_most=8192)
    e = check.whole("epochs", epochs, at_least=1)
    return BallsInBins(matrices.identity(b * e), noise_multiplier, b, e)


_SCHEMES = {
    "poisson": _Scheme(
        ("sampling_probability", "steps"), PoissonDPSGD, "every record joins each batch by its own coin",
        ("Each record joins each round independently with the sampling probability; batches differ in size.", _EVERY),
        "[G-3.1] it dominates, [G-3.3t] it is attained, [C-9m] remove is the larger direction",
    ),
    "fixed-batch": _Scheme(
        ("batch_size", "dataset_size", "steps"), FixedBatchDPSGD, "batches of one size, without replacement",
        ("Each round draws exactly batch-size records, all such batches equally likely, anew in every round.",
         "dataset-size counts the smaller of the two datasets; add or remove, not zero-out or substitution [C-4].", _EVERY),
        "[G-3.3] it dominates, [G-3.3t] it is attained, [C-9m] remove is the larger direction",
    ),
    "last-iterate": _Scheme(
        ("sampling_probability", "steps"), LastIterate, "only the last model is released, losses are linear",
        ("Each record joins each round independently with the sampling probability.",
         "Only the final model is released, and no clipped gradient depends on the model: LINEAR LOSSES ONLY. For other losses this is no guarantee.",
         "One record is added or removed."),
        "[M-F5] one mixture with sensitivity Binomial(steps, q); for other losses it is refuted there",
    ),
    "balls-in-bins": _Scheme(
        ("batches_per_epoch", "epochs"), _bins, "every record joins one random batch of each epoch",
        ("Each record picks one batch of the epoch at random, on its own, and stays in it in all epochs. Shuffling is not this [A-19].",
         "The noise of the rounds is independent. One record is added, removed or zeroed out.", _EVERY),
        "[N-3.2] the pair, [A-16] its exact accountant, [C-9m] remove is the larger direction",
    ),
}  # fmt: skip

# Of every number: its unit, and what it is.
_NUMBERS = {
    "noise_multiplier": (float, "standard deviation of the noise, in clip norms, above 0"),
    "sampling_probability": (float, "probability to join a round, in [0, 1]"),
    "batch_size": (int, "records in each batch"),
    "dataset_size": (int, "records of the smaller dataset"),
    "batches_per_epoch": (int, "batches of an epoch, 1 to 8192"),
    "epochs": (int, "passes over the data, at least 1"),
    "steps": (int, "rounds of the whole run, at least 1"),
    "group_size": (int, "records that are added or removed together, at least 1 (default 1)"),
    "epsilon": (float, "target, a natural logarithm, at least 0"),
    "delta": (float, "target, a probability, in (0, 1)"),
}
_QUESTIONS = {
    "epsilon": "epsilon of a run at a delta",
    "sigma": "the smallest noise multiplier of a run that meets (epsilon, delta)",
    "steps": "the largest number of rounds within (epsilon, delta)",
    "compare": "epsilon of all schemes at one noise multiplier, batch size and number of rounds",
    "explain": "what a scheme's guarantee assumes, and which theorem proves it",
}
_LABELS = {"epsilon": "epsilon", "sigma": "noise multiplier", "steps": "rounds"}


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


def _parser():
    schemes = "\n".join(f"  {name:14} {one.told}; needs {', '.join(map(_flag, one.needs))}" for name, one in _SCHEMES.items())
    epilog = (
        f"schemes:\n{schemes}\n\nexample:\n  python -m dplib epsilon --noise-multiplier 1 --sampling-probability 0.01 --steps 2000 --delta 1e-6\n\n"
        "Ends of a printed interval are proved, and rounded outwards. Exit status: 0, or 2 with one line on stderr where there is no answer."
    )
    common = {"formatter_class": argparse.RawDescriptionHelpFormatter, "epilog": epilog, "allow_abbrev": False}
    parser = _Parser("python -m dplib", description="Certified privacy accounting for subsampled Gaussian mechanisms.", **common)
    questions = parser.add_subparsers(dest="question", required=True, metavar="QUESTION", parser_class=_Parser)
    for question, told in _QUESTIONS.items():
        one = questions.add_parser(question, help=told, description=f"{told[0].upper()}{told[1:]}.", **common)
        one.add_argument("--json", action="store_true", help="print one JSON object")
        if question != "compare":
            one.add_argument("--scheme", choices=list(_SCHEMES), default="poisson", help="how batches are chosen (default poisson)")
        for name, (kind, meaning) in _NUMBERS.items() if question != "explain" else ():
            one.add_argument(_flag(name), type=kind, help=meaning, metavar="X" if kind is float else "N")
    return parser


def _flag(name):
    return "--" + name.replace("_", "-")


def _given(told, needs, optional=()):
    """The numbers that a question needs; ValueError where one is missing, or is there for nothing."""
    found = {name: getattr(told, name) for name in _NUMBERS if getattr(told, name) is not None}
    missing = [_flag(name) for name in needs if name not in found]
    idle = [_flag(name) for name in found if name not in (*needs, *optional)]
    what = f"{told.question} with --scheme {told.scheme}" if hasattr(told, "scheme") else told.question
    if missing or idle:
        words = [f"needs {', '.join(missing)}"] * bool(missing) + [f"takes no {', '.join(idle)}"] * bool(idle)
        raise ValueError(f"{what} {' and '.join(words)}")
    return found


def _ask(told):
    """(numbers that were given, answer) of the questions about one scheme."""
    scheme = _SCHEMES[told.scheme]
    optional = _GROUP if scheme.make in (PoissonDPSGD, FixedBatchDPSGD) else ()
    needs = list(scheme.needs)
    if told.question == "steps":
        if not optional:
            raise ValueError(f"steps must be asked with --scheme poisson or fixed-batch, whose rounds compose; got {told.scheme}")
        needs.remove("steps")
    targets = ["delta"] if told.question == "epsilon" else ["epsilon", "delta"]
    noise = [] if told.question == "sigma" else ["noise_multiplier"]
    given = _given(told, [*noise, *needs, *targets], optional)
    numbers = {name: value for name, value in given.items() if name not in targets}
    if told.question == "steps":
        mechanism = scheme.make(steps=1, **numbers)
        return given, Ledger(group_size=getattr(mechanism, "group_size", 1)).largest_steps(mechanism, given["epsilon"], given["delta"])
    if told.question == "epsilon":
        return given, scheme.make(**numbers).epsilon(given["delta"])
    draft = scheme.make(noise_multiplier=1.0, **numbers)
    return given, calibrate(draft, epsilon=given["epsilon"], delta=given["delta"]).noise_multiplier


def _compare(told):
    """(numbers that were given, [(scheme, answer or refusal)])."""
    needs = ("noise_multiplier", "batch_size", "dataset_size", "steps", "delta")
    given = _given(told, needs)
    sigma, b, n, steps, delta = (given[name] for name in needs)
    check.whole("batch_size", b, at_least=1, at_most=n)
    makers = {
        "poisson": lambda: PoissonDPSGD(sigma, b / n, steps),
        "fixed-batch": lambda: FixedBatchDPSGD(sigma, b, n, steps),
        "balls-in-bins": lambda: _bins(sigma, *_epochs(b, n, steps)),
        "last-iterate": lambda: LastIterate(sigma, b / n, steps),
        "no sampling": lambda: PoissonDPSGD(sigma, 1.0, steps),
    }
    rows: list[tuple[str, Any]] = []
    for name, make in makers.items():
        try:
            rows.append((name, make().epsilon(delta)))
        except (ValueError, NoBracketError) as error:
            rows.append((name, str(error)))
    return given, rows


def _epochs(b, n, steps):
    if n % b or steps % (n // b):
        raise ValueError("steps must be whole epochs of batches that divide the data")
    return n // b, steps // (n // b)


def _as_json(answer):
    if isinstance(answer, (int, float)):
        return answer
    if isinstance(answer, str):
        return {"refused": answer}
    ends = {name: getattr(answer, name) for name in ("lower", "upper", "value") if hasattr(answer, name)}
    return {"kind": type(answer).__name__, **ends, "method": answer.method}


def _report(told):
    """What is printed, and the same as an object for JSON."""
    if told.question == "explain":
        scheme = _SCHEMES[told.scheme]
        assumes = [*_COMMON, *scheme.assumes]
        lines = [f"{told.scheme}: {scheme.told}", "", "assumes", *(f"  - {line}" for line in assumes), "", f"theorems  {scheme.theorems}"]
        lines.append("          (the tags are those of book/theorems.md)")
        return "\n".join(lines), {"scheme": told.scheme, "assumes": assumes, "theorems": scheme.theorems}
    given, answer = _compare(told) if told.question == "compare" else _ask(told)
    setting = ", ".join(f"{name.replace('_', ' ')} {value:.12g}{' clip norms' * (name == 'noise_multiplier')}" for name, value in given.items())
    record = {"question": told.question, "given": given}
    if told.question == "compare":
        width = max(len(_shown(found)) for _, found in answer)
        lines = [f"epsilon at {setting}", ""]
        for name, found in answer:
            lines.append(f"  {name:14} {_shown(found):{width}}  {_SCHEMES[name].told if name in _SCHEMES else 'all records in every round'}")
        return "\n".join(line.rstrip() for line in lines), record | {"epsilon": {name: _as_json(found) for name, found in answer}}
    label = _LABELS[told.question]
    text = f"{label} {_shown(answer)}{' clip norms' * (told.question == 'sigma')}\n{told.scheme}, {setting}: {_SCHEMES[told.scheme].told}"
    return text, record | {"scheme": told.scheme, "answer": _as_json(answer)}


def _shown(answer):
    if isinstance(answer, Bracket):
        return f"in [{answer.lower:.6g}, {answer.upper:.6g}]" if answer.upper else "0"
    return f"{answer:.6g}" if isinstance(answer, float) else str(answer)


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer one command line; 0, or 2 with one line on stderr where the input is wrong or there is no answer.

    >>> from dplib.bridges.command_line import main
    >>> main(["epsilon", "--noise-multiplier", "1", "--sampling-probability", "0.01", "--steps", "2000", "--delta", "1e-6"])
    epsilon in [2.95524, 2.95525]
    poisson, noise multiplier 1 clip norms, sampling probability 0.01, steps 2000, delta 1e-06: every record joins each batch by its own coin
    0
    """
    try:
        told = _parser().parse_args(arguments)
        text, record = _report(told)
    except (ValueError, TypeError, NoBracketError) as error:
        print(f"dplib: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print(json.dumps(record) if told.json else text)
    return 0
