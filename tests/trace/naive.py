"""The same answers as the program's, the slow and plain way; and small traces for both."""

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np

from models.trace.chunks import Chunk, Store, Trace, joined
from models.trace.reading import Options, read
from solver.trace.generate import Conversations, conversations

Requests = list[tuple[float, int, list[int]]]
"""Time in s, input tokens, blocks."""
SIZE = 4


def some(seed: int, requests: int = 120, blocks: int = 40, tree: bool = False) -> Requests:
    """Requests at random: any blocks in any order, or prefixes of one another."""
    draw = random.Random(seed)
    time = 0.0
    found: Requests = []
    for _ in range(requests):
        time = round(time + draw.choice([0.0, 0.0, 0.5, 1.0, 3.3, 7.1]), 6) if found else 0.0
        if tree:
            family, length = draw.randrange(5), draw.randrange(1, 9)
            ids = [family * 100 + i for i in range(length - 1)] + [family * 100 + 50 + draw.randrange(9)]
        else:
            ids = draw.sample(range(blocks), draw.randrange(0, 8))
        found.append((time, max(0, SIZE * len(ids) - draw.randrange(SIZE)) if ids else 0, ids))
    return found


def made(requests: Requests, cuts: Sequence[int] = ()) -> Trace:
    """The trace of requests, in chunks that begin at ``cuts``; codes are the ids."""
    store = Store(kept=50)
    edges = [0, *cuts, len(requests)]
    for begin, end in pairwise(edges):
        part = requests[begin:end]
        if part:
            flat = np.array([one for _, _, ids in part for one in ids], dtype=np.int64)
            times, inputs = [time for time, _, _ in part], [length for _, length, _ in part]
            store.put(joined(times, inputs, [1] * len(part), [len(ids) for _, _, ids in part], flat))
    ids = [one for _, _, ids in requests for one in ids]
    return Trace(
        format="made",
        store=store,
        requests=len(requests),
        start=0.0,
        span=requests[-1][0],
        block_tokens=SIZE,
        accesses=len(ids),
        distinct=max(ids) + 1,
        input_tokens=sum(length for _, length, _ in requests),
        output_tokens=len(requests),
    )


def tokens(length: int, ids: list[int]) -> Iterator[tuple[int, int]]:
    """Blocks with their tokens."""
    for i, block in enumerate(ids):
        yield block, min(SIZE, length - i * SIZE)


def lru(requests: Requests, capacity: float, first: int = 0) -> tuple[int, int]:
    """Hits of an LRU cache, blocks and tokens: what was held when a request came; the last block is used first."""
    held: list[int] = []
    blocks = count = 0
    for number, (_, length, ids) in enumerate(requests):
        for block, size in tokens(length, ids):
            if block in held and number >= first:
                blocks, count = blocks + 1, count + size
        for block in reversed(ids):
            if block in held:
                held.remove(block)
            held.append(block)
        held = held[max(0, len(held) - int(capacity)) :] if capacity < inf else held
    return blocks, count


def kept(requests: Requests, seconds: float) -> tuple[int, int, float, int]:
    """Hits in blocks and tokens, mean and peak of the blocks held, where each is kept so long after its last use."""
    last: dict[int, float] = {}
    blocks = count = peak = 0
    end = requests[-1][0]
    spells: list[tuple[float, float]] = []
    for time, length, ids in requests:
        for block, size in tokens(length, ids):
            if block in last and round(time - last[block], 6) <= seconds:
                blocks, count = blocks + 1, count + size
        for block in ids:
            if block in last:
                spells.append((last[block], min(round(time - last[block], 6), seconds)))
            last[block] = time
    spells.extend((time, min(end - time, seconds)) for time in last.values())
    for now in sorted({time for time, _, _ in requests}):
        held: dict[int, float] = {}
        for time, _, ids in requests:
            if time <= now:
                held.update(dict.fromkeys(ids, time))
        peak = max(peak, sum(1 for time in held.values() if round(now - time, 6) < seconds or time == now))
    return blocks, count, sum(width for _, width in spells) / end, peak


def file_of(path: Path, requests: int = 200, seed: int = 0, **like: float) -> Path:
    """A small made-up trace as a file."""
    text = [json.dumps(one) for one in conversations(requests, Conversations(**like), seed)]  # type: ignore[arg-type]
    path.write_text("\n".join(text) + "\n")
    return path


def chunks(path: Path, how: Options | None = None) -> list[Chunk]:
    """All of a file."""
    return list(read(path, how).chunks())
