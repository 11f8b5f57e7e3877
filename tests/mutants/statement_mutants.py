"""For each test of the theorem index: how its statement is made false (used by mutation.py).

A mutation is (what is false, text, text instead), and where it is not the test itself that changes, the name of
the helper in its file or of the function of dplib. Each makes the statement wrong, or claims more than
it does: an upper bound that is 1% too small, never one that is larger.
"""

from mutants import FILES

_TABLE = {}

# ------------------------------------------------------------------ facts of the field

_TABLE["test_field_statements.py"] = {
    "test_hockey_stick_is_the_best_event": [
        ("order 1% too large", "hockey_stick(P, Q, alpha)", "hockey_stick(P, Q, 1.01 * alpha)"),
        ("directions swapped", "hockey_stick(P, Q, alpha)", "hockey_stick(Q, P, alpha)"),
    ],
    "test_trade_off_function_is_the_envelope_of_its_lines": [
        ("delta 1% too small", "(1 - deltas -", "(1 - 0.99 * deltas -"),
        ("orders inverted", "np.exp(epsilons)", "np.exp(-epsilons)"),
    ],
    "test_loss_forms_of_the_hockey_stick": [
        ("1% more than alpha e^-L", "(1 - alpha * inverse", "(1 - 1.01 * alpha * inverse"),
        ("factor alpha dropped in the tails", "alpha[:, 0] * (Q * above)", "(Q * above)"),
        ("delta a per cent above P(L > eps)", "exact <= (P * above).sum(axis=1) +", "1.01 * exact >= (P * above).sum(axis=1) +"),
    ],
    "test_the_two_values_of_a_pair_differ": [
        ("directions swapped", "hockey_stick(Q, P, alpha)", "hockey_stick(P, Q, alpha)"),
        ("value 1% larger", "pytest.approx(0.1)", "pytest.approx(0.101)"),
    ],
    "test_printed_values_of_the_gaussian_mechanism": [
        ("mu 1% larger", "gaussian.epsilon(mu, 1e-6)", "gaussian.epsilon(1.01 * mu, 1e-6)"),
        ("factor 1/2 dropped", "ndtr(mu / 2 - epsilon / mu)", "ndtr(mu - epsilon / mu)", "textbook"),
    ],
    "test_composition_needs_all_orders": [
        ("orders below 1 asked for", "np.linspace(1, 30, 3000)", "np.linspace(0.5, 30, 3000)"),
        ("order 1% larger", "np.kron(y, y), 1.0)", "np.kron(y, y), 1.01)"),
    ],
    "test_numerical_floor_of_an_fft": [
        ("number of rounds dropped", "unit = rounds * 2.0**-53", "unit = 2.0**-53"),
    ],
    "test_no_floor_in_the_library": [
        ("directions mixed", 'epsilon, "remove", "contour"', 'epsilon, "add", "contour"'),
        ("epsilon 1% larger", 'epsilon, "remove", 1e-3', '1.01 * epsilon, "remove", 1e-3'),
    ],
    "test_total_variation_lemma": [
        ("1 + e^eps without the 1", "(1 + alpha[:, 0]) * d", "alpha[:, 0] * d"),
        ("value 1% larger", "(1 + math.e) * 0.05", "(1 + math.e) * 0.0505"),
    ],
}

_TABLE["test_vector_mixture.py"] = {
    "test_one_direction_on_non_negative_epsilon_is_not_domination": [
        ("remove in the place of add", 'grid, "add"', 'grid, "remove"'),
    ],
    "test_signed_mixtures_in_space": [
        ("norms 10% smaller", "Mixture(np.linalg.norm(modes, axis=1), p, 1.0)", "Mixture(0.9 * np.linalg.norm(modes, axis=1), p, 1.0)"),
        ("norms without the third coordinate", "Mixture(np.linalg.norm(modes, axis=1), p, 1.0)", "Mixture(np.linalg.norm(modes[:, :2], axis=1), p, 1.0)"),
        ("directions swapped", "add <= remove + IN_SPACE", "remove <= add + IN_SPACE"),
        ("signs do not matter", "value[1] < 0.9 *", "value[1] >= 0.9 *"),
    ],
    "test_only_the_gram_matrix_matters": [
        ("only up to a factor of 1%", "turned(mixture.modes, angle, mirror)", "1.01 * turned(mixture.modes, angle, mirror)"),
        (
            "any modes of these lengths",
            "turned(mixture.modes, angle, mirror), mixture",
            "np.linalg.norm(mixture.modes, axis=1)[:, None] * [1.0, 0.0], mixture",
        ),
    ],
    "test_split_threshold_lemma": [
        ("directions swapped", "plane <= line + TOLERANCE", "line <= plane + TOLERANCE"),
        ("value without a crossing 1% off", "pytest.approx(1 - level, abs=1e-12)", "pytest.approx(1 - 1.01 * level, abs=1e-12)"),
    ],
}

_TABLE["test_statements.py"] = {
    "test_gaussian_mechanism": [
        ("factor 1/2 dropped", "(mu / 2 - epsilon / mu)", "(mu - epsilon / mu)"),
        ("shifts add instead of squares", "math.sqrt(7)", "5"),
        ("mu 1% larger", "gaussian.delta(mu, epsilon)", "gaussian.delta(1.01 * mu, epsilon)"),
    ],
    "test_losses_of_two_rounds_add": [
        ("first loss 1% smaller", "epsilon - loss", "epsilon - 0.99 * loss"),
        ("directions swapped", 'first.loss(X) if direction == "remove"', 'first.loss(X) if direction == "add"'),
    ],
    "test_black_box_value_solves_its_equation_and_exceeds_the_truth": [
        ("growth 1% larger", "growth = lambda e: math.expm1(k * e)", "growth = lambda e: 1.01 * math.expm1(k * e)"),
        ("growth without k", "else k * math.exp(k * e)", "else math.exp(k * e)"),
    ],
    "test_first_group_for_which_dp_accounting_answers_infinity": [
        ("first group 1 larger", "(sharpened, 9), (raw, 8)", "(sharpened, 10), (raw, 9)"),
        ("forms exchanged", "(sharpened, 9), (raw, 8)", "(sharpened, 8), (raw, 9)"),
    ],
    "test_adjacency_grows_with_the_group_and_covers_both_directions": [
        ("smaller of both directions", "max(remove.upper, add.upper)", "min(remove.upper, add.upper)"),
        ("larger groups lose less", "(1, 2, 5)", "(5, 2, 1)"),
    ],
    "test_points_of_both_figures": [
        ("value 1% larger", 'value[f"epsilon_{direction}"]', '1.01 * value[f"epsilon_{direction}"]'),
        ("directions swapped", "run.epsilon(1e-6, direction)", 'run.epsilon(1e-6, "add")'),
    ],
    "test_linear_extrapolation_is_not_a_lower_bound": [
        ("k epsilon_1 is a lower bound", "group.upper < k * single.lower", "group.upper >= k * single.lower"),
        ("a group loses less than one record", "group.lower >= single.lower", "group.upper <= single.upper"),
    ],
    "test_linear_extrapolation_is_not_an_upper_bound_either": [
        ("k epsilon_1 is an upper bound", "epsilon(1e-6).lower >", "epsilon(1e-6).lower <="),
    ],
    "test_product_mixture_by_enumeration": [
        ("probabilities 1% larger", "mixtures.product(p, c, 1.3)", "mixtures.product([1.01 * x for x in p], c, 1.3)"),
        ("coefficients dropped", "sum(c[j] for j in chosen)", "sum(1.0 for j in chosen)"),
    ],
}

