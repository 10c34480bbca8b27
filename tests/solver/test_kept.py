"""State kept for later, in small instances with closed forms."""

from typing import Any

import pytest

from models import files
from models.load import build
from models.plan import Plan
from models.plan_tiers import TierUse
from solver.solve import Options, solve
from solver.verify import verify

STATE = 147_456.0
"""Bytes of a token of Qwen3-8B."""


def document(**workload: object) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": "kept",
        "hardware": {
            "groups": {"a": {"accelerator": "A100-SXM-80GB", "servers": 2, "per_server": 8, "price": "1/h", "tp": 1}},
            "links": {"net": {"connects": ["a", "cache"], "bandwidth": "200 Gbit/s", "ports": 8, "per": "server"}},
            "stores": {"cache": {"on": "net", "capacity": "2 TB"}},
        },
        "tiers": {"hbm": {"in": []}},
        "models": {"m": {"catalog": "Qwen3-8B"}},
        "workloads": {"chat": {"model": "m", "rate": "6/s", "input": 8192, "output": 129, **workload}},
        "schemes": {"allow": ["replicas"]},
        "billing": {"pay": "used"},
    }


RETURNS = {"tokens_per_hit": 8000, "tokens_kept": 8192, "curve": {"1 min": "40 %", "10 min": "80 %"}}


def solved(data: dict[str, Any]) -> Plan:
    instance = build(files.parse(files.dump(data)))
    plan = solve(instance, Options(plan_only=True))
    assert plan.status == "optimal"
    assert verify(plan, instance) == []
    return plan


def use(plan: Plan, tier: str) -> TierUse:
    return next(one for one in plan.tiers if one.tier == tier)


def units(plan: Plan) -> int:
    return sum(pool.units for pool in plan.pools)


def test_a_tier_keeps_what_little_and_returns_say() -> None:
    data = document(reuse=RETURNS)
    data["tiers"]["dram"] = {"capacity": "500 GB", "bandwidth": "200 GB/s", "headroom": 1.0}
    plan = solved(data)
    kept = use(plan, "dram")
    time = kept.retention_s or 0.0
    share = 0.4 * time / 60.0 if time < 60.0 else 0.4 + 0.4 * (time - 60.0) / 540.0
    area = 0.5 * 0.4 * 60.0 + (time - 60.0) * (0.4 + share) / 2.0
    alive = 6.0 * STATE * (8192 * time - 8000 * area)
    assert 60.0 < time < 600.0
    assert kept.alive == pytest.approx(alive, rel=1e-6)
    assert kept.alive <= kept.capacity == 1e12
    assert kept.found[0].rate.at_load == pytest.approx(6.0 * share, rel=1e-6)
    assert kept.written.at_load == pytest.approx(6.0 * STATE * (8192 - 8000 * share), rel=1e-6)
    assert kept.read.at_load == pytest.approx(6.0 * STATE * 8000 * share, rel=1e-6)
    found = plan.workloads["chat"].reuse
    assert found is not None
    assert found.tokens == pytest.approx(share * 8000 / 8192, rel=1e-6)


def test_attention_over_what_is_found_is_still_paid() -> None:
    data = document(reuse={**RETURNS, "curve": {"1 ms": "100 %"}, "tokens_per_hit": 6144})
    data["tiers"]["dram"] = {"capacity": "1 TB", "bandwidth": "200 GB/s"}
    with_hits = solved(data)
    (pool,) = with_hits.pools
    without = solved(document())
    work = [plan.pools[0].utilisation * plan.pools[0].units for plan in (with_hits, without)]
    # a quarter of the prompt takes 0.238 s, not a quarter of 0.856 s (section 9.2.3)
    assert pytest.approx(work[1] - work[0], rel=2e-3) == 6.0 * (0.856 - 0.238)
    assert pool.hits["chat"][0].at_load == pytest.approx(6.0, rel=1e-6)


def test_a_handoff_through_the_pool_earns_later_reuse() -> None:
    data = document(reuse=RETURNS)
    data["schemes"]["allow"] = ["pd-pooled"]
    data["tiers"]["pool"] = {"store": "cache", "write_policy": ["all"]}
    pooled = use(solved(data), "pool")
    data["schemes"]["allow"] = ["pd-direct"]
    direct = use(solved(data), "pool")
    assert pooled.policy == direct.policy == "all"
    assert direct.written.at_load > 1e9
    assert pooled.written.at_load == 0.0  # the state of every input is there already


def test_a_store_is_not_spent_twice() -> None:
    data = document(reuse=RETURNS)
    data["schemes"]["allow"] = ["pd-pooled"]
    data["hardware"]["stores"]["cache"] |= {"capacity": "300 GB", "read": "9.5 GB/s", "write": "9.5 GB/s"}
    data["tiers"]["pool"] = {"store": "cache", "headroom": 1.0}
    plan = solved(data)
    pool, rows = use(plan, "pool"), {row.name: row for row in plan.resources}
    handed = sum(one.rate.at_load * one.bytes_per_request for one in plan.handoffs)
    assert pool.found
    assert pool.read.at_load + handed <= 9.5e9 * (1.0 + 1e-6)
    assert rows["tier[pool]"].demand > pool.alive
    assert rows["tier[pool,read]"].demand == pytest.approx(pool.read.at_load + handed, rel=1e-6)


def test_waiting_for_tools_takes_byte_seconds() -> None:
    data = document(tool_wait={"mean": "10 s", "calls": 2})
    data["tiers"]["dram"] = {"capacity": "1 TB", "bandwidth": "200 GB/s", "headroom": 1.0}
    kept = use(solved(data), "dram")
    assert kept.paused[0].rate.at_load == pytest.approx(12.0, rel=1e-6)
    assert kept.alive == pytest.approx(12.0 * 10.0 * STATE * (8192 + 128), rel=1e-6)
    assert kept.read.at_load == kept.written.at_load == pytest.approx(12.0 * STATE * (8192 + 128), rel=1e-6)


def test_where_reading_is_slower_a_target_has_it_computed_anew() -> None:
    slow = {"store": "cache", "to_gpu": "1 GB/s"}  # 1.18 s for 8,000 tokens, which take 0.84 s to compute
    data = document(reuse=RETURNS)
    data["tiers"]["pool"] = slow
    assert use(solved(data), "pool").found
    data["workloads"]["chat"]["targets"] = {"ttft": "2 s"}
    assert not use(solved(data), "pool").found


def test_layers_read_ahead_take_memory_of_the_unit() -> None:
    data = document(reuse=RETURNS, batch=16)
    data["tiers"] = {"hbm": {}, "dram": {"capacity": "1 TB", "bandwidth": "25 GB/s", "fetch": "layer-wise"}}
    plain = use(solved(data), "hbm")
    data["tiers"]["dram"]["early_layers"] = 14
    early = use(solved(data), "hbm")
    (pool,) = solved(data).pools
    assert plain.capacity - early.capacity == pytest.approx(pool.units * 14 / 36 * 8000 * STATE, rel=1e-6)


def test_nothing_is_found_when_a_start_is_worked_off() -> None:
    data = document(reuse=RETURNS)
    data["tiers"]["dram"] = {"capacity": "1 TB", "bandwidth": "200 GB/s"}
    free = solved(data)
    data["service"] = {"startup": "10 s", "drain": "60 s"}
    held = solved(data)
    without = document()
    without["service"] = data["service"]
    assert units(held) == units(solved(without)) > units(free)
