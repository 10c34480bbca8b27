"""Layers of several kinds: which architectures have them, and how an instance file says them shortest."""

from typing import Any

from models.attention import FULL, LINEAR, SLIDING, LayerType, every

PATTERNS = {"gemma2": 2, "gemma3_text": 6, "gpt_oss": 2}
"""Architectures of which every so many-th layer has full attention unless they say otherwise."""
WINDOWED = frozenset(
    {"mistral", "mixtral", "phi3", "qwen2", "qwen3", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl"}
    | {"qwen2_5_vl_text", *PATTERNS}
)
"""Architectures whose layers may slide."""
LINEAR_LAYERS = frozenset({"qwen3_next"})
"""Architectures whose layers may have linear attention."""


def said(kinds: list[LayerType], window: object) -> dict[str, Any]:
    """Keys of an instance file for these layers."""
    sliding = {"sliding_window": window} if SLIDING in kinds else {}
    if not set(kinds) - {FULL}:
        return {}
    if set(kinds) == {SLIDING}:
        return sliding
    for key, others in (("sliding_window_pattern", SLIDING), ("full_attention_interval", LINEAR)):
        period = kinds.index(FULL) + 1 if FULL in kinds else 0
        if period and tuple(kinds) == every(len(kinds), period, others):
            return {**sliding, key: period}
    return {**sliding, "layer_types": kinds}
