"""Parts of random instances with what plain ones lack: groups, workloads, measured units, purchases."""

import random
from typing import Any

from tests.against.generate import TINY, WIDE

FEW_HEADS = {**TINY, "num_key_value_heads": 2, "intermediate_size": 12288}
MODELS: tuple[dict[str, Any], ...] = (
    {"catalog": "Qwen3-8B"},
    {"catalog": "Llama-3.1-8B", "kv": "fp8"},
    TINY,
    WIDE,
    FEW_HEADS,
)
SMALL = {
    "name": "small",
    "memory": "16 GB",
    "bandwidth": "0.7 TB/s",
    "compute": {"bf16": "90 TFLOP/s"},
    "power": "150 W",
}
OWN = {"name": "own", "memory": "40 GB", "bandwidth": "1.2 TB/s", "compute": {"bf16": "150 TFLOP/s"}, "power": "320 W"}
CARDS: tuple[Any, ...] = ("A100-SXM-80GB", "H20-SXM5-96GB", "H100-SXM-80GB", "L40S", OWN, SMALL, SMALL)
WIRES: tuple[Any, ...] = (
    "NVLink-4",
    {"bandwidth": "20 GB/s", "startup": "20 us", "link_efficiency": 0.8},
    {"bandwidth": "60 GB/s"},
)
SHAPES = ((1, 2), (2, 2), (1, 4), (1, 3), (2, 1), (3, 1), (1, 6), (2, 3))
"""Servers, and GPUs in each."""


LINEAR = {
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
}


def kinds(draw: random.Random) -> dict[str, Any]:
    """Keys of a model whose layers are of several kinds."""
    sliding = {"sliding_window": draw.choice((64, 700, 1500, 9000))}
    return draw.choice(
        (
            sliding,
            {**sliding, "sliding_window_pattern": draw.choice((2, 3, 6))},
            {**LINEAR, "full_attention_interval": draw.choice((2, 4, 5))},
            {**LINEAR, "full_attention_interval": 4, "recurrent_state": "3 MB", "attn_output_gate": True},
            {"full_attention_interval": 3, "recurrent_state": "1.5 MB"},
        )
    )


def groups(draw: random.Random) -> dict[str, Any]:
    groups = {}
    for index in range(draw.choice((1, 2, 2))):
        servers, each = draw.choice(SHAPES)
        most = [t for t in (1, 2, 4) if t <= each]
        tp = draw.choice((most, most, most[-1:], [1], None))
        groups[f"g{index}"] = {
            "accelerator": draw.choice(CARDS),
            "servers": servers,
            "per_server": each,
            "price": f"{draw.choice((1, 1.5, 2, 3.25)) + index / 7:.4g}/h",
            "scale_up": draw.choice(WIRES),
            "pp": draw.choice(([1], [1], [1], [1, 2], [2])) if each * servers > 1 else [1],
            **({"tp": tp} if tp else {}),
            **({"inside_handoffs": "free"} if draw.random() < 0.4 else {}),
            **({"efficiency": {"compute": 0.35, "bandwidth": 0.6}} if draw.random() < 0.2 else {}),
        }
    return groups


def workloads(draw: random.Random, models: list[str]) -> dict[str, Any]:
    loads: dict[str, Any] = {}
    for index in range(max(len(models), draw.choice((1, 1, 2)))):
        load: dict[str, Any] = {"model": models[index] if index < len(models) else draw.choice(models), "rate": "1/s"}
        loads[f"w{index}"] = load
        if draw.random() < 0.5:
            load["lengths"] = _lengths(draw)
        else:
            load |= {"input": draw.choice((256, 1000, 2048, 6000)), "output": draw.choice((1, 65, 300, 800))}
            if draw.random() < 0.25:
                load["cached"] = draw.randint(1, load["input"] // 2)
        batch = draw.choice((None, None, "max", 2, 8))
        if batch is not None:
            load["batch"] = batch
        if draw.random() < 0.3:
            load |= {"value": draw.choice((0.5, 2.0, 3.0)), "qualifying": draw.choice((0.9, 1.0))}
    return loads


def _lengths(draw: random.Random) -> list[dict[str, Any]]:
    number = draw.choice((2, 2, 3))
    cuts = sorted(draw.sample(range(5, 100), number - 1))
    shares = [b - a for a, b in zip([0, *cuts], [*cuts, 100], strict=True)]
    found = []
    for share in shares:
        one = {
            "share": f"{share} %",
            "input": draw.choice((200, 900, 3000, 7000)),
            "output": draw.choice((1, 40, 256, 700)),
        }
        if draw.random() < 0.2:
            one["cached"] = draw.randint(1, 150)
        found.append(one)
    return found


def measured(draw: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    """One or two units, with rates or a table; now and then in place of nothing, beside computed ones."""
    found: dict[str, Any] = {}
    group = draw.choice(list(data["hardware"]["groups"]))
    model = draw.choice(list(data["models"]))
    apart = any(s.startswith("pd") for s in data["schemes"]["allow"])
    stages = ("prefill", "decode") if apart and draw.random() < 0.7 else ("both",)
    for stage in stages:
        size = draw.choice([n for n in (1, 2, 2) if n <= data["hardware"]["groups"][group]["per_server"]])
        unit: dict[str, Any] = {"group": group, "model": model, "stage": stage, "tp": size}
        mine = [name for name, load in data["workloads"].items() if load["model"] == model]
        rates = {name: f"{draw.uniform(0.5, 6.0):.5g}/s" for name in mine}
        if draw.random() < 0.5:
            points = ((1000, 300, 4.0), (8000, 300, 1.0), (8000, 1000, 0.5), (500, 1000, 2.0))
            unit["table"] = [
                {"input": a, "output": b, "rate": f"{rate * draw.uniform(0.5, 2):.5g}/s"} for a, b, rate in points
            ]
        else:
            unit["rates"] = rates
        if draw.random() < 0.4:
            unit |= {"startup": draw.choice(("1 s", "12 s")), "price": f"{draw.uniform(1, 4):.3g}/h"}
        unit["beside_computed"] = draw.random() < 0.5
        found[f"u-{stage}"] = unit
    return found


def purchases(draw: random.Random, data: dict[str, Any]) -> None:
    named, endless = data["hardware"]["groups"], data["objective"] in ("throughput", "headroom")
    kind = draw.choice(("bundle", "bundle", "rent"))
    if kind == "rent" and not endless:
        name = draw.choice(list(named))
        named[name] |= {"servers": "unlimited", "rent": draw.choice(("gpu", "server"))}
        if named[name]["rent"] == "server":
            named[name]["per_server"] = min(2, named[name]["per_server"])
            named[name]["tp"] = [t for t in named[name].get("tp", [1]) if t <= named[name]["per_server"]] or [1]
    elif kind == "bundle":
        some = draw.sample(list(named), draw.randint(1, len(named)))
        cards = {name: named[name]["per_server"] for name in some}
        data["hardware"]["bundles"] = {
            "b": {
                "cards": cards,
                "price": f"{draw.uniform(0.6, 1.6) * 2 * sum(cards.values()):.4g}/h",
                "at_most": draw.choice((1, 2)),
            }
        }
        if draw.random() < 0.5:
            named[some[0]]["servers"] = 0
