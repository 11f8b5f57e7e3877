"""The set-up: what it installs, in which order it looks for a browser, and what it says when it cannot go on."""

import importlib.metadata
import re
import shutil
import subprocess

import environment
import notebook_tools as tools
import pytest

ROOT = tools.ROOT


def names_and_versions(path):
    found = {}
    for line in path.read_text().splitlines():
        match = re.match(
            r"([A-Za-z0-9._-]+)(?:==([\w.]+))?\s*(?:;\s*(.*))?$", line.split("#")[0].strip(" \\")
        )
        if match:
            found.setdefault(match.group(1).lower().replace("_", "-"), []).append(match.groups()[1:])
    return found


@pytest.mark.parametrize("stem", ["requirements", "requirements-course"])
def test_the_lock_pins_everything_that_is_asked_for(stem):
    asked, locked = (names_and_versions(ROOT / f"{stem}.{kind}") for kind in ("in", "txt"))
    assert len(locked) > 50
    assert all(version for entries in locked.values() for version, _ in entries)
    for name, entries in asked.items():
        assert name in locked, name
        for version, _ in entries:
            assert version is None or version in [pinned for pinned, _ in locked[name]], name


def test_the_environment_is_the_locked_one():
    different = []
    for name, entries in names_and_versions(ROOT / "requirements.txt").items():
        if any(marker for _, marker in entries):
            continue
        installed = importlib.metadata.version(name)
        if installed != entries[0][0]:
            different.append(f"{name}: {installed} installed, {entries[0][0]} locked")
    assert not different


def test_without_python_311_the_message_says_what_to_do(tmp_path):
    """With a search path that holds no Python, and no other place to look."""
    (tmp_path / "tools").mkdir()
    script = (ROOT / "tools" / "setup.sh").read_text()
    script = re.sub(r"/(?:usr|opt)/[\w/.]*bin/python3\.11", "/nowhere/python3.11", script)
    (tmp_path / "tools" / "setup.sh").write_text(script)
    (tmp_path / "bin").mkdir()
    for tool in ("sh", "dirname"):
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    done = subprocess.run(
        ["sh", str(tmp_path / "tools" / "setup.sh"), "book"],
        env={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "no Python 3.11 found" in done.stderr and "PYTHON=" in done.stderr


def test_nothing_is_installed_without_a_hash(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "run", lambda *command, **_: bool(commands.append([str(part) for part in command])) or True)
    environment.install_packages()
    assert [command[2] for command in commands] == ["pip", "uv", "uv"]
    assert all("--require-hashes" in command or "--no-deps" in command for command in commands)


def test_without_a_browser_the_message_says_what_to_do(monkeypatch):
    """It looks for one that is there, then in the system's packages, then at Playwright's download."""
    tried = []
    monkeypatch.setattr(environment, "browser_ready", lambda: False)
    monkeypatch.setattr(environment, "system_package", lambda name: tried.append(name))
    monkeypatch.setattr(environment, "run", lambda *command, **_: tried.append("playwright"))
    with pytest.raises(environment.SetupError, match="CHROMIUM="):
        environment.install_browser()
    assert tried == ["chromium", "playwright"]
