"""Arguments for every public function of dplib, by the name of the argument: valid, borderline, and now and then wrong.

What needs no code stands in fuzz_cases.json: `arguments`, for each name how its values are drawn; `others`, those of one function;
`left_out`, what is not called, with the reason; `unchecked`, lower floors whose arguments their callers have checked; `negative`,
logarithms, noise and what is signed by its nature; `infinite`, where log 0 or a bound that does not exist is an answer.
"""

import functools
import importlib
import inspect
import json
import math
import traceback
import types
import typing
from pathlib import Path

import numpy as np
from dp_accounting import dp_event
from hypothesis import strategies as st
from library_files import public_modules
from property_cases import logs

import dplib
from dplib import accounting, batching, matrices, mixtures, renyi, results
from dplib.lessons import course, studies

DATA = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
LEFT_OUT = DATA["left_out"]
UNCHECKED, NEGATIVE, INFINITE = (set(DATA[name]) for name in ("unchecked", "negative", "infinite"))

BAD = (
    math.nan, math.inf, -math.inf, -1, -1e-12, 0, 0.0, 2**63, 10**400, 1e308, 5e-324, 1.5, "1", "", None, True, 1j,
    b"x", {}, (), [], [0.5], [[0.5], [0.5, 1.0]], [math.nan], np.zeros((2, 3)), np.zeros((0, 2)), np.array([math.nan, 1.0]),
    np.array(["a"]), object(), len, float,
)  # fmt: skip


# --- strategies --------------------------------------------------------------------------------------------


def mostly(usual, *borderline):
    """One time in eight a borderline value."""
    return st.integers(0, 7).flatmap(lambda turn: st.sampled_from(borderline) if turn == 7 else usual)


def whole(low, high, *borderline):
    usual = logs(low, high).map(lambda x: int(round(x)))
    return mostly(usual, *borderline) if borderline else usual


def one_of(*values):
    return st.sampled_from(values)


def array(entry, least=1, most=6):
    return st.lists(entry, min_size=least, max_size=most).map(np.array)


def made(make):
    """What `make` makes with a random generator."""
    return st.integers(0, 2**32 - 1).map(lambda seed: make(np.random.default_rng(seed)))


SIGMA = mostly(logs(0.05, 200), 1e-100, 1e100, 1e-3, 1e-2, 1e6)
NOISE = logs(0.3, 30)
PROBABILITY = mostly(logs(1e-6, 1), 0.0, 1.0, 1e-12, 5e-324, 1 - 1e-12, np.float32(0.1))
OPEN_PROBABILITY = mostly(logs(1e-6, 1), 1.0, 1e-12)
EPSILON = mostly(logs(1e-3, 400), 0.0, 1e-300, 1e-9, 1e4, 1e100)
DELTA = mostly(logs(1e-12, 0.9), 1e-300, 1e-50, 1 - 1e-12, 0.5, 5e-324)
STEPS = whole(1, 10**6, 1, 2, 12, 10**9, 2**53)
FEW = whole(1, 40)
POSITIVE = array(mostly(logs(1e-3, 1e3), 0.0))
ONE_DIRECTION = one_of("remove", "add")


def encoder(rng):
    n, kind = int(rng.integers(1, 25)), rng.integers(8)
    if kind == 0:
        return matrices.identity(n)
    if kind == 1:
        return matrices.optimal_counting(n, bands=int(rng.integers(1, n + 1)))
    if kind == 2:
        return matrices.toeplitz(np.concatenate([[1.0], rng.random(n - 1)]))
    if kind == 3:
        return matrices.buffered_linear_toeplitz(n, [0.3, 0.2], [0.9, 0.5])
    if kind == 4:
        return matrices.binary_tree(2 ** int(rng.integers(0, 4)))
    if kind == 5:
        return matrices.tree_restarts(4 * n, 4)
    if kind == 6:
        return matrices.scaled(matrices.optimal_counting(n, bands=int(rng.integers(1, n + 1))), *rng.uniform(0.5, 2, (2, n)))
    return matrices.dense(np.tril(rng.random((n, n))) + np.eye(n))


def square_encoder(rng):
    return matrices.toeplitz(np.concatenate([[1.0], 0.5 * rng.random(int(rng.integers(0, 12)))]))


