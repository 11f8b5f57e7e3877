"""Make the virtual environment that the book and its tests run in.

    python3.11 -m tools setup book     everything but the browser
    python3.11 -m tools setup test     the same, and a Chromium, git and the wheels of the hosted-notebook test
    python3.11 -m tools setup course   the same as book, and .venv-course: nbgrader for `make course`
    python -m tools setup --check …    exit 0 if nothing is to be done

Only the standard library is used. What is installed is what requirements.txt names (requirements-course.txt
for .venv-course), and only files with the hashes that stand there; `dplib` itself is installed in editable
form. A stamp in the environment says for which inputs it was finished, so a second run returns at once and
needs no network.
"""

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV, COURSE_VENV = ROOT / ".venv", ROOT / ".venv-course"
PYTHON = VENV / "bin" / "python"
WHEELHOUSE = VENV / "wheelhouse"
# What a hosted notebook service has before the first cell runs, and what that cell needs to build dplib.
HOSTED = ["ipykernel", "nbclient", "numpy", "scipy", "matplotlib", "mpmath", "sympy", "joblib", "tqdm"]
HOSTED += ["dp-accounting", "jax", "optax", "scikit-learn", "distributed", "setuptools", "wheel"]


class SetupError(Exception):
    """The set-up cannot go on; the message says what to do."""


def say(text):
    print(f"set-up: {text}", flush=True)


def place(kind):
    """The environment that a part of the set-up makes, and the locked requirements that it holds."""
    return (COURSE_VENV, "requirements-course.txt") if kind == "course" else (VENV, "requirements.txt")


def fingerprint(kind):
    """Hash of everything that part of the set-up depends on, the folders included (scripts carry their paths)."""
    venv, requirements = place(kind)
    digest = hashlib.sha256(f"{kind}\0{venv}\0{sys.version_info[:2]}\0".encode())
    digest.update((ROOT / requirements).read_bytes())
    if kind == "test":
        digest.update(" ".join(HOSTED).encode())
    else:  # what the editable installation of dplib is made from
        digest.update((ROOT / "pyproject.toml").read_bytes())
    return digest.hexdigest()


def stamp_file(kind):
    return place(kind)[0] / f".finished-{kind}"


def finished(kind):
    with contextlib.suppress(OSError):
        return stamp_file(kind).read_text() == fingerprint(kind)
    return False


