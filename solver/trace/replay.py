"""Exact replay of a trace against tiers of cache: hits, reads, writes, evictions and what is held.

The rules, one request after the other. What each tier holds when a request comes decides what it finds, each block in
the fastest tier that has it. Then the blocks are used from the last to the first, so that the beginning of a prompt is
evicted last; each use brings the block to the fastest tier, and what overflows there goes on to the next tier if that
takes what is evicted. A block that is older than the retention of a tier leaves before the request looks.
"""

import random
from collections.abc import Iterable, Sequence

import numpy as np

from models.trace.chunks import Chunk
from solver.trace.cache import Cache, Level
from solver.trace.tiers import Found, Replayed, Routing, Tier, check


def replay(
    chunks: Iterable[Chunk],
    tiers: Sequence[Tier],
    block_tokens: int,
    *,
    first: int = 0,
    contiguous: bool = False,
    copies: int = 1,
    routing: Routing = "random",
    seed: int = 0,
    hot: np.ndarray | None = None,
) -> Replayed:
    """Replay requests against ``tiers``, fastest first, and count from request ``first`` on.

    contiguous: a block counts as found only where all blocks before it in its request are found too; for prefix blocks
    under least-recently-used eviction the answer is the same. copies: so many caches of the same tiers, those that are
    shared apart; each request goes to one of them, at random, or by its session: by its first block that is not
    ``hot``, bool by code. Time is in s, capacity in blocks. Raises ValueError for tiers that cannot be.
    """
    check(tuple(tiers), copies)
    shared = [Level(tier) for tier in tiers if tier.shared]
    caches = [Cache([*(Level(tier) for tier in tiers if not tier.shared), *shared], contiguous) for _ in range(copies)]
    route = _Router(copies, routing, seed, hot)
    number = accesses = tokens = 0
    since = now = 0.0
    for chunk in chunks:
        blocks, starts, times = chunk.blocks.tolist(), chunk.starts.tolist(), chunk.times.tolist()
        inputs = chunk.inputs.tolist()
        for i, now in enumerate(times):
            ids = blocks[starts[i] : starts[i + 1]]
            if number == first:
                since, accesses, tokens = now, 0, 0
                for cache in caches:
                    cache.begin(now)
            number += 1
            accesses += len(ids)
            tokens += inputs[i]
            if ids:
                # what the last block lacks to a whole one
                lacking = max(0, block_tokens * len(ids) - inputs[i])
                caches[route.of(ids) if copies > 1 else 0].request(ids, now, block_tokens, lacking)
    for cache in caches:
        cache.until(now)
    counted = number > first
    found = (
        _together(tiers, caches, now - since) if counted else tuple(Found(t.name, 0, 0, 0, 0, 0.0, 0) for t in tiers)
    )
    return Replayed(found, max(0, number - first), accesses * counted, tokens * counted, now - since)


class _Router:
    """The copy that each request goes to."""

    def __init__(self, copies: int, routing: Routing, seed: int, hot: np.ndarray | None) -> None:
        self._copies, self._random = copies, random.Random(seed)
        self._hot = hot.tolist() if hot is not None else []
        self._by_session = routing == "session"

    def of(self, ids: list[int]) -> int:
        if self._by_session:
            hot = self._hot
            block = next((one for one in ids if one >= len(hot) or not hot[one]), None)
            if block is not None:
                # the high bits of a product with the golden ratio, since codes of one session are neighbours
                return ((block * 0x9E3779B97F4A7C15 & (2**64 - 1)) >> 32) * self._copies >> 32
        return self._random.randrange(self._copies)


def _together(tiers: Sequence[Tier], caches: list[Cache], seconds: float) -> tuple[Found, ...]:
    """Each tier over all copies; a shared one is there once."""
    found = []
    for place, tier in enumerate(tiers):
        levels = list({id(level): level for level in (cache.levels[place] for cache in caches)}.values())
        mean = sum(level.area for level in levels) / seconds if seconds > 0.0 else sum(len(one.held) for one in levels)
        found.append(
            Found(
                tier.name,
                sum(level.hits for level in levels),
                sum(level.hit_tokens for level in levels),
                sum(level.writes for level in levels),
                sum(level.evictions for level in levels),
                float(mean),
                sum(level.peak for level in levels),
            )
        )
    return tuple(found)
