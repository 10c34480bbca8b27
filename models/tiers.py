"""Places that keep context state beside the GPU, as described; and checks of what they say."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from models.base import Described
from models.errors import Problem, nearest
from models.plain import Path, entries, mapping, problem
from models.quantities import (
    Count,
    MoneyPerSecond,
    PositiveBytes,
    PositiveBytesPerSecond,
    PositiveSeconds,
    Seconds,
)
from models.units import BYTES, QuantityError, parse

Policy = Literal["all", "second_hit", "on_eviction", "never"]
POLICIES: tuple[Policy, ...] = ("all", "second_hit", "on_eviction", "never")
HBM = "hbm"
"""Name of the tier that is always there: what weights, batch and buffers leave of the memory of GPUs."""


def _largest(value: object) -> object:
    """A single size: that is what there is."""
    return {"max": value} if isinstance(value, str) else value


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


class Capacity(Described):
    """Size of a tier of a server: what there is, or what may be had in steps."""

    max: PositiveBytes
    """In a server at most; without `step` it is what there is."""
    step: PositiveBytes | None = None
    """Size of one piece, e.g. a DIMM; how many is chosen."""


class Drives(Described):
    """Drives of a server: so many, or up to `max`, and then how many is chosen."""

    count: Annotated[int, Field(ge=0, le=10**4)] | None = None
    """Drives in every server."""
    max: Annotated[int, Field(ge=0, le=10**4)] | None = None
    """Drives in a server at most; bays."""
    size: PositiveBytes
    read: PositiveBytesPerSecond
    """Of one drive."""
    write: PositiveBytesPerSecond
    """Of one drive."""
    price: MoneyPerSecond | None = None
    """Of one drive, in money per time."""


class Nodes(Described):
    """Nodes of a pool that may be had."""

    max: Annotated[int, Field(ge=0, le=10**6)]
    size: PositiveBytes
    """What one adds."""
    read: PositiveBytesPerSecond | None = None
    """Bandwidth that one adds."""
    write: PositiveBytesPerSecond | None = None
    price: MoneyPerSecond | None = None


class Endurance(Described):
    """What drives may be written in their life."""

    writes_per_day: Annotated[float, Field(gt=0.0, le=1e4)]
    """Rated whole writes of a drive a day (DWPD)."""
    rated: PositiveSeconds = 5.0 * 365 * 86_400
    """Life that the rating is for."""
    life: PositiveSeconds = 5.0 * 365 * 86_400
    """Life that the drives are to have."""
    amplification: Annotated[float, Field(ge=1.0, le=100.0)] = 1.0
    """Bytes written to flash for each byte sent to a drive."""


class Tier(Described):
    """A place that keeps context state; tiers stand in the file fastest first."""

    groups: Annotated[list[str] | None, BeforeValidator(_listed)] = Field(default=None, alias="in")
    """Groups whose servers have it; of a pool, groups that use it. Default: all."""
    per: Literal["server"] = "server"
    """Servers have their own each, shared by their GPUs."""
    capacity: Annotated[Capacity, BeforeValidator(_largest)] | None = None
    """Memory of a server: a size, or `{max, step}`."""
    price_per_step: MoneyPerSecond | None = None
    """Of one step, in money per time."""
    bandwidth: PositiveBytesPerSecond | None = None
    """Of a server, reading and writing together."""
    drives: Drives | None = None
    """Drives of a server in place of memory."""
    endurance: Endurance | None = None
    store: str | None = None
    """A store under `hardware.stores` that all groups reach over links."""
    nodes: Nodes | None = None
    """Nodes that may be added to the store."""
    to_gpu: PositiveBytesPerSecond | None = None
    """Link from the host to one GPU, which state crosses after it was read; default: no such link."""
    holds: Literal["inclusive", "exclusive"] = "inclusive"
    """`inclusive`: keeps a copy of what faster tiers hold. `exclusive`: what is read moves up."""
    write_policy: Annotated[list[Policy], BeforeValidator(_listed), Field(min_length=1)] | None = None
    """Policies to choose from: `all`, `second_hit`, `on_eviction`, `never`."""
    admission: Count | None = None
    """Tokens whose state `second_hit` remembers to have seen; default: all there ever were."""
    eviction: Literal["lru", "ttl"] = "lru"
    """`lru`: one retention time for all. `ttl`: each workload its own."""
    headroom: Annotated[float, Field(ge=1.0, le=10.0)] = 1.25
    """Capacity over the mean of what is alive, since that goes up and down."""
    routing: Literal["affinity", "random"] = "affinity"
    """Whether requests are sent to where their state is."""
    fetch: Literal["serial", "layer-wise", "prefetch"] = "serial"
    """`serial`: read, then compute. `layer-wise`: later layers are read meanwhile. `prefetch`: read while it waits."""
    early_layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Layers that `layer-wise` has read before a request begins; HBM keeps room for them."""
    wait: Seconds = 0.0
    """Time in the queue that `prefetch` may read in."""

    @property
    def policies(self) -> tuple[Policy, ...]:
        """Policies to choose from."""
        stated = self.write_policy or (["on_eviction", "never"] if self.holds == "exclusive" else ["all", "never"])
        return tuple(dict.fromkeys(stated))

    def on(self, group: str) -> bool:
        """Whether a group has it, or uses it."""
        return self.groups is None or group in self.groups


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """Tiers that cannot be."""
    hardware = mapping(data.get("hardware"))
    groups, stores = mapping(hardware.get("groups")), mapping(hardware.get("stores"))
    for name, tier in entries(data.get("tiers")):
        path: Path = ("tiers", name)
        if not name or len(name) > 64 or not all(c.isalnum() or c in "-_." for c in name):
            yield problem(path, "not a usable name", name, "letters, digits, '-', '_' and '.', at most 64")
        yield from _kind(name, tier, path)
        yield from _places(tier, path, groups, stores, mapping(hardware.get("links")))
        yield from _pieces(tier, path)
        yield from _policies(tier, path)
    yield from _exclusive(data)
    for name, workload in entries(data.get("workloads")):
        if workload.get("reuse") is not None and mapping(mapping(data.get("limits")).get("spare")):
            accepted = "one of the two"
            yield problem(("workloads", name, "reuse"), "not supported yet beside limits.spare", None, accepted)


