"""One GPU of a unit of any cut, from the described hardware alone: times, weights and state of its slowest stage."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from models.hardware import Group
from models.instance import Instance
from models.llm import Llm
from models.workload import LengthClass as Length
from models.workload import Workload
from tests.against import contexts
from tests.against.accounting import Weights
from tests.against.network import Channel, Network

NEVER = float("inf")


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
            few = next(
                (p for p in range(2, llm.num_hidden_layers + 1) if _held(instance, network, name, llm, tp, p)), 0
            )
            found += [cut_of(instance, network, name, tp, p) for p in ((few, 2 * few) if few else ())]
    return [cut for cut in found if cut is not None]


def _divides(tp: int, llm: Llm) -> bool:
    whole = llm.num_attention_heads % tp == 0 and llm.intermediate_size % tp == 0
    whole = whole and not any(heads and heads % tp for heads in (llm.linear_num_key_heads, llm.linear_num_value_heads))
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
        kinds, pp = contexts.layers_of(llm), cut.pp
        layers = len(kinds)
        self.most_layers = math.ceil(layers / pp)
        first = self.most_layers / layers
        self.stages, dealt = [], 0
        for number in range(pp):  # the first stages have the most
            mine = kinds[dealt : dealt + layers // pp + (number < layers % pp)]
            dealt += len(mine)
            self.stages.append((mine, number == pp - 1, pp == 1 or number < pp - 1))
        """Layers, whether it has the output head, whether it gathers the embedding rows."""
        table = 2.0 * self.size.head
        body = self.size.read - table
        self.bodies = [len(mine) / layers * body + (table if head else 0.0) for mine, head, _ in self.stages]
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

    def keeps(self, weighted: Sequence[tuple[float, float]]) -> float:
        """State of one GPU of the fullest stage: mean over requests of so many tokens."""
        return max(
            sum(weight * contexts.keeps(self.llm, mine, tokens, self.cut.tp) for weight, tokens in weighted)
            for mine, _, _ in self.stages
        )

    def prefill(self, one: Length) -> tuple[float, float, float]:
        """Compute, memory, beside."""
        new = one.input - one.cached
        compute, memory, layers = [], [], self.llm.num_hidden_layers
        for (mine, head, rows), body in zip(self.stages, self.bodies, strict=True):
            attention = contexts.work(self.llm, mine, contexts.pairs(self.llm, mine, new, one.cached), new)
            attention += 2.0 * self.size.head if head else 0.0
            compute.append(len(mine) / layers * 2.0 * new * self.size.layer / self.matrix + attention / self.other)
            memory.append((body + (2.0 * self.llm.hidden_size * new if rows else 0.0)) / self.bandwidth)
        return max(compute) / self.cut.tp, max(memory) / self.cut.tp, self.beside(new)

    def step(self, one: Length) -> Step:
        """A decode step of requests of a length."""
        compute, each, llm = [], [], self.llm
        for mine, head, _ in self.stages:
            seen = contexts.visible(llm, mine, one.input, one.output)
            attention = contexts.work(llm, mine, seen, 1) + (2.0 * self.size.head if head else 0.0)
            matrices = len(mine) / llm.num_hidden_layers * 2.0 * self.size.layer / self.matrix
            compute.append((matrices + attention / self.other) / self.cut.tp)
            moved = contexts.moves(llm, mine, seen, self.cut.tp)
            each.append((2.0 * llm.hidden_size / self.cut.tp + moved) / self.bandwidth)
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
        steps = [card.step(one) for one in classes]
        most = workload.longest_total - 1
        held = [(w, one.input + one.output - 1) for w, one in zip(weights, classes, strict=True)]
        longest = max(classes, key=lambda one: card.prefill(one)[0])
        return Load(
            compute=sum(share * part[0] for share, part in first),
            memory=sum(share * part[1] for share, part in first),
            beside=sum(share * part[2] for share, part in first),
            prefill=sum(share * seconds for share, seconds in spent),
            first=card.cut.pp * max(seconds for _, seconds in spent),
            longest=card.prefill(longest)[0] + card.prefill(longest)[2],
            longest_new=longest.input - longest.cached,
            calls=calls,
            step=Step(
                steps[0].memory,
                sum(w * s.each_memory for w, s in zip(weights, steps, strict=True)),
                sum(w * s.each_compute for w, s in zip(weights, steps, strict=True)),
                steps[0].beside,
                sum(w * s.each_beside for w, s in zip(weights, steps, strict=True)),
            ),
            held=card.keeps([(1.0, most)] if workload.longest or not calls else held),
            largest=card.keeps([(1.0, most)]),
            input=card.keeps([(1.0, workload.longest_input)]),
            tokens=(sum(one.share * (one.input - one.cached) for one in classes), calls),
        )
