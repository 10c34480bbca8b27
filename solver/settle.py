"""With the units chosen: exact flows, the second at which the backlog is gone, and how far things may shrink.

Everything here is a linear program over the rows of the master problem, with counts as numbers.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from solver import kept_flows
from solver.backend import Session
from solver.data import Data
from solver.formulas import drain as fluid
from solver.limits import Outcome
from solver.milp import demand, flows, warm
from solver.milp.flows import Flows
from solver.milp.master import crossing, mix
from solver.milp.model import Model, Row, Term, at_least
from solver.regimes import DrainPhase, Settled
from solver.settled import EASY, calmest, numbers, read


def _at_capacity(data: Data, counts: Sequence[int], links: bool = True) -> tuple[Session, Outcome, Flows, int]:
    """The program of the most that ``counts`` units sustain, solved."""
    model = Model()
    one = model.constant()
    throughput = model.column()
    unlimited = {} if links else {name: model.column() for name in _resources(data)}
    regime = flows.add(model, data, "", numbers(counts, one), one, unlimited)
    model.rows.extend(flows.rows(data, regime, mix(data, throughput)))
    session = Session(model)
    return session, session.solve([(throughput, 1.0)], True, EASY), regime, throughput


def most(data: Data, counts: Sequence[int], links: bool = True) -> float:
    """The most requests/s that ``counts`` units sustain of the stated mix; links may be left unlimited."""
    _, outcome, _, _ = _at_capacity(data, counts, links)
    return max(0.0, outcome.value or 0.0) / data.tick


def capacity(data: Data, counts: Sequence[int], loaded: Settled | None = None) -> Settled:
    """The most that ``counts`` units sustain of the stated mix; of the flows that do it, those with the fewest bytes
    on links, and of these the ones that keep units busy the least, so that the quicker of two units is preferred.

    Where it is known how state is kept, they find what they find at the load, ``loaded`` if that is known too.
    """
    if data.choice is not None:
        at_load = loaded or kept_flows.load(data, counts)
        found = kept_flows.capacity(data, counts, at_load.held) if at_load and at_load.held else None
        if found is not None:
            return found
    session, best, regime, throughput = _at_capacity(data, counts)
    if not best.found or best.value is None or best.value <= 0.0:
        return Settled(0.0, dict.fromkeys(regime.rates, 0.0), tuple(0.0 for _ in data.routes))
    value = best.value
    session.add(at_least("keep[throughput]", [(throughput, 1.0)], value * (1.0 - 1e-12)))
    best = calmest(session, data, regime, best)
    return replace(read(regime, data, best.values, 1.0 / data.tick), throughput=value / data.tick)


def load(data: Data, counts: Sequence[int]) -> Settled | None:
    """Flows at the stated arrivals where they are not those at capacity, scaled: where requests may be turned away, as
    much value as the units can serve; where units are spared, without those. None where they are, or cannot be found.
    """
    instance = data.instance
    if data.choice is not None:
        return kept_flows.load(data, counts)
    spare = instance.limits.spare.units if instance.limits.spare else 0
    if not instance.drops and not spare:
        return None
    model = Model()
    one = model.constant()
    most = instance.rate * data.tick
    served = {n: model.column(w.minimum_share * most, most) for n, w in instance.workloads.items()}
    left = [max(0, count - spare) for count in counts]
    regime = flows.add(model, data, "", numbers(left, one), one)
    model.rows.extend(flows.rows(data, regime, {name: ((column, 1.0),) for name, column in served.items()}))
    worth = [
        (column, w.value * w.qualifying * w.average / w.rate * data.share(name))
        for (name, w), column in zip(instance.workloads.items(), served.values(), strict=True)
    ]
    session = Session(model)
    best = session.solve(worth, True, EASY)
    if not best.found or best.value is None:
        return None
    session.add(at_least("keep[value]", worth, best.value * (1.0 - 1e-12)))
    best = calmest(session, data, regime, best)
    settled = read(regime, data, best.values, 1.0 / data.tick)
    rates = {n: best.values[column] * data.share(n) / data.tick for n, column in served.items()}
    return replace(settled, throughput=sum(rates.values()), served=rates)


def _resources(data: Data) -> set[str]:
    return {name for route in data.routes for name in route.charges}


def drained(data: Data, counts: Sequence[int], settled: Settled) -> tuple[float, list[DrainPhase]] | None:
    """The first second at which the startup backlog can be gone, and the rates that do it; None: never.

    With one startup time all units serve at the rates of ``settled`` from then on. With several, for each phase that
    could be the last, its length is the column that is minimised.
    """
    starts = sorted({c.startup for c, count in zip(data.candidates, counts, strict=True) if count})
    if data.kept is not None:
        if not any(starts) and data.instance.service.drain is None:
            return 0.0, []
        data = data.cold  # nothing that was kept is there at a start
        settled = capacity(data, counts)
    if len(starts) == 1:
        rate = data.instance.rate
        if settled.throughput < rate <= settled.throughput * (1.0 + 1e-6):  # keeping up, but for rounding
            rate = settled.throughput
        end = fluid.drained_at(rate, settled.throughput, starts[0])
        return (end, [DrainPhase(starts[0], end, settled.rates, settled.routes)]) if end < math.inf else None
    if len(starts) > 1 and (first := _drained_first(data, counts, starts)):
        return first
    for last, start in enumerate(starts):
        longest = starts[last + 1] - start if last + 1 < len(starts) else float("inf")
        found = _drained_in(data, counts, starts[: last + 1], longest)
        if found is None:
            continue
        ready = [n if c.startup <= start else 0 for c, n in zip(data.candidates, counts, strict=True)]
        later = found[0] > start + 1e-9 * max(start, data.tick)
        if later or most(data, ready) >= data.instance.rate:
            return found  # else nothing waits yet, but a backlog builds up until more units are ready
    return None


def _drained_first(data: Data, counts: Sequence[int], starts: Sequence[float]) -> tuple[float, list[DrainPhase]] | None:
    """The drain where the first units that can serve anything are done before any other is ready: what waits has the
    stated mix, so they serve it at their capacity.
    """
    for start, following in itertools.pairwise([*starts, math.inf]):
        ready = [n if c.startup <= start else 0 for c, n in zip(data.candidates, counts, strict=True)]
        settled = capacity(data, ready)
        if settled.throughput <= 0.0 and len(data.instance.workloads) == 1:
            continue
        if settled.throughput <= data.instance.rate:
            return None
        end = fluid.drained_at(data.instance.rate, settled.throughput, start)
        if end > following:
            return None
        return end, [DrainPhase(start, end, settled.rates, settled.routes)] if end > start else []
    return None


def _drained_in(
    data: Data, counts: Sequence[int], starts: Sequence[float], longest: float
) -> tuple[float, list[DrainPhase]] | None:
    """The end of the drain when it lies in the phase that begins with the last of ``starts``; times in ticks inside."""
    model, tick = Model(), data.tick
    one = model.constant()
    length = model.column(upper=longest / tick)
    done: dict[str, list[Term]] = {name: [] for name in data.instance.workloads}
    regimes = []
    for number, start in enumerate(starts):
        final = number == len(starts) - 1
        fixed = 0.0 if final else (starts[number + 1] - start) / tick
        time = length if final else model.column(fixed, fixed)
        ready = [count if c.startup <= start else 0 for c, count in zip(data.candidates, counts, strict=True)]
        regime = flows.add(model, data, f"[{number}]", numbers(ready, time), time)
        served = {name: model.column() for name in data.instance.workloads}
        model.rows.extend(flows.rows(data, regime, {name: ((c, 1.0),) for name, c in served.items()}))
        regimes.append(regime)
        for name in data.instance.workloads:
            done[name].append((served[name], 1.0))
            end: list[Term] = [(one, -data.instance.rate * (start if final else starts[number + 1]))]
            end += [(length, -data.instance.rate * tick)] if final else []
            low = 0.0 if final else -float("inf")
            over = data.instance.rate * (
                (start if final else starts[number + 1]) or tick
            )  # near one, however few arrive
            terms = tuple((column, k / over) for column, k in (*done[name], *end))
            model.rows.append(Row(f"arrived[{name},{number}]", terms, low, 0.0))
    session = Session(model)
    outcome = session.solve([(length, 1.0)], False, EASY)
    if not outcome.found or outcome.value is None:
        return None
    cuts = [*starts, starts[-1] + outcome.value * tick]
    moved = [(column, weight) for regime in regimes for (_, column), weight in crossing(data, regime)]
    if moved:  # of the ways to be done by then, the one with the fewest bytes on links
        session.bound(length, outcome.value, outcome.value * (1.0 + 1e-12))
        least = session.solve(moved, False, EASY)
        outcome = least if least.found else outcome
    phases = []
    for regime, (begin, finish) in zip(regimes, itertools.pairwise(cuts), strict=True):
        rates = read(regime, data, outcome.values, 1.0 / (finish - begin) if finish > begin else 0.0)
        phases.append(DrainPhase(begin, finish, rates.rates, rates.routes))
    return cuts[-1], phases


def margin(data: Data, counts: Sequence[int], what: str) -> float | None:
    """How far something may go while ``counts`` units still keep every promise.

    ``arrivals``: largest multiple of the stated rates. ``efficiency``: smallest multiple of the stated efficiency.
    A resource name (``link[rdma]``): smallest share of its capacity. None: the promises do not hold as it is.
    """
    if data.instance.drops:
        return None  # what is turned away gives way first
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
    regime = flows.add(model, data, "", ready, one, links, warm=data.choice is not None)
    loaded = None if data.choice is None else kept_flows.load(data, counts)
    if data.choice is not None and loaded is not None and loaded.held is not None:
        warm.beside(model, data, loaded.held, data.choice, one, regime, mix(data, throughput))
    else:
        model.rows.extend(flows.rows(data, regime, mix(data, throughput)))
    demand.promises(model, data, ready, throughput, one, arrivals, links)
    spare = data.instance.limits.spare
    if spare is not None:
        fewer = numbers([max(0, count - spare.units) for count in counts], scale)
        left = flows.add(model, data, "[spare]", fewer, one, links)
        asked = mix(data, arrivals, data.instance.rate * data.tick)
        model.rows.extend(flows.rows(data, left, asked))
    outcome = Session(model).solve([(column, 1.0)], what == "arrivals", EASY)
    return outcome.values[column] if outcome.found else None
