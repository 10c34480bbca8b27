r"""Parameter counts of a dense transformer, and the bytes that a pass over them reads.

Matrix parameters of all layers, $W_l$, the output head, $W_h$, and norm parameters, $N_n$, are kept apart
because passes treat them differently: the head runs once per returned token, the input embedding is only
gathered, norms cost bytes but no matrix work.
"""


def attention_parameters(hidden: int, heads: int, kv_heads: int, head_dim: int) -> float:
    r"""Matrix parameters of one attention layer: $2 h\,q + 2 h\,k$ with $q$ = heads x dim, $k$ = KV heads x dim.

    Units: parameters. Source: model configuration; accounting of chapter 9, section 9.2.3.
    """
    return 2.0 * hidden * heads * head_dim + 2.0 * hidden * kv_heads * head_dim


def ffn_parameters(hidden: int, intermediate: int) -> float:
    r"""Matrix parameters of one gated feed-forward layer: $3 h f$. Units: parameters."""
    return 3.0 * hidden * intermediate


def layer_parameters(layers: int, hidden: int, heads: int, kv_heads: int, head_dim: int, intermediate: int) -> float:
    r"""Matrix parameters of all layers, $W_l$. Units: parameters. Qwen3-8B: 6 945 767 424."""
    return layers * (attention_parameters(hidden, heads, kv_heads, head_dim) + ffn_parameters(hidden, intermediate))


def head_parameters(hidden: int, vocabulary: int) -> float:
    r"""Parameters of the output head (and of an untied input embedding), $W_h$. Units: parameters."""
    return float(hidden) * vocabulary


def norm_parameters(layers: int, hidden: int, head_dim: int, qk_norm: bool) -> float:
    r"""Norm parameters, $N_n$: two of width $h$ a layer, two of the head dimension with QK norm, one at the end."""
    per_layer = 2.0 * hidden + (2.0 * head_dim if qk_norm else 0.0)
    return layers * per_layer + hidden


def resident_weight_bytes(
    layer_params: float,
    head_params: float,
    norm_params: float,
    layer_bytes: float,
    other_bytes: float,
    tied: bool,
) -> float:
    r"""Bytes of weights that a unit keeps: $b\,W_l + b_o (2 W_h + N_n)$, one $W_h$ when embeddings are tied.

    ``layer_bytes`` and ``other_bytes`` are bytes per parameter. Source: section 9.2.3. Qwen3-8B BF16: 16 381 470 720.
    """
    tables = 1.0 if tied else 2.0
    return layer_bytes * layer_params + other_bytes * (tables * head_params + norm_params)


def read_weight_bytes(
    layer_params: float,
    head_params: float,
    norm_params: float,
    layer_bytes: float,
    other_bytes: float,
) -> float:
    r"""Weight bytes that one pass reads whatever its batch: $b\,W_l + b_o (W_h + N_n)$; no embedding table.

    Source: section 9.2.3 ("about 15 GB of weights"). Units: bytes.
    """
    return layer_bytes * layer_params + other_bytes * (head_params + norm_params)


def gathered_row_bytes(tokens: float, hidden: int, other_bytes: float) -> float:
    r"""Embedding rows gathered for ``tokens`` tokens: $b_o h n$. Units: bytes."""
    return other_bytes * hidden * tokens


def mla_attention_parameters(
    hidden: int, heads: int, query_rank: int | None, latent: int, nope_dim: int, rope_dim: int, v_dim: int
) -> float:
    r"""Matrix parameters of one MLA layer: queries (through rank $r_q$ if there is one), latent, projections, output.

    $h r_q + r_q n (d_n + d_r)$, or $h n (d_n + d_r)$; $+ h (d_c + d_r) + d_c n (d_n + d_v) + n d_v h$.
    """
    width = heads * (nope_dim + rope_dim)
    query = float(hidden) * query_rank + float(query_rank) * width if query_rank else float(hidden) * width
    return query + hidden * (latent + rope_dim) + latent * heads * (nope_dim + v_dim) + float(heads) * v_dim * hidden


def gate_parameters(hidden: int, heads: int, head_dim: int) -> float:
    r"""Gate on the attention outputs of one layer: $h q$."""
    return float(hidden) * heads * head_dim


def linear_attention_parameters(hidden: int, key_heads: int, value_heads: int, key_dim: int, value_dim: int) -> float:
    r"""Matrix parameters of one layer of gated linear attention: $h (2 k + 2 v + 2 h_v) + v h$.

    $k = h_k d_k$, $v = h_v d_v$: queries, keys, values and their gate, two scalars a value head, output. As in the
    configuration of Qwen3-Next.
    """
    keys, values = float(key_heads) * key_dim, float(value_heads) * value_dim
    return hidden * (2.0 * keys + 2.0 * values + 2.0 * value_heads) + values * hidden


def expert_parameters(hidden: int, expert_width: int, experts: float) -> float:
    r"""Matrix parameters of ``experts`` gated experts of one layer: $3 h f_e E$."""
    return ffn_parameters(hidden, expert_width) * experts


def router_parameters(hidden: int, experts: int) -> float:
    r"""Parameters of the router of one layer: $h E$."""
    return float(hidden) * experts