_TABLE["test_subsampling_statements.py"] = {
    "test_zeroed_and_absent_agree_under_poisson_sampling": [
        ("record not zeroed", "[-1, 0.5, 0.3, 0], 0.3", "[-1, 0.5, 0.3, 1], 0.3"),
        ("probability 1% larger", "[-1, 0.5, 0.3, 0], 0.3", "[-1, 0.5, 0.3, 0], 0.303"),
    ],
    "test_add_or_remove_doubles_the_sensitivity_of_a_fixed_batch": [
        ("factor 2 dropped", "mixtures.hypergeometric(2, 5, 1, 1.0)", "mixtures.hypergeometric(2, 5, 1, 2.0)"),
        ("noise 1% larger", "mixtures.hypergeometric(2, 5, 1, 1.0)", "mixtures.hypergeometric(2, 5, 1, 1.01)"),
        (
            "directions swapped",
            '("remove", (present, absent)), ("add", (absent, present))',
            '("add", (present, absent)), ("remove", (absent, present))',
        ),
    ],
    "test_zero_out_does_not_save_a_fixed_batch": [
        ("absent instead of zeroed", "density([0, 1]", "density([0, 0]"),
        ("pair with shift 1 is a bound", "for s in (1.0, 2.0)", "for s in (1.0, 1.0)"),
    ],
    "test_poisson_identity_in_closed_form": [
        ("order 1% off", "math.log1p(q * (alpha - 1))", "math.log1p(1.01 * q * (alpha - 1))"),
        ("factor q dropped", "q * gaussian.delta", "gaussian.delta"),
        ("directions swapped", '"remove"', '"add"'),
    ],
    "test_both_directions_as_scaled_gaussians": [
        ("order 1% larger", "math.log(order)", "math.log(1.01 * order)"),
        ("factor c dropped", "c * gaussian.delta", "gaussian.delta"),
    ],
    "test_one_sided_noise_reverses_the_order": [
        ("order 1.8 instead of 1.9", "mixed - 1.9 * Q", "mixed - 1.8 * Q"),
        ("value 1% larger", "0.05 * (1", "0.0505 * (1"),
        ("directions swapped", "Q - 1.9 * mixed", "mixed - 1.9 * Q"),
    ],
    "test_minimal_separation_with_independent_noise_is_poisson_of_every_bth_round": [
        (
            "coins without the factor b",
            "[0.4**2, 0.6 * 0.4, 0.4 * 0.6, 0.6**2]",
            "[0.8**2, 0.2 * 0.8, 0.8 * 0.2, 0.2**2]",
        ),
        ("other rounds", "[0, 2, 3, 5]", "[0, 1, 3, 4]"),
    ],
    "test_final_iterate_of_a_step_function_loss_approaches_all_iterates": [
        ("one cell stores as much as 64", "direction, 64)", "direction, 1)"),
        ("linear losses lose as much", "dplib.LastIterate(sigma, q, 2)", "dplib.PoissonDPSGD(sigma, q, 2)"),
    ],
}

_TABLE["test_shuffled_tree.py"] = {
    "test_remove_is_the_larger_direction_of_any_composed_mixture": [
        ("directions swapped", 'for d in ("remove", "add")', 'for d in ("add", "remove")'),
    ],
    "test_loss_is_a_convex_function_of_a_normal_variable": [
        ("convex instead of concave", "np.diff(level, 2)", "np.diff(-level, 2)"),
    ],
    "test_add_is_larger_below_order_one": [
        ("the same order below 1", "(-0.05,", "(0.05,"),
    ],
    "test_slots_against_reference_and_bounds": [
        ("root of n dropped", "(sigma * math.sqrt(n))", "sigma"),
        ("order 5% off", "values - math.exp(e)", "values - math.exp(1.05 * e)"),
    ],
    "test_bound_for_many_slots_has_the_right_order": [
        ("variance of a slot dropped from the bound", "2 * variance * beta / slots", "0.0 * variance", "bernstein"),
        ("order 1/n", "math.sqrt(2 * variance * beta / slots)", "math.sqrt(2 * variance * beta) / slots", "bernstein"),
        ("root of n dropped", "(sigma * math.sqrt(n))", "sigma"),
    ],
    "test_tail_of_unequal_slots_is_below_the_bound": [
        ("order 1/n'", "math.sqrt(2 * variance * beta / 5) + single / 5", "math.sqrt(2 * variance * beta) / 25 + single / 25"),
        ("caps of single slots dropped", "8 * special.ndtr(-z0)", "0.0 * special.ndtr(-z0) - math.exp(-beta)"),
    ],
    "test_capped_weights_are_an_average_of_equal_ones": [
        ("weights of up to 1/2 on sets of three", "p.max() > 1 / 3", "p.max() > 1 / 2"),
    ],
    "test_noise_of_the_shuffled_tree": [
        ("tree of twice as many leaves", "matrices.binary_tree(leaves)", "matrices.binary_tree(2 * leaves)"),
        ("noise 5% larger", "abs(sigma / published - 1)", "abs(1.05 * sigma / published - 1)"),
    ],
    "test_projection_bounds_the_tree_from_below": [
        ("2 instead of 2 - 1/n", "2 - 1 / leaves", "2"),
        ("root dropped", "math.sqrt(2 - 1 / 16)", "(2 - 1 / 16)"),
    ],
    "test_replica_bound_by_enumeration": [
        ("bound 1% smaller", "finite = math.log(", "finite = 0.99 * math.log("),
        ("bound and truth swapped", "divergence <= finite * (1 + 1e-12)", "finite <= divergence * (1 + 1e-12)"),
    ],
    "test_explicit_noise_suffices": [
        ("3 instead of 5", "math.sqrt(5 * (", "math.sqrt(3 * ("),
        ("root dropped from the noise", "order / (2 * sigma**2)", "order / (2 * sigma)"),
    ],
    "test_loss_tail_of_random_pairs": [
        ("the printed bound on the upper tail", "upper <= remove / (1 - 1 / e)", "upper <= remove / (epsilon * e)"),
        ("lower tail with half the bound", "lower <= add / (e * (e - 1))", "lower <= add / (2 * e * (e - 1))"),
        ("directions swapped", "upper <= remove / (1 - 1 / e)", "upper <= add / (1 - 1 / e)"),
    ],
    "test_loss_tail_of_the_gaussian_and_sharpness": [
        ("bound 1% smaller", "delta / (1 - math.exp(-epsilon))", "0.99 * delta / (1 - math.exp(-epsilon))"),
        ("the printed bound holds", "delta / (epsilon * math.exp(epsilon)) < mass", "delta / (epsilon * math.exp(epsilon)) >= mass"),
    ],
}

_TABLE["test_batching.py"] = {
    "test_balls_meet_with_probability_one_over_the_number_of_bins": [
        ("one bin less", "abs(together - 1 / 4)", "abs(together - 1 / 3)"),
        ("first bin less likely", "np.full(4, trials / 4)", "trials * np.array([0.22, 0.26, 0.26, 0.26])"),
    ],
    "test_assignments_of_balls_are_jointly_uniform": [
        ("probabilities that grow", "np.full(b**n, trials / b**n)", "np.linspace(0.7, 1.3, b**n) * trials / b**n"),
    ],
    "test_sizes_of_bins_are_multinomial": [
        ("unequal bins", "[1 / 3] * 3)", "[0.36, 0.32, 0.32])"),
    ],
    "test_participations_are_separated_and_in_turn": [
        ("one round late", "i % b == d % b", "i % b == (d + 1) % b"),
        ("separation of one round less", "(30, rounds, b, 0.2, rng(seed))", "(30, rounds, b - 1, 0.2, rng(seed))"),
    ],
}

# ------------------------------------------------------------------ matrix mechanisms

_TABLE["test_mmcc_statements.py"] = {
    "test_two_rounds": [
        ("noise 1% larger", "MatrixMechanism(encoder, sigma, 0.1", "MatrixMechanism(encoder, 1.01 * sigma, 0.1"),
        ("directions swapped", "epsilon(1e-4, direction).value", 'epsilon(1e-4, "add").value'),
    ],
    "test_independent_rows_are_no_lower_bound": [
        ("rows exceed nothing", "mixtures.binomial(k, 0.5, 0.3)", "mixtures.binomial(1, 0.5, 0.9)"),
        ("probability 1% larger", "mixtures.binomial(k, 0.5, 0.3)", "mixtures.binomial(k, 0.505, 0.3)"),
    ],
    "test_inner_products_of_a_tree": [
        ("one more", "h - lowest)", "h - lowest + 1)"),
    ],
    "test_min_separation_of_a_banded_encoder_is_dp_sgd": [
        ("coins without the factor b", "8 / 64, 8)", "1 / 64, 8)"),
        ("all rounds instead of every bth", "8 / 64, 8)", "8 / 64, 64)"),
        ("noise 1% larger", "PoissonDPSGD(10.0", "PoissonDPSGD(10.1"),
    ],
    "test_budget_of_min_separation_counts_the_pairs_that_are_used": [
        ("factor 2 dropped", "delta_1 / (2 * pairs), rel", "delta_1 / pairs, rel"),
        ("the rule b delta_1", "bad(delta_1 / (2 * pairs)) <", "bad(8 * delta_1 / (2 * pairs)) <"),
    ],
    "test_splitting_lemma": [
        ("rate 1% smaller", "shortfall(z + high, t)", "shortfall(0.99 * (z + high), t)"),
        ("term of the upper point dropped", "shortfall(z + high, t)", "shortfall(z, t)"),
    ],
    "test_binomials_in_groups_are_false_with_cumulative_bounds": [
        ("intensities of 1 each", "math.exp(-0.5)", "math.exp(-1.0)"),
    ],
    "test_smallest_unused_member_never_runs_out": [
        ("largest unused member first", "np.searchsorted(left, value)", "(len(left) - 1)"),
        ("values 1 too large", "np.all(np.sort(values) <= pool)", "np.all(np.sort(values) <= pool + 1)"),
    ],
}

