"""Checks of a model's shape, and of degrees of parallelism against it."""

from collections.abc import Iterator
from typing import Any

from models import attention
from models.errors import Problem
from models.plain import Path, is_whole, mapping, problem

EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


def check(llm: dict[str, Any], path: Path) -> Iterator[Problem]:
    """Numbers of one model that do not go together."""
    if llm.get("query_work") == "added" and not mapping(llm.get("handoff_state")).get("kv_lora_rank"):
        accepted = "a compact MLA state, e.g. handoff_state: DeepSeek-V3"
        yield problem((*path, "query_work"), "needs a handoff_state that has such work", "added", accepted)
    heads, kv_heads = llm.get("num_attention_heads"), llm.get("num_key_value_heads")
    if is_whole(heads) and is_whole(kv_heads) and kv_heads > 0 and heads % kv_heads:
        accepted = f"a divisor of num_attention_heads = {heads}"
        yield problem((*path, "num_key_value_heads"), "does not divide the query heads", kv_heads, accepted)
    yield from attention.check(llm, path)
    yield from attention.check(mapping(llm.get("handoff_state")), (*path, "handoff_state"))
    yield from _experts(llm, path)
    if llm.get("kv_lora_rank"):
        for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"):
            if llm.get(key) is None:
                yield problem((*path, key), "missing: kv_lora_rank makes it an MLA model", None, "a whole number")
    yield from degrees(llm, path)
    for index, degree in enumerate(llm["tp"] if isinstance(llm.get("tp"), list) else []):
        if is_whole(degree) and degree > 0 and not divides(degree, llm):
            accepted = "one of " + ", ".join(str(d) for d in range(1, 65) if divides(d, llm))
            yield problem((*path, "tp", index), "does not divide the heads and widths of the model", degree, accepted)
    layers = llm.get("num_hidden_layers")
    for index, degree in enumerate(llm["pp"] if isinstance(llm.get("pp"), list) else []):
        if is_whole(degree) and is_whole(layers) and degree > layers:
            yield problem((*path, "pp", index), "more stages than layers", degree, f"at most {layers}")


def _experts(llm: dict[str, Any], path: Path) -> Iterator[Problem]:
    named = [key for key in EXPERTS if llm.get(key)]
    if not named:
        return
    chosen, experts = llm.get("num_experts_per_tok"), llm[named[0]]
    if chosen is None:
        yield problem(
            (*path, "num_experts_per_tok"), f"missing: {named[0]} makes it a mixture of experts", None, "1 or more"
        )
    elif is_whole(chosen) and is_whole(experts) and chosen > experts:
        yield problem(
            (*path, "num_experts_per_tok"), f"more than the {experts} there are", chosen, f"at most {experts}"
        )


def divides(degree: int, llm: dict[str, Any]) -> bool:
    """Whether query heads, KV heads, heads of linear attention and feed-forward widths can be cut into ``degree`` equal
    parts.

    KV heads are kept several times where there are fewer of them than parts; an MLA state always is.
    """
    parts = [llm.get("num_attention_heads"), llm.get("intermediate_size")]
    parts += [llm.get(key) for key in attention.HEADS]
    parts += [llm.get("moe_intermediate_size")] if any(llm.get(key) for key in EXPERTS) else []
    if any(is_whole(part) and part % degree for part in parts):
        return False
    kv_heads = llm.get("num_key_value_heads")
    if llm.get("kv_lora_rank") or not is_whole(kv_heads) or kv_heads < 1:
        return True
    return kv_heads % degree == 0 or degree % kv_heads == 0


def degrees(entry: dict[str, Any], path: Path) -> Iterator[Problem]:
    """Degrees named twice, or wider than a server."""
    each = entry.get("per_server")
    for key in ("tp", "pp"):
        listed = entry.get(key)
        if not isinstance(listed, list):
            continue
        for index, degree in enumerate(listed):
            if degree in listed[:index]:
                yield problem((*path, key, index), "named twice", degree, "each degree once")
            elif key == "tp" and is_whole(degree) and is_whole(each) and degree > each:
                yield problem((*path, key, index), f"more than the {each} GPUs of a server", degree, f"at most {each}")
