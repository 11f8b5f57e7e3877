"""Compute the curves of Zhu and Wang's two figures with autodp, the authors' library: dplib/lessons/studies/autodp_curves.json.

    python benchmarks/peers/autodp_curves.py

autodp runs in an environment of its own (benchmarks/peers/autodp.txt), made on first use. Chapter 7 draws the result
beside the curves of dplib. Takes about ten seconds once the environment is there.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "dplib" / "lessons" / "studies" / "autodp_curves.json"
SETTINGS = {
    "noise_multipliers": [5.0, 1.0],
    "sampling_probability": 1e-3,
    "delta": 1e-8,
    "rounds": [2**i for i in range(16)] + [60_000],
    "orders_of_the_general_bound": [2, 500],
}
ABOUT = (
    "Epsilon of the sampled Gaussian mechanism over composition by autodp. general, classic: its general_upperbound "
    "(factor 3), least over the orders of the settings; exact, classic: its anaRDPacct with "
    "compose_poisson_subsampled_mechanisms, as in the authors' script; exact, improved: AmplificationBySampling with "
    "its tighter bound, Composition, get_approxDP. Upper bounds."
)


def curves(settings):
    """Runs in autodp's environment."""
    import importlib.metadata
    import math
    import warnings

    warnings.simplefilter("ignore")
    from autodp import mechanism_zoo, rdp_acct, rdp_bank, transformer_zoo

    q, delta = settings["sampling_probability"], settings["delta"]
    first, last = settings["orders_of_the_general_bound"]
    rows = []
    for sigma in settings["noise_multipliers"]:
        curve = lambda order: rdp_bank.RDP_gaussian({"sigma": sigma}, order)  # noqa: B023
        moments = {order: float(rdp_acct.general_upperbound(curve, order, q)) for order in range(first, last + 1)}
        sampled = transformer_zoo.AmplificationBySampling(PoissonSampling=True)(
            mechanism_zoo.GaussianMechanism(sigma=sigma), q, improved_bound_flag=True
        )
        for rounds in settings["rounds"]:
            general = [(rounds * m - math.log(delta)) / (order - 1) for order, m in moments.items()]
            accountant = rdp_acct.anaRDPacct(m=100)
            accountant.compose_poisson_subsampled_mechanisms(curve, q, coeff=rounds)
            composed = transformer_zoo.Composition()([sampled], [rounds])
            values = {
                "general, classic": min(value for value in general if not math.isnan(value)),
                "exact, classic": accountant.get_eps(delta),
                "exact, improved": composed.get_approxDP(delta),
            }
            for name, value in values.items():
                rows.append({"sigma": sigma, "rounds": rounds, "curve": name, "epsilon": float(f"{value:.8g}")})
    versions = {name: importlib.metadata.version(name) for name in ("autodp", "numpy", "scipy")}
    return {"versions": versions, "curves": rows}


def main():
    sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "benchmarks")]
    import one_move
    from _environments import environment

    python = environment(".venv-peers-autodp", ROOT / "benchmarks" / "peers" / "autodp.txt")
    answer = subprocess.run([python, __file__, "--child"], capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout.splitlines()[-1])
    record = {"study": "autodp_curves", "about": ABOUT, "settings": SETTINGS, "versions": found["versions"]}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    rows = ",\n".join("  " + json.dumps(row) for row in found["curves"])
    lines.append(f' "curves": [\n{rows}\n ]')
    one_move.write_text(RESULT, "{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    if "--child" in sys.argv:
        print(json.dumps(curves(SETTINGS)))
    else:
        main()
