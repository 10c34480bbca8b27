r"""Whole units: how many cards they take, and the bounds that an instance sets on pools."""

from collections.abc import Iterator, Sequence

from models.workload import PoolLimit
from solver.candidates import Candidate
from solver.data import Data
from solver.milp.model import INFINITY, Row, Term, at_most


def cards(
    data: Data, units: Sequence[int], extra: dict[str, int] | None = None, bought: dict[str, int] | None = None
) -> Iterator[Row]:
    r"""A plan never uses cards that do not exist: $\sum_c cards_{c,g}\, n_c \le N_g$ (plus the column ``bought``)."""
    for name, group in data.instance.hardware.groups.items():
        terms = [
            (units[index], float(candidate.cards))
            for index, candidate in enumerate(data.candidates)
            if candidate.group == name
        ]
        if bought and name in bought:
            terms.append((bought[name], -1.0))
        if terms:
            yield at_most(f"cards[{name}]", terms, float(group.cards + (extra or {}).get(name, 0)))


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
    return (
        limit.stage in (None, candidate.stage)
        and limit.group in (None, candidate.group)
        and limit.model in (None, candidate.model)
        and (limit.scheme is None or limit.scheme in candidate.schemes)
    )