_TABLE["test_matrix_mechanism.py"] = {
    "test_no_bound_is_below_the_sampled_truth": [
        ("epsilon 15% smaller", "found = run.epsilon(case[\"delta\"], direction).upper", "found = 0.85 * run.epsilon(case[\"delta\"], direction).upper"),
        ("directions swapped", '(("remove", "rem"), ("add", "add"))', '(("add", "rem"), ("remove", "add"))'),
    ],
    "test_large_delta_end_to_end": [
        ("epsilon 40% smaller", "exact.delta(bound, direction)", "exact.delta(0.6 * bound, direction)"),
        ("noise halved in the truth", "truth.all_modes(encoder, sigma, p", "truth.all_modes(encoder, sigma / 2, p"),
    ],
    "test_less_sampling_never_costs_more": [
        ("more sampling never costs more", "found.upper >= last", "found.upper <= last"),
        ("it costs ten times as much", "found.upper >= last", "found.upper >= 10 * last"),
    ],
}

_TABLE["test_domination.py"] = {
    "test_parity_of_laws": [
        ("factor alpha dropped", "+ alpha * stick", "+ stick"),
        ("order alpha instead of 1/alpha", "1 / alpha)", "alpha)"),
    ],
    "test_domination_is_the_same_in_both_orders": [
        ("only one pair exchanged", "dominated((S, R), (Q, P))", "dominated((S, R), (P, Q))"),
    ],
    "test_adaptive_rounds_are_dominated_by_the_product": [
        ("directions of the bound swapped", "stick(bound[first], bound[second], alpha)", "stick(bound[second], bound[first], alpha)"),
        ("bound 1% smaller", "stick(bound[first], bound[second], alpha)", "0.99 * stick(bound[first], bound[second], alpha)"),
    ],
    "test_mixing_pairs_costs_no_more_than_their_average": [
        ("average 1% smaller", "average = ", "average = 0.99 * "),
        ("smallest instead of largest", "max(parts)", "min(parts)"),
    ],
    "test_poisson_identity": [
        ("factor q dropped", "q * stick(P", "stick(P"),
        ("order 1% off", "1 + q * (alpha - 1)", "1 + 1.01 * q * (alpha - 1)"),
    ],
    "test_remove_beats_add_for_symmetric_laws": [
        ("directions swapped", "stick(sampled, Q, alpha), Q, sampled", "stick(Q, sampled, alpha), sampled, Q"),
        ("no symmetry", "P = Q[::-1]", "P = np.roll(Q, 1)"),
    ],
    "test_black_box_lemma": [
        ("growth 1% smaller", "growth = ", "growth = 0.99 * "),
        ("k dropped", "math.expm1(k * epsilon) / math.expm1(epsilon)", "1.0"),
    ],
    "test_poisson_groups_are_dominated": [
        ("group of one record less", "binomial(k, q, sigma)", "binomial(k - 1, q, sigma)"),
        ("noise of the bound 1% larger", "binomial(k, q, sigma)", "binomial(k, q, 1.01 * sigma)"),
        ("directions swapped", "ordered(present, absent, direction)", "ordered(absent, present, direction)"),
    ],
    "test_groups_in_fixed_batches_are_dominated": [
        ("group of one record less", "hypergeometric(size, ordinary, k, sigma)", "hypergeometric(size, ordinary, k - 1, sigma)"),
        ("noise of the bound 1% larger", "hypergeometric(size, ordinary, k, sigma)", "hypergeometric(size, ordinary, k, 1.01 * sigma)"),
    ],
    "test_both_group_theorems_are_attained": [
        ("probability 10% larger", "binomial(k, q, sigma)", "binomial(k, min(1.1 * q, 1.0), sigma)"),
        ("one record less", "hypergeometric(size, ordinary, k, sigma)", "hypergeometric(size, ordinary, k - 1, sigma)"),
    ],
    "test_last_iterate_of_linear_losses_is_dominated": [
        ("noise 5% larger", "LastIterate(sigma, q, rounds).delta", "LastIterate(1.05 * sigma, q, rounds).delta"),
        ("directions swapped", "assert stays_below(last, *ordered(*laws, direction)", "assert stays_below(last, *ordered(*laws[::-1], direction)"),
    ],
    "test_larger_inner_products_cost_more": [
        ("smaller entries dominate", "at_most(small, large)", "at_most(large, small)"),
    ],
    "test_norms_dominate_modes": [
        ("norms 1% smaller", "VectorMixture(modes, weights, 1.0)", "VectorMixture(0.99 * modes, weights, 1.0)"),
        ("larger norms cost less", "bound <= larger", "larger <= bound"),
    ],
    "test_larger_modes_cost_more": [
        ("smaller modes dominate", "at_most(small, large)", "at_most(large, small)"),
    ],
}

_TABLE["test_families.py"] = {
    "test_quadrature_bounds_are_not_vacuous": [
        ("lines of the strip dropped", "np.logaddexp(math.log(2) + np.min(lines - decay, axis=0), log_tail)", "log_tail", "dplib.accounting.contour_nodes.Nodes.quadrature_error"),
        ("bound of a tenth", "error <= coarse.quadrature_error(0.0)", "error <= 0.1 * coarse.quadrature_error(0.0)"),
    ],
}

_TABLE["test_contour.py"] = {
    "test_moduli_are_bounded_far_beyond_the_nodes": [
        ("bound of nine tenths", "nodes.modulus_bound(y)[0] >= truth", "0.9 * nodes.modulus_bound(y)[0] >= truth"),
        ("frequency squared", "rest + variation / y >=", "rest + variation / (y * y) >="),
    ],
    "test_what_a_part_of_the_nodes_contributes_falls_like_one_over_y": [
        ("variation of half the size", "largest <= variation", "largest <= 0.5 * variation"),
    ],
}

_TABLE["test_properties.py"] = {
    "test_scale_does_not_matter": [
        ("noise not scaled", "mixture.noise_multiplier * factor)", "mixture.noise_multiplier)"),
    ],
    "test_posterior_variance_stays_below_its_bound": [
        ("variance bound of a quarter", "mixture.variance_bound * (1", "0.25 * mixture.variance_bound * (1"),
    ],
    "test_lattice_laws_lie_on_the_right_side_everywhere": [
        ("sides exchanged", '(("upper", 1), ("lower", -1))', '(("upper", -1), ("lower", 1))'),
        ("chords without the far end", "upper += math.exp(-c * h) * share", "pass", "dplib.accounting.lattice_round.Law._integrate"),
        ("tangents 1% higher", "sign * (curve - truth)", "sign * ((1.01 if sign < 0 else 1) * curve - truth)"),
    ],
    "test_coarse_lattices_contain_the_truth": [
        ("ends exchanged", "low <= exact.upper and exact.lower <= high", "high <= exact.upper and exact.lower <= low"),
    ],
}

_TABLE["test_properties_bins.py"] = {
    "test_row_laws_dominate": [
        ("what is set aside forgotten", "+ paid - truth", "- truth"),
        ("entries 1% larger", "Mixture(taken @ values", "Mixture(1.01 * taken @ values"),
    ],
    "test_tail_exponents_are_exceeded_as_rarely_as_they_say": [
        ("tail dropped from the joint bound", "+ log_moment(order) + need) / order", "+ log_moment(order)) / order", "dplib.conditional.tails.joint_exponents"),
        ("norms dropped from the joint bound", "order * (order - 1) / 2 * norms + log_moment", "log_moment", "dplib.conditional.tails.joint_exponents"),
    ],
}

_TABLE["test_conditional.py"] = {
    "test_simulated_sums_keep_their_budget": [
        ("bounds of half the size", "> bounds[: len(tops)]", "> 0.5 * bounds[: len(tops)]"),
    ],
    "test_simulated_trees_keep_their_budget": [
        ("chances of nine tenths", "needed > given", "needed > 0.9 * given"),
    ],
}

_TABLE["test_accounting_inputs.py"] = {
    "test_one_round_delta_is_bracketed_by_the_closed_form": [
        ("epsilon 1% larger", "Exact(pair).hockey_stick(epsilon, direction)", "Exact(pair).hockey_stick(1.01 * epsilon, direction)"),
        ("directions swapped", "accounting.delta(pair, epsilon, direction)", 'accounting.delta(pair, epsilon, "add")'),
    ],
}

_TABLE["test_truth_table.py"] = {
    "test_brackets_contain_the_truth": [
        ("noise of the last iterate 1% larger", "LastIterate(sigma, float", "LastIterate(1.01 * sigma, float", "mechanism"),
        ("directions swapped", 'made, side, epsilon = mechanism(value), value["direction"]', 'made, side, epsilon = mechanism(value), {"remove": "add", "add": "remove"}[value["direction"]]'),
    ],
}

