"""Every cell of a lesson survives what a curious reader does: change the numbers, run all again.

`make test` does so with two short lessons, as it runs all of them with their own numbers; `make trust` with every one.
"""

import lesson_cells
import pytest

# For each lesson an edit, a list of (old text, new text); the old text stands once in the lesson's code.
# It also makes sweeps shorter where the lesson is expensive.
EDITS = {
    "01_hockey_stick": (
        ("target, slack = 1.0, 1e-6", "target, slack = 3.0, 1e-5"),
        ("mu, epsilon = 1.0, 1.0\nthreshold", "mu, epsilon = 2.0, 0.5\nthreshold"),
        ("mu = 1.0\nz =", "mu = 0.5\nz ="),
        ("((0.1, 0.397), ", "((2.0, 0.397), "),
        ("mu, epsilon = 1.0, 1.0\nf,", "mu, epsilon = 0.5, 2.0\nf,"),
        ("noise = 1.0\n", "noise = 2.0\n"),
        ("default_rng(101)", "default_rng(7)"),
    ),
    "02_accounting": (
        ("sigma, q, rounds, delta = 1.0, 0.01, 2000, 1e-6", "sigma, q, rounds, delta = 2.0, 0.05, 500, 1e-5"),
        ("answers = 20", "answers = 12"),
        ("probability=0.1, noise_multiplier=1.0), 50, 1.0", "probability=0.3, noise_multiplier=1.5), 20, 0.5"),
    ),
    "03_subsampling": (
        ("records, size, rounds, delta = 50_000, 500, 2000, 1e-6", "records, size, rounds, delta = 20_000, 400, 1000, 1e-5"),
        ("account(sigma=1.0)", "account(sigma=0.5)"),
        ("q, sigma = 0.1, 1.0", "q, sigma = 0.2, 2.0"),
        ("n, b, E = 9, 3, 2", "n, b, E = 12, 4, 3"),
        ("q, sigma, e = 0.01, 1.0", "q, sigma, e = 0.1, 2.0"),
        ("q, alpha = 0.5, 1.3", "q, alpha = 0.25, 1.2"),
        ("for sigma in (1.0, 2.0, 4.0)", "for sigma in (0.5, 1.0, 3.0)"),
        ("run_epochs, run_rounds = 5, 100", "run_epochs, run_rounds = 10, 100"),
        ("for p in (0.01, 0.1, 0.5)", "for p in (0.02, 0.3, 0.9)"),
    ),
    "04_mixtures": (
        ("q, sigma = 0.5, 1.0", "q, sigma = 0.2, 0.7"),
        ("angle, turn = 100, 35", "angle, turn = 60, 20"),
        ("trials=1, probability=0.5, noise_multiplier=1.0", "trials=1, probability=0.2, noise_multiplier=2.0"),
        ("[0.5, 0.3, 0.2], noise_multiplier=0.8", "[0.8, 0.1, 0.1], noise_multiplier=1.5"),
        ("default_rng(8)", "default_rng(88)"),
        ("default_rng(9)", "default_rng(99)"),
    ),
    "05_group_privacy": (
        ("sigma, rate, rounds, delta, family = 1.0, 0.01, 2000, 1e-6, 9", "sigma, rate, rounds, delta, family = 2.0, 0.02, 500, 1e-5, 4"),
        ("trials=2, probability=0.5, noise_multiplier=1.0", "trials=2, probability=0.3, noise_multiplier=1.5"),
        ("chance = 0.3", "chance = 0.1"),
        ("members, chance, noise = 3, 0.2, 1.0", "members, chance, noise = 5, 0.1, 2.0"),
    ),
    "06_last_iterate": (
        ("delta, noise = 1e-6, 1.0", "delta, noise = 1e-5, 2.0"),
        ("(0.01, 2000)}", "(0.1, 200)}"),
        ("T, q, sigma, eta = 8, 0.3, 1.0, 0.5", "T, q, sigma, eta = 20, 0.1, 3.0, 2.0"),
        ("sigma, eta, runs = 16, 1 / 8, 1.0, 0.1, 200_000", "sigma, eta, runs = 8, 1 / 2, 4.0, 0.5, 100_000"),
        ("sigma, T, asked = 1.0, 128, 1e-6", "sigma, T, asked = 2.0, 64, 1e-5"),
        ("T, q, checkpoints = 128, 1 / 128, (1, 2, 4, 8, 16, 32, 64, 128)", "T, q, checkpoints = 64, 1 / 16, (1, 2, 8, 64)"),
        ("n, q, J, runs = 10**8, 0.5, 64", "n, q, J, runs = 10**7, 0.2, 16"),
        ("epsilon, q, sigma, counts, rows = 0.5, 0.5, 1.0", "epsilon, q, sigma, counts, rows = 1.0, 0.3, 0.8"),
    ),
    "08_large_batches": (
        ('DELTA, DIRECTIONS = 1e-5,', 'DELTA, DIRECTIONS = 1e-6,'),
        ("np.geomspace(0.01, 1, 25)", "np.geomspace(0.02, 1, 10)"),
        ("q, sigma, draws = 0.3, 0.5", "q, sigma, draws = 0.1, 1.0"),
        ("q, xi = 0.1,", "q, xi = 0.05,"),
        ("for T in steps]) for q in (0.02, 0.1, 0.5)}", "for T in steps]) for q in (0.05, 0.3)}"),
    ),
    "10_matrix_mechanism": (
        ("rounds, separation, passes = 2048, 128, 16", "rounds, separation, passes = 1024, 128, 8"),
        ("push = np.array([1.0, 0.5])", "push = np.array([1.0, 0.8])"),
        ("sigma, epsilon = 1.5, 0.5", "sigma, epsilon = 2.0, 1.0"),
        ("default_rng(1001)", "default_rng(11)"),
    ),
    "11_conditional_composition": (
        ("sigma, q, delta = 5.0, 0.1, 1e-4", "sigma, q, delta = 2.0, 0.2, 1e-5"),
        ("rounds, budget, runs = 24, 0.05, 4000", "rounds, budget, runs = 12, 0.1, 2000"),
        ("default_rng(1101)", "default_rng(11)"),
    ),
    "13_shuffled_tree": (
        ("EPSILON, DELTA = 1.0, 1e-3", "EPSILON, DELTA = 2.0, 1e-4"),
        ("for h in (1, 4, 7, 10, 20)", "for h in (1, 3, 9)"),
        ("for delta in (1e-2, 1e-3, 1e-4, 1e-6)", "for delta in (1e-3, 1e-5)"),
    ),
    "14_balls_in_bins": (
        ('target = {"epsilon": 1.0, "delta": 1e-5}', 'target = {"epsilon": 4.0, "delta": 1e-6}'),
        ("epsilon = 0.5\naxis", "epsilon = 1.0\naxis"),
    ),
    "12_mmcc": (
        ("matrices.tree_restarts(512, 8), (100.0, 10.0)", "matrices.tree_restarts(512, 8), (50.0, 20.0)"),
        ('DIRECTIONS, DELTA = ("remove", "add"), 1e-6', 'DIRECTIONS, DELTA = ("remove", "add"), 1e-5'),
        ("counting(64), 1 / 64, 4.0, 200", "counting(64), 1 / 16, 2.0, 200"),
        ("eight, q = counting(8), 1 / 8", "eight, q = counting(8), 1 / 4"),
        ("sigma, delta_1 = 3 * eight", "sigma, delta_1 = 2 * eight"),
        ("product((5.0, 2.0), DIRECTIONS)", "product((10.0, 1.0), DIRECTIONS)"),
        ("sizes, unsampled = (16, 64, 256, 1024),", "sizes, unsampled = (16,),"),
        ("tree: (4, 16, 64, 256, 1024)}", "tree: (4, 16)}"),
        ("eight, c = counting(8), 10.0", "eight, c = counting(8), 5.0"),
    ),
    "17_training": (
        ("EPSILON, rows = 2.0, []", "EPSILON, rows = 4.0, []"),
        ("for e in (0.5, 2.0, 8.0)", "for e in (1.0, 4.0)"),
        ("default_rng(1701), 40_000", "default_rng(17), 20_000"),
    ),
    "15_monte_carlo": (
        ("target, epsilon = 1e-8, 1.0", "target, epsilon = 1e-6, 1.0"),
        ("default_rng(1503)", "default_rng(13)"),
        ('goal = {"epsilon": 1.0, "delta": 1e-5}', 'goal = {"epsilon": 2.0, "delta": 1e-6}'),
    ),
    "16_optimizing_the_encoder": (
        ('goal = {"delta": 1e-5, "batches_per_epoch": 8, "epochs": 8}', 'goal = {"delta": 1e-6, "batches_per_epoch": 4, "epochs": 4}'),
        ("def noise_of(gram, epsilon, delta=1e-5)", "def noise_of(gram, epsilon, delta=1e-6)"),
        ("np.array([[1.2, 0.5], [0.5, 0.9]]), 0.5", "np.array([[2.2, 0.3], [0.3, 0.9]]), 1.5"),
    ),
    "19_common_mistakes": (
        ("k, sigma, delta = 50_000, 500, 2000, 100, 20, 9, 1.0, 1e-6", "k, sigma, delta = 50_000, 500, 1000, 100, 10, 4, 2.0, 1e-5"),
        ("promised = 3.0", "promised = 1.0"),
        ("default_rng(1901)", "default_rng(191)"),
    ),
    "18_which_accountant": (
        ("SIGMAS = (1.0, 4.0)", "SIGMAS = (2.0, 8.0)"),
        ("target = 3.0", "target = 5.0"),
        ("default_rng(1801)", "default_rng(18)"),
    ),
    "21_one_axis": (
        ("sigma, b, E, epsilon = 1.2, 10, 3, 0.5", "sigma, b, E, epsilon = 2.0, 20, 3, 0.3"),
        ("default_rng(2101)", "default_rng(21)"),
    ),
    "22_users": (
        ("q, rounds, delta, cap, batch = 0.01, 2000, 1e-6, 9, 500", "q, rounds, delta, cap, batch = 0.01, 2000, 1e-7, 6, 500"),
        ("third = 3", "third = 2"),
    ),
}


QUICK = ("01_hockey_stick", "04_mixtures")


@pytest.mark.parametrize("name", EDITS)
def test_the_edits_are_of_the_lesson(name):
    cells = lesson_cells.cells_of(name)
    assert lesson_cells.edited(cells, EDITS[name]) != cells


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.trust) for name in EDITS])
def test_every_cell_survives(name):
    """No cell raises with other numbers: what a lesson asserts holds for all of them."""
    lesson_cells.run(lesson_cells.edited(lesson_cells.cells_of(name), EDITS[name]))