def run(*command, **kwargs):
    """Run a command; return True on success. The end of its output is shown only when it fails."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    try:
        done = subprocess.run(command, cwd=ROOT, check=False, **pipes, **kwargs)
    except OSError as error:
        say(f"{command[0]}: {error}")
        return False
    if done.returncode:
        print("\n".join(done.stdout.splitlines()[-15:]), file=sys.stderr)
    return done.returncode == 0


def locked(name):
    """The entry of one package in requirements.txt: its version, and the hashes of its files."""
    lock = (ROOT / "requirements.txt").read_text()
    return re.search(rf"^{re.escape(name)}==.*(?:\n +.*)*", lock, re.MULTILINE | re.IGNORECASE).group()


def pinned(name):
    """The requirement of one package as requirements.txt pins it, without the hashes."""
    return re.match(r"[^\s;]+", locked(name)).group()


def works(python):
    code = "import sys, pip; sys.exit(sys.version_info[:2] != (3, 11))"
    return python.exists() and run(python, "-c", code)


def make_venv(venv=VENV):
    if works(venv / "bin" / "python"):
        return
    say(f"virtual environment in {venv}" + ", afresh: the old one does not work" * venv.exists())
    shutil.rmtree(venv, ignore_errors=True)
    if run(sys.executable, "-m", "venv", venv):
        return
    shutil.rmtree(venv, ignore_errors=True)
    if shutil.which("uv") and run("uv", "venv", "--seed", "--python", sys.executable, venv):
        return
    raise SetupError(
        "`python3.11 -m venv` failed. Debian and Ubuntu keep it in a package of its own: "
        "apt-get install python3.11-venv"
    )


def install_packages(kind="book"):
    """The locked requirements by uv, which takes seconds: no file without a hash of the lock; then dplib itself."""
    venv, name = place(kind)
    say(f"packages of {name}")
    (venv / "uv.txt").write_text(locked("uv") + "\n")
    environment = os.environ | {"VIRTUAL_ENV": str(venv)}
    if "SSL_CERT_FILE" not in environment and os.environ.get("PIP_CERT"):
        environment["SSL_CERT_FILE"] = os.environ["PIP_CERT"]
    pip = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    uv = [venv / "bin" / "python", "-m", "uv", "pip"]
    local = ["--no-deps", "--no-build-isolation", "--reinstall-package", "privacy-amplification", "-e", ROOT]
    for command in (
        [*pip, "--require-hashes", "-r", venv / "uv.txt"],
        [*uv, "sync", "--quiet", "--require-hashes", ROOT / name],
        [*uv, "install", "--quiet", *local],
    ):
        if not run(*command, env=environment):
            raise SetupError(
                f"the packages of {name} could not be installed. A first set-up needs a package index; behind a proxy "
                "or a mirror, configure pip and uv (UV_DEFAULT_INDEX) for it and run make again."
            )


def system_package(name):
    """Install a system package with apt-get, as root or by sudo without a password. True on success."""
    if not shutil.which("apt-get"):
        return False
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    say(f"{name} by apt-get")
    apt = lambda *words: run(*prefix, "apt-get", *words, "-qq", env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    install = ("install", "-y", "--no-install-recommends", name)
    return apt(*install) or (apt("update") and apt(*install))


def browser_ready():
    return run(PYTHON, ROOT / "tools" / "browser.py")


def install_browser():
    if browser_ready() or (system_package("chromium") and browser_ready()):
        return
    say("Chromium by Playwright's download")
    if run(PYTHON, "-m", "playwright", "install", "chromium") and browser_ready():
        return
    raise SetupError(
        "the browser tests need Chromium, and none could be installed. Install Chromium or Google Chrome "
        "by hand (Debian: apt-get install chromium), or name one: CHROMIUM=/path/to/chromium make test"
    )


def install_git():
    if shutil.which("git") or (system_package("git") and shutil.which("git")):
        return
    raise SetupError("the hosted-notebook test needs git; install it and run make test again.")


def collect_wheels():
    """Wheels for the hosted-notebook test, so that it can run again without a network."""
    say("wheels for the hosted-notebook test")
    partial = WHEELHOUSE.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [PYTHON, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--dest", partial]
    command += ["--only-binary", ":all:", "--constraint", ROOT / "requirements.txt"]
    if not run(*command, *(pinned(name) for name in HOSTED)):
        raise SetupError("the wheels for the hosted-notebook test could not be downloaded; run make test again.")
    shutil.rmtree(WHEELHOUSE, ignore_errors=True)
    partial.rename(WHEELHOUSE)


@contextlib.contextmanager
def only_one():
    """Two make commands started together take turns."""
    import fcntl

    folder = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["book", "test", "course"], nargs="?", default="book")
    parser.add_argument("--check", action="store_true", help="exit 0 if nothing is to be done, 1 otherwise")
    arguments = parser.parse_args()
    needed = ["book"] if arguments.kind == "book" else ["book", arguments.kind]
    if arguments.check:
        return 0 if all(finished(kind) for kind in needed) else 1
    if sys.version_info[:2] != (3, 11):
        raise SetupError(f"Python 3.11 is needed, this is {sys.version.split()[0]}.")
    with only_one():
        for kind in ("book", "course"):
            if kind in needed and not finished(kind):
                make_venv(place(kind)[0])
                install_packages(kind)
                stamp_file(kind).write_text(fingerprint(kind))
        if arguments.kind == "test" and not finished("test"):
            install_browser()
            install_git()
            collect_wheels()
            stamp_file("test").write_text(fingerprint("test"))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        sys.exit(1)
