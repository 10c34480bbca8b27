"""Random instances for units that divide a layer: models with experts, groups that differ, links of every sort."""

import random
from typing import Any

from models import files
from models.instance import Instance
from models.load import build

SMALL: dict[str, Any] = {
    "num_hidden_layers": 6,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 4096,
    "vocab_size": 32000,
}
MIXTURE = {**SMALL, "num_experts": 16, "num_experts_per_tok": 2, "moe_intermediate_size": 512}
MODELS: tuple[dict[str, Any], ...] = (
    {**MIXTURE, "n_shared_experts": 1, "first_k_dense_replace": 1},
    {**MIXTURE, "num_experts": 10, "decoder_sparse_step": 2, "tie_word_embeddings": True, "weights": "int4"},
    {**MIXTURE, "num_experts": 32, "num_experts_per_tok": 4, "qk_norm": True, "weights": "fp8", "kv": "fp8"},
    {
        **MIXTURE,
        "kv_lora_rank": 128,
        "q_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "mlp_only_layers": [0, 3],
    },
    {**SMALL, "num_local_experts": 8, "num_experts_per_tok": 2, "num_key_value_heads": 2},
    SMALL,
    {"catalog": "Qwen3-235B-A22B"},
    {"catalog": "DeepSeek-V3"},
    {"catalog": "Mixtral-8x22B", "weights": "int4"},
    {"catalog": "Qwen3-8B"},
)
SCHEMES = ("replicas", "pd-direct", "attention-ffn", "expert-pool", "cpu-experts")
HOST = {"cpu": "Xeon-Platinum-8452Y", "kernel": "amx", "link": {"bandwidth": "25 GB/s", "startup": "5 us"}}
SLOW = {"catalog": "Xeon-Platinum-8452Y", "memory": "60 GB", "kernels": {"avx512": "1.8 TFLOP/s"}}


def document(seed: int) -> dict[str, Any]:
    """The instance of a seed as plain data."""
    draw = random.Random(77_000 + seed)
    models = {f"m{i}": dict(model) for i, model in enumerate(draw.sample(MODELS, draw.choice((1, 1, 2))))}
    large = any("catalog" in model for model in models.values())
    names = [f"g{i}" for i in range(draw.choice((1, 2, 2)))]
    groups = {name: group(draw, large) for name in names}
    return {
        "schema": 1,
        "name": f"layouts-{seed}",
        "models": models,
        "hardware": {
            "groups": groups,
            "links": links(draw, names),
            "efficiency": {"compute": draw.uniform(0.3, 0.6), "bandwidth": draw.uniform(0.4, 0.8)},
        },
        "workloads": workloads(draw, list(models)),
        "schemes": {"allow": schemes(models, groups)},
        "objective": "gpus",
    }


def schemes(models: dict[str, Any], groups: dict[str, Any]) -> list[str]:
    """Those that the models and groups can have."""
    mixture = any(model not in (SMALL, {"catalog": "Qwen3-8B"}) for model in models.values())
    without = set() if mixture else {"expert-pool", "cpu-experts"}
    without |= set() if any("host" in one for one in groups.values()) else {"cpu-experts"}
    return [scheme for scheme in SCHEMES if scheme not in without]


def built(document: dict[str, Any]) -> Instance:
    """The instance of a document."""
    return build(files.parse(files.dump(document)))


