"""Random small instances of what plain ones lack: units of several GPUs, lengths, targets, measured units, purchases,
spare units, requests turned away, and the objectives that go with them.
"""

import math
import random
from typing import Any

from models import files
from models.instance import Instance
from models.load import build
from tests.against.accounting import payload
from tests.against.generate import SCHEMES, _link, _store
from tests.against.generate_parts import MODELS, groups, kinds, measured, purchases, workloads
from tests.against.network import Network
from tests.against.wide_units import wide_units

MOST = 6000
"""Vectors of counts that a search should go through at most."""


def wide_instance(seed: int) -> Instance:
    """The instance of a seed."""
    return build(files.parse(files.dump(wide_document(seed))))


def wide_document(seed: int, alike: bool = False) -> dict[str, Any]:
    """The same as plain data; ``alike``: all layers of its models have full attention."""
    draw = random.Random(10_000 + seed)
    schemes = draw.choice((["pd-direct"], ["pd-pooled"], ["replicas"], ["chunked"], draw.sample(SCHEMES, 2)))
    drawn = draw.sample(MODELS, draw.choice((1, 1, 1, 2)))
    models = {name: dict(model) for name, model in zip(("m1", "m2"), drawn, strict=False)}
    own = random.Random(20_000 + seed)
    if own.random() < 0.25 and not alike:
        models["m1"] |= kinds(own)
    data: dict[str, Any] = {"schema": 1, "name": f"wide-{seed}", "models": models}
    data["hardware"] = {
        "groups": groups(draw),
        "efficiency": {"compute": draw.uniform(0.3, 0.6), "bandwidth": draw.uniform(0.4, 0.8)},
    }
    data["schemes"] = {"allow": schemes, "mix": draw.random() < 0.8}
    data["billing"] = {"pay": draw.choice(("reserved", "used", "used")), "currency": "EUR"}
    data["objective"] = draw.choice(("effective_cost", "cost", "cost", "throughput", "gpus", "headroom", "power"))
    data["workloads"] = workloads(draw, list(models))
    _links(draw, data, {})
    if draw.random() < 0.25:
        data["measured"] = measured(draw, data)
    if draw.random() < 0.45:
        purchases(draw, data)
    _fewer(data)
    rate = _rates(draw, data)
    _links(draw, data, rate)
    _service(draw, data)
    _targets(draw, data)
    data["limits"] = _limits(draw, data)
    return data


def _vectors(data: dict[str, Any]) -> float:
    plain = build(files.parse(files.dump({**data, "objective": "gpus", "limits": {}})))
    units = wide_units(plain, Network(plain.hardware), list(plain.schemes.allow))
    total = 1.0
    for name, group in plain.hardware.groups.items():
        cards = 6 if group.servers == "unlimited" else group.cards
        cards += sum((b.at_most or 4) * b.cards.get(name, 0) for b in plain.hardware.bundles.values())
        total *= _ways(cards, [u.cards for u in units if u.group == name])
    return total


def _ways(cards: int, sizes: list[int]) -> int:
    ways = [1] * (cards + 1)
    for size in sizes:
        for room in range(size, cards + 1):
            ways[room] += ways[room - size]
    return ways[cards]