_TABLE["test_domination_runs.py"] = {
    "test_adaptive_inputs_of_a_matrix_mechanism": [
        ("signs kept", "np.abs(encoder) @ taken", "encoder @ taken"),
        ("noise 1% larger", "1e-300) / sigma", "1e-300) / (1.01 * sigma)"),
    ],
    "test_a_budget_on_every_path_is_one_gaussian": [
        ("mu 1% smaller", "gaussian.delta(mu, epsilon)", "gaussian.delta(0.99 * mu, epsilon)"),
        ("what is spent may be spent again", "(left - spent)", "left"),
    ],
    "test_balls_in_bins_are_dominated": [
        ("signs kept", "np.abs(encoder) @", "encoder @"),
        ("modes of half the size", "sets).T / sigma", "sets).T / (2 * sigma)"),
    ],
    "test_equal_inputs_fixed_in_advance_are_the_worst": [
        ("equal inputs of nine tenths", "np.tile(np.eye(1, dimension)", "0.9 * np.tile(np.eye(1, dimension)"),
        ("any inner products", "assume(np.min(encoder.T @ encoder) >= -1e-12)", "encoder = encoder * rng.choice([-1, 1], encoder.shape)"),
    ],
    "test_balls_in_bins_lie_between_floor_and_ceiling": [
        ("floor 1% higher", "assert floor <=", "assert 1.01 * floor <="),
        ("ceiling of half the size", "value.lower <= np.mean(known)", "value.lower <= 0.5 * np.mean(known)"),
    ],
    "test_pool_of_bounds": [
        ("bound 1% smaller", "found <= stick(*whole, level)", "found <= 0.99 * stick(*whole, level)"),
    ],
    "test_sums_of_intensities_cover_the_posterior": [
        ("sums of half the size", "rng.uniform(1, 1.2)", "rng.uniform(0.5, 0.6)"),
        ("oldest entry of a group", "f[min(cut + 1, rounds - 1)]", "f[rounds - 1]"),
    ],
    "test_equal_coins_cover_a_node_of_a_tree": [
        ("sum of intensities 10% smaller", "rng.uniform(1, 1.2)", "rng.uniform(0.8, 0.9)"),
    ],
    "test_renyi_curves": [
        ("concave", "moments[1] <= (moments[0] + moments[2]) / 2 + 1e-9", "moments[1] >= (moments[0] + moments[2]) / 2 - 1e-9"),
        ("divergence divided by the order", "moments[1] / (middle - 1)", "moments[1] / (middle - 1) ** 2"),
        ("sum 1% smaller", "pytest.approx(log_moment(P, Q, order) + log_moment(R, S, order)", "pytest.approx(0.99 * log_moment(P, Q, order) + 0.99 * log_moment(R, S, order)"),
        ("average of half the size", "special.logsumexp(parts, b=[share, 1 - share])", "special.logsumexp(parts, b=[share / 2, (1 - share) / 2])"),
    ],
    "test_sampled_renyi_curves_of_any_pair": [
        ("one-sided curve", "max(log_moment(P, Q, n), log_moment(Q, P, n))", "log_moment(P, Q, n)"),
        ("bound of nine tenths", "bound * (1 + 1e-9)", "0.9 * bound"),
        ("second remove direction dropped", "b=[rho, 1 - rho]", "b=[1.0, 0.0]"),
    ],
    "test_renyi_add_is_at_most_remove": [
        ("directions swapped", "at_most(add, remove)", "at_most(remove, add)"),
    ],
    "test_renyi_orders_of_mixtures": [
        ("directions swapped", "add <= remove +", "remove <= add +"),
    ],
    "test_mmcc_holds_for_adaptive_inputs": [
        ("epsilon of half the size", "math.exp(bound))", "math.exp(0.5 * bound))"),
        ("inputs twice as long", "averaged(entries, coins(rounds, q), inputs, sigma, ends)", "averaged(2 * entries, coins(rounds, q), inputs, sigma, ends)"),
    ],
}

_TABLE["test_conditional_composition.py"] = {
    "test_conditional_composition_by_enumeration": [
        ("bad pasts dropped", "pair + bad + 1e-12", "pair + 1e-12"),
        ("half of the bad pasts", "pair + bad + 1e-12", "pair + 0.5 * bad + 1e-12"),
    ],
    "test_constant_of_conditional_composition_is_attained": [
        ("bad pasts 1% cheaper", "for p, q in runs) == beta", "for p, q in runs) <= 0.99 * beta"),
    ],
    "test_bad_pasts_under_the_second_law_are_no_bound": [
        ("first law in the place of the second", "truth, pair, _, other, _ = toys", "truth, pair, other, _, _ = toys"),
        ("second law is enough", "product + q[2] < exact", "product + q[2] >= exact"),
    ],
    "test_two_rounds_against_the_exact_value": [
        ("posterior dropped", "mixtures.product([pi, q]", "mixtures.product([q, q]"),
        ("noise 1% larger", "mixtures.product([pi, q], [1, 1], sigma)", "mixtures.product([pi, q], [1, 1], 1.01 * sigma)"),
    ],
    "test_a_bad_past_costs_the_smaller_of_two_masses": [
        ("factor alpha dropped", "np.minimum(bad, alpha * other)", "np.minimum(bad, other)"),
        ("half of the price", "np.minimum(bad, alpha * other)", "0.5 * np.minimum(bad, alpha * other)"),
    ],
    "test_bad_pasts_of_three_rounds_are_charged_at_their_first_prefix": [
        ("factor alpha dropped", "np.minimum(P, alpha * Q)", "np.minimum(P, Q)"),
        ("half of the price", "np.minimum(P, alpha * Q)[now]", "0.5 * np.minimum(P, alpha * Q)[now]"),
    ],
    "test_all_ones_is_the_worst_adaptive_input": [
        ("bound for inputs of 0.95", "two_round_delta(np.ones_like,", "two_round_delta(lambda y: 0.95 * np.ones_like(y),"),
        ("opposed inputs are the worst", "two_round_delta(np.ones_like,", "two_round_delta(lambda y: -np.ones_like(y),"),
    ],
    "test_best_adaptive_input_of_three_and_four_rounds": [
        ("bound 10% smaller", "best <= bound.upper", "best <= 0.9 * bound.upper"),
        ("signs do not matter", "1.1 * equal < other", "1.1 * equal >= other"),
        ("coins 5% less likely", "modes_value(np.array(list(chances)) @ C.T / sigma, list(chances.values())", "modes_value(np.array(list(chances)) @ C.T / sigma, list(coins(rounds, 0.95 * q).values())"),
    ],
    "test_the_algorithm_written_out": [
        ("budget of the composition not halved", "[end] - delta / 2", "[end] - delta"),
        ("bounds dropped", "mine = chance[row > 0]", "mine = np.full(sets.shape[1], q)"),
        ("noise 2% larger", "axis=1), sigma, 1)", "axis=1), 1.02 * sigma, 1)"),
        ("directions swapped", "epsilon(delta, direction)", 'epsilon(delta, "add")'),
    ],
    "test_posterior_is_covered_by_independent_coins": [
        ("coins 1% less likely", "pi = coin_bound(", "pi = 0.99 * coin_bound("),
        ("coins without the past", "pi = coin_bound(C[:r], past, q, sigma)", "pi = np.full(n, q)"),
    ],
    "test_posterior_bound_needs_entries_that_are_not_negative": [
        ("entry not negative", "[1.0, -1.0]]), np.array", "[1.0, 1.0]]), np.array"),
    ],
    "test_tail_bounds_keep_their_budget": [
        ("factor 2 dropped", "budget / (2 * max", "budget / (1 * max", "tail_bounds"),
        ("mean participation instead of its tail", "threshold = s + z", "threshold = law @ total + z", "tail_bounds"),
    ],
    "test_bounds_in_advance_are_rarely_exceeded_in_simulated_runs": [
        ("five times the budget", "tail_bounds(C, q, sigma, budget)", "tail_bounds(C, q, sigma, 5 * budget)"),
        ("evidence of half the size", "bound[r] + 1e-12", "0.9 * bound[r] + 1e-12"),
    ],
    "test_published_tail_of_the_library": [
        ("twice the budget", "sigma, q, budget)\n        exact", "sigma, q, 2 * budget)\n        exact"),
        ("bounds 1% smaller", "(found - exact)", "(0.99 * found - exact)"),
    ],
}

