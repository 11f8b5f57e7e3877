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


_CONVEXITY = _of("test_matrix_mechanism.py", "test_where_no_accountant_closes_convexity_answers")


_AGREE = _of(PROPERTIES, "test_all_accountants_agree")
_PARITY = _of(PROPERTIES, "test_parity_of_compositions")
_LAWS = _of(PROPERTIES, "test_lattice_laws_lie_on_the_right_side_everywhere")
_COARSE = _of(PROPERTIES, "test_coarse_lattices_contain_the_truth")
_RENYI = _of(PROPERTIES, "test_renyi_divergences", "test_renyi_divergences_by_a_sum", "test_renyi_bounds_are_above_the_others")
_SPLITTING = _of(PROPERTIES, "test_splitting_and_order_do_not_matter")
_ENDS = _of("test_contour.py", "test_ends_of_epsilon_are_certified_where_they_lie")
_INFINITE = _of("test_lattice.py", "test_infinite_losses_of_all_rounds_count_in_the_upper_bound_alone")
_WINDOW = _of("test_contour.py", "test_mass_outside_the_window_is_covered")
_COARSE_LINE = _of("test_rare.py", "test_coarse_cells_bound_a_line")
_STATED = _of("test_stated_errors.py", "test_brackets_cover_the_error_that_a_mixture_states")
_OUTSIDE = _of("test_rare.py", "test_mass_outside_the_cells_is_covered")
_WIDE = _of("test_conditional.py", "test_wide_groups_of_ages_cost_more")
_AGES = _of("test_conditional.py", "test_groups_bound_all_inner_products")
_AGED_RUNS = _of("test_conditional.py", "test_simulated_sums_keep_their_budget")
_AGED_MOMENT = _of("test_conditional.py", "test_moment_of_the_quadratic_bound")
_TREE_TAIL = _of("test_conditional_composition.py", "test_published_tail_of_the_library") + ("test_conditional.py",)
_TREE_RUNS = _of("test_conditional.py", "test_the_law_of_a_subtree_is_tight", "test_simulated_trees_keep_their_budget")
_TREE_GRID = _of("test_conditional.py", "test_coarse_laws_of_a_subtree_lie_above_fine_ones", "test_no_mean_of_a_subtree_is_rounded_down")
_ALGORITHM = _of("test_mmcc_statements.py", "test_the_algorithm_is_bounds_rows_and_composition")
_LOGNORMAL = _of(BINS, "test_two_bins_by_quadrature", "test_coarse_grids_of_lognormals_contain_the_truth")
_SAMPLES = _of(BINS, "test_samples_average_to_delta_and_stay_below_their_bound")
_CERTIFICATE = _of(BINS, "test_certificates_are_above_the_truth")
_CONFIDENCE = _of(BINS, "test_confidence_bounds", "test_confidence_bounds_hold_as_often_as_they_say")
_TAILS = _of(BINS, "test_tail_exponents_are_exceeded_as_rarely_as_they_say")
_ROWS = _of(BINS, "test_row_laws_dominate")
_ROW_LAWS = (*_ROWS, "test_row_law.py")
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
    Mutant("delta rounded down", "accounting", "math.nextafter(math.exp(upper), 2.0)", "math.exp(upper) * (1 - 1e-9)", _of("test_mechanisms.py", "test_sampling_everything_is_the_plain_gaussian")),
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
    Mutant("contour: tail of the frequencies dropped", "contour", "        return tail / math.pi", "        return 0.0", _of("test_contour.py", "test_the_bound_on_high_frequencies_covers_them")),
    Mutant("contour: upper end not certified", "contour", "integral.log_bounds(high)[2] <= log_delta", "True", _ENDS),
    Mutant("contour: certified by the lower bound", "contour", "integral.log_bounds(high)[2] <= log_delta", "integral.log_bounds(high)[0] <= log_delta", _ENDS),
    # Few rounds and rare sampling.
    Mutant("split: bulk forgotten in the upper end", "rare", "value, value + error + extra)", "value, value + error)", _of("test_rare.py", "test_the_bulk_is_counted_in_the_upper_end")),
    Mutant("split: bulk's share taken off twice", "rare", "(value - error - aliasing, value, value + error + extra)", "(value - error - aliasing, value, value - error - extra)", ("test_rare.py",)),
    Mutant("split: rounds forgotten", "rare", "return self.rounds * tail\n", "return tail\n", ("test_rare.py",)),
    Mutant("split: pad inwards", "rare", "return lower - pad, middle, upper + pad", "return lower - pad, middle, upper - 1e3 * pad", ("test_rare.py",)),
    Mutant("split: scale of the sum halved", "rare", "c, scale = self.c, self.spacing / math.pi", "c, scale = self.c, self.spacing / math.pi / 2", ("test_rare.py", *_AGREE)),
    Mutant("split: transform of the tail alone", "rare", "if len(nodes) == 1:", "if True:", ("test_rare.py",)),
    # The lattice.
    Mutant("lattice: infinite losses dropped", "_lattice_sum", "return float(np.logaddexp(finite, self.log_infinite))", "return float(finite)", _INFINITE),
    Mutant("lattice: infinite losses of one round for all", "_lattice_sum", "law.log_infinite + math.log(rounds)", "law.log_infinite", _INFINITE),
    Mutant("lattice: slack taken off", "_lattice_sum", "math.log(max(value, 0.0) + slack)", "math.log(max(value - 1e3 * slack, 1e-300))", ("test_lattice.py",)),
    Mutant("lattice: epsilon rounded up to the grid", "_lattice_sum", "n = math.floor((epsilon - self.origin) / h)", "n = math.ceil((epsilon - self.origin) / h)", _COARSE),
    Mutant("lattice: aliases not taken off the lower end", "_lattice_sum", "left = value - slack - math.exp(min(self._log_aliasing(epsilon) - lead, 700.0))", "left = value - slack", ("test_lattice.py", *_COARSE)),
    Mutant("lattice: tilt of the masses forgotten", "_lattice_sum", "lead = self.log_moment - c * at", "lead = self.log_moment - c * epsilon", _COARSE),
    Mutant("lattice: low losses dropped from the upper law", "_lattice_law", "self._add(self.upper, at, step.log_low_tail)", "pass", _of(PROPERTIES, "test_what_lies_below_the_window_is_kept_by_the_upper_law")),
    Mutant("lattice: high losses dropped from the upper law", "_lattice_law", "self.log_infinite = step.log_high_tail", "self.log_infinite = -math.inf", _of("test_lattice.py", "test_what_lies_above_the_window_is_kept_by_the_upper_law_alone")),
    Mutant("lattice: low losses rounded down", "_lattice_law", "at = math.ceil((step.low - offset) / h)", "at = math.floor((step.low - offset) / h)", _of(PROPERTIES, "test_what_lies_below_the_window_is_kept_by_the_upper_law")),
    Mutant("lattice: all mass rounded down", "_lattice_law", "upper[1:] += math.exp(c * h) * share[:-1]", "upper[:-1] += share[:-1]", _LAWS),
    Mutant("lattice: chords without the far end", "_lattice_law", "upper[1:] += math.exp(c * h) * share[:-1]", "pass", _LAWS),
    Mutant("lattice: lower law without its repair", "_lattice_law", "mass = merged.copy()\n    from_below, from_above = np.maximum(miss, 0.0), np.maximum(-miss, 0.0)", "mass = merged.copy()\n    from_below, from_above = np.maximum(-miss, 0.0), np.maximum(miss, 0.0)", _LAWS),
    Mutant("lattice: high losses above the window kept in the lower law", "_lattice_law", "at = math.floor((self.step.high - self.offset) / self.h)", "at = math.ceil((self.step.high - self.offset) / self.h)", _of(PROPERTIES, "test_what_lies_above_the_window_counts_as_its_end_in_the_lower_law")),
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
    Mutant("MMCC: entries rounded down", "conditional", "np.ceil(np.asarray(entries)", "np.floor(np.asarray(entries)", _of("test_matrix_mechanism.py", "test_rounding_entries_as_the_source_does_costs_something")),
    Mutant("MMCC: truncation forgotten", "conditional", "lost = float(counts @ (laws.overflow + laws.shortfall))", "lost = 0.0", ("test_conditional.py",)),
    Mutant("MMCC: oldest entry of a group", "conditional", "values = entries[ages.edges[:groups] + 1]", "values = entries[ages.edges[1 : groups + 1]]", _of("test_conditional.py", "test_a_group_of_ages_has_the_entry_of_its_youngest")),
    Mutant("MMCC: one row of each kind", "conditional", "pairs = [(mixture, int(count)) for", "pairs = [(mixture, 1) for", _MMCC),
    Mutant("MMCC: present participation without amplification's rate", "conditional", "laws.add(entries[0], bernoulli_numbers([p]))", "laws.add(entries[0], bernoulli_numbers([p / 2]))", _of("test_conditional.py", "test_groups_of_rows_are_close_to_single_rows")),
    Mutant("MMCC: group's size forgotten", "conditional", "binomial_numbers(int(sizes[g]), float(amounts[g]), negligible)", "binomial_numbers(1, float(amounts[g]), negligible)", _WIDE),
    Mutant("MMCC: quantile of the wrong tail", "_tails", "return -special.ndtri(tail) * np.sqrt(norms) + taken", "return special.ndtri(tail) * np.sqrt(norms) + taken", _TAILS),
    Mutant("MMCC: participations forgotten", "_tails", "* np.sqrt(norms) + taken - norms / 2", "* np.sqrt(norms) - norms / 2", _TAILS),
    Mutant("MMCC: Chernoff bound without its tail", "_tails", "norms + log_moment(order) + need) / order", "norms + log_moment(order)) / order", _TAILS),
    Mutant("MMCC: quantile one too small", "_tails", "result.append(min(t, int(number)))", "result.append(max(min(t, int(number)) - 1, 0))", _TAILS),
    Mutant("MMCC: posterior rounded down", "_tails", "+ exponent + 1e-11 * (1 + np.abs(exponent))", "+ exponent - 1e-9 * (1 + np.abs(exponent))", _TAILS),
    Mutant("MMCC: atoms rounded down", "_row_law", "lost += self._shift(new, old, mass * share, low + 1)", "lost += self._shift(new, old, mass * share, low)", _ROWS),
    Mutant("MMCC: atoms rounded to the nearest in mean", "_row_law", "share = np.minimum(np.expm1(-kappa * offset) / np.expm1(-kappa * self.step), 1.0)", "share = offset / self.step", _ROWS),
    # Tail bounds by age.
    Mutant("ages: budget of one row's pairs", "_aged", "return self.active * self.count - self.active * (self.active + 1) // 2", "return self.active", _AGES),
    Mutant("ages: inner products of the farthest members", "_aged", "return (result + self._off_diagonal(bottoms)) * _UP", "return (result + self._off_diagonal(tops)) * _UP", _AGES),
    Mutant("ages: norm of a group's youngest member", "_aged", "result = np.diag(self.squared_norms(tops))", "result = np.diag(self.squared_norms(bottoms))", _AGES),
    Mutant("ages: covariance without its repair", "_aged", "return self.upper + np.diag(share * repair + 1e-10 * scale)", "return self.upper", _AGES),
    Mutant("ages: majorant forgotten", "_aged", "np.maximum.accumulate(np.asarray(coefficients, float)[::-1])[::-1]", "np.asarray(coefficients, float)", ("test_conditional.py",)),
    Mutant("ages: one event for each row", "_aged", "float(ages.multiplicities @ np.arange(1, groups + 1))", "float(ages.multiplicities.sum())", _of("test_conditional.py", "test_every_event_is_paid_for")),
    Mutant("ages: intensity of the last group alone", "_aged", "by_terms = before + sizes[g] *", "by_terms = sizes[g] *", _AGED_RUNS),
    Mutant("ages: Chernoff bound of a sum without its tail", "_aged", "return (value + self.need) / order", "return value / order", _AGED_MOMENT),
    Mutant("ages: participations forgotten in a sum", "_aged", "value += float(np.log1p(self.p * np.expm1(exponent)) @ self.sizes_all)", "pass", _AGED_MOMENT),
    Mutant("ages: quadratic below the exponential", "_aged", "return 2 * (math.expm1(reach) - reach) / reach**2", "return (math.expm1(reach) - reach) / reach**2", _of("test_conditional.py", "test_the_quadratic_is_above_the_exponential")),
    Mutant("ages: published, budget of one event twice", "_aged", "tail = delta_1 / (2 * ages.pairs)\n    rows", "tail = delta_1 / ages.pairs\n    rows", ("test_conditional.py",)),
    Mutant("ages: published, smallest sums of neighbours", "_aged", "(sums[taken:] - sums[:-taken]).max(axis=0)", "(sums[taken:] - sums[:-taken]).min(axis=0)", ("test_conditional.py",)),
    # Tail bounds by height.
    Mutant("tree: budget of one column's pairs", "_branches", "return self.trees * self.leaves * self.height", "return self.height", _TREE_TAIL),
    Mutant("tree: budget spent twice", "_branches", "tail = delta_1 / (2 * tree.pairs)", "tail = delta_1 / tree.pairs", _TREE_TAIL),
    Mutant("tree: nodes shared with the next leaf dropped", "_branches", "shared = [a - i for i", "shared = [a - i - 1 for i", _TREE_TAIL + ("test_mmcc_statements.py",)),
    Mutant("tree: level of the sums ten times too rare", "_branches", "np.argmax(survival <= tail)", "np.argmax(survival <= 10 * tail)", _TREE_RUNS),
    Mutant("tree: pool for ten times its share", "_branches", "special.betaincinv(few + 1, m[-1] - few, tail)", "special.betaincinv(few + 1, m[-1] - few, min(30 * tail, 0.9))", _TREE_RUNS),
    Mutant("tree: lost mass is not beyond every level", "_branches", "[1:], 0.0) + lost\n", "[1:], 0.0)\n", _TREE_GRID),
    Mutant("tree: means rounded down", "_branches", "np.minimum(np.ceil((np.exp(logs) - low) / step - 1e-9)", "np.minimum(np.floor((np.exp(logs) - low) / step)", _TREE_GRID),
    Mutant("tree: odd sums rounded down", "_branches", "mean[:, 1:] += pair[:, 1::2]", "mean[:, :-1] += pair[:, 1::2]", _TREE_GRID),
    Mutant("tree: logarithms rounded down", "_branches", "np.clip(np.ceil(np.log(means) / log_step - 1e-9)", "np.clip(np.floor(np.log(means) / log_step)", _TREE_GRID),
    # Tail bounds for all pairs.
    Mutant("pairs: the whole budget for each", "_unstructured", "rule(probability, delta_1 / blocks.pairs)", "rule(probability, delta_1)", ("test_conditional.py",)),
    Mutant("pairs: smallest inner products", "_unstructured", "np.sort(top, axis=1)[:, ::-1]", "np.sort(top, axis=1)", _of("test_conditional.py", "test_published_bounds_take_the_largest_products_of_each_column")),
    Mutant("pairs: chord of one column", "_unstructured", "np.expm1(orders * largest) * (total / largest)", "np.expm1(orders * largest)", _of("test_conditional.py", "test_joint_bounds_of_all_pairs_count_every_column")),
    Mutant("pairs: past without its last row", "_unstructured", "self.starts[block] : self.starts[block + 1]]", "self.starts[block] : self.starts[block + 1] - 1]", ("test_conditional.py",)),
    Mutant("pairs: column's smallest entry in a block", "_unstructured", "squares = np.add.reduceat(self.array**2, starts, axis=0)", "squares = np.minimum.reduceat(self.array**2, starts, axis=0)", ("test_matrix_mechanism.py",)),
    # Row laws.
    Mutant("rows: mass beyond the top of the grid lost", "_row_law", "self.overflow[part] += lost", "pass", _ROW_LAWS),
    Mutant("rows: shortfall of the split lost", "_row_law", "self.shortfall[part] += split * special.ndtr(-self.threshold)", "pass", _ROW_LAWS),
    Mutant("rows: larger numbers dropped", "_row_law", "lost = old.sum(axis=1) * beyond", "lost = np.zeros(len(old))", _of("test_row_law.py", "test_no_mass_is_lost")),
    Mutant("rows: coins as Poisson numbers of the same mean", "_row_law", "(-np.log1p(-chances) @ to_cells)", "(chances @ to_cells)", _ROW_LAWS),
    Mutant("rows: jumps beyond the top lost", "_row_law", "self.overflow += np.exp(np.minimum(log_beyond, 0.0))", "pass", _ROW_LAWS),
    Mutant("rows: no binomial number beyond the last", "_row_law", "beyond = special.bdtrc(count, trials, probability) * (1 + 1e-9)", "beyond = 0.0", _of("test_row_law.py", "test_numbers_that_are_left_out_are_counted")),
    # The factors of the contour, and those of the split contour.
    Mutant("factors: lines of the strip dropped", "_families", "np.logaddexp(math.log(2) + np.min(lines - decay, axis=0), log_tail)", "log_tail + 0 * np.min(lines - decay, axis=0)", ("test_contour.py",)),
    Mutant("factors: mass outside the window dropped", "_families", "np.logaddexp(math.log(2) + np.min(lines - decay, axis=0), log_tail)", "math.log(2) + np.min(lines - decay, axis=0)", _WINDOW),
    Mutant("factors: error taken off the moment", "_families", "self._lines[c][-1] - np.log1p(-error) + self.rounding(c)", "self._lines[c][-1] - np.log1p(error)", _WINDOW),
    Mutant("factors: modulus without what is beyond the cut", "_families", "(sums[..., 1:] + rest[:, None] + error)", "sums[..., 1:]", ("test_contour.py",)),
    Mutant("factors: boundary values of the decay dropped", "_families", "total = at(variation, j) - at(variation, i) + at(g, i) + at(g, j)", "total = at(variation, j) - at(variation, i)", _of("test_contour.py", "test_what_a_part_of_the_nodes_contributes_falls_like_one_over_y")),
    Mutant("factors: no rounding of the moments", "_families", "return _ROUNDING_SAFETY * (base + c * error)", "return 0.0 * (base + c * error)", _STATED + ("test_contour.py",)),
    Mutant("factors: no rounding of the transform", "_families", "return _ROUNDING_SAFETY * (scale[:, None]", "return 0.0 * (scale[:, None]", _of("test_stated_errors.py", "test_transforms_of_one_round_cover_it")),
    Mutant("factors: remove and add swapped", "_families", "return 1 + c if self.sign > 0 else -c", "return -c if self.sign > 0 else 1 + c", _AGREE + ("test_contour.py",)),
    Mutant("lines: argument of the farther end", "_lines", "edge = argument[1:] if frequency > 0 else argument[:-1] * (1 - 1e-9)", "edge = argument[:-1] if frequency > 0 else argument[1:]", _COARSE_LINE),
    Mutant("lines: power of the smaller end", "_lines", "power = (1 + c) * self.loss[1:] if self.side.sign > 0 else -c * ratio.real[:-1]", "power = (1 + c) * self.loss[:-1] if self.side.sign > 0 else -c * ratio.real[1:]", _COARSE_LINE),
    Mutant("lines: mass outside the cells dropped", "_lines", "return float(np.logaddexp(log_sum_exp(cells + frequency * edge), outside))", "return float(log_sum_exp(cells + frequency * edge))", _OUTSIDE),
    Mutant("lines: share off the real line as on it", "_lines", "return math.log(math.sqrt(2) * special.dawsn(y / math.sqrt(2))) + y * y / 2 - LOG_SQRT_2PI", "return -math.inf", ("test_rare.py",)),
    Mutant("lines: rounding dropped", "_lines", "return _SAFETY * float(weights @ size), _SAFETY * slope", "return 0.0, 0.0", ("test_rare.py",)),
    Mutant("lines: remove and add swapped", "_lines", "self.sign = 1 if direction == \"remove\" else -1", "self.sign = -1 if direction == \"remove\" else 1", ("test_rare.py",)),
    # One round's Renyi divergence.
    Mutant("Renyi: strip bound dropped", "_moments", "return float(np.logaddexp(error.min(), gauss)), _level_of(step)", "return -800.0, _level_of(step)", ("test_renyi.py",)),
    Mutant("Renyi: what lies outside dropped", "_moments", "return float(np.logaddexp.reduce(parts))", "return -800.0", ("test_renyi.py",)),
    Mutant("Renyi: rounding taken off", "_moments", "math.log1p(math.exp(strip) + math.exp(outside)) + rounding", "math.log1p(math.exp(strip) + math.exp(outside)) - rounding", ("test_renyi.py",)),
    Mutant("Renyi: one component at order - 1", "_moments", "low, high = ((order / s) * x for x in", "low, high = (x for x in", ("test_renyi.py",)),
    Mutant("Renyi: a Gaussian's order less one", "_moments", "value = order * self.top * self.top / 2", "value = (order - 1) * self.top * self.top / 2", ("test_renyi.py",)),
    Mutant("Renyi: directions of one round swapped", "_moments", "self.w = 1 + s if sign > 0 else -s", "self.w = -s if sign > 0 else 1 + s", ("test_renyi.py",)),
    # Noise for a target.
    Mutant("calibration: the unsafe side", "calibrate", "    return high, slope\n", "    return low, slope\n", ("test_calibrate.py",)),
    Mutant("calibration: lower end meets the target", "calibrate", "return bracket.upper - self.target", "return bracket.lower - self.target", _of("test_calibrate.py", "test_a_wide_bracket_costs_noise")),
    Mutant("calibration: last step of the bound left out", "calibrate", "        while excess(x, mechanism) > 0:\n            x += _BOUND_TOLERANCE\n", "        x -= _BOUND_TOLERANCE\n", _of("test_matrix_mechanism.py", "test_calibrated_noise_is_the_smallest")),
    Mutant("calibration: effective noise of another rate", "calibrate", "noise[order] = np.exp([solution for _, solution in known]) / rates.ravel()[order]", "noise[order] = np.exp([solution for _, solution in known]) / rates.ravel()", ("test_calibrate.py",)),
    Mutant("one step: sampling forgotten in epsilon", "one_step", "near = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / q)", "near = np.log1p(np.expm1(np.minimum(epsilon, 1.0)) / q**2)", ("test_one_step.py",)),
    Mutant("one step: sampling counted twice", "one_step", "return _plain(q * np.exp(_log_gaussian(_unsampled(epsilon, q), 1 / sigma)))", "return _plain(q * q * np.exp(_log_gaussian(_unsampled(epsilon, q), 1 / sigma)))", ("test_one_step.py",)),
    Mutant("one step: allowance on the unsafe side", "one_step", "aim = log_ratio - allowance", "aim = log_ratio + allowance", ("test_one_step.py",)),
    Mutant("one step: noise rounded down", "one_step", "return np.exp(low).reshape(shape)", "return np.exp(low + 1e-11).reshape(shape)", ("test_one_step.py",)),
    # The mechanisms and their sampling.
    Mutant("mechanisms: group forgotten", "mechanisms", "self.batch_size, self.dataset_size, self.group_size, self.noise_multiplier", "self.batch_size, self.dataset_size, 1, self.noise_multiplier", ("test_mechanisms.py",)),
    Mutant("matrix bounds: bad event not paid for", "_matrix_bounds", "left = delta - max(rows.delta_1 for rows, _ in sums)", "left = delta", _ALGORITHM),
    Mutant("matrix bounds: truncation not paid for", "_matrix_bounds", "return (1 - _MARGIN) * left if", "return (1 + 1e-2) * left if", _of("test_matrix_mechanism.py", "test_truncation_costs_most_when_adding")),
    Mutant("rows: convexity with the chance squared", "_composed_rows", "return log_taken + 1e-12,", "return 2 * log_taken + 1e-12,", _CONVEXITY),
    Mutant("rows: convexity with the largest sensitivity of one row", "_composed_rows", "math.fsum(count * float(mixture.shifts[-1]) ** 2", "max(float(mixture.shifts[-1]) ** 2", _CONVEXITY),
    Mutant("rows: convexity with the chance of one row", "_composed_rows", "math.fsum(count * mixture.log_floor", "max(mixture.log_floor", _CONVEXITY),
    Mutant("rows: the chance of any participation on the wrong side", "_composed_rows", "log_delta = math.log(delta) - log_taken", "log_delta = math.log(delta) - 2 * log_taken", _CONVEXITY),
    Mutant("matrix bounds: the best group of columns", "_matrix_bounds", "value = max(law.epsilon(left) for _, law in sums)", "value = min(law.epsilon(left) for _, law in sums)", _of("test_matrix_mechanism.py", "test_the_worst_group_of_columns_counts")),
    Mutant("few: the smallest columns", "_few", "np.max([_largest_sums(gram, most) for gram in self._grams], axis=0)", "np.min([_largest_sums(gram, most) for gram in self._grams], axis=0)", _of("test_few_participations.py", "test_norms_bound_every_set_of_columns")),
    Mutant("few: inner products once", "_few", "squares[lag + 1 :] += 2 * (k", "squares[lag + 1 :] += (k", _of("test_few_participations.py", "test_norms_bound_every_set_of_columns")),
    Mutant("few: several participations are free", "_few", "(several + math.exp(log_single))", "math.exp(log_single)", _of("test_few_participations.py", "test_one_participation_by_moments_bounds_the_truth")),
    Mutant("few: chance of none left out of the threshold", "_few", "math.expm1(epsilon) - math.expm1(rounds * miss)", "math.expm1(epsilon) - 2 * math.expm1(rounds * miss)", _of("test_few_participations.py", "test_one_participation_by_moments_bounds_the_truth")),
    Mutant("row sum: a cell's mass at its lower end", "_row_sum", "right = np.clip(right, 0.0, q)", "right = 0.4 * np.clip(right, 0.0, q)", ("test_row_sum.py",)),
    Mutant("row sum: what is cut is free", "_row_sum", "math.exp(min(exponent, 0.0)) + self.infinite * (1 + 1e-9)", "math.exp(min(exponent, 0.0))", ("test_row_sum.py",)),
    Mutant("row sum: down to the lattice", "_row_sum", "math.expm1(-width), 0.0, 1.0)  # of", "math.expm1(-width), 0.0, 0.0)  # of", ("test_row_sum.py",)),
    Mutant("batches: average rate inside a part", "batching", "min(b * p, 1.0), rng)", "p, rng)", ("test_batching.py",)),
    Mutant("batches: every record in the first slices", "batching", "np.array_split(rng.permutation(n), b)", "np.array_split(np.arange(n), b)", ("test_batching.py",)),
    # Estimates: no bounds, but the directions must not be swapped.
    Mutant("estimates: proposals of the other direction", "_importance", "make = RemoveProposal if side == \"remove\" else AddProposal", "make = AddProposal if side == \"remove\" else RemoveProposal", ("test_importance.py",)),
    Mutant("estimates: error of all lines in one block", "_importance", "np.std(blocks[:, 0], ddof=1) / math.sqrt(BLOCKS)", "np.std(blocks[:, 0], ddof=1) / BLOCKS", _of("test_importance.py", "test_the_stated_error_of_an_estimate_is_that_of_repetitions")),
    Mutant("truth: remove and add swapped", "_half_line", "remove = direction == \"remove\"", "remove = direction != \"remove\"", ("test_truth.py",)),
    Mutant("truth: participations beyond the counted ones free", "_half_line", "self.left_out = float(tails[self._most])", "self.left_out = 0.0", _of("test_truth.py", "test_what_is_left_out_of_a_forest_is_in_its_upper_end")),
    # Certificates.
    Mutant("certificate: bound without its failure probability", "_betting", "needed = (math.log(1 / failure_probability) + _CAPITAL_ALLOWANCE) / len(scaled)", "needed = _CAPITAL_ALLOWANCE / len(scaled)", _CONFIDENCE),
    Mutant("certificate: failure probability squared away", "_betting", "needed = (math.log(1 / failure_probability) +", "needed = (math.log(1 / failure_probability) / 2 +", _CONFIDENCE),
    Mutant("certificate: crossing rounded down", "_betting", "    while missing(min(1.0, mean * (1 + right))) > 0:\n        right *= 2\n    return min(1.0, mean * (1 + right))", "    return min(1.0, mean * (1 - 1e-6))", _CONFIDENCE),
    Mutant("certificate: bound of the samples halved", "_certificate", "upper=float(min(1.0, sampler.bound * (upper + sampler.extra) * (1 + 1e-12)))", "upper=float(min(1.0, sampler.bound * (upper + sampler.extra) / 2))", _CERTIFICATE),
    Mutant("certificate: the mean as its own bound", "_certificate", "upper = _betting.betting(values, 1.0, failure_probability, bet)", "upper = float(values.mean()) * 0.98", _CERTIFICATE),
    Mutant("certificate: pilot's samples used again", "_certificate", "_PILOT, _FINAL = 4, 5", "_PILOT, _FINAL = 4, 4", _of("test_tuples.py", "test_the_final_samples_are_fresh")),
    Mutant("certificate: remove, payoff at half the density", "_tuples", "        return np.bincount(paying[0], terms, len(base)) * (self.step", "        return np.bincount(paying[0], terms, len(base)) / 2 * (self.step", _SAMPLES),
    Mutant("certificate: add, half-space too far away", "_tuples", "threshold = min(threshold, 35.0)", "threshold = min(threshold + 0.5, 35.0)", _SAMPLES + ("test_tuples.py",)),
    Mutant("certificate: add, draws outside the half-space", "_tuples", "points = special.ndtri(chance * ((i + places) / _LINE_POINTS))", "points = special.ndtri((i + places) / _LINE_POINTS)", _SAMPLES),
    Mutant("certificate: unresolved draws count as 0", "_tuples", "return np.where(valid, np.minimum(result, 1.0), 1.0)", "return np.where(valid, np.minimum(result, 1.0), 0.0)", _of("test_tuples.py", "test_far_normals_count_as_the_bound")),
    Mutant("certificate: cut-off of the line dropped", "_tuples", "return self.missed + _BEYOND / self.peak", "return 0.0", _of("test_tuples.py", "test_what_the_drawn_tuples_miss_is_added")),
    Mutant("certificate: Gram matrix from below", "_tuples", "extra = math.sqrt(max(missing, 0.0)) * (1 + 4 * UNIT)", "extra = 0.0", _of("test_tuples.py", "test_factor_is_above_in_exact_arithmetic")),
    # Exact bins.
    Mutant("lognormals: remove and add swapped", "_lognormal", "self.sign = 1 if side == \"remove\" else -1", "self.sign = -1 if side == \"remove\" else 1", _LOGNORMAL),
    Mutant("lognormals: tail mass dropped", "_lognormal", "(high, plan.log_cut(law), log_linear, log_error, log_outer)", "(high,)", _LOGNORMAL + ("test_lognormal.py",)),
    Mutant("lognormals: upper end from the lower sum", "_lognormal", "upper = sum(map(value, (high,", "upper = sum(map(value, (low,", _LOGNORMAL),
    Mutant("lognormals: one bin's bound for half the modes", "_lognormal", "log_plain = _log_plain(math.sqrt(norm_squared), epsilon)", "log_plain = _log_plain(math.sqrt(norm_squared / 2), epsilon)", _LOGNORMAL + ("test_lognormal.py",)),
    Mutant("lognormals: upper end of epsilon not confirmed", "_lognormal", "(1, lambda answer: answer.upper <= delta)", "(1, lambda answer: True)", _of("test_lognormal.py", "test_ends_of_epsilon_are_confirmed_by_wide_brackets")),
    # One fault for each property that the faults above may leave to others.
    Mutant("property: epsilon forgotten in the lead", "contour", "lead = self.log_moment - self.c * epsilon", "lead = self.log_moment", _of(PROPERTIES, "test_delta_falls_and_is_convex[contour]")),
    Mutant("property: directions of the contour swapped", "contour", "sign = 1 if direction == \"remove\" else -1\n        self.families", "sign = -1 if direction == \"remove\" else 1\n        self.families", _of(PROPERTIES, "test_add_is_at_most_remove[contour]")),
    Mutant("property: both is the smaller direction", "_validate", "return \"remove\" if direction(value) == \"both\" else value", "return \"add\" if direction(value) == \"both\" else value", _of(PROPERTIES, "test_both_is_the_larger_direction")),
    Mutant("property: noise multiplies", "mixtures", "(\"shifts\", values / sigma)", "(\"shifts\", values * min(sigma, 3.0))", _of(PROPERTIES, "test_more_sampling_or_less_noise_costs_more[auto]")),
    Mutant("property: rounds divide", "contour", "self.log_moment = float(sum(n.rounds @ n.log_moment for", "self.log_moment = float(sum(n.log_moment.sum() for", _AGREE),
    Mutant("property: a group's sampling falls with its size", "mixtures", "hits, misses = j * math.log(q), (k - j) * math.log1p(-q)", "hits, misses = j * math.log(q / k**3), (k - j) * math.log1p(-q / k**3)", _of(PROPERTIES, "test_a_larger_group_costs_more[auto]")),
    Mutant("property: the largest sensitivity hides the others", "mixtures", "(\"shifts\", values / sigma)", "(\"shifts\", values / sigma / (1 + values[-1]) ** 2)", _of("test_accounting.py", "test_delta_of_every_reference_value_is_inside")),
    Mutant("property: chances exchanged", "mixtures", "self._set(sigma, s, np.log(p), log_probability_error=4 * EPS)", "self._set(sigma, s, np.log(p[::-1]), log_probability_error=4 * EPS)", _of(PROPERTIES, "test_hiding_which_mixture_it_was_costs_less[auto]")),
    Mutant("property: smallest coordinate for the norm", "mixtures", "norms = np.linalg.norm(self.modes, axis=1)", "norms = np.abs(self.modes).min(axis=1)", _of(PROPERTIES, "test_norms_dominate_vectors")),
    Mutant("property: rounds squared", "accounting", "rounds * float(m.shifts[0]) ** 2 for", "rounds**2 * float(m.shifts[0]) ** 2 for", _of(PROPERTIES, "test_any_poisson_setting_is_answered_or_refused")),
    Mutant("property: last iterate with the noise of one round", "mechanisms", "sigma = float(self.noise_multiplier) * math.sqrt(steps)", "sigma = float(self.noise_multiplier)", _of(PROPERTIES, "test_the_last_iterate_costs_less")),
    Mutant("property: larger batches sample less", "mixtures", "np.log((k - j) * (b - j) / (", "np.log((k - j) / (b - j) / (", _of(PROPERTIES, "test_fixed_batches_are_monotone")),
    Mutant("property: Renyi divergences of unlike rounds not added", "renyi", "upper = math.fsum(rounds * value.upper for value, rounds in values)", "upper = max(rounds * value.upper for value, rounds in values)", _of(PROPERTIES, "test_renyi_divergences")),
    Mutant("property: Renyi bound of one round", "renyi", "value = rounds * _curve_value(\"curve\", curve, order)", "value = _curve_value(\"curve\", curve, order) / 2", _of(PROPERTIES, "test_renyi_bounds_are_above_the_others")),
    Mutant("property: number of bins forgotten", "_lognormal", "log_strike = math.log(bins) + self.sign * epsilon", "log_strike = math.log(bins) / 2 + self.sign * epsilon", _of(BINS, "test_sums_of_lognormals")),
    Mutant("property: lognormals' tail cut off", "_lognormal", "(high, plan.log_cut(law), log_linear, log_error, log_outer)", "(high - 1,)", _of(BINS, "test_coarse_grids_of_lognormals_contain_the_truth")),
    Mutant("property: estimates of other modes", "montecarlo", "found = _importance.estimate(gram, epsilon, side, seed", "found = _importance.estimate(gram / gram.max(), epsilon, side, seed", _of("test_montecarlo.py", "test_lines_agree_with_quadrature_and_plain_sampling")),
    Mutant("property: one batch at half the norm", "_exact_bins", "gaussian.epsilon(math.sqrt(norm_squared) * (1", "gaussian.epsilon(math.sqrt(norm_squared) / 2 * (1", _of(BINS, "test_one_batch_and_any_noise")),
    Mutant("property: MMCC at delta_1 alone", "conditional", "return pairs, delta_1, lost\n\n\ndef void", "return pairs[:1], delta_1, lost\n\n\ndef void", _of(BINS, "test_mmcc_is_above_what_a_line_shows")),
    Mutant("property: the past lowers the odds", "_tails", "special.logit(probability) + exponent +", "special.logit(probability) - exponent +", _of(BINS, "test_published_bounds_are_monotone")),
]

