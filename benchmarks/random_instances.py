"""Random instances larger than any chapter's: the same seed gives the same instance everywhere."""

import random
from typing import Any

from models import files
from models.instance import Instance
from models.load import build

ACCELERATORS = ("A100-SXM-80GB", "H20-SXM5-96GB", "H100-SXM-80GB", "H200-SXM-141GB")
MODELS: dict[str, dict[str, str]] = {
    "qwen": {"catalog": "Qwen3-8B"},
    "llama": {"catalog": "Llama-3.1-8B", "weights": "fp8"},
}


def instance(seed: int, groups: int = 3, workloads: int = 3, models: int = 2, cards: int = 64) -> Instance:
    """``groups`` groups of up to ``cards`` cards that serve ``workloads`` workloads on ``models`` models."""
    draw = random.Random(seed)
    names = list(MODELS)[:models]
    hardware: dict[str, Any] = {
        "groups": {
            f"g{index}": {
                "accelerator": ACCELERATORS[index % len(ACCELERATORS)],
                "servers": draw.randint(1, max(1, cards // 8)),
                "per_server": 8,
                "price": f"{draw.choice((1, 1.5, 2, 3.25))}/h",
            }
            for index in range(groups)
        },
        "efficiency": {"compute": 0.5, "bandwidth": 0.5},
    }
    hardware["links"] = {
        "net": {
            "connects": list(hardware["groups"]),
            "bandwidth": f"{draw.choice((50, 100, 200))} Gbit/s",
            "duplex": "shared",
        }
    }
    hardware["stores"] = {"pool": {"on": "net", "capacity": "256 GiB"}}
    loads = {
        f"w{index}": {
            "model": names[index % models],
            "rate": f"{draw.uniform(0.05, 0.2):.4f}/s",
            "input": draw.choice((1024, 4096, 8192)),
            "output": draw.randint(128, 1024),
        }
        for index in range(workloads)
    }
    document = {
        "schema": 1,
        "name": f"random-{groups}x{workloads}x{models}-{seed}",
        "hardware": hardware,
        "models": {name: MODELS[name] for name in names},
        "workloads": loads,
        "service": {"startup": "10 s", "drain": "60 s"},
        "schemes": {"allow": ["replicas", "chunked", "pd-direct", "pd-pooled"], "mix": True},
        "billing": {"currency": "credit", "pay": "reserved"},
        "objective": "throughput",
    }
    return build(files.parse(files.dump(document)))
