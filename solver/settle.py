"""With the units chosen: exact flows, the second at which the backlog is gone, and how far things may shrink.

Everything here is a linear program over the rows of the master problem, with counts as numbers.
"""

import math
from collections.abc import Sequence

from solver.backend import Limits, Session
from solver.data import Data
from solver.formulas import drain as fluid
from solver.milp import demand, flows
from solver.milp.flows import Flows
from solver.milp.master import mix
from solver.milp.model import Model, Row, Term, at_least, at_most
from solver.regimes import DrainPhase, Settled

EASY = Limits(seconds=30.0)


def numbers(counts: Sequence[int], column: int) -> tuple[tuple[Term, ...], ...]:
    """Counts as multiples of a column; candidates without units are not ready."""
    return tuple(((column, float(count)),) if count else () for count in counts)


def _read(regime: Flows, data: Data, values: Sequence[float], throughput: float) -> Settled:
    return Settled(
        throughput,
        {key: max(0.0, values[column]) for key, column in regime.rates.items()},
        tuple(max(0.0, values[regime.routes[index]]) for index in range(len(data.routes))),
    )


def capacity(data: Data, counts: Sequence[int], links: bool = True) -> Settled:
    """The most that ``counts`` units sustain of the stated mix; of the flows that do it, those with the fewest bytes
    on links, and of these the ones that keep units busy the least, so that the quicker of two units is preferred.
    """
    model = Model()
    one = model.constant()
    throughput = model.column()
    unlimited = {} if links else {name: model.column() for name in _resources(data)}
    regime = flows.add(model, data, "", numbers(counts, one), one, unlimited)
    model.rows.extend(flows.rows(data, regime, mix(data, throughput)))
    session = Session(model)
    most = session.solve([(throughput, 1.0)], True, EASY)
    if not most.found or most.value is None:
        return Settled(0.0, {}, tuple(0.0 for _ in data.routes))
    if not links:
        return _read(regime, data, most.values, most.value)
    crossing = [(regime.routes[r], route.crossing / 1e9) for r, route in enumerate(data.routes)]
    busy = [(column, max(data.candidates[i].demand[name])) for (name, i), column in regime.rates.items()]
    session.add(at_least("keep[throughput]", [(throughput, 1.0)], most.value * (1.0 - 1e-12)))
    best = most
    for terms in (crossing, busy):
        least = session.solve(terms, False, EASY) if terms else best
        if not least.found or least.value is None:
            break
        best = least
        session.add(at_most("keep", terms, least.value * (1.0 + 1e-12)))
    return _read(regime, data, best.values, most.value)


def _resources(data: Data) -> set[str]:
    return {name for route in data.routes for name in route.charges}


def drained(data: Data, counts: Sequence[int], most: Settled) -> tuple[float, list[DrainPhase]] | None:
    """The first second at which the startup backlog can be gone, and the rates that do it; None: never.

    With one startup time all units serve at the rates of ``most`` from then on. With several, for each phase that
    could be the last, its length is the column that is minimised.
    """
    starts = sorted({c.startup for c, count in zip(data.candidates, counts, strict=True) if count})
    if len(starts) == 1:
        end = fluid.drained_at(data.instance.rate, most.throughput, starts[0])
        return (end, [DrainPhase(starts[0], end, most.rates, most.routes)]) if end < math.inf else None
    for last, start in enumerate(starts):
        longest = starts[last + 1] - start if last + 1 < len(starts) else float("inf")
        found = _drained_in(data, counts, starts[: last + 1], longest)
        if found is None:
            continue
        ready = [n if c.startup <= start else 0 for c, n in zip(data.candidates, counts, strict=True)]
        if found[0] > start or capacity(data, ready).throughput >= data.instance.rate:
            return found  # else nothing waits yet, but a backlog builds up until more units are ready
    return None


def _drained_in(
    data: Data, counts: Sequence[int], starts: Sequence[float], longest: float
) -> tuple[float, list[DrainPhase]] | None:
    model = Model()
    one = model.constant()
    length = model.column(upper=longest)
    done: dict[str, list[Term]] = {name: [] for name in data.instance.workloads}
    regimes = []
    for number, start in enumerate(starts):
        final = number == len(starts) - 1
        time = length if final else model.column(starts[number + 1] - start, starts[number + 1] - start)
        ready = [count if c.startup <= start else 0 for c, count in zip(data.candidates, counts, strict=True)]
        regime = flows.add(model, data, f"[{number}]", numbers(ready, time), time)
        served = {name: model.column() for name in data.instance.workloads}
        model.rows.extend(flows.rows(data, regime, {name: ((c, 1.0),) for name, c in served.items()}))
        regimes.append(regime)
        for name, workload in data.instance.workloads.items():
            done[name].append((served[name], 1.0))
            end: list[Term] = [(one, -workload.rate * (start if final else starts[number + 1]))]
            end += [(length, -workload.rate)] if final else []
            low = 0.0 if final else -float("inf")
            model.rows.append(Row(f"arrived[{name},{number}]", (*done[name], *end), low, 0.0))
    session = Session(model)
    outcome = session.solve([(length, 1.0)], False, EASY)
    if not outcome.found or outcome.value is None:
        return None
    cuts = [*starts, starts[-1] + outcome.value]
    crossing = [(r.routes[i], route.crossing / 1e9) for r in regimes for i, route in enumerate(data.routes)]
    if crossing:  # of the ways to be done by then, the one with the fewest bytes on links
        session.bound(length, outcome.value, outcome.value * (1.0 + 1e-12))
        least = session.solve(crossing, False, EASY)
        outcome = least if least.found else outcome
    phases = []
    for regime, begin, finish in zip(regimes, cuts, cuts[1:], strict=False):
        scale = 1.0 / (finish - begin) if finish > begin else 0.0
        read = _read(regime, data, outcome.values, 0.0)
        rates = {key: amount * scale for key, amount in read.rates.items()}
        phases.append(DrainPhase(begin, finish, rates, tuple(amount * scale for amount in read.routes)))
    return cuts[-1], phases


def margin(data: Data, counts: Sequence[int], what: str) -> float | None:
    """How far something may go while ``counts`` units still keep every promise.

    ``arrivals``: largest multiple of the stated rates. ``efficiency``: smallest multiple of the stated efficiency.
    A resource name (``link[rdma]``): smallest share of its capacity. None: the promises do not hold as it is.
    """
    model = Model()
    one, arrivals = model.constant(), model.constant()
    scale = model.constant()
    links: dict[str, int] = {}
    column = {"arrivals": arrivals, "efficiency": scale}.get(what)
    if column is None:
        column = model.column()
        links = {what: column}
    model.lower[column], model.upper[column] = 0.0, float("inf")
    throughput = model.column()
    ready = numbers(counts, scale)
    regime = flows.add(model, data, "", ready, one, links)
    model.rows.extend(flows.rows(data, regime, mix(data, throughput)))
    model.rows.extend(demand.sustain(data, throughput, arrivals))
    model.rows.extend(demand.drain(data, throughput, arrivals))
    deadline = data.instance.service.drain
    if deadline is not None and len(demand.startups(data)) > 1:
        stretches = demand.phases(model, data, ready, one, deadline, links)
        model.rows.extend(demand.cumulative(data, stretches, arrivals))
    outcome = Session(model).solve([(column, 1.0)], what == "arrivals", EASY)
    return outcome.values[column] if outcome.found else None