KINDS = ("capacity", "drives", "store")
NOT_OF_HBM: dict[str, object] = {
    **dict.fromkeys(("nodes", "endurance", "to_gpu", "bandwidth", "write_policy", "price_per_step", "admission")),
    "holds": "inclusive",
    "fetch": "serial",
    "early_layers": 0,
    "wait": "0 s",
}
"""Keys that HBM has no use for -> what a resolved document says of them."""


def _kind(name: str, tier: dict[str, Any], path: Path) -> Iterator[Problem]:
    stated = [key for key in KINDS if tier.get(key) is not None]
    if name == HBM:
        for key in (*stated, *NOT_OF_HBM):
            if tier.get(key) not in (None, NOT_OF_HBM.get(key)):
                message = "means nothing for hbm, which is what the plan leaves free"
                yield problem((*path, key), message, None, "headroom, routing, eviction or in")
    elif len(stated) != 1:
        accepted = "one of capacity (memory of a server), drives, store"
        yield problem(path, "says nothing of where state is kept" if not stated else "says it twice", None, accepted)
    needed = (("endurance", "drives"), ("price_per_step", "capacity"), ("bandwidth", "capacity"), ("nodes", "store"))
    for key, kind in needed:
        if tier.get(key) is not None and tier.get(kind) is None and name != HBM:
            yield problem((*path, key), f"stands without {kind}", None, f"{kind}, or none of it")


def _places(
    tier: dict[str, Any], path: Path, groups: dict[str, Any], stores: dict[str, Any], links: dict[str, Any]
) -> Iterator[Problem]:
    named = _listed(tier.get("in"))
    for index, name in enumerate(named if isinstance(named, list) else []):
        if isinstance(name, str) and name not in groups:
            guess = nearest(name, groups)
            message = "no group of this name" + (f"; {guess}" if guess else "")
            yield problem((*path, "in", index), message, name, "one of " + ", ".join(groups))
    users = [name for name in (named if isinstance(named, list) else groups) if isinstance(name, str)]
    bought = {name for name, group in entries(groups) if group.get("servers") in ("unlimited", 0)}
    bought &= set(users) if tier.get("store") is None else set()
    if bought:
        message = f"tiers of servers that are bought are not supported yet: {', '.join(sorted(bought))}"
        yield problem((*path, "in"), message, None, "groups whose servers are there")
    if named == [] and path[-1] != HBM:  # no HBM for prefixes is what some engines are set to
        yield problem((*path, "in"), "is empty", None, "groups, or left out for all")
    store = tier.get("store")
    if not isinstance(store, str):
        return
    if store not in stores:
        guess = nearest(store, stores)
        message = "no store of this name under hardware.stores" + (f"; {guess}" if guess else "")
        yield problem((*path, "store"), message, store, "one of " + ", ".join(stores) if stores else None)
        return
    for word in ("read", "write"):
        if mapping(tier.get("nodes")).get(word) is not None and mapping(stores[store]).get(word) is None:
            message = f"adds to no bandwidth: the store {store} states none of its own"
            yield problem(
                (*path, "nodes", word), message, tier["nodes"][word], f"hardware.stores.{store}.{word}, or none here"
            )
    if mapping(stores[store]).get("for", "state") != "state":
        yield problem((*path, "store"), "keeps features of images, not state", store, "a store for state")
    joined = _joined(mapping(stores[store]).get("on"), links)
    for name in users:
        if name in groups and name not in joined:
            message = f"no path joins {name} and the store {store}"
            yield problem(path, message, None, "a link that joins them, or `in` without that group")