_TABLE["test_bin_statements.py"] = {
    "test_best_adaptive_inputs_of_three_bins_and_two_epochs": [
        ("entries without their modulus", "bound = pair(np.abs(C))", "bound = pair(signed)"),
        ("bound 10% smaller", "best <= bound.upper", "best <= 0.9 * bound.upper"),
        ("one epoch less", "modes(encoder, 3) / sigma", "modes(encoder[:, :3], 3) / sigma"),
    ],
    "test_pair_where_it_is_known": [
        ("mu 1% larger", "gaussian.delta(mu, 0.5)", "gaussian.delta(1.01 * mu, 0.5)"),
        ("epochs add lengths", "matrices.identity(12), 2.0, 3, 4", "matrices.identity(12), 4.0, 3, 4"),
        ("directions swapped", "small(np.eye(3), 0.5, direction)", 'small(np.eye(3), 0.5, "add")'),
    ],
    "test_example_with_a_negative_entry": [
        ("signs exchanged", "values[u * v]", "values[-u * v]"),
        ("modulus dropped", "np.abs([[1, 0], [-1, 1]])", "np.array([[1, 0], [-1, 1]])"),
    ],
    "test_triangular_toeplitz_with_non_negative_inner_products_has_no_negative_entry": [
        ("inner products a little negative", "np.min(C.T @ C) >= 0", "np.min(C.T @ C) >= -0.1"),
    ],
    "test_floor_is_the_value_for_one_direction": [
        ("value 1% larger", "scalar.hockey_stick(0.5, d)", "1.01 * scalar.hockey_stick(0.5, d)"),
        ("directions swapped", "scalar.hockey_stick(0.5, d)", 'scalar.hockey_stick(0.5, "add")'),
    ],
}

_TABLE["test_matrix_statements.py"] = {
    "test_three_forms_of_the_release_are_functions_of_each_other": [
        ("noise not decoded", "x + encoder.solve(z)", "x + z"),
        ("noise 1% larger", "x + encoder.solve(z)", "x + encoder.solve(1.01 * z)"),
    ],
    "test_fixed_inputs_are_one_gaussian": [
        ("encoder dropped", "np.linalg.norm(shift) / sigma", "np.linalg.norm(contribution) / sigma"),
        ("mu 1% larger", "np.linalg.norm(shift) / sigma", "1.01 * np.linalg.norm(shift) / sigma"),
    ],
    "test_budget_on_average_is_not_enough": [
        ("budget kept on every path", "math.sqrt(6) if v > 1 else 0.0", "math.sqrt(3)"),
        ("mu 1% larger", "gaussian.delta(2.0, 4.0), rel", "gaussian.delta(2.02, 4.0), rel"),
    ],
    "test_every_encoder_has_a_triangular_twin": [
        ("another Gram matrix", "triangular(tall.T @ tall)", "triangular(tall.T @ tall + 0.01 * np.eye(7))"),
        ("every decoder is as good", "np.linalg.norm(other, axis=1) >= np.linalg.norm(causal, axis=1)", "np.linalg.norm(other, axis=1) <= np.linalg.norm(causal, axis=1)"),
    ],
    "test_opposite_contributions_are_worse_for_a_negative_entry": [
        ("equal contributions", "encoder @ [1, -1]", "encoder @ [1, 1]"),
    ],
    "test_bands_make_separated_participations_orthogonal": [
        ("lengths add instead of squares", "math.sqrt(np.sum(norms[rounds] ** 2))", "np.sum(norms[rounds])"),
        ("gaps of one round less", "[0, 12, 24]", "[0, 11, 22]"),
    ],
    "test_falling_toeplitz_is_worst_from_the_first_round_on": [
        ("coefficients in any order", "np.sort(rng.exponential(size=9))[::-1]", "rng.exponential(size=9)"),
        ("value 1% smaller", "math.isclose(value, worst", "math.isclose(0.99 * value, worst"),
    ],
    "test_error_of_prefix_sums": [
        ("root of T dropped", "right / math.sqrt(8)", "right"),
        ("noise 2% larger", "right**2) <", "(1.02 * right) ** 2) <"),
        ("inverse of the workload instead", "utility.rmse(encoder), right", "utility.rmse(encoder), inverted"),
    ],
    "test_no_encoder_is_below_the_lower_bound": [
        ("bound 1% larger", "0.5 / np.sin", "0.505 / np.sin", "lower_bound"),
        ("factor 1/pi in the logarithm dropped", "math.log(16 / math.pi)", "math.log(16)"),
        ("sensitivity not counted", "sensitivity.single(encoder) * utility.rmse(encoder) >= lower_bound(n)", "utility.rmse(encoder) / sensitivity.single(encoder) >= lower_bound(n)"),
    ],
    "test_square_root_of_the_workload": [
        ("transposed", "entries @ entries, np.tri(100)", "entries @ entries.T, np.tri(100)"),
        ("constant 1% smaller", "4 * math.log(2)", "3.96 * math.log(2)"),
    ],
    "test_variances_of_a_tree": [
        ("one subtree less", "(2 ** (i + 1) - 1)", "(2 ** (i + 1))"),
        ("level of the root dropped", "math.sqrt(6)", "math.sqrt(5)"),
    ],
    "test_factor_of_a_tree_is_not_negative": [
        ("its inverse is not negative", "twin.min() >= 0", "np.linalg.inv(twin).min() >= -1e-9"),
        ("weight dropped from the recursion", "inner / (1 + inner * total)", "inner / (1 + total)"),
    ],
    "test_factor_of_a_tree_with_any_noise_is_not_negative": [
        ("that of the inverse", "np.linalg.cholesky(gram[::-1, ::-1])", "np.linalg.cholesky(np.linalg.inv(gram)[::-1, ::-1])"),
    ],
    "test_inverse_of_buffers": [
        ("scales positive", "weights = -1 /", "weights = 1 /"),
        ("condition without the decays", "scale / (1 + decay)) < 1", "scale) < 1"),
    ],
}

# ------------------------------------------------------------------ Monte Carlo, encoders, training

_TABLE["test_monte_carlo_statements.py"] = {
    "test_estimator_needs_the_gram_matrix_only": [
        ("factor 1/2 dropped", "np.diag(gram) / 2", "np.diag(gram)"),
        ("directions swapped", 'zip(("remove", "add")', 'zip(("add", "remove")'),
        ("mean 2% larger", "x.mean() - truth", "1.02 * x.mean() - truth"),
    ],
    "test_relative_variance_lies_between_its_bounds": [
        ("bounds exchanged", "1 / positive - 1 <= relvar <= 1 / delta - 1", "1 / delta - 1 <= relvar <= 1 / positive - 1"),
        ("factor 2 dropped in the exponent", "np.exp(-2 * step)", "np.exp(-step)"),
        ("second moment 1% larger", "(second, rel", "(1.01 * second, rel"),
    ],
    "test_verified_release_is_private": [
        ("a quarter of the samples", '"the rule": lambda threshold, final: montecarlo.verification_samples(threshold, final)', '"the rule": lambda threshold, final: montecarlo.verification_samples(threshold, final) // 4 + 1'),
        ("final delta 10% smaller", "together > final * (1 + 1e-9)", "together > 0.9 * final"),
        ("one sample is private", 'broken["one"] > 10', 'broken["one"] <= 10'),
    ],
    "test_published_sample_sizes": [
        ("threshold 1% larger", "(threshold, 1e-5)", "(1.01 * threshold, 1e-5)"),
    ],
    "test_tuple_identity": [
        ("one bin more in the weight", "3.0**-kappa", "3.0 ** (1 - kappa)"),
        ("delta 1% larger", "total == ", "1.01 * total == "),
        ("range 1% smaller", "peak = (1", "peak = 0.99 * (1"),
    ],
    "test_half_space_contains_the_region": [
        ("number of bins dropped", "3 * weights)", "weights)"),
        ("lengths dropped", "cost = weights @ np.diag(GRAM) / 2 +", "cost ="),
    ],
    "test_capital_is_a_martingale": [
        ("mean 1% larger", "(values[i] - mean)", "(values[i] - 1.01 * mean)"),
        ("ruin of half the size", "ruin <= 1 / 1.2", "ruin <= 0.2 / 1.2"),
    ],
}

_TABLE["test_montecarlo.py"] = {
    "test_lines_agree_with_quadrature_and_plain_sampling": [
        ("value 5% larger", "within(found, TWO_DELTA[side])", "within(found, 1.05 * TWO_DELTA[side])"),
        ("directions swapped", "montecarlo.plain(CORRELATED, 0.7, side", 'montecarlo.plain(CORRELATED, 0.7, "add"'),
    ],
}

