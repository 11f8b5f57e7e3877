"""The workflows of the hosting service: pinned, with the least rights, bounded in time, and running what we run here.

They cannot run here; zizmor reads them, as it reads the workflows of others, and each of its findings is an error.
"""

import re
import subprocess
import sys
from pathlib import Path

import notebook_tools as tools
import yaml

FOLDER = tools.ROOT / ".github" / "workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))


def parsed(path):
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["on"] = document.pop(True)  # YAML 1.1 reads the key `on` as a truth value
    return document


def findings(folder):
    """Exit status and report of zizmor, without a network."""
    program = Path(sys.executable).with_name("zizmor")
    command = [program, *"--offline --no-progress --persona auditor --format plain".split(), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_the_audit_finds_nothing():
    status, report = findings(FOLDER)
    assert status == 0, report


def test_the_workflows_run_what_the_readme_says():
    text = {path.stem: path.read_text() for path in WORKFLOWS}
    assert "run: make test" in text["test"] and "make test " in (tools.ROOT / "README.md").read_text()
    assert "cron:" in text["matrix"] and "run: make matrix" in text["matrix"] and "run: make trust" in text["matrix"]
    assert "run: make live-test" in text["matrix"] and "`make live-test`" in (tools.ROOT / "README.md").read_text()
    shown = subprocess.run(["make", "-s", "help"], cwd=tools.ROOT, capture_output=True, text=True).stdout
    for path in WORKFLOWS:
        for target in re.findall(r"run: make ([\w-]+)", text[path.stem]):
            assert f"make {target} " in shown, f"{path.name}: make {target}"


def test_a_release_is_installed_on_every_system_first():
    jobs = parsed(FOLDER / "release.yml")["jobs"]
    grid = jobs["install"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in grid["os"]} == {"ubuntu", "macos", "windows"}
    known = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (tools.ROOT / "pyproject.toml").read_text())
    assert grid["python"] == known and jobs["publish"]["needs"] == "install"


def test_only_two_jobs_may_write_and_they_install_nothing():
    writing = {
        (path.stem, name): job
        for path in WORKFLOWS
        for name, job in parsed(path)["jobs"].items()
        if "write" in job["permissions"].values()
    }
    assert list(writing) == [("publish", "push"), ("release", "publish")]
    assert not any("run" in step for step in writing["release", "publish"]["steps"])
    commands = [step["run"] for step in writing["publish", "push"]["steps"] if "run" in step]
    assert len(commands) == 1 and commands[0].startswith("sh tools/push_site.sh ")
