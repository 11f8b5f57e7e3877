"""`import dplib` is quick because it loads little."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ("scipy.special", "scipy.optimize", "jax", "optax", "matplotlib", "joblib", "tqdm"))
def test_import_does_not_load(package):
    code = f"import sys, dplib; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_scipy_is_there_at_first_use():
    from dplib._base.lazy_scipy import special

    assert special.ndtr(0.0) == 0.5
    with pytest.raises(AttributeError):
        special.no_such_function  # noqa: B018