_TABLE["test_encoder_statements.py"] = {
    "test_slope_of_delta_by_every_entry": [
        ("factor 1/2 dropped", "np.sum(pi * change) / 2", "np.sum(pi * change)"),
        ("1% larger", "np.sum(pi * change) / 2", "1.01 * np.sum(pi * change) / 2"),
        ("factor alpha dropped", "math.exp(epsilon) * density", "density"),
    ],
    "test_slope_of_the_noise": [
        ("factor 2 dropped", "(2 * np.sum(pi * gram))", "np.sum(pi * gram)"),
        ("1% larger", "np.sum(pi * turn)", "1.01 * np.sum(pi * turn)"),
    ],
    "test_table_of_posteriors": [
        ("1% larger", "(np.exp(log_pi) * weight) @", "1.01 * (np.exp(log_pi) * weight) @", "border"),
        ("trace from 0.6", "0.5 <= traces[0]", "0.6 <= traces[0]"),
    ],
    "test_slopes_at_independent_noise": [
        ("factor (T - k) / T dropped", "(n - lag) / n * np.where", "np.where"),
        ("multiples of b like the others", "np.where(lag % batches", "np.where(lag > 0"),
    ],
    "test_threshold_of_independent_noise": [
        ("trace 0.65 instead of 3/5", "trace(epsilon) - 0.6", "trace(epsilon) - 0.65"),
    ],
    "test_independent_noise_is_never_stationary": [
        ("first term dropped", "1 / 3 - 2 / 4", "-2 / 4"),
        ("factor 2 dropped", "-1 / 6", "1 / 2 - 1 / 3"),
    ],
    "test_noise_that_grows_by_epochs_beats_one_size": [
        ("root instead of fourth root", "error(sums**0.25, epsilon)", "error(sums**0.5, epsilon)"),
        ("1% larger", "pytest.approx(stated", "pytest.approx(1.01 * stated"),
    ],
    "test_scaled_rows_beat_the_best_toeplitz_encoder": [
        ("rows not scaled", "d = columns**0.25 / (columns**0.25)[0]", "d = np.ones(rounds)"),
        ("rows that grow", "d = columns**0.25 / (columns**0.25)[0]", "d = (columns**0.25)[0] / columns**0.25"),
    ],
    "test_optimiser_finds_independent_noise_below_the_threshold": [
        ("the other side of the threshold", "for epsilon in (0.1, 0.25)", "for epsilon in (0.25, 0.1)"),
    ],
}

_TABLE["test_published.py"] = {
    "test_implicit_gradient_three_ways": [
        ("sign dropped", "-by_c / by_sigma", "by_c / by_sigma"),
        ("1% larger", "-by_c / by_sigma", "-1.01 * by_c / by_sigma"),
        ("half of the change of the diagonal", "by_gram -= np.diag(weights.sum(axis=0)) / (2 *", "by_gram -= np.diag(weights.sum(axis=0)) / (4 *", "by_hand"),
    ],
    "test_implicit_gradient_and_the_analytic_one": [
        ("factor 2 dropped", "axis=0) - analytic)", "axis=0) - 2 * analytic)"),
        ("noise 10% larger", "sigmas.mean() - analytic_sigma", "1.1 * sigmas.mean() - analytic_sigma"),
    ],
}

_TABLE["test_encoder_baselines.py"] = {
    "test_dp_sgd_by_all_three": [
        ("epochs add lengths", "4 / gaussian.calibrate", "16 / gaussian.calibrate"),
        ("Poisson and bins swapped", "for r in (bins, poisson)]", "for r in (poisson, bins)]"),
    ],
}

_TABLE["test_studies.py"] = {
    "test_order_of_the_methods": [
        ("bins cost something", 'row["rmse"] <= other["rmse"] * allowed * 1.001', 'other["rmse"] <= row["rmse"] * allowed * 1.001'),
    ],
}

_TABLE["test_training_statements.py"] = {
    "test_shuffling_makes_the_two_mixtures": [
        ("shift 2 dropped to 1", "(yours + 1) * (j == i)", "yours * (j == i)"),
    ],
    "test_event_of_the_largest_mean": [
        ("one batch less", "(b - 1) *", "(b - 2) *", "rates"),
        ("shift of the second world doubled", "(2 * mu, mu)", "(2 * mu, 2 * mu)", "rates"),
    ],
    "test_noise_for_poisson_is_too_small_for_shuffling": [
        ("directions swapped", "p, q = rates", "q, p = rates"),
    ],
}

# ------------------------------------------------------------------ Renyi

_TABLE["test_renyi_statements.py"] = {
    "test_binomial_expansion_of_the_remove_direction": [
        ("prefactor 1/order", "two, order) / (order - 1)", "two, order) / order"),
        ("directions swapped", "log_moment(0.7 * two + 0.3 * one, two, order)", "log_moment(two, 0.7 * two + 0.3 * one, order)"),
    ],
    "test_pointwise_inequality": [
        ("weight 1% smaller", "return 3 * (1 - q)", "return 2.97 * (1 - q)", "weight"),
        ("second term dropped", "rho * omega**order + (1 - rho) * y ** (1 - order) * omega_star**order", "omega**order", "above_tangent"),
    ],
    "test_curvature_rises_with_the_order_from_a_square": [
        ("first term 1% smaller", "kappa = 3 * p *", "kappa = 2.97 * p *"),
        ("falls with the order", "low < high for", "low > high for"),
    ],
    "test_the_slides_rate_is_asymptotic": [
        ("factor 1/2 dropped", "(math.e - 1) / 2", "math.e - 1"),
        ("limit 1% larger", "limit = math.expm1", "limit = 1.01 * math.expm1"),
    ],
    "test_curves_of_autodp": [
        ("value 1% larger", "pytest.approx(ours.upper", "pytest.approx(1.01 * ours.upper"),
        ("conversions exchanged", '>= theirs["exact, classic"] >= theirs["exact, improved"]', '>= theirs["exact, improved"] >= theirs["exact, classic"]'),
    ],
    "test_one_sided_curve_is_not_enough": [
        ("two-sided curve", "log_moment(one, two, n) / (n - 1)", "max(log_moment(one, two, n), log_moment(two, one, n)) / (n - 1)"),
    ],
    "test_leading_term_for_small_rates": [
        ("factor 1/2 dropped", "order / 2 * 1e-12", "order * 1e-12"),
        ("1% larger", "order / 2 * 1e-12", "order / 2 * 1.01e-12"),
    ],
    "test_phase_transition": [
        ("factor order/(order - 1) dropped", "curve(10) - 10 / 9 *", "curve(10) -"),
        ("1% larger", "pytest.approx(curve(10)", "pytest.approx(1.01 * curve(10)"),
    ],
    "test_search_finds_the_minimum_over_orders": [
        ("a minimum 1% smaller", "found.upper <= min(values)", "found.upper <= 0.99 * min(values)"),
        ("no fall at all", "signs[:-1]) <= 1", "signs[:-1]) < 1"),
    ],
    "test_points_of_both_figures": [
        ("bounds 1% larger", "pytest.approx(known", "pytest.approx(1.01 * known"),
        ("truth 1% larger", "pytest.approx(truth", "pytest.approx(1.01 * truth"),
    ],
}

_TABLE["test_renyi.py"] = {
    "test_zw_1_and_zw_3_bound_both_directions": [
        ("bound 1% smaller", "bound >= bracket.lower", "0.99 * bound >= bracket.lower"),
        ("constants swapped", "for c in (1, 3)", "for c in (3, 1)"),
    ],
    "test_zw_2_the_sum_is_the_remove_divergence_at_integer_orders": [
        ("directions swapped", '"remove"', '"add"'),
        ("1% larger", "value / bracket.midpoint", "1.01 * value / bracket.midpoint"),
    ],
    "test_zw_4_published_check": [
        ("directions swapped", "for side in SIDES", "for side in SIDES[::-1]"),
        ("noise 1% larger", "subsampled_gaussian(10, 1.0, 1e-3, side)", "subsampled_gaussian(10, 1.01, 1e-3, side)"),
    ],
    "test_zw_6_conversion_formulas": [
        ("order instead of order - 1", "math.log(1 / delta) / 8", "math.log(1 / delta) / 9"),
        ("first term of the improvement dropped", "math.log(8 / 9) -", "0.0 -"),
        ("factor 1/(order - 1) dropped", "/ 8 * (1 - 1 / 9) ** 9", "* (1 - 1 / 9) ** 9"),
    ],
}

# ------------------------------------------------------------------ large batches, one step

