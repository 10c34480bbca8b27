"""Random small instances that keep state, of one model and one scheme, sized so that limits bind now and then."""

import math
import random
from typing import Any

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build
from tests.against import tiers_kept as kept

CARDS = ("A100-SXM-80GB", "H20-SXM5-96GB", "L40S")
MODELS: tuple[dict[str, Any], ...] = ({"catalog": "Qwen3-8B"}, {"catalog": "Llama-3.1-8B", "weights": "fp8"})


def instance(seed: int) -> Instance:
    """The instance of a seed."""
    return build(files.parse(files.dump(document(seed))))


def document(seed: int) -> dict[str, Any]:
    """The same as plain data; the next that can be built where one cannot."""
    for again in range(1000):
        found = _document(random.Random(seed * 1000 + again), seed)
        try:
            if found is not None:
                build(files.parse(files.dump(found)))
                return found
        except BadInput:  # what is not supported together
            continue
    raise AssertionError("no instance of this seed")


def _document(draw: random.Random, seed: int) -> dict[str, Any] | None:
    scheme = draw.choice(("replicas", "replicas", "chunked", "pd-direct", "pd-pooled"))
    servers, cards = draw.randint(1, 3), draw.choice((2, 4))
    data: dict[str, Any] = {
        "schema": 1,
        "name": f"kept-{seed}",
        "models": {"m": {**draw.choice(MODELS), "tp": 1}},
        "hardware": {
            "groups": {
                "g": {
                    "accelerator": draw.choice(CARDS),
                    "servers": servers,
                    "per_server": cards,
                    "price": f"{draw.choice((1, 2, 3.25))}/h",
                }
            },
            "efficiency": {"compute": draw.uniform(0.3, 0.6), "bandwidth": draw.uniform(0.4, 0.8)},
        },
        "workloads": {f"w{k}": _workload(draw, scheme) for k in range(draw.choice((1, 1, 2)))},
        "schemes": {"allow": [scheme]},
        "billing": {"pay": "used", "currency": "EUR"},
        "objective": "cost",
    }
    if scheme in ("replicas", "chunked") and draw.random() < 0.3:
        data["hardware"]["groups"]["h"] = {
            "accelerator": draw.choice(CARDS),
            "servers": 1,
            "per_server": 2,
            "price": f"{draw.choice((1, 2))}/h",
        }
    kinds = ["prefill", "decode"] if scheme.startswith("pd") else [scheme]
    try:
        plain = build(files.parse(files.dump(data)))
    except BadInput:
        return None
    if not kept.fits(plain, kinds):
        return None
    cold = sum(
        max(unit.takes[name][0]) for unit in kept.units(plain, kinds) for name in unit.takes
    )  # GPUs for one request/s of each
    load = draw.uniform(0.3, 0.95) * sum(group.cards for group in plain.hardware.groups.values())
    load *= len(plain.hardware.groups)
    rate = load / cold
    for name in data["workloads"]:
        data["workloads"][name]["rate"] = f"{rate:.9g}/s"
    plain = build(files.parse(files.dump(data)))
    made = sum(part.left * part.rate for part in kept.parts(plain))
    _links(draw, data, scheme, made)
    data["tiers"] = _tiers(draw, data, made, servers)
    if draw.random() < 0.25:
        data["service"] = {"startup": "60 s", "drain": f"{draw.choice((300, 900, 3600))} s"}
    if draw.random() < 0.2 and scheme.startswith("pd"):
        for load_ in data["workloads"].values():
            load_["targets"] = {"ttft": f"{draw.choice((3, 10))} s"}
    return data


def _workload(draw: random.Random, scheme: str) -> dict[str, Any]:
    tokens, output = draw.choice((2048, 4096, 8192)), draw.choice((1, 64, 257))
    prompt = draw.random() < 0.35
    reuse: list[dict[str, Any]] = []
    if prompt:
        reuse.append(
            {
                "kind": "system-prompt",
                "tokens_per_hit": draw.choice((200, 512)),
                "distinct": draw.choice((1, 3, 40)),
                "share": draw.choice((1.0, 0.6)),
            }
        )
    if not prompt or draw.random() < 0.6:
        reuse.append(_conversation(draw, tokens))
    found: dict[str, Any] = {"model": "m", "input": tokens, "output": output, "rate": "1/s", "reuse": reuse}
    if draw.random() < 0.8 or scheme == "chunked":
        found["batch"] = draw.choice((2, 4, 8))
    if draw.random() < 0.15:
        found["cached"] = draw.choice((16, 128))
    if draw.random() < 0.2:
        found["tool_wait"] = {"mean": f"{draw.choice((2, 20))} s", "calls": draw.choice((1, 0.5, 3))}
    if draw.random() < 0.15 and scheme in ("replicas", "chunked"):
        found["minimum_share"] = draw.choice((0.8, 0.95))
    return found


