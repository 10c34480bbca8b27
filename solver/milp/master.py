r"""The master problem: counts $n_c$, flows, and the goals that rank plans.

Throughput $\mu$ is the largest multiple of the stated mix: workload w completes $\mu \lambda_w / \lambda$ requests/s.
Where requests may be turned away, a regime of its own says what is served of the arrivals.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from solver.data import Data
from solver.milp import demand, flows, loads, pools, purchases, servers, warm
from solver.milp.demand import Stretch
from solver.milp.flows import Flows
from solver.milp.model import Model, Term, equal
from solver.milp.purchases import Purchases
from solver.milp.servers import Filling
from solver.milp.warm import Warm
from solver.tiers.choice import Choice

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
    over: tuple[Term, ...] = ()
    """What ``terms`` are divided by, where the goal is a ratio."""
    least: float = 0.0
    """What ``over`` is at least."""


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
    purchases: Purchases
    costs: tuple[Term, ...]
    served: dict[str, int] = field(default_factory=dict)
    """Column of what is served of a workload's arrivals, over its share and per tick, where some may be turned away."""
    fillings: tuple[Filling, ...] = ()
    """Ways to fill servers, where units do not nest in them."""
    kept: Warm | None = None
    """State kept for later."""

    @property
    def by_throughput(self) -> Goal:
        """Most requests/s of the stated mix."""
        return Goal("throughput", ((self.throughput, 1.0),), maximise=True, unit=1.0 / self.data.tick)

    @property
    def by_headroom(self) -> Goal:
        """Largest multiple of the stated arrivals for which every promise holds."""
        return Goal("headroom", ((self.arrivals, 1.0),), maximise=True)

    @property
    def by_cards(self) -> Goal:
        """Fewest cards."""
        candidates = self.data.candidates
        return Goal("gpus", tuple((n, float(c.all_cards)) for n, c in zip(self.units, candidates, strict=True)))

    @property
    def by_power(self) -> Goal:
        """Least board power of the GPUs in use, in W."""
        return Goal("power", tuple((n, c.power) for n, c in zip(self.units, self.data.candidates, strict=True)))

    @property
    def by_cost(self) -> Goal:
        """Least money per hour; constant when every card is paid for, used or not."""
        return Goal("cost", self.costs)

    @property
    def by_effective_cost(self) -> Goal:
        """Least money per value served; the cost itself where all arrivals are served."""
        if not self.served:
            return self.by_cost
        data, terms, least = self.data, [], 0.0
        for name, column in self.served.items():
            workload = data.instance.workloads[name]
            often = workload.average / workload.rate  # of the busy window that the plan is for
            worth = workload.value * workload.qualifying * often * data.share(name) / data.tick
            terms.append((column, worth))
            least += worth * workload.minimum_share * data.instance.rate * data.tick
        return Goal("effective_cost", self.costs, over=tuple(terms), least=least)

    @property
    def by_value(self) -> Goal:
        """Most value served."""
        return Goal("value", self.by_effective_cost.over, maximise=True)

    @property
    def by_bytes(self) -> Goal:
        """Fewest bytes on links at capacity, told per second and over those of the heaviest handoff inside."""
        terms = tuple((column, weight) for (_, column), weight in crossing(self.data, self.capacity))
        return Goal("bytes", terms, unit=heaviest(self.data) / self.data.tick)

    @property
    def by_found(self) -> Goal:
        """Most state found at the load, and that near to the GPUs."""
        terms = () if self.kept is None else tuple(warm.found(self.data, self.kept))
        return Goal("found", terms, maximise=True)

    @property
    def by_order(self) -> Goal:
        """The fixed order of candidates: schemes as allowed, groups as listed."""
        return Goal("order", tuple((n, 1.0 + rank) for rank, n in enumerate(self.units)))


def goals(master: Master) -> list[Goal]:
    """The stated objective, then the tie order: throughput, cards, state found, bytes, fixed order."""
    first = {
        "effective_cost": master.by_effective_cost,
        "cost": master.by_cost,
        "throughput": master.by_throughput,
        "headroom": master.by_headroom,
        "power": master.by_power,
        "gpus": master.by_cards,
    }[master.data.instance.objective]
    value = [master.by_value] if master.served and not first.over else []
    kept = [] if master.kept is None else [master.by_found]
    ties = [master.by_throughput, master.by_cards, *kept, master.by_bytes, master.by_order]
    return [first, *value, *(goal for goal in ties if goal.name != first.name)]


