"""How long ago each block was accessed before, and the time before."""

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
    second: np.ndarray | None = None
    """Seconds since the access before that one, infinite where there is none, float64 (m,); where asked for."""


class Ages:
    """Ages of one chunk after the other. What is kept grows with the distinct blocks.

    8 bytes each, 16 with ``second``.
    """

    def __init__(self, second: bool = False) -> None:
        self.last = np.full(0, -np.inf)
        """By code: time of the last access, float64."""
        self.before = np.full(0, -np.inf) if second else None
        """By code: time of the access before that one, float64."""

    def of(self, chunk: Chunk) -> Aged:
        """Times and ages of the accesses of a chunk, in the order of ``chunk.blocks``."""
        codes = chunk.blocks
        now = chunk.times[chunk.request]
        if not len(codes):
            return Aged(now, now, now)
        size = int(codes.max()) + 1
        if size > len(self.last):
            self.last = _wider(self.last, size)
            self.before = None if self.before is None else _wider(self.before, size)
        before, last = previous(codes)
        then = np.where(before >= 0, now[before], self.last[codes])
        second = None
        if self.before is not None:
            second = np.round(now - np.where(before >= 0, then[before], self.before[codes]), DIGITS)
            self.before[codes[last]] = then[last]
        self.last[codes[last]] = now[last]
        return Aged(now, np.round(now - then, DIGITS), second)

    def ends(self) -> np.ndarray:
        """Times of the last accesses to all blocks so far, float64, in any order."""
        return self.last[self.last > -np.inf]


def _wider(times: np.ndarray, size: int) -> np.ndarray:
    wider = np.full(max(size, 2 * len(times)), -np.inf)
    wider[: len(times)] = times
    return wider