def _joined(link: object, links: dict[str, Any]) -> set[str]:
    """Places that links join to a link."""
    found, open_ones = {str(link)}, [str(link)]
    while open_ones:
        here = open_ones.pop()
        near = [p for p in mapping(links.get(here)).get("connects") or [] if isinstance(p, str)]
        near += [name for name, one in entries(links) if here in (one.get("connects") or [])]
        for place in near:
            if place not in found:
                found.add(place)
                open_ones.extend([place] if place in links else [])
    return found


def _pieces(tier: dict[str, Any], path: Path) -> Iterator[Problem]:
    drives = mapping(tier.get("drives"))
    if drives and (drives.get("count") is None) == (drives.get("max") is None):
        yield problem((*path, "drives"), "says not how many there are, or twice", None, "count, or max to choose")
    capacity = mapping(_largest(tier.get("capacity")))
    if capacity.get("step") is None:
        if tier.get("price_per_step") is not None and capacity:
            yield problem((*path, "price_per_step"), "stands without steps", None, "capacity: {max, step}")
        return
    try:
        most, step = parse(capacity.get("max"), BYTES), parse(capacity["step"], BYTES)
    except QuantityError:
        return  # said where it stands
    if step > most:
        yield problem((*path, "capacity", "step"), "is more than max", capacity["step"], f"at most {capacity['max']}")
    elif step > 0 and most / step > 10**4:
        yield problem((*path, "capacity", "step"), f"{most / step:,.0f} steps", capacity["step"], "10,000 or fewer")


def _exclusive(data: dict[str, Any]) -> Iterator[Problem]:
    """What an exclusive tier has is known only where the faster ones have all state, for one time each."""
    faster: list[tuple[str, dict[str, Any]]] = []
    tiers = dict(entries(data.get("tiers")))
    for name, tier in sorted(tiers.items(), key=lambda one: one[0] != HBM):
        faster.append((name, tier))
        if tier.get("holds") != "exclusive":
            continue
        path: Path = ("tiers", name, "holds")
        for other, one in faster:
            if one.get("eviction") == "ttl":
                yield problem(path, f"not supported yet beside a time to live ({other})", "exclusive", "eviction: lru")
            policies = _listed(one.get("write_policy"))
            if isinstance(policies, list) and "second_hit" in policies:
                message = f"not supported yet behind second_hit ({other})"
                yield problem(path, message, "exclusive", f"another write_policy of {other}, or inclusive")


def _policies(tier: dict[str, Any], path: Path) -> Iterator[Problem]:
    stated = _listed(tier.get("write_policy"))
    policies = [p for p in stated if isinstance(p, str)] if isinstance(stated, list) else []
    if tier.get("holds") == "exclusive" and set(policies) - {"on_eviction", "never"}:
        accepted = "on_eviction or never: what is read moves up, and comes back when it is evicted"
        yield problem((*path, "write_policy"), "does not go with exclusive", ", ".join(policies), accepted)
    if tier.get("admission") is not None and "second_hit" not in policies:
        yield problem((*path, "admission"), "stands without second_hit", tier["admission"], "write_policy: second_hit")
    for key, mode in (("early_layers", "layer-wise"), ("wait", "prefetch")):
        if tier.get(key) not in (None, 0, "0 s") and tier.get("fetch", "serial") != mode:
            yield problem((*path, key), f"stands without fetch: {mode}", tier[key], f"fetch: {mode}")
