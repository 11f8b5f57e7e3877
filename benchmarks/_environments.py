"""Environments of their own for the libraries that dplib is compared with."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def environment(name, requirements, *, by_pip=False):
    """The Python of ROOT/name; makes the environment when it is missing or of other requirements.

    The file of requirements names everything that is installed, with versions: nothing else is fetched. by_pip : with pip's
    own settings, whatever uv would take.
    """
    with _alone(ROOT / f"{name}.lock"):
        return _made(ROOT / name, requirements, by_pip)


@contextlib.contextmanager
def _alone(path):
    """No other process is here at the same time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _made(venv, requirements, by_pip):
    name = venv.name
    python, stamp = venv / "bin" / "python", venv / ".finished"
    wanted = Path(requirements).read_text(encoding="utf-8")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted and python.exists():
        return python
    print(f"set-up: {name}, the packages of {Path(requirements).name}", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    wanted_packages = ["install", "--quiet", "--no-deps", "-r", str(requirements)]
    variables = dict(os.environ)
    if variables.get("PIP_CERT"):
        variables.setdefault("SSL_CERT_FILE", variables["PIP_CERT"])
    uv = [sys.executable, "-m", "uv", "pip", *wanted_packages, "--python", str(python)]
    if by_pip or subprocess.run(uv, env=variables).returncode:  # no uv, or it did not get through
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", *wanted_packages]
        subprocess.run(pip, check=True)
    stamp.write_text(wanted, encoding="utf-8")
    return python
