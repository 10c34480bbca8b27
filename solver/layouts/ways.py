"""Ways between the parts of a unit: over the link inside a server, or over links of the cluster."""

import math
from dataclasses import dataclass

from models.instance import Instance
from solver.topology import Path, Topology


@dataclass(frozen=True)
class Way:
    """What two sides of a unit send each other over."""

    sends: float
    """B/s that the first side reaches, all its GPUs together, in one direction."""
    receives: float
    """B/s that the second side reaches."""
    startup: float
    paths: tuple[Path, ...]
    """There, and back; none inside a server."""

    shared: bool = False
    """Whether both directions draw on one bandwidth."""

    @property
    def inside(self) -> bool:
        """Whether both sides are in one server."""
        return not self.paths


def between(
    instance: Instance, topology: Topology, source: str, cards: int, target: str, others: int, payload: float
) -> Way | None:
    """The way from ``cards`` GPUs on one group to ``others`` on another, or the same; None where nothing joins them.

    ``payload`` is the size of a transfer, by which the quickest path is taken. A GPU uses one port at a time.
    """
    groups = instance.hardware.groups
    here, there = groups[source], groups[target]
    if source == target and cards + others <= here.per_server:
        if here.scale_up is None:
            return None
        each = here.scale_up.payload_bandwidth
        return Way(cards * each, others * each, here.scale_up.startup, ())
    if source == target:
        hop = topology.hop(source)
        paths = None if hop is None else (hop, hop)
    else:
        out, back = topology.path(source, target, payload), topology.path(target, source, payload)
        paths = None if out is None or back is None else (out, back)
    if paths is None:
        return None
    return Way(
        reach(instance, paths[0], cards, here.per_server),
        reach(instance, paths[0], others, there.per_server),
        paths[0].startup,
        paths,
        any(
            link.duplex == "shared" or (source == target and link.per == "link" and link.ports < cards + others)
            for link in (instance.hardware.links[name] for name in paths[0].links)
        ),
    )


def reach(instance: Instance, path: Path, cards: int, per_server: int) -> float:
    """B/s that so many GPUs reach together over a path, each on one port, in one direction."""
    servers = math.ceil(cards / per_server)
    links = [instance.hardware.links[name] for name in path.links]
    ports = min(link.ports * (servers if link.per == "server" else 1) for link in links)
    return path.bandwidth * min(cards, ports)


def both_ways(instance: Instance, path: Path) -> float:
    """What a port that sends and receives at once has for either, over its bandwidth: 2 where both draw on one."""
    links = [instance.hardware.links[name] for name in path.links]
    return 2.0 if any(link.duplex == "shared" and link.per == "server" for link in links) else 1.0


def blocked(cards: int, per_server: int) -> int | None:
    """GPUs of a side that have to be in one server: all of them, or whole servers; None where neither can be."""
    if cards <= per_server:
        return cards
    return per_server if cards % per_server == 0 else None
