"""What is found was there: no more at a place than it keeps, with all faster ones no more than some of them keep."""

import itertools
from collections.abc import Iterator, Sequence

from solver.data import Data
from solver.milp.flows import Flows
from solver.milp.keep import Keeping, beginning, line_of, pairs
from solver.milp.model import Model, Row, Term, at_most
from solver.tiers.data import Kept


def available(model: Model, data: Data, keeping: Keeping, flows: Flows) -> Iterator[Row]:
    r"""What is found was there: at each place $\varphi \le \sum_{p,j} a_p F(T_j)\,y$, and nobody finds it at two: see
    :func:`_together`.
    """
    kept = keeping.kept
    found = keeping.found[flows.name]
    alike = SAME if kept.fine else ALIKE
    for workload, group in pairs(data, flows):
        begun, chain = beginning(data, flows, workload, group), kept.chain(workload, group)
        nested = [_nested(kept, chain[: at + 1]) for at in range(len(chain))]
        for part, kind in itertools.product(kept.of(workload), kept.kinds):
            mine: list[Term] = []
            lines: list[tuple[float, Term]] = []
            for at, number in enumerate(chain):
                place, column = kept.places[number], found[workload, part.number, kind, group, number]
                own = [
                    (kept.found(part, place, kind, kept.ages[way[1]]), (c, kept.covers(part, place, way[0], kind)))
                    for way, c in line_of(keeping, part, group, number).items()
                ]
                own = [(share, term) for share, term in own if term[1] > 0.0]
                label = f"{workload},{part.number},{kind},{group},{place.name}"
                there = [(c, -share * k) for share, (c, k) in own]
                yield at_most(f"there[{label}]", [(column, 1.0), *there], 0.0)
                mine.append((column, 1.0))
                if lines and own and nested[at] and not part.prompt:
                    most = kept.most(part, kind)
                    less = [*((c, -most * k) for c, k in begun), *((c, most - share) for share, (c, _) in own)]
                    yield at_most(f"recent[{label}]", [*mine, *less], 0.0)
                elif lines and own:
                    yield from _together(model, label, mine, [*lines, *own], begun, alike)
                lines += own


def _nested(kept: Kept, chain: Sequence[int]) -> bool:
    r"""Whether the last of some places, in use, may be taken to keep for no shorter than faster ones:
    $\sum \varphi \le \sum_{p,j} F(T_j)\,y$.

    It loses nothing where all are of the same requests and keep what everybody leaves, each for one time: a slower one
    that kept for less would find nothing, and might as well not be used. Not so of a pool of several groups, of HBM
    beside that of another model, behind a place that has later returns alone, or of one copy of several at random.
    """
    *faster, last = (kept.places[number] for number in chain)
    alone = len(kept.instance.models) == 1 or all(place.model is None for place in faster)
    plain = not any(place.each_apart or place.said.admission or place.spread > 1.0 for place in (*faster, last))
    return last.group is not None and alone and plain and not any("second_hit" in place.policies for place in faster)


SAME, ALIKE = 1e-9, 5e-3
"""Relative difference up to which shares found count as one; and where there are many loads."""


def _together(
    model: Model,
    label: str,
    found: Sequence[Term],
    lines: Sequence[tuple[float, Term]],
    begun: Sequence[Term],
    alike: float,
) -> Iterator[Row]:
    r"""Places find together what some of them has: $\sum \varphi \le \sum_l (F_l - F_{l-1}) \sum_a a\,u_{l,a}$.

    $u_{l,a} \le \sum_{F(T_j) \ge F_l} y$ is the load of which places that have the share a have what returned so late,
    each request counted where it is found most: $\sum_a u_{l,a} \le x$.
    """
    levels: list[float] = []
    for share in sorted(share for share, _ in lines if share > 0.0):
        if not levels or share > levels[-1] * (1.0 + alike):  # those that are alike count as the least of them
            levels.append(share)
    terms, before = list(found), 0.0
    for number, level in enumerate(levels):
        late: dict[float, list[Term]] = {}
        for share, (c, k) in lines:
            if share >= level:
                late.setdefault(k, []).append((c, -1.0))
        columns = {k: model.column() for k in late}
        for k, some in late.items():
            yield at_most(f"late[{label},{number},{k:.3g}]", [(columns[k], 1.0), *some], 0.0)
            terms.append((columns[k], k * (before - level)))
        everybody = [*((c, 1.0) for c in columns.values()), *((c, -k) for c, k in begun)]
        yield at_most(f"some[{label},{number}]", everybody, 0.0)
        before = level
    yield at_most(f"recent[{label}]", terms, 0.0)
