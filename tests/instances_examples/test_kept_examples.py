"""Conversations with SSDs: what is chosen equals enumeration over policy and drives, and endurance decides."""

from functools import cache

import pytest

from models.plan import Plan
from models.plan_tiers import TierUse
from models.workload import PoolLimit
from solver.flips.asked import asked
from solver.flips.search import flips
from solver.limits import Limits
from solver.solve import Options, solve
from tests.instances_examples.test_example_instances import instance, plan_of

MLA, GQA = "kv-conversation-mla", "kv-conversation-gqa"


def ssd(plan: Plan) -> TierUse:
    return next(use for use in plan.tiers if use.tier == "ssd")


@cache
def cost(name: str, policy: str, drives: int) -> float:
    """Of the best plan with so many drives in all under one policy, in USD an hour; infinite where there is none."""
    made = instance(name)
    tier, servers = made.tiers["ssd"], made.hardware.groups["h200"].servers
    assert tier.drives is not None
    assert isinstance(servers, int)
    one, share = tier.drives, max(drives, 1) / servers  # a server has one drive, as large as its part of all
    larger = {key: getattr(one, key) * share for key in ("size", "read", "write")}
    held = one.model_copy(update={**larger, "count": 1 if drives else 0, "max": None, "price": None})
    alone = tier.model_copy(update={"write_policy": [policy, "never"], "drives": held})
    plan = solve(
        made.model_copy(update={"tiers": {**made.tiers, "ssd": alone}}), Options(plan_only=True, reasons=False)
    )
    if plan.cost.per_hour is None:
        return float("inf")
    return plan.cost.per_hour + drives * 3600.0 * (one.price or 0.0)


@pytest.mark.parametrize(
    ("name", "drives"), [(MLA, (0, 8, 15, 16, 17, 18, 32, 48)), (GQA, (0, 24, 47, 48, 93, 94, 95, 96))]
)
def test_policy_and_drives_equal_enumeration(name: str, drives: tuple[int, ...]) -> None:
    plan = plan_of(name)
    found = {(policy, count): cost(name, policy, count) for policy in ("all", "second_hit") for count in drives}
    best = min(found.values())
    assert plan.cost.per_hour == pytest.approx(best, rel=1e-6)
    assert (ssd(plan).policy, ssd(plan).pieces) in [way for way, value in found.items() if value <= best * (1.0 + 1e-6)]


@pytest.mark.parametrize(("name", "policy", "drives"), [(MLA, "second_hit", 17), (GQA, "all", 95)])
def test_endurance_asks_for_more_drives_than_capacity(name: str, policy: str, drives: int) -> None:
    plan = plan_of(name)
    use, used = ssd(plan), {row.name: row.utilisation for row in plan.resources}
    assert (use.policy, use.pieces) == (policy, drives)
    assert use.endurance is not None
    assert used["tier[ssd@h200,endurance]"] > 0.95 > 10.0 * used["tier[ssd@h200]"] > 0.0
    one_less = use.endurance * (drives - 1) / drives
    assert use.written.at_load > one_less  # with one drive fewer the writes would wear them out


@pytest.mark.parametrize(("name", "low", "high"), [(MLA, 1.60, 1.70), (GQA, 0.073, 0.075)])
def test_the_policy_flips_at_a_price(name: str, low: float, high: float) -> None:
    made = instance(name)
    number = asked(made, "tiers.ssd.drives.price")
    (flip,) = flips(made, [number], Limits(60.0)).flips
    assert low <= 3600.0 * flip.at <= high
    assert any("ssd" in part for part in flip.below.outcome)
    assert not any("ssd" in part for part in flip.above.outcome)


def test_pools_first_and_tiers_after_costs_more() -> None:
    made = instance(GQA)
    alone = solve(made.model_copy(update={"tiers": {}}), Options(plan_only=True, reasons=False))
    (pool,) = alone.pools
    bound = PoolLimit(group=pool.group, scheme="chunked", exactly=pool.units)
    others = PoolLimit(scheme="pd-direct", exactly=0)
    limits = made.limits.model_copy(update={"pools": [bound, others]})
    after = solve(made.model_copy(update={"limits": limits}), Options(plan_only=True, reasons=False))
    assert after.cost.per_hour is not None
    joint = plan_of(GQA).cost.per_hour
    assert joint is not None
    assert joint < 0.97 * after.cost.per_hour  # 27.08 against 28 and more
