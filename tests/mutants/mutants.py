"""Dangerous mutants: single changes that make an upper bound too small, or swap what must not be swapped.

Each names its place in the syntax tree, so that moving or formatting code leaves it as it is: the function, the kind of
node in it and which of them, and what stands there instead, where _ is what stood there and _.left and the like its
parts. And each names the tests that have to notice it. `python -m tools mutation dangerous` plants
them one after the other; `tests/statements/test_mutation.py` checks that each still applies.
"""

from dataclasses import dataclass
from pathlib import Path

from mutation_operators import replaced

# Tests of the library are named by file alone: {name: file from the root}.
_TESTS = Path(__file__).resolve().parents[1]
FILES = {path.name: f"tests/{path.parent.name}/{path.name}" for path in _TESTS.glob("*/test_*.py") if path.parent.name != "book"}

PROPERTIES, BINS = "test_properties.py", "test_properties_bins.py"


@dataclass(frozen=True)
class Mutant:
    name: str
    module: str  # as in mutation.file_of
    function: str  # by its dotted name in the module; "" for the module itself
    changes: dict  # {place in it: what stands there instead}, as in mutation_operators
    tests: tuple


def apply(mutant, source):
    """The module's source with the fault in it."""
    try:
        return replaced(source, mutant.function, mutant.changes)
    except LookupError as error:
        raise LookupError(f"{mutant.name!r}: {error}") from None


def _of(file, *names):
    return tuple(f"{file}::{name}" for name in names)


_CONVEXITY = _of("test_matrix_mechanism.py", "test_where_no_accountant_closes_convexity_answers")
_NORMS = _of("test_few_participations.py", "test_norms_bound_every_set_of_columns")
_ONCE = _of("test_few_participations.py", "test_one_participation_by_moments_bounds_the_truth")
_AGREE = _of(PROPERTIES, "test_all_accountants_agree")
_PARITY = _of(PROPERTIES, "test_parity_of_compositions")
_LAWS = _of(PROPERTIES, "test_lattice_laws_lie_on_the_right_side_everywhere")
_COARSE = _of(PROPERTIES, "test_coarse_lattices_contain_the_truth")
_RENYI = _of(PROPERTIES, "test_renyi_divergences", "test_renyi_divergences_by_a_sum", "test_renyi_bounds_are_above_the_others")
_SPLITTING = _of(PROPERTIES, "test_splitting_and_order_do_not_matter")
_ENDS = _of("test_contour.py", "test_ends_of_epsilon_are_certified_where_they_lie")
_INFINITE = _of("test_lattice.py", "test_infinite_losses_of_all_rounds_count_in_the_upper_bound_alone")
_SUMS = ("test_lattice_sums.py",)
_NEAR_ONE = _of("test_gaussian.py", "test_epsilon_where_delta_is_near_one")
_MISS = _of("test_contour.py", "test_epsilon_near_certainty")
_WINDOW = _of("test_contour.py", "test_mass_outside_the_window_is_covered")
_TWO_SIDED = _of("test_two_sided.py", "test_values_of_another_computation_are_met")
_PIECES = _of("test_pieces.py", "test_values_of_another_computation_are_met")
_HALVES = _of("test_pieces.py", "test_masses_of_a_folded_round_add_up")
_STATED = _of("test_stated_errors.py", "test_brackets_cover_the_error_that_a_mixture_states")
_WIDE = _of("test_conditional.py", "test_wide_groups_of_ages_cost_more")
_AGES = _of("test_conditional.py", "test_groups_bound_all_inner_products")
_AGED_RUNS = _of("test_conditional.py", "test_simulated_sums_keep_their_budget")
_AGED_MOMENT = _of("test_conditional.py", "test_moment_of_the_quadratic_bound")
_TREE_TAIL = _of("test_conditional_composition.py", "test_published_tail_of_the_library") + ("test_conditional.py",)
_TREE_LEVELS = _of("test_conditional.py", "test_simulated_trees_keep_their_budget")
_TREE_RUNS = _of("test_conditional.py", "test_the_law_of_a_subtree_is_tight") + _TREE_LEVELS
_TREE_GRID = _of("test_conditional.py", "test_coarse_laws_of_a_subtree_lie_above_fine_ones", "test_no_mean_of_a_subtree_is_rounded_down")
_ALGORITHM = _of("test_mmcc_statements.py", "test_the_algorithm_is_bounds_rows_and_composition")
_LOGNORMAL = _of(BINS, "test_coarse_grids_of_lognormals_contain_the_truth") + _of("test_lognormal.py", "test_two_bins_by_quadrature")
_SAMPLES = _of(BINS, "test_samples_average_to_delta_and_stay_below_their_bound")
_CERTIFICATE = _of(BINS, "test_certificates_are_above_the_truth")
_CONFIDENCE = _of(BINS, "test_confidence_bounds", "test_confidence_bounds_hold_as_often_as_they_say")
_TAILS = _of(BINS, "test_tail_exponents_are_exceeded_as_rarely_as_they_say")
_ROWS = _of(BINS, "test_row_laws_dominate")
_ROW_LAWS = (*_ROWS, "test_row_law.py")
_MMCC = _of(BINS, "test_mmcc_of_independent_noise_is_dpsgd", "test_mmcc_is_above_what_a_line_shows")
_PATTERNS = _of("test_min_separation.py", "test_no_past_leaves_more_than_the_value_functions_say")

