"""What holds for every plan that keeps state: more is never worse, together never worse than one after the other."""

import math
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build
from models.plan import Plan
from models.plan_tiers import Load, TierUse
from models.units import BYTE_RATE, BYTES, parse
from solver.solve import Options, solve
from solver.verify import verify
from tests.against.tiers_generate import document

NEAR = 1e-4
SEEDS = range(300, 310)
T = TypeVar("T", bound=BaseModel)


@cache
def _solved(text: str) -> tuple[Plan, Instance]:
    made = build(files.parse(text))
    plan = solve(made, Options(plan_only=True, reasons=False))
    assert plan.status not in ("optimal", "feasible") or verify(plan, made) == []
    return plan, made


def cost(data: dict[str, Any]) -> float:
    plan, _ = _solved(files.dump(data))
    return plan.objective.value or 0.0 if plan.status in ("optimal", "feasible") else float("inf")


def times(text: str, factor: float, dimension: Any, unit: str) -> str:
    return f"{parse(text, dimension) * factor!r} {unit}"


@pytest.mark.parametrize("seed", SEEDS)
def test_without_a_tier_or_reuse_no_plan_is_cheaper(seed: int) -> None:
    data = document(seed)
    whole = cost(data)
    for name in data["tiers"]:
        if name == "hbm" or any(tier.get("holds") == "exclusive" for tier in data["tiers"].values()):
            continue  # what is below an exclusive tier, or above it, is not what it was
        if data["tiers"][name].get("drives", {}).get("count"):
            continue
        less = deepcopy(data)
        del less["tiers"][name]
        assert whole <= cost(less) * (1.0 + NEAR), name
    if any("tool_wait" in load for load in data["workloads"].values()):
        return  # then tiers are needed
    for name in data["workloads"]:
        less = deepcopy(data)
        del less["workloads"][name]["reuse"]
        less["tiers"] = data["tiers"] if any("reuse" in w for w in less["workloads"].values()) else {}
        if not less["tiers"]:
            del less["tiers"]
        try:
            assert whole <= cost(less) * (1.0 + NEAR), name
        except BadInput:
            continue


@pytest.mark.parametrize("seed", SEEDS)
def test_more_of_a_tier_is_never_worse(seed: int) -> None:
    data = document(seed)
    more = deepcopy(data)
    for tier in more["tiers"].values():
        if "bandwidth" in tier:
            tier["bandwidth"] = times(tier["bandwidth"], 2.0, BYTE_RATE, "B/s")
        if "endurance" in tier:
            tier["endurance"]["writes_per_day"] = min(1e4, 1.5 * tier["endurance"]["writes_per_day"])
        if "drives" in tier:
            for key, dimension, unit in (("size", BYTES, "B"), ("read", BYTE_RATE, "B/s"), ("write", BYTE_RATE, "B/s")):
                tier["drives"][key] = times(tier["drives"][key], 2.0, dimension, unit)
        if "capacity" in tier:
            tier["capacity"] = {key: times(text, 2.0, BYTES, "B") for key, text in tier["capacity"].items()}
    assert cost(more) <= cost(data) * (1.0 + NEAR)


def _pools_first(data: dict[str, Any]) -> float:
    """Units as they would be without tiers, tiers chosen for them afterwards."""
    cold = deepcopy(data)
    cold.pop("tiers")
    for load in cold["workloads"].values():
        load.pop("reuse", None)
    plan, _ = _solved(files.dump(cold))
    if plan.status != "optimal":
        return float("inf")
    after = deepcopy(data)
    pools = [{"group": p.group, "stage": p.stage, "exactly": p.units} for p in plan.pools]
    after["limits"] = {"pools": pools}
    return cost(after)


@pytest.mark.parametrize("seed", SEEDS)
def test_together_is_never_worse_than_pools_first(seed: int) -> None:
    data = document(seed)
    if not any("tool_wait" in load for load in data["workloads"].values()):
        assert cost(data) <= _pools_first(data) * (1.0 + NEAR)


def chat(**more: Any) -> dict[str, Any]:
    """Chats on A100s, with memory that is bought in steps."""
    reuse = {"kind": "conversation", "tokens_per_hit": 6000, "interval": {"mean": "60 s"}, "returns": 0.7}
    load = {"model": "m", "input": 8192, "output": 257, "rate": "2/s", "batch": 16, "reuse": [reuse]}
    dram = {"capacity": {"max": "512 GB", "step": "64 GB"}, "price_per_step": "0.05/h", "bandwidth": "50 GB/s"}
    cards = {"accelerator": "A100-SXM-80GB", "servers": 2, "per_server": 4, "price": "2/h"}
    return {
        "schema": 1,
        "name": "chat",
        "models": {"m": {"catalog": "Qwen3-8B", "tp": 1}},
        "hardware": {"groups": {"g": cards}, "efficiency": {"compute": 0.5, "bandwidth": 0.6}},
        "workloads": {"w": load},
        "tiers": {"dram": {**dram, **more}},
        "schemes": {"allow": ["replicas"]},
        "billing": {"pay": "used", "currency": "EUR"},
        "objective": "cost",
    }


