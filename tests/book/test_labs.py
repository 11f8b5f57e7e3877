"""Labs of 90 minutes: what is handed out is what the solved labs make; stubs and usual faults fail, solutions pass."""

import contextlib
import io
import json
from pathlib import Path

import course_labs as labs
import course_notebooks
import notebook_tools as tools
import pytest

LABS = labs.paths()
# Lab, step, what the solution says, what a student may have written: valid Python that the check must refuse.
FAULTS = json.loads(Path(__file__).with_name("faults_of_labs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", LABS, ids=labs.name)
def test_what_is_handed_out_gives_nothing_away(path):
    """That labs keep their rules, 90 minutes among them, and that this is current, is a matter of test_course.py."""
    handed = tools.read(labs.handed_out(path))
    text = "\n".join(tools.source(cell) for cell in handed["cells"])
    assert "BEGIN SOLUTION" not in text and text.count("your code here") >= 6
    for cell in tools.read(path)["cells"]:
        if "solution" in cell["metadata"].get("tags", []):
            for region in course_notebooks.REGION.finditer(tools.source(cell)):
                assert region.group(2).strip() not in text
            if cell["cell_type"] == "markdown":
                assert tools.source(cell) not in text
    assert all(not cell.get("outputs") for cell in handed["cells"])
    assert all(set(cell["metadata"]) <= {"tags"} for cell in handed["cells"])


def run(cell, names, change=("", "")):
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(tools.source(cell).replace(*change), cell["id"], "exec"), names)


@pytest.fixture(scope="module", params=LABS, ids=labs.name)
def walked(request):
    """(name of the lab, {step: names before it}, steps) of a lab that is solved step by step."""
    notebook, before, names = tools.read(request.param), {}, {}
    parts = labs.steps(notebook)
    first = notebook["cells"].index(parts[0][3][0])
    for cell in tools.code_cells({"cells": notebook["cells"][:first]}):
        run(cell, names)
    for number, _, _, cells in parts:
        before[number] = dict(names)
        for cell in tools.code_cells({"cells": cells}):
            run(cell, names)
    return labs.name(request.param), before, parts


def test_each_stub_fails_its_check(walked):
    """With the earlier steps solved; functions of a step look their names up where the step is run."""
    _, before, parts = walked
    for number, _, _, cells in parts:
        solutions = [cell for cell in tools.code_cells({"cells": cells}) if "solution" in cell["metadata"].get("tags", [])]
        [check] = [cell for cell in cells if "check" in cell["metadata"].get("tags", [])]
        for cell in solutions:
            names = dict(before[number])
            stub = course_notebooks.REGION.sub(r'\1raise NotImplementedError("your code here")', tools.source(cell))
            exec(compile(stub, cell["id"], "exec"), names)
            with pytest.raises(NotImplementedError):
                run(check, names)


def test_usual_faults_fail_the_check_of_their_step(walked):
    lab, before, parts = walked
    steps = {number: cells for number, _, _, cells in parts}
    faults = [fault for fault in FAULTS if fault[0] == lab]
    assert {step for _, step, _, _ in faults} == set(range(1, 7))
    for _, step, old, new in faults:
        solutions = [cell for cell in steps[step] if "solution" in cell["metadata"].get("tags", []) and cell["cell_type"] == "code"]
        [check] = [cell for cell in steps[step] if "check" in cell["metadata"].get("tags", [])]
        assert sum(tools.source(cell).count(old) for cell in solutions) >= 1, (step, old)
        names = dict(before[step])
        for cell in solutions:
            run(cell, names, (old, new))
        try:
            run(check, names)
        except AssertionError:
            continue
        raise AssertionError(f"{lab}, step {step}: the check passes with {new!r}")
