r"""Servers: units that do not nest in them need patterns, since cards left over in several servers make no unit.

Where every block size divides the next and the largest divides the server, cards that suffice in number can always be
packed, and no rows are needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from solver.data import Data
from solver.milp.model import Model, Row, Term, at_most

MOST_PATTERNS = 2000


@dataclass(frozen=True)
class Filling:
    """One way to fill servers of a group, with the column of how many are."""

    group: str
    blocks: tuple[tuple[int, int], ...]
    """Size and number of the blocks in one server."""
    column: int


def nests(sizes: Sequence[int], per_server: int) -> bool:
    """Whether blocks of these sizes can be packed whenever there are enough cards."""
    ordered = sorted({*sizes, per_server})
    return all(larger % smaller == 0 for smaller, larger in pairwise(ordered))


def patterns(sizes: Sequence[int], room: int) -> list[tuple[int, ...]]:
    """Every way to fill a server of ``room`` cards so that no further block fits: how many of each size.

    ``sizes`` are distinct and fall.
    """
    if not sizes:
        return [()]
    first, rest = sizes[0], sizes[1:]
    if not rest:
        return [(room // first,)]
    found: list[tuple[int, ...]] = []
    for count in range(room // first, -1, -1):
        found.extend((count, *tail) for tail in patterns(rest, room - count * first))
    return [p for p in found if room - sum(n * s for n, s in zip(p, sizes, strict=True)) < min(sizes)]


def rows(
    model: Model,
    data: Data,
    units: Sequence[int],
    bought: Sequence[tuple[str, int, int]],
    fillings: list[Filling],
    extra: dict[str, int] | None = None,
) -> Iterator[Row]:
    r"""Blocks fit into servers: $\sum_{c: size\,s} blocks_c n_c \le \sum_p k_{p,s} y_p$ and $\sum_p y_p \le servers$.

    ``bought`` lists group, column, and cards of each bundle, ``extra`` cards are there besides; columns of the patterns
    are added to ``model``, and to ``fillings``.
    """
    for name, group in data.instance.hardware.groups.items():
        if group.servers == "unlimited" and group.rent == "gpu":
            continue
        mine = [(units[i], c.blocks_on(name)) for i, c in enumerate(data.candidates) if not c.face]
        sizes = sorted({size for _, blocks in mine for size in blocks}, reverse=True)
        if not sizes or nests(sizes, group.per_server):
            continue
        ways = patterns(sizes, group.per_server)[:MOST_PATTERNS]
        most = (group.cards + (extra or {}).get(name, 0)) // group.per_server
        most += sum(int(model.upper[column] * cards) for where, column, cards in bought if where == name)
        columns = [model.column(upper=float(min(10**8, most)), integer=True) for _ in ways]
        for column, way in zip(columns, ways, strict=True):
            blocks = tuple((size, count) for size, count in zip(sizes, way, strict=True) if count)
            fillings.append(Filling(name, blocks, column))
        for k, size in enumerate(sizes):
            needed: list[Term] = [(column, float(blocks[size])) for column, blocks in mine if blocks[size]]
            offered = [(y, -float(way[k])) for y, way in zip(columns, ways, strict=True) if way[k]]
            yield at_most(f"servers[{name},{size}]", [*needed, *offered], 0.0)
        whole = [(y, float(group.per_server)) for y in columns]
        more = [(column, -float(cards)) for where, column, cards in bought if where == name]
        yield at_most(f"servers[{name}]", [*whole, *more], float(group.cards + (extra or {}).get(name, 0)))