def build(
    data: Data,
    promises: bool = True,
    extra: dict[str, int] | None = None,
    buy: str | None = None,
    widen: str | None = None,
    choice: Choice | None = None,
    lean: bool = False,
) -> Master:
    """The master problem; without ``promises`` the sustain and drain rows are left out, and nothing endless is bought.

    ``extra`` cards may be added to groups, to see what they bring; ``buy`` names a group to which cards are added as
    the solver finds necessary, ``widen`` a link whose bandwidth grows likewise. With a ``choice`` state is kept so.
    A ``lean`` program has no flows at capacity where those at load say what is promised.
    """
    model = Model()
    one, arrivals = model.constant(), model.constant()
    if data.instance.objective == "headroom" and promises:
        model.upper[arrivals] = float("inf")
    bought = purchases.columns(model, data, limit=not promises)
    units = tuple(model.column(upper=most, integer=True) for most in _upper(data, extra, buy))
    added = {buy: model.column(upper=float(MOST_BOUGHT), integer=True)} if buy else {}
    throughput = model.column()
    ready = tuple(((units[owner], 1.0),) for owner in data.owners)
    wider = model.column(1.0, MOST_WIDER) if widen else one
    links = purchases.widths(model, data, bought, one, (widen, wider) if widen else None)
    capacity = flows.add(model, data, "", ready if not lean else ((),) * len(ready), one, links, data.kept is not None)
    if data.kept is None:
        model.rows.extend(flows.rows(data, capacity, mix(data, throughput)))
    cards = [*bought.cards, *((group, column, 1) for group, column in added.items())]
    model.rows.extend(pools.cards(data, units, extra, cards))
    fillings: list[Filling] = []
    model.rows.extend(servers.rows(model, data, units, cards, fillings, extra))
    model.rows.extend(pools.limits(data, units))
    left = _fewer(data, units, _present(model, data, units))
    served: dict[str, int] = {}
    stretches: list[Stretch] = []
    kept: Warm | None = None
    if data.kept is not None:
        asked, served = loads.asked(model, data, throughput, one, arrivals, promises)
        kept = warm.at_load(model, data, ready, one, links, asked, choice)
        if lean:
            model.rows.append(equal("at-load", [(throughput, 1.0), (one, -data.instance.rate * data.tick)]))
        else:
            capacity = warm.at_capacity(model, data, kept, capacity, mix(data, throughput))
    if promises and data.instance.drops:
        served = served or loads.load(model, data, left, one, links)
    elif promises:
        stretches = demand.promises(model, data, ready, throughput, one, arrivals, links)
        if data.instance.limits.spare:
            _without_spares(model, data, left, one, arrivals, links)
    pieces = [] if kept is None else _pieces(data, kept)
    costs = tuple(purchases.cost(model, data, units, bought, one, pieces))
    return Master(
        data,
        model,
        units,
        throughput,
        arrivals,
        capacity,
        tuple(stretches),
        added,
        wider,
        bought,
        costs,
        served,
        tuple(fillings),
        kept,
    )


def _present(model: Model, data: Data, units: Sequence[int]) -> list[int]:
    """Columns that say which pools are there, where a limit speaks of each pool."""
    limits = data.instance.limits
    if limits.units is None and limits.spare is None:
        return []
    columns, rows = pools.present(data, model, units)
    model.rows.extend(rows)
    return columns


def _fewer(data: Data, units: Sequence[int], there: Sequence[int]) -> tuple[tuple[Term, ...], ...]:
    """Units of each pool that are left when as many as the limit says fail."""
    spare = data.instance.limits.spare
    if spare is None:
        return tuple(((units[owner], 1.0),) for owner in data.owners)
    return tuple(((units[owner], 1.0), (there[owner], -float(spare.units))) for owner in data.owners)


def _without_spares(
    model: Model,
    data: Data,
    left: tuple[tuple[Term, ...], ...],
    one: int,
    arrivals: int,
    links: dict[str, int],
) -> None:
    """The arrivals are served by the units that are left."""
    regime = flows.add(model, data, "[spare]", left, one, links)
    model.rows.extend(flows.rows(data, regime, mix(data, arrivals, data.instance.rate * data.tick)))


def _pieces(data: Data, kept: Warm) -> list[Term]:
    """Money an hour for pieces of the places that keep state."""
    places = kept.keeping.kept.places
    return [(c, purchases.HOUR * places[n].price) for n, c in kept.keeping.pieces.items() if places[n].price]


def _upper(data: Data, extra: dict[str, int] | None, buy: str | None) -> list[float]:
    """Units of each candidate at most; those that are one use of a unit of several are counted with it."""
    return [0.0 if one.face else float(_most(data, index, extra, buy)) for index, one in enumerate(data.candidates)]


def _most(data: Data, index: int, extra: dict[str, int] | None, buy: str | None) -> int:
    """Units of a candidate at most, by the GPUs of each group that it stands on."""
    candidate = data.candidates[index]
    places = dict.fromkeys([candidate.group, *(part.group for part in candidate.beside)])
    return min(_most_on(data, index, group, extra) + (MOST_BOUGHT if group == buy else 0) for group in places)


def _most_on(data: Data, index: int, name: str, extra: dict[str, int] | None) -> int:
    hardware, each = data.instance.hardware, data.candidates[index].on(name)
    group = hardware.groups[name]
    endless = demand.most_units(data, index)
    if group.servers == "unlimited" and group.rent == "gpu":
        return endless
    cards = group.cards + (extra or {}).get(name, 0)
    for bundle in hardware.purchases.values():
        if bundle.at_most is None and bundle.cards.get(name, 0):
            return max(endless, cards // each)
        cards += (bundle.at_most or 0) * bundle.cards.get(name, 0)
    return cards // each


def mix(data: Data, throughput: int, unit: float = 1.0) -> dict[str, tuple[Term, ...]]:
    r"""Completions of each workload as its share of the throughput: $\mu \lambda_w / \lambda$, over that share."""
    return dict.fromkeys(data.instance.workloads, ((throughput, unit),))


def heaviest(data: Data) -> float:
    """Bytes that the heaviest route puts on links for a request of the mix; 1 when none does."""
    return max((route.crossing * data.share(route.workload) for route in data.routes), default=0.0) or 1.0


def crossing(data: Data, regime: Flows) -> list[tuple[tuple[int, int], float]]:
    """Route, its column in a regime, and the bytes that one of it puts on links, over those of the heaviest."""
    most, routes = heaviest(data), data.routes
    return [((r, c), routes[r].crossing * data.share(routes[r].workload) / most) for r, c in regime.routes.items()]
