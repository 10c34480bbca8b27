"""Everything the master problem is made from: candidates, routes, and the instance behind them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from models.instance import Instance
from models.llm import Llm
from solver import candidates as making
from solver import dominance, encoding, measured
from solver.candidate import Candidate, Rejected
from solver.routes import Route, find
from solver.schemes import BY_NAME, SCHEMES
from solver.tiers.choice import Choice
from solver.tiers.data import Kept
from solver.tiers.data import gather as keeping
from solver.topology import Topology
from solver.units import AFTER_ENCODE, DECODE, ENCODE, PREFILL, Kind


@dataclass(frozen=True)
class Data:
    """Candidates and routes that a plan may use."""

    instance: Instance
    topology: Topology
    schemes: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    routes: tuple[Route, ...]
    rejected: tuple[Rejected, ...]
    kept: Kept | None = None
    """State kept for later; None where nothing is."""
    choice: Choice | None = None
    """How it is kept, once that is known."""

    @property
    def cold(self) -> "Data":
        """The same without anything that was kept."""
        return replace(self, kept=None, choice=None)

    @cached_property
    def tick(self) -> float:
        """Unit-seconds that a request of the mix takes at least: the unit of time inside programs.

        Together with :meth:`share` it keeps coefficients near one, whether requests take microseconds or hours and
        whether a workload is most of the mix or little of it, so that no tolerance of a solver depends on it.
        """
        total = 0.0
        for name in self.instance.workloads:
            needs = [max(c.demand[name]) for c in self.candidates if name in c.demand and c.stage != "encode"]
            total += self.share(name) * min(needs, default=0.0)
        least = total or 1.0
        # where arrivals are next to nothing for one unit, halfway between the two, so that neither is lost in rounding
        return least if self.instance.rate * least > 1e-3 else math.sqrt(least / self.instance.rate * 1e-3)

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """For each candidate the one that counts its units: itself, unless it is another use of the same unit."""
        first = {c.shared: i for i, c in enumerate(self.candidates) if c.shared is not None and not c.face}
        return tuple(first.get(c.shared or "", i) if c.face else i for i, c in enumerate(self.candidates))

    @property
    def counts_units(self) -> bool:
        """Whether a limit speaks of schemes or numbers of units."""
        limits = self.instance.limits
        return bool(limits.pools or limits.units or limits.spare)

    def widened(self, steps: Mapping[str, int]) -> "Data":
        """The same with so many steps added to links."""
        if not any(steps.values()):
            return self
        topology, factor = self.topology.widened(steps)
        routes = [replace(route, charges=_lighter(route.charges, factor)) for route in self.routes]
        candidates = [
            replace(c, charges={name: _lighter(shares, factor) for name, shares in c.charges.items()})
            for c in self.candidates
        ]
        kept = None if self.kept is None else self.kept.widened(topology, factor)
        return replace(self, topology=topology, routes=tuple(routes), candidates=tuple(candidates), kept=kept)

    def share(self, workload: str) -> float:
        """Share of a workload in the mix; its columns count requests in it, per tick."""
        return self.instance.workloads[workload].rate / self.instance.rate

    def only(self, schemes: Iterable[str]) -> "Data":
        """The same, with these schemes alone."""
        names = tuple(schemes)
        kept = [
            replace(c, schemes=tuple(s for s in c.schemes if s in names))
            for c in self.candidates
            if any(s in names for s in c.schemes)
        ]
        return replace(
            self,
            schemes=names,
            candidates=tuple(kept),
            routes=tuple(_of(route, names) for route in self.routes if any(s in names for s in route.schemes)),
            rejected=tuple(r for r in self.rejected if any(s in names for s in r.schemes)),
        )

    def apart(self, prune: bool = True) -> list["Data"]:
        """The sets of schemes that may stand side by side in one plan: all together, or each alone."""
        sets = [self] if self.instance.schemes.mix else [self.only([scheme]) for scheme in self.schemes]
        return [one.pruned() for one in sets] if prune else sets

    def pruned(self) -> "Data":
        """The same without dominated candidates."""
        return replace(self, candidates=tuple(dominance.prune(self.candidates, self.counts_units)))

    def pruned_by_batch(self) -> "Data":
        """The same with the best batch of each kind of unit; schemes are not compared."""
        return replace(self, candidates=tuple(dominance.prune(self.candidates, same_size=True)))


def gather(instance: Instance, topology: Topology | None = None) -> Data:
    """Candidates and routes of every scheme there is, allowed or not, in the order of preference."""
    topology = topology or Topology(instance.hardware)
    allowed = list(instance.schemes.allow)
    names = (*allowed, *(scheme.name for scheme in SCHEMES if scheme.name not in allowed))
    made = list(measured.make(instance, names))
    replaced = {(m.group, m.model) for m in instance.measured.values() if not m.beside_computed}
    kinds = _kinds(names)
    for kind in kinds:
        for group in instance.hardware.groups:
            for model in dict.fromkeys(workload.model for workload in instance.workloads.values()):
                schemes = _users(kinds, kind, instance.models[model])
                if (group, model) in replaced or not schemes:
                    continue
                if kind == ENCODE:
                    made.extend(encoding.make(instance, topology, schemes, group, model))
                else:
                    made.extend(making.make(instance, topology, kind, schemes, group, model))
    found = tuple(dominance.named(unit for unit in made if isinstance(unit, Candidate)))
    return Data(
        instance=instance,
        topology=topology,
        schemes=names,
        candidates=found,
        routes=tuple(find(instance, topology, names)),
        rejected=tuple(unit for unit in made if isinstance(unit, Rejected)),
        kept=keeping(instance, topology) if instance.reuses else None,
    )


def _of(route: Route, names: tuple[str, ...]) -> Route:
    """A route as some of the schemes that use it have it."""
    schemes = tuple(scheme for scheme in route.schemes if scheme in names)
    return replace(route, scheme=schemes[0], schemes=schemes)


def _lighter(charges: Mapping[str, float], factor: Mapping[str, float]) -> dict[str, float]:
    return {resource: share / factor.get(resource, 1.0) for resource, share in charges.items()}


def _users(kinds: dict[Kind, tuple[str, ...]], kind: Kind, llm: Llm) -> tuple[str, ...]:
    """Schemes that share a kind of units of a model: where it has no encoder, all prefill units are alike."""
    if llm.encoder is not None or kind not in (PREFILL, AFTER_ENCODE):
        return kinds[kind]
    return (*kinds[kind], *kinds.get(AFTER_ENCODE, ())) if kind == PREFILL else ()


def _kinds(names: tuple[str, ...]) -> dict[Kind, tuple[str, ...]]:
    """Kinds of units, each with the schemes that share it, in the order of ``names``."""
    kinds: dict[Kind, tuple[str, ...]] = {}
    for name in names:
        for kind in BY_NAME[name].kinds:
            kinds[kind] = (*kinds.get(kind, ()), name)
    if ENCODE not in kinds:
        return kinds
    flow = (ENCODE, PREFILL, AFTER_ENCODE, DECODE)  # side by side, in the order in which requests meet them
    first = min(list(kinds).index(kind) for kind in flow if kind in kinds)
    listed = [kind for kind in kinds if kind not in flow]
    listed[first:first] = [kind for kind in flow if kind in kinds]
    return {kind: kinds[kind] for kind in listed}
