"""Units of any cut and of any rate: unit-seconds, memory and times, written again from the described hardware alone.

Where `accounting` knows units of one GPU and requests of one length, here a unit may be cut over several GPUs, a
workload may have several lengths and targets, and a unit may be stated by measurement.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from models.given import Measured
from models.hardware import Group
from models.instance import Instance
from models.llm import Llm
from models.workload import Length, Workload
from tests.against.accounting import BYTES, Weights, kv_per_token
from tests.against.network import Channel, Network

KINDS = {"replicas": "replicas", "chunked": "chunked", "pd-direct": "prefill decode", "pd-pooled": "prefill decode"}
NEVER = float("inf")


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


@dataclass(frozen=True)
class Cut:
    """A unit over GPUs: tensor-parallel in a server, and stages, which may be in several servers."""

    tp: int
    pp: int
    hop: tuple[float, float] = (NEVER, 0.0)
    """Bandwidth and startup from stage to stage."""
    channels: tuple[tuple[Channel, float], ...] = ()
    """Channels between servers, with their bandwidths."""

    @property
    def block(self) -> int:
        return self.tp if self.channels else self.tp * self.pp


def cut_of(instance: Instance, network: Network, name: str, tp: int, pp: int) -> Cut | None:
    """The cut of these degrees, where GPUs and stages are joined."""
    group = instance.hardware.groups[name]
    wired = group.scale_up
    if tp > group.per_server or (tp > 1 and wired is None):
        return None
    if pp == 1:
        return Cut(tp, 1)
    if tp * pp <= group.per_server and wired is not None:
        return Cut(tp, pp, (wired.bandwidth * wired.link_efficiency, wired.startup))
    near = [link for link, ends in network.ends.items() if name in ends]
    if not near:
        return None
    described = instance.hardware.links
    width = {link: described[link].bandwidth * described[link].link_efficiency for link in near}
    best = min(near, key=lambda link: (-width[link], described[link].startup, link))
    return Cut(tp, pp, (width[best], described[best].startup), tuple(network.channels(best, name, name)))


def cuts(instance: Instance, network: Network, name: str, model: str) -> list[Cut]:
    """Every cut that is to be tried."""
    group, llm = instance.hardware.groups[name], instance.models[model]
    stated_tp = [s for s in (group.tp, llm.tp) if s is not None] or [[1, 2, 4, 8, 16]]
    tps = [t for t in stated_tp[0] if all(t in s for s in stated_tp) and t <= group.per_server and _divides(t, llm)]
    stated_pp = [s for s in (group.pp, llm.pp) if s is not None]
    found: list[Cut | None] = []
    for tp in tps:
        if stated_pp:
            wanted = [p for p in stated_pp[0] if all(p in s for s in stated_pp)]
            found += [cut_of(instance, network, name, tp, pp) for pp in wanted]
            continue
        plain = cut_of(instance, network, name, tp, 1)
        found.append(plain)
        if plain is not None and tp == max(tps) and not _holds(instance, group, llm, plain):
            few = next((p for p in range(2, llm.num_hidden_layers + 1) if _held(instance, network, name, llm, tp, p)), 0)
            found += [cut_of(instance, network, name, tp, p) for p in ((few, 2 * few) if few else ())]
    return [cut for cut in found if cut is not None]


def _divides(tp: int, llm: Llm) -> bool:
    whole = llm.num_attention_heads % tp == 0 and llm.intermediate_size % tp == 0
    return whole and (llm.num_key_value_heads % tp == 0 or tp % llm.num_key_value_heads == 0)


def _held(instance: Instance, network: Network, name: str, llm: Llm, tp: int, pp: int) -> bool:
    cut = cut_of(instance, network, name, tp, pp)
    return cut is not None and _holds(instance, instance.hardware.groups[name], llm, cut)


def _holds(instance: Instance, group: Group, llm: Llm, cut: Cut) -> bool:
    return Card(instance, group, llm, cut).weights < group.accelerator.memory * group.usable


@dataclass(frozen=True)
class Step:
    """Seconds of a decode step of a stage: memory, compute, and beside both; whatever the batch, and of each request.

    ``each_memory`` and ``each_compute`` hold the part beside too where ``beside`` is added to both.
    """

    memory: float
    each_memory: float
    each_compute: float
    beside: float
    each_beside: float

    def seconds(self, size: float) -> float:
        longest = max(self.memory + size * self.each_memory, size * self.each_compute)
        return longest + self.beside + size * self.each_beside


class Card:
    """One GPU of a unit of a cut: the slowest stage decides."""

    def __init__(self, instance: Instance, group: Group, llm: Llm, cut: Cut) -> None:
        self.llm, self.cut, self.group = llm, cut, group
        share = group.efficiency or instance.hardware.efficiency
        peaks = group.accelerator.compute
        self.other = peaks["bf16"] * share.compute
        self.matrix = peaks.get(llm.weights, peaks["bf16"]) * share.compute
        self.bandwidth = group.accelerator.bandwidth * share.bandwidth
        self.size = Weights.of(llm)
        layers, pp = llm.num_hidden_layers, cut.pp
        self.most_layers = math.ceil(layers / pp)
        first, last = self.most_layers / layers, (layers // pp) / layers  # the first stages have the most
        self.stages = [(1.0, True, True)] if pp == 1 else [(first, False, True), (last, True, False)]
        """Share of the layers, whether it has the output head, whether it gathers the embedding rows."""
        heads = llm.num_key_value_heads
        self.kv = kv_per_token(llm) * first * math.ceil(heads / cut.tp) / heads
        """Bytes of a token's state on one GPU."""
        table = 2.0 * self.size.head
        body = self.size.read - table
        self.bodies = [share * body + (table if head else 0.0) for share, head, _ in self.stages]
        self.weights = (self.size.kept if pp == 1 else first * body + table) / cut.tp
        """The first stage holds the input embedding, the last the output head."""

    def room(self) -> float:
        return self.group.accelerator.memory * self.group.usable - self.weights

    def beside(self, tokens: float) -> float:
        """Two sums over the GPUs a layer, and the hop to the next stage."""
        wired, cut, payload = self.group.scale_up, self.cut, 2.0 * self.llm.hidden_size * tokens
        total = 0.0
        if cut.tp > 1 and wired is not None:
            wide = wired.bandwidth * wired.link_efficiency
            total += 2 * self.most_layers * (2 * (cut.tp - 1) / cut.tp * payload / wide + 2 * wired.startup)
        if cut.pp > 1:
            total += payload / cut.hop[0] + cut.hop[1]
        return total

    def _score(self) -> float:
        return 4.0 * self.llm.num_hidden_layers * self.llm.num_attention_heads * self.llm.head_dim

    def prefill(self, one: Length) -> tuple[float, float, float]:
        """Compute, memory, beside."""
        new = one.input - one.cached
        pairs = new * one.cached + new * (new + 1) / 2
        compute, memory = [], []
        for (share, head, rows), body in zip(self.stages, self.bodies, strict=True):
            attention = share * pairs * self._score() + (2.0 * self.size.head if head else 0.0)
            compute.append(share * 2.0 * new * self.size.layer / self.matrix + attention / self.other)
            memory.append((body + (2.0 * self.llm.hidden_size * new if rows else 0.0)) / self.bandwidth)
        return max(compute) / self.cut.tp, max(memory) / self.cut.tp, self.beside(new)

    def step(self, context: float) -> Step:
        """A decode step at a mean context."""
        compute, seen = [], (context + 1.0) * kv_per_token(self.llm)
        heads, each = self.llm.num_key_value_heads, []
        kept = math.ceil(heads / self.cut.tp) / heads
        for share, head, _ in self.stages:
            attention = share * (context + 1.0) * self._score() + (2.0 * self.size.head if head else 0.0)
            compute.append((share * 2.0 * self.size.layer / self.matrix + attention / self.other) / self.cut.tp)
            each.append((2.0 * self.llm.hidden_size / self.cut.tp + share * seen * kept) / self.bandwidth)
        fixed = self.beside(0.0)
        weights = max(self.bodies) / self.bandwidth / self.cut.tp
        return Step(weights, max(each), max(compute), fixed, self.beside(1.0) - fixed)


