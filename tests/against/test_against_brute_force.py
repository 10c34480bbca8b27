"""The plan of the master problem equals the best of all plans, tried one by one, on random small instances."""

from collections import Counter
from dataclasses import dataclass
from functools import cache

import pytest

from models.errors import BadInput
from models.instance import Instance
from models.plan import Plan
from solver.solve import Options, solve
from solver.verify import verify
from tests.against.brute import Best, Result, brute_force
from tests.against.generate import instance
from tests.against.programs import Case, Largest, case, earliest

SEEDS = range(260)
NEAR = 1e-6


@cache
def tried(seed: int) -> tuple[Instance, Result]:
    made = instance(seed)
    return made, brute_force(made)


@dataclass(frozen=True)
class Same:
    """A plan beside the best of all, with the plan's counts in the words of the brute force."""

    instance: Instance
    plan: Plan
    best: Best
    case: Case
    counts: list[int]


@cache
def planned(seed: int) -> Same | None:
    """None where neither finds a plan."""
    made, result = tried(seed)
    plan: Plan | None
    try:
        plan = solve(made, Options(plan_only=True))
    except BadInput:
        plan = None
    if plan is None:
        assert result.best is None, "refused for want of paths, yet a plan exists"
        return None
    assert plan.status not in ("optimal", "feasible") or verify(plan, made) == []
    if result.best is None:
        assert plan.status == "infeasible"
        return None
    assert plan.status == "optimal"
    assert plan.verified
    pools = plan.pools
    own = case(made, made.schemes.allow if made.schemes.mix else [pools[0].scheme])
    counts = [
        sum(
            pool.units
            for pool in pools
            if (pool.scheme if pool.stage == "both" else pool.stage) == unit.kind
            and (pool.group, pool.model) == (unit.group, unit.model)
        )
        for unit in own.units
    ]
    assert sum(counts) == sum(pool.units for pool in pools)
    return Same(made, plan, result.best, own, counts)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_is_the_best_of_all(seed: int) -> None:
    same = planned(seed)
    if same is None:
        return
    plan, best = same.plan, same.best
    cards = sum(pool.cards for pool in plan.pools)
    assert plan.throughput == pytest.approx(best.throughput, rel=NEAR)
    assert best.cards[0] <= cards <= best.cards[1]
    value = _objective(same.instance, best)
    if plan.objective.name == "gpus" or not value:
        assert plan.objective.value == cards
    else:
        assert plan.objective.value == pytest.approx(value, rel=NEAR)
    if best.cards[0] == best.cards[1]:  # else a throughput is so near the best that either may count as best
        crossing = sum(h.rate.at_capacity * h.bytes_per_request * len(h.links) for h in plan.handoffs)
        assert crossing == pytest.approx(best.bytes, rel=1e-5, abs=1e3 * best.throughput)


def _objective(made: Instance, best: Best) -> float:
    groups = made.hardware.groups.values()
    reserved = sum(group.cards * (group.price or 0.0) for group in groups)
    money = reserved if made.billing.pay == "reserved" else best.cost
    good = sum(w.rate * w.qualifying for w in made.workloads.values())
    return {
        "effective_cost": 1000.0 * money / good,
        "cost": 3600.0 * money,
        "throughput": best.throughput,
        "gpus": 0.0,
    }[made.objective]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_backlog_is_gone_when_the_plan_says(seed: int) -> None:
    same = planned(seed)
    if same is None:
        return
    plan, deadline = same.plan, same.instance.service.drain
    assert plan.throughput == pytest.approx(Largest(same.case).at(same.counts).value, rel=NEAR)
    if plan.drain is None:
        assert deadline is None
        return
    gone = earliest(same.case, same.counts)
    if gone is None:
        assert plan.drain.drained_s is None
    else:
        assert plan.drain.drained_s == pytest.approx(gone, rel=NEAR, abs=1e-6)
    if deadline is not None:
        assert plan.drain.met is True
        assert gone is not None
        assert gone <= deadline * (1.0 + NEAR)


@pytest.mark.parametrize("seed", [seed for seed in SEEDS if not instance(seed).schemes.mix])
def test_the_first_of_equal_schemes_is_taken(seed: int) -> None:
    same = planned(seed)
    if same is not None:
        assert (same.plan.scheme,) == same.best.schemes


@pytest.mark.parametrize("seed", SEEDS)
def test_memory_holds(seed: int) -> None:
    same = planned(seed)
    for pool in same.plan.pools if same is not None else []:
        assert pool.memory is not None
        assert pool.memory.free >= -NEAR * pool.memory.capacity, pool.name


def test_the_instances_are_of_every_sort() -> None:
    """Were one of these rare, the tests above would say little."""
    count: Counter[str] = Counter()
    for seed in SEEDS:
        made, result = tried(seed)
        best = result.best
        count["infeasible"] += best is None
        count["feasible"] += best is not None
        count["late"] += result.late
        count["late, yet feasible"] += result.late and best is not None
        count["on links"] += best is not None and best.bytes > 0.0
        count["links full"] += best is not None and best.full
        count["several models"] += len(made.models) > 1
        count["several workloads"] += best is not None and len(made.workloads) > 1
        count["several startups"] += best is not None and len({made.startup(g) for g in made.hardware.groups}) > 1
        count["output of one token"] += any(w.output == 1 for w in made.workloads.values())
        count["stores"] += best is not None and bool(made.hardware.stores)
        count["one scheme at a time"] += best is not None and not made.schemes.mix
        count["clear ties"] += best is not None and best.cards[0] == best.cards[1]
        count[made.objective] += 1
        count["limits"] += best is not None and bool(made.limits.pools)
        count["programs"] += result.programs
        count["vectors"] += result.vectors
    share = {name: number / len(SEEDS) for name, number in count.items()}
    least = {
        "infeasible": 0.15,
        "feasible": 0.4,
        "late": 0.1,
        "late, yet feasible": 0.04,
        "on links": 0.15,
        "links full": 0.05,
        "several models": 0.2,
        "several workloads": 0.2,
        "several startups": 0.2,
        "output of one token": 0.08,
        "stores": 0.12,
        "one scheme at a time": 0.1,
        "clear ties": 0.5 * share["feasible"],
        "effective_cost": 0.15,
        "cost": 0.15,
        "throughput": 0.15,
        "gpus": 0.15,
        "limits": 0.08,
        "vectors": 500.0,
    }
    assert {name: share[name] for name, part in least.items() if share[name] < part} == {}, share
