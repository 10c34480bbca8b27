"""Kinds of attention, layer by layer, as Hugging Face configurations say them."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from models.errors import Problem
from models.plain import Path, is_whole, problem

LayerType = Literal["full_attention", "sliding_attention", "linear_attention"]
FULL: LayerType = "full_attention"
SLIDING: LayerType = "sliding_attention"
LINEAR: LayerType = "linear_attention"
HEADS = ("linear_num_key_heads", "linear_num_value_heads")
LINEAR_KEYS = (*HEADS, "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim")


def every(layers: int, period: int, others: LayerType) -> tuple[LayerType, ...]:
    """``others``, and full attention in the last of each ``period`` layers."""
    return tuple(others if (layer + 1) % period else FULL for layer in range(layers))


def kinds(llm: Mapping[str, Any]) -> tuple[LayerType, ...]:
    """The kind of each layer; empty where all have full attention."""
    layers, listed = llm["num_hidden_layers"], llm.get("layer_types")
    if listed is not None:
        found: tuple[LayerType, ...] = tuple(listed)
    elif llm.get("full_attention_interval"):
        found = every(layers, llm["full_attention_interval"], LINEAR)
    elif llm.get("sliding_window"):
        found = every(layers, llm["sliding_window_pattern"], SLIDING) if llm.get("sliding_window_pattern") else ()
        found = found or (SLIDING,) * layers
    else:
        found = ()
    return found if set(found) - {FULL} else ()


def check(llm: dict[str, Any], path: Path) -> Iterator[Problem]:
    """Keys about kinds of layers that do not go together."""
    layers, listed = llm.get("num_hidden_layers"), llm.get("layer_types")
    if isinstance(listed, list) and is_whole(layers) and len(listed) != layers:
        message = "not one kind for each of num_hidden_layers"
        yield problem((*path, "layer_types"), message, f"{len(listed)} kinds", f"a list of {layers}")
        return
    window, pattern = llm.get("sliding_window"), llm.get("sliding_window_pattern")
    interval = llm.get("full_attention_interval")
    if pattern and not window:
        yield problem(
            (*path, "sliding_window"),
            "missing: sliding_window_pattern has a window",
            None,
            "tokens, or sliding_window_pattern: 1 for full attention",
        )
    if pattern and interval:
        accepted = "one of them, or layer_types"
        yield problem((*path, "full_attention_interval"), "beside sliding_window_pattern", interval, accepted)
        return
    if not all(value is None or (is_whole(value) and value > 0) for value in (window, pattern, interval)):
        return
    if not is_whole(layers) or not 0 < layers <= 10**7 or not isinstance(listed, list | None):
        return
    yield from _listed(llm, listed, path)
    if listed is None or all(isinstance(one, str) for one in listed):
        yield from _linear(llm, LINEAR in kinds(llm), path)


def _listed(llm: dict[str, Any], listed: list[Any] | None, path: Path) -> Iterator[Problem]:
    if listed is None:
        return
    if SLIDING in listed and not llm.get("sliding_window"):
        yield problem((*path, "sliding_window"), "missing: layer_types has sliding_attention", None, "tokens")
    for key, others in (("sliding_window_pattern", SLIDING), ("full_attention_interval", LINEAR)):
        period = llm.get(key)
        if period and tuple(listed) != every(len(listed), period, others):
            accepted = f"{FULL} in each layer that {period} divides, counted from 1, else {others}"
            yield problem((*path, "layer_types"), f"contradicts {key} = {period}", f"{len(listed)} kinds", accepted)


def _linear(llm: dict[str, Any], there: bool, path: Path) -> Iterator[Problem]:
    """A state of constant size is stated, or follows from heads and widths; without such layers there is none."""
    said = [key for key in LINEAR_KEYS if llm.get(key) is not None]
    if not there:
        for key in (*said, *(["recurrent_state"] if llm.get("recurrent_state") is not None else [])):
            accepted = f"layer_types with {LINEAR}, or full_attention_interval"
            yield problem((*path, key), "no layer has linear attention", llm[key], accepted)
        return
    if said or llm.get("recurrent_state") is None:
        for key in LINEAR_KEYS:
            if llm.get(key) is None:
                message = "missing: layers have linear attention"
                accepted = "a whole number" + ("" if said else f", or recurrent_state in place of all {HEADS[0][:6]}_*")
                yield problem((*path, key), message, None, accepted)