def mixture(rng, noise=None):
    noise = noise or float(np.exp(rng.uniform(-1, 3)))
    if rng.random() < 0.4:
        return mixtures.binomial(int(rng.integers(1, 20)), float(rng.random()), noise)
    probabilities = rng.dirichlet(np.ones(int(rng.integers(1, 6))))
    probabilities[-1] += 1 - math.fsum(probabilities)
    return mixtures.Mixture(np.maximum(np.cumsum(rng.random(len(probabilities))) - 0.3, 0.0), probabilities, noise)


def composition(rng):
    return [(mixture(rng), int(round(10 ** rng.uniform(0, 6)))) for _ in range(rng.integers(1, 4))]


def merged_composition(rng):
    return accounting.merged(composition(rng))


def gram(rng):
    shape = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    modes = rng.random(shape) * np.exp(rng.uniform(-3, 1.5))
    return modes @ modes.T


def curve(rng):
    return renyi.mixture_curve(mixture(rng))


def mechanism(rng):
    noise, q, steps = float(np.exp(rng.uniform(-1, 3))), float(rng.random()), int(round(10 ** rng.uniform(0, 3)))
    if rng.random() < 0.5:
        return dplib.PoissonDPSGD(noise, q, steps)
    return dplib.LastIterate(noise, q, steps)


def any_mechanism(rng):
    noise, size = float(np.exp(rng.uniform(-3, 5))), int(rng.integers(1, 10**6))
    b, e = int(rng.integers(1, 17)), int(rng.integers(1, 5))
    return [
        lambda: mechanism(rng),
        lambda: dplib.FixedBatchDPSGD(noise, int(rng.integers(1, size + 1)), size, int(10 ** rng.uniform(0, 6)), int(rng.integers(1, 20))),
        lambda: dplib.BallsInBins(matrices.optimal_counting(b * e), noise, b, e),
    ][rng.integers(3)]()


def event(rng):
    """A tree of events of dp_accounting, now and then a wrong one."""
    noise, q, size = float(np.exp(rng.uniform(-5, 5))), float(rng.random()), int(rng.integers(1, 100))
    return [
        lambda: dp_event.GaussianDpEvent(noise),
        lambda: dp_event.LaplaceDpEvent(noise),
        lambda: dp_event.ZCDpEvent(noise, q),
        lambda: dp_event.DiscreteLaplaceDpEvent(noise, size),
        lambda: dp_event.RandomizedResponseDpEvent(q, size),
        lambda: dp_event.MixtureOfGaussiansDpEvent(noise, [0.0, 1.0], [q, 1 - q]),
        lambda: dp_event.SingleEpochTreeAggregationDpEvent(noise, size),
        lambda: dp_event.PoissonSampledDpEvent(q, event(rng)),
        lambda: dp_event.SampledWithoutReplacementDpEvent(size, int(rng.integers(0, 50)), event(rng)),
        lambda: dp_event.SelfComposedDpEvent(event(rng), size),
        lambda: dp_event.ComposedDpEvent([event(rng), event(rng)]),
        lambda: dp_event.GaussianDpEvent([-noise, None, math.nan, "1"][rng.integers(4)]),
    ][rng.integers(12)]()


NAMED = {
    name: globals()[name]
    for name in ("SIGMA", "NOISE", "PROBABILITY", "OPEN_PROBABILITY", "EPSILON", "DELTA", "STEPS", "FEW", "POSITIVE", "ONE_DIRECTION")
} | {make.__name__: made(make) for make in (encoder, square_encoder, mixture, composition, merged_composition, gram, curve, mechanism, any_mechanism, event)}


def strategy(told):
    """What an entry of fuzz_cases.json tells: a name, or a kind with its numbers and values."""
    kind, *rest = told
    if kind in NAMED:
        return NAMED[kind]
    kinds = {"one of": one_of, "logs": logs, "whole": whole, "mostly": mostly, "array": array}
    if kind in ("mostly", "array"):
        rest[0] = strategy(rest[0])
    return kinds[kind](*rest)


def _read(table, more):
    return {name: strategy(told) for name, told in table.items()} | more


