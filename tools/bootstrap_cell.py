"""The first code cell of every notebook, written once here.

    python -m tools first-cell        prints it

The repository's address comes from `_config.yml`, the distribution's name from `pyproject.toml`.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TEMPLATE = """\
# Set-up: does nothing where dplib is installed; on Colab it installs it.
import importlib, importlib.util, subprocess, sys
if importlib.util.find_spec("dplib") is None:
    source = "git+{url}@{branch}"
    subprocess.check_call([sys.executable, "-m", "pip", "install", "-q",
                           f"{name}[book] @ {{source}}"])
    importlib.invalidate_caches()"""


def repository(root=ROOT):
    """(address, branch) of the repository as `_config.yml` gives them."""
    text = (Path(root) / "_config.yml").read_text(encoding="utf-8")
    match = re.search(r'^repository:\s*\{url:\s*"([^"]+)",\s*branch:\s*([\w./-]+)', text, re.MULTILINE)
    if match is None:
        raise ValueError('_config.yml has no line of the form: repository: {url: "…", branch: …')
    return match.group(1), match.group(2)


def distribution(root=ROOT):
    """Name under which pip knows the library (its import name is dplib)."""
    return tomllib.loads((Path(root) / "pyproject.toml").read_text(encoding="utf-8"))["project"]["name"]


def bootstrap_source(root=ROOT):
    """The exact source of the bootstrap cell."""
    url, branch = repository(root)
    return TEMPLATE.format(name=distribution(root), url=url, branch=branch)


if __name__ == "__main__":
    print(bootstrap_source())
