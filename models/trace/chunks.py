"""A trace as arrays: chunks of requests and the blocks that they read, in memory or spilled to a temporary file.

Ids of blocks become codes 0, 1, 2, ...; what is kept while a trace is read grows with the distinct blocks alone, since
chunks beyond the first few go to a file that has no name and ends with the process.
"""

import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import IO

import numpy as np

from models.errors import Problem

KEPT_ACCESSES = 4_000_000
"""Blocks and requests that stay in memory; the chunks after them are spilled."""


@dataclass(frozen=True)
class Chunk:
    """Requests that follow one another; n of them with m accesses to blocks in all."""

    times: np.ndarray
    """Seconds since the first request of the trace, float64 (n,), never falling."""
    inputs: np.ndarray
    """Input tokens, int64 (n,)."""
    outputs: np.ndarray
    """Output tokens, int64 (n,)."""
    starts: np.ndarray
    """The blocks of request i are ``blocks[starts[i]:starts[i + 1]]``, int64 (n + 1,)."""
    blocks: np.ndarray
    """Codes of blocks, int64 (m,), the beginning of the prompt first; those of one request are distinct."""

    @cached_property
    def counts(self) -> np.ndarray:
        """Blocks of each request, int64 (n,)."""
        return np.diff(self.starts)

    @cached_property
    def request(self) -> np.ndarray:
        """The request of each access, int64 (m,)."""
        return np.repeat(np.arange(len(self.times)), self.counts)

    def tokens(self, block_tokens: int) -> np.ndarray:
        """Tokens of each access, int64 (m,): those of a whole block, but for a last one that is not full."""
        tokens = np.full(len(self.blocks), block_tokens, dtype=np.int64)
        some = self.counts > 0
        rest = self.inputs[some] - block_tokens * (self.counts[some] - 1)
        tokens[self.starts[1:][some] - 1] = np.minimum(rest, block_tokens)
        return tokens


class Store:
    """Chunks in the order in which they were put in; they may be gone through any number of times."""

    def __init__(self, kept: int = KEPT_ACCESSES) -> None:
        self._room = kept
        self._memory: list[Chunk] = []
        self._file: IO[bytes] | None = None
        self._places: list[int] = []

    def put(self, chunk: Chunk) -> None:
        """Add a chunk at the end."""
        size = len(chunk.blocks) + len(chunk.times)
        if self._file is None and size <= self._room:
            self._room -= size
            self._memory.append(chunk)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the store
            weakref.finalize(self, self._file.close)
        self._places.append(self._file.seek(0, 2))
        narrow = chunk.blocks.astype(np.int32) if chunk.blocks.size and chunk.blocks.max() < 2**31 else chunk.blocks
        for array in (chunk.times, chunk.inputs, chunk.outputs, chunk.starts, narrow):
            np.save(self._file, array, allow_pickle=False)

    def __iter__(self) -> Iterator[Chunk]:
        yield from self._memory
        for place in self._places:
            if self._file is not None:
                self._file.seek(place)  # every time: two readers may take turns
                times, inputs, outputs, starts, blocks = (np.load(self._file, allow_pickle=False) for _ in range(5))
                yield Chunk(times, inputs, outputs, starts, blocks.astype(np.int64))


@dataclass(frozen=True)
class Trace:
    """A trace that was read."""

    format: str
    store: Store
    requests: int
    start: float
    """Time of the first request as the trace states it, in s."""
    span: float
    """Seconds from the first request to the last."""
    block_tokens: int | None
    """Tokens of a block; None where the trace tells nothing of blocks."""
    accesses: int
    """Blocks that requests read, each as often as it was."""
    distinct: int
    """Different blocks."""
    input_tokens: int
    output_tokens: int
    skipped: tuple[int, tuple[Problem, ...]] = (0, ())
    """Lines that were left out because they are wrong, and the first of them."""

    def chunks(self) -> Iterator[Chunk]:
        """All requests in their order."""
        return iter(self.store)


class Codes:
    """Ids of blocks, any 64 bits, as codes 0, 1, 2, ...: the same for the same id."""

    def __init__(self) -> None:
        self._ids = np.empty(0, dtype=np.uint64)  # sorted
        self._codes = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, ids: np.ndarray) -> np.ndarray:
        """Codes of ids, uint64 (m,) to int64 (m,); ids that are new get the next ones."""
        some, inverse = np.unique(ids, return_inverse=True)
        places = np.searchsorted(self._ids, some)
        known = np.zeros(len(some), dtype=bool)
        inside = places < len(self._ids)
        known[inside] = self._ids[places[inside]] == some[inside]
        codes = np.empty(len(some), dtype=np.int64)
        codes[known] = self._codes[places[known]]
        fresh = ~known
        codes[fresh] = np.arange(len(self._ids), len(self._ids) + np.count_nonzero(fresh))
        self._codes = np.insert(self._codes, places[fresh], codes[fresh])
        self._ids = np.insert(self._ids, places[fresh], some[fresh])
        return np.asarray(codes[inverse])


def joined(times: list[float], inputs: list[int], outputs: list[int], counts: list[int], blocks: np.ndarray) -> Chunk:
    """A chunk of Python lists; ``counts`` are the blocks of each request."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(np.array(counts, dtype=np.int64), out=starts[1:])
    return Chunk(
        np.array(times, dtype=np.float64),
        np.array(inputs, dtype=np.int64),
        np.array(outputs, dtype=np.int64),
        starts,
        blocks,
    )
