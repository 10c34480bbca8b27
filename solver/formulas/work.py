r"""Matrix work (FLOPs) and memory traffic (bytes) of a prefill pass and of a decode step."""


def causal_pairs(new: float, cached: float) -> float:
    r"""Query-key pairs of ``new`` tokens behind ``cached`` ones, diagonal included: $n c + n(n+1)/2$."""
    return new * cached + new * (new + 1.0) / 2.0


def windowed_pairs(new: float, cached: float, window: float) -> float:
    r"""The same where a query sees at most the last $w$ tokens, its own included: $\sum_{i=1}^{n} \min(c + i, w)$.

    With $k = \min(\max(w - c, 0), n)$ queries that see all: $k c + k(k+1)/2 + (n - k) w$. Source: section 9.5.1.
    """
    whole = min(max(window - cached, 0.0), new)
    return causal_pairs(whole, cached) + (new - whole) * window


def attention_flops(layers: int, channels: float, pairs: float) -> float:
    r"""Scores and values: $4\,n_{layers}\,q$ FLOPs for each query-key pair, $q$ = heads x head dimension."""
    return 4.0 * layers * channels * pairs


def prefill_matrix_flops(new: float, layer_params: float) -> float:
    r"""Layer matrices over ``new`` tokens: $2 n W_l$. The head is counted by :func:`head_flops`."""
    return 2.0 * new * layer_params


def head_flops(tokens: float, head_params: float) -> float:
    r"""Output head for ``tokens`` tokens: $2 n W_h$; a prefill pass runs it for its last token only."""
    return 2.0 * tokens * head_params


def prefill_flops(
    new: float, cached: float, layers: int, channels: float, layer_params: float, head_params: float
) -> float:
    r"""All work of one prefill: $2 n W_l + 4 n_{layers} q (n c + n(n+1)/2) + 2 W_h$.

    ``cached`` tokens cost attention but no matrices. Units: FLOP. Source: section 9.2.3 (133.6 TFLOP).
    """
    return (
        prefill_matrix_flops(new, layer_params)
        + attention_flops(layers, channels, causal_pairs(new, cached))
        + head_flops(1.0, head_params)
    )


def decode_step_flops(
    batch: float, context: float, layers: int, channels: float, layer_params: float, head_params: float
) -> float:
    r"""One decode step: $2 B (W_l + W_h) + 4 n_{layers} q B (C + 1)$; the new token attends to itself too.

    Units: FLOP. Source: section 9.2.3 (0.65 TFLOP at batch 32, context 8704).
    """
    return 2.0 * batch * (layer_params + head_params) + attention_flops(layers, channels, batch * (context + 1.0))


def decode_kv_read_bytes(batch: float, context: float, per_token: float) -> float:
    r"""State that one decode step reads: $B (C + 1) kv$. Units: bytes. Source: section 9.2.3 (41.1 GB)."""
    return batch * (context + 1.0) * per_token


def recurrent_flops(elements: float) -> float:
    r"""One token in one layer of linear attention (gated delta rule): $6 e$ for a state of $e$ elements.

    Reading it with the key, adding an outer product, reading it with the query: a multiplication and an addition each.
    """
    return 6.0 * elements


def recurrent_traffic_bytes(state: float) -> float:
    r"""Bytes that a decode call moves of a state that it replaces: $2 V$, read and written."""
    return 2.0 * state


def mla_query_flops_per_layer(heads: int, nope_dim: int, latent: int, v_dim: int) -> float:
    r"""Extra query-side work of compact MLA, one token and layer: $2 h\,d_{nope} d_c + 2 h\,d_c d_v$. Section 9.2.3."""
    return 2.0 * heads * nope_dim * latent + 2.0 * heads * latent * v_dim


def mla_query_flops(layers: int, heads: int, nope_dim: int, latent: int, v_dim: int) -> float:
    r"""The same over all layers: 2.05 GFLOP for DeepSeek-V3. Units: FLOP per token. Source: section 9.2.3."""
    return layers * mla_query_flops_per_layer(heads, nope_dim, latent, v_dim)


def pair_flops(query_width: float, value_width: float) -> float:
    r"""Attention of one query-key pair in one layer: $2 w_q + 2 w_v$ FLOPs, $w$ = heads x width of a head."""
    return 2.0 * query_width + 2.0 * value_width
