"""Units of any cut and of any rate: unit-seconds, memory and times, written again from the described hardware alone.

Where `accounting` knows units of one GPU and requests of one length, here a unit may be cut over several GPUs, a
workload may have several lengths and targets, and a unit may be stated by measurement.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from models.given import Measured
from models.instance import Instance
from models.workload import Workload
from tests.against.network import Channel, Network
from tests.against.wide_cards import NEVER, Card, Cut, Load, cuts

KINDS = {"replicas": "replicas", "chunked": "chunked", "pd-direct": "prefill decode", "pd-pooled": "prefill decode"}


@dataclass(frozen=True)
class Wide:
    """One kind of unit, with what a request takes of it."""

    kind: str
    group: str
    model: str
    seconds: dict[str, tuple[float, ...]]
    """Workload -> unit-seconds of each resource; only workloads that it may serve."""
    cards: int
    block: int
    """GPUs that have to be in one server."""
    startup: float
    price: float
    power: float
    first: dict[str, float] = field(default_factory=dict)
    """Workload -> seconds of its prefill through all stages."""
    load: dict[str, dict[Channel, float]] = field(default_factory=dict)
    """Workload -> share of a channel that one request a second takes between the stages."""
    cut: tuple[int, int] = (1, 1)
    measured: str | None = None
    tau: float | None = None

    @property
    def stage(self) -> str:
        return self.kind if self.kind in ("prefill", "decode") else "both"

    @property
    def resources(self) -> int:
        return len(next(iter(self.seconds.values())))


def buffer(kind: str, load: Load) -> float:
    return {"prefill": 2, "decode": 1, "replicas": 0, "chunked": 1}[kind] * load.input


def batch_of(card: Card, kind: str, workload: Workload, load: Load, held: float) -> int:
    """Requests that the unit holds at once; 0 where it cannot serve the workload."""
    room, pp = card.room() - held, card.cut.pp
    if kind == "prefill":
        return 1 if room >= 0 else 0
    most = 0 if load.largest > room else math.floor(room / load.held)
    wanted = workload.batch if isinstance(workload.batch, int) and workload.decodes else None
    if most < pp or (wanted is not None and not pp <= wanted <= most):
        return 0
    return pp if not workload.decodes else wanted or most


def spent(card: Card, kind: str, load: Load, batch: int) -> tuple[float, ...]:
    """Unit-seconds of a request by resource; stages work on parts of the batch in turn."""
    if kind == "prefill":
        return (load.prefill,)
    size, step = max(1, batch // card.cut.pp), load.step
    beside = step.beside / size + step.each_beside
    compute = load.calls * (step.each_compute + beside)
    memory = load.calls * (step.memory / size + step.each_memory + beside)
    if kind == "decode":
        return (compute, memory)
    if kind == "chunked":
        return (load.compute + load.beside + compute, load.memory + load.beside + memory)
    return (load.prefill + max(compute, memory),)


def late(card: Card, kind: str, workload: Workload, load: Load, batch: int) -> bool:
    """Whether a unit with this batch breaks a target at its worst."""
    targets, pp = workload.targets, card.cut.pp
    first, token = (0.0 if kind == "decode" else load.first), 0.0
    if kind != "prefill" and workload.decodes:
        size, step = max(1, batch // pp), load.step
        token = pp * step.seconds(size)
        if kind != "decode":
            token = batch * max(spent(card, kind, load, batch)) / load.calls
        if kind == "chunked":
            compute, memory = size * step.each_compute, step.memory + size * step.each_memory
            whole, beside = step.seconds(size), step.beside + size * step.each_beside
            first = NEVER
            if memory > compute:
                chunks = math.ceil(load.longest_new / ((memory - compute) / (load.longest / load.longest_new)))
                least = load.longest / max(1.0 - (compute + beside) / whole, 1e-12) + pp * whole
                first = max((chunks + pp - 1) * whole, least)
    return first > (targets.ttft or NEVER) * (1 + 1e-9) or token > (targets.tpot or NEVER) * (1 + 1e-9)


def paced(card: Card, kind: str, loads: dict[str, tuple[Workload, Load]], tau: float) -> dict[str, tuple[float, ...]]:
    """Unit-seconds by resource of a unit that gives every request a token each ``tau`` seconds; no first-token row."""
    sigma, able = tau / card.cut.pp, {}
    for name, (workload, load) in loads.items():
        slow = workload.decodes and load.step.seconds(1) > sigma * (1 + 1e-12)
        missed = workload.decodes and tau > (workload.targets.tpot or NEVER) * (1 + 1e-9)
        first = kind == "replicas" and load.first > (workload.targets.ttft or NEVER) * (1 + 1e-9)
        if not (slow or missed or first):
            able[name] = (workload, load)
    if not able:
        return {}
    room = card.room() - max(buffer(kind, load) for _, load in able.values())
    takes: dict[str, tuple[float, ...]] = {}
    for name, (workload, load) in able.items():
        before = {"decode": (0.0, 0.0), "chunked": (load.compute + load.beside, load.memory + load.beside)}
        compute, memory = before.get(kind, (load.prefill, load.prefill))
        step = load.step
        compute += load.calls * (step.each_compute + step.each_beside)
        memory += load.calls * (step.each_memory + step.each_beside)
        takes[name] = (
            compute / (1 - step.beside / sigma),
            memory / (1 - (step.memory + step.beside) / sigma),
            load.calls * tau * load.held / room,
            load.calls * tau / workload.batch if isinstance(workload.batch, int) else 0.0,
        )
    return takes


def is_paced(kind: str, workloads: list[Workload]) -> bool:
    """Whether a unit of this kind has to keep a step time: where a target leaves the batch open, and where a unit with
    targets serves several workloads.
    """
    decoding = [w for w in workloads if w.decodes]
    if kind == "prefill" or not decoding:
        return False
    first = [w for w in workloads if kind == "chunked" and w.targets.ttft]
    token = [w for w in decoding if w.targets.tpot]
    if len(workloads) > 1:
        return bool(first or token)
    return bool(first or token) and not isinstance(workloads[0].batch, int)


def full_step(card: Card, kind: str, workload: Workload, load: Load, held: float) -> float | None:
    """Time per token when memory is full of one workload."""
    free = workload.model_copy(update={"batch": "max"})
    batch = batch_of(card, kind, free, load, held)
    if isinstance(workload.batch, int):
        batch = min(batch, workload.batch)
    return card.cut.pp * load.step.seconds(max(1, batch // card.cut.pp)) if batch and workload.decodes else None


def taus(card: Card, kind: str, loads: dict[str, tuple[Workload, Load]]) -> list[float]:
    """Step times worth trying: every target, where memory is full, and the best of each workload alone, by search."""
    targets = [w.targets.tpot for w, _ in loads.values()]
    points = {target for target in targets if target is not None}
    most = NEVER if None in targets else max(points)
    held = max(buffer(kind, load) for _, load in loads.values())
    full = [full_step(card, kind, w, load, held) for w, load in loads.values()]
    chosen = {n: wl for n, wl in loads.items() if wl[0].decodes}
    best = [_best(card, kind, name, wl, most, held) for name, wl in chosen.items()]
    points |= {min(seconds, most) for seconds in (*full, *best) if seconds is not None}
    return sorted(points)


def _best(card: Card, kind: str, name: str, wl: tuple[Workload, Load], most: float, held: float) -> float | None:
    """The step time at which a request takes the least of a unit that serves this workload alone beside ``held``."""

    def needs(tau: float) -> float:
        takes = paced(card, kind, {name: wl}, tau).get(name)
        if takes is None:
            return NEVER
        compute, memory, kv, slots = takes
        own = card.room() - buffer(kind, wl[1])
        return max(compute, memory, kv * own / (card.room() - held), slots) if card.room() > held else NEVER

    low = card.cut.pp * wl[1].step.seconds(1) * (1 + 1e-12)
    high = min(most, 1e6 * low)
    if not low < high:
        return None
    while high > low * (1 + 1e-11):  # needs falls, then rises
        third = (high / low) ** (1 / 3)
        if needs(low * third) > needs(high / third):
            low *= third
        else:
            high /= third
    return min(low, most) if needs(low) < NEVER else None


def _built(
    card: Card, kind: str, loads: dict[str, tuple[Workload, Load]]
) -> Iterator[tuple[dict[str, tuple[float, ...]], float | None]]:
    """Unit-seconds of every unit of a kind and cut, set by set of the workloads that share it."""
    alone = {n: wl for n, wl in loads.items() if batch_of(card, kind, *wl, buffer(kind, wl[1]))}
    for name, (workload, load) in list(alone.items()):
        fixed = isinstance(workload.batch, int) or kind == "prefill" or not workload.decodes
        batch = batch_of(card, kind, workload, load, buffer(kind, load))
        first = kind == "replicas" and load.first > (workload.targets.ttft or NEVER) * (1 + 1e-9)
        if first or (fixed and late(card, kind, workload, load, batch)):
            del alone[name]
    while alone:
        some = dict(alone)
        while kind != "prefill":
            held = max(buffer(kind, load) for _, load in some.values())
            if all(batch_of(card, kind, *wl, held) for wl in some.values()):
                break
            some.pop(max(some, key=lambda n: buffer(kind, some[n][1])))
        held = max(buffer(kind, load) for _, load in some.values())
        if is_paced(kind, [w for w, _ in some.values()]):
            yield from ((takes, tau) for tau in taus(card, kind, some) if (takes := paced(card, kind, some, tau)))
        else:
            yield {n: spent(card, kind, wl[1], batch_of(card, kind, *wl, held)) for n, wl in some.items()}, None
        alone = {n: wl for n, wl in alone.items() if n not in some}


def _charges(instance: Instance, kind: str, cut: Cut, load: Load, hidden: int) -> dict[Channel, float]:
    tokens = {"prefill": load.tokens[0], "decode": load.tokens[1]}.get(kind, sum(load.tokens))
    total: dict[Channel, float] = {}
    for channel, bandwidth in cut.channels:
        total[channel] = total.get(channel, 0.0) + (cut.pp - 1) * 2.0 * hidden * tokens / bandwidth
    return total


def computed(instance: Instance, network: Network, kind: str, name: str, model: str) -> Iterator[Wide]:
    """Units of a kind for a model on a group."""
    group, llm = instance.hardware.groups[name], instance.models[model]
    served = {
        label: w
        for label, w in instance.workloads.items()
        if w.model == model
        and name not in w.deny
        and (not w.allow or name in w.allow)
        and not (kind == "decode" and not w.decodes)
    }
    for cut in cuts(instance, network, name, model):
        card = Card(instance, group, llm, cut)
        loads = {label: (w, Load.of(card, w)) for label, w in served.items()}
        for takes, tau in _built(card, kind, loads):
            cards = cut.tp * cut.pp
            yield Wide(
                kind=kind,
                group=name,
                model=model,
                seconds=takes,
                cards=cards,
                block=cut.block,
                startup=instance.startup(name),
                price=cards * (group.price or 0.0),
                power=cards * (group.accelerator.power or 0.0),
                first={label: loads[label][1].first for label in takes},
                load={label: _charges(instance, kind, cut, loads[label][1], llm.hidden_size) for label in takes},
                cut=(cut.tp, cut.pp),
                tau=tau,
            )


def stated(instance: Instance, label: str, unit: Measured, schemes: list[str]) -> Iterator[Wide]:
    """A measured unit, if the schemes have such units and any workload has a rate."""
    group, first = instance.hardware.groups[unit.group], {}
    takes: dict[str, tuple[float, ...]] = {}
    for name, w in instance.workloads.items():
        if w.model != unit.model or not w.may_use(unit.group) or (unit.stage == "decode" and not w.decodes):
            continue
        points = []
        for one in w.classes:
            able = [p for p in unit.table if p.input >= one.input and p.output >= one.output]
            points.append(max(able, key=lambda p: p.rate) if able else None)
        if name in unit.rates:
            seconds = 1.0 / unit.rates[name]
        elif points and all(points):
            seconds = sum(one.share / p.rate for one, p in zip(w.classes, points, strict=True) if p)
        else:
            continue
        slow = [p for p in points if p is not None and (p.ttft or p.tpot)]
        times: tuple[float | None, float | None] = (unit.ttft, unit.tpot)
        if slow:
            times = max(((p.ttft, p.tpot) for p in slow), key=lambda t: (t[0] or 0.0, t[1] or 0.0))
        if unit.stage != "decode" and w.targets.ttft and (times[0] is None or times[0] > w.targets.ttft):
            continue
        if unit.stage != "prefill" and w.decodes and w.targets.tpot and (times[1] is None or times[1] > w.targets.tpot):
            continue
        takes[name], first[name] = (seconds,), times[0] or 0.0
    whole = [unit.scheme] if unit.scheme else ["replicas", "chunked"]
    kinds = [s for s in schemes if s in whole] if unit.stage == "both" else [unit.stage]
    apart = any(s in ("pd-direct", "pd-pooled") for s in schemes)
    if takes and kinds and (unit.stage == "both" or apart):
        yield Wide(
            kind=kinds[0],
            group=unit.group,
            model=unit.model,
            seconds=takes,
            cards=unit.size,
            block=unit.size if unit.size <= group.per_server else unit.tp,
            startup=instance.startup(unit.group) if unit.startup is None else unit.startup,
            price=unit.size * (group.price or 0.0) if unit.price is None else unit.price,
            power=unit.size * (group.accelerator.power or 0.0),
            first=first,
            cut=(unit.tp, unit.pp),
            measured=label,
        )


def wide_units(instance: Instance, network: Network, schemes: list[str]) -> list[Wide]:
    """Every unit that can be built with the schemes."""
    kinds = dict.fromkeys(kind for scheme in schemes for kind in KINDS[scheme].split())
    given = {(m.group, m.model) for m in instance.measured.values() if not m.beside_computed}
    found = [one for label, unit in instance.measured.items() for one in stated(instance, label, unit, schemes)]
    for name in instance.hardware.groups:
        for model in dict.fromkeys(w.model for w in instance.workloads.values()):
            if (name, model) not in given:
                found += [one for kind in kinds for one in computed(instance, network, kind, name, model)]
    return found
