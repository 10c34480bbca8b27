"""What was chosen: counts of candidates, with their flows at capacity and at load."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from models.instance import Instance
from solver.candidate import Candidate
from solver.data import Data
from solver.regimes import Settled
from solver.tiers.states import Saved, saved
from solver.units import shape_of

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
    filled: tuple[tuple[str, int, Mapping[int, int]], ...] = ()
    """Group, number of servers, and the blocks in each by size, where units do not nest in servers."""

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
            for group in taken:
                taken[group] += self.counts[index] * candidate.on(group)
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
                for name, need in self.needs(use, flows).items()
            )
            / self.counts[owner]
            for k in range(len(self.data.candidates[owner].resources))
        )

    def needs(self, index: int, flows: Settled) -> dict[str, tuple[float, ...]]:
        """Unit-seconds of each resource per request of each workload, mean over what its requests find."""
        candidate, found = self.data.candidates[index], dict[str, tuple[float, ...]]()
        for name, whole in candidate.demand.items():
            rate, need = flows.rates.get((name, index), 0.0), list(whole)
            for state, less in enumerate(candidate.hits.get(name, ()), 1):
                part = flows.hits.get((name, index, state), 0.0) / rate if rate > 0.0 else 0.0
                need = [have - part * (a - b) for have, a, b in zip(need, whole, less, strict=True)]
            found[name] = tuple(need)
        return found

    def saved(self, index: int, flows: Settled) -> Saved:
        """Prefill that a unit does not do since parts of prompts are found, in seconds a second."""
        candidate, total = self.data.candidates[index], (0.0, 0.0, 0.0)
        if candidate.device is None or not candidate.hits:
            return total
        shape = shape_of(candidate.kind, self.instance.models[candidate.model])
        for name in candidate.hits:
            workload = self.instance.workloads[name]
            for state, less in enumerate(saved(shape, candidate.device, workload), 1):
                each = flows.hits.get((name, index, state), 0.0) / self.counts[index]
                total = (total[0] + each * less[0], total[1] + each * less[1], total[2] + each * less[2])
        return total

    @property
    def live_routes(self) -> list[int]:
        """Routes that carry something."""
        floor = 1e-9 * max(self.settled.throughput, 1e-12)
        pairs = enumerate(zip(self.settled.routes, self.load.routes, strict=True))
        return [r for r, (most, load) in pairs if most > floor or load > floor]


def _shared_by(chosen: Chosen, r: int, candidate: Candidate) -> dict[str, float]:
    """Schemes that a unit at one end of a route shares with those at the other, each with its part of what arrives."""
    route, found = chosen.data.routes[r], dict[str, float]()
    there, stage = (route.target, "decode") if candidate.stage == "prefill" else (route.source, "prefill")
    common = [name for name in route.schemes if name in candidate.schemes]
    for index, other in chosen.used:
        if other.stage == stage and other.group == there and route.workload in other.demand:
            rate = chosen.settled.rates.get((route.workload, index), 0.0)
            scheme = next((name for name in common if name in other.schemes), common[0])
            found[scheme] = found.get(scheme, 0.0) + rate
    total = sum(found.values())
    return {name: rate / total for name, rate in found.items()} if total > 0 else {common[0]: 1.0}


def scheme_of(chosen: Chosen, index: int) -> str:
    """The scheme that a pool works for: the one whose routes carry most of what it does."""
    candidate = chosen.data.candidates[index]
    if candidate.shared is not None:
        return candidate.schemes[0]
    carried: dict[str, float] = {}
    for r in chosen.live_routes:
        route = chosen.data.routes[r]
        if not set(route.schemes) & set(candidate.schemes):
            continue  # handed over to or from a unit of several uses
        places = {"prefill": route.source, "encode": route.features.encoder if route.features else None}
        if places.get(candidate.stage, route.target) == candidate.group and route.workload in candidate.demand:
            for scheme, share in _shared_by(chosen, r, candidate).items():
                carried[scheme] = carried.get(scheme, 0.0) + share * chosen.settled.routes[r]
    if candidate.stage == "both" or not carried:
        return candidate.schemes[0]
    return max(carried, key=lambda name: carried[name])
