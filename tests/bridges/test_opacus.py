"""What the accountant for Opacus counts; inside Opacus itself: test_inside_peers.py."""

import math
from types import SimpleNamespace

import pytest

from dplib import PoissonDPSGD, accounting, mixtures
from dplib.bridges import opacus


def test_rounds_are_counted():
    accountant = opacus.Rounds()
    assert accountant.get_epsilon(1e-6) == 0
    for _ in range(50):
        accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    assert accountant.history == [(1.0, 0.01, 50)] and len(accountant) == 50 and accountant.mechanism() == "dplib"
    assert accountant.get_epsilon(1e-6, alphas=[2]) == PoissonDPSGD(1.0, 0.01, 50).epsilon(1e-6).upper == accountant.bracket(1e-6).upper
    accountant.step(noise_multiplier=2.0, sample_rate=1.0)
    accountant.step(noise_multiplier=2.0, sample_rate=0.0)
    both = [(mixtures.binomial(1, 0.01, 1.0), 50), (mixtures.binomial(1, 1.0, 2.0), 1)]
    assert accountant.get_epsilon(1e-6) == pytest.approx(accounting.epsilon(both, 1e-6).upper, rel=1e-9) and len(accountant) == 52


def test_accumulated_batches_are_a_group():
    """A record in several of 4 Poisson batches adds up: Binomial(4, q), which costs more than Opacus's Bernoulli(4 q)."""
    accountant = opacus.Rounds()
    hook = accountant.get_optimizer_hook_fn(0.01)
    for batches in (1, 4, 4):
        hook(SimpleNamespace(noise_multiplier=1.0, accumulated_iterations=batches))
    assert accountant.history == [(1.0, 0.01, 1), (1.0, 0.01, 2, 4)] and len(accountant) == 3
    accountant.history = [(1.0, 0.01, 100, 4)]
    assert accountant.get_epsilon(1e-6) == pytest.approx(PoissonDPSGD(1.0, 0.01, 100, 4).epsilon(1e-6).upper, rel=1e-9)
    assert accountant.bracket(1e-6).lower > PoissonDPSGD(1.0, 0.04, 100).epsilon(1e-6).upper


def test_traps():
    accountant = opacus.Rounds()
    with pytest.raises(ValueError, match="sample_rate must .* of one batch, not of all that are accumulated"):
        accountant.step(noise_multiplier=1.0, sample_rate=1.28)
    with pytest.raises(ValueError, match="noise_multiplier must"):
        accountant.step(noise_multiplier=-1.0, sample_rate=0.1)
    accountant.history = [(0, 0.01, 10)]
    assert accountant.get_epsilon(1e-6) == math.inf and "without noise" in accountant.reason
    with pytest.raises(TypeError, match="name must be a string"):
        opacus.register(None)


class Loader(SimpleNamespace):
    def __len__(self):
        return self.batches


def test_the_rate_of_a_loader():
    check = opacus.check_loader
    poisson = lambda q, batches: Loader(batches=batches, batch_sampler=SimpleNamespace(sample_rate=q))
    assert check(poisson(0.01, 100)) == 0.01 and check(poisson(0.3, 3)) == 0.3
    with pytest.raises(ValueError, match="781 times as large"):
        check(poisson(0.01, 78_100))
    with pytest.raises(ValueError, match="coin"):
        check(Loader(batches=100, batch_sampler=SimpleNamespace()))
    with pytest.raises(ValueError, match="coin"):
        check([1, 2])