ARGUMENTS = _read(
    DATA["arguments"],
    {
        "array": made(lambda rng: np.tril(rng.random((3, 3)))),
        "batches": made(lambda rng: batching.poisson(int(rng.integers(1, 50)), int(rng.integers(1, 20)), float(rng.random()), rng)),
        "epsilon_of_order": one_of(lambda order: order / 8),
        "identifier": one_of(*course.identifiers()),
        "name": one_of(*studies.names()),
        "rng": made(lambda rng: rng),
        "shape": one_of((), (2,), (2, 3), 4),
        "task": one_of(repr, str),
        "test_features": made(lambda rng: rng.random((2, 3))),
        "test_labels": made(lambda rng: rng.integers(0, 3, 2)),
        "train_features": made(lambda rng: rng.random((4, 3))),
        "train_labels": made(lambda rng: rng.integers(0, 3, 4)),
    },
)
_MADE = {
    "audit.transcripts": {
        "encoder": one_of(matrices.optimal_counting(12), matrices.identity(12)),
        "batches": made(lambda rng: batching.poisson_stream(20, 12, 0.3, seed=1)),
    },
    "mechanisms.BallsInBins": {"encoder": made(lambda rng: matrices.optimal_counting(12, bands=int(rng.integers(1, 13))))},
    "mechanisms.MinSeparation": {"encoder": made(lambda rng: matrices.optimal_counting(6, bands=int(rng.integers(1, 5))))},
    "matrices.scaled": {
        "base": one_of(matrices.optimal_counting(4), matrices.identity(4)), "rows": one_of(None, np.full(4, 2.0)), "columns": one_of(None, np.ones(4)),
    },
    "mechanisms.compose": {"mechanisms": made(lambda rng: [mechanism(rng) for _ in range(rng.integers(1, 4))])},
    "mixtures.TwoSided": dict.fromkeys(("gained", "lost"), made(lambda rng: mixture(rng, 1.0))),
    "mixtures.Folded": {"mixture": made(lambda rng: mixtures.Mixture([0.0, 2.0], [1 - (q := float(rng.uniform(0.001, 0.9))), q], 1.0))},
    "mixtures.Atoms": dict.fromkeys(("remove", "add"), made(lambda rng: (np.arange(3.0) - 1, rng.dirichlet(np.ones(3)), 0.0))),
    "mixtures.DisjointUnion": {"pieces": made(lambda rng: [(0.25, mixture(rng, 1.0)), (0.75, mixture(rng, 1.0))])},
    "mixtures.two_sided": dict.fromkeys(("gained", "lost"), made(lambda rng: mixture(rng, 1.0))),
    "mixtures.dominates": dict.fromkeys(("upper", "lower"), made(lambda rng: mixture(rng, 1.0))),
    "renyi.compose": {"parts": made(lambda rng: [(curve(rng), int(rng.integers(1, 1000))) for _ in range(2)])},
    "training.Config": {"encoder": one_of(None, matrices.identity(4))},
    "truth.tree": {"encoder": made(lambda rng: matrices.binary_tree(2 ** int(rng.integers(0, 4))))},
    "truth.two_rounds": {"encoder": made(lambda rng: matrices.dense(np.tril(rng.random((2, 2))) + np.eye(2)))},
}
_OWN_METHODS = ("mechanisms.BallsInBins", "mechanisms.MatrixMechanism", "mechanisms.MinSeparation")  # or none
OTHERS = {name: _read(DATA["others"].get(name, {}), _MADE.get(name, {})) for name in DATA["others"].keys() | _MADE.keys()}


# --- functions ---------------------------------------------------------------------------------------------


def public_functions():
    """{"module.name": function or class} of all that dplib has."""
    found = {}
    for module in public_modules()[1:]:
        owner = importlib.import_module(module)
        for name in sorted({*vars(owner), *getattr(owner, "__all__", ())}):
            value = getattr(owner, name)
            home = getattr(value, "__module__", None) or ""
            face = module in ("dplib.mechanisms", "dplib.mixtures") and home.startswith(module)
            here = home == owner.__name__ or (face and name in owner.__all__)
            if not name.startswith("_") and here and (inspect.isfunction(value) or inspect.isclass(value)):
                found[f"{module}.{name}".removeprefix("dplib.").removeprefix("lessons.")] = value
    return found


def _mechanism(make, question):
    def ask(target, direction, method=None, **arguments):
        options = {} if method is None else {"method": method}
        return getattr(make(**arguments), question)(target, direction, **options)

    return ask


def _use_mixture(make):
    def use(x=None, *, epsilon, direction, **arguments):
        pair = make(**arguments)
        rest = (pair.density(x), pair.survival(x)) if isinstance(pair, mixtures.Mixture) else (pair.reduced(), pair.gram())
        return *rest, pair.hockey_stick(epsilon, direction)

    return use


