"""Random mixtures and compositions for the property tests, and how two answers are compared.

`--hypothesis-profile=thorough` tries twenty times as many examples, or more.
"""

import math

from hypothesis import Phase, reject, settings
from hypothesis import strategies as st

from dplib import NoBracketError, accounting, contour, lattice
from dplib.accounting.chernoff import Chernoff
from dplib.mixtures import Mixture, binomial

SCALE = 20 if settings.get_current_profile_name() == "thorough" else 1
DIRECTIONS = ("remove", "add")
WIDE = 1e-2  # where the search for a narrower bracket ends: all properties hold for wide ones, too


def examples(number, thorough=0):
    """So many examples; with the other profile twenty times as many, or more."""
    return settings(max_examples=number if SCALE == 1 else max(number * SCALE, thorough))


def hostile(number, thorough=0):
    """So many examples, of which none is made smaller: that may take minutes."""
    return settings(examples(number, thorough), phases=[Phase.explicit, Phase.reuse, Phase.generate])


def logs(low, high):
    """Floats spread evenly in the logarithm; the ends are likely."""
    return st.floats(math.log(low), math.log(high)).map(lambda x: min(max(math.exp(x), low), high))


def answer(function, *arguments, **options):
    """The answer, or this example does not count: a refusal is no wrong answer."""
    try:
        return function(*arguments, **options)
    except NoBracketError:
        reject()


# Every accountant that gives brackets, by itself; none chooses another one.
ROUTES = {
    "contour": contour.side_log_delta,
    "lattice": lambda parts, epsilon, direction: lattice.side_log_delta(parts, epsilon, direction, WIDE),
    "auto": lambda parts, epsilon, direction: accounting.side_log_delta(parts, epsilon, direction, "auto", WIDE),
}


def route(name, parts, epsilon, direction):
    """Bracket of log delta by one accountant; examples that it refuses, or where delta is 0, do not count."""
    found = answer(ROUTES[name], parts, epsilon, direction)
    return found if found is not None else reject()


def at_most(smaller, larger):
    """Whether two brackets leave it possible that the first number is at most the second."""
    return smaller.lower <= larger.upper


def agree(one, other):
    """Whether two brackets can hold the same number."""
    return at_most(one, other) and at_most(other, one)


@st.composite
def mixtures(draw, largest=4.0):
    """Two to four sensitivities, one of them 0, with any probabilities."""
    positive = draw(st.lists(st.floats(0.05, largest), min_size=1, max_size=3, unique=True))
    chances = [draw(logs(1e-6, 1.0)) for _ in positive]
    rest = 1.0 if sum(chances) < 1e-3 else draw(logs(1e-2, 10.0))
    total = rest + sum(chances)
    return Mixture([0.0, *positive], [rest / total, *(chance / total for chance in chances)], 1.0)


@st.composite
def rounds(draw, most=10**6):
    """(noise multiplier, sampling probability, rounds) that neither hide everything nor reveal everything.

    Rare sampling of little noise to frequent sampling of much; the extremes are left to `auto`.
    """
    steps = draw(st.sampled_from([n for n in (2, 10, 30, 100, 1000, 10**4, 10**6) if n <= most]))
    q = draw(logs(1e-4, 0.9))
    # About q sqrt(steps) / sigma decides; it lies between 0.05 and 5.
    sigma = max(draw(logs(0.2, 20.0)) * q * math.sqrt(steps), 0.45)
    return sigma, q, steps


@st.composite
def questions(draw, most=10**6):
    """(composition, epsilon), epsilon where delta lies between 1e-200 and 1/2."""
    sigma, q, steps = draw(rounds(most))
    group = draw(st.sampled_from([1, 1, 2, 5]))
    parts = [(binomial(group, q, sigma), steps)]
    return parts, epsilon_at(draw, parts)


def epsilon_at(draw, parts, least=1e-200):
    """Some epsilon at which delta of the remove direction is roughly between `least` and 1/2."""
    found = answer(Chernoff(parts, "remove").epsilon, math.log(draw(logs(least, 0.5))))
    return found if found > 0 else draw(logs(1e-3, 1.0))
