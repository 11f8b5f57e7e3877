"""Long computations: a progress bar when somebody watches."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace


def bar(work=None, description="", total=None):
    """A progress bar of tqdm on stderr, where that is a terminal, after two seconds; without tqdm there is none.

    work : an iterable, which is then iterated over; or None, for a context manager with `update(steps)`.
    description : a few words that stand before the bar. total : how many steps there are, where `work` does not say.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        return nullcontext(SimpleNamespace(update=lambda steps=1: None)) if work is None else work
    return tqdm(work, description, total, leave=False, disable=None, delay=2)