_TABLE["test_large_batches.py"] = {
    "test_oracle_depends_on_noise_over_clip_norm_and_falls_with_noise": [
        ("noise not scaled", "1.4 * clip", "1.4"),
        ("root of T dropped", "math.sqrt(50) / 20", "50 / 20"),
        ("more noise loses more", "(2.0, 2.5, 3.0)", "(3.0, 2.5, 2.0)"),
    ],
    "test_variance_split": [
        ("1/q dropped from the sampling part", "(1 - q) / q *", "(1 - q) *"),
        ("1/q^2 dropped from the noise", "sigma**2 / q**2", "sigma**2"),
    ],
    "test_first_moment_of_the_loss": [
        ("factor 1/2 dropped", "(2 * sigma**2)", "(sigma**2)"),
        ("bound 1% larger", "bound = loss_moments(q, sigma)[0], q**2", "bound = loss_moments(q, sigma)[0], 1.01 * q**2"),
    ],
    "test_second_moment_of_the_loss": [
        ("1/8 instead of 1/4", "(4 * sigma**4)", "(8 * sigma**4)"),
        ("bound 1% smaller", "[1], 1 / sigma**2", "[1], 0.99 / sigma**2"),
    ],
    "test_many_tails_at_once": [
        ("bound 1% smaller", "bound == pytest.approx(variance", "bound == pytest.approx(0.99 * variance"),
        ("level of the whole mean and more", "rounds * q**2 / (4 * sigma**2)", "rounds * q**2 / sigma**2"),
    ],
    "test_before_the_first_round_no_noise_is_needed": [
        ("one round later", "== (rounds < first)", "== (rounds < first + 1)"),
        ("rounds add less than their chances", "1 - (1 - q) ** rounds <= delta", "rounds * q <= 0.99 * delta"),
    ],
    "test_one_step_bounds_the_noise_of_many": [
        ("bound of half the size", "floor * math.sqrt(0.99)", "floor * 1.5"),
        ("root of T dropped", "least <= floor**2 / rounds", "floor**2 / rounds <= least"),
    ],
    "test_divergence_adds_and_ignores_bijections": [
        ("one part counted twice", "divergence(p, q) + divergence(r, s)", "2 * divergence(p, q)"),
        ("slope of the image dropped", "np.trapezoid(plain / slope *", "np.trapezoid(plain *"),
    ],
    "test_pinsker": [
        ("bound of half the size", "np.sqrt(divergence(p, q) / 2)", "0.5 * np.sqrt(divergence(p, q) / 2)"),
        ("factor 1/2 to 1/4", "divergence(coin, coin[::-1]) / 2", "divergence(coin, coin[::-1]) / 4"),
        ("factor 1% smaller", "divergence(coin, coin[::-1]) / 2", "divergence(coin, coin[::-1]) / 2.02"),
    ],
    "test_derivatives_of_the_log_ratio_are_dominated": [
        ("first constant 0.7", "(1, 3, 12, 68, 500)", "(0.7, 3, 12, 68, 500)"),
    ],
    "test_moments_bound_delta_from_below": [
        ("mean four times as large", "rounds * q**2 / (2 * sigma**2)", "2 * rounds * q**2 / sigma**2", "delta_floor"),
        ("mean counted for one round", "mean = rounds * q**2", "mean = q**2", "delta_floor"),
    ],
    "test_noise_grows_like_the_square_root_of_the_rounds": [
        ("1% larger", "pytest.approx(stated", "pytest.approx(1.01 * stated"),
        ("sigma instead of its square", "sigma**2 / rounds", "sigma / rounds"),
    ],
    "test_taylor_expansion_pointwise": [
        ("third term doubled", "(2 * q - 1) / 6", "(2 * q - 1) / 3"),
        ("second term 1% larger", "-w / 2 * (xi**2 - 1)", "-w / 1.98 * (xi**2 - 1)"),
    ],
    "test_mean_of_the_expansion": [
        ("factor 1/2 instead of 1/4", "a**4 / 4", "a**4 / 2"),
        ("1% larger", "pytest.approx(ratio", "pytest.approx(1.01 * ratio"),
    ],
    "test_second_moment_of_the_density_ratio": [
        ("1% larger", "pytest.approx(chi_square(q, sigma)", "pytest.approx(1.01 * chi_square(q, sigma)"),
        ("1/4 instead of 1/2", "math.sqrt(chi_square(q, sigma)) / 2", "math.sqrt(chi_square(q, sigma)) / 4"),
    ],
    "test_gaussian_approximation_of_delta": [
        ("half the noise", "dplib.PoissonDPSGD(sigma, q, rounds)", "dplib.PoissonDPSGD(sigma / 2, q, rounds)"),
        ("noise of the rate q^2", "dplib.PoissonDPSGD(sigma, q, rounds)", "dplib.PoissonDPSGD(q * sigma, q, rounds)"),
    ],
    "test_size_of_the_distance_bound": [
        ("root of T dropped", "math.sqrt(1000) *", "1000 *"),
        ("1% larger", "pytest.approx(leading", "pytest.approx(1.01 * leading"),
    ],
    "test_delta_of_the_scaled_noise": [
        ("1% larger", "pytest.approx(value", "pytest.approx(1.01 * value"),
        ("noise not in proportion", "PoissonDPSGD(q * without_sampling", "PoissonDPSGD(without_sampling"),
    ],
    "test_two_sampling_probabilities_approach_each_other": [
        ("noise not in proportion", "q * math.sqrt(rounds) / 0.5", "math.sqrt(rounds) / 0.5"),
    ],
    "test_effective_noise_table": [
        ("1% larger", "pytest.approx(value", "pytest.approx(1.01 * value"),
        ("root of T dropped", "math.sqrt(rounds) * without_sampling", "rounds * without_sampling"),
    ],
    "test_rate_of_convergence": [
        ("factor 1/4 to 1/2", "(4 * q)", "(2 * q)", "rate"),
        ("directions swapped", "sign * 2 * epsilon", "-sign * 2 * epsilon", "rate"),
        ("1% larger", "stated = rate", "stated = 1.01 * rate"),
    ],
    "test_first_order_of_delta": [
        ("factor 1/4 to 1/2", "mu / 4", "mu / 2"),
        ("1% larger", "mu / 4", "mu / 3.96"),
    ],
    "test_sampling_can_help_where_the_budget_is_useless": [
        ("2% larger", "rate(2 / 3, 0.0, 0.5, 1) / 100", "1.02 * rate(2 / 3, 0.0, 0.5, 1) / 100"),
        ("epsilon < mu^2 instead of 2 epsilon", "math.sqrt(2 * epsilon)", "math.sqrt(epsilon)"),
    ],
}

_TABLE["test_one_step.py"] = {
    "test_delta_against_multiple_precision": [
        ("q dropped from the second term", "(mp.expm1(epsilon) + q)", "mp.expm1(epsilon)", "exact_delta"),
        ("noise 1% larger", "one_step.delta(epsilon, sigma, q)", "one_step.delta(epsilon, 1.01 * sigma, q)"),
    ],
    "test_delta_is_the_mixture_closed_form_and_the_larger_direction": [
        ("directions swapped", 'for d in ("remove", "add")', 'for d in ("add", "remove")'),
        ("rate 1% larger", "one_step.delta(epsilon, sigma, q)", "one_step.delta(epsilon, sigma, 0.99 * q)"),
    ],
    "test_delta_by_quadrature": [
        ("epsilon 1% larger", "math.exp(epsilon) *", "math.exp(1.01 * epsilon) *"),
        ("delta 1% larger", "pytest.approx(integral", "pytest.approx(1.01 * integral"),
    ],
    "test_distances_are_those_of_the_threshold": [
        ("sign of the mean", "(threshold - 1) / scale", "(threshold + 1) / scale"),
        ("root of 2 dropped", "math.sqrt(2) * sigma", "sigma"),
    ],
    "test_reference_values_of_noise_and_slope": [
        ("delta 1% larger", "noise_multiplier(1.0, DELTA, 0.1)", "noise_multiplier(1.0, 1.01 * DELTA, 0.1)"),
        ("slope at 1% more", "noise_slope(1.0, DELTA, 0.1)", "noise_slope(1.0, DELTA, 0.101)"),
    ],
    "test_slope_against_finite_differences": [
        ("1% larger", "float(slope)", "1.01 * float(slope)"),
        ("slope of the effective noise", "one_step.noise_slope(epsilon, delta, q)", "one_step.noise_slope(epsilon, delta, q) / q"),
    ],
    "test_slope_is_the_formula_of_the_source": [
        ("sum instead of difference", "special.erf(plus) - special.erf(minus)", "special.erf(plus) + special.erf(minus)"),
        ("factor 1/q dropped", "sigma / q * (", "sigma * ("),
    ],
    "test_elasticity_against_multiple_precision": [
        ("root of 2 dropped", "mp.sqrt(mp.pi / 2)", "mp.sqrt(mp.pi)", "exact_elasticity"),
        ("noise 1% larger", "one_step.elasticity(epsilon, sigma, 0.5)", "one_step.elasticity(epsilon, 1.01 * sigma, 0.5)"),
    ],
    "test_threshold_above_the_mean_is_sufficient": [
        ("threshold below the mean suffices", "falls[minus > 0]", "falls[minus < 0]"),
        ("threshold 1% larger", "q) > 1)", "q) > 1.01)"),
    ],
    "test_both_criteria_are_exact": [
        ("slope 1% smaller", "< sigma / q", "< 0.99 * sigma / q"),
        ("the sufficient condition is exact", 'effective_noise_falls(epsilon, DELTA, q)\n', 'effective_noise_falls(epsilon, DELTA, q, "threshold")\n'),
    ],
    "test_boundary_in_multiple_precision": [
        ("factor 1/2 dropped", "mpf(q) / 2 *", "mpf(q) *"),
        ("noise 1% off", "1 / mp.sqrt(2 * bar)", "mpf('1.01') / mp.sqrt(2 * bar)"),
    ],
    "test_steps_of_the_proof_of_monotonicity": [
        ("root of pi dropped", "(math.sqrt(math.pi) * s)", "s"),
        ("1% larger", "formula == ", "1.01 * formula == "),
    ],
    "test_steps_of_the_exact_proof": [
        ("2 instead of 3", "m < 3 * bar", "m < 2 * bar"),
        ("factor 2 dropped", "2 * m * mean /", "m * mean /"),
    ],
    "test_constants_are_sharp": [
        ("constant 1% smaller", "kappa * delta * (1 + 1e-6)", "0.99 * kappa * delta"),
        ("constant 1% larger", "kappa * 1e-9 * (1 - 1e-6)", "1.01 * kappa * 1e-9"),
    ],
    "test_corner_values_of_the_conjecture": [
        ("sign of the gap", "-minus == ", "minus == "),
        ("corner 1% larger", "corner = kappa * DELTA", "corner = 1.01 * kappa * DELTA"),
    ],
    "test_a_lower_bound_on_the_sampling_probability_is_needed": [
        ("q up to 2.2 delta", "2 * DELTA", "2.2 * DELTA"),
    ],
    "test_place_of_the_peak": [
        ("place 1% larger", "pytest.approx(peak", "pytest.approx(1.01 * peak"),
        ("peak of the noise itself", "DELTA, near) / near", "DELTA, near)"),
    ],
    "test_effective_noise_has_a_single_peak": [
        ("noise itself", "DELTA, q) / q", "DELTA, q)"),
        ("no peak", "rising[:-1]) == 1", "rising[:-1]) == 0"),
    ],
}

