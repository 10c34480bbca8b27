"""Writes a placement in the formats that engines load."""

import json
from collections.abc import Callable
from typing import Any

import yaml

from models.experts.placement import Placement

Writer = Callable[[Placement, tuple[int, ...], int], str]


def sglang(placement: Placement, layer_ids: tuple[int, ...], model_layers: int) -> str:
    """`--init-expert-location`: {"physical_to_logical_map": row per model layer}; layers without experts in order."""
    plain = [slot % placement.experts for slot in range(placement.layout.total)]
    rows = [plain] * model_layers
    for layer, row in zip(layer_ids, placement.rows(), strict=True):
        rows[layer] = row
    return _json({"physical_to_logical_map": rows})


def trtllm(placement: Placement, layer_ids: tuple[int, ...], model_layers: int) -> str:
    """`moe_config.load_balancer`: static assignments by model layer id."""
    document = {
        "num_slots": placement.layout.total,
        "initial_global_assignments": dict(zip(layer_ids, placement.rows(), strict=True)),
        "layer_updates_per_iter": 0,
    }
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=2**31)


def vllm(placement: Placement, layer_ids: tuple[int, ...], model_layers: int) -> str:
    """A list of experts for each layer with experts, as the open proposals of vLLM read it."""
    return _json(placement.rows())


def vllm_ascend(placement: Placement, layer_ids: tuple[int, ...], model_layers: int) -> str:
    """`expert_map_path`: experts by layer and device."""
    layers = [
        {
            "layer_id": number,
            "device_count": placement.layout.cards,
            "device_list": [
                {"device_id": card, "device_expert": [e for e in slots if e >= 0]} for card, slots in enumerate(row)
            ],
        }
        for number, row in enumerate(placement.slots.tolist())
    ]
    return _json({"moe_layer_count": placement.layers, "layer_list": layers})


def _json(document: Any) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"


WRITERS: dict[str, Writer] = {"sglang": sglang, "trtllm": trtllm, "vllm": vllm, "vllm-ascend": vllm_ascend}
"""By the name of the engine."""
