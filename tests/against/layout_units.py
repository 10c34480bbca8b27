"""Units that divide a layer, from the described hardware and models alone: seconds, bytes of GPUs, bytes on links.

Written from docs/reference/layouts.md; nothing of `solver` is used but the simulation of random choices.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from models.hardware import Group
from models.instance import Instance
from models.llm import Llm
from models.workload import Workload
from solver.skew import by_index, random_skew
from tests.against.network import Channel, Network

BYTES = {"bf16": 2.0, "fp8": 1.0, "int4": 0.5}
SIMULATED = (1, 4, 16, 64, 256, 1024)
"""Tokens of a batch whose busiest place is simulated."""


@dataclass(frozen=True)
class Sizes:
    """A model of any attention, dense or a mixture, by section."""

    attention: float
    dense: float
    """Feed-forward parameters that every token goes through."""
    sparse: int
    """Layers with experts."""
    experts: int
    chosen: int
    each: float
    """Parameters of an expert."""
    head: float
    norms: float
    tables: int
    pair: float
    decode_pair: float
    per_token: float
    """Bytes of state that are read."""
    kept_per_token: float
    query: float
    heads: int

    @staticmethod
    def of(llm: Llm) -> "Sizes":
        h, layers, heads, kv = llm.hidden_size, llm.num_hidden_layers, llm.num_attention_heads, llm.num_key_value_heads
        if llm.kv_lora_rank:
            c, r = llm.kv_lora_rank, llm.qk_rope_head_dim or 0
            n, v = llm.qk_nope_head_dim or 0, llm.v_head_dim or 0
            q = llm.q_lora_rank
            queries = h * q + q * heads * (n + r) if q else h * heads * (n + r)
            attention = queries + h * (c + r) + c * heads * (n + v) + heads * v * h
            pair, decode_pair, heads_kept = 2 * heads * (n + r + v), 2 * heads * (2 * c + r), 1
        else:
            attention = 2 * h * llm.head_dim * (heads + kv)
            pair = decode_pair = 4 * heads * llm.head_dim
            heads_kept = kv
        has = [_has_experts(llm, layer) for layer in range(layers)]
        sparse, count = sum(has), llm.experts or 0
        width = llm.moe_intermediate_size or llm.intermediate_size
        shared = 3 * h * width * (llm.n_shared_experts or 0)
        other, extra = llm.handoff_state, 0.0
        if other is not None and llm.query_work == "added":
            absorbed = (other.qk_nope_head_dim or 0) + (other.v_head_dim or 0)
            extra = 2.0 * other.num_hidden_layers * other.num_attention_heads * (other.kv_lora_rank or 0) * absorbed
        return Sizes(
            attention=float(layers * attention),
            dense=float((layers - sparse) * 3 * h * llm.intermediate_size + sparse * (h * count + shared)),
            sparse=sparse,
            experts=count,
            chosen=llm.num_experts_per_tok or 0,
            each=3.0 * h * width,
            head=float(h * llm.vocab_size),
            norms=float(layers * (2 * h + (2 * llm.head_dim if llm.qk_norm else 0)) + h),
            tables=1 if llm.tie_word_embeddings else 2,
            pair=float(layers * pair),
            decode_pair=float(layers * decode_pair),
            per_token=_state(llm),
            kept_per_token=_state(other or llm),
            query=extra,
            heads=heads_kept,
        )

    def touched(self, tokens: float) -> float:
        return self.experts * (1.0 - (1.0 - self.chosen / self.experts) ** tokens) if self.experts else 0.0


def _has_experts(llm: Llm, layer: int) -> bool:
    if not llm.experts or layer < (llm.first_k_dense_replace or 0) or layer in (llm.mlp_only_layers or ()):
        return False
    if llm.moe_layer_freq and layer % llm.moe_layer_freq != 0:
        return False
    return (layer + 1) % (llm.decoder_sparse_step or 1) == 0


def _state(llm: Llm) -> float:
    if llm.kv_lora_rank:
        return llm.num_hidden_layers * (llm.kv_lora_rank + (llm.qk_rope_head_dim or 0)) * BYTES[llm.kv]
    return 2.0 * llm.num_hidden_layers * llm.num_key_value_heads * llm.head_dim * BYTES[llm.kv]


@cache
def excess(experts: int, chosen: int, places: int, tokens: float) -> float:
    """What chance adds to the busiest of ``places``: simulated, interpolated in logarithms, falling with the root."""
    if places == 1:
        return 0.0
    points = [random_skew(n, chosen, by_index(experts, places), BATCHES, SEED).mean - 1.0 for n in SIMULATED]
    if tokens >= SIMULATED[-1]:
        return points[-1] * math.sqrt(SIMULATED[-1] / tokens)
    if tokens <= 1:
        return points[0]
    after = next(i for i, n in enumerate(SIMULATED) if n > tokens)
    low, high = SIMULATED[after - 1], SIMULATED[after]
    share = math.log(tokens / low) / math.log(high / low)
    return points[after - 1] * (1.0 - share) + points[after] * share


BATCHES, SEED = 1000, 0


@dataclass(frozen=True)
class Degrees:
    """What is known of a unit: its degrees and its parts."""

    layout: str
    """spread, ffn, experts or host."""
    tp: int
    ep: int
    dp: int
    micro: int
    resident: int | None
    beside: tuple[str, int, int] | None
    """Group, GPUs, and block of the other part; a block of 0 is that of the others."""


class LayoutUnit:
    """One unit of a model on a group."""

    def __init__(self, instance: Instance, network: Network, group: str, model: str, degrees: Degrees) -> None:
        self.instance, self.network, self.name, self.cut = instance, network, group, degrees
        self.group = instance.hardware.groups[group]
        self.llm = instance.models[model]
        self.size, self.bytes = Sizes.of(self.llm), BYTES[self.llm.weights]
        self.matrix, self.other, self.read = self.speeds(self.group)
        self.row = 2.0 * self.llm.hidden_size
        self.layers = self.llm.num_hidden_layers
        self.memory = self.group.accelerator.memory * self.group.usable
        self.places = degrees.ep if degrees.layout == "spread" else degrees.beside[1] if degrees.beside else 1

    def speeds(self, group: Group) -> tuple[float, float, float]:
        """FLOP/s of layer matrices and of the rest, and B/s."""
        share, card = group.efficiency or self.instance.hardware.efficiency, group.accelerator
        plain = card.compute["bf16"]
        matrix = card.compute.get(self.llm.weights, plain)
        return matrix * share.compute, plain * share.compute, card.bandwidth * share.bandwidth

    @property
    def cards(self) -> int:
        """GPUs that hold state."""
        spread = self.cut.ep if self.cut.layout == "spread" and self.cut.dp == 1 else self.cut.dp
        return self.cut.tp * spread

    @property
    def streams(self) -> int:
        return self.cut.dp

    # bytes

    @property
    def stays(self) -> float:
        """Parameters of layers on the GPUs with attention, chosen experts apart."""
        return self.size.attention + (0.0 if self.cut.layout == "ffn" else self.size.dense)

    @property
    def weights(self) -> float:
        """Bytes of a GPU with state, chosen experts apart."""
        rest = 2.0 * (self.size.tables * self.size.head + self.size.norms)
        return (self.bytes * self.stays + rest) / self.cut.tp

    @property
    def experts(self) -> float:
        """Bytes of chosen experts on a GPU with state."""
        whole = self.bytes * self.size.sparse * self.size.each
        if self.cut.layout == "spread":
            shared = self.cut.tp if self.cut.dp == 1 else 1
            return whole * math.ceil(self.size.experts / self.cut.ep) / shared
        if self.cut.layout == "host":
            return whole * (self.cut.resident or 0) / self.cut.tp
        return 0.0

    @property
    def part(self) -> tuple[float, float]:
        """Bytes of a GPU of the other part: weights, and experts."""
        assert self.cut.beside is not None
        whole, count = self.bytes * self.size.sparse * self.size.each, self.cut.beside[1]
        if self.cut.layout == "ffn":
            return self.bytes * self.size.dense / count, whole * self.size.experts / count
        return 0.0, whole * math.ceil(self.size.experts / count)

    def part_inputs(self, tokens: float) -> float:
        """Bytes of the inputs that a GPU of the other part keeps, for groups with so many tokens each."""
        each = self.row * tokens * 2 * self.cut.dp
        return each if self.cut.layout == "ffn" else each * self.size.chosen

    @property
    def kept(self) -> float:
        """Bytes of state of a token on one GPU."""
        return self.size.kept_per_token * math.ceil(self.size.heads / self.cut.tp) / self.size.heads

    # seconds

    def sums(self, cards: int, payload: float, group: Group) -> float:
        if cards == 1:
            return 0.0
        wired = group.scale_up
        assert wired is not None
        share = 2.0 * (cards - 1) / cards
        return share * payload / (wired.bandwidth * wired.link_efficiency) + 2.0 * wired.startup

    def attention(self, tokens: float, other: float, state: float) -> float:
        t, size = self.cut.tp, self.size
        compute = (2.0 * tokens * self.stays / self.matrix + other / self.other) / t
        held = self.bytes * self.stays + 2.0 * (size.head + size.norms) + self.row * tokens
        read = (held / t + state) / self.read
        count = (1 if self.cut.layout == "ffn" else 2) * self.layers
        return max(compute, read) + count * self.sums(t, self.row * tokens, self.group)

    def rest(self, tokens: float) -> float:
        """What is not attention."""
        size, cut = self.size, self.cut
        if cut.layout == "host":
            return self._hosted(tokens)
        if cut.layout == "ffn":
            assert cut.beside is not None
            described, f = self.instance.hardware.groups[cut.beside[0]], cut.beside[1]
            matrix, _, read = self.speeds(described)
            work = 2.0 * tokens * (size.dense + size.sparse * size.chosen * size.each)
            held = self.bytes * (size.dense + size.sparse * size.touched(tokens) * size.each)
            return max(work / (f * matrix), held / (f * read)) + self.layers * self.sums(f, self.row * tokens, described)
        return self._placed(tokens)

    def _placed(self, tokens: float) -> float:
        size, cut = self.size, self.cut
        if not size.sparse:
            return 0.0
        group = self.group if cut.beside is None else self.instance.hardware.groups[cut.beside[0]]
        matrix, _, read = self.speeds(group)
        shared = cut.tp if cut.layout == "spread" and cut.dp == 1 else 1
        work = 2.0 * size.sparse * size.each * self.rows(tokens) / (shared * matrix)
        share = size.touched(tokens) / size.experts * math.ceil(size.experts / self.places)
        return max(work, size.sparse * size.each * self.bytes * share / (shared * read))

    def rows(self, tokens: float) -> float:
        """Rows of the busiest place in a layer."""
        more = excess(self.size.experts, self.size.chosen, self.places, tokens)
        return (1.0 + more) * tokens * self.size.chosen / self.places

    def _hosted(self, tokens: float) -> float:
        size, t, host = self.size, self.cut.tp, self.group.host
        assert host is not None and self.cut.resident is not None
        touched = size.touched(tokens)
        rows = tokens * size.chosen / touched
        here = self.cut.resident / size.experts
        work, held = 2.0 * rows * size.each, self.bytes * size.each
        near = max(work / (t * self.matrix), held / (t * self.read))
        mine = host.sockets * t / self.group.per_server
        link = host.link.bandwidth * host.link.link_efficiency * t
        cpu = max(work / (host.cpu.kernels[host.kernel] * mine), held / (host.cpu.bandwidth * mine))
        on_cpu = 2.0 * host.link.startup + 2.0 * rows * self.row / link + cpu
        on_gpu = host.link.startup + held / link + near
        return size.sparse * max(touched * here * near, touched * (1.0 - here) * min(on_cpu, on_gpu))

    def one_way(self, tokens: float) -> float:
        """Seconds of one direction between parts, or between places."""
        size, cut = self.size, self.cut
        if cut.layout == "host":
            return 0.0
        if cut.beside is not None:
            return self._between(tokens)
        if cut.dp == 1:
            return size.sparse * self.sums(cut.tp * cut.ep, self.row * tokens, self.group) / 2.0
        wired = self.group.scale_up
        near = min(self.places, self.group.per_server)
        inside, startup = 0.0, 0.0
        sent = self.rows(tokens) * self.row
        if near > 1:
            assert wired is not None
            inside = sent * (near - 1) / self.places / (wired.bandwidth * wired.link_efficiency)
            startup = wired.startup
        outside = 0.0
        if near < self.places:
            port, count, begin, _ = self._port(self.name, self.name)
            outside = sent * (1.0 - near / self.places) / (port * min(near, count) / near)
            startup = max(startup, begin)
        return size.sparse * (max(inside, outside) + startup)

    def _port(self, source: str, target: str) -> tuple[float, int, float, str]:
        """Bandwidth of a port, ports, startup, and the link between places."""
        links = self.instance.hardware.links
        near = [name for name, ends in self.network.ends.items() if source in ends and target in ends]
        best = min(near, key=lambda n: (-links[n].bandwidth * links[n].link_efficiency, links[n].startup, n))
        link = links[best]
        return link.bandwidth * link.link_efficiency, link.ports, link.startup, best

    def _between(self, tokens: float) -> float:
        size, cut = self.size, self.cut
        assert cut.beside is not None
        group, f, block = cut.beside
        dense = cut.layout == "ffn"
        payload = tokens * self.row * (self.layers if dense else size.sparse * size.chosen)
        messages = self.layers if dense else size.sparse
        more = 0.0 if dense else excess(size.experts, size.chosen, f, tokens)
        if block == 0:
            wired = self.group.scale_up
            assert wired is not None
            wide = wired.bandwidth * wired.link_efficiency
            first, second, startup = wide * self.cards, wide * f, wired.startup
        else:
            port, count, startup, _ = self._port(self.name, group)
            first, second = port * min(count, self.cards), port * min(count, f)
        return max(payload / first, (1.0 + more) * payload / second) + messages * startup

    def prefill(self, new: float, cached: float) -> float:
        """Seconds of one request on each of the groups at once."""
        pairs = new * cached + new * (new + 1.0) / 2.0
        first = self.attention(new, pairs * self.size.pair + 2.0 * self.size.head, 0.0)
        together = self.cut.dp * new
        return first + self.rest(together) + 2.0 * self.one_way(together)

    def chain(self, context: float, batch: float) -> tuple[float, float, float]:
        """Attention, the rest, and one direction for ``batch`` requests."""
        own = batch / self.cut.dp
        size = self.size
        other = own * ((context + 1.0) * size.decode_pair + 2.0 * size.head + size.query)
        share = math.ceil(size.heads / self.cut.tp) / size.heads
        state = own * (context + 1.0) * size.per_token * share
        return self.attention(own, other, state), self.rest(batch), self.one_way(batch)

    def step(self, context: float, batch: float) -> float:
        """Seconds of a decode step of all requests."""
        q = self.cut.micro
        a, f, x = self.chain(context, batch / q)
        alone = a + f + 2.0 * x
        if q == 1:
            return alone
        busy = (a, f, x) if self.cut.beside is not None else (a + f, x)
        return max(alone, q * max(busy))

    # whole requests

    def request(self, workload: Workload, kind: str, batch: int) -> float:
        """Unit-seconds of a request."""
        total = 0.0
        if kind != "decode":
            total += sum(c.share * self.prefill(c.input - c.cached, c.cached) for c in workload.classes) / self.cut.dp
        if kind != "prefill" and workload.decodes:
            calls, context = means(workload)
            total += calls * self.step(context, batch) / batch
        return total

    def first(self, workload: Workload) -> float:
        return max(self.prefill(c.input - c.cached, c.cached) for c in workload.classes)

    def batch(self, workload: Workload, kind: str, buffer: float) -> int:
        """Most requests at once; 0 where the longest does not fit."""
        room = self.memory - self.weights - self.experts - buffer
        longest = self.kept * (workload.longest_total - 1)
        if longest > room:
            return 0
        return math.floor(room / held_tokens(workload) / self.kept) * self.streams

    def buffer(self, workload: Workload, kind: str) -> float:
        states = {"prefill": 2, "decode": 1, "both": 0}[kind]
        return states * self.kept * workload.longest_input

    def charges(self) -> dict[Channel, float]:
        """Share of each channel that one token a second takes."""
        size, cut = self.size, self.cut
        found: dict[Channel, float] = {}
        if cut.beside is None and cut.dp > 1 and self.group.per_server < self.places:
            *_, link = self._port(self.name, self.name)
            crossing = 2.0 * size.sparse * size.chosen * (1.0 - self.group.per_server / self.places) * self.row
            trips: list[tuple[str, str, float]] = [(self.name, self.name, crossing)]
        elif cut.beside is not None and cut.beside[2]:
            *_, link = self._port(self.name, cut.beside[0])
            each = self.row * (self.layers if cut.layout == "ffn" else size.sparse * size.chosen)
            trips = [(self.name, cut.beside[0], each), (cut.beside[0], self.name, each)]
        else:
            return {}
        for source, target, amount in trips:
            for channel, bandwidth in self.network.channels(link, source, target):
                found[channel] = found.get(channel, 0.0) + amount / bandwidth
        return found


def means(workload: Workload) -> tuple[float, float]:
    """Decode calls of a request, and the mean context of a call."""
    calls = sum(c.share * (c.output - 1) for c in workload.classes)
    seen = sum(c.share * (c.output - 1) * (c.input + (c.output - 1) / 2.0) for c in workload.classes)
    return calls, seen / calls


def held_tokens(workload: Workload) -> float:
    """Tokens whose state a decoding request holds at its end, mean over the calls."""
    calls = sum(c.share * (c.output - 1) for c in workload.classes)
    if workload.longest or not calls:
        return workload.longest_total - 1.0
    return sum(c.share * (c.output - 1) * (c.input + c.output - 1.0) for c in workload.classes) / calls


Times = Callable[[float], float]
__all__ = ["Degrees", "LayoutUnit", "Sequence", "Sizes", "excess", "held_tokens", "means"]
