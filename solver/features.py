"""Features of images: the units that encode them where those stand apart, the encoder cache, and the ways between.

What is encoded goes to the unit that prefills, and to the cache where there are hits; what the cache has is read from
it. Where the encoder stands with prefill, only the cache is at another place (sections 9.1.3 and 9.7.1).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from models.hardware import Store
from models.instance import Instance
from models.units import GIB
from models.workload import Workload
from solver import cuts, physics, units
from solver.cut import Cut
from solver.formulas import memory
from solver.physics import Device, Shape
from solver.topology import Path, Topology


@dataclass(frozen=True)
class Features:
    """How the features of a request come to units that prefill."""

    encoder: str | None
    """Group of the units that encode; None where every image is in the cache."""
    cache: str | None
    """Store that is read, and written; None where there are no hits."""
    payload: float
    """Bytes that reach prefill, mean."""
    links: tuple[str, ...]
    """From the encode units, or from the cache where every image is in it."""
    seconds: float
    """Until the last feature is there, of the request with most images: all encoded and handed over, or all read."""
    charges: Mapping[str, float]
    """Share of a resource (channel, cache) that one request a second takes."""
    crossing: float
    """Bytes that one request puts on links, all of them together."""


@dataclass(frozen=True)
class _Move:
    """Features on their way."""

    path: Path
    size: float
    """Bytes, mean."""
    word: str | None = None
    """`read` or `write`, where the cache is at one end."""


def cache_of(instance: Instance) -> tuple[str, Store] | None:
    """The encoder cache, if there is one."""
    return next(((name, s) for name, s in instance.hardware.stores.items() if s.holds == "features"), None)


def own_weights(shape: Shape, device: Device) -> float:
    """Bytes of the encoder on one GPU of an encode unit."""
    return shape.encoder_resident / device.tp


def own_buffer(shape: Shape, workload: Workload) -> float:
    """Bytes of features on one GPU of an encode unit: those of a request in work, and of one on its way."""
    return memory.double_buffer_bytes(physics.feature_buffer(shape, workload))


def encoded(instance: Instance, group: str, model: str) -> dict[str, Workload]:
    """Workloads with images to be encoded, as far as units on ``group`` may serve them."""
    served = units.served(instance, units.ENCODE, group, model)
    return {name: workload for name, workload in served.items() if physics.missed_images(workload) > 0.0}


def narrowest(instance: Instance, topology: Topology, group: str, model: str) -> tuple[Cut | None, str]:
    """The fewest GPUs of one server that hold encoder and features; or none, and why."""
    described, llm = instance.hardware.groups[group], instance.models[model]
    shape, reason = units.shape_of(units.ENCODE, llm), "no degree of parallelism that is allowed here can be built"
    kept = max((own_buffer(shape, w) for w in encoded(instance, group, model).values()), default=0.0)
    for tp in sorted(cuts.tensor(described, llm)):
        cut = cuts.one(instance, topology, group, shape, tp, 1)
        if cut is None:
            continue
        held = own_weights(shape, cut.device) + kept
        if held <= cut.device.memory:
            return cut, ""
        reason = f"encoder and features take {held / GIB:.1f} of {cut.device.memory / GIB:.1f} GiB at {cut.text}"
    return None, reason


def ways(instance: Instance, topology: Topology, workload: Workload, target: str) -> Iterator[Features]:
    """Every way for the features of a request to units on ``target`` that hold no encoder."""
    llm, cache = instance.models[workload.model], cache_of(instance)
    shape = units.shape_of(units.ENCODE, llm)
    whole, missed = physics.feature_buffer(shape, workload), physics.missed_images(workload)
    places = [g for g in instance.hardware.groups if workload.may_use(g)] if missed > 0.0 else [None]
    for place in places:
        moves = _cached(instance, topology, shape, workload, place, target)
        if moves is None:
            continue
        seconds = max((_read_seconds(move, cache, whole) for move in moves if move.word == "read"), default=0.0)
        links = moves[0].path.links if moves else ()
        if place is not None:
            cut, _ = narrowest(instance, topology, place, workload.model)
            path = topology.path(place, target, whole)
            if cut is None or path is None:
                continue
            moves.append(_Move(path, missed * shape.features))
            links = path.links
            seconds = max(seconds, physics.worst_encode(shape, cut.device, workload).seconds + path.seconds(whole))
        yield Features(
            encoder=place,
            cache=cache[0] if cache and workload.image_hits else None,
            payload=workload.images * shape.features,
            links=links,
            seconds=seconds,
            charges=_charges(topology, cache, moves),
            crossing=sum(move.size * len(move.path.links) for move in moves),
        )


def cache_charges(
    instance: Instance, topology: Topology, group: str, shape: Shape, workload: Workload
) -> dict[str, float] | None:
    """What a request takes of channels and the cache where its images are encoded by the unit that prefills it; None
    where no link joins that unit and the cache.
    """
    moves = _cached(instance, topology, shape, workload, group, group) if shape.encoder else []
    return None if moves is None else _charges(topology, cache_of(instance), moves)


def cached_at(instance: Instance, topology: Topology, group: str) -> tuple[float, float] | None:
    """Bandwidth and startup of reading from the cache on ``group``."""
    cache = cache_of(instance)
    path = topology.path(cache[0], group, 1.0) if cache else None
    if cache is None or path is None:
        return None
    return min(path.bandwidth, cache[1].read or path.bandwidth), path.startup


def _cached(
    instance: Instance, topology: Topology, shape: Shape, workload: Workload, place: str | None, target: str
) -> list[_Move] | None:
    """Reading of hits and writing of the others; None where a way is missing."""
    cache, hits = cache_of(instance), workload.images * workload.image_hits
    if cache is None or not hits:
        return []
    whole, missed = physics.feature_buffer(shape, workload), physics.missed_images(workload)
    read = topology.path(cache[0], target, whole)
    write = topology.path(place, cache[0], whole) if place is not None and missed > 0.0 else None
    if read is None or (write is None and missed > 0.0):
        return None
    moves = [_Move(read, hits * shape.features, "read")]
    return moves if write is None else [*moves, _Move(write, missed * shape.features, "write")]


def _read_seconds(move: _Move, cache: tuple[str, Store] | None, size: float) -> float:
    own = cache[1].read if cache else None
    return max(move.path.seconds(size), size / own if own else 0.0)


def _charges(topology: Topology, cache: tuple[str, Store] | None, moves: Sequence[_Move]) -> dict[str, float]:
    charges: dict[str, float] = {}
    for move in moves:
        for channel in move.path.channels:
            share = move.size / topology.channels[channel].capacity
            charges[f"link[{channel}]"] = charges.get(f"link[{channel}]", 0.0) + share
        own = getattr(cache[1], move.word) if cache and move.word else None
        if cache and own:
            charges[f"store[{cache[0]},{move.word}]"] = move.size / own
    return charges
