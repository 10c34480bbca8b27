"""Flows with what is kept for later, units and places chosen: at the load, and at capacity beside it."""

from collections.abc import Sequence
from dataclasses import replace

from solver.backend import Session
from solver.data import Data
from solver.limits import Outcome
from solver.milp import flows, warm
from solver.milp.master import mix
from solver.milp.model import Model, Term, at_least, at_most
from solver.regimes import Held, Settled
from solver.settled import EASY, calmest, numbers, read


def load(data: Data, counts: Sequence[int]) -> Settled | None:
    """Flows at the stated arrivals, as much of them as the units can serve; of those, the ones that leave the most
    throughput at capacity, then those that find the most bytes of state, as near to the GPUs as can be. None where they
    cannot be found.
    """
    instance = data.instance
    model = Model()
    one = model.constant()
    most = instance.rate * data.tick
    served: dict[str, tuple[Term, ...]]
    if instance.drops:
        columns = {n: model.column(w.minimum_share * most, most) for n, w in instance.workloads.items()}
        served = {name: ((column, 1.0),) for name, column in columns.items()}
        worth = [
            (c, w.value * w.qualifying * w.average / w.rate * data.share(n))
            for (n, w), c in zip(instance.workloads.items(), columns.values(), strict=True)
        ]
    else:
        part = model.column(0.0, 1.0)  # of the arrivals, so that few of them are not lost in rounding
        columns = dict.fromkeys(instance.workloads, part)
        served = dict.fromkeys(instance.workloads, ((part, most),))
        worth = [(part, 1.0)]
    throughput = model.column()
    full = flows.add(model, data, "", numbers(counts, one), one, warm=True)
    found = warm.at_load(model, data, numbers(counts, one), one, None, served, data.choice)
    warm.at_capacity(model, data, found, full, mix(data, throughput))
    session = Session(model)
    best = session.solve(worth, True, EASY)
    if not best.found or best.value is None:
        return None
    session.add(at_least("keep[value]", worth, best.value * (1.0 - 1e-12)))
    most_of_it = session.solve([(throughput, 1.0)], True, EASY)
    if most_of_it.found and most_of_it.value is not None:  # what is kept leaves room for what is promised at capacity
        best = most_of_it
        session.add(at_least("keep[throughput]", [(throughput, 1.0)], most_of_it.value * (1.0 - 1e-9)))
    best = _nearest(session, data, found, best)
    best = calmest(session, data, found.load, best)
    settled = read(found.load, data, best.values, 1.0 / data.tick)
    unit = 1.0 if instance.drops else most
    rates = {n: best.values[column] * unit * data.share(n) / data.tick for n, column in columns.items()}
    held = warm.held(data, found, best.values)
    return replace(settled, throughput=sum(rates.values()), served=rates, held=held)


def _nearest(session: Session, data: Data, found: warm.Warm, best: Outcome) -> Outcome:
    """The most bytes found, then the nearest to the GPUs."""
    sizes = {(part.workload, part.number): part.hit for part in found.keeping.kept.parts}
    heaviest = max(sizes.values(), default=1.0)
    columns = [
        (c, sizes[w, k] / heaviest * data.share(w), n)
        for (w, k, _, _, n), c in found.keeping.found[found.load.name].items()
    ]
    for terms, most in (
        ([(c, size) for c, size, _ in columns], True),
        ([(c, size * (1.0 + n)) for c, size, n in columns], False),
    ):
        better = session.solve(terms, most, EASY) if terms else best
        if not better.found or better.value is None:
            break
        best = better
        room = 1e-9 * max(abs(better.value), 1e-9)
        session.add(
            at_least("keep", terms, better.value - room) if most else at_most("keep", terms, better.value + room)
        )
    return best


def capacity(data: Data, counts: Sequence[int], held: Held) -> Settled | None:
    """The most that ``counts`` units sustain of the stated mix, when they find no more than at the load; None where
    that is nothing.
    """
    model = Model()
    one = model.constant()
    throughput = model.column()
    if data.choice is None:
        return None
    regime = flows.add(model, data, "", numbers(counts, one), one, warm=True)
    served = mix(data, throughput)
    keeping, regime = warm.beside(model, data, held, data.choice, one, regime, served)
    session = Session(model)
    best = session.solve([(throughput, 1.0)], True, EASY)
    if not best.found or best.value is None or best.value <= 0.0:
        return None
    value = best.value
    session.add(at_least("keep[throughput]", [(throughput, 1.0)], value * (1.0 - 1e-12)))
    best = calmest(session, data, regime, best)
    settled = replace(read(regime, data, best.values, 1.0 / data.tick), throughput=value / data.tick)
    found = warm.found_at(data, keeping, regime.name, best.values)
    paused = warm.paused(data, keeping, regime.name, best.values)
    return replace(settled, held=replace(held, found=found, paused=paused))
