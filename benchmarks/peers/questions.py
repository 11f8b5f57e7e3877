"""The common ground: questions, settings, and who offers an answer.

A setting's keys are the arguments of the functions `ACCOUNTANT_QUESTION` in `LIBRARY_answers.py`. The first row of a
question is the reference. A library without a row for a question is listed in `absent`, with the reason.
"""

from dataclasses import dataclass, replace

LIBRARIES = {  # name in the tables: (distribution, module, environment, requirements)
    "dplib": ("dplib", "dplib_answers", ".venv", None),
    "dp_accounting": ("dp-accounting", "dp_accounting_answers", ".venv-peers-dp_accounting", "dp_accounting.txt"),
    "prv-accountant": ("prv-accountant", "prv_accountant_answers", ".venv-peers-prv_accountant", "prv_accountant.txt"),
    "autodp": ("autodp", "autodp_answers", ".venv-peers-autodp", "autodp.txt"),
    "Opacus": ("opacus", "opacus_answers", ".venv-peers-opacus", "opacus.txt"),
    "jax-privacy": ("jax-privacy", "jax_privacy_answers", ".venv-jax-privacy", "../jax_privacy_requirements.txt"),
    "PLD_accounting": ("PLD-accounting", "pld_accounting_answers", ".venv-peers-pld_accounting", "pld_accounting.txt"),
    "Schuchardt–Kalinin": ("arXiv 2601.21636", "schuchardt_kalinin_answers", ".venv", None),
}  # fmt: skip
# What two of them are about; the tables of other questions do not name them.
ALONE = {"PLD_accounting": "random allocation alone", "Schuchardt–Kalinin": "balls in bins alone"}


@dataclass(frozen=True)
class Question:
    """name, title, what is asked ("epsilon", "noise", "renyi", "delta", "error"), (library, accountant) in order, settings.

    seconds : CPU time limit of a call.
    """

    name: str
    title: str
    quantity: str
    answers: tuple
    settings: tuple
    absent: dict
    seconds: int = 60


def _settings(names, *rows):
    return tuple(dict(zip(names, row)) for row in rows)


_OTHERS = ("dp_accounting", "prv-accountant", "autodp", "Opacus")
_NO_GROUP = "one record; a group only through the black-box lemma, which is left to the user"
_NO_MATRIX = "no correlated noise"
_COMPOSES = "composes with dp_accounting's PLD, whose answers stand here"

_DPSGD = _settings(
    ("sigma", "q", "steps", "delta"),
    (1.0, 0.01, 2000, 1e-6),
    (1.1, 0.004, 15_000, 1e-5),
    (0.8, 0.2, 1, 1e-6),
    (10.0, 0.5, 1000, 1e-6),
    (0.7, 0.05, 2000, 1e-6),
    (0.5, 0.01, 2000, 1e-12),
    (1.0, 0.01, 2000, 1e-10),
    (1.0, 0.01, 2000, 1e-14),
    (1.0, 0.05, 10_000, 1e-12),
    (1.0, 1e-4, 10**6, 1e-6),
    (1000.0, 0.01, 2000, 1e-6),
)

