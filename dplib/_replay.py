"""A minimised function whose values survive interruptions.

L-BFGS-B is deterministic: it asks for the same points again when it is given the same values. So a run is
resumed by answering from the record, and the function itself is called from where the record ends.
"""

from __future__ import annotations

import numpy as np

_SIZES = ("points", "gradients", "numbers")


class Record:
    """Evaluations in the order in which they were asked for: points and gradients (k, d), numbers (k, 1 + extras).

    checkpoint : `_progress.Checkpoint`, which may keep nothing.
    """

    def __init__(self, checkpoint):
        self.checkpoint, self.place, self.saved = checkpoint, 0, 0
        kept = checkpoint.load()
        self.rows = list(zip(*(kept[name] for name in _SIZES))) if kept else []
        self.saved = len(self.rows)

    def known(self, x):
        """(value, gradient, extras) if the next evaluation in the record is that of x, else None."""
        if self.place == len(self.rows):
            return None
        point, gradient, numbers = self.rows[self.place]
        if not np.array_equal(point, x):  # another machine or library: go on from here, anew
            del self.rows[self.place :]
            return None
        self.place += 1
        return float(numbers[0]), gradient.copy(), tuple(map(float, numbers[1:]))

    def add(self, x, value, gradient, extras):
        self.rows.append((x.copy(), gradient.copy(), np.array([value, *extras])))
        self.place = len(self.rows)
        if self.checkpoint.due:
            self.save()

    def save(self):
        if len(self.rows) > self.saved:
            self.checkpoint.save(**dict(zip(_SIZES, map(np.array, zip(*self.rows)))))
            self.saved = len(self.rows)