@dataclass(frozen=True)
class Load:
    """What one request of a workload takes on a GPU of a unit, mean over its lengths."""

    compute: float
    memory: float
    beside: float
    """Of prefill, by resource."""
    prefill: float
    """Seconds of prefill of the slowest stage."""
    first: float
    """Prefill of the slowest length through all stages."""
    longest: float
    """Compute seconds of the longest prefill."""
    longest_new: int
    calls: float
    step: Step
    held: float
    largest: float
    input: float
    """State of the longest input."""
    tokens: tuple[float, float]
    """Tokens of prefill and of decode that pass between stages."""

    @staticmethod
    def of(card: Card, workload: Workload) -> "Load":
        classes = workload.classes
        first = [(one.share, card.prefill(one)) for one in classes]
        spent = [(share, max(c, m) + beside) for share, (c, m, beside) in first]
        calls = sum(one.share * (one.output - 1) for one in classes)
        weights = [one.share * (one.output - 1) / calls if calls else one.share for one in classes]
        steps = [card.step(one.input + (one.output - 1) / 2) for one in classes]
        most = workload.longest_total - 1
        held = sum(w * (one.input + one.output - 1) for w, one in zip(weights, classes, strict=True))
        longest = max(classes, key=lambda one: card.prefill(one)[0])
        return Load(
            compute=sum(share * part[0] for share, part in first),
            memory=sum(share * part[1] for share, part in first),
            beside=sum(share * part[2] for share, part in first),
            prefill=sum(share * seconds for share, seconds in spent),
            first=card.cut.pp * max(seconds for _, seconds in spent),
            longest=card.prefill(longest)[0],
            longest_new=longest.input - longest.cached,
            calls=calls,
            step=Step(
                steps[0].memory,
                sum(w * s.each_memory for w, s in zip(weights, steps, strict=True)),
                sum(w * s.each_compute for w, s in zip(weights, steps, strict=True)),
                steps[0].beside,
                sum(w * s.each_beside for w, s in zip(weights, steps, strict=True)),
            ),
            held=card.kv * (most if workload.longest or not calls else held),
            largest=card.kv * most,
            input=card.kv * workload.longest_input,
            tokens=(sum(one.share * (one.input - one.cached) for one in classes), calls),
        )


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
    takes = {}
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


