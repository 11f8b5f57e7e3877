"""The committed high-precision values, as (composition, direction, epsilon, delta) cases."""

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from dplib import mixtures

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Case:
    id: str
    mechanism: str
    params: dict
    direction: str
    epsilon: float
    log_delta: float
    digits: int
    output: str  # which of the two is the computed one; the other is an exact input

    @property
    def delta(self):
        return float(Decimal(self.log_delta).exp())

    @property
    def rounds(self):
        parts = self.params.get("parts")
        return sum(int(p["count"]) for p in parts) if parts else int(self.params["T"])

    def composition(self):
        parts = self.params.get("parts")
        if parts:
            return [(pair(p), int(p["count"])) for p in parts]
        return [(pair(self.params), int(self.params["T"]))]

    @property
    def tolerance(self):
        """Relative uncertainty of the printed value itself."""
        return 5 * 10.0**-self.digits

    def __str__(self):
        return self.id


def pair(params):
    sigma = float(params["sigma"])
    if "q" in params:
        return mixtures.binomial(int(params["k"]), float(params["q"]), sigma)
    if "batch_size" in params:
        return mixtures.hypergeometric(
            int(params["batch_size"]), int(params["dataset_size"]), int(params["k"]), sigma
        )
    return mixtures.Mixture(
        [float(s) for s in params["sensitivities"]],
        [float(p) for p in params["probabilities"]],
        sigma,
    )


@cache
def cases(name="oracle"):
    return [
        Case(
            v["id"],
            v["mechanism"],
            v["params"],
            v["direction"],
            float(v["epsilon"]),
            float(Decimal(str(v["delta"])).ln()) if Decimal(str(v["delta"])) > 0 else float("-inf"),
            int(v["digits"]),
            v.get("output", "delta"),
        )
        for v in load(name)
    ]


def load(name, table="values"):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))[table]
