"""Routes: how one workload gets from prefill to decode, what it charges, how long it takes.

Where images are encoded on units of their own, a route begins there: E -> P -> D is one route, so that what the first
token waits for is known of each.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from models.hardware import Store
from models.instance import Instance
from models.workload import Workload
from solver import physics
from solver.features import Features, ways
from solver.formulas import handoff
from solver.schemes import BY_NAME
from solver.schemes.base import Leg, Legs
from solver.topology import Topology


@dataclass(frozen=True)
class Route:
    """One workload's handoff from units on one group to units on another, and of its features before that."""

    workload: str
    scheme: str
    """The first of those that use it."""
    schemes: tuple[str, ...]
    source: str
    target: str
    store: str | None
    links: tuple[str, ...]
    payload: float
    """Bytes of one crossing, mean over the classes of the workload; those of one output token hand nothing over."""
    seconds: float
    """Of the longest state."""
    charges: Mapping[str, float]
    """Share of a resource (channel, store) that one handoff a second takes."""
    crossing: float
    """Bytes that one handoff puts on links, all trips and links together."""
    features: Features | None = None
    """How features come to its source, where that holds no encoder."""

    @property
    def waits(self) -> float:
        """Seconds of a first token beside prefill."""
        return self.seconds + (self.features.seconds if self.features else 0.0)


def find(instance: Instance, topology: Topology, schemes: tuple[str, ...]) -> list[Route]:
    """Every route of the schemes named, for every workload that decodes, or has its images encoded elsewhere."""
    groups, stores = instance.hardware.groups, instance.hardware.stores
    routes: list[Route] = []
    for name, workload in instance.workloads.items():
        if "encode-pd" in schemes and workload.images:
            routes.extend(_encoded(instance, topology, name, workload))
        if not workload.decodes:
            continue
        shape = physics.shape_of(instance.models[workload.model])
        sizes, longest = physics.handoff_sizes(shape, workload), physics.longest_payload(shape, workload)
        for legs, users in _ways(schemes if not workload.images else [s for s in schemes if s != "encode-pd"]):
            for source in groups:
                for target in groups:
                    for leg in legs(topology, stores, source, target, longest):
                        routes.append(_route(instance, topology, name, users, (source, target), sizes, longest, leg))
    return routes


def _encoded(instance: Instance, topology: Topology, name: str, workload: Workload) -> Iterator[Route]:
    """Routes from encode units on: to every group that prefills, and to every group that decodes, if any does."""
    shape, stores = physics.shape_of(instance.models[workload.model]), instance.hardware.stores
    sizes, longest = physics.handoff_sizes(shape, workload), physics.longest_payload(shape, workload)
    for source in instance.hardware.groups:
        before = list(ways(instance, topology, workload, source))
        for target in instance.hardware.groups if workload.decodes else [source]:
            way = BY_NAME["encode-pd"].legs if workload.decodes else None
            for leg in way(topology, stores, source, target, longest) if way else [Leg(None, ())]:
                plain = _route(instance, topology, name, ("encode-pd",), (source, target), sizes, longest, leg)
                for one in before:
                    charges = {
                        k: plain.charges.get(k, 0.0) + one.charges.get(k, 0.0) for k in (*plain.charges, *one.charges)
                    }
                    crossing = plain.crossing + one.crossing
                    yield replace(plain, features=one, charges=charges, crossing=crossing)


def _ways(schemes: Iterable[str]) -> list[tuple[Legs, tuple[str, ...]]]:
    """Ways to hand state over, each with the schemes that use it; units of several uses keep theirs apart."""
    users: dict[tuple[Legs, bool], tuple[str, ...]] = {}
    for scheme in schemes:
        legs = BY_NAME[scheme].legs
        if legs is not None:
            key = legs, scheme == "hybrid"
            users[key] = (*users.get(key, ()), scheme)
    return [(legs, names) for (legs, _), names in users.items()]


def _route(
    instance: Instance,
    topology: Topology,
    workload: str,
    schemes: tuple[str, ...],
    ends: tuple[str, str],
    sizes: tuple[tuple[float, float], ...],
    longest: float,
    leg: Leg,
) -> Route:
    payload = sum(share * size for share, size in sizes)
    charges: dict[str, float] = {}
    for path in leg.paths:
        for channel in path.channels:
            share = payload / topology.channels[channel].capacity
            charges[f"link[{channel}]"] = charges.get(f"link[{channel}]", 0.0) + share
    if leg.store is not None:
        store = instance.hardware.stores[leg.store]
        stays = [(s * size, handoff.pooled_residence_seconds(*_pooled(leg, store, size))) for s, size in sizes]
        charges[f"store[{leg.store}]"] = sum(held * stay for held, stay in stays) / store.capacity
        for word, bandwidth in (("write", store.write), ("read", store.read)):
            if bandwidth is not None:
                charges[f"store[{leg.store},{word}]"] = payload / bandwidth
        seconds = sum(_pooled(leg, store, longest))
    else:
        seconds = leg.seconds(longest)
    return Route(
        workload=workload,
        scheme=schemes[0],
        schemes=schemes,
        source=ends[0],
        target=ends[1],
        store=leg.store,
        links=tuple(link for path in leg.paths for link in path.links),
        payload=payload,
        seconds=seconds,
        charges=charges,
        crossing=sum(payload * len(path.links) for path in leg.paths),
    )


def _pooled(leg: Leg, store: Store, payload: float) -> tuple[float, float]:
    """Seconds of writing and of reading ``payload`` bytes."""
    write, read = leg.paths
    return _through(write.seconds(payload), payload, store.write), _through(read.seconds(payload), payload, store.read)


def _through(path_seconds: float, payload: float, bandwidth: float | None) -> float:
    """Seconds of one leg when the store itself may be the narrowest place."""
    return path_seconds if bandwidth is None else max(path_seconds, payload / bandwidth)
