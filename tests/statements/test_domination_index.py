"""Each statement of the theorem index that compares divergences has a property on random instances."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

LAWS, RUNS = "test_domination.py", "test_domination_runs.py"
MIXTURES, ALL, BINS = "test_vector_mixture.py", "test_properties.py", "test_properties_bins.py"

# Statements that say that one divergence, delta or epsilon is at most another one, for whole classes of laws.
DOMINATION = {
    "C-1": [(LAWS, "test_parity_of_laws"), (ALL, "test_parity_of_compositions")],
    "C-3": [(LAWS, "test_domination_is_the_same_in_both_orders")],
    "C-4": [(LAWS, "test_zero_out_of_fixed_batches_stays_below_shift_two")],
    "C-7": [
        (LAWS, "test_adaptive_rounds_are_dominated_by_the_product"),
        (LAWS, "test_mixing_pairs_costs_no_more_than_their_average"),
        (ALL, "test_hiding_which_mixture_it_was_costs_less"),
    ],
    "C-8": [(LAWS, "test_poisson_identity")],
    "C-9": [(LAWS, "test_remove_beats_add_for_symmetric_laws")],
    "C-9m": [
        (LAWS, "test_remove_is_the_larger_direction_of_any_mixture"),
        (LAWS, "test_remove_is_the_larger_direction_with_shifts_of_both_signs"),
        (ALL, "test_add_is_at_most_remove"),
    ],
    "R-3.4": [(LAWS, "test_close_mechanisms_have_close_curves")],
    "M-B": [
        (LAWS, "test_norms_dominate_modes"),
        (LAWS, "test_larger_modes_cost_more"),
        (MIXTURES, "test_stochastic_order_gives_domination"),
        (MIXTURES, "test_split_threshold_lemma"),
    ],
    "G-2.9": [
        (LAWS, "test_norms_dominate_modes"),
        (ALL, "test_larger_sensitivities_cost_more"),
    ],
    "M-K": [(LAWS, "test_larger_inner_products_cost_more")],
    "G-1.1": [(LAWS, "test_black_box_lemma")],
    "G-3.1": [(LAWS, "test_poisson_groups_are_dominated")],
    "G-3.3": [(LAWS, "test_groups_in_fixed_batches_are_dominated")],
    "G-3.3t": [(LAWS, "test_both_group_theorems_are_attained")],
    "G-4L": [(ALL, "test_a_larger_group_costs_more")],
    "M-F5": [
        (LAWS, "test_last_iterate_of_linear_losses_is_dominated"),
        (ALL, "test_the_last_iterate_costs_less"),
    ],
    "M-C.5": [(LAWS, "test_tails_of_the_loss")],
    "M-5.1": [(LAWS, "test_hidden_slots")],
    "M-5.2r": [(RUNS, "test_tree_with_two_leaves"), (RUNS, "test_replicas_of_a_tree")],
    "ZW-0": [(RUNS, "test_renyi_curves")],
    "ZW-1": [(RUNS, "test_sampled_renyi_curves_of_any_pair")],
    "ZW-3": [(RUNS, "test_sampled_renyi_curves_of_any_pair")],
    "ZW-4": [(RUNS, "test_renyi_add_is_at_most_remove")],
    "ZW-4m": [(RUNS, "test_renyi_orders_of_mixtures")],
    "ZW-6": [
        (RUNS, "test_conversions_of_renyi_divergences"),
        (ALL, "test_renyi_bounds_are_above_the_others"),
    ],
    "R-0": [(ALL, "test_more_sampling_or_less_noise_costs_more"), (ALL, "test_scale_does_not_matter")],
    "R-A11": [(RUNS, "test_bounds_on_delta_by_moments")],
    "R-5.1": [("test_large_batches.py", "test_a_sum_of_rounds_is_at_least_one_step")],
    "R-5.2": [(RUNS, "test_bounds_on_delta_by_moments")],
    "R-6": [(RUNS, "test_one_step")],
    "M-0": [(RUNS, "test_adaptive_inputs_of_a_matrix_mechanism")],
    "M-0a": [
        (RUNS, "test_a_budget_on_every_path_is_one_gaussian"),
        (RUNS, "test_adaptive_inputs_of_a_matrix_mechanism"),
    ],
    "N-3.2": [
        (RUNS, "test_balls_in_bins_are_dominated"),
        (BINS, "test_larger_entries_of_the_gram_matrix_cost_more"),
    ],
    "N-K": [(RUNS, "test_equal_inputs_fixed_in_advance_are_the_worst")],
    "A-14": [(RUNS, "test_balls_in_bins_lie_between_floor_and_ceiling")],
    "N-5": [(RUNS, "test_balls_in_bins_lie_between_floor_and_ceiling")],
    "A-19": [(RUNS, "test_shuffling_costs_at_least_what_its_event_shows")],
    "M-3.1": [(RUNS, "test_conditional_composition")],
    "M-3.1s": [(RUNS, "test_conditional_composition")],
    "M-B.4": [(RUNS, "test_all_ones_dominate_adaptive_inputs")],
    "M-C.3": [(RUNS, "test_independent_coins_cover_the_posterior")],
    "M-Alg1": [(RUNS, "test_mmcc_holds_for_adaptive_inputs")],
    "M-Alg2": [(BINS, "test_tail_exponents_are_exceeded_as_rarely_as_they_say")],
    "M-4.3": [(RUNS, "test_mmcc_holds_for_adaptive_inputs"), (BINS, "test_mmcc_is_above_what_a_line_shows")],
    "M-few": [(RUNS, "test_counting_participations_holds_for_adaptive_inputs")],
    "M-once": [(RUNS, "test_counting_participations_holds_for_adaptive_inputs")],
    "M-p": [(RUNS, "test_less_sampling_costs_less")],
    "A-10": [(BINS, "test_row_laws_dominate")],
    "A-11": [(BINS, "test_tail_exponents_are_exceeded_as_rarely_as_they_say")],
    "A-12": [
        (RUNS, "test_sums_of_intensities_cover_the_posterior"),
        (RUNS, "test_equal_coins_cover_a_node_of_a_tree"),
    ],
    "A-13": [(RUNS, "test_pool_of_bounds")],
    "A-15": [
        (BINS, "test_certificates_are_above_the_truth"),
        (BINS, "test_samples_average_to_delta_and_stay_below_their_bound"),
        (BINS, "test_confidence_bounds"),
    ],
    "A-16": [(BINS, "test_sums_of_lognormals"), (BINS, "test_two_bins_by_quadrature")],
    "A-18": [("test_wide.py", "test_wide_bounds_of_random_mixtures")],
    "A-5": [
        (ALL, "test_lattice_laws_lie_on_the_right_side_everywhere"),
        (ALL, "test_coarse_lattices_contain_the_truth"),
    ],
    "A-6": [
        (ALL, "test_lattice_laws_lie_on_the_right_side_everywhere"),
        (ALL, "test_coarse_lattices_contain_the_truth"),
    ],
}

# Definitions, formulas, limits, errors of estimates, examples: they order no two divergences of a class of laws.
# [N-2.1], [N-2.1s] are implications about any test; how often it accepts a false claim is measured in test_coverage_study.py.
OTHERS = set(
    """C-2 C-5 C-6 C-10 M-D N-3.1 G-2.8 M-4.2 G-2.5 G-4 ZW-2 ZW-5 ZW-7 R-4 R-A1 R-A9 R-A10 R-A2 R-A7 R-2.10 R-5.3 R-5.4 R-5.4r
    R-6.1 R-6.2 R-6.3 R-6.2x M-0r M-0s M-E M-tree M-treeL N-BLT N-RMSE N-RMSEl M-5.2 N-A M-low N-MC N-2.1 N-2.1s N-grad
    N-gradI A-1 A-2 A-3 A-4 A-7 A-8 A-17""".split()
)


@pytest.fixture(scope="module")
def index():
    return (ROOT / "book" / "theorems.md").read_text(encoding="utf-8")


def tags(text):
    """Those of the rows of the table and of the boxes."""
    rows = re.findall(r"^\| (\w+-[\w.]+) \|", text, re.M)
    boxes = re.findall(r"^````\{prf:\w+\} \[([^\]]+)\]", text, re.M)
    return set(rows) | set(boxes)


def test_every_statement_is_sorted(index):
    """A new statement has to go to one of the two lists."""
    found = tags(index)
    assert found == set(DOMINATION) | OTHERS
    assert not set(DOMINATION) & OTHERS


def test_no_statement_on_domination_counts_as_another(index):
    for tag, box in re.findall(r"^````\{prf:\w+\} \[([^\]]+)\][^\n]*\n(.*?)^````", index, re.M | re.S):
        if re.search(r"\bdominat(es|ed)\b|H_\\alpha\([^)]*\)[^$]*\\le", box):
            assert tag in DOMINATION, tag


def properties(name):
    """{function: docstring} of the properties of a test module."""
    (file,) = (ROOT / "tests").glob(f"*/{name}")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(_is_given(decorator) for decorator in node.decorator_list)
    }


def _is_given(decorator):
    return (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id == "given"
    )


@pytest.mark.parametrize("tag", DOMINATION)
def test_the_properties_exist(tag):
    for module, test in DOMINATION[tag]:
        found = properties(module)
        assert test in found, f"{module}::{test}"
        assert module not in (LAWS, RUNS) or f"[{tag}]" in found[test], (
            f"{module}::{test} does not name {tag}"
        )
