r"""Pools that share the work of a stage, as one queue: its capacity in work, and the work of a request.

The most that the pools of a stage sustain of the stated mix is a linear program. Its prices say what a unit-second of
each pool is worth, and so what a request of each workload weighs, however it is split over unlike pools. Pools and
workloads that are not full then are another queue, found in the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.plan import Pool
from solver.backend import priced
from solver.milp.model import Model, at_most, equal

SECONDS = 10.0
"""For a program of a few rows."""
FREE = 1e-9
"""Prices below this are none."""


@dataclass(frozen=True)
class Members:
    """A pool, and what a request of each workload takes on it: unit-seconds of each of its resources."""

    pool: Pool
    seconds: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class System:
    """Pools of a stage that serve from one queue."""

    stage: str
    pools: tuple[str, ...]
    units: int
    """Unit-seconds served in a second: the capacity."""
    weights: Mapping[str, float]
    """Unit-seconds of a request; where pools are unlike, of a unit that is their mean."""
    work: float
    """Unit-seconds that arrive in a second at the rates that are planned for."""
    mean_work: float
    """Unit-seconds of a request of that mix."""


def systems(stage: str, members: Sequence[Members], rates: Mapping[str, float]) -> list[System]:
    """The queues of a stage for requests that arrive at ``rates``, the fullest first."""
    found = []
    left = {name: rate for name, rate in rates.items() if rate > 0.0 and any(name in one.seconds for one in members)}
    while left:
        members = [one for one in members if any(name in left for name in one.seconds)]
        full, taken = _fullest(members, left)
        units = sum(one.pool.units for one in full)
        weights = {name: share * units for name, share in taken.items()}
        work = sum(left[name] * weight for name, weight in weights.items())
        mean = work / sum(left[name] for name in weights)
        found.append(System(stage, tuple(one.pool.name for one in full), units, weights, work, mean))
        members = [one for one in members if one not in full]
        left = {name: rate for name, rate in left.items() if name not in taken}
    return found


def _fullest(members: Sequence[Members], rates: Mapping[str, float]) -> tuple[list[Members], dict[str, float]]:
    """Pools that are full when all pools give their most of the mix, and the share of them that a request/s takes."""
    loads = {
        (index, name): [rates[name] * need / one.pool.units for need in one.seconds[name]]
        for index, one in enumerate(members)
        for name in rates
        if name in one.seconds
    }
    tick = min(max(load) for load in loads.values())  # keeps coefficients near one
    model = Model()
    multiple = model.column()
    shares = {pair: model.column() for pair in loads}
    for name in rates:
        terms = [(column, 1.0) for (_, served), column in shares.items() if served == name]
        model.rows.append(equal(f"serve[{name}]", [*terms, (multiple, -1.0)]))
    owners = []
    for index, one in enumerate(members):
        mine = {name: loads[index, name] for i, name in loads if i == index}
        for resource in range(len(next(iter(one.seconds.values())))):
            terms = [(shares[index, name], load[resource] / tick) for name, load in mine.items()]
            model.rows.append(at_most(f"capacity[{one.pool.name},{resource}]", terms, 1.0))
            owners.append(index)
    solved = priced(model, [(multiple, 1.0)], True, SECONDS)
    if solved is None:
        raise RuntimeError("pools that serve every workload have a largest multiple of the mix")
    worth = [abs(price) for price in solved.prices]
    total = sum(worth[len(rates) :])
    paid = dict.fromkeys(range(len(members)), 0.0)
    for owner, price in zip(owners, worth[len(rates) :], strict=True):
        paid[owner] += price
    full = [one for index, one in enumerate(members) if paid[index] > FREE * total]
    taken = {
        name: worth[row] / rates[name] * tick / solved.value for row, name in enumerate(rates) if worth[row] > FREE
    }
    return full, taken