def group(draw: random.Random, large: bool) -> dict[str, Any]:
    """A group, with or without stated degrees, prices and hosts."""
    memory = draw.choice((80, 141, 192)) if large else draw.choice((1, 2, 4))
    card: dict[str, Any] = {
        "name": f"own{memory}",
        "memory": f"{memory} GB",
        "bandwidth": f"{draw.uniform(0.6, 4):.3g} TB/s",
        "compute": {"bf16": f"{draw.uniform(90, 900):.3g} TFLOP/s"},
    }
    if draw.random() < 0.5:
        card["compute"]["fp8"] = f"{draw.uniform(200, 1800):.3g} TFLOP/s"
    each = draw.choice((1, 2, 4, 8, 8) if large else (1, 2, 4, 8))
    found: dict[str, Any] = {
        "accelerator": draw.choice(("H100-SXM-80GB", "H20-SXM5-96GB", card)) if large else card,
        "servers": draw.choice((1, 2, 4)),
        "per_server": each,
    }
    found["scale_up"] = draw.choice(
        ("NVLink-4", {"bandwidth": "40 GB/s", "startup": "7 us", "link_efficiency": 0.8}, {"bandwidth": "90 GB/s"})
    )
    if draw.random() < 0.4:
        found["host"] = draw.choice((HOST, HOST | {"cpu": SLOW, "kernel": "avx512", "sockets": 1}))
    if draw.random() < 0.3:
        found["price"] = f"{draw.uniform(1, 4):.3g}/h"
    if draw.random() < 0.3:
        found["efficiency"] = {"compute": 0.4, "bandwidth": 0.7}
    if draw.random() < 0.3:
        found["usable_memory"] = 0.8
    if draw.random() < 0.35:
        found |= {"tp": draw.choice(([1], [1, 2], [2])) if each > 1 else [1], "pp": [1]}
        stated = {"ep": draw.choice(([2, 4], [2, 3, 4], [4, 8])), "dp": draw.choice(([1, 2, 4], [2, 3, 8], [1, 4]))}
        most = each * found["servers"]
        narrow = {key: [degree for degree in degrees if degree <= most] for key, degrees in stated.items()}
        found |= {key: degrees for key, degrees in narrow.items() if degrees}
    return found


def links(draw: random.Random, names: list[str]) -> dict[str, Any]:
    """A link between all groups, now and then behind another."""
    found = {"l0": _link(draw, names)}
    if len(names) > 1 and draw.random() < 0.3:
        found = {"l0": _link(draw, names[:1]), "l1": _link(draw, [*names[1:], "l0"])}
    elif draw.random() < 0.3:
        found["l1"] = _link(draw, names[:1])
    return found


def _link(draw: random.Random, connects: list[str]) -> dict[str, Any]:
    return {
        "connects": connects,
        "bandwidth": f"{draw.choice((5, 25, 50, 100))} GB/s",
        "duplex": draw.choice(("shared", "per-direction", "per-direction")),
        "per": draw.choice(("link", "server")),
        "ports": draw.choice((1, 2, 8)),
        "startup": f"{draw.choice((0, 3, 10))} us",
        "link_efficiency": draw.choice((1.0, 0.9)),
    }


def workloads(draw: random.Random, models: list[str]) -> dict[str, Any]:
    """Workloads of one length or of classes, with stated batches, cached tokens, targets, longest requests."""
    loads: dict[str, Any] = {}
    for index in range(max(len(models), draw.choice((1, 1, 2)))):
        load: dict[str, Any] = {"model": models[min(index, len(models) - 1)], "rate": f"{draw.uniform(0.1, 3):.3g}/s"}
        loads[f"w{index}"] = load
        one = {"input": draw.randint(100, 9000), "output": draw.randint(1, 600)}
        if draw.random() < 0.4:
            other = {"share": "30 %", "input": draw.randint(100, 9000), "output": draw.randint(2, 900)}
            load["lengths"] = [{"share": "70 %", **one}, {**other, "cached": 50}]
        else:
            load |= one | ({"cached": one["input"] // 3} if draw.random() < 0.3 else {})
        if draw.random() < 0.25:
            load["batch"] = draw.choice((1, 3, 8, 40))
        if draw.random() < 0.2:
            load["longest"] = {"input": 9000, "output": 1000}
        if draw.random() < 0.3:
            load["targets"] = {"tpot": f"{draw.choice((3, 10, 40, 150))} ms"}
        elif draw.random() < 0.2:
            load["targets"] = {"ttft": f"{draw.choice((0.05, 0.5, 3))} s"}
    return loads
