"""Places that keep state for later, fastest first: HBM of a group for a model, memory and drives of a group, a pool.

A place knows its size and bandwidth, as so much and so much more for each piece, and what crosses which channel when
its state is read or written.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from models.instance import Instance
from models.tiers import HBM, Policy, Tier
from solver.formulas import retention, tiers
from solver.topology import Topology


@dataclass(frozen=True)
class Pieces:
    """So much is there, and so much comes with each piece."""

    there: float
    each: float = 0.0

    def at(self, count: float) -> float:
        """With so many pieces."""
        return self.there + count * self.each


@dataclass(frozen=True)
class Place:
    """Where state is kept."""

    name: str
    """`dram@h200`, `hbm@h200/model`, or the name of the tier of a pool."""
    tier: str
    said: Tier
    group: str | None
    """None for a pool."""
    model: str | None
    """Of HBM."""
    copies: float
    """Places like it that see requests in turn, each with its own system prompts; those in HBM are taken off before."""
    apart: float
    """Places like it of which one has the state of a session."""
    size: Pieces
    most: int = 0
    """Pieces at most."""
    least: int = 0
    """Pieces that are there anyway."""
    price: float = 0.0
    """Of a piece, in money per second."""
    both: Pieces | None = None
    """Bandwidth for reading and writing together."""
    read: Pieces | None = None
    write: Pieces | None = None
    wear: Pieces | None = None
    """Bytes/s that may be written for the whole life."""
    reading: Mapping[str, Mapping[str, float]] | None = None
    """By group, of a pool: share of a channel that a byte/s takes on its way to the GPUs."""
    writing: Mapping[str, Mapping[str, float]] | None = None

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Write policies to choose from."""
        return ("all", "never") if self.tier == HBM else self.said.policies

    @property
    def each_apart(self) -> bool:
        """Whether each workload has its own retention time."""
        return self.said.eviction == "ttl"

    @property
    def spread(self) -> float:
        """Places among which requests are scattered though their state is in one of them."""
        return self.apart if self.said.routing == "random" else 1.0

    def widened(self, factor: Mapping[str, float]) -> "Place":
        """The same where channels are so many times as wide."""

        def lighter(ways: Mapping[str, Mapping[str, float]] | None) -> dict[str, dict[str, float]] | None:
            if ways is None:
                return None
            return {g: {c: s / factor.get(f"link[{c}]", 1.0) for c, s in shares.items()} for g, shares in ways.items()}

        return replace(self, reading=lighter(self.reading), writing=lighter(self.writing))

    def serves(self, group: str, model: str) -> bool:
        """Whether requests of a model on a group may find state here."""
        return self.said.on(group) and self.group in (None, group) and self.model in (None, model)

    def seconds(self, payload: float, group: str, cards: int, topology: Topology) -> float:
        """Time of reading ``payload`` bytes for one request on a unit of ``cards`` GPUs."""
        hops = [self.said.to_gpu * cards] if self.said.to_gpu else []
        if self.tier == HBM:
            return 0.0
        if self.said.store is not None:
            path = topology.path(self.said.store, group, payload)
            own = topology.hardware.stores[self.said.store].read
            first = max(path.seconds(payload) if path else 0.0, payload / own if own else 0.0)
            return first + tiers.path_seconds(payload, hops)
        rate = self.said.drives.read if self.said.drives else self.said.bandwidth
        return tiers.path_seconds(payload, [*([rate] if rate else []), *hops])


NONE = 1e-9
"""Copies of system prompts that take no room of a place, since it was taken off already."""


def places(instance: Instance, topology: Topology) -> tuple[Place, ...]:
    """Every place, fastest first."""
    if not instance.reuses:
        return ()
    found = list(_hbm(instance))
    for name, said in instance.tiers.items():
        if name == HBM:
            continue
        if said.store is not None:
            found.append(_pool(instance, topology, name, said, said.store))
            continue
        for group, described in instance.hardware.groups.items():
            if said.on(group):
                found.append(_inside(name, said, group, 0 if described.servers == "unlimited" else described.servers))
    return tuple(found)


def _hbm(instance: Instance) -> list[Place]:
    """What units leave free, on every group where requests that leave state may be served."""
    said = instance.tiers.get(HBM, Tier())
    found = []
    for group, described in instance.hardware.groups.items():
        for model in instance.models:
            mine = [w for w in instance.workloads.values() if w.model == model and (w.reuse or w.tool_wait)]
            if said.on(group) and any(w.may_use(group) for w in mine):
                units = float(max(1, described.cards // min(described.tp or [1])))
                label = f"{HBM}@{group}" + (f"/{model}" if len(instance.models) > 1 else "")
                found.append(Place(label, HBM, said, group, model, NONE, units, Pieces(0.0)))
    return found


def _inside(name: str, said: Tier, group: str, servers: int) -> Place:
    """Memory or drives of the servers of a group, taken together."""
    label, copies = f"{name}@{group}", float(max(1, servers))
    if said.drives is not None:
        one, worn = said.drives, None
        if said.endurance is not None:
            e = said.endurance
            worn = retention.sustained_writes(one.size, e.writes_per_day, e.rated, e.life, e.amplification)
        count = servers * (one.count if one.count is not None else one.max or 0)
        return Place(
            label,
            name,
            said,
            group,
            None,
            copies,
            copies,
            Pieces(0.0, one.size),
            most=count,
            least=count if one.count is not None else 0,
            price=one.price or 0.0,
            read=Pieces(0.0, one.read),
            write=Pieces(0.0, one.write),
            wear=None if worn is None else Pieces(0.0, worn),
        )
    capacity = said.capacity
    both = None if said.bandwidth is None else Pieces(servers * said.bandwidth)
    if capacity is None or capacity.step is None:
        size = Pieces(servers * capacity.max if capacity else 0.0)
        return Place(label, name, said, group, None, copies, copies, size, both=both)
    most = servers * int(capacity.max / capacity.step + 1e-9)
    price = said.price_per_step or 0.0
    size = Pieces(0.0, capacity.step)
    return Place(label, name, said, group, None, copies, copies, size, most=most, price=price, both=both)


def _pool(instance: Instance, topology: Topology, name: str, said: Tier, store: str) -> Place:
    described, nodes = instance.hardware.stores[store], said.nodes
    reading: dict[str, dict[str, float]] = {}
    writing: dict[str, dict[str, float]] = {}
    for group in instance.hardware.groups:
        if said.on(group):
            reading[group] = _charges(topology, store, group)
            writing[group] = _charges(topology, group, store)
    each = (0.0, 0.0, 0.0) if nodes is None else (nodes.size, nodes.read or 0.0, nodes.write or 0.0)
    return Place(
        name,
        name,
        said,
        None,
        None,
        1.0,
        1.0,
        Pieces(described.capacity, each[0]),
        most=0 if nodes is None else nodes.max,
        price=(nodes.price or 0.0) if nodes else 0.0,
        read=None if described.read is None else Pieces(described.read, each[1]),
        write=None if described.write is None else Pieces(described.write, each[2]),
        reading=reading,
        writing=writing,
    )


LONG = 1e9
"""Bytes by which the way to a pool is chosen: much, so that the widest is."""


def _charges(topology: Topology, source: str, target: str) -> dict[str, float]:
    """Share of each channel on the way that a byte/s takes."""
    path, found = topology.path(source, target, LONG), dict[str, float]()
    for channel in path.channels if path else ():
        found[channel] = found.get(channel, 0.0) + 1.0 / topology.channels[channel].capacity
    return found
