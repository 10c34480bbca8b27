"""Which cuts and layouts are tried for a kind of unit, and why there are none."""

from collections.abc import Iterator, Mapping

from models.instance import Instance
from models.units import GIB
from models.workload import Workload
from solver import cuts, physics, units
from solver.cut import Cut
from solver.layouts import build, sections
from solver.layouts.apart import Apart
from solver.layouts.hosted import Hosted
from solver.layouts.spread import Spread
from solver.physics import Shape
from solver.topology import Topology
from solver.units import Kind

WIDEST = 64
"""GPUs of one side of a unit that are tried where nothing is stated."""
MICRO = (1, 2, 4)
"""Micro-batches that are tried."""
MORE_SLOTS = (0, 1, 2)
"""Slots for replicas that are tried on each GPU with experts, where some experts are popular."""
BEST = 3
"""Units with parts on two groups that are kept of each pair beside the smallest: the best for their size."""


def tried(
    instance: Instance,
    topology: Topology,
    kind: Kind,
    group: str,
    model: str,
    shape: Shape,
    workloads: Mapping[str, Workload],
) -> tuple[list[Cut], str]:
    """Cuts of a kind of unit for ``model`` on ``group``; where there are none, why."""
    if kind.layout in ("plain", "spread"):
        stated = cuts.both(instance.hardware.groups[group].ep, instance.models[model].ep)
        whole = shape.routed is None or stated is None or 1 in stated
        plain = cuts.cuts(instance, topology, group, model, shape) if whole else []
        spread = list(_spread(instance, topology, group, model, shape)) if kind.layout == "spread" else []
        spread = [cut for cut in spread if cut.micro == 1 or kind.stage != "prefill"]  # prompts come whole
        return [*plain, *spread], "" if whole else "only units of EP are allowed here, which it has not"
    if not workloads:
        return [], ""
    if kind.layout == "host":
        return _hosted(instance, group, model, shape)
    if kind.layout == "experts" and shape.routed is None:
        return [], "the model has no experts that tokens choose"
    return _apart(instance, topology, kind, group, model, shape, workloads)


def again(instance: Instance, topology: Topology, group: str, model: str, shape: Shape, cut: Cut) -> Cut | None:
    """A cut of the same degrees under other conditions."""
    layout = cut.device.layout
    if isinstance(layout, Spread):
        degrees = (cut.tp, cut.ep, cut.dp, cut.micro, cut.redundant)
        return build.spread(instance, topology, group, shape, *degrees)
    if isinstance(layout, Apart):
        part = cut.parts[0]
        sizes = (cut.tp, cut.dp, part.group, part.cards)
        return build.apart(instance, topology, group, model, shape, *sizes, layout.pooled, cut.micro, cut.redundant)
    if isinstance(layout, Hosted):
        return build.hosted(instance, group, model, shape, cut.tp, layout.resident)
    return cuts.one(instance, topology, group, shape, cut.tp, cut.pp)


def _or(stated: list[int] | None, usual: list[int]) -> list[int]:
    """What is stated, though it be nothing; else what is usual."""
    return usual if stated is None else stated


def _powers(most: int) -> list[int]:
    return [2**power for power in range(max(most, 1).bit_length())]


