"""The losses of a composition as a lattice sees them: each round's window, and moments to a few digits."""

from __future__ import annotations

import math

import numpy as np

from .._base.log_space import log_sum_exp
from .lattice_pieces import step_of


class Losses:
    """The losses of all rounds in their windows, known to a few digits: for choices, not for bounds.

    target, margin, about : what is cut, as `Step` takes them; about : epsilon.
    least : the question's epsilon is at least that; None, where the smallest losses count.
    split : a loss, or None. Runs of which no round loses more are then left out of the moments.
    """

    def __init__(self, parts, direction, target, margin, least, about=math.inf):
        self.split, self._end_moments = None, {}
        margin += math.log(len(parts))  # each may cost its share
        self.steps = [step_of(m, rounds, direction, target, margin, about) for m, rounds in parts]
        if least is not None and direction == "add" and all(math.isfinite(m.log_floor) for m, _ in parts):
            # No sum of losses reaches epsilon where one is below what all the others' maxima leave to it.
            total = -sum(rounds * m.log_floor for m, rounds in parts)
            for step in self.steps:
                others = total + step.mixture.log_floor
                step.cut_below(least - others - 0.1 * (total - least))
        self.reach = max(s.high for s in self.steps) - min(s.low for s in self.steps)

    def moments(self, c):
        """(log moment, mean, variance) of the summed loss at tilt c, to a few digits."""
        whole = self.moments_up_to(c, math.inf)
        if self.split is None:
            return whole
        # The runs with a loss above the split: the difference of two measures.
        bulk = self.moments_up_to(c, self.split)
        less = math.exp(min(bulk[0] - whole[0], 0.0))
        left = _share_left(whole[0], bulk[0])
        mean = (whole[1] - less * bulk[1]) / left
        square = (whole[2] + whole[1] ** 2 - less * (bulk[2] + bulk[1] ** 2)) / left
        return [whole[0] + math.log(left), mean, max(square - mean * mean, 1e-6 * mean * mean)]

    def moments_up_to(self, c, most):
        """The same of the losses up to `most`, all of them in the bulk of their round or not."""
        sums = np.zeros(3)
        for step in self.steps:
            loss, log_mass = step.rough
            if most < math.inf:
                log_mass = np.where(loss <= most, log_mass, -1e300)
            logs = log_mass + c * loss
            top = logs.max()
            weights = np.exp(logs - top)
            total = weights.sum()
            mean = weights @ loss / total
            variance = weights @ (loss - mean) ** 2 / total
            sums += step.rounds * np.array([top + math.log(total), mean, variance])
        return sums.tolist()

    def alias_moment(self, c):
        """The log moment at tilt c of the law whose aliases are subtracted: the lower one, or below 0 the upper one."""
        return self.end_moment(c) if c > 0 else self.moments_up_to(c, math.inf)[0]

    def end_moment(self, c):
        """The log moment at tilt c of the lower law, where what lies beyond the window counts as the window's end; kept, for many periods."""
        if (c, self.split) not in self._end_moments:
            self._end_moments[c, self.split] = self._end_moment(c)
        return self._end_moments[c, self.split]

    def _end_moment(self, c):
        whole = 0.0
        for step in self.steps:
            loss, log_mass = step.rough
            logs = np.append(log_mass + c * loss, step.log_high_tail + c * step.high)
            whole += step.rounds * float(log_sum_exp(logs))
        if self.split is None:
            return whole
        return whole + math.log(_share_left(whole, self.moments_up_to(c, self.split)[0]))

    def one_jump_epsilon(self, target):
        """About the epsilon at which one round alone, times the number of rounds, has delta; target : its logarithm."""

        def log_delta(epsilon):
            total = 0.0
            for step in self.steps:
                loss, log_mass = step.rough
                total += step.rounds * float(np.exp(log_mass) @ -np.expm1(np.minimum(epsilon - loss, 0.0)))
                total += step.rounds * math.exp(step.log_high_tail)
            return math.log(max(total, 1e-300))

        low, high = 0.0, max(step.high for step in self.steps)
        if log_delta(0.0) <= target or not high > 0:
            return 0.0
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if log_delta(middle) > target else (low, middle)
        return low


def _share_left(log_whole, log_bulk):
    """1 - bulk / whole, above 0: both are known to a few digits."""
    return max(-math.expm1(min(log_bulk - log_whole, 0.0)), 1e-16)