# ------------------------------------------------------------------ accountants

_TABLE["test_accountant_theorems.py"] = {
    "test_inversion_formula": [
        ("z^2 instead of z (z + 1)", "(z * (z + 1))", "(z * z)", "integrand"),
        ("directions swapped", 'if direction == "remove"', 'if direction == "add"', "power"),
        ("1% larger", "value = integrate", "value = 1.01 * integrate"),
    ],
    "test_inversion_formula_for_a_gaussian_to_rounding": [
        ("z^2 instead of z (z + 1)", "/ (z * (z + 1))", "/ (z * z)"),
        ("mu 1% larger", "gaussian.delta(mu, epsilon)", "gaussian.delta(1.01 * mu, epsilon)"),
    ],
    "test_aliasing_identity": [
        ("weights of the shifts dropped", "math.exp(c * m * period) *", "1.0 *"),
        ("period 1% larger", "epsilon + m * period", "epsilon + 1.01 * m * period"),
        ("bound on the aliases of half the size", "0 < excess <= above + below", "0 < excess <= 0.5 * (above + below)"),
    ],
    "test_strip": [
        ("kappa of half", "kappa = tau * tau / 2", "kappa = tau * tau / 4"),
        ("kappa of a quarter", "kappa = tau * tau / 2", "kappa = tau * tau / 8"),
    ],
    "test_errors_of_the_two_parts": [
        ("number of rounds dropped", "float(rounds @ (off_sharp / most))", "float((off_sharp / most).sum())"),
        ("errors of the bulk without it", "+ share * float(rounds @ (off_flat / most))", "+ share * float((off_flat / most).sum())"),
        ("bound of half the size", "bound = product(most)", "bound = 0.5 * product(most)"),
    ],
    "test_wrap_around": [
        ("weights of the shifts dropped", "math.exp(c * m * points * step) *", "1.0 *"),
        ("tilt 1% off", "np.exp(-c * step * k)", "np.exp(-1.01 * c * step * k)"),
    ],
}

_TABLE["test_lattice.py"] = {
    "test_what_is_left_out_is_bounded": [
        ("bound below delta", "math.log(delta) <= bound < 0", "bound < math.log(delta)"),
        ("rounds forgotten", "rounds * one.losses()[0]", "one.losses()[0]"),
    ],
    "test_runs_with_a_large_loss_are_summed_without_the_others": [
        ("split at twice the loss", "one.index_above(solver.split)", "one.index_above(2 * solver.split)"),
        ("delta 1% larger", "direct = above @ value", "direct = 1.01 * (above @ value)"),
    ],
    "test_three_rounds_by_direct_integration": [
        ("noise 1% larger", "[(mixture, 3)], epsilon", "[(mixtures.binomial(k, q, 1.01 * sigma), 3)], epsilon"),
        ("two rounds", "[(mixture, 3)], epsilon", "[(mixture, 2)], epsilon"),
        ("directions swapped", "three_rounds(mixture, epsilon, direction)", 'three_rounds(mixture, epsilon, "remove")'),
    ],
}

_TABLE["test_range.py"] = {
    "test_random_matrices": [
        ("bound of half the size", "<= law.ratio", "<= 0.5 * law.ratio"),
    ],
}

_TABLE["test_tuples.py"] = {
    "test_coverage": [
        ("bound 1% smaller", "sampler.bound *", "0.99 * sampler.bound *"),
    ],
    "test_what_a_search_may_get_wrong_is_paid_for_out_of_delta": [
        ("failures not paid for", "level = certified.certified_level(delta, options[\"failure_probability\"])", "level = delta"),
    ],
    "test_factor_is_above_in_exact_arithmetic": [
        ("a little smaller", "tuple_sampler.factor(gram).rows", "tuple_sampler.factor((1 - 1e-12) * gram).rows"),
    ],
}

_TABLE["test_lognormal.py"] = {
    "test_two_bins_by_quadrature": [
        ("1% larger", "truth = two_bins", "truth = 1.01 * two_bins"),
        ("directions swapped", "epsilon, side, 1e-5)", "epsilon, 'add', 1e-5)"),
    ],
    "test_reference_values": [
        ("inner product 1% larger", 'bracket(row["b"], d,', 'bracket(row["b"], 1.01 * d,'),
        ("directions swapped", 'd, row["eps"], side)', 'd, row["eps"], "add")'),
    ],
}

_TABLE["test_few_participations.py"] = {
    "test_counting_participations_bounds_the_truth": [
        ("noise 50% larger", "Few(encoder, sigma, p, 1), truth", "Few(encoder, 1.5 * sigma, p, 1), truth"),
        ("half of the sampling", "Few(encoder, sigma, p, 1), truth", "Few(encoder, sigma, p / 2, 1), truth"),
    ],
    "test_norms_bound_every_set_of_columns": [
        ("1% smaller", "few._norms(np.array([float(k)]))[0]", "0.99 * few._norms(np.array([float(k)]))[0]"),
        ("one participation fewer", "few._norms(np.array([float(k)]))", "few._norms(np.array([float(k - 1)]))"),
    ],
    "test_never_above_the_simple_bound": [
        ("more than m participations are free", "stats.binom.sf(m, n, p) + rest", "rest"),
        ("sampling counted twice", "stats.binom.sf(m, n, p) + rest", "stats.binom.sf(m, n, p) + some * rest"),
    ],
    "test_one_participation_by_moments_bounds_the_truth": [
        ("half of the sampling", "Few(encoder, sigma, p, 1)._once", "Few(encoder, sigma, p / 2, 1)._once"),
        ("noise 50% larger", "Few(encoder, sigma, p, 1)._once", "Few(encoder, 1.5 * sigma, p, 1)._once"),
    ],
    "test_moments_are_sums_over_tuples": [
        ("noise 1% larger", "_tuple_sums(gram))", "_tuple_sums(gram / 1.01**2))"),
        ("pairs that repeat", "combinations(rounds, 2)", "product(rounds, repeat=2)"),
    ],
    "test_less_sampling_is_never_worse": [
        ("more sampling is never worse", "assert less <= more * (1 + 1e-8)", "assert more <= less * (1 + 1e-8)"),
        ("half at least", "assert less <= more * (1 + 1e-8)", "assert less <= 0.5 * more"),
    ],
}

_TABLE["test_wide.py"] = {
    "test_both_ends_hold_the_truth": [
        ("rounds forgotten above", "step.rounds * law.log_moment", "law.log_moment", "dplib.accounting.wide._moment"),
        ("exponent doubled", "<= wide.log_upper(", "<= 2 * wide.log_upper("),
    ],
    "test_miss_of_one_round": [
        ("directions swapped", 'if direction == "remove" else', 'if direction == "add" else'),
    ],
    "test_miss_of_composed_gaussians": [
        ("rounds forgotten", "rounds * (float(log_sum_exp", "(float(log_sum_exp", "dplib.accounting.wide.log_miss"),
        ("order above 1", "bounds=(0.0, 1.0)", "bounds=(1.5, 2.0)", "dplib.accounting.wide.log_miss"),
    ],
}

MUTANTS = {f"{FILES[file]}::{test}": found for file, tests in _TABLE.items() for test, found in tests.items()}
