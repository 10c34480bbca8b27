"""From counts and flows to a plan: pools, handoffs, times, resources, cost, in the words of the contract."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from models.instance import Instance
from models.plan import (
    Drain,
    Handoff,
    Load,
    Memory,
    Parallelism,
    Phase,
    Pool,
    Purchase,
    Resource,
    Traffic,
)
from solver.candidates import Candidate
from solver.data import Data
from solver.formulas import drain as fluid
from solver.regimes import DrainPhase, Settled
from solver.routes import Route

FULL = 1.0 - 1e-6
"""Utilisation from which something counts as full."""


@dataclass(frozen=True)
class Chosen:
    """Counts with their flows at capacity, ready to be described."""

    data: Data
    """With the steps that were added to links."""
    counts: tuple[int, ...]
    settled: Settled
    loaded: Settled | None = None
    """Flows at load, where they are not those at capacity, scaled."""
    bundles: Mapping[str, int] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)

    @property
    def instance(self) -> Instance:
        """The instance behind it."""
        return self.data.instance

    @property
    def scale(self) -> float:
        """Stated arrivals over capacity."""
        return self.instance.rate / self.settled.throughput if self.settled.throughput > 0 else 0.0

    @cached_property
    def load(self) -> Settled:
        """Flows at load: those at capacity, scaled to the stated arrivals, unless they have to be others."""
        if self.loaded is not None:
            return self.loaded
        scale = self.scale
        rates = {key: rate * scale for key, rate in self.settled.rates.items()}
        return Settled(self.instance.rate, rates, tuple(rate * scale for rate in self.settled.routes))

    def served(self, name: str) -> float:
        """Requests/s of a workload that are served of those that arrive."""
        return self.load.served.get(name, self.instance.workloads[name].rate)

    @property
    def used(self) -> list[tuple[int, Candidate]]:
        """Candidates with units."""
        return [(i, c) for i, c in enumerate(self.data.candidates) if self.counts[i]]

    @property
    def cards(self) -> dict[str, int]:
        """Cards in use, by group."""
        taken = dict.fromkeys(self.instance.hardware.groups, 0)
        for index, candidate in self.used:
            taken[candidate.group] += self.counts[index] * candidate.cards
        return taken

    @cached_property
    def uses(self) -> dict[int, list[int]]:
        """Candidates that are uses of the same units, by the one that counts them."""
        found: dict[int, list[int]] = {}
        for index, owner in enumerate(self.data.owners):
            found.setdefault(owner, []).append(index)
        return found

    @property
    def there(self) -> dict[str, int]:
        """Cards that are there or bought, by group."""
        hardware, taken = self.instance.hardware, self.cards
        found = {name: group.cards for name, group in hardware.groups.items()}
        for name, bundle in hardware.purchases.items():
            for group, count in bundle.cards.items():
                found[group] += count * self.bundles.get(name, 0)
        for name, described in hardware.groups.items():
            if described.servers == "unlimited" and described.rent == "gpu":
                found[name] = taken[name]
        return found

    def rates(self, index: int, at: Settled | None = None) -> dict[str, float]:
        """Rate of each workload on candidate ``index``, at capacity unless flows are named."""
        flows = at or self.settled
        return {name: flows.rates.get((name, index), 0.0) for name in self.data.candidates[index].demand}

    def busy(self, index: int, at: Settled | None = None) -> tuple[float, ...]:
        """Share of each resource of a pool that is busy, with all its uses; at capacity unless flows are named."""
        owner = self.data.owners[index]
        flows = at or self.settled
        return tuple(
            sum(
                flows.rates.get((name, use), 0.0) * need[k]
                for use in self.uses[owner]
                for name, need in self.data.candidates[use].demand.items()
            )
            / self.counts[owner]
            for k in range(len(self.data.candidates[owner].resources))
        )

    @property
    def live_routes(self) -> list[int]:
        """Routes that carry something."""
        floor = 1e-9 * max(self.settled.throughput, 1e-12)
        pairs = enumerate(zip(self.settled.routes, self.load.routes, strict=True))
        return [r for r, (most, load) in pairs if most > floor or load > floor]


def scheme_of(chosen: Chosen, index: int) -> str:
    """The scheme that a pool works for: the one whose routes carry most of what it does."""
    candidate = chosen.data.candidates[index]
    if candidate.shared is not None:
        return candidate.schemes[0]
    carried: dict[str, float] = {}
    end = "source" if candidate.stage == "prefill" else "target"
    for r in chosen.live_routes:
        route = chosen.data.routes[r]
        if getattr(route, end) == candidate.group and route.workload in candidate.demand:
            carried[route.scheme] = carried.get(route.scheme, 0.0) + chosen.settled.routes[r]
    if candidate.stage == "both" or not carried:
        return candidate.schemes[0]
    return max(carried, key=lambda name: carried[name])


def pools(chosen: Chosen) -> list[Pool]:
    """Every pool with units, idle ones too."""
    described = []
    for index, candidate in chosen.used:
        count, rates, loaded = chosen.counts[index], chosen.rates(index), chosen.rates(index, chosen.load)
        shares = rates if sum(rates.values()) > 0 else {n: chosen.instance.workloads[n].rate for n in rates}
        alone = sum(shares.values()) / max(
            sum(shares[n] * need[k] for n, need in candidate.demand.items()) / count
            for k in range(len(candidate.resources))
        )
        memory = candidate.memory
        known = candidate.stage != "prefill" and (
            candidate.measured is None or chosen.instance.measured[candidate.measured].batch is not None
        )
        described.append(
            Pool(
                name=candidate.name,
                scheme=scheme_of(chosen, index),
                stage=candidate.stage,
                group=candidate.group,
                model=candidate.model,
                units=count,
                cards_per_unit=chosen.data.candidates[chosen.data.owners[index]].cards,
                cards=count * candidate.cards,
                parallelism=Parallelism(tp=candidate.tp, pp=candidate.pp),
                batch=max(candidate.batches.values()) if known else None,
                batches=dict(candidate.batches) if candidate.stage != "prefill" else {},
                shares=chosen.data.candidates[chosen.data.owners[index]].name if candidate.face else None,
                step_s=candidate.tau,
                measured=candidate.measured,
                memory=None
                if memory is None
                else Memory(
                    weights=memory.weights,
                    kv=memory.kv,
                    buffers=memory.buffers,
                    experts=0.0,
                    free=memory.free,
                    capacity=memory.capacity,
                ),
                utilisation=max(chosen.busy(index, chosen.load)),
                capacity=alone,
                rates={name: Load(at_load=loaded[name], at_capacity=rate) for name, rate in rates.items()},
            )
        )
    return described


def route_name(route: Route) -> str:
    """A handoff in one line, the same in every part of a plan."""
    return f"{route.workload}: {route.source} -> {route.target}" + (f" via {route.store}" if route.store else "")


def handoffs(chosen: Chosen, phases: Sequence[DrainPhase]) -> list[Handoff]:
    """Every route that carries something, at capacity or while the backlog drains."""
    live = set(chosen.live_routes) | {r for p in phases for r, rate in enumerate(p.routes) if rate > 1e-9}
    return [
        Handoff(
            name=route_name(route),
            workload=route.workload,
            scheme=route.scheme,
            source=route.source,
            target=route.target,
            store=route.store,
            links=list(route.links),
            bytes_per_request=route.payload,
            seconds=route.seconds,
            rate=Load(at_load=chosen.load.routes[r], at_capacity=chosen.settled.routes[r]),
        )
        for r, route in ((r, chosen.data.routes[r]) for r in sorted(live))
    ]


def charges(chosen: Chosen, at: Settled | None = None) -> dict[str, float]:
    """Share of every channel and store that is used, unused ones included; at capacity unless flows are named."""
    flows = at or chosen.settled
    used = {f"link[{name}]": 0.0 for name in chosen.data.topology.channels}
    for name, store in chosen.instance.hardware.stores.items():
        used[f"store[{name}]"] = 0.0
        for word, bandwidth in (("write", store.write), ("read", store.read)):
            if bandwidth is not None:
                used[f"store[{name},{word}]"] = 0.0
    for r, route in enumerate(chosen.data.routes):
        for resource, share in route.charges.items():
            used[resource] += share * flows.routes[r]
    for index, candidate in chosen.used:
        for name, shares in candidate.charges.items():
            for resource, share in shares.items():
                used[resource] += share * flows.rates.get((name, index), 0.0)
    return used


def capacity_of(data: Data, resource: str) -> tuple[float, str]:
    """Capacity of a channel or store, with its unit."""
    kind, _, inside = resource.partition("[")
    name = inside[:-1]
    if kind == "link":
        return data.topology.channels[name].capacity, "B/s"
    store, _, word = name.partition(",")
    described = data.instance.hardware.stores[store]
    if word:
        return (described.write if word == "write" else described.read) or 0.0, "B/s"
    return described.capacity, "B"


def resources(chosen: Chosen, drain: Drain | None) -> list[Resource]:
    """Every row that a user would name: cards, pools, links and stores, and the promises."""
    rows = []
    for name, there in chosen.there.items():
        taken, group = chosen.cards[name], chosen.instance.hardware.groups[name]
        endless = group.servers == "unlimited" and group.rent == "gpu"
        rows.append(_resource(f"cards[{name}]", taken, there, taken >= there > 0 and not endless, "cards"))
    for index, candidate in chosen.used:
        loads = chosen.busy(index, chosen.load)
        if candidate.face:
            continue
        for resource, load, busy in zip(candidate.resources, loads, chosen.busy(index), strict=True):
            count = float(chosen.counts[index])
            name = f"capacity[{candidate.name},{resource}]"
            rows.append(_resource(name, load * count, count, busy >= FULL, "units"))
    loads_of = charges(chosen, chosen.load)
    for resource, share in charges(chosen).items():
        capacity, unit = capacity_of(chosen.data, resource)
        rows.append(_resource(resource, loads_of[resource] * capacity, capacity, share >= FULL, unit))
    most = chosen.settled.throughput
    served = sum(chosen.served(name) for name in chosen.instance.workloads)
    binds = served >= FULL * most or (chosen.instance.drops and served < FULL * chosen.instance.rate)
    rows.append(_resource("sustain", served, most, binds, "requests/s"))
    if drain is not None and drain.deadline_s is not None and drain.drained_s is not None:
        tight = drain.drained_s >= drain.deadline_s * FULL
        rows.append(_resource("drain", drain.drained_s, drain.deadline_s, tight, "s"))
    return rows


def _resource(name: str, demand: float, capacity: float, binding: bool, unit: str) -> Resource:
    utilisation = demand / capacity if capacity > 0 else 0.0
    return Resource(name=name, demand=demand, capacity=capacity, utilisation=utilisation, binding=binding, unit=unit)


def traffic(chosen: Chosen) -> list[Traffic]:
    """What crosses each channel at load."""
    used = charges(chosen, chosen.load)
    rows = []
    for name, channel in chosen.data.topology.channels.items():
        share = used.get(f"link[{name}]", 0.0)
        rows.append(
            Traffic(link=name, bytes_per_s=share * channel.capacity, capacity=channel.capacity, utilisation=share)
        )
    return rows


def purchases(chosen: Chosen) -> list[Purchase]:
    """What the plan buys or rents, and the steps that it adds to links."""
    hardware, found = chosen.instance.hardware, []
    for name, bundle in hardware.purchases.items():
        group = hardware.groups.get(name)
        if group is not None and group.rent == "gpu":
            count = chosen.cards[name]
            paid: float | None = sum(chosen.counts[i] * c.price for i, c in chosen.used if c.group == name)
            paid = None if group.price is None and not paid else paid
        else:
            count = chosen.bundles.get(name, 0)
            paid = None if bundle.price is None else count * bundle.price
        if count:
            cards = {where: each * count for where, each in bundle.cards.items()}
            kind: Literal["bundle", "rented"] = "bundle" if group is None else "rented"
            hour = None if paid is None else 3600.0 * paid
            found.append(Purchase(name=name, kind=kind, count=count, cards=cards, per_hour=hour))
    for name, count in chosen.steps.items():
        step = hardware.links[name].step
        if count and step is not None:
            hour = 3600.0 * count * step.price
            found.append(Purchase(name=name, kind="link step", count=count, cards={}, per_hour=hour))
    return found


def drain(chosen: Chosen, found: tuple[float, list[DrainPhase]] | None) -> Drain | None:
    """The startup backlog; None when the instance has neither startup nor deadline."""
    instance = chosen.instance
    deadline = instance.service.drain
    ready = max((c.startup for _, c in chosen.used), default=0.0)
    if deadline is None and ready == 0.0:
        return None
    at, phases = found if found is not None else (None, [])
    done = 0.0
    for phase in phases:
        seconds = max(0.0, min(phase.end, ready) - phase.start)
        done += seconds * sum(
            rate for (_, i), rate in phase.rates.items() if chosen.data.candidates[i].stage != "decode"
        )
    starts = {c.startup for _, c in chosen.used}
    single = deadline is not None and len(starts) == 1
    return Drain(
        ready_s=ready,
        backlog=max(0.0, fluid.startup_backlog(instance.rate, ready) - done),
        drained_s=at,
        deadline_s=deadline,
        required_rate=_finite(fluid.required_rate(instance.rate, ready, deadline or 0.0)) if single else None,
        met=None if deadline is None else at is not None and at <= deadline * (1.0 + 1e-6),
        phases=[_phase(chosen, phase) for phase in phases if phase.end > phase.start],
    )


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _phase(chosen: Chosen, phase: DrainPhase) -> Phase:
    served: dict[str, dict[str, float]] = {}
    for (name, index), rate in phase.rates.items():
        served.setdefault(chosen.data.candidates[index].name, {})[name] = rate
    carried = {route_name(chosen.data.routes[r]): rate for r, rate in enumerate(phase.routes) if rate > 1e-9}
    return Phase(start_s=phase.start, end_s=phase.end, pools=served, handoffs=carried)