def test_together_is_cheaper() -> None:
    """GPUs that hits make idle are not paid for only where units are chosen with tiers."""
    assert cost(chat()) < 0.8 * _pools_first(chat())


def with_(item: T, **values: Any) -> T:
    return item.model_copy(update=values)


def scaled(load: Load, factor: float) -> Load:
    return Load(at_load=load.at_load * factor, at_capacity=load.at_capacity * factor)


def used(plan: Plan, change: Callable[[TierUse], TierUse]) -> Plan:
    return with_(plan, tiers=[change(use) if use.tier == "dram" else use for use in plan.tiers])


def _longer(use: TierUse, factor: float) -> TierUse:
    keeps = [with_(k, ages=[with_(a, age_s=a.age_s * factor) for a in k.ages]) for k in use.retained]
    return with_(use, retained=keeps, retention_s=(use.retention_s or 0.0) * factor)


FALSE: dict[str, Callable[[Plan], Plan]] = {
    "kept for longer": lambda p: used(p, lambda u: _longer(u, 3.0)),
    "kept for less": lambda p: used(p, lambda u: _longer(u, 0.3)),
    "more is found": lambda p: used(p, lambda u: with_(u, found=[with_(f, rate=scaled(f.rate, 1.2)) for f in u.found])),
    "fewer pieces": lambda p: used(p, lambda u: with_(u, pieces=u.pieces - 1)),
    "less written": lambda p: used(p, lambda u: with_(u, written=scaled(u.written, 0.9))),
    "less alive": lambda p: used(p, lambda u: with_(u, alive=0.9 * u.alive)),
    "another policy": lambda p: used(p, lambda u: with_(u, policy="second_hit")),
    "no policy": lambda p: used(p, lambda u: with_(u, policy="never")),
    "less read": lambda p: used(p, lambda u: with_(u, read=scaled(u.read, 0.9))),
    "another price": lambda p: used(p, lambda u: with_(u, per_hour=0.0)),
    "more hits in pools": lambda p: with_(
        p, pools=[with_(q, hits={n: [scaled(h, 1.1) for h in hits] for n, hits in q.hits.items()}) for q in p.pools]
    ),
}


@pytest.mark.parametrize("eviction", ["lru", "ttl"])
@pytest.mark.parametrize("name", FALSE)
def test_the_verifier_refuses(name: str, eviction: str) -> None:
    plan, made = _solved(files.dump(chat(eviction=eviction)))
    assert any(use.tier == "dram" and use.found for use in plan.tiers)
    assert verify(plan, made) == []
    assert verify(FALSE[name](plan), made) != []


def test_some_of_the_load_under_a_time_to_live_is_found_once() -> None:
    """What a faster tier has is not found again in a slower one that keeps the state of some requests only."""
    data = chat(eviction="ttl", write_policy=["all"])
    data["tiers"]["dram"]["capacity"] = {"max": "64 GB", "step": "64 GB"}
    plan, made = _solved(files.dump(data))
    found = sum(f.rate.at_load for use in plan.tiers for f in use.found)
    (part,) = made.workloads["w"].reuse or []
    assert part.interval is not None
    rates = {use.tier: {a.age_s: a.rate for k in use.retained for a in k.ages} for use in plan.tiers}
    levels = sorted({age for ages in rates.values() for age in ages})
    most = before = 0.0
    for age in levels:
        share = 0.7 * -_expm1(-age / 60.0)
        late = sum(rate for ages in rates.values() for other, rate in ages.items() if other >= age)
        most += (share - before) * min(2.0, late)
        before = share
    assert found <= most * (1.0 + 1e-6)


def _expm1(value: float) -> float:
    return float(math.expm1(value))


@pytest.mark.parametrize(
    ("tiers", "word"),
    [
        ({"eviction": "ttl", "holds": "exclusive"}, "time to live"),
        ({"bandwidth": None, "drives": {"max": 1, "size": "1 TB", "read": "1 GB/s", "write": "1 GB/s"}}, ""),
    ],
)
def test_what_is_refused(tiers: dict[str, Any], word: str) -> None:
    data = chat(**tiers)
    if "drives" in tiers:
        data["tiers"]["dram"] = {"drives": tiers["drives"], "bandwidth": "1 GB/s"}
        word = "bandwidth"
    with pytest.raises(BadInput, match=word):
        build(files.parse(files.dump(data)))
