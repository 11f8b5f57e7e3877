"""The first code cell of every notebook, written once here.

    python -m tools first-cell        prints it

The repository's address comes from `_config.yml`, the distribution's name from `pyproject.toml`. The site has a wheel beside
the notebooks, for whoever downloads both; and the index has another package whose import name is dplib.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TEMPLATE = """\
# Set-up: does nothing where dplib is installed; elsewhere, on Colab for example, it installs it.
import importlib, importlib.util, pathlib, subprocess, sys
if importlib.util.find_spec("dplib") is None:
    source = "git+{url}@{branch}"
    for wheel in pathlib.Path().glob("{file}-*.whl"):  # one beside the notebook comes first
        source = wheel.resolve().as_uri()
    subprocess.check_call([sys.executable, "-m", "pip", "install", "-q",
                           f"{name}[book] @ {{source}}"])
    importlib.invalidate_caches()
elif importlib.util.find_spec("dplib.mechanisms") is None:
    raise ImportError("Another package named dplib is in the way: run `pip uninstall dplib`, "
                      "restart the kernel, and run this cell again.")"""


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
    name = distribution(root)
    return TEMPLATE.format(name=name, file=name.replace("-", "_"), url=url, branch=branch)


if __name__ == "__main__":
    print(bootstrap_source())
