"""Reuse intervals: after how long blocks are accessed again, with and without the blocks that every request reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
LATE = 0.1
"""Least share of the tokens that ages are seen of, in a steady curve."""
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
    readers: int = 0
    """Requests that read a block of the class."""
    seconds: Counted = field(default_factory=Counted)
    """Ages of the access before the last one, of accesses that are the third to their block at least, by tokens."""
    times: Counted = field(default_factory=Counted)
    """Times of the requests that read a block of the class, weighted by the tokens of all they read of it."""

    @property
    def again(self) -> tuple[int, int]:
        """Accesses, and their tokens, whose block was read before."""
        return round(self.count.total), round(self.ages.total)

    @property
    def third(self) -> float | None:
        """Of the tokens that are read again, the share whose block had been read again before; None where none is."""
        return self.seconds.total / self.ages.total if self.ages.total else None


class Reuse:
    """Feed it every chunk; requests before ``first`` do not count, but what they read counts as read."""

    def __init__(self, trace: Trace, hot: np.ndarray, first: int = 0) -> None:
        self._ages, self._hot, self._first, self._seen = Ages(second=True), hot, first, 0
        self._size = trace.block_tokens or 0
        self.all, self.hot, self.other = (Class(Counted(), Counted()) for _ in range(3))
        self.requests = self.inputs = self.outputs = 0
        """Requests that count, and their tokens."""
        self._inner = np.zeros(len(hot), dtype=bool)

    def feed(self, chunk: Chunk) -> None:
        """Take the requests of a chunk."""
        aged = self._ages.of(chunk)
        skipped = min(max(self._first - self._seen, 0), len(chunk.times))
        begin = int(chunk.starts[skipped])
        self._seen += len(chunk.times)
        ages, tokens = aged.age[begin:], chunk.tokens(self._size)[begin:]
        hot, request = self._hot[chunk.blocks[begin:]], chunk.request[begin:]
        self.requests += len(chunk.times) - skipped
        self.inputs += int(chunk.inputs[skipped:].sum())
        self.outputs += int(chunk.outputs[skipped:].sum())
        self._follow(chunk)
        seconds = np.empty(0) if aged.second is None else aged.second[begin:]
        again, later = np.isfinite(ages), np.isfinite(seconds)
        for kind, members in ((self.all, None), (self.hot, hot), (self.other, ~hot)):
            mine = again if members is None else again & members
            kind.count.add(ages[mine])
            kind.ages.add(ages[mine], tokens[mine])
            kind.accesses += len(ages) if members is None else int(members.sum())
            kind.tokens += int(tokens.sum() if members is None else tokens[members].sum())
            kind.requests += len(np.unique(request[mine]))
            kind.seconds.add(seconds[mine & later], tokens[mine & later])
            read = np.bincount(request if members is None else request[members], minlength=len(chunk.times))
            sums = np.bincount(request, tokens if members is None else tokens * members, len(chunk.times))
            kind.readers += int(np.count_nonzero(read))
            kind.times.add(chunk.times[read > 0], sums[read > 0])

    def _follow(self, chunk: Chunk) -> None:
        """Note the hot blocks that another hot block follows in some request."""
        hot = self._hot[chunk.blocks]
        pairs = hot[:-1] & hot[1:] & (chunk.request[:-1] == chunk.request[1:])
        self._inner[chunk.blocks[:-1][pairs]] = True

    @property
    def hot_blocks(self) -> int:
        """How many blocks are hot."""
        return int(np.count_nonzero(self._hot))

    @property
    def chains(self) -> int:
        """Hot blocks that no other hot block follows: so many different prefixes are there at most."""
        return int(np.count_nonzero(self._hot & ~self._inner))

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
    return _points(ages.values, np.cumsum(ages.weights) / accesses)


def _points(values: np.ndarray, sums: np.ndarray) -> list[tuple[float, float]]:
    """Points of the curve that has ``sums`` at ``values``, both growing and not empty."""
    steps = np.linspace(0.0, 1.0, POINTS) * sums[-1] * (1.0 - 1e-12)
    even = values[np.searchsorted(sums, steps).clip(0, len(sums) - 1)]
    round_ones = [age for age in AGES if values[0] <= age < values[-1]]
    points = np.unique(np.concatenate([even, round_ones]))
    return [(float(age), float(sums[np.searchsorted(values, age, side="right") - 1])) for age in points]


def steady_curve(kind: Class) -> list[tuple[float, float]]:
    """The curve of tokens as if the trace had gone on like this for ever before it begins.

    An age can be seen only of accesses at least so late after the first request. Tokens that are read again count as a
    share of those, so that the beginning of a trace, where nothing was read before, does not count as never reused.
    Of ages that hardly any access is late enough for, as many as LATE of all.
    """
    if not len(kind.ages.values) or kind.tokens <= 0:
        return []
    return _points(kind.ages.values, _steady(kind, kind.ages).clip(max=1.0))


def steady_third(kind: Class) -> float | None:
    """The same of :attr:`Class.third`."""
    if not len(kind.seconds.values):
        return kind.third
    return min(1.0, float(_steady(kind, kind.seconds)[-1] / _steady(kind, kind.ages)[-1]))


def _steady(kind: Class, ages: Counted) -> np.ndarray:
    """Sums of the tokens up to each age, each as a share of the tokens of which it can be seen."""
    late = kind.times.total - kind.times.below(np.nextafter(ages.values, -1.0))
    return np.asarray(np.cumsum(ages.weights / np.maximum(late, LATE * kind.times.total)))


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