def _ask_truth(make):
    return lambda epsilon, direction, **arguments: make(**arguments).delta(epsilon, direction)


@functools.cache
def cases():
    """{name: (what is called, {argument: strategy}, arguments with a default)}, two questions to each mechanism."""
    found = {}
    functions = public_functions() | {"mechanisms.BallsInBins": dplib.BallsInBins}
    for name, function in functions.items():
        if name in LEFT_OUT:
            continue
        strategies = ARGUMENTS | OTHERS.get(name, {})
        parameters = inspect.signature(function).parameters
        known = {key: strategies[key] for key in parameters if key in strategies}
        missing = [key for key, one in parameters.items() if one.default is one.empty and one.kind != one.VAR_KEYWORD and key not in known]
        assert not missing, f"{name}: no strategy for {missing}"
        optional = sorted(key for key in known if parameters[key].default is not parameters[key].empty)
        asked = {key: strategies[key] for key in ("epsilon", "direction")}
        if name.startswith("mechanisms."):
            methods = OTHERS.get(name, {}).get("method", ARGUMENTS["method"])
            method = {"method": methods} if name not in _OWN_METHODS else {}
            for question, target in (("delta", EPSILON), ("epsilon", DELTA)):
                more = method | {"target": target, "direction": ARGUMENTS["direction"]}
                found[f"{name}.{question}"] = _mechanism(function, question), known | more, optional
        elif name in ("mixtures.Mixture", "mixtures.VectorMixture"):
            x = {"x": strategies["x"]} if name == "mixtures.Mixture" else {}
            found[name] = _use_mixture(function), known | x | asked, optional
        elif name.startswith("truth."):
            found[name] = _ask_truth(function), known | asked, optional
        else:
            found[name] = function, known, optional
    return found


@st.composite
def arguments(draw, name):
    """Arguments of one call, some with their defaults; one time in four one of them is nearly always wrong."""
    _, strategies, optional = cases()[name]
    left_out = draw(st.sets(st.sampled_from(optional))) if optional else ()
    drawn = {key: draw(strategy) for key, strategy in strategies.items() if key not in left_out}
    if name not in UNCHECKED and drawn and draw(st.integers(0, 3)) == 3:
        drawn[draw(st.sampled_from(list(drawn)))] = draw(st.sampled_from(BAD))
    return drawn


# --- judgement ---------------------------------------------------------------------------------------------

_OWN_WORDS = ("must", "got", "cannot", "needs", "too ", "no ", "exact", "failed for")  # of dplib's messages


def unsound(value, name=""):
    """What is wrong with a returned value, or None."""
    if isinstance(value, results.Bracket):
        value = (value.lower, value.upper)
    elif isinstance(value, (results.UpperBound, results.Certificate)):
        value = value.upper
    elif isinstance(value, results.Estimate):
        value = (value.value, value.standard_error, value.upper)
    if isinstance(value, (tuple, list)):
        return next((wrong for part in value if (wrong := unsound(part, name))), None)
    if isinstance(value, (bool, str, dict)) or not isinstance(value, (int, float, np.floating, np.ndarray)):
        return None
    numbers = np.asarray(value)
    if not np.issubdtype(numbers.dtype, np.floating):
        return None
    if np.isnan(numbers).any():
        return "not a number"
    if name not in INFINITE and np.isinf(numbers).any():
        return "infinite"
    return "below 0" if name not in NEGATIVE and (numbers < 0).any() else None


def of_stated_type(function, value):
    """Whether a value has a type that the function's signature names, if it names one."""
    if not inspect.isfunction(function):
        return True
    return _is_a(value, typing.get_type_hints(function).get("return", typing.Any))


def _is_a(value, kind):
    origin = typing.get_origin(kind) or kind
    if origin in (typing.Union, types.UnionType):
        return any(_is_a(value, each) for each in typing.get_args(kind))
    if origin is typing.Any or isinstance(origin, typing.TypeVar):
        return True
    return isinstance(value, origin)


def unclear(error):
    """What is wrong with a refusal: it has to come from dplib itself, in its own words."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    foreign = "dplib" not in Path(last.filename).parts
    clear = isinstance(error, results.NoBracketError) or any(word in str(error) for word in _OWN_WORDS)
    return f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})" if foreign or not clear else None
