"""Reuse intervals: after how long blocks are accessed again, with and without the blocks that every request reads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.trace.chunks import Chunk, Trace
from solver.trace.ages import Ages
from solver.trace.counted import Counted

PERCENTILES = (5, 10, 25, 50, 75, 90, 95, 99)
HOT_SHARE = 0.05
"""Of the requests that read a block, for it to count as hot."""
HOT_REQUESTS = 10
"""And so many of them at least."""
POINTS = 24
"""Of a curve, beside AGES."""
AGES = (1.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0, 7200.0, 21600.0, 86400.0, 604800.0)
"""Round ages, in s."""


def popularity(trace: Trace) -> np.ndarray:
    """How many requests read each block, int64 (distinct,)."""
    counts = np.zeros(trace.distinct, dtype=np.int64)
    for chunk in trace.chunks():
        more = np.bincount(chunk.blocks)
        counts[: len(more)] += more
    return counts


def hot_blocks(trace: Trace, counts: np.ndarray, share: float = HOT_SHARE) -> np.ndarray:
    """Whether a block is hot, bool (distinct,): a share of all requests read it, HOT_REQUESTS at least.

    Such blocks are what prompts have in common, a system prompt; what a conversation reads again is read by its own
    turns alone.
    """
    return np.asarray(counts >= max(share * trace.requests, HOT_REQUESTS))


@dataclass
class Class:
    """Accesses of one kind: of hot blocks, or of the others."""

    ages: Counted
    """Of accesses that read a block again, weighted by tokens."""
    count: Counted
    """The same, each access once."""
    accesses: int = 0
    tokens: int = 0
    requests: int = 0
    """Requests that read a block of the class again."""

    @property
    def again(self) -> tuple[int, int]:
        """Accesses, and their tokens, whose block was read before."""
        return round(self.count.total), round(self.ages.total)


class Reuse:
    """Feed it every chunk; requests before ``first`` do not count, but what they read counts as read."""

    def __init__(self, trace: Trace, hot: np.ndarray, first: int = 0) -> None:
        self._ages, self._hot, self._first, self._seen = Ages(), hot, first, 0
        self._size = trace.block_tokens or 0
        self.all, self.hot, self.other = (Class(Counted(), Counted()) for _ in range(3))

    def feed(self, chunk: Chunk) -> None:
        """Take the requests of a chunk."""
        aged = self._ages.of(chunk)
        skipped = min(max(self._first - self._seen, 0), len(chunk.times))
        begin = int(chunk.starts[skipped])
        self._seen += len(chunk.times)
        ages, tokens = aged.age[begin:], chunk.tokens(self._size)[begin:]
        hot, request = self._hot[chunk.blocks[begin:]], chunk.request[begin:]
        again = np.isfinite(ages)
        for kind, members in ((self.all, None), (self.hot, hot), (self.other, ~hot)):
            mine = again if members is None else again & members
            kind.count.add(ages[mine])
            kind.ages.add(ages[mine], tokens[mine])
            kind.accesses += len(ages) if members is None else int(members.sum())
            kind.tokens += int(tokens.sum() if members is None else tokens[members].sum())
            kind.requests += len(np.unique(request[mine]))

    def curve(self, weight: str = "token", kind: str = "all") -> list[tuple[float, float]]:
        """F as pairs (age in s, share of accesses that read a block again within it), both growing; see `curve`."""
        found: Class = getattr(self, kind)
        if weight == "token":
            return curve(found.ages, found.tokens)
        return curve(found.count, found.accesses)


def curve(ages: Counted, accesses: float) -> list[tuple[float, float]]:
    """The distribution of reuse intervals over all accesses, those that are the first to their block included.

    The last share is that of all accesses that read a block again; what is missing to 1 is never reused. Points are at
    equal steps of the share, so that straight lines between them are near everywhere, and at AGES.
    """
    if not len(ages.values) or accesses <= 0:
        return []
    ends = np.cumsum(ages.weights)
    steps = np.linspace(0.0, 1.0, POINTS) * ends[-1] * (1.0 - 1e-12)
    even = ages.values[np.searchsorted(ends, steps).clip(0, len(ends) - 1)]
    round_ones = [age for age in AGES if ages.values[0] <= age < ages.values[-1]]
    points = np.unique(np.concatenate([even, round_ones]))
    return [(float(age), float(share)) for age, share in zip(points, ages.below(points) / accesses, strict=True)]


def of_trace(trace: Trace, first: int = 0, share: float = HOT_SHARE) -> Reuse:
    """Reuse intervals of a trace."""
    found = Reuse(trace, hot_blocks(trace, popularity(trace), share), first)
    for chunk in trace.chunks():
        found.feed(chunk)
    return found


def percentiles(kind: Class, wanted: Sequence[float] = PERCENTILES) -> dict[str, float | None]:
    """Percentiles of the ages of accesses that read a block again, in s, each access once; None where there is none."""
    if not len(kind.count.values):
        return {f"p{p}": None for p in wanted}
    return {f"p{p}": at for p, at in zip(wanted, kind.count.percentiles(wanted), strict=True)}
