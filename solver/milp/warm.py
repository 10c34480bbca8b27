"""Regimes that find what was kept: the stated load, which the places keep, and capacity, which finds no more than that.

Drains and spare units stay cold: after a start, or a failure, nothing is promised to be there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solver.data import Data
from solver.milp import flows, keep, recent, room
from solver.milp.flows import Flows
from solver.milp.keep import Keeping
from solver.milp.model import Model, Term, at_most
from solver.regimes import Held
from solver.tiers.choice import Choice, Chose

LOAD = "[load]"


@dataclass(frozen=True)
class Warm:
    """Kept state with the flows at load."""

    keeping: Keeping
    load: Flows
    alive: Mapping[int, Sequence[Term]]
    """Place -> bytes alive, with headroom."""


def at_load(
    model: Model,
    data: Data,
    units: Sequence[tuple[Term, ...]],
    one: int,
    links: Mapping[str, int] | None,
    served: Mapping[str, tuple[Term, ...]],
    choice: Choice | None = None,
) -> Warm:
    """Columns and rows of the load; ``served`` gives the terms of what is served of each workload."""
    keeping = keep.columns(model, data, choice)
    load = flows.add(model, data, LOAD, units, one, links, warm=True)
    keep.load(model, data, keeping, load, data.instance.rate * data.tick)
    keep.regime(model, data, keeping, load)
    model.rows.extend(recent.available(model, data, keeping, load))
    room.written(model, data, keeping, load)
    alive = {number: room.alive(model, data, keeping, number, load) for number in keeping.pieces}
    model.rows.extend(room.rows(data, keeping, load, alive))
    load = room.charged(data, keeping, load)
    model.rows.extend(flows.rows(data, load, served))
    return Warm(keeping, load, alive)


def at_capacity(model: Model, data: Data, warm: Warm, capacity: Flows, served: Mapping[str, tuple[Term, ...]]) -> Flows:
    """Rows of a regime that finds no more than the load does."""
    keep.regime(model, data, warm.keeping, capacity)
    model.rows.extend(keep.within(data, warm.keeping, capacity, warm.load.name))
    model.rows.extend(room.rows(data, warm.keeping, capacity, warm.alive))
    capacity = room.charged(data, warm.keeping, capacity)
    model.rows.extend(flows.rows(data, capacity, served))
    return capacity


def beside(
    model: Model,
    data: Data,
    held: Held,
    choice: Choice,
    one: int,
    capacity: Flows,
    served: Mapping[str, tuple[Term, ...]],
) -> tuple[Keeping, Flows]:
    """The same where the load is known: what it finds, writes and keeps alive are numbers."""
    keeping = keep.columns(model, data, choice)
    for (workload, group, number), rate in held.written.items():
        share = rate / room.size(keeping, number)
        keeping.written[workload, group, number] = model.column(share, share)
    keep.regime(model, data, keeping, capacity)
    grouped: dict[tuple[str, int, str, int], list[Term]] = {}
    for (workload, part, _, group, number), column in keeping.found[capacity.name].items():
        grouped.setdefault((workload, part, group, number), []).append((column, 1.0))
    for key, terms in grouped.items():
        most = held.found.get(key, 0.0) / keep.scale(data, key[0])
        model.rows.append(at_most(f"within[{key}]{capacity.name}", [*terms, (one, -most)], 0.0))
    alive = {number: [(one, size)] for number, size in held.alive.items()}
    model.rows.extend(room.rows(data, keeping, capacity, {n: alive.get(n, []) for n in keeping.pieces}))
    capacity = room.charged(data, keeping, capacity)
    model.rows.extend(flows.rows(data, capacity, served))
    return keeping, capacity


def choice(warm: Warm, values: Sequence[float]) -> Choice:
    """What was chosen for each place."""
    chose = []
    for number, column in warm.keeping.pieces.items():
        ways = warm.keeping.ways[number]
        way = next((way for way, c in ways.items() if values[c] > 0.5), None)
        chose.append(Chose(round(values[column]), way))
    return Choice(tuple(chose))


def held(data: Data, warm: Warm, values: Sequence[float]) -> Held:
    """What the load finds, keeps and writes, in requests/s and bytes."""
    keeping, name = warm.keeping, warm.load.name
    values = keep.exact(keeping, values, {one: keep.scale(data, one) for one in data.instance.workloads})
    ages: dict[tuple[str, int, str, int], Mapping[tuple[str, int], float]] = {}
    for one in keeping.kept.parts:
        for (workload, own, group, number), line in keeping.held.items():
            if workload == one.workload and own in (None, one.number):
                unit = keep.scale(data, workload)
                mine: dict[tuple[str, int], float] = {
                    (w[0], w[1]): values[c] * unit for w, c in line.items() if values[c] > 0.0
                }
                ages[workload, one.number, group, number] = mine
    return Held(
        found=found_at(data, keeping, name, values),
        written={key: max(0.0, values[c]) * room.size(keeping, key[2]) for key, c in keeping.written.items()},
        alive={n: max(0.0, sum(k * values[c] for c, k in terms)) for n, terms in warm.alive.items()},
        ages=ages,
        paused=paused(data, keeping, name, values),
    )


CRUMB = 1e-9
"""Of the load of a workload: less is what rounding leaves."""


def found_at(
    data: Data, keeping: Keeping, name: str, values: Sequence[float]
) -> dict[tuple[str, int, str, int], float]:
    """Requests/s that find parts of their prompt in a regime."""
    found: dict[tuple[str, int, str, int], float] = {}
    for (workload, part, _, group, number), column in keeping.found[name].items():
        key = (workload, part, group, number)
        found[key] = found.get(key, 0.0) + max(0.0, values[column]) * keep.scale(data, workload)
    return {key: _swept(data, key[0], rate) for key, rate in found.items()}


def _swept(data: Data, workload: str, rate: float) -> float:
    return rate if rate > CRUMB * data.instance.workloads[workload].rate else 0.0


def paused(data: Data, keeping: Keeping, name: str, values: Sequence[float]) -> dict[tuple[str, str, int], float]:
    """Pauses/s by workload, group and place."""
    return {key: _swept(data, key[0], values[c] * keep.scale(data, key[0])) for key, c in keeping.paused[name].items()}


NEARER = 0.01
"""What finding state a place nearer to the GPUs is worth, of finding it."""


def found(data: Data, warm: Warm) -> list[Term]:
    """State found at the load, in that of the heaviest part, a little more where it is near."""
    kept = warm.keeping.kept
    sizes = {(part.workload, part.number): part.hit for part in kept.parts}
    heaviest, count = max(sizes.values(), default=1.0), len(kept.places)
    return [
        (column, sizes[workload, part] / heaviest * data.share(workload) * (1.0 - NEARER * number / count))
        for (workload, part, _, _, number), column in warm.keeping.found[warm.load.name].items()
    ]
