"""Dangerous mutants: single changes that make an upper bound too small, or swap what must not be swapped.

Each names the tests that have to notice it. `python scripts/mutation.py dangerous` plants
them one after the other; `tests/unit/test_mutation.py` checks that each still applies.
"""

from dataclasses import dataclass

PROPERTIES, BINS = "test_properties.py", "test_properties_bins.py"


@dataclass(frozen=True)
class Mutant:
    name: str
    module: str
    old: str  # stands in the module exactly once
    new: str
    tests: tuple


def apply(mutant, source):
    """The module's source with the fault in it."""
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name!r}: {mutant.old!r} stands {source.count(mutant.old)} times in {mutant.module}")
    return source.replace(mutant.old, mutant.new)


def _of(file, *names):
    return tuple(f"{file}::{name}" for name in names)


_AGREE = _of(PROPERTIES, "test_all_accountants_agree")
_FALLS = _of(PROPERTIES, "test_delta_falls_and_is_convex")
_PARITY = _of(PROPERTIES, "test_parity_of_compositions")
_LAWS = _of(PROPERTIES, "test_lattice_laws_lie_on_the_right_side_everywhere")
_COARSE = _of(PROPERTIES, "test_coarse_lattices_contain_the_truth")
_RENYI = _of(PROPERTIES, "test_renyi_divergences", "test_renyi_divergences_by_a_sum", "test_renyi_bounds_are_above_the_others")
_SPLITTING = _of(PROPERTIES, "test_splitting_and_order_do_not_matter")
_LOGNORMAL = _of(BINS, "test_two_bins_by_quadrature", "test_coarse_grids_of_lognormals_contain_the_truth")
_INVERSE = _of(BINS, "test_epsilon_of_lognormals_is_the_inverse")
_SAMPLES = _of(BINS, "test_samples_average_to_delta_and_stay_below_their_bound")
_CERTIFICATE = _of(BINS, "test_certificates_are_above_the_truth")
_CONFIDENCE = _of(BINS, "test_confidence_bounds", "test_confidence_bounds_hold_as_often_as_they_say")
_TAILS = _of(BINS, "test_tail_exponents_are_exceeded_as_rarely_as_they_say")
_ROWS = _of(BINS, "test_row_laws_dominate")
_MMCC = _of(BINS, "test_mmcc_of_independent_noise_is_dpsgd", "test_mmcc_is_above_what_a_line_shows")