def _spread(instance: Instance, topology: Topology, group: str, model: str, shape: Shape) -> Iterator[Cut]:
    """Experts over the GPUs of a unit: each GPU, or as few as hold attention, with its own requests; and the same
    attention on all GPUs of a server.
    """
    described, llm = instance.hardware.groups[group], instance.models[model]
    if shape.routed is None or described.scale_up is None:
        return
    stated, groups = cuts.both(described.ep, llm.ep), cuts.both(described.dp, llm.dp)
    most = min(_at_most(instance, group, WIDEST), shape.routed.experts)
    wide = [ep for ep in _or(stated, _powers(most)) if ep > 1]
    narrow = _narrowest(instance, group, model, shape, shape.own_params)
    tensor = sorted({*narrow, *cuts.tensor(described, llm)[-1:]})
    for ep in wide:
        for tp in tensor:
            dp = ep // tp
            if ep % tp == 0 and dp > 1 and (groups is None or dp in groups):
                for micro in MICRO[:2]:
                    for redundant in _replicas(shape, ep):
                        cut = build.spread(instance, topology, group, shape, tp, ep, dp, micro, redundant)
                        yield from [] if cut is None else [cut]
    if groups is not None and 1 not in groups:
        return
    for tp in cuts.tensor(described, llm):
        for ep in _or(stated, [described.per_server // tp]):
            if tp > 1 and 1 < ep <= described.per_server // tp:
                cut = build.spread(instance, topology, group, shape, tp, ep, 1)
                yield from [] if cut is None else [cut]


def _replicas(shape: Shape, places: int) -> list[int]:
    """Replicas of a layer that are tried: none, or what fills places evenly; more where some experts are popular."""
    routed = shape.routed
    if routed is None:
        return [0]
    least = -routed.experts % places
    if routed.loads is None:
        return [] if least else [0]
    return [least + places * more for more in MORE_SLOTS]


def _at_most(instance: Instance, group: str, widest: int) -> int:
    """GPUs of a group that there are or may be bought, no more than ``widest``."""
    described = instance.hardware.groups[group]
    if described.servers == "unlimited":
        return widest
    bundles = (b for b in instance.hardware.bundles.values() if group in b.cards)
    sold = sum(b.cards[group] * (widest if b.at_most is None else b.at_most) for b in bundles)
    return min(widest, described.cards + sold)


def _narrowest(instance: Instance, group: str, model: str, shape: Shape, params: float) -> list[int]:
    """Degrees of tensor parallelism for attention: those stated, else the least that leaves half a GPU for state."""
    described, llm = instance.hardware.groups[group], instance.models[model]
    allowed = cuts.tensor(described, llm)
    if described.tp or llm.tp:
        return allowed
    room = described.accelerator.memory * described.usable
    held = sections.resident_bytes(shape, params)
    return next(([tp] for tp in allowed if held / tp <= cuts.ROOMY * room), allowed[-1:])


def _apart(
    instance: Instance,
    topology: Topology,
    kind: Kind,
    group: str,
    model: str,
    shape: Shape,
    workloads: Mapping[str, Workload],
) -> tuple[list[Cut], str]:
    pooled, llm = kind.layout == "experts", instance.models[model]
    kept, reason = list[Cut](), "no link joins its parts"
    params = shape.own_params if pooled else shape.attention_params
    for other, there in instance.hardware.groups.items():
        stated = cuts.both(there.ep, llm.ep) if pooled else None
        widest = WIDEST if pooled else there.per_server
        found: list[tuple[float, int, Cut]] = []
        for count in _or(stated, _powers(_at_most(instance, other, widest))):
            if not pooled and not _cuts_widths(llm.intermediate_size, llm.moe_intermediate_size, count):
                continue
            for tp in _narrowest(instance, group, model, shape, params):
                for cut in _sizes(instance, topology, group, model, shape, tp, other, count, pooled):
                    worth = _worth(instance, kind, shape, group, cut, workloads)
                    if worth > 0.0:
                        found.append((worth, cut.cards + count, cut))
                    else:
                        reason = "attention leaves no room for a request"
        kept.extend(_best(found))
    if not kept and reason.startswith("no link"):
        reason = _too_large(instance, shape, pooled) or reason
    return kept, "" if kept else reason


def _cuts_widths(width: int, moe: int | None, count: int) -> bool:
    return width % count == 0 and (moe is None or moe % count == 0)


def _sizes(
    instance: Instance,
    topology: Topology,
    group: str,
    model: str,
    shape: Shape,
    tp: int,
    other: str,
    count: int,
    pooled: bool,
) -> Iterator[Cut]:
    described, llm = instance.hardware.groups[group], instance.models[model]
    usual = _powers(_at_most(instance, group, WIDEST) // tp)
    for dp in _or(cuts.both(described.dp, llm.dp), usual):
        for micro in MICRO:
            for redundant in _replicas(shape, count) if pooled else [0]:
                sizes = (tp, dp, other, count, pooled, micro, redundant)
                cut = build.apart(instance, topology, group, model, shape, *sizes)
                yield from [] if cut is None else [cut]


def _worth(
    instance: Instance, kind: Kind, shape: Shape, group: str, cut: Cut, workloads: Mapping[str, Workload]
) -> float:
    """Requests/s for the money, or for each GPU where prices are not stated, of the workload with most arrivals."""
    workload = max(workloads.values(), key=lambda one: one.rate)
    cost = units.costs(shape, cut.device, workload)
    buffer = max(units.buffers(kind, shape, cut.device, one) for one in workloads.values())
    batch = float(units.largest_batch(shape, cut.device, workload, buffer))
    if isinstance(workload.batch, int):
        batch = min(batch, float(workload.batch))
    if batch < 1.0:
        return 0.0
    if workload.targets.tpot is not None:
        batch = cost.step.within(workload.targets.tpot, batch)
        if batch < 1.0:
            return 1e-12  # it is made, so that it is told which target it misses
    seconds = cost.calls * cost.step.at(batch).seconds / batch + (cost.prefill_seconds if kind.stage == "both" else 0.0)
    groups = instance.hardware.groups
    price = cut.cards * (groups[group].price or 0.0)
    price += sum(part.cards * (groups[part.group].price or 0.0) for part in cut.parts)
    size = price or float(cut.cards + sum(part.cards for part in cut.parts))
    return 1.0 / (seconds * size) if seconds > 0.0 else 0.0


def _best(found: list[tuple[float, int, Cut]]) -> list[Cut]:
    """The best for their size: each better than every smaller one; the smallest, and a few of the best."""
    rising: list[tuple[float, int, Cut]] = []
    for one in sorted(found, key=lambda entry: (entry[1], -entry[0])):
        if not rising or one[0] > rising[-1][0] * 1.001:
            rising.append(one)
    return [cut for _, _, cut in {id(one): one for one in (*rising[:1], *rising[-BEST:])}.values()]


def _too_large(instance: Instance, shape: Shape, pooled: bool) -> str:
    """Whether what is handed over fits nowhere."""
    held = shape.element_bytes * (shape.expert_params if pooled else shape.ffn_params + shape.expert_params)
    rooms = {}
    for name, group in instance.hardware.groups.items():
        count = _at_most(instance, name, WIDEST if pooled else group.per_server)
        rooms[name] = count, count * group.accelerator.memory * group.usable
    name, (count, most) = max(rooms.items(), key=lambda one: one[1][1])
    word = "experts" if pooled else "feed-forward networks"
    return f"{word} take {held / GIB:.1f} GiB, {count} {name} hold {most / GIB:.1f}" if held > most else ""


def _hosted(instance: Instance, group: str, model: str, shape: Shape) -> tuple[list[Cut], str]:
    """Experts in host memory: none on the GPU, as many as leave room for state, and between."""
    described, routed = instance.hardware.groups[group], shape.routed
    if routed is None:
        return [], "the model has no experts that tokens choose"
    if described.host is None:
        return [], f"hardware.groups.{group} states no host: its CPUs, their kernel and link"
    found: list[Cut] = []
    narrow = _narrowest(instance, group, model, shape, shape.own_params)
    wider = [tp for tp in cuts.tensor(described, instance.models[model]) if tp >= min(narrow, default=1)]
    for tp in wider[:3]:
        device = physics.device_of(instance, described, shape.precision, tp)
        room = cuts.ROOMY * device.memory * tp - sections.resident_bytes(shape, shape.own_params) / 2.0
        most = min(routed.experts, int(max(0.0, room) // sections.expert_bytes(shape, 1.0)))
        for resident in sorted({most * k // 4 for k in range(5)}):
            cut = build.hosted(instance, group, model, shape, tp, resident)
            found.extend([] if cut is None else [cut])
    held, room = (
        sections.expert_bytes(shape, routed.experts),
        build.host_room(instance, group, max(wider[:3], default=1)),
    )
    reason = f"experts take {held / GIB:.0f} GiB, the part of the host that goes with a unit has {room / GIB:.0f} GiB"
    return found, "" if found else reason
