"""Everything that is asked of a trace, in as few passes over it as that takes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf

import numpy as np

from models.trace.chunks import Chunk, Trace
from solver.trace import writes
from solver.trace.arrivals import Arrivals
from solver.trace.hits import HitCurve, Hits, grid
from solver.trace.replay import replay
from solver.trace.retention import GRID, Kept, TtlCurve
from solver.trace.reuse import HOT_SHARE, Reuse, hot_blocks, popularity
from solver.trace.tiers import Replayed

Watch = Callable[[str], None]
"""Told what is being done; it may raise to stop it."""


@dataclass(frozen=True)
class WarmUp:
    """Requests at the beginning that fill the cache and do not count: one of three is stated, or none."""

    share: float = 0.0
    """Of the requests."""
    seconds: float = 0.0
    requests: int = 0


@dataclass(frozen=True)
class Asked:
    """What is asked. Capacities in blocks, times in s."""

    warm_up: WarmUp = field(default_factory=WarmUp)
    capacities: tuple[float, ...] = ()
    """Beside those of the grid."""
    retentions: tuple[float, ...] = ()
    hot_share: float = HOT_SHARE
    dram: float | None = None
    ssd: float | None = None
    """Of two tiers, both or none."""
    admission: int | None = None


@dataclass(frozen=True)
class Blocks:
    """What a trace says of reuse."""

    hits: list[Hits]
    kept: list[Kept]
    reuse: Reuse
    hot: int
    """Hot blocks."""
    least_hot: int
    """Requests that read the hot block that fewest read; 0 where there is none."""
    most_other: int
    """Requests that read the other block that most read."""
    accesses: int
    """Blocks that count."""
    input_tokens: int
    """Input tokens that count, those in no block included."""
    tiers: tuple[float, float] | None
    """Blocks of the two tiers that were replayed."""
    writes: dict[str, Replayed]


@dataclass(frozen=True)
class Analysis:
    """All of it."""

    arrivals: Arrivals
    first: int
    """The first request that counts, from 0."""
    since: float
    """Its time, in s since the first request."""
    blocks: Blocks | None
    """None where the trace tells nothing of blocks."""


def analyse(trace: Trace, asked: Asked, watch: Watch = lambda _: None) -> Analysis:
    """Statistics, hit curves, reuse intervals and tables of writes of a trace."""
    arrivals = Arrivals()
    for chunk in watched(trace, watch, "lengths and arrivals"):
        arrivals.feed(chunk)
    first, since = first_counted(trace, asked.warm_up)
    blocks = _blocks(trace, asked, first, since, watch) if trace.block_tokens else None
    return Analysis(arrivals, first, since, blocks)


def first_counted(trace: Trace, warm_up: WarmUp) -> tuple[int, float]:
    """The first request that counts, and its time in s; the last request counts whatever the warm-up is."""
    first = max(warm_up.requests, int(warm_up.share * trace.requests))
    if warm_up.seconds > 0.0:
        first = sum(int(np.searchsorted(chunk.times, warm_up.seconds)) for chunk in trace.chunks())
    first = min(first, trace.requests - 1)
    seen = 0
    for chunk in trace.chunks():
        if first < seen + len(chunk.times):
            return first, float(chunk.times[first - seen])
        seen += len(chunk.times)
    return first, trace.span


def _blocks(trace: Trace, asked: Asked, first: int, since: float, watch: Watch) -> Blocks:
    size = trace.block_tokens or 0
    counts = popularity(trace)
    hot = hot_blocks(trace, counts, asked.hot_share)
    longest = [seconds for seconds in GRID if seconds < trace.span]
    hits, reuse = HitCurve(size, first), Reuse(trace, hot, first)
    kept = TtlCurve(trace, [*longest, *asked.retentions, inf], first, since)
    for chunk in watched(trace, watch, "reuse"):
        hits.feed(chunk)
        kept.feed(chunk)
        reuse.feed(chunk)
    return Blocks(
        hits.at(sorted({*grid(hits.deepest), *asked.capacities})),
        kept.at(),
        reuse,
        int(hot.sum()),
        int(counts[hot].min(initial=trace.requests)) if hot.any() else 0,
        int(counts[~hot].max(initial=0)),
        hits.accesses,
        hits.input_tokens,
        None if asked.dram is None or asked.ssd is None else (asked.dram, asked.ssd),
        _writes(trace, asked, first, watch),
    )


def _writes(trace: Trace, asked: Asked, first: int, watch: Watch) -> dict[str, Replayed]:
    if asked.dram is None or asked.ssd is None:
        return {}
    found = {}
    for policy in writes.POLICIES:
        chunks = watched(trace, watch, f"replay of {policy}")
        tiers = writes.tiers(policy, asked.dram, asked.ssd, asked.admission)
        found[policy] = replay(chunks, tiers, trace.block_tokens or 0, first=first)
    return found


def watched(trace: Trace, watch: Watch, what: str) -> Iterator[Chunk]:
    """The chunks of a trace, with ``watch`` told how far it is."""
    done = 0
    for chunk in trace.chunks():
        watch(f"{what}, {done:,} of {trace.requests:,} requests")
        yield chunk
        done += len(chunk.times)
