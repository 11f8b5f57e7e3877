"""A minimised function whose values survive interruptions.

L-BFGS-B is deterministic: it asks for the same points again when it is given the same values. So a run is
resumed by answering from the record, and the function itself is called from where the record ends.
"""

from __future__ import annotations

import numpy as np


class Record:
    """Evaluations in the order in which they were asked for: point, gradient, numbers (value, extras).

    checkpoint : `_progress.Checkpoint`, which may keep nothing.
    """

    def __init__(self, checkpoint):
        self.checkpoint, self.place = checkpoint, 0
        kept = checkpoint.load()
        if kept:
            cuts = np.cumsum(kept["sizes"])[:-1]
            self.rows = list(zip(np.split(kept["points"], cuts), np.split(kept["gradients"], cuts), kept["numbers"]))
        else:
            self.rows = []
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
            points, gradients, numbers = zip(*self.rows)
            self.checkpoint.save(
                points=np.concatenate(points),
                gradients=np.concatenate(gradients),
                numbers=np.array(numbers),
                sizes=np.array([len(point) for point in points]),
            )
            self.saved = len(self.rows)
