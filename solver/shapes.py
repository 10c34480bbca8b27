"""What a model costs: parameters that work and that are kept, bytes, and the width of its attention.

A mixture of experts keeps all its experts, works with those that a token chooses, and reads those that the tokens of
a pass touch.
"""

from dataclasses import dataclass

from models.attention import LINEAR, SLIDING
from models.llm import Llm
from solver.attention import Layers, Shares, State, Tokens
from solver.formulas import experts as formulas
from solver.formulas import parameters, state, work
from solver.popularity import Popularity, popularity

BYTES = {"bf16": 2.0, "fp8": 1.0, "int4": 0.5}
"""Bytes of an element by precision, scales of quantised ones apart."""


@dataclass(frozen=True)
class Routed:
    """Experts that tokens choose."""

    layers: int
    """Layers that have them."""
    experts: int
    """Of a layer."""
    chosen: int
    """Of a layer, by each token."""
    params: float
    """Parameters of one."""
    loads: Popularity | None = None
    """How often each is chosen; None: all as often."""

    def skew(self, places: int, slots: int) -> float:
        """Rows of the busiest of so many places over the mean, chance apart."""
        return 1.0 if self.loads is None else self.loads.skew(places, slots)

    def touched(self, tokens: float) -> float:
        """Experts of a layer that so many tokens touch on average."""
        return formulas.active_experts(self.experts, self.chosen, tokens)

    def touched_more(self, tokens: float) -> float:
        """What one token more adds to that."""
        return formulas.active_experts_slope(self.experts, self.chosen, tokens)


@dataclass(frozen=True)
class Shape:
    """What a model costs."""

    layers: int
    hidden: int
    heads: int
    head_params: float
    attention_params: float
    """Matrix parameters of attention, over all layers."""
    ffn_params: float
    """Of feed-forward networks that every token goes through (dense, shared experts, routers), over all layers."""
    routed: "Routed | None"
    """Experts that tokens choose; None in a dense model."""
    norm_params: float
    tied: bool
    """Whether input embedding and output head are one table."""
    element_bytes: float
    """Bytes of an element of the layer matrices."""
    other_bytes: float
    """Bytes of an element of embeddings, head, norms and activations."""
    pair_flops: float
    """Attention work of a query-key pair in prefill, over all layers that see tokens."""
    decode_pair_flops: float
    """The same in decode, where MLA works on its compact state."""
    recurrent_flops: float
    """Work of a token on the states of linear attention, over all layers that have it."""
    kv: State
    """State that attention reads."""
    kept: State
    """State that is kept and handed over; the same unless the model has a `handoff_state`."""
    query_flops: float
    """Work of a decode call that nothing hides, beside the roofline."""
    precision: str
    """Of the layer matrices."""

    @property
    def layer_params(self) -> float:
        """Parameters of all layers that one token works with."""
        chosen = self.routed.layers * self.routed.chosen * self.routed.params if self.routed else 0.0
        return self.attention_params + self.ffn_params + chosen

    @property
    def expert_params(self) -> float:
        """Parameters of all experts that tokens choose, over all layers."""
        return self.routed.layers * self.routed.experts * self.routed.params if self.routed else 0.0

    @property
    def own_params(self) -> float:
        """Parameters of all layers that every token goes through."""
        return self.attention_params + self.ffn_params

    @property
    def kept_params(self) -> float:
        """Parameters of all layers."""
        return self.own_params + self.expert_params

    def read_params(self, tokens: float) -> float:
        """Parameters of all layers that a pass over so many tokens reads, on average."""
        if self.routed is None:
            return self.own_params
        return self.own_params + self.routed.layers * self.routed.touched(tokens) * self.routed.params

    @property
    def channels(self) -> float:
        """Heads x width of a head, where all layers see tokens and queries and values are of one width."""
        return self.pair_flops / (4.0 * self.layers)

    def prefill_flops(self, new: float, cached: float, shares: Shares) -> float:
        """Attention work of ``new`` tokens behind ``cached`` ones in layers with ``shares`` of the model."""
        pairs = shares.of(self.kv.layers.pairs(new, cached))
        return pairs * self.pair_flops + new * shares.linear * self.recurrent_flops

    def decode_flops(self, context: Tokens, shares: Shares) -> float:
        """The same of one decode call at mean context ``context``, its own token included."""
        seen = shares.of(Tokens(context.full + 1.0, context.window + 1.0))
        return seen * self.decode_pair_flops + shares.linear * self.recurrent_flops

    @property
    def resident(self) -> float:
        """Weight bytes of the whole model."""
        return parameters.resident_weight_bytes(
            self.kept_params, self.head_params, self.norm_params, self.element_bytes, self.other_bytes, self.tied
        )


def shape_of(llm: Llm) -> Shape:
    """The costs of a model with MHA, GQA, MLA, sliding or linear attention, dense or a mixture of experts."""
    attention, pair, decode_pair = _attention(llm)
    ffn, routed = _feed_forward(llm)
    linear = llm.layer_kinds.count(LINEAR)
    seeing = float(llm.num_hidden_layers - linear)
    kv = state_of(llm)
    return Shape(
        layers=llm.num_hidden_layers,
        hidden=llm.hidden_size,
        heads=llm.num_attention_heads,
        attention_params=seeing * attention + linear * _linear_params(llm, attention),
        ffn_params=ffn,
        routed=routed,
        head_params=parameters.head_parameters(llm.hidden_size, llm.vocab_size),
        norm_params=parameters.norm_parameters(llm.num_hidden_layers, llm.hidden_size, llm.head_dim, llm.qk_norm),
        tied=llm.tie_word_embeddings,
        element_bytes=BYTES[llm.weights],
        other_bytes=BYTES["bf16"],
        pair_flops=seeing * pair,
        decode_pair_flops=seeing * decode_pair,
        recurrent_flops=linear * work.recurrent_flops(_recurrent_elements(llm)),
        kv=kv,
        kept=state_of(llm.handoff_state) if llm.handoff_state else kv,
        query_flops=_query_flops(llm.handoff_state) if llm.handoff_state and llm.query_work == "added" else 0.0,
        precision=llm.weights,
    )


