"""Plans of jax-privacy with the accountant of dplib beside its own; runs in jax-privacy's environment, and prints one JSON object: what the
page's block prints, which is the first argument, and what is asked for by name."""

import contextlib
import io
import json
import sys

import dp_accounting
import numpy as np
from jax_privacy import batch_selection
from jax_privacy.accounting import accountants, analysis, calibrate
from jax_privacy.experimental.execution_plan import BandMFExecutionPlanConfig

from dplib.bridges.dp_accounting import Accountant

Relation = dp_accounting.NeighboringRelation
EPSILON, DELTA, ROUNDS, RATE = 2.0, 1e-6, 500, 0.04
BANDS = [1.0, 0.5, 0.375, 0.3125]


def plan(strategy, accountant, partition):
    """Noise multiplier, and epsilon by both accountants, of a BandMF plan; one band is DP-SGD."""
    config = BandMFExecutionPlanConfig(
        iterations=ROUNDS, strategy=np.array(strategy), sampling_prob=RATE, epsilon=EPSILON, delta=DELTA,
        accountant=accountant, partition_type=partition,
    )
    event = config.plan.dp_event
    relation = accountant.neighboring_relation
    bracket = Accountant(relation).compose(event).bracket(DELTA)
    theirs = dp_accounting.pld.PLDAccountant(relation).compose(event).get_epsilon(DELTA)
    [noise] = [float(part.noise_multiplier) for part in gaussians(event)]
    return {"noise": noise, "lower": bracket.lower, "upper": bracket.upper, "theirs": theirs, "event": str(event)}


def gaussians(event):
    """The Gaussians in a tree of events."""
    if isinstance(event, dp_accounting.GaussianDpEvent):
        return [event]
    inner = event.events if isinstance(event, dp_accounting.ComposedDpEvent) else [event.event]
    return [found for part in inner for found in gaussians(part)]


class Ours(accountants.DpAccountantConfig):
    def create_accountant(self):
        return Accountant()


def training(config):
    """epsilon of a DP-SGD run whose noise changes, and its noise for a target, by its training accountant."""
    accountant = analysis.DpsgdTrainingAccountant(dp_accountant_config=config)
    changing = analysis.DpParams(noise_multipliers=[(0, 1.0), (250, 2.0)], num_samples=10_000, delta=DELTA, batch_size=400)
    found = calibrate.calibrate_noise_multiplier(
        target_epsilon=EPSILON, accountant=accountant, batch_sizes=400, num_updates=ROUNDS, num_samples=10_000, target_delta=DELTA,
        initial_min_noise=0.5, tol=1e-4,
    )
    return {"epsilon": accountant.compute_epsilon(ROUNDS, changing), "noise": found}


def both(name):
    """A plan, or the training accountant, by our accountant and by its own."""
    if name == "training":
        return {"ours": training(Ours()), "theirs": training(accountants.PldAccountantConfig())}
    strategy, relation = {"bands": BANDS, "one band": [1.0]}[name.split(", ")[0]], Relation[name.split(", ")[1]]
    partition = batch_selection.PartitionType[{"REPLACE_SPECIAL": "EQUAL_SPLIT", "ADD_OR_REMOVE_ONE": "INDEPENDENT"}[relation.name]]
    accountants_of_both = {"ours": Accountant(relation), "theirs": dp_accounting.pld.PLDAccountant(relation)}
    return {whose: plan(strategy, accountant, partition) for whose, accountant in accountants_of_both.items()}


page = io.StringIO()
with contextlib.redirect_stdout(page):
    exec(sys.argv[1], {})
found = {"page": page.getvalue()} | {name: both(name) for name in sys.argv[2:]}
print(json.dumps(found))