_QUESTIONS = (
    Question(
        "poisson",
        "DP-SGD with Poisson sampling",
        "epsilon",
        (
            ("dplib", "bracket"),
            ("dp_accounting", "pld"),
            ("Opacus", "prv"),
            ("dp_accounting", "rdp"),
            ("Opacus", "rdp"),
            ("autodp", "rdp"),
        ),
        _DPSGD,
        {"jax-privacy": _COMPOSES, "prv-accountant": "in the next table"},
    ),
    Question(
        "prv",
        "The same by prv-accountant",
        "epsilon",
        (("dplib", "bracket"), ("prv-accountant", "prv")),
        _DPSGD,
        {
            **dict.fromkeys(("dp_accounting", "autodp", "Opacus"), "in the table above"),
            "jax-privacy": _COMPOSES,
        },
    ),
    Question(
        "fourier",
        "The same by a Fourier accountant",
        "epsilon",
        (("dplib", "bracket"), ("autodp", "fourier")),
        _settings(("sigma", "q", "steps", "delta"), (0.8, 0.2, 1, 1e-6), (1.0, 0.01, 2000, 1e-6)),
        {
            **dict.fromkeys(("dp_accounting", "prv-accountant", "Opacus"), "in the tables above"),
            "jax-privacy": _COMPOSES,
        },
    ),
    Question(
        "fixed",
        "DP-SGD with batches of fixed size, without replacement",
        "epsilon",
        (
            ("dplib", "bracket"),
            ("jax-privacy", "pld"),
            ("dp_accounting", "rdp"),
            ("autodp", "rdp"),
        ),
        _settings(
            ("sigma", "batch", "records", "steps", "delta"),
            (2.0, 100, 10_000, 2000, 1e-6),
            (1.0, 100, 10_000, 2000, 1e-12),
            (4.0, 1000, 10_000, 1000, 1e-6),
        ),
        {"prv-accountant": "Poisson sampling only", "Opacus": "Poisson sampling only"},
    ),
    Question(
        "group",
        "A group of records in DP-SGD with Poisson sampling",
        "epsilon",
        (("dplib", "bracket"), ("dp_accounting", "pld"), ("jax-privacy", "pld")),
        _settings(
            ("sigma", "q", "steps", "delta", "group"),
            (1.0, 0.01, 2000, 1e-6, 2),
            (2.0, 0.01, 2000, 1e-6, 9),
            (4.0, 0.01, 2000, 1e-10, 9),
            (4.0, 0.01, 1, 1e-6, 1000),
        ),
        {"prv-accountant": _NO_GROUP, "Opacus": _NO_GROUP, "autodp": _NO_GROUP},
    ),
    Question(
        "calibration",
        "The smallest noise multiplier for a target",
        "noise",
        (
            ("dplib", "bracket"),
            ("dp_accounting", "pld"),
            ("jax-privacy", "pld"),
            ("Opacus", "prv"),
            ("dp_accounting", "rdp"),
            ("Opacus", "rdp"),
            ("autodp", "rdp"),
        ),
        _settings(
            ("q", "steps", "epsilon", "delta"),
            (0.01, 2000, 2.0, 1e-6),
            (0.05, 2000, 8.0, 1e-6),
            (0.01, 2000, 8.0, 1e-12),
        ),
        {"prv-accountant": "answers epsilon and delta only"},
        120,
    ),
    Question(
        "truncated",
        "DP-SGD with Poisson sampling, large batches cut at random",
        "epsilon",
        (("dplib", "bracket"), ("dp_accounting", "pld")),
        _settings(("sigma", "q", "size", "largest", "steps", "delta"), (1.0, 0.01, 10_000, 120, 2000, 1e-6)),
        {
            "jax-privacy": _COMPOSES,
            **dict.fromkeys(("prv-accountant", "autodp", "Opacus"), "no accountant for cut batches"),
        },
    ),
    Question(
        "gaussian",
        "Composition of Gaussian mechanisms",
        "epsilon",
        (
            ("dplib", "bracket"),
            ("dp_accounting", "pld"),
            ("prv-accountant", "prv"),
            ("Opacus", "prv"),
            ("autodp", "exact"),
            ("dp_accounting", "rdp"),
            ("Opacus", "rdp"),
        ),
        _settings(
            ("sigma", "steps", "delta"),
            (20.0, 100, 1e-6),
            (20.0, 1000, 1e-12),
            (5.0, 1000, 1e-6),
            (1000.0, 1000, 1e-5),
        ),
        {"jax-privacy": _COMPOSES},
    ),
    Question(
        "renyi",
        "Rényi divergence of one step of DP-SGD with Poisson sampling",
        "renyi",
        (("dplib", "bracket"), ("dp_accounting", "rdp"), ("Opacus", "rdp"), ("autodp", "rdp")),
        _settings(
            ("sigma", "q", "order"),
            (1.0, 0.01, 2),
            (1.0, 0.01, 8.5),
            (1.0, 0.1, 1.5),
            (0.5, 0.01, 32),
            (1.0, 0.5, 1.1),
        ),
        {
            "prv-accountant": "Rényi orders serve it inside, to find a range",
            "jax-privacy": "through dp_accounting, whose answers stand here",
        },
    ),
    Question(
        "banded",
        "Banded encoder with cyclic Poisson sampling",
        "epsilon",
        (("dplib", "bracket"), ("dplib", "mmcc"), ("jax-privacy", "pld")),
        _settings(
            ("sigma", "rounds", "batches", "bands", "delta"),
            (4.0, 512, 32, 8, 1e-6),
            (6.0, 2048, 128, 16, 1e-5),
        ),
        {
            "dp_accounting": "no event of its own; jax-privacy's reduction runs on it",
            "prv-accountant": _NO_MATRIX,
            "autodp": _NO_MATRIX,
            "Opacus": _NO_MATRIX,
        },
    ),
    Question(
        "bins",
        "Balls in bins",
        "delta",
        (
            ("dplib", "estimate"),
            ("dplib", "bracket"),
            ("dplib", "certificate"),
            ("jax-privacy", "sampled"),
            ("jax-privacy", "separated"),
        ),
        _settings(
            ("sigma", "rounds", "batches", "bands", "epsilon"),
            (1.5, 512, 32, 1, 1.0),
            (3.0, 512, 32, 8, 1.0),
            (6.0, 512, 32, 8, 1.0),
            (9.0, 512, 32, 8, 1.0),
        ),
        dict.fromkeys(("dp_accounting", "prv-accountant", "autodp", "Opacus"), "no balls in bins"),
        120,
    ),
    Question(
        "unsampled",
        "Balls in bins without samples",
        "delta",
        (
            ("dplib", "certificate"),
            ("dplib", "bracket"),
            ("Schuchardt–Kalinin", "renyi"),
        ),
        _settings(
            ("sigma", "rounds", "batches", "bands", "epsilon"),
            (1.5, 512, 32, 1, 1.0),
            (3.0, 512, 32, 8, 1.0),
            (6.0, 512, 32, 8, 1.0),
            (9.0, 512, 32, 8, 1.0),
            (3.0, 512, 32, 2, 4.0),
        ),
        {**dict.fromkeys(_OTHERS, "no balls in bins"), "jax-privacy": "by samples, above"},
        120,
    ),
    Question(
        "allocation",
        "Random allocation: each record in k of so many rounds",
        "epsilon",
        (("dplib", "bracket"), ("dplib", "certificate"), ("dplib", "blocks"), ("PLD_accounting", "pld")),
        _settings(
            ("sigma", "rounds", "group", "epochs", "delta"),
            (1.0, 100, 1, 1, 1e-6),
            (0.8, 16, 2, 1, 1e-6),
            (1.0, 100, 4, 1, 1e-6),
            (1.0, 100, 7, 1, 1e-6),
            (1.0, 100, 5, 4, 1e-6),
            (1.0, 1000, 10, 1, 1e-6),
        ),
        {**dict.fromkeys(_OTHERS, "no random allocation"), "jax-privacy": "no random allocation"},
        240,
    ),
    Question(
        "separated",
        "Poisson sampling with a pause after each participation (b-min-sep)",
        "delta",
        (("dplib", "estimate"), ("dplib", "bracket"), ("dplib", "certificate"), ("jax-privacy", "sampled")),
        _settings(
            ("sigma", "rounds", "separation", "probability", "bands", "epsilon"),
            (1.0, 512, 1, 0.02, 1, 1.0),
            (3.0, 128, 8, 0.125, 8, 1.0),
        ),
        dict.fromkeys(("dp_accounting", "prv-accountant", "autodp", "Opacus"), "no pause after a participation"),
        120,
    ),
    Question(
        "unamplified",
        "Encoders optimised without amplification",
        "error",
        (
            ("dplib", "free"),
            ("jax-privacy", "banded"),
            ("jax-privacy", "buffered"),
            ("jax-privacy", "normalised"),
            ("jax-privacy", "dense"),
        ),
        _settings(
            ("rounds", "bands", "batches", "epochs"),
            (256, None, 256, 1),
            (256, None, 32, 8),
            (2048, 16, 2048, 1),
            (2048, None, 128, 16),
        ),
        dict.fromkeys(("dp_accounting", "prv-accountant", "autodp", "Opacus"), _NO_MATRIX),
        120,
    ),
    Question(
        "amplified",
        "Encoders optimised with amplification",
        "error",
        (("dplib", "poisson"), ("dplib", "bins"), ("jax-privacy", "poisson")),
        _settings(
            ("batches", "epochs", "epsilon", "delta"), (128, 16, 1.0, 1e-5), (32, 16, 8.0, 1e-5)
        ),
        dict.fromkeys(("dp_accounting", "prv-accountant", "autodp", "Opacus"), _NO_MATRIX),
        180,
    ),
)
QUESTIONS = tuple(
    replace(question, absent=question.absent | {name: why for name, why in ALONE.items() if name not in dict(question.answers)})
    for question in _QUESTIONS
)
