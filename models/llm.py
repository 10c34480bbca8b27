"""A language model as described: the shape that a Hugging Face config.json holds, and its precisions."""

from typing import Annotated, Any, Literal

from pydantic import Field

from models.attention import LayerType, kinds
from models.base import Described
from models.hardware import Degrees, Precision, WeightPrecision
from models.quantities import Count, PositiveBytes, TokenCount

PositiveNumber = Annotated[float, Field(gt=0.0, le=1e12)]
Dimension = Annotated[int, Field(ge=1, le=10**9)]
Layers = Annotated[int, Field(ge=1, le=10_000)]
Experts = Annotated[int, Field(ge=1, le=16_384)]


class Encoder(Described):
    """The encoder of images, in BF16: a transformer over the patches of an image, each of which sees all others."""

    num_hidden_layers: Layers
    hidden_size: Dimension
    num_attention_heads: Count
    intermediate_size: Dimension
    gated: bool = False
    """Whether its feed-forward networks have a gate: three matrices in place of two."""
    other_parameters: Annotated[float, Field(ge=0.0, le=1e12)] = 0.0
    """Matrix parameters beside the layers (projector, patch embedding), worked with once a feature."""
    patches: TokenCount
    """Tokens of an image inside the encoder."""
    tokens: TokenCount
    """Features of an image that enter the language model; they are part of a workload's `input`."""


def published(quantised: object) -> WeightPrecision:
    """Precision of the layer matrices that a `quantization_config` says; MXFP4 counts as int4, scales apart."""
    method = quantised.get("quant_method") if isinstance(quantised, dict) else None
    return "fp8" if method == "fp8" else "int4" if method == "mxfp4" else "bf16"


class Llm(Described):
    """Shape keys carry the names of the Hugging Face configuration."""

    name: str | None = None
    """Catalog name."""
    repository: str | None = None
    """Hugging Face repository id."""
    source: str | None = None
    """Where the shape comes from."""
    model_type: str | None = None
    num_hidden_layers: Layers
    hidden_size: Dimension
    num_attention_heads: Count
    num_key_value_heads: Count
    head_dim: Count
    intermediate_size: Dimension
    vocab_size: Dimension
    tie_word_embeddings: bool = False
    max_position_embeddings: Dimension | None = None
    qk_norm: bool = False
    """RMSNorm on the heads of queries and keys."""
    kv_lora_rank: Count | None = None
    """MLA: width of the latent state of a token and layer."""
    q_lora_rank: Count | None = None
    qk_nope_head_dim: Count | None = None
    qk_rope_head_dim: Count | None = None
    v_head_dim: Count | None = None
    num_experts: Experts | None = None
    num_local_experts: Experts | None = None
    n_routed_experts: Experts | None = None
    n_shared_experts: Annotated[int, Field(ge=0, le=10**6)] | None = None
    num_experts_per_tok: Count | None = None
    moe_intermediate_size: Dimension | None = None
    first_k_dense_replace: Annotated[int, Field(ge=0, le=10**6)] | None = None
    moe_layer_freq: Count | None = None
    decoder_sparse_step: Count | None = None
    mlp_only_layers: list[int] | None = None
    n_group: Count | None = None
    topk_group: Count | None = None
    sliding_window: Dimension | None = None
    """Tokens that layers of sliding attention see and keep, the newest one included."""
    layer_types: Annotated[list[LayerType], Field(max_length=10**5)] | None = None
    """Kind of each layer; default: all full, or all sliding where there is a window and no pattern."""
    sliding_window_pattern: Count | None = None
    """Of so many layers the last has full attention, the others slide."""
    full_attention_interval: Count | None = None
    """Of so many layers the last has full attention, the others linear."""
    linear_num_key_heads: Count | None = None
    linear_num_value_heads: Count | None = None
    linear_key_head_dim: Count | None = None
    linear_value_head_dim: Count | None = None
    linear_conv_kernel_dim: Count | None = None
    recurrent_state: PositiveBytes | None = None
    """State of a request in one layer of linear attention, whatever its length; default: from the widths, in BF16."""
    attn_output_gate: bool | None = None
    """Attention outputs go through a gate as wide as the queries (Qwen3-Next)."""
    num_nextn_predict_layers: Annotated[int, Field(ge=0, le=1000)] | None = None
    quantization_config: dict[str, Any] | None = None
    handoff_state: "Llm | None" = None
    """Another model whose context state is kept and handed over in place of this one's; stage times stay."""
    query_work: Literal["hidden", "added"] = "hidden"
    """Query-side work of a compact MLA `handoff_state`: hidden under reading, or added to each decode step."""
    tp: Degrees | None = None
    """Tensor-parallel degrees of units; default: every power of two that divides the model and fits in a server."""
    pp: Degrees | None = None
    """Pipeline-parallel degrees of units; default: what is needed to fit."""
    ep: Degrees | None = None
    """GPUs over which units spread experts; default: the group's."""
    dp: Degrees | None = None
    """Groups of GPUs in such a unit that hold requests of their own; default: the group's."""
    encoder: Encoder | None = None
    """Encoder of images, where the model has one."""
    expert_loads: list[list[PositiveNumber]] | None = None
    """Tokens of each expert over the mean, one row for each layer with experts, or one for all: a file of one array, as
    `inferplan experts` reads it, or rows. Default: each as often as the others.
    """
    weights: WeightPrecision
    """Precision of the layer matrices; embeddings, head and norms stay BF16."""
    kv: Precision
    """Precision of the context state."""

    @property
    def sparse_layers(self) -> int:
        """Layers of a mixture of experts that have experts, as Hugging Face configurations say it."""
        return sum(self._is_sparse(layer) for layer in range(self.num_hidden_layers))

    def _is_sparse(self, layer: int) -> bool:
        if layer < (self.first_k_dense_replace or 0) or layer in (self.mlp_only_layers or []):
            return False
        if self.moe_layer_freq and layer % self.moe_layer_freq:
            return False
        return (layer + 1) % (self.decoder_sparse_step or 1) == 0

    @property
    def experts(self) -> int | None:
        """Routed experts of an MoE layer, or None for a dense model."""
        return self.n_routed_experts or self.num_experts or self.num_local_experts

    @property
    def layer_kinds(self) -> tuple[LayerType, ...]:
        """The kind of attention of each layer; empty where all have full attention."""
        return kinds(self.__dict__)
