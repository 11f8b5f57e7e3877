"""The rooms of the library stand on those below them, and little is loaded before it is asked for."""

import subprocess
import sys
import tomllib

import library_files
from folders import ROOT

CHECK = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def checked(root):
    """(exit status, report) of the contract in pyproject.toml on the library that lies in `root`."""
    command = [sys.executable, "-c", CHECK, "--no-cache", "--no-logo"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_no_room_imports_from_one_above_it():
    status, report = checked(ROOT)
    assert status == 0 and "2 kept, 0 broken" in report, report


def test_every_room_has_its_layer():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
    named = {room for layer in contract["layers"] for room in layer.split(" | ")}
    parts = {library_files.module_name(path).split(".")[1] for path in library_files.python_files() if path.parent.name != "dplib"}
    assert parts <= named and named - parts == {"gaussian", "results"}


def loaded(code):
    """The packages and the modules of the library that are loaded after a piece of code, in a process of its own."""
    code += "; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = set(done.stdout.split())
    return {name for name in names if name.startswith("dplib")}, names


def test_modules_are_loaded_where_they_are_needed():
    library, all_modules = loaded("import dplib")
    assert library == {"dplib"}
    assert not all_modules & {"scipy.special", "scipy.optimize", "jax", "optax", "matplotlib", "joblib", "tqdm"}
    rooms = {name.split(".")[1] for name in loaded("import dplib.mixtures")[0] - {"dplib"}}
    assert rooms == {"_base", "gaussian", "mixtures", "results"}
    above = {"balls_in_bins", "conditional", "mechanisms", "optimize", "training", "lessons"}
    assert not above & {name.split(".")[1] for name in loaded("import dplib.accounting")[0] - {"dplib"}}


def test_one_mechanism_loads_nothing_of_the_others():
    """So that what a chapter's outputs are tied to is what the chapter is about."""
    modules, _ = loaded("import dplib; dplib.PoissonDPSGD(1.0, 0.01, 1000).epsilon(1e-6)")
    assert {name.split(".")[1] for name in modules - {"dplib"}} == {"_base", "accounting", "gaussian", "mechanisms", "mixtures", "results"}
    assert {name for name in modules if name.startswith("dplib.mechanisms.")} == {"dplib.mechanisms.dpsgd"}
    more, _ = loaded("import dplib; run = dplib.PoissonDPSGD(1.0, 0.01, 9); dplib.compose([run, dplib.calibrate(run, epsilon=1.0, delta=1e-6)])")
    assert {name.split(".")[2] for name in more - modules} == {"calibration", "composed", "search"}


def test_the_wheel_has_every_room_and_its_data():
    """The packages that setuptools finds by pyproject.toml, and the data that it says they have."""
    from setuptools import find_packages

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = set(find_packages(ROOT, include=settings["packages"]["find"]["include"]))
    folders = {library_files.module_name(path) for path in library_files.python_files() if path.name == "__init__.py"}
    assert found == folders
    packed = set()
    for package, patterns in settings["package-data"].items():
        folder = ROOT.joinpath(*package.split("."))
        packed |= {path for pattern in patterns for path in folder.glob(pattern)}
    assert packed == {path for path in (ROOT / "dplib").rglob("*.json")} and len(packed) > 20
