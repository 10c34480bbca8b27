"""Random small instances, sized so that links, deadlines and cards each bind now and then."""

import math
import random
from typing import Any

from models import files
from models.instance import Instance
from models.load import build
from tests.against.accounting import payload, units

SCHEMES = ("replicas", "chunked", "pd-direct", "pd-pooled")
TINY = {
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 8192,
    "vocab_size": 32000,
    "tie_word_embeddings": True,
}
WIDE = {**TINY, "num_key_value_heads": 16, "qk_norm": True, "weights": "fp8", "kv": "fp8", "tie_word_embeddings": False}
MODELS: tuple[dict[str, Any], ...] = (
    {"catalog": "Qwen3-8B"},
    {"catalog": "Llama-3.1-8B", "weights": "fp8"},
    {"catalog": "Llama-3.1-8B", "kv": "fp8"},
    TINY,
    WIDE,
)
OWN = {"name": "own", "memory": "40 GB", "bandwidth": "1.2 TB/s", "compute": {"bf16": "150 TFLOP/s"}}
CARDS: tuple[Any, ...] = ("A100-SXM-80GB", "H20-SXM5-96GB", "H100-SXM-80GB", "L40S", OWN)
MOST = 40_000
"""Vectors of counts that a brute force should go through at most."""


def instance(seed: int) -> Instance:
    """The instance of a seed."""
    return build(files.parse(files.dump(document(seed))))


def document(seed: int) -> dict[str, Any]:
    """The same as plain data."""
    draw = random.Random(seed)
    schemes = _schemes(draw)
    drawn = draw.sample(MODELS, draw.choice((1, 1, 2)))
    models = {name: {**model, "tp": 1} for name, model in zip(("m1", "m2"), drawn, strict=False)}
    own = random.Random(30_000 + seed)
    if own.random() < 0.15:
        pattern = own.choice(({}, {"sliding_window_pattern": 4}))
        models["m1"] |= {"sliding_window": own.choice((128, 800, 3000)), **pattern}
    data: dict[str, Any] = {"schema": 1, "name": f"random-{seed}", "models": models}
    data["hardware"] = {
        "groups": _groups(draw, len(models) * _kinds(schemes)),
        "efficiency": {"compute": draw.uniform(0.3, 0.6), "bandwidth": draw.uniform(0.4, 0.8)},
    }
    data["workloads"] = _workloads(draw, list(models))
    data["schemes"] = {"allow": schemes, "mix": draw.random() < 0.7}
    data["billing"] = {"pay": draw.choice(("reserved", "used")), "currency": "EUR"}
    data["objective"] = draw.choice(("effective_cost", "cost", "throughput", "gpus"))
    data["service"] = _service(draw, data["hardware"]["groups"])
    if draw.random() < 0.3:
        data["limits"] = {"pools": [_limit(draw, data) for _ in range(draw.choice((1, 1, 2)))]}
    rate = _rates(draw, data)
    _links(draw, data, rate)
    return data


def _schemes(draw: random.Random) -> list[str]:
    if draw.random() < 0.5:
        return draw.choice((["pd-direct"], ["pd-pooled"], ["pd-pooled", "pd-direct"]))
    return draw.sample(SCHEMES, draw.randint(1, 4))


def _kinds(schemes: list[str]) -> int:
    return 2 * any(s.startswith("pd") for s in schemes) + ("replicas" in schemes) + ("chunked" in schemes)


def _groups(draw: random.Random, kinds: int) -> dict[str, Any]:
    number = draw.choice((2, 2, 3))
    shapes = [(draw.randint(1, 2), draw.randint(1, 3)) for _ in range(number)]

    def vectors() -> int:
        return math.prod(math.comb(a * b + kinds, kinds) for a, b in shapes)

    while vectors() > MOST or sum(a * b for a, b in shapes) > 10:
        largest = max(range(number), key=lambda i: shapes[i][0] * shapes[i][1])
        servers, cards = shapes[largest]
        shapes[largest] = (servers, cards - 1) if cards > 1 else (servers - 1, cards)
    shapes = [shape for shape in shapes if shape[0]]
    groups = {}
    for index, (servers, cards) in enumerate(shapes):
        groups[f"g{index}"] = {
            "accelerator": draw.choice(CARDS),
            "servers": servers,
            "per_server": cards,
            "price": f"{draw.choice((1, 1, 1.5, 2, 3.25))}/h",
            **({"inside_handoffs": "free"} if draw.random() < 0.3 else {}),
            **({"usable_memory": 0.95} if draw.random() < 0.2 else {}),
            **({"efficiency": {"compute": 0.35, "bandwidth": 0.6}} if draw.random() < 0.2 else {}),
        }
    return groups


