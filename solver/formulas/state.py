r"""Context state (KV): bytes per token by attention kind, and which tokens have state when."""

from solver.formulas.work import windowed_pairs


def kv_bytes_per_token_gqa(layers: int, kv_heads: int, head_dim: int, element_bytes: float) -> float:
    r"""State of one token under MHA or GQA: $2 n\,h_{kv}\,d_h\,b$. Units: bytes. Source: section 9.2.2."""
    return 2.0 * layers * kv_heads * head_dim * element_bytes


def kv_bytes_per_token_mla(layers: int, latent: int, rope_dim: int, element_bytes: float) -> float:
    r"""Compact MLA state of one token: $n (d_c + d_r) b$. Units: bytes. Source: section 9.2.2."""
    return float(layers) * (latent + rope_dim) * element_bytes


def kv_bytes_per_token_mla_expanded(layers: int, heads: int, qk_dim: int, v_dim: int, element_bytes: float) -> float:
    r"""MLA state of one token if stored per head: $n\,h (d_{qk} + d_v) b$. Units: bytes. Source: section 9.2.2."""
    return float(layers) * heads * (qk_dim + v_dim) * element_bytes


def decode_calls(output: float) -> float:
    r"""Decode calls of a request: $G - 1$, since prefill gives the first token. Source: section 9.1.1."""
    return output - 1.0


def covered_tokens(input_tokens: float, output: float) -> float:
    r"""Tokens whose state exists once all output is returned: $L + G - 1$; the last token has none. Section 9.1.3."""
    return input_tokens + output - 1.0


def mean_context(input_tokens: float, output: float) -> float:
    r"""Mean context of the decode calls: $L + (G - 1)/2$. Units: tokens. Source: section 9.2.3 (8704)."""
    return input_tokens + (output - 1.0) / 2.0


def state_bytes(tokens: float, per_token: float, requests: float = 1.0) -> float:
    r"""State of ``requests`` requests of ``tokens`` tokens each, in bytes. Source: section 9.2.2."""
    return tokens * per_token * requests


def windowed_tokens(tokens: float, window: float) -> float:
    r"""Tokens whose state a layer keeps that sees a window of $w$: $\min(n, w)$. Source: section 9.5.1."""
    return min(tokens, window)


def windowed_context(input_tokens: float, output: float, window: float) -> float:
    r"""Mean context of the decode calls where a call sees at most $w$ tokens, its own included.

    $\frac{1}{G} \sum_{t=0}^{G-1} \min(L + t + 1, w) - 1$; without the window this sum is :func:`mean_context`, which is
    why it has $G$ terms. Units: tokens.
    """
    return windowed_pairs(output, input_tokens, window) / output - 1.0


def recurrent_elements(value_heads: int, key_dim: int, value_dim: int) -> float:
    r"""Elements of the state of one layer of linear attention: $h_v d_k d_v$, whatever the length."""
    return float(value_heads) * key_dim * value_dim


def convolution_elements(key_heads: int, value_heads: int, key_dim: int, value_dim: int, kernel: int) -> float:
    r"""Inputs that the convolution of such a layer keeps: $(2 h_k d_k + h_v d_v)(w - 1)$, its kernel $w$ tokens."""
    return (2.0 * key_heads * key_dim + float(value_heads) * value_dim) * (kernel - 1)


def state_residency(state: float, seconds: float) -> float:
    r"""Capacity x time that waiting state occupies: $V\tau$, in byte-seconds. Source: section 9.1.3."""
    return state * seconds


def replicated_state_bytes(state: float, groups: int) -> float:
    r"""State kept once per expert-parallel group: $g V$, in bytes. Source: section 9.1.1."""
    return state * groups
