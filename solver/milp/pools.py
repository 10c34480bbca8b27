r"""Whole units: how many cards they take, and the bounds that an instance sets on pools."""

from collections.abc import Iterator, Sequence

from models.workload import PoolLimit
from solver.candidate import Candidate
from solver.data import Data
from solver.milp.model import INFINITY, Model, Row, Term, at_least, at_most


def cards(
    data: Data,
    units: Sequence[int],
    extra: dict[str, int] | None = None,
    bought: Sequence[tuple[str, int, int]] = (),
) -> Iterator[Row]:
    r"""A plan never uses cards that do not exist: $\sum_c cards_{c,g}\, n_c \le N_g + \sum_b cards_{b,g}\, n_b$.

    ``bought`` lists group, column, and cards of one of what may be bought. GPUs rented one by one have no row.
    """
    for name, group in data.instance.hardware.groups.items():
        if group.servers == "unlimited" and group.rent == "gpu":
            continue
        terms = [
            (units[index], float(candidate.on(name)))
            for index, candidate in enumerate(data.candidates)
            if candidate.on(name)
        ]
        if terms:
            more = [(column, -float(each)) for where, column, each in bought if where == name]
            yield at_most(f"cards[{name}]", [*terms, *more], float(group.cards + (extra or {}).get(name, 0)))


def present(data: Data, model: Model, units: Sequence[int]) -> tuple[list[int], list[Row]]:
    r"""Columns $z_c$ that are 1 where a pool has units, with rows $n_c \le U z_c$ and $n_c \ge k z_c$.

    Only where a limit speaks of each pool: at least so many units, or so many to spare.
    """
    limits = data.instance.limits
    least = max(limits.units.at_least if limits.units else 1, limits.spare.units if limits.spare else 1)
    columns, rows = [], []
    for index, candidate in enumerate(data.candidates):
        there = model.column(0.0, 1.0, integer=True)
        columns.append(there)
        most = model.upper[units[index]]
        rows.append(at_most(f"present[{candidate.name}]", [(units[index], 1.0), (there, -most)], 0.0))
        rows.append(at_least(f"units[{candidate.name}]", [(units[index], 1.0), (there, -float(least))], 0.0))
    return columns, rows


def limits(data: Data, units: Sequence[int]) -> Iterator[Row]:
    r"""Pools fixed or bounded: $l \le \sum_{c\,named} n_c \le u$."""
    for index, limit in enumerate(data.instance.limits.pools):
        terms: list[Term] = [
            (units[number], 1.0) for number, candidate in enumerate(data.candidates) if matches(limit, candidate)
        ]
        low = limit.exactly if limit.exactly is not None else limit.at_least
        high = limit.exactly if limit.exactly is not None else limit.at_most
        yield Row(f"pools[{index}]", tuple(terms), float(low or 0), INFINITY if high is None else float(high))


def matches(limit: PoolLimit, candidate: Candidate) -> bool:
    """Whether a bound speaks of this candidate."""
    return not candidate.face and (
        limit.model in (None, candidate.model)
        and (limit.scheme is None or limit.scheme in candidate.schemes)
        and any(
            limit.stage in (None, candidate.stage, stage) and limit.group in (None, group)
            for stage, group in candidate.pools
        )
    )