def _conversation(draw: random.Random, tokens: int) -> dict[str, Any]:
    found: dict[str, Any] = {"tokens_per_hit": int(tokens * draw.uniform(0.3, 0.8))}
    kind = draw.choice(("curve", "mean", "median"))
    scale = math.exp(draw.uniform(1.0, 6.0))
    if kind == "curve":
        share = draw.uniform(0.3, 0.8)
        found["curve"] = {
            f"{scale:.6g} s": round(share * 0.4, 3),
            f"{4 * scale:.6g} s": round(share * 0.8, 3),
            f"{30 * scale:.6g} s": round(share, 3),
        }
        most = round(share, 3)
    else:
        found["interval"] = (
            {"mean": f"{scale:.6g} s"} if kind == "mean" else {"median": f"{scale:.6g} s", "p90": f"{5 * scale:.6g} s"}
        )
        most = found["returns"] = draw.choice((0.4, 0.7, 0.9))
    if draw.random() < 0.3:
        found["again"] = draw.choice((0.0, 0.5, 0.9))
    if draw.random() < 0.2:
        found["tokens_kept"] = int(found["tokens_per_hit"] * max(1.0, most) * draw.uniform(1.0, 1.3)) + 1
    return found


def _links(draw: random.Random, data: dict[str, Any], scheme: str, made: float) -> None:
    hardware = data["hardware"]
    if scheme.startswith("pd") or draw.random() < 0.4:
        hardware["links"] = {
            "net": {
                "connects": list(hardware["groups"]),
                "bandwidth": f"{made * math.exp(draw.uniform(0.2, 2.5)) + 1e9:.7g} B/s",
                "duplex": draw.choice(("shared", "per-direction")),
                "per": draw.choice(("link", "server")),
            }
        }
    if "links" in hardware and (scheme == "pd-pooled" or draw.random() < 0.7):
        store: dict[str, Any] = {"on": "net", "capacity": f"{made * math.exp(draw.uniform(1.5, 6.0)) + 2e9:.7g} B"}
        for word in ("read", "write"):
            if draw.random() < 0.4:
                store[word] = f"{made * math.exp(draw.uniform(0.0, 2.0)):.7g} B/s"
        hardware["stores"] = {"pool": store}


def _policy(draw: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    policies = draw.choice((None, ["all", "never"], ["second_hit", "never"], ["all", "second_hit", "never"]))
    if policies is not None:
        found["write_policy"] = policies
        if "second_hit" in policies and draw.random() < 0.4:
            found["admission"] = int(math.exp(draw.uniform(9.0, 16.0)))
    elif draw.random() < 0.5:
        found["holds"] = "exclusive"
    return found


def _common(draw: random.Random) -> dict[str, Any]:
    return {
        **({"eviction": "ttl"} if draw.random() < 0.25 else {}),
        **({"routing": "random"} if draw.random() < 0.2 else {}),
        **({"fetch": "layer-wise"} if draw.random() < 0.15 else {}),
        **({"headroom": 1.0} if draw.random() < 0.15 else {}),
    }


def _tiers(draw: random.Random, data: dict[str, Any], made: float, servers: int) -> dict[str, Any]:
    tiers: dict[str, Any] = {}
    if draw.random() < 0.3:
        tiers["hbm"] = {k: v for k, v in _common(draw).items() if k != "fetch"}
    size = made * math.exp(draw.uniform(2.0, 6.0)) / servers
    if draw.random() < 0.7:
        tiers["dram"] = {
            "capacity": {"max": f"{size:.7g} B", "step": f"{size / draw.choice((1.5, 4.2)):.7g} B"},
            "price_per_step": f"{draw.choice((0.03, 0.2)):.3g}/h",
            **({"bandwidth": f"{made / servers * math.exp(draw.uniform(-0.5, 2.0)):.7g} B/s"}),
            **_policy(draw),
            **_common(draw),
        }
        if draw.random() < 0.3:
            del tiers["dram"]["bandwidth"]
    if draw.random() < 0.5 or len(tiers) < 1:
        each = size * draw.uniform(0.5, 3.0)
        rate = made / servers * math.exp(draw.uniform(-0.5, 2.0))
        drives: dict[str, Any] = {"size": f"{each:.7g} B", "read": f"{rate:.7g} B/s", "write": f"{rate:.7g} B/s"}
        if draw.random() < 0.3:
            drives["count"] = draw.choice((1, 2))
        else:
            drives |= {"max": draw.choice((2, 4)), "price": f"{draw.choice((0.02, 0.15)):.3g}/h"}
        tiers["ssd"] = {"drives": drives, **_policy(draw), **_common(draw)}
        if draw.random() < 0.6:
            day = made / servers * 86_400.0 / each * math.exp(draw.uniform(-2.5, 0.5))
            tiers["ssd"]["endurance"] = {"writes_per_day": min(9e3, day), "life": "3 year", "amplification": 1.5}
    if "h" in data["hardware"]["groups"]:
        for name in {"dram", "ssd"} & set(tiers):
            tiers[name]["in"] = draw.choice(("g", "h"))
        if "dram" in tiers and "ssd" in tiers:
            del tiers["ssd"]
    if "stores" in data["hardware"] and len(tiers) < 3 and draw.random() < 0.7:
        tiers["shared"] = {"store": "pool", **_policy(draw), **_common(draw)}
        if draw.random() < 0.5:
            tiers["shared"]["nodes"] = {
                "max": 3,
                "size": f"{size:.7g} B",
                "read": f"{made:.7g} B/s",
                "write": f"{made:.7g} B/s",
                "price": "0.1/h",
            }
    return tiers