def asks(kind: str, workload: Workload) -> bool:
    """Whether a unit of this kind is paced for the workload's sake."""
    if kind == "prefill" or isinstance(workload.batch, int) or not workload.decodes:
        return False
    return workload.targets.tpot is not None or (kind == "chunked" and workload.targets.ttft is not None)


def full_step(card: Card, kind: str, workload: Workload, load: Load, held: float) -> float | None:
    """Time per token when memory is full of one workload."""
    free = workload.model_copy(update={"batch": "max"})
    batch = batch_of(card, kind, free, load, held)
    if isinstance(workload.batch, int):
        batch = min(batch, workload.batch)
    return card.cut.pp * load.step.seconds(max(1, batch // card.cut.pp)) if batch and workload.decodes else None


def taus(card: Card, kind: str, loads: dict[str, tuple[Workload, Load]]) -> list[float]:
    """Step times worth trying: every target, and where memory is full."""
    targets = [w.targets.tpot for w, _ in loads.values()]
    points = {target for target in targets if target is not None}
    most = NEVER if None in targets else max(points)
    held = max(buffer(kind, load) for _, load in loads.values())
    full = [full_step(card, kind, w, load, held) for w, load in loads.values()]
    return sorted(points | {min(seconds, most) for seconds in full if seconds is not None})


def _built(card: Card, kind: str, loads: dict[str, tuple[Workload, Load]]) -> Iterator[tuple[dict[str, tuple[float, ...]], float | None]]:
    """Unit-seconds of every unit of a kind and cut, set by set of the workloads that share it."""
    alone = {n: wl for n, wl in loads.items() if batch_of(card, kind, *wl, buffer(kind, wl[1]))}
    for name, (workload, load) in list(alone.items()):
        fixed = isinstance(workload.batch, int) or kind == "prefill" or not workload.decodes
        batch = batch_of(card, kind, workload, load, buffer(kind, load))
        if fixed and late(card, kind, workload, load, batch):
            del alone[name]
        elif kind == "replicas" and load.first > (workload.targets.ttft or NEVER) * (1 + 1e-9):
            del alone[name]
    while alone:
        some = dict(alone)
        while kind != "prefill":
            held = max(buffer(kind, load) for _, load in some.values())
            if all(batch_of(card, kind, *wl, held) for wl in some.values()):
                break
            some.pop(max(some, key=lambda n: buffer(kind, some[n][1])))
        held = max(buffer(kind, load) for _, load in some.values())
        if any(asks(kind, w) for w, _ in some.values()):
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
        if w.model == model and name not in w.deny and (not w.allow or name in w.allow)
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
    group, takes, first = instance.hardware.groups[unit.group], {}, {}
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


__all__ = ["BYTES", "Wide", "wide_units"]