DANGEROUS = [
    # One round in closed form, and what every accountant builds on.
    Mutant("delta halved", "gaussian", "delta", {"Call exp": "_ / 2"}, ("test_gaussian.py",)),
    Mutant("mu halved in the threshold", "gaussian", "_log_delta", {"Constant 2": "4"}, ("test_gaussian.py",)),
    Mutant("one round: remove and add swapped", "mixtures/likelihood", "Likelihood.log_hockey_stick", {"Constant 'remove'": "'add'"}, _of(PROPERTIES, "test_parity_of_one_round")),
    Mutant("one round: weights of the other direction", "mixtures/likelihood", "Likelihood._log_delta_at", {"BinOp Sub#2": "np.broadcast_to(log_p, x.shape)"}, _of(PROPERTIES, "test_parity_of_one_round")),
    Mutant("variance bound too small", "mixtures/likelihood", "variance_bound", {"BinOp Pow#1": "_ / 4"}, _of(PROPERTIES, "test_posterior_variance_stays_below_its_bound")),
    Mutant("equal sensitivities lost", "mixtures/pair", "_merged", {"Expr#1": "merged[group] = log_p"}, _of(PROPERTIES, "test_redundant_components_do_not_matter")),
    Mutant("scale forgotten", "mixtures/pair", "Mixture._set", {"Name sigma#2": "min(_, 1.0)"}, _of(PROPERTIES, "test_scale_does_not_matter")),
    Mutant("fixed batches: factor 2 dropped", "mixtures", "hypergeometric", {"Constant 2.0": "1.0"}, _of("test_domination.py", "test_groups_in_fixed_batches_are_dominated")),
    # The entry to the accountants.
    Mutant("repeated rounds counted once", "accounting", "merged", {"BinOp Add": "rounds"}, _SPLITTING),
    Mutant("a plain Gaussian's rounds forgotten", "accounting", "_gaussian_mu", {"BinOp Mult": "_.right"}, _of(PROPERTIES, "test_any_poisson_setting_is_answered_or_refused", "test_a_gaussian_part_is_the_same_in_pieces") + ("test_accounting.py",)),
    Mutant("delta rounded down", "accounting/floats", "outward_exp", {"Call nextafter#2": "_.args[0] * (1 - 1e-9)"}, _of("test_mechanisms.py", "test_sampling_everything_is_the_plain_gaussian")),
    Mutant("one round: bracket below", "accounting/one_round", "epsilon", {"BinOp Add#7": "loss * (1 - 1e-9)"}, ("test_accounting.py", "test_statements.py")),
    Mutant("total variation of one round for all", "accounting", "_total_variation", {"BinOp Mult#1": "_.right"}, _of(PROPERTIES, "test_epsilon_is_positive_where_delta_at_zero_is_larger")),
    Mutant("largest loss of one round for all", "accounting", "_is_beyond", {"BinOp Mult#2": "_.right"}, _AGREE + ("test_accounting.py",)),
    # The contour.
    Mutant("contour: remove and add swapped", "accounting/chernoff", "_families", {"IfExp#2": "-1 if _.test else 1"}, _AGREE + _PARITY),
    Mutant("contour: factor 2", "accounting/contour", "_Integral._sum_frequencies", {"BinOp Div#4": "_ / 2"}, _AGREE),
    Mutant("contour: first term counted whole", "accounting/contour", "_Integral._sum_frequencies", {"AugAssign Div": ""}, _AGREE),
    Mutant("contour: first term dropped", "accounting/contour", "_Integral._sum_frequencies", {"AugAssign Div": "self.terms[0] = 0"}, _AGREE),
    Mutant("contour: kernel of another function", "accounting/contour", "_Integral._sum_frequencies", {"BinOp Add#4": "z"}, _AGREE + _PARITY),
    Mutant("contour: upper end below the value", "accounting/contour", "_Integral.log_bounds", {"BinOp Add#5": "value - error"}, ("test_contour.py",)),
    Mutant("contour: aliases added to the lower end", "accounting/contour", "_Integral.log_bounds", {"BinOp Sub#3": "_.left + _.right"}, ("test_contour.py", "test_accounting.py", *_AGREE)),
    Mutant("contour: rounding dropped", "accounting/contour", "_Integral._bound", {"BinOp Add#4": "self.e2"}, ("test_contour.py",)),
    Mutant("contour: tail of the frequencies dropped", "accounting/contour", "_Integral._tail_by", {"BinOp Div#6": "0.0"}, _of("test_contour.py", "test_the_bound_on_high_frequencies_covers_them")),
    Mutant("contour: upper end not certified", "accounting/contour", "bracket_epsilon", {"Compare LtE#1": "True"}, _ENDS),
    Mutant("contour: certified by the lower bound", "accounting/contour", "bracket_epsilon", {"Constant 2#1": "0"}, _ENDS),
    # Mixtures on both sides.
    Mutant("two-sided: the other side's factor of the weights", "accounting/two_sided_nodes", "TwoSidedFamily.evaluate", {"BinOp Sub": "_.left + _.right"}, _TWO_SIDED),
    Mutant("two-sided: both directions are the first", "accounting", "sides", {"IfExp": "_.body"}, _of("test_two_sided.py", "test_add_is_the_mirror_image")),
    Mutant("two-sided: insertions and deletions exchanged", "mixtures/two_sided", "TwoSided.facing", {"Compare Eq": "direction == 'add'"}, _TWO_SIDED),
    Mutant("two-sided: noise of the other direction for deleted records", "mechanisms/calibration", "_Solver.__init__", {"Call _facing": "direction"}, _of("test_two_sided.py", "test_calibration_for_deleted_records_faces_their_direction")),
    Mutant("two-sided: what is left out of large groups forgotten", "mixtures/two_sided", "TwoSided.facing", {"Attribute cut_below": "False"}, _of("test_two_sided.py", "test_what_is_left_out_of_large_groups_is_not_forgotten")),
    Mutant("two-sided: the smaller direction", "accounting", "_larger", {"Name max#1": "min"}, _of("test_two_sided.py", "test_add_is_the_mirror_image")),
    Mutant("two-sided: Renyi at a neighbouring order", "accounting/two_sided_nodes", "TwoSidedMoments.__call__", {"BinOp Sub#1": "0.99 * _"}, _of("test_two_sided.py", "test_renyi_divergences_by_quadrature")),
    # Pairs in pieces.
    Mutant("pieces: weights forgotten", "accounting/lattice_pieces", "UnionStep.weighted_nodes", {"BinOp Add#1": "log_mass"}, _PIECES),
    Mutant("pieces: nothing at loss 0", "accounting/lattice_pieces", "UnionStep.weighted_nodes", {"Attribute _log_at_zero": "[]"}, _HALVES),
    Mutant("pieces: the lower half in the first order", "accounting/lattice_pieces", "UnionStep.__init__", {"Constant 'add'": "'remove'"}, _HALVES),
    Mutant("pieces: tails of one piece for all", "accounting/lattice_round", "Law.__init__", {"Attribute pieces": "_[:1]"}, _of("test_pieces.py", "test_tails_of_all_pieces_count")),
    Mutant("pieces: kept with half the probability", "mixtures/disjoint_union", "_truncation", {"Call min": "0.5 * _"}, _of("test_displacing_statements.py", "test_chances_of_being_cut")),
    Mutant("pieces: rules on panels too good", "accounting/contour_pieces", "_Panels.bounds", {"Name _GAIN": "_ + 30"}, _of("test_contour_pieces.py", "test_coarse_panels_miss_no_more_than_they_say")),
    Mutant("pieces: phase on the ellipses forgotten", "accounting/contour_pieces", "PanelQuadrature.misses", {"IfExp#2": "misses"}, _of("test_contour_pieces.py", "test_coarse_panels_miss_no_more_than_they_say")),
    Mutant("pieces: loss 0 decays", "accounting/contour_pieces", "PanelDecay.constants", {"Name at_zero#3": "0.0"}, _of("test_contour_pieces.py", "test_high_frequencies_are_bounded")),
    Mutant("pieces: remove alone of zeroed records", "mixtures/disjoint_union", "DisjointUnion.remove_is_larger", {"Call all": "True"}, _of("test_pieces.py", "test_directions")),
    Mutant("pieces: batches of a fixed size without displacement", "mixtures/disjoint_union", "replaced_in_batch", {"Constant 2.0#2": "1.0"}, _of("test_displacing_statements.py", "test_one_round_attains_the_folded_pair")),
    # Bins among other phases.
    Mutant("phases: masses above not given back", "balls_in_bins/loss_laws", "_above", {"BinOp Mult#3": "0.99 * _.left"}, _of("test_phases_of_bins.py", "test_laws_lie_above_and_below_the_curve")),
    Mutant("phases: the lower law above", "mechanisms/composed", "Composed._laws", {"Tuple": "(0, 0)"}, _of("test_phases_of_bins.py", "test_limits", "test_two_bins_and_a_gaussian_by_quadrature")),
    # Near delta = 1.
    Mutant("miss: a Gaussian by the digits of delta", "gaussian", "epsilon", {"Compare Gt": "False"}, _NEAR_ONE),
    Mutant("miss: a Gaussian without its second term", "gaussian", "_log_miss", {"Call logaddexp": "_.args[0]"}, _NEAR_ONE),
    Mutant("miss: sign of the kernel forgotten", "accounting/contour", "_Integral._sum_frequencies", {"Call copysign": "_.args[0]"}, _MISS),
    Mutant("miss: target a thousandth off", "accounting/contour", "side_epsilon", {"UnaryOp USub#3": "1e-3 - _.operand"}, _MISS),
    Mutant("miss: delta from the other end", "accounting/contour", "_log_delta_at", {"UnaryOp USub#1": "1.001 * _"}, _MISS),
    Mutant("miss: mass of half a line from its left edge", "accounting/wide", "_logarithms", {"BinOp Sub#1": "edges[:-1] - least"}, ("test_wide.py",)),
    # The lattice.
    Mutant("lattice: losses cut that reach epsilon", "accounting/lattice_losses", "Losses.__init__", {"BinOp Mult#2": "-0.9 * _.right"}, ("test_lattice.py", "test_accounting.py")),
    Mutant("lattice: a lower law on any cells", "accounting/lattice_tangents", "repair", {"Compare Gt#1": "False"}, _of("test_lattice_sums.py", "test_wide_cells_carry_no_lower_law")),
    Mutant("lattice: infinite losses dropped", "accounting/lattice_composition", "Sum.log_bound", {"Call logaddexp#2": "finite"}, _INFINITE),
    Mutant("lattice: infinite losses of one round for all", "accounting/lattice_composition", "_log_of_any", {"BinOp Mult#2": "_.right"}, _INFINITE),
    Mutant("lattice: slack taken off", "accounting/lattice_composition", "Sum._log_more", {"BinOp Add#1": "max(value - 1e3 * slack, 1e-300)"}, ("test_lattice.py",)),
    Mutant("lattice: epsilon rounded up to the grid", "accounting/lattice_composition", "Sum._periodic", {"Attribute floor": "math.ceil"}, _COARSE),
    Mutant("lattice: aliases not taken off the lower end", "accounting/lattice_composition", "Sum._log_less", {"BinOp Sub#1": "_.left"}, ("test_lattice.py", *_COARSE)),
    Mutant("lattice: tilt of the masses forgotten", "accounting/lattice_composition", "Sum._periodic", {"Name at#3": "epsilon"}, _COARSE),
    Mutant("lattice: low losses dropped from the upper law", "accounting/lattice_round", "Law.__init__", {"Expr#2": "pass"}, _of(PROPERTIES, "test_what_lies_below_the_window_is_kept_by_the_upper_law")),
    Mutant("lattice: high losses dropped from the upper law", "accounting/lattice_round", "Law.__init__", {"Attribute log_high_tail#1": "-math.inf"}, _of("test_lattice.py", "test_what_lies_above_the_window_is_kept_by_the_upper_law_alone")),
    Mutant("lattice: low losses rounded down", "accounting/lattice_round", "Law.__init__", {"Attribute ceil#2": "math.floor"}, _of(PROPERTIES, "test_what_lies_below_the_window_is_kept_by_the_upper_law")),
    Mutant("lattice: all mass rounded down", "accounting/lattice_round", "Law._integrate", {"Slice#3": ":-1", "BinOp Mult#7": "_.right"}, _LAWS),
    Mutant("lattice: chords without the far end", "accounting/lattice_round", "Law._integrate", {"AugAssign Add#5": "pass"}, _LAWS),
    Mutant("lattice: lower law without its repair", "accounting/lattice_tangents", "repair", {"Tuple#3": "(_.elts[1], _.elts[0])"}, _LAWS),
    Mutant("lattice: high losses above the window kept in the lower law", "accounting/lattice_round", "Law.lower", {"Attribute floor": "math.ceil"}, _of(PROPERTIES, "test_what_lies_above_the_window_counts_as_its_end_in_the_lower_law")),
    Mutant("lattice: remove and add swapped", "accounting/lattice_round", "Step.__init__", {"Call orientation": "-_"}, _AGREE),
    Mutant("lattice: ends exchanged", "accounting/lattice", "side_epsilon", {"UnaryOp UAdd": "-1"}, ("test_lattice.py",)),
    Mutant("lattice: upper end from the lower law", "accounting/lattice", "_Solver.ends", {"Call log_bound#2": "lower.log_bound(self.epsilon) + 1e-12"}, ("test_lattice.py", *_AGREE)),
    Mutant("lattice: wrong end of the last interval", "accounting/lattice", "_crossing", {"IfExp#3": "low"}, ("test_lattice.py",)),
    Mutant("lattice: known aliases of half a period more", "accounting/lattice_composition", "Sum._least_alias", {"BinOp Div#1": "1.01 * _"}, _SUMS),
    Mutant("lattice: aliases of the second law added", "accounting/lattice_composition", "Sum._least_alias", {"BinOp Sub#3": "_.left + _.right"}, _SUMS),
    Mutant("lattice: norm of the weights of one period", "accounting/lattice_composition", "Sum._norm_of_weights", {"BinOp Sub#1": "0.99 * _"}, _SUMS),
    Mutant("lattice: what the lower law has lost forgotten", "accounting/lattice_composition", "Sum.log_miss", {"Call logaddexp": "_.args[0]"}, _SUMS),
    Mutant("lattice: mass of a removed vertex kept", "accounting/lattice_tangents", "repair", {"Call logaddexp": "log_lost"}, _SUMS),
    Mutant("lattice: loss beyond the window counted twice", "accounting/lattice_round", "Step._shorten", {"BinOp Sub#2": "_.left - 2 * _.right"}, _SUMS),
    # Renyi.
    Mutant("Renyi: rounds forgotten", "accounting/renyi", "_least", {"BinOp Mult": "_.right"}, _of("test_renyi_statements.py", "test_points_of_both_figures")),
    Mutant("Renyi: composition by the largest", "accounting/renyi", "_total", {"Attribute fsum#2": "max"}, _RENYI),
    Mutant("Renyi: lower ends used", "accounting/renyi", "_total", {"Call fsum#2": "_.func((rounds * value.lower for value, rounds in values)) * 0.99"}, _RENYI),
    Mutant("Renyi: the smaller direction", "accounting/renyi", "composition_curve", {"Name max#1": "min"}, ("test_renyi.py",)),
    Mutant("Renyi: conversion too generous", "accounting/renyi", "_conversion", {"UnaryOp USub": "-2 * s", "Call log1p#2": "2 * _"}, ("test_renyi.py", *_RENYI)),
    Mutant("Renyi: order instead of order - 1", "accounting/renyi", "to_epsilon", {"BinOp Sub#2": "order"}, ("test_renyi.py",)),
    Mutant("Renyi: remove and add swapped", "accounting/renyi", "facing_curve", {"IfExp#2": "-1 if _.test else 1"}, _RENYI),
    # MMCC.
    Mutant("MMCC: entries rounded down", "conditional", "_Build.up", {"Attribute ceil": "np.floor"}, _of("test_matrix_mechanism.py", "test_rounding_entries_as_the_source_does_costs_something")),
    Mutant("MMCC: truncation forgotten", "conditional", "_Build.rows", {"Call float": "0.0"}, ("test_conditional.py",)),
    Mutant("MMCC: oldest entry of a group", "conditional", "_by_group", {"BinOp Add#1": "ages.edges[1:groups + 1]"}, _of("test_conditional.py", "test_a_group_of_ages_has_the_entry_of_its_youngest")),
    Mutant("MMCC: one row of each kind", "conditional", "_Build.rows", {"Call int": "1"}, _MMCC),
    Mutant("MMCC: present participation without amplification's rate", "conditional", "_by_group", {"List": "[p / 2]"}, _of("test_conditional.py", "test_groups_of_rows_are_close_to_single_rows")),
    Mutant("MMCC: group's size forgotten", "conditional", "_by_group", {"Call int": "1"}, _WIDE),
    Mutant("MMCC: quantile of the wrong tail", "conditional/tails", "published_exponents", {"UnaryOp USub": "_.operand"}, _TAILS),
    Mutant("MMCC: participations forgotten", "conditional/tails", "published_exponents", {"BinOp Add": "_.left"}, _TAILS),
    Mutant("MMCC: Chernoff bound without its tail", "conditional/tails", "joint_exponents", {"BinOp Add#1": "_.left"}, _TAILS),
    Mutant("MMCC: quantile one too small", "conditional/tails", "binomial_quantile", {"Call min": "max(_ - 1, 0)"}, _TAILS),
    Mutant("MMCC: posterior rounded down", "conditional/tails", "posterior", {"BinOp Add#1": "_.left - 1e-9 * _.right.right"}, _TAILS),
    Mutant("MMCC: atoms rounded down", "conditional/row_laws", "RowLaws.add", {"BinOp Add": "low"}, _ROWS),
    Mutant("MMCC: atoms rounded to the nearest in mean", "conditional/row_laws", "RowLaws._place", {"Call minimum#1": "offset / self.step"}, _ROWS),
    # Tail bounds by age.
    Mutant("ages: budget of one row's pairs", "conditional/tails_toeplitz", "Ages.pairs", {"BinOp Sub": "_.left.left"}, _AGES),
    Mutant("ages: inner products of the farthest members", "conditional/tails_toeplitz", "Ages.upper", {"Name bottoms#2": "tops"}, _AGES),
    Mutant("ages: norm of a group's youngest member", "conditional/tails_toeplitz", "Ages.upper", {"Name tops#2": "bottoms"}, _AGES),
    Mutant("ages: covariance without its repair", "conditional/tails_toeplitz", "Ages.covariance", {"BinOp Add#2": "_.left"}, _AGES),
    Mutant("ages: majorant forgotten", "conditional/tails_toeplitz", "Ages.__init__", {"Subscript#1": "_.value.args[0].value"}, ("test_conditional.py",)),
    Mutant("ages: one event for each row", "conditional/tails_toeplitz", "aggregated_intensities", {"BinOp MatMult": "_.left.sum()"}, _of("test_conditional.py", "test_every_event_is_paid_for")),
    Mutant("ages: intensity of the last group alone", "conditional/tails_toeplitz", "aggregated_intensities", {"BinOp Add#4": "_.right"}, _AGED_RUNS),
    Mutant("ages: Chernoff bound of a sum without its tail", "conditional/tails_toeplitz", "_SumBound._bound", {"BinOp Add#5": "value"}, _AGED_MOMENT),
    Mutant("ages: participations forgotten in a sum", "conditional/tails_toeplitz", "_SumBound._bound", {"AugAssign Add#2": "pass"}, _AGED_MOMENT),
    Mutant("ages: quadratic below the exponential", "conditional/tails_toeplitz", "_curvature", {"BinOp Mult#2": "_.right"}, _of("test_conditional.py", "test_the_quadratic_is_above_the_exponential")),
    Mutant("ages: published, budget of one event twice", "conditional/tails_toeplitz", "published", {"BinOp Mult": "_.right"}, ("test_conditional.py",)),
    Mutant("ages: published, smallest sums of neighbours", "conditional/tails_toeplitz", "_windows", {"Attribute max#2": "_.value.min"}, ("test_conditional.py",)),
    # Tail bounds by height.
    Mutant("tree: budget of one column's pairs", "conditional/tails_tree", "Branches.pairs", {"BinOp Mult#1": "_.right"}, _TREE_TAIL),
    Mutant("tree: budget spent twice", "conditional/tails_tree", "published", {"BinOp Mult#1": "_.right"}, _TREE_TAIL),
    Mutant("tree: nodes shared with the next leaf dropped", "conditional/tails_tree", "Branches.products", {"BinOp Sub#1": "_ - 1"}, _TREE_TAIL + ("test_mmcc_statements.py",)),
    Mutant("tree: level of the sums ten times too rare", "conditional/tails_tree", "_chance", {"Name tail": "10 * _"}, _TREE_RUNS),
    Mutant("tree: pool for ten times its share", "conditional/tails_tree", "_pools", {"Name tail#2": "min(30 * _, 0.9)"}, _TREE_RUNS),
    Mutant("tree: lost mass is not beyond every level", "conditional/tails_tree", "_laws_within", {"BinOp Add#6": "_.left"}, _TREE_GRID),
    Mutant("tree: means rounded down", "conditional/tails_tree", "_laws_within", {"Call ceil#2": "np.floor(_.args[0].left)"}, _TREE_GRID),
    Mutant("tree: odd sums rounded down", "conditional/tails_tree", "_laws_within", {"Slice#5": ":-1"}, _TREE_GRID),
    Mutant("tree: logarithms rounded down", "conditional/tails_tree", "_laws_within", {"Call ceil#3": "np.floor(_.args[0].left)"}, _TREE_GRID),
    # Tail bounds for all pairs.
    Mutant("pairs: the whole budget for each", "conditional/tails_dense", "bounds", {"BinOp Div": "_.left"}, ("test_conditional.py",)),
    Mutant("pairs: smallest inner products", "conditional/tails_dense", "published_rule", {"Subscript#4": "_.value"}, _of("test_conditional.py", "test_published_bounds_take_the_largest_products_of_each_column")),
    Mutant("pairs: chord of one column", "conditional/tails_dense", "joint_rule", {"BinOp Mult#1": "_.left"}, _of("test_conditional.py", "test_joint_bounds_of_all_pairs_count_every_column")),
    Mutant("pairs: past without its last row", "conditional/tails_dense", "Blocks.past", {"Subscript#6": "_ - 1"}, ("test_conditional.py",)),
    Mutant("pairs: column's smallest entry in a block", "conditional/tails_dense", "Blocks.__init__", {"Attribute add": "np.minimum"}, ("test_matrix_mechanism.py",)),
    # Row laws.
    Mutant("rows: mass beyond the top of the grid lost", "conditional/row_laws", "RowLaws.add", {"AugAssign Add#5": "pass"}, _ROW_LAWS),
    Mutant("rows: shortfall of the split lost", "conditional/row_laws", "RowLaws.add", {"AugAssign Add#4": "pass"}, _ROW_LAWS),
    Mutant("rows: larger numbers dropped", "conditional/row_laws", "RowLaws.add", {"BinOp Mult#1": "np.zeros(len(old))"}, _of("test_row_law.py", "test_no_mass_is_lost")),
    Mutant("rows: no binomial number beyond the last", "conditional/row_laws", "binomial_numbers", {"BinOp Mult": "0.0"}, _of("test_row_law.py", "test_numbers_that_are_left_out_are_counted")),
    # The factors of the contour.
    Mutant("factors: lines of the strip dropped", "accounting/contour_quadrature", "Quadrature.axis_error", {"Call logaddexp": "log_tail + 0 * _.args[0].right"}, ("test_contour.py",)),
    Mutant("factors: mass outside the window dropped", "accounting/contour_quadrature", "Quadrature.axis_error", {"Call logaddexp": "_.args[0]"}, _WINDOW),
    Mutant("factors: error taken off the moment", "accounting/contour_quadrature", "Quadrature.log_moment_bound", {"BinOp Add": "_.left.left - np.log1p(error)"}, _WINDOW),
    Mutant("factors: modulus without what is beyond the cut", "accounting/contour_decay", "Decay.modulus_bound", {"BinOp Add#5": "_.left.left"}, ("test_contour.py",)),
    Mutant("factors: boundary values of the decay dropped", "accounting/contour_decay", "Decay.constants", {"BinOp Add#9": "_.left.left"}, _of("test_contour.py", "test_what_a_part_of_the_nodes_contributes_falls_like_one_over_y")),
    Mutant("lines: what the rule misses beside the axis dropped", "accounting/contour_quadrature", "Quadrature.line_error", {"Call logaddexp": "outside"}, _of("test_contour.py", "test_lines_beside_the_axis_find_the_transform")),
    Mutant("lines: twice as high", "accounting/contour_line", "LineDecay.beyond", {"Call min": "np.minimum(bound, self._lines[halvings].integral(2 * y))"}, _of("test_contour.py", "test_lines_beside_the_axis_bound_all_higher_frequencies")),
    Mutant("lines: size of the weights without the ratio's", "accounting/contour_line", "Line.__init__", {"BinOp Add#2": "_.left"}, _of("test_contour.py", "test_lines_beside_the_axis_find_the_transform")),
    Mutant("factors: no rounding of the moments", "accounting/contour_nodes", "Nodes.rounding", {"Name _ROUNDING_SAFETY": "0.0"}, _STATED + ("test_contour.py",)),
    Mutant("factors: no rounding of the transform", "accounting/contour_nodes", "Nodes.axis_rounding", {"Name _ROUNDING_SAFETY": "0.0"}, _of("test_stated_errors.py", "test_transforms_of_one_round_cover_it")),
    Mutant("factors: remove and add swapped", "accounting/contour_nodes", "Family.power", {"IfExp": "-c if _.test else 1 + c"}, _AGREE + ("test_contour.py",)),
    # One round's Renyi divergence.
    Mutant("Renyi: strip bound dropped", "accounting/renyi_moments", "_Quadrature.log_strip", {"Call float#3": "-800.0"}, ("test_renyi.py",)),
    Mutant("Renyi: what lies outside dropped", "accounting/renyi_moments", "_Quadrature.log_outside", {"Call float#2": "-800.0"}, ("test_renyi.py",)),
    Mutant("Renyi: rounding taken off", "accounting/renyi_moments", "_Integral.log_bounds", {"BinOp Add#4": "_.left - _.right"}, ("test_renyi.py",)),
    Mutant("Renyi: one component at order - 1", "accounting/renyi_moments", "Moments._one_component", {"BinOp Mult#7": "x"}, ("test_renyi.py",)),
    Mutant("Renyi: a Gaussian's order less one", "accounting/renyi_moments", "Moments.__call__", {"Name order#1": "_ - 1"}, ("test_renyi.py",)),
    Mutant("Renyi: directions of one round swapped", "accounting/renyi_moments", "_Integral.__init__", {"IfExp": "-s if _.test else 1 + s"}, ("test_renyi.py",)),
    # Noise for a target.
    Mutant("calibration: the unsafe side", "mechanisms/search", "smallest", {"Name high#7": "low"}, ("test_calibrate.py",)),
    Mutant("calibration: lower end meets the target", "mechanisms/calibration", "_Solver._side_excess", {"Attribute upper#4": "_.value.lower"}, _of("test_calibrate.py", "test_a_wide_bracket_costs_noise")),
    Mutant("calibration: effective noise of another rate", "mechanisms/calibration", "effective_noise", {"Subscript#11": "_.value"}, ("test_calibrate.py",)),
    Mutant("one step: sampling forgotten in epsilon", "lessons/one_step", "_unsampled", {"Name q#3": "_ ** 2"}, ("test_one_step.py",)),
    Mutant("one step: sampling counted twice", "lessons/one_step", "delta", {"Name q#2": "_ * _"}, ("test_one_step.py",)),
    Mutant("one step: allowance on the unsafe side", "lessons/one_step", "_largest_mu", {"BinOp Sub#1": "_.left + _.right"}, ("test_one_step.py",)),
    Mutant("one step: noise rounded down", "lessons/one_step", "_largest_mu", {"Name low#9": "_ + 1e-11"}, ("test_one_step.py",)),
    # The mechanisms and their sampling.
    Mutant("mechanisms: group forgotten", "mechanisms/dpsgd", "FixedBatchDPSGD.composition", {"Attribute group_size": "1"}, ("test_mechanisms.py",)),
    Mutant("batches: average rate inside a part", "batching", "cyclic_poisson", {"Call min#2": "p"}, ("test_batching.py",)),
    Mutant("batches: every record in the first slices", "batching", "shuffling", {"Call permutation": "np.arange(n)"}, ("test_batching.py",)),
    # The bounds of a matrix mechanism.
    Mutant("matrix bounds: bad event not paid for", "mechanisms/matrix_bounds", "_left", {"BinOp Sub#1": "delta"}, _ALGORITHM),
    Mutant("matrix bounds: bad event not paid for in delta", "mechanisms/matrix_bounds", "Tails._goal", {"BinOp Div": "1.0"}, _of("test_matrix_mechanism.py", "test_delta_and_epsilon_belong_together")),
    Mutant("matrix bounds: truncation not paid for", "mechanisms/matrix_bounds", "_left", {"BinOp Sub#2": "1 + 0.01"}, _of("test_matrix_mechanism.py", "test_truncation_costs_most_when_adding")),
    Mutant("matrix bounds: the best group of columns", "mechanisms/matrix_bounds", "Tails.epsilon", {"Name max": "min"}, _of("test_matrix_mechanism.py", "test_the_worst_group_of_columns_counts")),
    Mutant("rows: convexity with the chance squared", "conditional/compose", "Accounted._sure", {"Name log_taken#2": "2 * _"}, _CONVEXITY),
    Mutant("rows: convexity with the largest sensitivity of one row", "conditional/compose", "Accounted._sure", {"Attribute fsum#2": "max", "BinOp Mult#2": "_.right"}, _CONVEXITY),
    Mutant("rows: convexity with the chance of one row", "conditional/compose", "Accounted._sure", {"Attribute fsum#1": "max", "BinOp Mult#1": "_.right"}, _CONVEXITY),
    Mutant("rows: the chance of any participation on the wrong side", "conditional/compose", "Accounted._epsilon", {"Name log_taken#2": "2 * _"}, _CONVEXITY),
    Mutant("few: the smallest columns", "conditional/few", "Counts.first_norms", {"Attribute max": "np.min"}, _NORMS),
    Mutant("few: inner products once", "conditional/few", "Counts.first_norms", {"Constant 2": "1"}, _NORMS),
    Mutant("few: several participations are free", "conditional/few", "Once.delta", {"BinOp Add#3": "_.right"}, _ONCE),
    Mutant("few: chance of none left out of the threshold", "conditional/few", "Once.delta", {"Call expm1#2": "2 * _"}, _ONCE),
    Mutant("row sum: a cell's mass at its lower end", "conditional/row_sums", "Cells._partition", {"Call clip": "0.4 * _"}, ("test_row_sum.py",)),
    Mutant("row sum: what is cut is free", "conditional/row_sums", "RowSum._composed", {"BinOp Add#21": "_.left"}, ("test_row_sum.py",)),
    Mutant("row sum: down to the lattice", "conditional/row_sums", "RowSum._composed", {"Constant 1.0#1": "0.0"}, ("test_row_sum.py",)),
    # Estimates: no bounds, but the directions must not be swapped.
    Mutant("estimates: proposals of the other direction", "balls_in_bins/importance_sampling", "Estimator.__init__", {"IfExp": "_.orelse if _.test else _.body"}, ("test_importance.py",)),
    Mutant("estimates: error of all lines in one block", "balls_in_bins/importance_sampling", "_summary", {"Call sqrt": "BLOCKS"}, _of("test_importance.py", "test_the_stated_error_of_an_estimate_is_that_of_repetitions")),
    Mutant("truth: remove and add swapped", "lessons/_truth_integrals", "HalfLine.__init__", {"Compare Eq": "_.left != 'remove'"}, ("test_truth.py",)),
    Mutant("truth: participations beyond the counted ones free", "lessons/_truth_integrals", "Forest.__init__", {"Call float": "0.0"}, _of("test_truth.py", "test_what_is_left_out_of_a_forest_is_in_its_upper_end")),
    # Certificates.
    Mutant("certificate: bound without its failure probability", "balls_in_bins/confidence_bounds", "betting", {"BinOp Add#1": "_.right"}, _CONFIDENCE),
    Mutant("certificate: failure probability squared away", "balls_in_bins/confidence_bounds", "betting", {"Call log": "_ / 2"}, _CONFIDENCE),
    Mutant("certificate: crossing rounded down", "balls_in_bins/confidence_bounds", "_crossing", {"While": "", "Return#3": "return min(1.0, mean * (1 - 1e-06))"}, _CONFIDENCE),
    Mutant("certificate: bound of the samples halved", "balls_in_bins/certificate", "run", {"BinOp Mult#1": "_.left / 2"}, _CERTIFICATE),
    Mutant("certificate: the mean as its own bound", "balls_in_bins/certificate", "run", {"Call betting": "float(np.concatenate(blocks)[:samples].mean()) * 0.98"}, _CERTIFICATE),
    Mutant("certificate: pilot's samples used again", "balls_in_bins/certificate", "", {"Constant 5#1": "4"}, _of("test_tuples.py", "test_the_final_samples_are_fresh")),
    Mutant("certificate: remove, payoff at half the density", "balls_in_bins/tuple_sampler", "RemoveSampler._line", {"Call bincount": "_ / 2"}, _SAMPLES),
    Mutant("certificate: add, half-space too far away", "balls_in_bins/tuple_sampler", "add_sampler", {"Name threshold#3": "_ + 0.5"}, _SAMPLES + ("test_tuples.py",)),
    Mutant("certificate: add, draws outside the half-space", "balls_in_bins/tuple_sampler", "AddSampler.__call__", {"BinOp Mult#2": "_.right"}, _SAMPLES),
    Mutant("certificate: unresolved draws count as 0", "balls_in_bins/tuple_sampler", "_capped", {"Constant 1.0#2": "0.0"}, _of("test_tuples.py", "test_far_normals_count_as_the_bound")),
    Mutant("certificate: cut-off of the line dropped", "balls_in_bins/tuple_sampler", "RemoveSampler.extra", {"BinOp Add": "0.0"}, _of("test_tuples.py", "test_what_the_drawn_tuples_miss_is_added")),
    Mutant("certificate: Gram matrix from below", "balls_in_bins/tuple_sampler", "factor", {"BinOp Mult#7": "0.0"}, _of("test_tuples.py", "test_factor_is_above_in_exact_arithmetic")),
    # Exact bins.
    Mutant("lognormals: remove and add swapped", "balls_in_bins/lognormal_sum", "_Problem.__init__", {"IfExp#1": "-1 if _.test else 1"}, _LOGNORMAL),
    Mutant("lognormals: tail mass dropped", "balls_in_bins/lognormal_sum", "_evaluate", {"Tuple#3": "(high,)"}, _LOGNORMAL + ("test_lognormal.py",)),
    Mutant("lognormals: upper end from the lower sum", "balls_in_bins/lognormal_sum", "_evaluate", {"Name high#2": "low"}, _LOGNORMAL),
    Mutant("lognormals: one bin's bound for half the modes", "balls_in_bins/lognormal_sum", "_widest", {"Name norm_squared#2": "_ / 2"}, _LOGNORMAL + ("test_lognormal.py",)),
    Mutant("lognormals: upper end of epsilon not confirmed", "balls_in_bins/lognormal_sum", "_confirmed", {"Compare LtE": "True"}, _of("test_lognormal.py", "test_ends_of_epsilon_are_confirmed_by_wide_brackets")),
    # One fault for each property that the faults above may leave to others.
    Mutant("property: epsilon forgotten in the lead", "accounting/contour", "_Integral.log_bounds", {"BinOp Sub#2": "_.left"}, _of(PROPERTIES, "test_delta_falls_and_is_convex[contour]")),
    Mutant("property: directions of the contour swapped", "accounting/chernoff", "_families", {"IfExp#2": "-1 if _.test else 1"}, _of(PROPERTIES, "test_add_is_at_most_remove[contour]")),
    Mutant("property: both is the smaller direction", "_base/validate", "side", {"Constant 'remove'": "'add'"}, _of(PROPERTIES, "test_both_is_the_larger_direction")),
    Mutant("property: noise multiplies", "mixtures/pair", "Mixture._set", {"BinOp Div": "_.left * min(sigma, 3.0)"}, _of(PROPERTIES, "test_more_sampling_or_less_noise_costs_more[auto]")),
    Mutant("property: rounds divide", "accounting/contour", "_Integral._choose_nodes", {"BinOp MatMult#1": "_.right.sum()"}, _AGREE),
    Mutant("property: a group's sampling falls with its size", "mixtures", "binomial", {"Name q#5": "_ / k ** 3", "UnaryOp USub": "_ / k ** 3"}, _of(PROPERTIES, "test_a_larger_group_costs_more[auto]")),
    Mutant("property: the largest sensitivity hides the others", "mixtures/pair", "Mixture._set", {"BinOp Div": "_ / (1 + _.left[-1]) ** 2"}, _of("test_accounting.py", "test_delta_of_every_reference_value_is_inside")),
    Mutant("property: chances exchanged", "mixtures/pair", "Mixture.__post_init__", {"Name p#2": "_[::-1]"}, _of(PROPERTIES, "test_hiding_which_mixture_it_was_costs_less[auto]")),
    Mutant("property: smallest coordinate for the norm", "mixtures/vector", "VectorMixture.reduced", {"Call norm": "np.abs(_.args[0]).min(axis=1)"}, _of("test_domination.py", "test_norms_dominate_modes")),
    Mutant("property: rounds squared", "accounting", "_gaussian_mu", {"Name rounds#1": "_ ** 2"}, _of(PROPERTIES, "test_any_poisson_setting_is_answered_or_refused")),
    Mutant("property: last iterate with the noise of one round", "mechanisms/dpsgd", "LastIterate.composition", {"BinOp Mult": "_.left"}, _of(PROPERTIES, "test_the_last_iterate_costs_less")),
    Mutant("property: larger batches sample less", "mixtures", "hypergeometric", {"BinOp Mult#1": "(k - j) / (b - j)"}, _of(PROPERTIES, "test_fixed_batches_are_monotone")),
    Mutant("property: Renyi divergences of unlike rounds not added", "accounting/renyi", "_total", {"Attribute fsum#2": "max"}, _of(PROPERTIES, "test_renyi_divergences")),
    Mutant("property: Renyi bound of one round", "accounting/renyi", "_least", {"BinOp Mult": "_.right / 2"}, _of(PROPERTIES, "test_renyi_bounds_are_above_the_others")),
    Mutant("property: number of bins forgotten", "balls_in_bins/lognormal_sum", "_Problem.__init__", {"Call log#1": "_ / 2"}, _of(BINS, "test_sums_of_lognormals")),
    Mutant("property: lognormals' tail cut off", "balls_in_bins/lognormal_sum", "_evaluate", {"Tuple#3": "(high - 1,)"}, _of(BINS, "test_coarse_grids_of_lognormals_contain_the_truth")),
    Mutant("property: estimates of other modes", "balls_in_bins", "estimate", {"Name gram#4": "_ / _.max()"}, _of("test_montecarlo.py", "test_lines_agree_with_quadrature_and_plain_sampling")),
    Mutant("property: one batch at half the norm", "balls_in_bins/exact", "epsilon_bracket", {"Call sqrt": "_ / 2"}, _of(BINS, "test_one_batch_and_any_noise")),
    Mutant("property: MMCC at delta_1 alone", "conditional", "_Build.rows", {"ListComp": "_[:1]"}, _of(BINS, "test_mmcc_is_above_what_a_line_shows")),
    Mutant("property: the past lowers the odds", "conditional/tails", "posterior", {"BinOp Add#2": "_.left - _.right"}, _of(BINS, "test_published_bounds_are_monotone")),
    # Records that pause.
    Mutant("pauses: nothing of the far rounds is their own", "balls_in_bins/pattern_values", "_Pushes.__init__", {"IfExp#2": "1 - chord if size > 1 else 0.0"}, _PATTERNS),
    Mutant("pauses: overlaps of one record forgotten", "balls_in_bins/pattern_pair", "Pair._steps", {"UnaryOp USub#3": "0 * _.operand"}, _of("test_min_separation.py", "test_likelihood_ratio_of_columns_that_overlap_against_enumeration")),
    Mutant("pauses: a tuple's own rounds forgotten", "balls_in_bins/pattern_tuples", "_drawn_tuples", {"AugAssign Add#2": ""}, _of("test_min_separation.py", "test_value_functions_bound_the_moment_and_tuples_have_it_as_mean")),
    Mutant("pauses: the half-space of columns that do not overlap", "balls_in_bins/pattern_sampler", "_half_space", {"AugAssign Add": ""}, _of("test_min_separation.py", "test_every_sampler_has_delta_as_its_mean")),
]
