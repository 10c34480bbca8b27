"""Whether units fit into servers: exact, for the few sizes that units have."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

MOST_STATES = 20_000
MOST_BLOCKS = 4000
"""Blocks up to which they are packed one by one; of more, a plan says how its servers are filled."""


def packs(blocks: Mapping[int, int], servers: int, per_server: int) -> bool:
    """Whether blocks, so many of each size, fit into servers."""
    if any(size > per_server for size in blocks):
        return False
    ordered = sorted({*blocks, per_server})
    if all(larger % smaller == 0 for smaller, larger in pairwise(ordered)):  # then nothing is ever left over
        return sum(size * count for size, count in blocks.items()) <= servers * per_server
    if sum(blocks.values()) > MOST_BLOCKS:
        return False
    sizes = [size for size, count in blocks.items() for _ in range(count)]
    return _first_fit(sizes, servers, per_server) or _exactly(sizes, servers, per_server)


def _first_fit(sizes: Sequence[int], servers: int, per_server: int) -> bool:
    """Largest first, into the first server with room: right whenever it says yes."""
    room: list[int] = []
    for size in sorted(sizes, reverse=True):
        place = next((i for i, left in enumerate(room) if left >= size), None)
        if place is None:
            if len(room) == servers:
                return False
            room.append(per_server)
            place = len(room) - 1
        room[place] -= size
    return True


def _exactly(sizes: Sequence[int], servers: int, per_server: int) -> bool:
    """The fewest servers by filling one after the other in every way that leaves no room for another block."""
    count = Counter(sizes)
    kinds = tuple(sorted(count, reverse=True))
    if len(sizes) > 400:
        return False

    def fills(left: tuple[int, ...], room: int, k: int) -> list[tuple[int, ...]]:
        if k == len(kinds):
            return [()]
        most = min(left[k], room // kinds[k])
        found = []
        for taken in range(most, -1, -1):
            found += [(taken, *rest) for rest in fills(left, room - taken * kinds[k], k + 1)]
        return found

    @cache
    def fewest(left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        best = len(sizes)
        for way in fills(left, per_server, 0):
            room = per_server - sum(n * s for n, s in zip(way, kinds, strict=True))
            rest = tuple(a - b for a, b in zip(left, way, strict=True))
            full = all(not n or s > room for n, s in zip(rest, kinds, strict=True))
            if any(way) and full and fewest.cache_info().currsize < MOST_STATES:
                best = min(best, 1 + fewest(rest))
        return best

    return fewest(tuple(count[kind] for kind in kinds)) <= servers
