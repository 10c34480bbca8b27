r"""What must be served: arrivals for ever, and the startup backlog by its deadline."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from solver.data import Data
from solver.formulas import drain as fluid
from solver.milp import flows
from solver.milp.flows import Flows
from solver.milp.model import Model, Row, Term, at_least, at_most, equal


@dataclass(frozen=True)
class Stretch:
    """A phase of the drain: when it is, its flows, and each workload's completions in it."""

    start: float
    end: float
    flows: Flows
    served: dict[str, int]


SAFE = 10.0
"""Units of which there is no end: so many times as many as would serve everything alone are never needed."""


def most_units(data: Data, index: int) -> int:
    """Units of a candidate that are never too few, where nothing else limits them: keeps programs well scaled."""
    candidate, instance = data.candidates[index], data.instance
    alone = sum(instance.workloads[name].rate * max(need) for name, need in candidate.demand.items())
    deadline, ready = instance.service.drain, max(startups(data), default=0.0)
    haste = 1.0 if deadline is None else deadline / max(deadline - ready, 1e-3 * deadline)
    limits = instance.limits
    asked = max((limit.at_least or limit.exactly or 0 for limit in limits.pools), default=0)
    asked += (limits.units.at_least if limits.units else 0) + (limits.spare.units if limits.spare else 0)
    return min(10**8, math.ceil(SAFE * haste * alone) + 10 + asked)


def sustain(data: Data, throughput: int, arrivals: int) -> Iterator[Row]:
    r"""The plan keeps up with arrivals: $\mu \ge \lambda$."""
    yield at_least("sustain", [(throughput, 1.0), (arrivals, -data.instance.rate * data.tick)], 0.0)


def startups(data: Data) -> list[float]:
    """Distinct seconds at which units become ready, in order."""
    return sorted({candidate.startup for candidate in data.candidates})


def drain(data: Data, throughput: int, arrivals: int) -> Iterator[Row]:
    r"""One startup time: $\mu \ge \lambda + \lambda T_s/(T - T_s)$; with several, see :func:`phases`."""
    deadline, starts = data.instance.service.drain, startups(data)
    if deadline is None or len(starts) > 1 or data.kept is not None:
        return
    needed = fluid.required_rate(data.instance.rate, starts[0], deadline) if starts else math.inf
    if needed == math.inf:  # nothing is ready in time
        yield at_most("drain", [(arrivals, 1.0)], 0.0)
    else:
        yield at_least("drain", [(throughput, 1.0), (arrivals, -needed * data.tick)], 0.0)


def phases(
    model: Model,
    data: Data,
    units: Sequence[tuple[Term, ...]],
    one: int,
    deadline: float,
    links: Mapping[str, int] | None = None,
) -> list[Stretch]:
    """Columns and rows of every phase up to ``deadline``: only units that are ready serve in it."""
    stretches = []
    cuts = [start for start in startups(data) if start < deadline]
    for number, (start, end) in enumerate(itertools.pairwise([*cuts, deadline])):
        ready = tuple(
            terms if candidate.startup <= start else () for candidate, terms in zip(data.candidates, units, strict=True)
        )
        regime = flows.add(model, data, f"[phase {number}]", ready, one, links)
        served = {name: model.column() for name in data.instance.workloads}
        model.rows.extend(flows.rows(data, regime, {name: ((c, 1.0),) for name, c in served.items()}))
        stretches.append(Stretch(start, end, regime, served))
    return stretches


def cumulative(data: Data, stretches: Sequence[Stretch], arrivals: int) -> Iterator[Row]:
    r"""Service never runs ahead of arrivals and has caught up at the deadline.

    $\sum_{j \le k} t_j Y_{w,j} \le \lambda_w T_k$ for each phase end $T_k$, with equality at the deadline T;
    rows are over $\lambda_w T$.
    """
    deadline = data.instance.service.drain or 1.0
    for name in data.instance.workloads:
        done: list[Term] = []
        for number, stretch in enumerate(stretches):
            served = (stretch.end - stretch.start) / data.tick / (data.instance.rate * deadline)
            done.append((stretch.served[name], served))
            terms = [*done, (arrivals, -stretch.end / deadline)]
            last = number == len(stretches) - 1
            yield equal(f"drain[{name}]", terms) if last else at_most(f"arrived[{name},{number}]", terms, 0.0)
        if not stretches:
            yield equal(f"drain[{name}]", [(arrivals, -1.0)])


def promises(
    model: Model,
    data: Data,
    units: Sequence[tuple[Term, ...]],
    throughput: int,
    one: int,
    arrivals: int,
    links: Mapping[str, int] | None = None,
) -> list[Stretch]:
    """Rows of both promises added to ``model``; the phases of the drain where there are several startup times."""
    model.rows.extend(sustain(data, throughput, arrivals))
    model.rows.extend(drain(data, throughput, arrivals))
    deadline = data.instance.service.drain
    if deadline is None or (len(startups(data)) < 2 and data.kept is None):  # what is kept is not there at a start
        return []
    stretches = phases(model, data, units, one, deadline, links)
    model.rows.extend(cumulative(data, stretches, arrivals))
    return stretches
