"""Hits and live tokens where every block is kept for a time after its last use: one curve over all times."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.trace.chunks import Chunk, Trace
from solver.trace.ages import Ages

GRID = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0, 604800.0)
"""Seconds."""
HALF = 0.5e-6
"""Half of the microsecond to which times are kept."""
MOST_SLOTS = 2**17
"""Moments at which the peak is looked for; a trace of more requests is cut into this many even slots of time."""


@dataclass(frozen=True)
class Kept:
    """What a time of retention does, of the accesses that count."""

    seconds: float
    blocks: int
    """Accesses that find their block: no more than ``seconds`` since the last one."""
    tokens: int
    mean_live: float | None
    """Blocks held, mean over the time from the first request that counts to the last; None if that takes no time."""
    peak_live: int
    """Most blocks held at once; what runs out at a moment is gone before what comes at it. In traces of more requests
    than MOST_SLOTS a little off: what comes in a slot of time counts as if it came at its beginning."""


class TtlCurve:
    """Feed it every chunk; requests before ``first``, which comes ``since`` s after the first one, do not count.

    Beside the ages, it keeps 8 bytes for each slot of time and each retention.
    """

    def __init__(self, trace: Trace, seconds: Sequence[float], first: int = 0, since: float = 0.0) -> None:
        self._size = trace.block_tokens or 0
        self._seconds = np.array(sorted(set(seconds)))
        self._ages, self._first, self._since, self._end = Ages(), first, since, trace.span
        self._seen = 0
        self._slots = _slots(trace)
        steps = len(self._seconds)
        self._blocks, self._tokens = np.zeros(steps + 1, dtype=np.int64), np.zeros(steps + 1, dtype=np.int64)
        self._live = np.zeros(steps)
        # Accesses by the first retention that is long enough, the last row: none; by their slot, and by that of the
        # access before to the same block.
        self._now = np.zeros((steps + 1, len(self._slots)), dtype=np.int32)
        self._then = np.zeros((steps + 1, len(self._slots)), dtype=np.int32)

    def feed(self, chunk: Chunk) -> None:
        """Take the requests of a chunk."""
        aged = self._ages.of(chunk)
        begin = int(chunk.starts[min(max(self._first - self._seen, 0), len(chunk.times))])
        self._seen += len(chunk.times)
        again = np.isfinite(aged.age)
        step = np.where(again, np.searchsorted(self._seconds, aged.age), len(self._seconds))
        tokens, size = chunk.tokens(self._size)[begin:], len(self._seconds) + 1
        self._blocks += np.bincount(step[begin:], minlength=size)
        self._tokens += np.bincount(step[begin:], tokens, size).astype(np.int64)
        then = aged.now[again] - aged.age[again]
        self._lived(then, aged.age[again])
        self._now += self._by_slot(step, aged.now)
        self._then += self._by_slot(step[again], then)

    def _by_slot(self, step: np.ndarray, times: np.ndarray) -> np.ndarray:
        slot = np.searchsorted(self._slots, times + HALF, side="right") - 1
        shape = self._now.shape
        return np.bincount(step * shape[1] + slot, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int32)

    def _lived(self, then: np.ndarray, ages: np.ndarray) -> None:
        """Add the time, from the first request that counts on, that blocks live after accesses at ``then``."""
        late = np.maximum(self._since - then, 0.0)
        for row, seconds in enumerate(self._seconds):
            self._live[row] += float(np.maximum(np.minimum(ages, seconds) - late, 0.0).sum())

    def at(self) -> list[Kept]:
        """The curve, by growing retention. Ask once, when every chunk was fed."""
        ends = self._ages.ends()
        self._lived(ends, self._end - ends)
        width = self._end - self._since
        blocks, tokens = np.cumsum(self._blocks), np.cumsum(self._tokens)
        return [
            Kept(
                float(seconds),
                int(blocks[row]),
                int(tokens[row]),
                float(self._live[row]) / width if width > 0.0 else None,
                self._peak(row, float(seconds)),
            )
            for row, seconds in enumerate(self._seconds)
        ]

    @property
    def counted(self) -> tuple[int, int]:
        """Blocks that count, and their tokens."""
        return int(self._blocks.sum()), int(self._tokens.sum())

    def _peak(self, row: int, seconds: float) -> int:
        """Blocks come in with accesses that do not find them, and leave after the last access that keeps them."""
        every = self._now.sum(axis=0, dtype=np.int64)
        came = np.cumsum(every - self._now[: row + 1].sum(axis=0, dtype=np.int64))
        left = np.concatenate([[0], np.cumsum(every - self._then[: row + 1].sum(axis=0, dtype=np.int64))])
        out = np.zeros(len(every), dtype=np.int64)  # of each slot: slots whose blocks have run out by then
        if math.isfinite(seconds):
            out = np.searchsorted(self._slots, self._slots - seconds + HALF, side="right")
            out = np.minimum(out, np.arange(len(every)))  # what comes is held for a moment at least
        return int((came - left[out])[self._slots >= self._since - HALF].max(initial=0))


def _slots(trace: Trace) -> np.ndarray:
    """Beginnings of the slots of time, float64, sorted."""
    if trace.requests <= MOST_SLOTS:
        return np.unique(np.concatenate([chunk.times for chunk in trace.chunks()]))
    return np.linspace(0.0, trace.span, MOST_SLOTS, endpoint=False)
