"""How long ago each block was accessed before."""

from dataclasses import dataclass

import numpy as np

from models.trace.chunks import Chunk
from solver.trace.distances import previous

DIGITS = 6
"""Ages are rounded to the microsecond: 33.3 - 3.3 is 30, and an age of 30 s is within 30 s."""


@dataclass(frozen=True)
class Aged:
    """The accesses of a chunk."""

    now: np.ndarray
    """Time of each access, float64 (m,), in s since the first request."""
    age: np.ndarray
    """Seconds since the access before to the same block, infinite for the first one, float64 (m,)."""


class Ages:
    """Ages of one chunk after the other. What is kept grows with the distinct blocks: 8 bytes each."""

    def __init__(self) -> None:
        self.last = np.full(0, -np.inf)
        """By code: time of the last access, float64."""

    def of(self, chunk: Chunk) -> Aged:
        """Times and ages of the accesses of a chunk, in the order of ``chunk.blocks``."""
        codes = chunk.blocks
        now = chunk.times[chunk.request]
        if not len(codes):
            return Aged(now, now)
        size = int(codes.max()) + 1
        if size > len(self.last):
            wider = np.full(max(size, 2 * len(self.last)), -np.inf)
            wider[: len(self.last)] = self.last
            self.last = wider
        before, last = previous(codes)
        then = np.where(before >= 0, now[before], self.last[codes])
        self.last[codes[last]] = now[last]
        return Aged(now, np.round(now - then, DIGITS))

    def ends(self) -> np.ndarray:
        """Times of the last accesses to all blocks so far, float64, in any order."""
        return self.last[self.last > -np.inf]
