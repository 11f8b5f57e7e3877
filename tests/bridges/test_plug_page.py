"""The blocks of book/plug.md run as printed, each alone; those of packages that are not installed here at least compile."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import dplib

PAGE = (Path(__file__).resolve().parents[2] / "book" / "plug.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^## ([^\n]*)\n.*?^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))


def test_every_section_has_a_block():
    assert list(BLOCKS) == ["dp_accounting", "JAX Privacy", "Opacus", "Flower", "Anything else"]


def run(title, names=None):
    code = compile(BLOCKS[title], "book/plug.md", "exec")
    exec(code, names := names if names is not None else {})
    return names


@pytest.mark.parametrize("title, package", [
    ("dp_accounting", "dp_accounting"), ("JAX Privacy", "jax_privacy"), ("Opacus", "opacus"), ("Anything else", "dplib"),
])  # fmt: skip
def test_block_runs(title, package, capsys):
    if importlib.util.find_spec(package) is None:
        compile(BLOCKS[title], "book/plug.md", "exec")
        return
    run(title)
    assert len(capsys.readouterr().out.split()) > 1


class Strategy:
    """What the block asks of Flower's strategy."""

    def __init__(self, strategy, noise_multiplier, clipping_norm, num_sampled_clients):
        assert strategy["min_fit_clients"] == num_sampled_clients and strategy["min_available_clients"] >= self.clients
        self.noise_multiplier, self.num_sampled_clients = noise_multiplier, num_sampled_clients

    def configure_fit(self, server_round, parameters, client_manager):
        return ["client"]


def test_flower_stops_before_the_budget_is_exceeded(monkeypatch, tmp_path):
    module = ModuleType("flwr.server.strategy")
    module.DifferentialPrivacyServerSideFixedClipping, module.FedAvg = Strategy, dict
    for name in ("flwr", "flwr.server", "flwr.server.strategy"):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    strategy = run("Flower")["strategy"]
    strategy.clients, strategy.epsilon = 200, 6.0
    asked = [strategy.configure_fit(i, None, None) for i in range(20)]
    done = asked.index([])
    spent = dplib.FixedBatchDPSGD(2.0, 50, 200, done)
    assert 0 < done < 20 and not any(asked[done:]) and len(dplib.Ledger.load("ledger.json")) == done
    assert spent.epsilon(1e-5).upper <= 6.0 < dplib.FixedBatchDPSGD(2.0, 50, 200, done + 1).epsilon(1e-5).upper
