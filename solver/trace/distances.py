"""Exact stack distances of block accesses, chunk by chunk, without a loop over accesses.

The stack distance of an access is the number of different blocks that were accessed since the last access to its block:
an LRU cache of C blocks holds it if and only if the distance is below C. (R. L. Mattson et al., Evaluation techniques
for storage hierarchies, IBM Systems Journal 9(2), 1970.)

What a request finds is what the cache held when it came; then its blocks are used from the last to the first, so that
the beginning of a prompt is evicted last, as engines do. Of prefix blocks the held ones are therefore always the first.
"""

from bisect import bisect_right

import numpy as np

from models.trace.chunks import Chunk

NEVER = -1
"""Distance of the first access to a block."""


class Distances:
    """Distances of one chunk after the other. What is kept grows with the distinct blocks: 16 bytes each."""

    def __init__(self) -> None:
        self._last = np.full(0, NEVER)  # by code: position of its last access
        self._order = np.empty(0, dtype=np.int64)  # the same positions, sorted: the stack from its bottom up
        self._position = 0

    def of(self, chunk: Chunk) -> np.ndarray:
        """Distance of each access, int64 (m,), in the order of ``chunk.blocks``; NEVER for first accesses."""
        if not len(chunk.blocks):
            return np.empty(0, dtype=np.int64)
        back = backwards(chunk)
        codes = chunk.blocks[back]
        held = len(self._order)
        before, last = previous(codes)
        where = np.where(before >= 0, before + held, NEVER)
        self._widen(int(codes.max()) + 1)
        first = np.flatnonzero(before < 0)
        known = first[self._last[codes[first]] != NEVER]
        ranks = np.searchsorted(self._order, self._last[codes[known]])
        where[known] = ranks
        starts = np.repeat(chunk.starts[:-1], chunk.counts)
        found = np.where(where == NEVER, NEVER, held - 1 - where + _earlier(where, starts))
        self._remember(codes, last, ranks)
        distances = np.empty_like(found)
        distances[back] = found
        return distances

    def _widen(self, size: int) -> None:
        if size > len(self._last):
            wider = np.full(max(size, 2 * len(self._last)), NEVER)
            wider[: len(self._last)] = self._last
            self._last = wider

    def _remember(self, codes: np.ndarray, last: np.ndarray, moved: np.ndarray) -> None:
        """The stack after the chunk. last: whether an access is its block's last; moved: ranks that go to the top."""
        kept = np.ones(len(self._order), dtype=bool)
        kept[moved] = False
        positions = self._position + np.flatnonzero(last)
        self._order = np.concatenate([self._order[kept], positions])
        self._last[codes[last]] = positions
        self._position += len(codes)


def backwards(chunk: Chunk) -> np.ndarray:
    """Indices of the accesses with those of each request turned round, int64 (m,); it is its own inverse."""
    ends = np.repeat(chunk.starts[1:], chunk.counts)
    starts = np.repeat(chunk.starts[:-1], chunk.counts)
    return np.asarray(starts + ends - 1 - np.arange(len(chunk.blocks)))


def previous(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of the access before to the same block, or -1, int64 (m,); and whether an access is its block's last."""
    size = len(codes)
    # Positions ride in the low bits: a plain sort then keeps equal codes in order, and is quicker than an argsort.
    bits = max(1, (size - 1).bit_length())
    if size and int(codes.max()) < 1 << (63 - bits):
        keyed = np.sort((codes << bits) | np.arange(size))
        order, ordered = keyed & ((1 << bits) - 1), keyed >> bits
    else:
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
    same = ordered[1:] == ordered[:-1]
    before = np.full(size, -1)
    before[order[1:][same]] = order[:-1][same]
    last = np.ones(size, dtype=bool)
    last[order[:-1][same]] = False
    return before, last


def _earlier(where: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """For each access the accesses j before its request with where[j] <= where[i], less those up to where[i] itself.

    where: place of the access before to the same block, stack first and chunk behind it, or NEVER; distinct else.
    """
    warm = np.flatnonzero(where != NEVER)
    values = where[warm]
    cold = np.cumsum(where == NEVER)
    count = np.zeros(len(where), dtype=np.int64)
    count[warm] = cold[warm] + smaller_before(_ranks(values))
    return np.asarray(count - _inside(where, starts))


def _inside(where: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """For each access the accesses j before it in its own request with where[j] <= where[i]."""
    count = np.arange(len(where)) - starts
    falls = np.zeros(len(where), dtype=bool)
    falls[1:] = (where[1:] < where[:-1]) & (count[1:] > 0)
    for start in np.unique(starts[falls]).tolist():  # blocks that are no prefixes of one another
        stop = int(np.searchsorted(starts, start, side="right"))
        seen: list[int] = []
        for i, value in enumerate(where[start:stop].tolist(), start):
            place = bisect_right(seen, value)
            count[i] = place
            seen.insert(place, value)
    return np.asarray(count)


def _ranks(values: np.ndarray) -> np.ndarray:
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values)] = np.arange(len(values))
    return ranks


def smaller_before(ranks: np.ndarray) -> np.ndarray:
    """For each element of a permutation of 0..m-1 how many before it are smaller, int64 (m,).

    Bit by bit from the highest, as a wavelet matrix: within values of equal higher bits, every element whose bit is
    set counts the elements before it whose bit is not; then those move to the front, in their order.
    """
    size = len(ranks)
    counts = np.zeros(size, dtype=np.int32)  # by value
    values = ranks.astype(np.int32)
    at = np.arange(size, dtype=np.int32)
    moved = np.empty_like(values)
    for bit in reversed(range(max(0, size - 1).bit_length())):
        one = (values >> bit) & 1
        group = (values >> (bit + 1)) << (bit + 1)  # first value of the group, and its first place
        zeros = np.cumsum(1 - one, dtype=np.int32) - (group >> 1)  # groups before it are full: half of them zeros
        ones = one.astype(bool)
        counts[values[ones]] += zeros[ones]
        places = np.where(ones, at - zeros + (1 << bit), group + zeros - 1)
        moved[places] = values
        values, moved = moved, values
    return np.asarray(counts[ranks], dtype=np.int64)
