"""SciPy's packages, each imported at its first use: they take longer to import than all of dplib."""

from __future__ import annotations

import importlib


class _Package:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        value = getattr(importlib.import_module(self._name), attribute)
        setattr(self, attribute, value)  # found directly from now on
        return value


fft = _Package("scipy.fft")
linalg = _Package("scipy.linalg")
optimize = _Package("scipy.optimize")
signal = _Package("scipy.signal")
special = _Package("scipy.special")
stats = _Package("scipy.stats")
