"""From counts and flows to a plan: pools, handoffs, times, resources, cost, in the words of the contract."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.instance import Instance
from models.plan import (
    Drain,
    Handoff,
    Load,
    Memory,
    Parallelism,
    Phase,
    Pool,
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
    counts: tuple[int, ...]
    settled: Settled

    @property
    def instance(self) -> Instance:
        """The instance behind it."""
        return self.data.instance

    @property
    def scale(self) -> float:
        """Stated arrivals over capacity: flows at load are flows at capacity times this."""
        return self.instance.rate / self.settled.throughput if self.settled.throughput > 0 else 0.0

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

    def rates(self, index: int) -> dict[str, float]:
        """Rate of each workload on candidate ``index`` at capacity."""
        return {name: self.settled.rates.get((name, index), 0.0) for name in self.data.candidates[index].demand}

    def busy(self, index: int) -> tuple[float, ...]:
        """Share of each resource of a pool that is busy at capacity."""
        candidate, rates = self.data.candidates[index], self.rates(index)
        return tuple(
            sum(rates[name] * need[k] for name, need in candidate.demand.items()) / self.counts[index]
            for k in range(len(candidate.kind.resources))
        )

    @property
    def live_routes(self) -> list[int]:
        """Routes that carry something."""
        floor = 1e-9 * max(self.settled.throughput, 1e-12)
        return [r for r, rate in enumerate(self.settled.routes) if rate > floor]


def load(chosen: Chosen, at_capacity: float) -> Load:
    """A rate at load and at capacity."""
    return Load(at_load=at_capacity * chosen.scale, at_capacity=at_capacity)


def scheme_of(chosen: Chosen, index: int) -> str:
    """The scheme that a pool works for: the one whose routes carry most of what it does."""
    candidate = chosen.data.candidates[index]
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
        count, rates = chosen.counts[index], chosen.rates(index)
        busiest = max(chosen.busy(index))
        shares = rates if busiest > 0 else {n: chosen.instance.workloads[n].rate for n in rates}
        alone = sum(shares.values()) / max(
            sum(shares[n] * need[k] for n, need in candidate.demand.items()) / count
            for k in range(len(candidate.kind.resources))
        )
        memory = candidate.memory
        decodes = candidate.stage != "prefill"
        described.append(
            Pool(
                name=candidate.name,
                scheme=scheme_of(chosen, index),
                stage=candidate.stage,
                group=candidate.group,
                model=candidate.model,
                units=count,
                cards_per_unit=candidate.cards,
                cards=count * candidate.cards,
                parallelism=Parallelism(),
                batch=max(candidate.batches.values()) if decodes else None,
                batches=dict(candidate.batches) if decodes else {},
                memory=Memory(
                    weights=memory.weights,
                    kv=memory.kv,
                    buffers=memory.buffers,
                    experts=0.0,
                    free=memory.free,
                    capacity=memory.capacity,
                ),
                utilisation=busiest * chosen.scale,
                capacity=alone,
                rates={name: load(chosen, rate) for name, rate in rates.items()},
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
            rate=load(chosen, chosen.settled.routes[r]),
        )
        for r, route in ((r, chosen.data.routes[r]) for r in sorted(live))
    ]


def charges(chosen: Chosen) -> dict[str, float]:
    """Share of every channel and store that is used at capacity, unused ones included."""
    used = {f"link[{name}]": 0.0 for name in chosen.data.topology.channels}
    for name, store in chosen.instance.hardware.stores.items():
        used[f"store[{name}]"] = 0.0
        for word, bandwidth in (("write", store.write), ("read", store.read)):
            if bandwidth is not None:
                used[f"store[{name},{word}]"] = 0.0
    for r, route in enumerate(chosen.data.routes):
        for resource, share in route.charges.items():
            used[resource] += share * chosen.settled.routes[r]
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
    for name, group in chosen.instance.hardware.groups.items():
        taken = chosen.cards[name]
        rows.append(_resource(f"cards[{name}]", taken, group.cards, taken >= group.cards, "cards"))
    for index, candidate in chosen.used:
        for resource, busy in zip(candidate.kind.resources, chosen.busy(index), strict=True):
            count = float(chosen.counts[index])
            name = f"capacity[{candidate.name},{resource}]"
            rows.append(_resource(name, busy * chosen.scale * count, count, busy >= FULL, "units"))
    for resource, share in charges(chosen).items():
        capacity, unit = capacity_of(chosen.data, resource)
        rows.append(_resource(resource, share * chosen.scale * capacity, capacity, share >= FULL, unit))
    most = chosen.settled.throughput
    rows.append(_resource("sustain", chosen.instance.rate, most, chosen.scale >= FULL, "requests/s"))
    if drain is not None and drain.deadline_s is not None and drain.drained_s is not None:
        tight = drain.drained_s >= drain.deadline_s * FULL
        rows.append(_resource("drain", drain.drained_s, drain.deadline_s, tight, "s"))
    return rows


def _resource(name: str, demand: float, capacity: float, binding: bool, unit: str) -> Resource:
    utilisation = demand / capacity if capacity > 0 else 0.0
    return Resource(name=name, demand=demand, capacity=capacity, utilisation=utilisation, binding=binding, unit=unit)


def traffic(chosen: Chosen) -> list[Traffic]:
    """What crosses each channel at load."""
    used = charges(chosen)
    rows = []
    for name, channel in chosen.data.topology.channels.items():
        share = used.get(f"link[{name}]", 0.0) * chosen.scale
        rows.append(
            Traffic(link=name, bytes_per_s=share * channel.capacity, capacity=channel.capacity, utilisation=share)
        )
    return rows


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
