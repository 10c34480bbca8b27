"""What each layer of a model keeps and sees of a context, token by token, written again from the model alone."""

import math
from functools import lru_cache

from models.llm import Llm

BYTES = {"bf16": 2.0, "fp8": 1.0}
FULL, SLIDES, LINEAR = "full_attention", "sliding_attention", "linear_attention"


def layers_of(llm: Llm) -> list[str]:
    """The kind of each layer."""
    count = llm.num_hidden_layers
    if llm.layer_types is not None:
        return list(llm.layer_types)
    if llm.full_attention_interval is not None:
        return [LINEAR if number % llm.full_attention_interval else FULL for number in range(1, count + 1)]
    if llm.sliding_window is None:
        return [FULL] * count
    period = llm.sliding_window_pattern
    return [FULL if period is not None and number % period == 0 else SLIDES for number in range(1, count + 1)]


@lru_cache(maxsize=100_000)
def seen(kind: str, window: int, before: int, queries: int) -> int:
    """Tokens that ``queries`` tokens behind ``before`` others see in one layer, themselves included."""
    most = {FULL: before + queries, SLIDES: window, LINEAR: 0}[kind]
    return sum(min(place, most) for place in range(before + 1, before + queries + 1))


def pairs(llm: Llm, kinds: list[str], new: int, cached: int) -> float:
    """Query-key pairs of a prefill, over these layers."""
    return float(sum(seen(kind, llm.sliding_window or 0, cached, new) for kind in kinds))


def visible(llm: Llm, kinds: list[str], first: int, output: int) -> float:
    """Tokens that a decode call sees, over these layers: mean over contexts from ``first`` on, one for each output."""
    return pairs(llm, kinds, output, first) / output


def constant(llm: Llm) -> float:
    """Bytes that a layer with linear attention keeps of a request."""
    if llm.recurrent_state is not None:
        return llm.recurrent_state
    keys, values, wide = _widths(llm)
    return 2.0 * (wide + (2 * keys + values) * ((llm.linear_conv_kernel_dim or 0) - 1))


def elements(llm: Llm) -> float:
    """Of its state, as far as a token works on them."""
    wide = _widths(llm)[2]
    return float(wide) if wide else constant(llm) / 2.0


def _widths(llm: Llm) -> tuple[int, int, int]:
    """Width of all keys, of all values, and elements of the state."""
    each_key, each_value = llm.linear_key_head_dim or 0, llm.linear_value_head_dim or 0
    values = llm.linear_num_value_heads or 0
    return (llm.linear_num_key_heads or 0) * each_key, values * each_value, values * each_key * each_value


def token(llm: Llm, tp: int = 1) -> float:
    """Bytes of a token in one layer that keeps tokens, on one of ``tp`` GPUs."""
    return 2.0 * math.ceil(llm.num_key_value_heads / tp) * llm.head_dim * BYTES[llm.kv]


def keeps(llm: Llm, kinds: list[str], tokens: float, tp: int = 1) -> float:
    """Bytes of a request in these layers, on one of ``tp`` GPUs."""
    total = 0.0
    for kind in kinds:
        if kind == LINEAR:
            total += constant(llm) / tp
        else:
            total += token(llm, tp) * (min(tokens, llm.sliding_window or 0) if kind == SLIDES else tokens)
    return total


def state(llm: Llm, tokens: float) -> float:
    """Bytes of a whole request."""
    return keeps(llm, layers_of(llm), tokens)


def attention_params(llm: Llm) -> float:
    """Of all layers: projections of queries, keys, values and output, and gates."""
    query, key = llm.num_attention_heads * llm.head_dim, llm.num_key_value_heads * llm.head_dim
    own = llm.hidden_size * (2 * query + 2 * key + (query if llm.attn_output_gate else 0))
    keys, values, wide = _widths(llm)
    linear = llm.hidden_size * (2 * keys + 3 * values + 2 * (llm.linear_num_value_heads or 0)) if wide else own
    return float(sum(linear if kind == LINEAR else own for kind in layers_of(llm)))


def work(llm: Llm, kinds: list[str], tokens_seen: float, tokens: float) -> float:
    """FLOPs of attention in these layers: of scores and values, and of ``tokens`` tokens on states of constant size."""
    score = 4.0 * llm.num_attention_heads * llm.head_dim
    return score * tokens_seen + 6.0 * elements(llm) * tokens * kinds.count(LINEAR)


def moves(llm: Llm, kinds: list[str], tokens_seen: float, tp: int = 1) -> float:
    """Bytes of state of a decode call on one GPU: what is seen is read, states of constant size read and written."""
    return token(llm, tp) * tokens_seen + 2.0 * constant(llm) / tp * kinds.count(LINEAR)
