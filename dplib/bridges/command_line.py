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
from ..mechanisms.balls_in_bins import BallsInBins
from ..mechanisms.calibration import calibrate
from ..mechanisms.dpsgd import ADJACENCIES, FixedBatchDPSGD, LastIterate, PoissonDPSGD
from ..mechanisms.min_separation import MinSeparation
from ..mechanisms.random_allocation import RandomAllocation
from ..mechanisms.truncated import TruncatedPoissonDPSGD
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
    may: tuple[str, ...] = ()  # what else it can be told
    how: tuple[tuple[str, str], ...] = ()  # arguments of its `epsilon`


_DIFFER = ("group_size", "adjacency")
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


def _pauses(noise_multiplier, sampling_probability, min_separation, steps):
    rounds = check.whole("steps", steps, at_least=1, at_most=65_536)
    return MinSeparation(matrices.identity(rounds), noise_multiplier, sampling_probability, min_separation)


_SCHEMES = {
    "poisson": _Scheme(
        ("sampling_probability", "steps"), PoissonDPSGD, "every record joins each batch by its own coin",
        ("Each record joins each round independently with the sampling probability; batches differ in size.", _EVERY),
        "[G-3.1] it dominates, [G-3.3t] it is attained, [C-9m] remove is the larger direction; substitution, insertions and deletions [A-22]",
        (*_DIFFER, "inserted", "deleted"),
    ),
    "truncated-poisson": _Scheme(
        ("sampling_probability", "dataset_size", "largest_batch", "steps"), TruncatedPoissonDPSGD, "the same, and a batch that is too large is cut",
        ("Each record joins each round independently with the sampling probability; of more than largest-batch records that many are kept, "
         "all such parts equally likely.", "dataset-size counts the records that are sampled from, of the larger dataset. One record differs.", _EVERY),
        "[A-24] the pair that dominates; whether it is attained is open",
        ("adjacency",),
    ),
    "fixed-batch": _Scheme(
        ("batch_size", "dataset_size", "steps"), FixedBatchDPSGD, "batches of one size, without replacement",
        ("Each round draws exactly batch-size records, all such batches equally likely, anew in every round.",
         "dataset-size counts the smaller of the two datasets; with adjacency zero-out or substitution, both [C-4], and one record differs.", _EVERY),
        "[G-3.3] it dominates, [G-3.3t] it is attained, [C-9m] remove is the larger direction; zero-out and substitution: [A-23] dominates",
        _DIFFER,
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
    "random-allocation": _Scheme(
        ("rounds", "participations", "epochs"), RandomAllocation, "every record joins k random rounds of each block",
        ("Each record joins exactly that many rounds of each block, a random set of its own, drawn anew in each of the blocks, of which epochs is the number.",
         "The noise of the rounds is independent. One record is added, removed or zeroed out.", _EVERY),
        "[M-B.4] the pair, [A-26] the upper end; the lower end is proved as well, and may be far below",
    ),
    "min-separation": _Scheme(
        ("sampling_probability", "min_separation", "steps"), _pauses, "a coin for every record, and a pause after each of its rounds",
        ("Each record joins by its own coin, of this sampling probability, and sits out min-separation - 1 rounds after each of its own; "
         "it starts as if this had gone on for long.", "The noise of the rounds is independent. One record is added, removed or zeroed out.", _EVERY),
        "[M-B.4] the pair, [A-28] the upper bound; [A-27] never more than poisson with the same coins",
        how=(("method", "renyi"),),
    ),
}  # fmt: skip

# Of every number: its unit, and what it is.
_NUMBERS = {
    "noise_multiplier": (float, "standard deviation of the noise, in clip norms, above 0"),
    "sampling_probability": (float, "probability to join a round, in [0, 1]; with min-separation that of a record that does not pause, not its rate"),
    "batch_size": (int, "records in each batch"),
    "dataset_size": (int, "records of the smaller dataset; with truncated-poisson of the larger one, but for compare"),
    "largest_batch": (int, "records that a batch holds at most"),
    "batches_per_epoch": (int, "batches of an epoch, 1 to 8192"),
    "epochs": (int, "passes over the data, or blocks of rounds, at least 1"),
    "rounds": (int, "rounds of a block, 1 to 8192"),
    "participations": (int, "rounds of a block in which a record takes part, at least 1"),
    "min_separation": (int, "rounds from one participation to the next, at least"),
    "steps": (int, "rounds of the whole run, at least 1"),
    "group_size": (int, "records that are added or removed together, at least 1 (default 1)"),
    "inserted": (int, "instead of group-size: records that only the first dataset holds"),
    "deleted": (int, "records that only the second dataset holds"),
    "adjacency": (str, "add-remove (default), zero-out or substitution"),
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
    schemes = "\n".join(f"  {name:17} {one.told}; needs {', '.join(map(_flag, one.needs))}" for name, one in _SCHEMES.items())
    epilog = (
        f"schemes:\n{schemes}\n\nexample:\n  python -m dplib epsilon --noise-multiplier 1 --sampling-probability 0.01 --steps 2000 --delta 1e-6\n\n"
        "Ends of a printed interval are proved, and rounded outwards; an upper bound has no lower end. compare takes --largest-batch, --participations,\n"
        "--min-separation and --adjacency as well. Exit status: 0, or 2 with one line on stderr where there is no answer."
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
            one.add_argument(_flag(name), type=kind, help=meaning, metavar={float: "X", int: "N", str: "WORD"}[kind])
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
    optional = scheme.may
    needs = list(scheme.needs)
    if told.question == "steps":
        optional = tuple(name for name in scheme.may if name == "group_size")
        if scheme.make not in (PoissonDPSGD, FixedBatchDPSGD, TruncatedPoissonDPSGD):
            raise ValueError(f"steps must be asked with --scheme poisson, fixed-batch or truncated-poisson, whose rounds compose; got {told.scheme}")
        needs.remove("steps")
    targets = ["delta"] if told.question == "epsilon" else ["epsilon", "delta"]
    noise = [] if told.question == "sigma" else ["noise_multiplier"]
    given = _given(told, [*noise, *needs, *targets], optional)
    numbers = {name: value for name, value in given.items() if name not in targets}
    if told.question == "steps":
        mechanism = scheme.make(steps=1, **numbers)
        return given, Ledger(group_size=getattr(mechanism, "group_size", 1)).largest_steps(mechanism, given["epsilon"], given["delta"])
    if told.question == "epsilon":
        return given, scheme.make(**numbers).epsilon(given["delta"], **dict(scheme.how))
    draft = scheme.make(noise_multiplier=1.0, **numbers)
    return given, calibrate(draft, epsilon=given["epsilon"], delta=given["delta"]).noise_multiplier


def _compare(told):
    """(numbers that were given, [(scheme, answer or refusal)])."""
    needs = ("noise_multiplier", "batch_size", "dataset_size", "steps", "delta")
    given = _given(told, needs, ("adjacency", "largest_batch", "participations", "min_separation"))
    sigma, b, n, steps, delta = (given[name] for name in needs)
    differ = {name: given[name] for name in ("adjacency",) if name in given}
    check.noise_multiplier(sigma)
    check.whole("dataset_size", n, at_least=1)
    check.whole("batch_size", b, at_least=1, at_most=n)
    check.whole("steps", steps, at_least=1)
    check.delta(delta)
    for name in ("largest_batch", "participations", "min_separation"):
        if name in given:
            check.whole(name, given[name], at_least=1)
    if differ:
        check.choice("adjacency", differ["adjacency"], ADJACENCIES)
    larger = n + (differ.get("adjacency", "add-remove") == "add-remove")  # dataset, of the two

    def extra(name):
        if name not in given:
            raise ValueError(f"needs {_flag(name)}")
        return given[name]

    def alone(make):
        if differ.get("adjacency") == "substitution":
            raise ValueError("no account of substitution")
        return make()

    def allocated(k):
        b_epoch, epochs = _epochs(b, n, steps)
        if epochs % k:
            raise ValueError("steps must be whole blocks of participations epochs")
        return RandomAllocation(sigma, k * b_epoch, k, epochs // k)

    makers = {
        "poisson": lambda: PoissonDPSGD(sigma, b / n, steps, **differ),
        "truncated-poisson": lambda: TruncatedPoissonDPSGD(sigma, b / n, larger, extra("largest_batch"), steps, **differ),
        "fixed-batch": lambda: FixedBatchDPSGD(sigma, b, n, steps, **differ),
        "balls-in-bins": lambda: alone(lambda: _bins(sigma, *_epochs(b, n, steps))),
        "random-allocation": lambda: alone(lambda: allocated(given.get("participations", 1))),
        "min-separation": lambda: alone(lambda: _pauses(sigma, _coin(b, n, extra("min_separation")), extra("min_separation"), steps)),
        "last-iterate": lambda: alone(lambda: LastIterate(sigma, b / n, steps)),
        "no sampling": lambda: PoissonDPSGD(sigma, 1.0, steps, **differ),
    }
    rows: list[tuple[str, Any]] = []
    for name, make in makers.items():
        how = dict(_SCHEMES[name].how) if name in _SCHEMES else {}
        try:
            rows.append((name, make().epsilon(delta, **how)))
        except (ValueError, NoBracketError) as error:
            rows.append((name, str(error)))
    return given, rows


def _epochs(b, n, steps):
    if n % b or steps % (n // b):
        raise ValueError("steps must be whole epochs of batches that divide the data")
    return n // b, steps // (n // b)


def _coin(b, n, separation):
    """The probability of a record's coin with which batches have b records on average."""
    check.whole("min_separation", separation, at_least=1)
    if separation * b > n:
        raise ValueError("min_separation must be at most dataset_size / batch_size")
    return b / (n - (separation - 1) * b)


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
    words = {name: value if isinstance(value, str) else f"{value:.12g}" for name, value in given.items()}
    setting = ", ".join(f"{name.replace('_', ' ')} {value}{' clip norms' * (name == 'noise_multiplier')}" for name, value in words.items())
    record = {"question": told.question, "given": given}
    if told.question == "compare":
        width = max(len(_shown(found)) for _, found in answer)
        lines = [f"epsilon at {setting}", ""]
        for name, found in answer:
            lines.append(f"  {name:17} {_shown(found):{width}}  {_SCHEMES[name].told if name in _SCHEMES else 'all records in every round'}")
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
