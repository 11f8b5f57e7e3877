"""Scalar mixture pairs in long arithmetic: loss and one-round delta by a route of their own."""

import mpmath as mp


class Exact:
    """A mixture pair in long arithmetic, from its exact doubles."""

    def __init__(self, pair, digits=60):
        self.digits = digits
        with mp.workdps(digits):
            self.sigma = mp.mpf(pair.noise_multiplier)
            self.atoms = [(mp.mpf(s), mp.exp(mp.mpf(w))) for s, w in zip(pair.sensitivities, pair.log_probabilities)]
            # The smaller weights are known best; the largest is what they leave of 1.
            top = max(range(len(self.atoms)), key=lambda j: self.atoms[j][1])
            rest = mp.fsum(p for j, (_, p) in enumerate(self.atoms) if j != top)
            self.atoms[top] = (self.atoms[top][0], 1 - rest)

    def ratio(self, x):
        return mp.fsum(p * mp.exp((s * x - s * s / 2) / self.sigma**2) for s, p in self.atoms)

    def loss(self, x):
        with mp.workdps(self.digits):
            return mp.log(self.ratio(mp.mpf(x)))

    def hockey_stick(self, epsilon, direction):
        """delta through the threshold, found by bisection and Newton's method."""
        with mp.workdps(self.digits):
            if all(s == 0 for s, _ in self.atoms):
                return max(mp.mpf(0), 1 - mp.exp(mp.mpf(epsilon)))
            level = mp.mpf(epsilon if direction == "remove" else -epsilon)
            floor = sum(p for s, p in self.atoms if s == 0)
            if mp.exp(level) <= floor:  # the loss never falls to the level
                return mp.mpf(0) if direction == "add" else 1 - mp.exp(level)
            x = mp.mpf(1)
            while self.ratio(x) < mp.exp(level):
                x *= 2
            for _ in range(2000):  # the loss is convex: Newton's method from above never overshoots
                terms = [(s, p * mp.exp((s * x - s * s / 2) / self.sigma**2)) for s, p in self.atoms]
                ratio = mp.fsum(t for _, t in terms)
                slope = mp.fsum(s * t for s, t in terms) / ratio / self.sigma**2
                step = (mp.log(ratio) - level) / slope
                x -= step
                if abs(step) < mp.mpf(10) ** (20 - self.digits) * (1 + abs(x)) * max(1, self.sigma**2):
                    break
            else:
                raise ArithmeticError("the threshold was not found")
            tail = lambda y: mp.erfc(y / self.sigma / mp.sqrt(2)) / 2
            if direction == "remove":
                return mp.fsum(p * tail(x - s) for s, p in self.atoms) - mp.exp(level) * tail(x)
            return tail(-x) - mp.exp(-level) * mp.fsum(p * tail(s - x) for s, p in self.atoms)