# Why a random mutant that survived is harmless: it moves no bound to the unsafe side, or nothing at all.
# A key without a number stands for all of a function: what it returns only says where to look.
_CERTIFIED_LATER = "It chooses where to begin or how finely to look; whatever it chooses, the bounds are computed from that choice and certified afterwards."
_ANY_ORDER = "It chooses among orders or tilts, each of which gives a valid bound."
_LARGER = "An allowance for errors is made larger: the upper bound rises and the lower one falls."
_NARROWER = "Narrower brackets are asked of the accountants than needed: the upper end of a bracket is a bound at any width, so only time is lost."
SURVIVORS = {
    "_betting.:1:constant doubled": "The allowance only raises bounds; where it ends a search, the end that is returned has been checked.",
    "_betting.:8:constant halved": "Fewer bets are tried: every bet that is fixed before the final samples gives a valid bound.",
    "_betting._crossing:31:constant doubled": "How far to go right of Newton's last point, where the capital is checked again; in none of 3,000 random cases is a second step needed.",
    "_certificate.:28:constant halved": "Shorter tuples for many bins: every size of the tuples gives a valid bound.",
    "_certificate.:29:constant halved": "Fewer pilot samples: they choose the bet, and every bet that is fixed before the final samples gives a valid bound.",
    "_certificate.certify:2:constant halved": "A default of a private function, whose one caller says how many samples; with fewer the bound is wider or refused, and valid.",
    "_certificate.run:11:constant halved": "A margin of 1e-12 for three roundings, of 3.4e-16 together: half of it covers them a thousand times.",
    "_families.:22:constant doubled": "Where the parts may begin and end over which decay is bounded: every choice gives a valid bound.",
    "_families.Family.__init__:8:constant halved": "A mark below every tilt, so that the first call builds the table: all tilts are positive.",
    "_families.Family.log_ratio_and_slope:1:constant halved": "A single mixture takes the branch of those that are evaluated one by one, with the same numbers.",
    "_families.Family.rounding:3:constant doubled": _LARGER,
    "_families.Nodes._log_tail:2:constant doubled": "The window is taken to end a node before it does: the bound on what lies outside becomes larger.",
    "_families.Nodes.log_characteristic:3:constant doubled": "How many rows are evaluated at once, to bound the memory: every row is computed for itself.",
    "_lattice_law.Step.panels:41:constant doubled": "The window is divided into one panel more, so that panels not ended by a cut are a little narrower: the quadrature error is smaller.",
    "_lattice_law.repair:39:constant doubled": "Only the sign of this mark for 'no vertex before' is asked, and -2 has that of -1: nothing changes.",
    "_lattice_sum.Sum.log_bound:10:Sub to Add": _LARGER,
    "_lognormal._Plan._nodes:13:constant doubled": _CERTIFIED_LATER,
    "_lognormal._Plan._nodes:7:constant halved": _CERTIFIED_LATER,
    "_lognormal._Plan._saddle": _ANY_ORDER,
    "_lognormal._Plan._top:17:constant halved": _CERTIFIED_LATER,
    "_moments._Quadrature.__init__:25:constant doubled": _CERTIFIED_LATER,
    "_moments._Quadrature._level": _CERTIFIED_LATER,
    "_moments._Quadrature._log_lines:16:constant halved": "Of two bounds on the posterior variance the smaller one is taken on fewer grids: the bound on the error becomes larger.",
    "_moments._Quadrature._log_strip:6:constant doubled": _LARGER,
    "_moments._Quadrature.log_bounds:2:constant doubled": "Twenty attempts instead of ten before a refusal; each is certified by itself.",
    "_row_law.RowLaws._place:17:constant halved": "Rounding moves a position on the grid by 1 EPS in relative terms, and 4 are left; one that is not recognised would be split, which is valid as well.",
    "_tails.joint_exponents:24:constant halved": "Every term is positive: sums of 4,096 of them with exponents up to 690 lose at most 7e-13 in relative terms, and 5e-12 is left.",
    "_tails.posterior:3:Mult to Div": "What is left, with the factor 1 + 1e-13, is 1.3 times the worst rounding of a probability above 1e-300, and 39 times that of one above 1e-20 whose log odds fall by at most 30.",
    "_tails.posterior:4:constant doubled": "An allowance that raises an upper bound becomes larger.",
    "_tuples._rounding:45:constant halved": "This part of the slack stays 4 times the error of log w on the line found with 80-bit numbers (2 to 256 bins, diagonals of 1e-6 to 300), and 25 times where diagonals are at most 1.",
    "_tuples.factor:12:constant halved": "Inner products of b + 1 terms lose at most b + 1 units of 2^-53 in relative terms, and 2 b + 8 are left.",
    "_tuples.half_space:29:constant doubled": "It only limits a step towards better weights of the half-space: whatever the weights, the half-space is valid.",
    "_tuples.half_space:49:Mult to Div": "The other terms cover the rounding: at worst it takes 0.8 of what is left with up to 1,024 bins, and 1e-4 of it in 80-bit arithmetic with up to 256.",
    "_tuples.remove_sampler:17:constant halved": "One log_slack is four times what the errors of the Gram matrix can change in log rho; all other rounding is within the allowance of 1e-9.",
    "calibrate._Solver._rough": _CERTIFIED_LATER,
    "calibrate._Solver.excess:10:constant doubled": _NARROWER,
    "calibrate._Solver.excess:4:max to min": _NARROWER,
    "calibrate._smallest:35:constant doubled": "A longer step where one end of the search is not known yet: the noise returned is one at which the bound was seen to meet the target.",
    "conditional._Build.grid:5:constant doubled": _ANY_ORDER,
    "contour._Integral._choose_period:5:constant doubled": _CERTIFIED_LATER,
    "contour._Integral._choose_period:7:constant doubled": _CERTIFIED_LATER,
    "contour._Integral._sum_frequencies:4:max to min": "How many frequencies are summed before the first look: the sum goes on until its terms are small, and the rest is bounded. At worst a refusal.",
    "contour._Integral._sum_frequencies:55:constant halved": "When the sum may stop: what it leaves out is bounded afterwards, and the sum goes on where that is too much. At worst a refusal.",
    "contour.bracket_epsilon:12:Sub to Add": "A first width of the bracket, even if negative: both ends are moved until the bounds there certify them.",
    "gaussian.:6:constant halved": "The value below which a linear formula is used; both formulas hold on either side of it.",
    "gaussian.calibrate:13:constant doubled": "The most steps of a root search: on a grid over all of epsilon and delta it took 77 at most, and at the limit it would only refuse.",
    "gaussian.delta:2:constant doubled": "Epsilon may be as low as -2e100 instead of -1e100, where delta is 1 all the same.",
    "lattice._Solver._aim_tilt:2:constant halved": "A floor that keeps the spread above 0: it chooses the lattice's period and first step, and the bounds are certified for whatever is chosen.",
    "lattice._Solver._period:16:constant doubled": "One of the periods from which one is chosen: the aliases of whichever is chosen are bounded.",
    "lattice._Solver.brackets:44:constant halved": "The coarser grid's bracket stands more often where the finer grid is too long: a bracket that is certified, at most wider.",
    "mixtures.Mixture.variance_bound:15:constant halved": "Gaps from 5e-4 on take the bound by the series, too: it holds for every gap, and what its sum leaves out is 2e-21 of it, next to a margin of 1e-9.",
    "mixtures.binomial:19:max to min": "The rounding of the weights is taken over all components instead of those that matter: the allowance becomes larger.",
    "one_step._excess:11:constant doubled": "The 60 nodes serve up to epsilon_bar = 40: J is good to 1e-13 there against 40 digits, and 1e-11 is stated.",
    "one_step._largest_mu:14:constant halved": "A starting point of Newton's method, farther to the left of the root than before.",
    "rare._Integral._choose_nodes:29:constant halved": "A step of the nodes: the errors of the sums on them are bounded for the step that is taken.",
    "rare._Integral._choose_period": _CERTIFIED_LATER,
    "rare._split:6:min to max": "Coarser cells: a sum over cells, each with the largest value of every factor, is a bound at any step.",
    "rare.side_epsilon:24:constant halved": "How near the root the nodes must be chosen: the ends are certified afterwards, wherever that was.",
    "renyi._search": _ANY_ORDER,
    "renyi.zhu_wang:2:constant halved": "Orders between 5e5 and 1e6 are refused; below that nothing changes.",
}
