"""Candidates: every sensible way to build one deployment unit, checked against memory and targets.

A candidate knows nothing of the master problem; the master problem knows nothing of schemes. What cannot be built is
not made, and the reason is kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from models.instance import Instance
from models.workload import Workload
from solver import features, paced, physics, startup, units
from solver.candidate import Beside, Candidate, Made, Rejected
from solver.cut import Cut
from solver.layouts.tried import tried
from solver.misfit import given_batch, misfit, no_cut
from solver.physics import Device, Shape
from solver.tiers import states
from solver.topology import Topology
from solver.units import Kind


def make(instance: Instance, topology: Topology, kind: Kind, schemes: tuple[str, ...], group: str, model: str) -> Made:
    """Units of ``kind`` for ``model`` on ``group``: one for each cut and each choice of batch or step time."""
    shape = units.shape_of(kind, instance.models[model])
    workloads = units.served(instance, kind, group, model)
    cuts, none = tried(instance, topology, kind, group, model, shape, workloads)
    cuts = [with_cache(instance, topology, group, cut) for cut in cuts]
    made: Made = []
    refused: dict[str, Rejected] = {}
    for cut in cuts:
        for unit in _of_cut(instance, topology, kind, schemes, group, model, cut, shape, workloads):
            if isinstance(unit, Rejected):
                refused[unit.workload] = unit  # the widest cut says most
            else:
                made.append(unit)
    able = {name for unit in made if isinstance(unit, Candidate) for name in unit.demand}
    for name in workloads:
        if name not in able:
            reason = none or no_cut(instance, group, model, shape)
            rejected = refused.get(name) or Rejected(schemes, kind.stage, group, name, reason)
            made.append(rejected)
    return made


def _of_cut(
    instance: Instance,
    topology: Topology,
    kind: Kind,
    schemes: tuple[str, ...],
    group: str,
    model: str,
    cut: Cut,
    shape: Shape,
    workloads: Mapping[str, Workload],
) -> Iterator[Candidate | Rejected]:
    fitting: dict[str, Workload] = {}
    for name, workload in workloads.items():
        limit, reason = misfit(instance, kind, shape, cut, group, workload)
        if features.cache_charges(instance, topology, group, shape, workload) is None:
            limit, reason = "links", "no link joins it and the encoder cache"
        if reason:
            yield Rejected(schemes, kind.stage, group, name, reason, limit)
        else:
            fitting[name] = workload
    price = instance.hardware.groups[group].price or 0.0
    label = _label(instance, kind, schemes, group, model, cut)
    for together in _sets(kind, shape, cut.device, fitting):
        for built in _built(kind, shape, cut, together):
            if isinstance(built, tuple):
                yield Rejected(schemes, kind.stage, group, *built)
                continue
            able = {name: together[name] for name in built.demand}
            unit = Candidate(
                name="",
                label=label,
                schemes=schemes,
                kind=kind,
                group=group,
                model=model,
                cards=cut.cards + cut.inside,
                batches=built.batches,
                demand=built.demand,
                memory=built.memory,
                startup=startup.seconds(instance, group, _heaviest(shape, cut)),
                price=(cut.cards + cut.inside) * price,
                resources=built.resources,
                tp=cut.tp,
                pp=cut.pp,
                block=cut.block,
                cut=cut,
                beside=_beside(instance, cut),
                tau=built.tau if built.tau > 0 else None,
                first=_first_tokens(kind, shape, cut, able),
                charges=charges(instance, kind, shape, topology, group, cut, able),
                device=cut.device,
                power=_power(instance, group, cut),
                hits=states.hits(kind, shape, cut.device, able, built.demand, built.scale),
                room=_room(instance, group, shape, cut, able, built) if instance.reuses else 0.0,
            )
            if kind == units.HYBRID:
                parts = (units.PREFILL, units.DECODE)
                sent = {part: charges(instance, part, shape, topology, group, cut, able) for part in parts}
                yield from faces(unit, shape, able, sent)
            else:
                yield unit


def _room(
    instance: Instance, group: str, shape: Shape, cut: Cut, able: Mapping[str, Workload], built: paced.Paced
) -> float:
    early = states.early_layers(instance, group)
    return states.room(shape, cut, able.values(), built.memory.free, early)


def _beside(instance: Instance, cut: Cut) -> tuple[Beside, ...]:
    groups = instance.hardware.groups
    return tuple(
        Beside(part.group, part.cards, part.block, part.cards * (groups[part.group].price or 0.0))
        for part in cut.parts
        if part.block
    )


def _heaviest(shape: Shape, cut: Cut) -> float:
    """Bytes of weights on the fullest GPU of a unit, parts included."""
    others = (part.weights + part.experts for part in cut.parts)
    return max(physics.weights_on_card(shape, cut.device), *others, 0.0)


def _power(instance: Instance, group: str, cut: Cut) -> float:
    """Board power of all GPUs of a unit, as far as it is known."""
    groups = instance.hardware.groups
    counts = [(group, cut.cards), *((part.group, part.cards) for part in cut.parts)]
    return sum(count * (groups[name].accelerator.power or 0.0) for name, count in counts)


def faces(
    unit: Candidate, shape: Shape, workloads: Mapping[str, Workload], sent: Mapping[Kind, dict[str, dict[str, float]]]
) -> Iterator[Candidate]:
    """A unit of many uses: of whole requests, and without GPUs of their own, of prefill alone and of decode alone.

    It does one thing at a time, so what all uses take adds up; ``sent`` is what each stage sends between its stages.
    """
    gpu = unit.device
    if gpu is None:
        return
    shared = f"{unit.label} {sorted(unit.batches.items())}"
    whole = {name: (max(need),) for name, need in unit.demand.items()}
    yield replace(unit, demand=whole, resources=("time",), shared=shared)
    costs = {name: units.costs(shape, gpu, workload) for name, workload in workloads.items()}
    first = {n: costs[n].first_token for n, w in workloads.items() if w.targets.ttft is not None}
    alone = {name: (cost.prefill_seconds,) for name, cost in costs.items()}
    none = replace(
        unit, cards=0, block=0, price=0.0, power=0.0, room=0.0, resources=("time",), shared=shared, face=True
    )
    none = replace(none, charges=sent[units.PREFILL])
    yield replace(none, kind=units.PREFILL, label=f"{unit.label}/prefill", demand=alone, first=first)
    decoded = {n: (whole[n][0] - alone[n][0],) for n, workload in workloads.items() if workload.decodes}
    if decoded:
        yield replace(none, kind=units.DECODE, label=f"{unit.label}/decode", demand=decoded, charges=sent[units.DECODE])


def _label(instance: Instance, kind: Kind, schemes: tuple[str, ...], group: str, model: str, cut: Cut) -> str:
    parts = [schemes[0] if kind.stage == "both" else kind.stage, f"@{group}"]
    parts.append(f"/{model}" if len(instance.models) > 1 else "")
    parts.append(f"/{cut.label}" if cut.label else "")
    return "".join(parts)


def _built(
    kind: Kind, shape: Shape, cut: Cut, together: Mapping[str, Workload]
) -> Iterator[paced.Paced | tuple[str, str, str]]:
    """Units that serve ``together``: one for each batch, or for each step time; or workload, reason, and limit."""
    gpu = cut.device
    if kind == units.HYBRID or not paced.is_paced(kind, together):
        batches = _batches(kind, shape, gpu, together)
        lines = units.lines_of(kind, shape, gpu, together, batches)
        demand = {n: units.demand(kind, shape, gpu, w, batches[n], lines.get(n)) for n, w in together.items()}
        use = units.memory_use(kind, shape, gpu, together, batches)
        resources = kind.resources if kind == units.HYBRID else units.resources(kind, gpu)
        yield paced.Paced(0.0, resources, demand, batches, use)
        return
    able: set[str] = set()
    points = paced.grid(kind, shape, gpu, together)
    for tau in points:
        unit = paced.at(kind, shape, gpu, together, tau)
        if unit is not None:
            able |= set(unit.demand)
            yield unit
    for name, workload in together.items():
        if name not in able:
            tau = min(workload.targets.tpot or points[-1], points[-1])
            reason = paced.floor(kind, shape, gpu, workload, tau) or "no step time keeps its targets"
            yield name, f"{reason} ({cut.text})", "targets"


def _first_tokens(kind: Kind, shape: Shape, cut: Cut, workloads: Mapping[str, Workload]) -> dict[str, float]:
    if kind.stage != "prefill":
        return {}
    return {
        name: units.costs(shape, cut.device, workload).first_token
        for name, workload in workloads.items()
        if workload.targets.ttft is not None
    }


def with_cache(instance: Instance, topology: Topology, group: str, cut: Cut) -> Cut:
    """A cut that knows how quick the encoder cache is."""
    cached = features.cached_at(instance, topology, group)
    return cut if cached is None else replace(cut, device=replace(cut.device, cached=cached))


def charges(
    instance: Instance,
    kind: Kind,
    shape: Shape,
    topology: Topology,
    group: str,
    cut: Cut,
    workloads: Mapping[str, Workload],
) -> dict[str, dict[str, float]]:
    """By workload: share of each channel that one request a second takes between the parts of a unit, and of what it
    takes to and from the encoder cache.
    """
    charged = {}
    for name, workload in workloads.items():
        new = sum(one.share * (one.input - one.cached) for one in workload.classes) if kind.stage != "decode" else 0.0
        calls = physics.mean_calls(workload) if kind.stage != "prefill" else 0.0
        shares = cut.charges(topology, new + calls)
        if kind.stage != "decode":
            for resource, share in (features.cache_charges(instance, topology, group, shape, workload) or {}).items():
                shares[resource] = shares.get(resource, 0.0) + share
        if shares:
            charged[name] = shares
    return charged


def _buffer(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> float:
    """A unit keeps one buffer, as large as the largest that it may need."""
    return max(units.buffers(kind, shape, gpu, workload) for workload in workloads.values())


def _together(
    kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]
) -> Iterator[dict[str, Workload]]:
    """Sets of workloads that one unit can serve: all of them, unless the buffer of one leaves no room for another."""
    left = dict(workloads)
    while left:
        chosen = dict(left)
        while kind.stage != "prefill" and not _all_fit(kind, shape, gpu, chosen):
            del chosen[max(chosen, key=lambda name: units.buffers(kind, shape, gpu, chosen[name]))]
        yield chosen
        left = {name: workload for name, workload in left.items() if name not in chosen}


FEWER = 0.9
"""Part of the experts that the largest batch touches, below which a workload may be better off alone."""


def _sets(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> Iterator[dict[str, Workload]]:
    """Sets of workloads that one unit can serve; and those alone whose small batches touch few experts, though others
    would have every step read many.
    """
    for together in _together(kind, shape, gpu, workloads):
        yield together
        if shape.routed is None or len(together) == 1 or kind.stage == "prefill":
            continue
        batches = _batches(kind, shape, gpu, together)
        touched = {name: shape.routed.touched(units.in_step(gpu, batch)) for name, batch in batches.items()}
        for name, workload in together.items():
            if touched[name] < FEWER * max(touched.values()):
                yield {name: workload}


def _all_fit(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> bool:
    buffer = _buffer(kind, shape, gpu, workloads)
    return all(
        units.largest_batch(shape, gpu, workload, buffer) >= (given_batch(workload) or gpu.pp)
        for workload in workloads.values()
    )


def _batches(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> dict[str, int]:
    """Batches by workload: as given, else the largest: without a target, a smaller one is never better."""
    if kind.stage == "prefill":
        return dict.fromkeys(workloads, 1)
    buffer = _buffer(kind, shape, gpu, workloads)
    return {
        n: gpu.pp if not w.decodes else given_batch(w) or units.largest_batch(shape, gpu, w, buffer)
        for n, w in workloads.items()
    }
