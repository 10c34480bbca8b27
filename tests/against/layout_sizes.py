"""Parameters and bytes of a model by section, and what chance adds to the busiest place of experts."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from models.llm import Llm
from models.workload import Workload
from solver.skew import by_index, random_skew, random_touched

BYTES = {"bf16": 2.0, "fp8": 1.0, "int4": 0.5}
SIMULATED = {1: 64, 4: 64, 16: 64, 64: 64, 256: 64, 1024: 64}
"""Tokens of a batch whose busiest place is simulated, and in how many batches."""


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
def _points(experts: int, chosen: int, places: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Logarithms of what chance adds to the rows of the busiest place, and of most experts touched on one."""
    dealt = by_index(experts, places)
    rows: list[float] = []
    touched: list[float] = []
    for tokens, batches in SIMULATED.items():
        rows.append(random_skew(tokens, chosen, dealt, batches, 0).mean - 1.0)
        touched.append(max([*touched, random_touched(tokens, chosen, dealt, batches, 0).mean]))
    return tuple(math.log(max(1e-6, r)) for r in rows), tuple(math.log(t) for t in touched)


def _at(points: tuple[float, ...], tokens: float) -> float:
    sizes = [math.log(n) for n in SIMULATED]
    return math.exp(float(np.interp(math.log(tokens), sizes, points)))


def excess(experts: int, chosen: int, places: int, tokens: float) -> float:
    """What chance adds to the rows of the busiest of ``places``, falling with the root of many tokens."""
    if places == 1 or tokens <= 0.0:
        return 0.0
    most = max(SIMULATED)
    return _at(_points(experts, chosen, places)[0], tokens) * min(1.0, math.sqrt(most / tokens))


def busiest_touched(size: "Sizes", places: int, tokens: float) -> float:
    """Experts that the place reads which reads most."""
    here = math.ceil(size.experts / places)
    mean = here * size.touched(tokens) / size.experts
    if places == 1 or tokens <= 0.0:
        return mean
    most = _at(_points(size.experts, size.chosen, places)[1], tokens) * min(1.0, tokens)
    return min(here, max(mean, most))


def means(workload: Workload) -> tuple[float, float]:
    """Decode calls of a request, and the mean context of a call."""
    calls = sum(c.share * (c.output - 1) for c in workload.classes)
    seen = sum(c.share * (c.output - 1) * (c.input + (c.output - 1) / 2.0) for c in workload.classes)
    return calls, seen / calls if calls else 0.0


def held_tokens(workload: Workload) -> float:
    """Tokens whose state a decoding request holds at its end, mean over the calls."""
    calls = sum(c.share * (c.output - 1) for c in workload.classes)
    if workload.longest or not calls:
        return workload.longest_total - 1.0
    return sum(c.share * (c.output - 1) * (c.input + c.output - 1.0) for c in workload.classes) / calls