def _workloads(draw: random.Random, models: list[str]) -> dict[str, Any]:
    loads: dict[str, Any] = {}
    for index in range(draw.choice((1, 1, 2, 2, 3))):
        tokens = draw.choice((256, 1000, 2048, 4096, 8192))
        output = draw.choice((1, 65, 256, 500, 1025)) if draw.random() < 0.5 else draw.randint(2, 800)
        load: dict[str, Any] = {
            "model": models[index] if index < len(models) else draw.choice(models),
            "input": tokens,
            "output": output,
            "rate": "1/s",
        }
        loads[f"w{index}"] = load
        batch = draw.choice((None, None, "max", "max", 1, 4, 16))
        if batch is not None:
            load["batch"] = batch
        if draw.random() < 0.25:
            load["cached"] = draw.randint(1, tokens // 2)
        if draw.random() < 0.15:
            load["longest"] = {"input": tokens * 2, "output": output + 100}
        if draw.random() < 0.2:
            load["qualifying"] = 0.9
        if draw.random() < 0.15:
            load["deny"] = ["g0"]
        elif draw.random() < 0.1:
            load["allow"] = ["g0", "g1"]
    return loads


def _service(draw: random.Random, groups: dict[str, Any]) -> dict[str, Any]:
    common = draw.choice((0, 5, 15))
    starts = [common]
    for group in groups.values():
        if draw.random() < 0.6:
            own = draw.choice((0, 2, 10, 25))
            group["startup"] = f"{own} s"
            starts.append(own)
    service: dict[str, Any] = {"startup": f"{common} s"}
    spans = ((0.05, 0.9), (1.1, 2.0), (2.0, 6.0), (2.0, 6.0), (6.0, 30.0))
    if draw.random() < 0.75:
        service["drain"] = f"{draw.uniform(*draw.choice(spans)) * max(1.0, *starts):.6g} s"
    return service


def _limit(draw: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    limit: dict[str, Any] = {}
    if draw.random() < 0.6:
        limit["stage"] = draw.choice(("prefill", "decode", "both"))
    if draw.random() < 0.5:
        limit["group"] = draw.choice(list(data["hardware"]["groups"]))
    if draw.random() < 0.2:
        limit["model"] = draw.choice(list(data["models"]))
    if draw.random() < 0.2:
        limit["scheme"] = draw.choice(("replicas", "chunked"))
    bound = draw.choice(("exactly", "at_least", "at_most", "at_most"))
    limit[bound] = draw.randint(0, 2)
    return limit


def _rates(draw: random.Random, data: dict[str, Any]) -> float:
    """Arrivals near what the cards could serve if nothing but units mattered."""
    parts = {name: draw.uniform(0.2, 1.0) for name in data["workloads"]}
    plain = build(files.parse(files.dump({**data, "objective": "gpus", "limits": {}})))
    taken = dict.fromkeys(parts, 0.0)
    for name in parts:
        for group, described in plain.hardware.groups.items():
            whole = [
                u.seconds[name] for u in units(plain, ["replicas", "chunked"]) if u.group == group and name in u.seconds
            ]
            if whole:
                taken[name] += described.cards / min(max(seconds) for seconds in whole)
    needed = sum(part / taken[name] if taken[name] else 1.0 for name, part in parts.items())
    scale = draw.uniform(0.05, 0.6) / needed
    for name, part in parts.items():
        data["workloads"][name]["rate"] = f"{part * scale:.9g}/s"
    return sum(parts.values()) * scale


def _link(draw: random.Random, connects: list[str], need: float) -> dict[str, Any]:
    return {
        "connects": connects,
        "bandwidth": f"{need * math.exp(draw.uniform(-0.7, 1.8)):.7g} B/s",
        "duplex": draw.choice(("shared", "per-direction")),
        "per": draw.choice(("link", "link", "server")),
        "startup": draw.choice(("0 s", "5 us", "2 ms")),
        **({"ports": 2} if draw.random() < 0.15 else {}),
        **({"link_efficiency": 0.8} if draw.random() < 0.15 else {}),
    }


def _links(draw: random.Random, data: dict[str, Any], rate: float) -> None:
    """Links between all, two beside each other, link on link, or none; and stores on them."""
    plain = build(files.parse(files.dump({**data, "limits": {}})))
    total = sum(w.rate for w in plain.workloads.values())
    size = sum(w.rate * payload(plain, w) for w in plain.workloads.values()) / total
    need, groups = size * rate, list(data["hardware"]["groups"])
    kind = draw.choice(("one", "one", "one", "two", "two", "tree", "tree", "apart", "none"))
    links: dict[str, Any] = {}
    if kind in ("one", "two"):
        links["l0"] = _link(draw, groups, need)
    if kind == "two":
        links["l1"] = _link(draw, groups[: draw.randint(1, len(groups))], need)
    if kind == "tree":
        links["leaf0"] = _link(draw, groups[:1], need)
        links["leaf1"] = _link(draw, groups[1:], need) if len(groups) > 1 else _link(draw, groups[:1], need)
        links["spine"] = _link(draw, ["leaf0", "leaf1"], need)
    if kind == "apart":
        links = {f"l{index}": _link(draw, [name], need) for index, name in enumerate(groups)}
    data["hardware"]["links"] = links
    if links and "pd-pooled" in data["schemes"]["allow"] and draw.random() < 0.85:
        data["hardware"]["stores"] = {f"s{i}": _store(draw, links, size, rate) for i in range(draw.choice((1, 1, 2)))}


def _store(draw: random.Random, links: dict[str, Any], size: float, rate: float) -> dict[str, Any]:
    store: dict[str, Any] = {
        "on": draw.choice(list(links)),
        "capacity": f"{size * math.exp(draw.uniform(-0.5, 5)):.7g} B",
    }
    for word in ("read", "write"):
        if draw.random() < 0.3:
            store[word] = f"{size * rate * math.exp(draw.uniform(-1.0, 2.0)):.7g} B/s"
    return store
