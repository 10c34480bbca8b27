"""Hit rates of an LRU cache at every size at once, from stack distances."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.trace.chunks import Chunk
from solver.trace.distances import NEVER, Distances


@dataclass(frozen=True)
class Hits:
    """Accesses that a cache of some size serves, of those that count."""

    capacity: float
    """Blocks; infinite for one that evicts nothing."""
    blocks: int
    tokens: int


class HitCurve:
    """Feed it every chunk; requests before ``first`` fill the cache and do not count."""

    def __init__(self, block_tokens: int, first: int = 0) -> None:
        self._distances = Distances()
        self._size, self._first, self._seen = block_tokens, first, 0
        self._blocks = np.zeros(0, dtype=np.int64)  # by distance
        self._tokens = np.zeros(0, dtype=np.int64)
        self.accesses = 0
        """Blocks that count."""
        self.input_tokens = 0
        """Input tokens of the requests that count, those in no block included."""

    def feed(self, chunk: Chunk) -> None:
        """Take the requests of a chunk."""
        distances = self._distances.of(chunk)
        skipped = min(max(self._first - self._seen, 0), len(chunk.times))
        begin = int(chunk.starts[skipped])
        self._seen += len(chunk.times)
        self.input_tokens += int(chunk.inputs[skipped:].sum())
        distances, tokens = distances[begin:], chunk.tokens(self._size)[begin:]
        self.accesses += len(distances)
        again = distances != NEVER
        self._blocks = _added(self._blocks, np.bincount(distances[again]))
        self._tokens = _added(self._tokens, np.bincount(distances[again], tokens[again]).astype(np.int64))

    def at(self, capacities: Sequence[float]) -> list[Hits]:
        """Hits at each capacity, in blocks."""
        blocks, tokens = np.cumsum(self._blocks), np.cumsum(self._tokens)
        found = []
        for capacity in capacities:
            last = min(int(capacity) if capacity < len(blocks) else len(blocks), len(blocks)) - 1
            held = (int(blocks[last]), int(tokens[last])) if last >= 0 else (0, 0)
            found.append(Hits(capacity, *held))
        return found

    @property
    def deepest(self) -> int:
        """The least capacity, in blocks, that an infinite cache cannot beat."""
        return len(self._blocks)


def grid(largest: int) -> list[float]:
    """1, 2, 5, 10, ... blocks below ``largest``, and it; then without limit."""
    steps = [float(step * 10**power) for power in range(19) for step in (1, 2, 5) if step * 10**power < largest]
    return [*steps, *([float(largest)] if largest else []), float("inf")]


def _added(sums: np.ndarray, more: np.ndarray) -> np.ndarray:
    if len(more) > len(sums):
        sums = np.concatenate([sums, np.zeros(len(more) - len(sums), dtype=np.int64)])
    sums[: len(more)] += more
    return sums
