"""What a model costs: parameters that work and that are kept, bytes, and the width of its attention.

A mixture of experts keeps all its experts, works with those that a token chooses, and reads those that the tokens of
a pass touch.
"""

from dataclasses import dataclass

from models.llm import Encoder, Llm
from solver.formulas import encoder as images
from solver.formulas import experts as formulas
from solver.formulas import parameters, state, work

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

    def touched(self, tokens: float) -> float:
        """Experts of a layer that so many tokens touch on average."""
        return formulas.active_experts(self.experts, self.chosen, tokens)


@dataclass(frozen=True)
class Vision:
    """What the encoder of images costs."""

    layers: int
    hidden: int
    patches: int
    params: float
    """Of all its matrices."""
    flops: float
    """Of one image."""

    @property
    def resident(self) -> float:
        """Weight bytes, which every pass reads."""
        return BYTES["bf16"] * self.params


@dataclass(frozen=True)
class Shape:
    """What a model costs."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    """Heads that context state is cut by; an MLA state counts as one."""
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
    """Attention work of a query-key pair in prefill, over all layers."""
    decode_pair_flops: float
    """The same in decode, where MLA works on its compact state."""
    kv_per_token: float
    """Bytes of state that attention reads."""
    state_per_token: float
    """Bytes of state that are kept and handed over; the same unless the model has a `handoff_state`."""
    query_flops: float
    """Work of a decode call that nothing hides, beside the roofline."""
    precision: str
    """Of the layer matrices."""
    encoder: "Vision | None" = None
    """Encoder of images that its units hold; None where they hold none."""
    features: float = 0.0
    """Bytes of the features of one image."""

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
        """Heads x width of a head, where queries and values are of one width."""
        return self.pair_flops / (4.0 * self.layers)

    @property
    def resident(self) -> float:
        """Weight bytes of the whole model."""
        language = parameters.resident_weight_bytes(
            self.kept_params, self.head_params, self.norm_params, self.element_bytes, self.other_bytes, self.tied
        )
        return language + self.encoder_resident

    @property
    def encoder_resident(self) -> float:
        """Weight bytes of the encoder."""
        return 0.0 if self.encoder is None else self.encoder.resident


def shape_of(llm: Llm) -> Shape:
    """The costs of a model with MHA, GQA or MLA attention, dense or a mixture of experts."""
    attention, pair, decode_pair = _attention(llm)
    ffn, routed = _feed_forward(llm)
    heads = llm.num_attention_heads
    norms = parameters.norm_parameters(llm.num_hidden_layers, llm.hidden_size, llm.head_dim, llm.qk_norm)
    per_token = state_bytes_per_token(llm)
    layers = float(llm.num_hidden_layers)
    return Shape(
        layers=llm.num_hidden_layers,
        hidden=llm.hidden_size,
        heads=heads,
        kv_heads=1 if llm.kv_lora_rank else llm.num_key_value_heads,
        attention_params=layers * attention,
        ffn_params=ffn,
        routed=routed,
        head_params=parameters.head_parameters(llm.hidden_size, llm.vocab_size),
        norm_params=norms,
        tied=llm.tie_word_embeddings,
        element_bytes=BYTES[llm.weights],
        other_bytes=BYTES["bf16"],
        pair_flops=layers * pair,
        decode_pair_flops=layers * decode_pair,
        kv_per_token=per_token,
        state_per_token=state_bytes_per_token(llm.handoff_state) if llm.handoff_state else per_token,
        query_flops=_query_flops(llm.handoff_state) if llm.handoff_state and llm.query_work == "added" else 0.0,
        precision=llm.weights,
        encoder=_vision(llm.encoder) if llm.encoder else None,
        features=images.feature_bytes(llm.encoder.tokens, llm.hidden_size, BYTES["bf16"]) if llm.encoder else 0.0,
    )


def _vision(one: Encoder) -> Vision:
    inside = images.encoder_layer_parameters(one.num_hidden_layers, one.hidden_size, one.intermediate_size, one.gated)
    sizes = (one.patches, one.tokens, one.num_hidden_layers, one.hidden_size)
    flops = images.image_flops(*sizes, inside, one.other_parameters)
    return Vision(one.num_hidden_layers, one.hidden_size, one.patches, inside + one.other_parameters, flops)


def _attention(llm: Llm) -> tuple[float, float, float]:
    """Of one layer: matrix parameters, FLOPs of a query-key pair in prefill, and in decode."""
    heads, latent, rope = llm.num_attention_heads, llm.kv_lora_rank, llm.qk_rope_head_dim or 0
    if not latent:
        matrices = parameters.attention_parameters(llm.hidden_size, heads, llm.num_key_value_heads, llm.head_dim)
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
    sparse = sum(is_sparse(llm, layer) for layer in range(layers))
    width = llm.moe_intermediate_size or llm.intermediate_size
    every = parameters.router_parameters(llm.hidden_size, experts)
    every += parameters.expert_parameters(llm.hidden_size, width, llm.n_shared_experts or 0)
    each = parameters.expert_parameters(llm.hidden_size, width, 1)
    return (layers - sparse) * dense + sparse * every, Routed(sparse, experts, llm.num_experts_per_tok or 1, each)


def is_sparse(llm: Llm, layer: int) -> bool:
    """Whether a layer of a mixture of experts has experts, as Hugging Face configurations say it."""
    if layer < (llm.first_k_dense_replace or 0) or layer in (llm.mlp_only_layers or []):
        return False
    if llm.moe_layer_freq and layer % llm.moe_layer_freq:
        return False
    return (layer + 1) % (llm.decoder_sparse_step or 1) == 0


def state_bytes_per_token(llm: Llm) -> float:
    """Context state of one token: compact where the model has MLA, else keys and values of its KV heads."""
    if llm.kv_lora_rank and llm.qk_rope_head_dim:
        return state.kv_bytes_per_token_mla(
            llm.num_hidden_layers, llm.kv_lora_rank, llm.qk_rope_head_dim, BYTES[llm.kv]
        )
    return state.kv_bytes_per_token_gqa(llm.num_hidden_layers, llm.num_key_value_heads, llm.head_dim, BYTES[llm.kv])


def _query_flops(llm: Llm) -> float:
    """Query-side work of a token under compact MLA (section 9.2.3)."""
    nope, value = llm.qk_nope_head_dim or 0, llm.v_head_dim or 0
    return work.mla_query_flops(llm.num_hidden_layers, llm.num_attention_heads, nope, llm.kv_lora_rank or 0, value)
