"""The walks through the code in CONTRIBUTING.md are those that the code takes."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import dplib
from dplib import matrices

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CALL, BOUND, SCHEME, _ = re.split(r"(?m)^\*\*(?=From a call|From a wrong|A new sampling|A new chapter)", TEXT.partition("\n## Correcting")[0])[1:]


def walked(call):
    """(files of dplib that a second call enters, in order, how often it goes from one to another)."""
    call()
    library, entered = Path(dplib.__file__).parent, []

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(library):
            entered.append(str(path.relative_to(library)))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(dict.fromkeys(entered)), sum(one != other for one, other in zip(entered, entered[1:]))


def files(text):
    return re.findall(r"`((?!tests)[\w/]+\.py)`", text)


def test_from_a_call_to_its_number():
    call = re.search(r"`(dplib\.PoissonDPSGD\(.*?\))` *\n", CALL).group(1)
    entered, changes = walked(lambda: eval(call))
    assert sorted(files(CALL)) == sorted(entered) and "fourteen files" in CALL
    assert changes < int(re.search(r"fewer than (\d+)", CALL).group(1)) < 2 * changes


def test_from_a_wrong_bound_to_its_line():
    options = eval(f"dict({re.search(r'`(tail_bound=.*?)`', BOUND).group(1)})")
    mechanism = dplib.MatrixMechanism(matrices.optimal_counting(64), 16.0, 1 / 16, **options)
    entered, _ = walked(lambda: mechanism.epsilon(1e-5))
    steps, beside = BOUND.split("Beside these")
    steps = re.findall(r"(?m)^\d\. `([\w/]+\.py)`", steps)
    assert len(steps) == 6
    rooms = [name for name in entered if name.startswith(("mechanisms/", "conditional/"))]
    assert sorted(rooms) == sorted([*steps, *re.findall(r"`(conditional/\w+\.py)`", beside)])
    for test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", BOUND):
        assert f"def {test[1]}" in (ROOT / test[0]).read_text(encoding="utf-8"), test


def test_a_new_sampling_scheme():
    names = {"__name__": "contributing"}
    sys.modules["contributing"] = type(sys)("contributing")  # where dataclasses look
    exec(re.search(r"```python\n(.*?)```", SCHEME, re.DOTALL).group(1), names)
    stream = names["Growing"](records=1000, rounds=20, seed=1, rates=(0.1,) * 10 + (0.4,) * 10)
    sizes = np.array([len(batch) for batch in stream])
    assert abs(sizes[:10].mean() - 100) < 20 and abs(sizes[10:].mean() - 400) < 40
    assert all(np.array_equal(stream[t], batch) for t, batch in enumerate(stream))
    same = names["GrowingDPSGD"](1.0, (0.1,) * 20).epsilon(1e-6)
    assert same.upper == pytest.approx(dplib.PoissonDPSGD(1.0, 0.1, 20).epsilon(1e-6).upper, rel=1e-6)
    assert names["GrowingDPSGD"](1.0, (0.05, 0.15) * 10).epsilon(1e-6).lower > 0
