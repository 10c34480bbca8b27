"""Candidates: every sensible way to build one deployment unit, checked against memory and targets.

A candidate knows nothing of the master problem; the master problem knows nothing of schemes. What cannot be built is
not made, and the reason is kept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from models.instance import Instance
from models.units import GIB
from models.workload import Workload
from solver import features, latency, paced, physics, startup, units
from solver.cut import Cut, Part
from solver.cuts import would_fit
from solver.layouts.tried import tried
from solver.physics import Device, Shape
from solver.topology import Topology
from solver.units import Kind, MemoryUse


@dataclass(frozen=True)
class Beside:
    """GPUs of a unit on another group, or in another server of the same."""

    group: str
    cards: int
    block: int
    price: float
    """Money per second."""


@dataclass(frozen=True)
class Candidate:
    """One way to build a unit; how many of them is for the solver to choose."""

    name: str
    """Unique among the candidates at hand; see :func:`solver.dominance.named`."""
    label: str
    """Stage or scheme, group, model where there are several, and the cut where it is of several GPUs."""
    schemes: tuple[str, ...]
    """Schemes it can be part of."""
    kind: Kind
    group: str
    model: str
    cards: int
    """GPUs of `group`, those of parts that are in the same block included."""
    batches: Mapping[str, int]
    """Requests that it holds at once, by workload."""
    demand: Mapping[str, tuple[float, ...]]
    """By workload: unit-seconds of each resource per request."""
    memory: MemoryUse | None
    """None where it was measured, not computed."""
    startup: float
    """Seconds from stopped to ready."""
    price: float
    """Money per second of its GPUs on `group`; 0 where that has no price."""
    resources: tuple[str, ...] = ("time",)
    tp: int = 1
    pp: int = 1
    block: int = 1
    """GPUs that have to be in one server; a unit has ``cards / block`` such blocks."""
    cut: Cut | None = None
    """None where it was measured."""
    beside: tuple[Beside, ...] = ()
    """Its parts on GPUs outside of that."""
    tau: float | None = None
    """Step time that paces it, in s."""
    first: Mapping[str, float] = field(default_factory=dict)
    """Seconds to the first token without handoff, for workloads with a target for it that prefill here."""
    charges: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By workload: share of a channel that one request a second takes between its stages."""
    measured: str | None = None
    """Name of the measured unit that it is."""
    device: Device | None = None
    power: float = 0.0
    """Board power of one unit, in W; 0 where it is not known."""
    shared: str | None = None
    """What the candidates have in common that are one and the same unit, seen from its several uses."""
    face: bool = False
    """Whether it is another use of a unit that is counted elsewhere: it has no GPUs of its own."""

    @property
    def stage(self) -> str:
        """prefill, decode, both or encode."""
        return self.kind.stage

    @property
    def begins(self) -> bool:
        """Whether each request that it serves begins there, its images apart."""
        return self.stage in ("prefill", "both")

    @property
    def after_encode(self) -> bool:
        """Whether it prefills requests whose images were encoded elsewhere."""
        return self.kind == units.AFTER_ENCODE

    @property
    def all_cards(self) -> int:
        """GPUs of a unit, wherever they are."""
        return self.cards + sum(part.cards for part in self.beside)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts that do not hold context state."""
        return () if self.cut is None or self.face else self.cut.parts

    @property
    def pools(self) -> tuple[tuple[str, str], ...]:
        """Stage and group of each pool that its units make."""
        first = "attention" if self.parts else self.stage
        return (first, self.group), *((part.stage, part.group) for part in self.parts)

    def on(self, group: str) -> int:
        """GPUs of a unit on a group."""
        there = sum(part.cards for part in self.beside if part.group == group)
        return there + (self.cards if self.group == group else 0)

    def price_on(self, group: str) -> float:
        """Money per second of those."""
        there = sum(part.price for part in self.beside if part.group == group)
        return there + (self.price if self.group == group else 0.0)

    def blocks_on(self, group: str) -> Counter[int]:
        """Blocks of a unit on a group, by size."""
        sizes = Counter[int]()
        if self.group == group and self.block:
            sizes[self.block] += self.cards // self.block
        for part in self.beside:
            if part.group == group:
                sizes[part.block] += part.cards // part.block
        return sizes


@dataclass(frozen=True)
class Rejected:
    """A unit that cannot be built."""

    schemes: tuple[str, ...]
    stage: str
    group: str
    workload: str
    reason: str
    limit: str = "memory"
    """What it breaks: memory, or targets."""


Made = list[Candidate | Rejected]


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
            reason = none or _none_joined(instance, group, model, shape)
            rejected = refused.get(name) or Rejected(schemes, kind.stage, group, name, reason)
            made.append(rejected)
    return made


def _none_joined(instance: Instance, group: str, model: str, shape: Shape) -> str:
    """Why no cut of a model can be built on a group at all."""
    described = instance.hardware.groups[group]
    room = described.accelerator.memory * described.usable
    if shape.resident <= room:
        return "no degree of parallelism that is allowed here can be built"
    held = f"weights take {shape.resident / GIB:.1f} GiB, a GPU has {room / GIB:.1f}"
    fits = would_fit(instance, group, model, shape)
    joined = "" if described.per_server > 1 and described.scale_up else ", and no link joins GPUs of several servers"
    return held + joined + (f"; {fits}" if fits else "")


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
        limit, reason = _misfit(instance, kind, shape, cut, group, workload)
        if features.cache_charges(instance, topology, group, shape, workload) is None:
            limit, reason = "links", "no link joins it and the encoder cache"
        if reason:
            yield Rejected(schemes, kind.stage, group, name, reason, limit)
        else:
            fitting[name] = workload
    described = instance.hardware.groups[group]
    label = f"{_label(kind, schemes)}@{group}" + (f"/{model}" if len(instance.models) > 1 else "")
    label += f"/{cut.label}" if cut.label else ""
    for together in _together(kind, shape, cut.device, fitting):
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
                price=(cut.cards + cut.inside) * (described.price or 0.0),
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
            )
            if kind == units.HYBRID:
                parts = (units.PREFILL, units.DECODE)
                sent = {part: charges(instance, part, shape, topology, group, cut, able) for part in parts}
                yield from faces(unit, shape, able, sent)
            else:
                yield unit


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
    none = replace(unit, cards=0, block=0, price=0.0, power=0.0, resources=("time",), shared=shared, face=True)
    first_sent, later_sent = sent[units.PREFILL], sent[units.DECODE]
    none = replace(none, charges=first_sent)
    yield replace(none, kind=units.PREFILL, label=f"{unit.label}/prefill", demand=alone, first=first)
    decoded = {n: (whole[n][0] - alone[n][0],) for n, workload in workloads.items() if workload.decodes}
    if decoded:
        yield replace(none, kind=units.DECODE, label=f"{unit.label}/decode", demand=decoded, charges=later_sent)


def _label(kind: Kind, schemes: tuple[str, ...]) -> str:
    return schemes[0] if kind.stage == "both" else kind.stage


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


def _misfit(instance: Instance, kind: Kind, shape: Shape, cut: Cut, group: str, workload: Workload) -> tuple[str, str]:
    """What keeps a unit from serving ``workload`` even alone, and why; "" when nothing does."""
    gpu = cut.device
    held = physics.weights_on_card(shape, gpu)
    where = "" if cut.cards == 1 else f" a GPU at {cut.text}"
    weights, capacity = f"weights take {held / GIB:.1f}", f"of {gpu.memory / GIB:.1f} GiB{where}"
    if held > gpu.memory:
        larger = would_fit(instance, group, workload.model, shape)
        return "memory", f"{weights} {capacity}; " + (larger or "no unit of such GPUs holds them")
    rest = units.buffers(kind, shape, gpu, workload)
    if kind.stage == "prefill":
        if held + rest > gpu.memory:
            return "memory", f"{weights} and two states {rest / GIB:.1f} {capacity}"
        return _late(kind, shape, cut, workload, 1)
    largest, wanted = units.largest_batch(shape, gpu, workload, rest), _given(workload) or gpu.pp
    if largest < wanted:
        rest += units.resident(kind, shape, gpu, workload, wanted)
        rest = max(rest, physics.largest_state(shape, gpu, workload))
        return "memory", f"{weights} and batch {wanted} takes {rest / GIB:.1f} {capacity}" + (
            f"; at most batch {largest} fits" if largest else ""
        )
    given = _given(workload)
    if given is not None and given < gpu.pp:
        return "memory", f"batch {given} is less than one request for each of {gpu.pp} stages"
    if given is not None or kind == units.HYBRID:
        return _late(kind, shape, cut, workload, given or largest)
    first, target = units.costs(shape, gpu, workload).first_token, workload.targets.ttft
    whole = kind.stage == "both" and not (kind.overlapped and workload.decodes)  # a prefill that nothing interrupts
    if whole and target is not None and first > target * (1.0 + 1e-9):
        return "targets", f"first token after {first:.3g} s at least, target {target:.4g} s ({cut.text})"
    return "", ""


def _late(kind: Kind, shape: Shape, cut: Cut, workload: Workload, batch: int) -> tuple[str, str]:
    """Which target a unit with this batch misses, and by what."""
    gpu = cut.device
    if kind == units.HYBRID and workload.decodes and workload.targets.tpot is not None:
        return "targets", "hybrid units promise nothing about the time per token"
    first, token = latency.bounds(kind, shape, gpu, workload, batch)
    targets = workload.targets
    beside = f" at batch {batch}" if kind.stage != "prefill" else ""
    if targets.ttft is not None and first is not None and first > targets.ttft * (1.0 + 1e-9):
        return "targets", f"first token after {first:.3g} s at least{beside}, target {targets.ttft:.4g} s ({cut.text})"
    if targets.tpot is not None and token is not None and token > targets.tpot * (1.0 + 1e-9):
        reason = f"{1e3 * token:.3g} ms per token{beside}, target {1e3 * targets.tpot:.4g} ms ({cut.text})"
        return "targets", reason
    return "", ""


def _given(workload: Workload) -> int | None:
    """The batch that the instance states, where one matters."""
    return workload.batch if isinstance(workload.batch, int) and workload.decodes else None


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


def _all_fit(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> bool:
    buffer = _buffer(kind, shape, gpu, workloads)
    return all(
        units.largest_batch(shape, gpu, workload, buffer) >= (_given(workload) or gpu.pp)
        for workload in workloads.values()
    )


def _batches(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> dict[str, int]:
    """Batches by workload: as given, else the largest: without a target, a smaller one is never better."""
    if kind.stage == "prefill":
        return dict.fromkeys(workloads, 1)
    buffer = _buffer(kind, shape, gpu, workloads)
    return {
        n: gpu.pp if not w.decodes else _given(w) or units.largest_batch(shape, gpu, w, buffer)
        for n, w in workloads.items()
    }