def _attention(llm: Llm) -> tuple[float, float, float]:
    """Of one layer: matrix parameters, FLOPs of a query-key pair in prefill, and in decode."""
    heads, latent, rope = llm.num_attention_heads, llm.kv_lora_rank, llm.qk_rope_head_dim or 0
    if not latent:
        matrices = parameters.attention_parameters(llm.hidden_size, heads, llm.num_key_value_heads, llm.head_dim)
        matrices += parameters.gate_parameters(llm.hidden_size, heads, llm.head_dim) if llm.attn_output_gate else 0.0
        pair = work.pair_flops(heads * llm.head_dim, heads * llm.head_dim)
        return matrices, pair, pair
    nope, value = llm.qk_nope_head_dim or 0, llm.v_head_dim or 0
    matrices = parameters.mla_attention_parameters(llm.hidden_size, heads, llm.q_lora_rank, latent, nope, rope, value)
    expanded = work.pair_flops(heads * (nope + rope), heads * value)
    return matrices, expanded, work.pair_flops(heads * (latent + rope), heads * latent)


def _feed_forward(llm: Llm) -> tuple[float, Routed | None]:
    """Matrix parameters, over all layers, that every token goes through, and the experts that tokens choose."""
    dense = parameters.ffn_parameters(llm.hidden_size, llm.intermediate_size)
    experts, layers = llm.experts, llm.num_hidden_layers
    if not experts:
        return layers * dense, None
    sparse = llm.sparse_layers
    width = llm.moe_intermediate_size or llm.intermediate_size
    every = parameters.router_parameters(llm.hidden_size, experts)
    every += parameters.expert_parameters(llm.hidden_size, width, llm.n_shared_experts or 0)
    each = parameters.expert_parameters(llm.hidden_size, width, 1)
    loads = popularity(tuple(map(tuple, llm.expert_loads))) if llm.expert_loads else None
    routed = Routed(sparse, experts, llm.num_experts_per_tok or 1, each, loads)
    return (layers - sparse) * dense + sparse * every, routed


def state_of(llm: Llm) -> State:
    """Context state of a request by its length: compact where the model has MLA, else keys and values of KV heads."""
    kinds = llm.layer_kinds
    linear = kinds.count(LINEAR)
    layers = Layers(kinds, float(llm.sliding_window or 0) if SLIDING in kinds else 0.0)
    seeing = llm.num_hidden_layers - linear
    constant = linear * _recurrent_bytes(llm)
    if llm.kv_lora_rank and llm.qk_rope_head_dim:
        each = state.kv_bytes_per_token_mla(seeing, llm.kv_lora_rank, llm.qk_rope_head_dim, BYTES[llm.kv])
        return State(layers, each, 1, constant)
    each = state.kv_bytes_per_token_gqa(seeing, llm.num_key_value_heads, llm.head_dim, BYTES[llm.kv])
    return State(layers, each, llm.num_key_value_heads, constant)


def _linear_params(llm: Llm, attention: float) -> float:
    """Matrix parameters of one layer of linear attention; where its widths are not stated, those of the others."""
    keys, values, key_dim, value_dim, _ = _linear(llm)
    if not keys:
        return attention
    return parameters.linear_attention_parameters(llm.hidden_size, keys, values, key_dim, value_dim)


def _recurrent_elements(llm: Llm) -> float:
    """Of the state of one such layer; where its widths are not stated, its bytes are taken as BF16."""
    keys, values, key_dim, value_dim, _ = _linear(llm)
    if not keys:
        return (llm.recurrent_state or 0.0) / BYTES["bf16"]
    return state.recurrent_elements(values, key_dim, value_dim)


def _recurrent_bytes(llm: Llm) -> float:
    """State of one such layer: as stated, else in BF16."""
    if llm.recurrent_state is not None:
        return llm.recurrent_state
    elements = _recurrent_elements(llm) + (state.convolution_elements(*_linear(llm)) if _linear(llm)[0] else 0.0)
    return BYTES["bf16"] * elements


def _linear(llm: Llm) -> tuple[int, int, int, int, int]:
    """Key heads, value heads, their widths, and the kernel of the convolution; zeros where not stated."""
    return (
        llm.linear_num_key_heads or 0,
        llm.linear_num_value_heads or 0,
        llm.linear_key_head_dim or 0,
        llm.linear_value_head_dim or 0,
        llm.linear_conv_kernel_dim or 0,
    )


def _query_flops(llm: Llm) -> float:
    """Query-side work of a token under compact MLA (section 9.2.3)."""
    nope, value = llm.qk_nope_head_dim or 0, llm.v_head_dim or 0
    return work.mla_query_flops(llm.num_hidden_layers, llm.num_attention_heads, nope, llm.kv_lora_rank or 0, value)