DANGEROUS = [
    # One round in closed form, and what every accountant builds on.
    Mutant("delta halved", "gaussian", "    return math.exp(_log_delta(mu, epsilon))", "    return math.exp(_log_delta(mu, epsilon)) / 2", ("test_gaussian.py",)),
    Mutant("mu halved in the threshold", "gaussian", "x = epsilon / mu - mu / 2", "x = epsilon / mu - mu / 4", ("test_gaussian.py",)),
    Mutant("one round: remove and add swapped", "mixtures", "epsilon if direction == \"remove\" else -epsilon)\n        out", "epsilon if direction == \"add\" else -epsilon)\n        out", _of(PROPERTIES, "test_parity_of_one_round")),
    Mutant("one round: weights of the other direction", "mixtures", "log_weights = log_p + a * (u[:, None] - a / 2) - self.log_ratio(u)[:, None]", "log_weights = np.broadcast_to(log_p, x.shape)", _of(PROPERTIES, "test_parity_of_one_round")),
    Mutant("variance bound too small", "mixtures", "bound = ((a[-1] - a[0]) / 2) ** 2", "bound = ((a[-1] - a[0]) / 2) ** 2 / 4", _of(PROPERTIES, "test_posterior_variance_stays_below_its_bound")),
    Mutant("equal sensitivities lost", "mixtures", "np.logaddexp.at(merged, group, log_p)", "merged[group] = log_p", _of(PROPERTIES, "test_redundant_components_do_not_matter")),
    Mutant("scale forgotten", "mixtures", "(\"shifts\", values / sigma)", "(\"shifts\", values / min(sigma, 1.0))", _of(PROPERTIES, "test_scale_does_not_matter")),
    Mutant("fixed batches: factor 2 dropped", "mixtures", "sigma, 2.0 * np.arange(top + 1)", "sigma, 1.0 * np.arange(top + 1)", ("test_statements.py",)),
    # The entry to the accountants.
    Mutant("repeated rounds counted once", "accounting", "rounds_of[mixture] = rounds_of.get(mixture, 0) + rounds", "rounds_of[mixture] = rounds", _SPLITTING),
    Mutant("a plain Gaussian's rounds forgotten", "accounting", "rounds * float(m.shifts[0]) ** 2 for", "float(m.shifts[0]) ** 2 for", _of(PROPERTIES, "test_any_poisson_setting_is_answered_or_refused", "test_a_gaussian_part_is_the_same_in_pieces") + ("test_accounting.py",)),
    Mutant("delta rounded down", "accounting", "math.nextafter(math.exp(side.upper), 2.0)", "math.exp(side.upper) * (1 - 1e-9)", ("test_accounting.py", "test_mechanisms.py")),
    Mutant("one round: bracket below", "accounting", "return Bracket(max(loss - width, 0.0), loss + width, \"closed form\")", "return Bracket(max(loss - width, 0.0), loss * (1 - 1e-9), \"closed form\")", ("test_accounting.py", "test_statements.py")),
    Mutant("total variation of one round for all", "accounting", "rows = [rounds * float(m.probabilities", "rows = [float(m.probabilities", _of(PROPERTIES, "test_epsilon_is_positive_where_delta_at_zero_is_larger")),
    Mutant("largest loss of one round for all", "accounting", "largest = -sum(rounds * mixture.log_floor", "largest = -sum(mixture.log_floor", _AGREE + ("test_accounting.py",)),
    # The contour.
    Mutant("contour: remove and add swapped", "contour", "sign = 1 if direction == \"remove\" else -1\n        self.families", "sign = -1 if direction == \"remove\" else 1\n        self.families", _AGREE + _PARITY),
    Mutant("contour: factor 2", "contour", "kernel = self.spacing / math.pi / (z * (z + 1))", "kernel = self.spacing / math.pi / 2 / (z * (z + 1))", _AGREE),
    Mutant("contour: first term counted whole", "contour", "        self.terms[0] /= 2\n", "", _AGREE),
    Mutant("contour: first term dropped", "contour", "self.terms[0] /= 2", "self.terms[0] = 0", _AGREE),
    Mutant("contour: kernel of another function", "contour", "kernel = self.spacing / math.pi / (z * (z + 1))", "kernel = self.spacing / math.pi / (z * z)", _AGREE + _PARITY),
    Mutant("contour: upper end below the value", "contour", "(value - error - aliasing, value, value + error)", "(value - error - aliasing, value, value - error)", ("test_contour.py",)),
    Mutant("contour: aliases added to the lower end", "contour", "(value - error - aliasing, value,", "(value - error + aliasing, value,", ("test_contour.py", "test_accounting.py", *_AGREE)),
    Mutant("contour: rounding dropped", "contour", "self.error = self.e2 + self.spoiled + size * allowance", "self.error = self.e2", ("test_contour.py",)),
    Mutant("contour: tail of the frequencies dropped", "contour", "        return tail / math.pi", "        return 0.0", ("test_contour.py", "test_accounting.py", *_AGREE)),
    Mutant("contour: certified end inside", "contour", "high, low = root + width, root - width", "high, low = root - width, root - width", ("test_contour.py", "test_accounting.py")),
    Mutant("contour: certified by the lower bound", "contour", "integral.log_bounds(high)[2] <= log_delta", "integral.log_bounds(high)[0] <= log_delta + 1e-6", ("test_contour.py", "test_accounting.py")),
    # Few rounds and rare sampling.
    Mutant("split: bulk forgotten in the upper end", "rare", "value, value + error + extra)", "value, value + error)", ("test_rare.py",)),
    Mutant("split: bulk's share taken off twice", "rare", "(value - error - aliasing, value, value + error + extra)", "(value - error - aliasing, value, value - error - extra)", ("test_rare.py",)),
    Mutant("split: rounds forgotten", "rare", "return self.rounds * tail\n", "return tail\n", ("test_rare.py",)),
    Mutant("split: pad inwards", "rare", "return lower - pad, middle, upper + pad", "return lower - pad, middle, upper - 1e3 * pad", ("test_rare.py",)),
    Mutant("split: scale of the sum halved", "rare", "c, scale = self.c, self.spacing / math.pi", "c, scale = self.c, self.spacing / math.pi / 2", ("test_rare.py", *_AGREE)),
    Mutant("split: transform of the tail alone", "rare", "if len(nodes) == 1:", "if True:", ("test_rare.py",)),
    # The lattice.
    Mutant("lattice: infinite losses dropped", "_lattice_sum", "return float(np.logaddexp(finite, self.log_infinite))", "return float(finite)", ("test_lattice.py", *_COARSE)),
    Mutant("lattice: infinite losses of one round for all", "_lattice_sum", "law.log_infinite + math.log(rounds)", "law.log_infinite", ("test_lattice.py", *_COARSE)),
    Mutant("lattice: slack taken off", "_lattice_sum", "math.log(max(value, 0.0) + slack)", "math.log(max(value - 1e3 * slack, 1e-300))", ("test_lattice.py",)),
    Mutant("lattice: epsilon rounded up to the grid", "_lattice_sum", "n = math.floor((epsilon - self.origin) / h)", "n = math.ceil((epsilon - self.origin) / h)", _COARSE),
    Mutant("lattice: aliases not taken off the lower end", "_lattice_sum", "left = value - slack - math.exp(min(self._log_aliasing(epsilon) - lead, 700.0))", "left = value - slack", ("test_lattice.py", *_COARSE)),
    Mutant("lattice: tilt of the masses forgotten", "_lattice_sum", "lead = self.log_moment - c * at", "lead = self.log_moment - c * epsilon", _COARSE),
    Mutant("lattice: low losses dropped from the upper law", "_lattice_law", "self._add(self.upper, at, step.log_low_tail)", "pass", _of(PROPERTIES, "test_what_lies_below_the_window_is_kept_by_the_upper_law")),
    Mutant("lattice: high losses dropped from the upper law", "_lattice_law", "self.log_infinite = step.log_high_tail", "self.log_infinite = -math.inf", ("test_lattice.py", *_COARSE)),
    Mutant("lattice: low losses rounded down", "_lattice_law", "at = math.ceil((step.low - offset) / h)", "at = math.floor((step.low - offset) / h)", ("test_lattice.py", *_LAWS)),
    Mutant("lattice: all mass rounded down", "_lattice_law", "upper[1:] += math.exp(c * h) * share[:-1]", "upper[:-1] += share[:-1]", _LAWS),
    Mutant("lattice: chords without the far end", "_lattice_law", "upper[1:] += math.exp(c * h) * share[:-1]", "pass", _LAWS),
    Mutant("lattice: lower law without its repair", "_lattice_law", "mass = merged.copy()\n    from_below, from_above = np.maximum(miss, 0.0), np.maximum(-miss, 0.0)", "mass = merged.copy()\n    from_below, from_above = np.maximum(-miss, 0.0), np.maximum(miss, 0.0)", _LAWS),
    Mutant("lattice: high losses above the window kept in the lower law", "_lattice_law", "at = math.floor((self.step.high - self.offset) / self.h)", "at = math.ceil((self.step.high - self.offset) / self.h) + 2", ("test_lattice.py", *_LAWS)),
    Mutant("lattice: remove and add swapped", "_lattice_law", "self.sign = 1 if direction == \"remove\" else -1", "self.sign = -1 if direction == \"remove\" else 1", _AGREE),
    Mutant("lattice: ends exchanged", "lattice", "high = _crossing(upper.log_bound, log_delta, solver, +1, relative_width)", "high = _crossing(upper.log_bound, log_delta, solver, -1, relative_width)", ("test_lattice.py",)),
    Mutant("lattice: upper end from the lower law", "lattice", "ends = least, min(upper.log_bound(epsilon), 0.0)", "ends = least, min(least + 1e-12, 0.0)", ("test_lattice.py", *_AGREE)),
    Mutant("lattice: wrong end of the last interval", "lattice", "    return high if side > 0 else low\n", "    return low\n", ("test_lattice.py",)),
    # Renyi.
    Mutant("Renyi: rounds forgotten", "renyi", "value = rounds * _curve_value(\"curve\", curve, order)", "value = _curve_value(\"curve\", curve, order)", ("test_renyi.py",)),
    Mutant("Renyi: composition by the largest", "renyi", "upper = math.fsum(rounds * value.upper for value, rounds in values)", "upper = max(rounds * value.upper for value, rounds in values)", _RENYI),
    Mutant("Renyi: lower ends used", "renyi", "upper = math.fsum(rounds * value.upper for value, rounds in values)", "upper = math.fsum(rounds * value.lower for value, rounds in values) * 0.99", _RENYI),
    Mutant("Renyi: the smaller direction", "renyi", "top = max(sides, key=lambda side: side.upper)", "top = min(sides, key=lambda side: side.upper)", ("test_renyi.py",)),
    Mutant("Renyi: conversion too generous", "renyi", "return -s * math.log1p(1 / s) - math.log1p(s)", "return -2 * s * math.log1p(1 / s) - 2 * math.log1p(s)", ("test_renyi.py", *_RENYI)),
    Mutant("Renyi: order instead of order - 1", "renyi", "return value + extra / (order - 1) +", "return value + extra / order +", ("test_renyi.py",)),
    Mutant("Renyi: remove and add swapped", "renyi", "\"remove\": (1,), \"add\": (-1,)", "\"remove\": (-1,), \"add\": (1,)", _RENYI),
    # MMCC.
    Mutant("MMCC: entries rounded down", "conditional", "np.ceil(np.asarray(entries)", "np.floor(np.asarray(entries)", ("test_conditional.py", "test_matrix_mechanism.py")),
    Mutant("MMCC: truncation forgotten", "conditional", "lost = float(counts @ (laws.overflow + laws.shortfall))", "lost = 0.0", ("test_conditional.py",)),
    Mutant("MMCC: oldest entry of a group", "conditional", "values = entries[ages.edges[:groups] + 1]", "values = entries[ages.edges[1 : groups + 1]]", ("test_conditional.py", "test_matrix_mechanism.py")),
    Mutant("MMCC: one row of each kind", "conditional", "pairs = [(mixture, int(count)) for", "pairs = [(mixture, 1) for", _MMCC),
    Mutant("MMCC: present participation without amplification's rate", "conditional", "laws.add(entries[0], bernoulli_numbers([p]))", "laws.add(entries[0], bernoulli_numbers([p / 2]))", ("test_conditional.py", "test_matrix_mechanism.py")),
    Mutant("MMCC: group's size forgotten", "conditional", "binomial_numbers(int(sizes[g]), float(amounts[g]), negligible)", "binomial_numbers(1, float(amounts[g]), negligible)", ("test_conditional.py", "test_matrix_mechanism.py")),
    Mutant("MMCC: quantile of the wrong tail", "_tails", "return -special.ndtri(tail) * np.sqrt(norms) + taken", "return special.ndtri(tail) * np.sqrt(norms) + taken", _TAILS),
    Mutant("MMCC: participations forgotten", "_tails", "* np.sqrt(norms) + taken - norms / 2", "* np.sqrt(norms) - norms / 2", _TAILS),
    Mutant("MMCC: Chernoff bound without its tail", "_tails", "norms + log_moment(order) + need) / order", "norms + log_moment(order)) / order", _TAILS),
    Mutant("MMCC: quantile one too small", "_tails", "result.append(min(t, int(number)))", "result.append(max(min(t, int(number)) - 1, 0))", _TAILS),
    Mutant("MMCC: posterior rounded down", "_tails", "+ exponent + 1e-11 * (1 + np.abs(exponent))", "+ exponent - 1e-9 * (1 + np.abs(exponent))", _TAILS),
    Mutant("MMCC: atoms rounded down", "_row_law", "lost += self._shift(new, old, mass * share, low + 1)", "lost += self._shift(new, old, mass * share, low)", _ROWS),
    Mutant("MMCC: atoms rounded to the nearest in mean", "_row_law", "share = np.minimum(np.expm1(-kappa * offset) / np.expm1(-kappa * self.step), 1.0)", "share = offset / self.step", _ROWS),
    # Certificates.
    Mutant("certificate: bound without its failure probability", "_betting", "needed = (math.log(1 / failure_probability) + _CAPITAL_ALLOWANCE) / len(scaled)", "needed = _CAPITAL_ALLOWANCE / len(scaled)", _CONFIDENCE),
    Mutant("certificate: failure probability squared away", "_betting", "needed = (math.log(1 / failure_probability) +", "needed = (math.log(1 / failure_probability) / 2 +", _CONFIDENCE),
    Mutant("certificate: crossing rounded down", "_betting", "    while missing(min(1.0, mean * (1 + right))) > 0:\n        right *= 2\n    return min(1.0, mean * (1 + right))", "    return min(1.0, mean * (1 - 1e-6))", _CONFIDENCE),
    Mutant("certificate: bound of the samples halved", "_certificate", "upper=float(min(1.0, sampler.bound * (upper + sampler.extra) * (1 + 1e-12)))", "upper=float(min(1.0, sampler.bound * (upper + sampler.extra) / 2))", _CERTIFICATE),
    Mutant("certificate: the mean as its own bound", "_certificate", "upper = _betting.betting(values, 1.0, failure_probability, bet)", "upper = float(values.mean()) * 0.98", _CERTIFICATE),
    Mutant("certificate: pilot's samples used again", "_certificate", "_PILOT, _FINAL = 4, 5", "_PILOT, _FINAL = 4, 4", ("test_tuples.py",)),
    Mutant("certificate: remove, payoff at half the density", "_tuples", "        return np.bincount(paying[0], terms, len(base)) * (self.step", "        return np.bincount(paying[0], terms, len(base)) / 2 * (self.step", _SAMPLES),
    Mutant("certificate: add, half-space too far away", "_tuples", "threshold = min(threshold, 35.0)", "threshold = min(threshold + 0.5, 35.0)", _SAMPLES + ("test_tuples.py",)),
    Mutant("certificate: add, draws outside the half-space", "_tuples", "points = special.ndtri(chance * ((i + places) / _LINE_POINTS))", "points = special.ndtri((i + places) / _LINE_POINTS)", _SAMPLES),
    Mutant("certificate: unresolved draws count as 0", "_tuples", "return np.where(valid, np.minimum(result, 1.0), 1.0)", "return np.where(valid, np.minimum(result, 1.0), 0.0)", ("test_tuples.py",)),
    Mutant("certificate: cut-off of the line dropped", "_tuples", "return self.missed + _BEYOND / self.peak", "return 0.0", ("test_tuples.py",)),
    Mutant("certificate: Gram matrix from below", "_tuples", "extra = math.sqrt(max(missing, 0.0)) * (1 + 4 * UNIT)", "extra = 0.0", ("test_tuples.py",)),
    # Exact bins.
    Mutant("lognormals: remove and add swapped", "_lognormal", "self.sign = 1 if side == \"remove\" else -1", "self.sign = -1 if side == \"remove\" else 1", _LOGNORMAL),
    Mutant("lognormals: tail mass dropped", "_lognormal", "(high, plan.log_cut(law), log_linear, log_error, log_outer)", "(high,)", _LOGNORMAL + ("test_lognormal.py",)),
    Mutant("lognormals: upper end from the lower sum", "_lognormal", "upper = sum(map(value, (high,", "upper = sum(map(value, (low,", _LOGNORMAL),
    Mutant("lognormals: one bin's bound for half the modes", "_lognormal", "log_plain = _log_plain(math.sqrt(norm_squared), epsilon)", "log_plain = _log_plain(math.sqrt(norm_squared / 2), epsilon)", _LOGNORMAL + ("test_lognormal.py",)),
    Mutant("lognormals: epsilon's ends exchanged", "_lognormal", "(1, lambda answer: answer.upper <= delta)", "(1, lambda answer: True)", _INVERSE + ("test_lognormal.py",)),
    # One fault for each property that the faults above may leave to others.
    Mutant("property: epsilon forgotten in the lead", "contour", "lead = self.log_moment - self.c * epsilon", "lead = self.log_moment", _of(PROPERTIES, "test_delta_falls_and_is_convex[contour]")),
    Mutant("property: directions of the contour swapped", "contour", "sign = 1 if direction == \"remove\" else -1\n        self.families", "sign = -1 if direction == \"remove\" else 1\n        self.families", _of(PROPERTIES, "test_add_is_at_most_remove[contour]")),
    Mutant("property: both is the smaller direction", "_validate", "return \"remove\" if direction(value) == \"both\" else value", "return \"add\" if direction(value) == \"both\" else value", _of(PROPERTIES, "test_both_is_the_larger_direction")),
    Mutant("property: noise multiplies", "mixtures", "(\"shifts\", values / sigma)", "(\"shifts\", values * min(sigma, 3.0))", _of(PROPERTIES, "test_more_sampling_or_less_noise_costs_more[auto]")),
    Mutant("property: rounds divide", "contour", "self.log_moment = float(sum(n.rounds @ n.log_moment for", "self.log_moment = float(sum(n.log_moment.sum() for", _of(PROPERTIES, "test_more_rounds_cost_more[contour]")),
    Mutant("property: a group's sampling falls with its size", "mixtures", "hits, misses = j * math.log(q), (k - j) * math.log1p(-q)", "hits, misses = j * math.log(q / k**3), (k - j) * math.log1p(-q / k**3)", _of(PROPERTIES, "test_a_larger_group_costs_more[auto]")),
    Mutant("property: the largest sensitivity hides the others", "mixtures", "(\"shifts\", values / sigma)", "(\"shifts\", values / sigma / (1 + values[-1]) ** 2)", _of(PROPERTIES, "test_larger_sensitivities_cost_more[auto]")),
    Mutant("property: chances exchanged", "mixtures", "self._set(sigma, s, np.log(p), log_probability_error=4 * EPS)", "self._set(sigma, s, np.log(p[::-1]), log_probability_error=4 * EPS)", _of(PROPERTIES, "test_hiding_which_mixture_it_was_costs_less[auto]")),
    Mutant("property: smallest coordinate for the norm", "mixtures", "norms = np.linalg.norm(self.modes, axis=1)", "norms = np.abs(self.modes).min(axis=1)", _of(PROPERTIES, "test_norms_dominate_vectors")),
    Mutant("property: rounds squared", "accounting", "rounds * float(m.shifts[0]) ** 2 for", "rounds**2 * float(m.shifts[0]) ** 2 for", _of(PROPERTIES, "test_any_poisson_setting_is_answered_or_refused")),
    Mutant("property: last iterate with the noise of one round", "mechanisms", "sigma = float(self.noise_multiplier) * math.sqrt(steps)", "sigma = float(self.noise_multiplier)", _of(PROPERTIES, "test_the_last_iterate_costs_less")),
    Mutant("property: larger batches sample less", "mixtures", "np.log((k - j) * (b - j) / (", "np.log((k - j) / (b - j) / (", _of(PROPERTIES, "test_fixed_batches_are_monotone")),
    Mutant("property: Renyi divergences of unlike rounds not added", "renyi", "upper = math.fsum(rounds * value.upper for value, rounds in values)", "upper = max(rounds * value.upper for value, rounds in values)", _of(PROPERTIES, "test_renyi_divergences")),
    Mutant("property: Renyi bound of one round", "renyi", "value = rounds * _curve_value(\"curve\", curve, order)", "value = _curve_value(\"curve\", curve, order) / 2", _of(PROPERTIES, "test_renyi_bounds_are_above_the_others")),
    Mutant("property: number of bins forgotten", "_lognormal", "log_strike = math.log(bins) + self.sign * epsilon", "log_strike = math.log(bins) / 2 + self.sign * epsilon", _of(BINS, "test_sums_of_lognormals")),
    Mutant("property: lognormals' tail cut off", "_lognormal", "(high, plan.log_cut(law), log_linear, log_error, log_outer)", "(high - 1,)", _of(BINS, "test_coarse_grids_of_lognormals_contain_the_truth")),
    Mutant("property: estimates of other modes", "montecarlo", "found = _importance.estimate(gram, epsilon, side, seed", "found = _importance.estimate(gram / gram.max(), epsilon, side, seed", _of(BINS, "test_larger_entries_of_the_gram_matrix_cost_more")),
    Mutant("property: one batch at half the norm", "_exact_bins", "gaussian.epsilon(math.sqrt(norm_squared) * (1", "gaussian.epsilon(math.sqrt(norm_squared) / 2 * (1", _of(BINS, "test_one_batch_and_any_noise")),
    Mutant("property: MMCC at delta_1 alone", "conditional", "return pairs, delta_1, lost\n\n\ndef void", "return pairs[:1], delta_1, lost\n\n\ndef void", _of(BINS, "test_mmcc_is_above_what_a_line_shows")),
    Mutant("property: the past lowers the odds", "_tails", "special.logit(probability) + exponent +", "special.logit(probability) - exponent +", _of(BINS, "test_published_bounds_are_monotone")),
]

# Why a random mutant that survived is harmless: it moves no bound to the unsafe side, or nothing at all.
SURVIVORS = {}
