"""Units with a layout, from their degrees: the GPU with its layout, other parts, and what crosses links."""

import math
from dataclasses import replace

from models.instance import Instance
from solver import physics
from solver.cut import Cut, Leg, Part
from solver.device import Device
from solver.expert_work import Engine
from solver.formulas import memory, parallel
from solver.layouts import sections
from solver.layouts.apart import Apart
from solver.layouts.hosted import Hosted
from solver.layouts.spread import Spread
from solver.layouts.ways import between, blocked, both_ways, reach
from solver.shapes import Shape
from solver.topology import Topology


def _with(device: Device, layout: Spread | Apart | Hosted) -> Device:
    return replace(device, layout=layout)


def spread(
    instance: Instance,
    topology: Topology,
    group: str,
    shape: Shape,
    tp: int,
    ep: int,
    dp: int,
    micro: int = 1,
    redundant: int = 0,
) -> Cut | None:
    """Experts over ``ep`` places: with ``dp`` groups of ``tp`` GPUs, ``ep`` of them in all; or, with ``dp`` 1, the same
    attention on ``ep`` groups of ``tp`` GPUs that share each expert. ``redundant`` are replicas of a layer.
    """
    described, routed = instance.hardware.groups[group], shape.routed
    cards = tp * (ep if dp == 1 else dp)
    block = blocked(cards, described.per_server)
    slots = _slots(shape, ep, redundant)
    if routed is None or slots is None or block is None or tp > described.per_server or cards < 2:
        return None
    if described.scale_up is None or (dp > 1 and ep != cards) or (dp == 1 and (cards > block or micro > 1)):
        return None
    hop = topology.hop(group) if cards > block else None
    if cards > block and hop is None:
        return None
    wired, outside = described.scale_up, 1.0 - block / cards
    far = reach(instance, hop, cards, described.per_server) / cards / both_ways(instance, hop) if hop else math.inf
    layout = Spread(
        streams=dp,
        cards=ep,
        cut=1 if dp > 1 else tp,
        slots=slots,
        micro=micro,
        near=wired.payload_bandwidth,
        far=far,
        outside=outside,
        inside=(block - 1) / cards,
        startup=max(wired.startup if block > 1 else 0.0, hop.startup if hop else 0.0),
    )
    device = _with(physics.device_of(instance, described, shape.precision, tp), layout)
    rows = outside * routed.layers * routed.chosen  # out of their server, and back into it
    each = 2.0 * parallel.activation_bytes(rows, shape.hidden, shape.other_bytes)
    legs = (Leg(hop, each),) if hop else ()
    return Cut(device, block, tp, 1, ep, dp, micro, redundant=redundant, legs=legs)


def apart(
    instance: Instance,
    topology: Topology,
    group: str,
    model: str,
    shape: Shape,
    tp: int,
    dp: int,
    other: str,
    count: int,
    pooled: bool,
    micro: int = 1,
    redundant: int = 0,
) -> Cut | None:
    """Attention in ``dp`` groups of ``tp`` GPUs; ``count`` GPUs of ``other`` for feed-forward networks or experts."""
    here, there = instance.hardware.groups[group], instance.hardware.groups[other]
    block, block_there = blocked(tp * dp, here.per_server), blocked(count, there.per_server)
    if block is None or block_there is None or tp > here.per_server or (tp > 1 and here.scale_up is None):
        return None
    slots = _slots(shape, count, redundant) if pooled else 0
    if slots is None:
        return None
    if not pooled and (count > there.per_server or (count > 1 and there.scale_up is None)):
        return None
    token = parallel.activation_bytes(1.0, shape.hidden, shape.other_bytes)
    way = between(instance, topology, group, tp * dp, other, count, token)
    if way is None:
        return None
    partner = physics.device_of(instance, there, shape.precision, 1 if pooled else count)
    layout = Apart(dp, partner, count, pooled, slots, micro, way.sends, way.receives, way.startup, way.shared)
    own, routed = layout.other_weights(shape)
    longest = max(w.longest_input for w in instance.workloads.values() if w.model == model)
    # inputs and results of one layer: rows are spread over experts, but GPUs that cut a network all need them whole
    rows = 2.0 * dp * longest * (shape.routed.chosen / count if pooled and shape.routed else 1.0)
    part = Part(
        stage="expert" if pooled else "ffn",
        group=other,
        cards=count,
        block=0 if way.inside else block_there,
        memory=memory.usable_bytes(there.accelerator.memory, there.usable),
        weights=own,
        experts=routed,
        buffers=parallel.activation_bytes(rows, shape.hidden, shape.other_bytes),
        tp=1 if pooled else count,
        ep=count if pooled else 1,
    )
    if part.used > part.memory:
        return None
    legs = tuple(Leg(path, layout.per_token(shape)) for path in way.paths)
    device = _with(physics.device_of(instance, here, shape.precision, tp), layout)
    together = block + count if way.inside else block
    return Cut(device, together, tp, 1, 1, dp, micro, redundant=redundant, legs=legs, parts=(part,))


def _slots(shape: Shape, places: int, redundant: int) -> int | None:
    """Experts of a layer in each of so many places; None where they cannot be dealt out evenly, each once a place."""
    routed = shape.routed
    if routed is None or places < 1 or (routed.experts + redundant) % places:
        return None
    slots = (routed.experts + redundant) // places
    return slots if slots <= routed.experts else None


def hosted(instance: Instance, group: str, model: str, shape: Shape, tp: int, resident: int) -> Cut | None:
    """``resident`` experts of each layer on ``tp`` GPUs, the others at the part of the host that goes with those."""
    described, llm, routed = instance.hardware.groups[group], instance.models[model], shape.routed
    host = described.host
    if host is None or routed is None or resident > routed.experts or tp > described.per_server:
        return None
    if tp > 1 and described.scale_up is None:
        return None
    if sections.expert_bytes(shape, routed.experts - resident) > host_room(instance, group, tp):
        return None
    sockets = host.sockets * tp / described.per_server
    engine = Engine(sockets * host.cpu.kernels[host.kernel], sockets * host.cpu.bandwidth)
    width = llm.moe_intermediate_size or llm.intermediate_size
    layout = Hosted(resident, engine, tp * host.link.payload_bandwidth, host.link.startup, width)
    device = _with(physics.device_of(instance, described, shape.precision, tp), layout)
    return Cut(device, tp, tp, resident=resident)


def host_room(instance: Instance, group: str, tp: int) -> float:
    """Bytes of host memory that go with ``tp`` GPUs of a server."""
    described = instance.hardware.groups[group]
    host = described.host
    return 0.0 if host is None else host.sockets * host.cpu.memory * tp / described.per_server
