r"""The master problem: counts $n_c$, flows, and the goals that rank plans.

Throughput $\mu$ is the largest multiple of the stated mix: workload w completes $\mu \lambda_w / \lambda$ requests/s.
"""

from dataclasses import dataclass

from solver.data import Data
from solver.milp import demand, flows, pools
from solver.milp.demand import Stretch
from solver.milp.flows import Flows
from solver.milp.model import Model, Term

MOST_BOUGHT, MOST_WIDER = 10**6, 1e6
"""Cards that may be added to a group, and how many times as wide a link may become, when a plan needs more."""


@dataclass(frozen=True)
class Goal:
    """Something to make small or large; goals are met one after the other."""

    name: str
    terms: tuple[Term, ...]
    maximise: bool = False
    unit: float = 1.0
    """What one of ``terms`` is in the unit of the goal."""


@dataclass(frozen=True)
class Master:
    """The program with its columns."""

    data: Data
    model: Model
    units: tuple[int, ...]
    throughput: int
    arrivals: int
    capacity: Flows
    stretches: tuple[Stretch, ...]
    bought: dict[str, int]
    """Column of cards to be added to a group."""
    wider: int
    """Column of the multiple of a link's bandwidth."""

    @property
    def by_throughput(self) -> Goal:
        """Most requests/s of the stated mix."""
        return Goal("throughput", ((self.throughput, 1.0),), maximise=True, unit=1.0 / self.data.tick)

    @property
    def by_cards(self) -> Goal:
        """Fewest cards."""
        candidates = self.data.candidates
        return Goal("gpus", tuple((n, float(c.cards)) for n, c in zip(self.units, candidates, strict=True)))

    @property
    def by_cost(self) -> Goal:
        """Least money per hour; constant when every card is paid for, used or not."""
        used = self.data.instance.billing.pay == "used"
        prices = [(n, 3600.0 * c.price) for n, c in zip(self.units, self.data.candidates, strict=True)]
        return Goal("cost", tuple(prices) if used else ())

    @property
    def by_bytes(self) -> Goal:
        """Fewest bytes on links at capacity, told per second and over those of the heaviest handoff inside."""
        terms = tuple((column, weight) for (_, column), weight in crossing(self.data, self.capacity))
        return Goal("bytes", terms, unit=heaviest(self.data) / self.data.tick)

    @property
    def by_order(self) -> Goal:
        """The fixed order of candidates: schemes as allowed, groups as listed."""
        return Goal("order", tuple((n, 1.0 + rank) for rank, n in enumerate(self.units)))


def goals(master: Master) -> list[Goal]:
    """The stated objective, then the tie order: throughput, cards, bytes, fixed order.

    All arrivals are served, so the effective cost is least when the cost is.
    """
    first = {
        "effective_cost": master.by_cost,
        "cost": master.by_cost,
        "throughput": master.by_throughput,
        "gpus": master.by_cards,
    }[master.data.instance.objective]
    ties = [master.by_throughput, master.by_cards, master.by_bytes, master.by_order]
    return [first, *(goal for goal in ties if goal.name != first.name)]


def build(
    data: Data,
    promises: bool = True,
    extra: dict[str, int] | None = None,
    buy: str | None = None,
    widen: str | None = None,
) -> Master:
    """The master problem; without ``promises`` the sustain and drain rows are left out.

    ``extra`` cards may be added to groups, to see what they bring; ``buy`` names a group to which cards are added as
    the solver finds necessary, ``widen`` a link whose bandwidth grows likewise.
    """
    model = Model()
    one, arrivals = model.constant(), model.constant()
    units = tuple(
        model.column(upper=float(_most(data, index, extra) + (MOST_BOUGHT if c.group == buy else 0)), integer=True)
        for index, c in enumerate(data.candidates)
    )
    bought = {buy: model.column(upper=float(MOST_BOUGHT), integer=True)} if buy else {}
    throughput = model.column()
    ready = tuple(((column, 1.0),) for column in units)
    wider = model.column(1.0, MOST_WIDER) if widen else one
    links = {f"link[{name}]": wider for name, c in data.topology.channels.items() if c.link == widen}
    capacity = flows.add(model, data, "", ready, one, links)
    model.rows.extend(flows.rows(data, capacity, mix(data, throughput)))
    model.rows.extend(pools.cards(data, units, extra, bought))
    model.rows.extend(pools.limits(data, units))
    stretches = demand.promises(model, data, ready, throughput, one, arrivals, links) if promises else []
    return Master(data, model, units, throughput, arrivals, capacity, tuple(stretches), bought, wider)


def _most(data: Data, index: int, extra: dict[str, int] | None) -> int:
    candidate = data.candidates[index]
    cards = data.instance.hardware.groups[candidate.group].cards + (extra or {}).get(candidate.group, 0)
    return cards // candidate.cards


def mix(data: Data, throughput: int) -> dict[str, tuple[Term, ...]]:
    r"""Completions of each workload as its share of the throughput: $\mu \lambda_w / \lambda$, over that share."""
    return dict.fromkeys(data.instance.workloads, ((throughput, 1.0),))


def heaviest(data: Data) -> float:
    """Bytes that the heaviest route puts on links for a request of the mix; 1 when none does."""
    return max((route.crossing * data.share(route.workload) for route in data.routes), default=0.0) or 1.0


def crossing(data: Data, regime: Flows) -> list[tuple[tuple[int, int], float]]:
    """Route, its column in a regime, and the bytes that one of it puts on links, over those of the heaviest."""
    most, routes = heaviest(data), data.routes
    return [((r, c), routes[r].crossing * data.share(routes[r].workload) / most) for r, c in regime.routes.items()]