def _fewer(data: dict[str, Any]) -> None:
    """Servers taken away until the search is small enough."""
    while _vectors(data) > MOST:
        groups = data["hardware"]["groups"]
        counted = [n for n, g in groups.items() if g["servers"] != "unlimited" and g["servers"] > 1]
        if counted:
            groups[counted[0]]["servers"] -= 1
            continue
        wide = max(groups, key=lambda n: len(groups[n].get("tp", [1, 2, 4])))
        groups[wide] |= {"tp": groups[wide].get("tp", [1, 2])[:1], "pp": [1]}
        if "b" in data["hardware"].get("bundles", {}):
            data["hardware"]["bundles"]["b"]["at_most"] = 1
        data["schemes"]["allow"] = data["schemes"]["allow"][:1]
        if _vectors(data) > MOST:
            for group in groups.values():
                group["per_server"] = max(1, group["per_server"] // 2)
                group |= {"tp": [1], "pp": [1]}
            data.pop("measured", None)
            data["hardware"].pop("bundles", None)


def _rates(draw: random.Random, data: dict[str, Any]) -> dict[str, float]:
    """Arrivals near what the cards could serve if only units mattered."""
    parts = {name: draw.uniform(0.2, 1.0) for name in data["workloads"]}
    plain = build(files.parse(files.dump({**data, "objective": "gpus", "limits": {}})))
    units = wide_units(plain, Network(plain.hardware), list(plain.schemes.allow))
    taken = dict.fromkeys(parts, 0.0)
    for name in parts:
        for group, described in plain.hardware.groups.items():
            cards = 2 if described.servers == "unlimited" else described.cards
            cards += sum((b.at_most or 2) * b.cards.get(group, 0) for b in plain.hardware.bundles.values())
            stages: dict[str, float] = {}
            for u in units:
                if u.group == group and name in u.seconds:
                    each = max(u.seconds[name]) * u.cards
                    stages[u.stage] = min(stages.get(u.stage, math.inf), each)
            if stages:
                taken[name] += cards / (stages.get("both") or sum(stages.values()))
    needed = sum(part / taken[name] if taken[name] else 1.0 for name, part in parts.items())
    scale = draw.uniform(0.1, 0.8) / needed
    for name, part in parts.items():
        data["workloads"][name]["rate"] = f"{part * scale:.9g}/s"
    return {name: part * scale for name, part in parts.items()}


def _links(draw: random.Random, data: dict[str, Any], rates: dict[str, float]) -> None:
    """Links between all, now and then sold in steps; a store on one. Without rates, wide ones that stand in."""
    groups = list(data["hardware"]["groups"])
    if not rates:
        data["hardware"]["links"] = {"l0": {"connects": groups, "bandwidth": "100 GB/s"}}
        return
    plain = build(files.parse(files.dump({**data, "objective": "gpus", "limits": {}})))
    need = sum(rates[n] * payload(plain, w) for n, w in plain.workloads.items())
    links = {"l0": _link(draw, groups, need)}
    links["l0"]["per"] = "link"
    if draw.random() < 0.25:
        links["l1"] = _link(draw, groups[:1], need) | {"per": "link"}
    if draw.random() < 0.3:
        links["l0"]["step"] = {
            "ports": draw.choice((1, 2)),
            "price": f"{draw.uniform(0.1, 2):.3g}/h",
            "at_most": draw.choice((1, 2)),
        }
    data["hardware"]["links"] = links
    if "pd-pooled" in data["schemes"]["allow"]:
        size = need / sum(rates.values())
        data["hardware"]["stores"] = {"s0": _store(draw, {"l0": 0}, size * 3, sum(rates.values()))}


def _service(draw: random.Random, data: dict[str, Any]) -> None:
    starts = [draw.choice((0, 5, 15))]
    data["service"] = {"startup": f"{starts[0]} s"}
    for group in data["hardware"]["groups"].values():
        if draw.random() < 0.4:
            starts.append(draw.choice((2, 10, 25)))
            group["startup"] = f"{starts[-1]} s"
    if data["objective"] in ("cost", "effective_cost", "gpus", "power") and draw.random() < 0.35:
        for load in data["workloads"].values():
            load["minimum_share"] = draw.choice((0.2, 0.5, 0.9))
    elif draw.random() < 0.4:
        data["service"]["drain"] = f"{draw.uniform(2.0, 8.0) * max(1.0, *starts):.6g} s"


def _targets(draw: random.Random, data: dict[str, Any]) -> None:
    """Targets near what units do. Paced units are exact where they serve one workload and give no first token."""
    loads = data["workloads"]
    models = [load["model"] for load in loads.values()]
    for load in loads.values():
        if draw.random() < 0.6:
            continue
        targets: dict[str, str] = {}
        alone = models.count(load["model"]) == 1
        if alone and draw.random() < 0.7:
            targets["tpot"] = f"{draw.choice((15, 25, 40, 60, 90))} ms"
        chunks = "chunked" in data["schemes"]["allow"] and not (alone and isinstance(load.get("batch"), int))
        paced = bool(targets) and "replicas" in data["schemes"]["allow"]
        if not chunks and not paced and draw.random() < 0.7:
            targets["ttft"] = f"{draw.choice((0.05, 0.2, 0.5, 1.5))} s"
        if targets:
            load["targets"] = targets


def _limits(draw: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if draw.random() < 0.2:
        limits["units"] = {"at_least": 2}
    if draw.random() < 0.25:
        limits["spare"] = {"units": 1}
    if draw.random() < 0.15:
        bound = draw.choice(("at_least", "at_most"))
        limits["pools"] = [{"group": draw.choice(list(data["hardware"]["groups"])), bound: draw.randint(0, 2)}]
    return limits
