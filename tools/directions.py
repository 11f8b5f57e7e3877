"""Is remove the larger direction? Random settings of every mechanism class whose default rests on [C-9m].

    python -m tools directions --cases 3000 --seed 1

Each case computes certified brackets of delta in both directions, each by itself. It fails where the lower end
of add exceeds the upper end of remove, and where both are narrow, add must end before remove begins unless the
difference is lost in their widths. A failure is printed with the seed and the number that bring it back.
"""

import argparse
import math
import random
import sys

from dplib import (
    BallsInBins,
    FixedBatchDPSGD,
    LastIterate,
    MatrixMechanism,
    NoBracketError,
    PoissonDPSGD,
    accounting,
    conditional,
    matrices,
)

NARROW = 1e-4  # relative width of a bracket whose place says something


def _spread(draw, low, high):
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def _poisson(draw):
    steps, group = round(_spread(draw, 1, 1e5)), draw.choice([1, 1, 1, 2, 4, 16])
    return PoissonDPSGD(_spread(draw, 0.4, 20), _spread(draw, 1e-4, 1), steps, group)


def _fixed(draw):
    size = round(_spread(draw, 2, 1e6))
    batch, steps = round(_spread(draw, 1, size)), round(_spread(draw, 1, 1e4))
    return FixedBatchDPSGD(_spread(draw, 0.5, 40), batch, size, steps, draw.choice([1, 1, 2, 8]))


def _last(draw):
    return LastIterate(_spread(draw, 0.3, 20), _spread(draw, 1e-4, 1), round(_spread(draw, 1, 1e4)))


def _bins(draw):
    bins, epochs = draw.randint(1, 64), draw.randint(1, 20)
    return BallsInBins(matrices.identity(bins * epochs), _spread(draw, 0.4, 20), bins, epochs)


def _matrix(draw):
    encoder = draw.choice(
        [
            lambda: matrices.optimal_counting(draw.choice([2, 4, 6])),
            lambda: matrices.optimal_counting(32, draw.randint(1, 3)),
            lambda: matrices.tree_restarts(draw.choice([4, 8]), draw.choice([1, 2, 4])),
        ]
    )()
    return MatrixMechanism(encoder, _spread(draw, 1, 8), _spread(draw, 0.03, 0.5))


MECHANISMS = {
    "PoissonDPSGD": _poisson,
    "FixedBatchDPSGD": _fixed,
    "LastIterate": _last,
    "BallsInBins": _bins,
    "MatrixMechanism": _matrix,
}


def brackets(mechanism, epsilon):
    """Certified brackets of delta in the directions (add, remove), each computed by itself."""
    if isinstance(mechanism, BallsInBins):
        return [mechanism.delta(epsilon, direction, method="exact") for direction in ("add", "remove")]
    if isinstance(mechanism, MatrixMechanism):
        # What stands behind its upper bounds: the rows off the bad event.
        tail_bound = conditional.candidates(mechanism.encoder, 1)[-1]
        [rows] = conditional.rows(
            mechanism.encoder, mechanism.noise_multiplier, mechanism.sampling_probability, 1e-9, tail_bound
        )
        return [accounting.delta(rows.pairs, epsilon, side, "lattice", tolerance=1e-4) for side in ("add", "remove")]
    pairs = mechanism.composition()
    return [accounting.delta(pairs, epsilon, side, tolerance=1e-5) for side in ("add", "remove")]


def verdict(add, remove):
    """ "wrong", "ordered" (add ends before remove begins), or "open" (the brackets meet)."""
    narrow = all(bracket.relative_width < NARROW for bracket in (add, remove))
    if add.lower > remove.upper or (narrow and add.lower > remove.lower and add.upper > remove.upper * (1 + NARROW)):
        return "wrong"
    return "ordered" if add.upper < remove.lower else "open"


def check(cases, seed, names=tuple(MECHANISMS), say=print):
    """{mechanism class: {verdict: how many}}; a case that is refused counts as "refused"."""
    found = {name: {"ordered": 0, "open": 0, "refused": 0, "wrong": 0} for name in names}
    for number in range(cases):
        name = names[number % len(names)]
        draw = random.Random(f"{seed} {number}")
        mechanism = MECHANISMS[name](draw)
        epsilon = _spread(draw, 0.01, 2 if isinstance(mechanism, MatrixMechanism) else 20)  # delta within the lattice's reach
        try:
            add, remove = brackets(mechanism, epsilon)
        except NoBracketError:
            found[name]["refused"] += 1
            continue
        answer = verdict(add, remove)
        found[name][answer] += 1
        if answer == "wrong":
            say(f"seed {seed}, case {number}: {mechanism} at epsilon = {epsilon!r}: add {add!r}, remove {remove!r}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, which is printed")
    chosen = parser.parse_args()
    seed = random.randrange(2**32) if chosen.seed is None else chosen.seed
    print(f"directions: {chosen.cases} cases, seed {seed}", flush=True)
    found = check(chosen.cases, seed)
    for name, counts in found.items():
        print(f"{name:16} " + ", ".join(f"{number} {answer}" for answer, number in counts.items()))
    return 1 if any(counts["wrong"] for counts in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
