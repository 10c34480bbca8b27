"""The plan equals the best of all on random small instances with units of several GPUs, purchases and the like."""

from collections import Counter
from functools import cache

import pytest

from models.instance import Instance
from models.plan import Plan
from solver.solve import Options, solve
from solver.verify import verify
from tests.against.generate_wide import wide_instance
from tests.against.wide_search import Found, wide_brute_force

SEEDS = range(280)
NEAR = 1e-6
UNIT = {"effective_cost": 1000.0, "cost": 3600.0}
"""Objective -> what its value is told in, over the search's."""


@cache
def tried(seed: int) -> tuple[Instance, Plan, Found | None, bool]:
    """Instance, plan, best of all, and whether the search is sure of it."""
    made = wide_instance(seed)
    found = wide_brute_force(made)
    rents = any(group.servers == "unlimited" for group in made.hardware.groups.values())
    return made, solve(made, Options(plan_only=True, reasons=False)), found, not rents if found is None else found.sure


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_is_the_best_of_all(seed: int) -> None:
    made, plan, best, sure = tried(seed)
    assert plan.status in ("optimal", "infeasible")
    if plan.status == "optimal":
        assert verify(plan, made) == []
    if not sure:
        return
    if best is None:
        assert plan.status == "infeasible"
        return
    assert plan.status == "optimal"
    assert plan.objective.value == pytest.approx(best.value * UNIT.get(made.objective, 1.0), rel=NEAR)
    if best.throughput is not None:
        assert plan.throughput == pytest.approx(best.throughput, rel=NEAR)


def test_the_instances_are_of_every_sort() -> None:
    """Were one of these rare, the test above would say little; all but the first count plans that were found."""
    count: Counter[str] = Counter()
    for seed in SEEDS:
        made, plan, _, sure = tried(seed)
        count["infeasible"] += plan.status == "infeasible"
        count["unsure"] += not sure
        if plan.status != "optimal" or not sure:
            continue
        groups, loads, links = made.hardware.groups, made.workloads.values(), made.hardware.links.values()
        count["optimal"] += 1
        count["TP"] += any(pool.parallelism.tp > 1 for pool in plan.pools)
        count["PP"] += any(pool.parallelism.pp > 1 for pool in plan.pools)
        across = [p for p in plan.pools if p.parallelism.pp > 1 and p.cards_per_unit > groups[p.group].per_server]
        count["PP across servers"] += bool(across)
        sizes = {g: {p.cards_per_unit for p in plan.pools if p.group == g} for g in groups}
        count["units that do not nest"] += any(groups[g].per_server % n for g, mine in sizes.items() for n in mine)
        count["lengths"] += any(w.lengths is not None for w in loads)
        count["lengths, some of one token"] += any(w.decodes and any(c.output == 1 for c in w.classes) for w in loads)
        count["handed over"] += bool(plan.handoffs)
        count["handed over, some of one token"] += any(
            any(c.output == 1 for c in made.workloads[h.workload].classes) for h in plan.handoffs
        )
        count["targets, batch given"] += any(w.targets.tpot and isinstance(w.batch, int) for w in loads)
        count["first token"] += any(w.targets.ttft for w in loads)
        count["paced"] += any(pool.step_s is not None for pool in plan.pools)
        count["measured"] += any(pool.measured for pool in plan.pools)
        kinds = Counter(bought.kind for bought in plan.purchases)
        count["bundles"] += kinds["bundle"] > 0
        count["rented"] += kinds["rented"] > 0
        count["steps"] += kinds["link step"] > 0
        count["steps for sale"] += any(link.step for link in links)
        count["at least"] += made.limits.units is not None
        count["spare"] += made.limits.spare is not None
        count["drain"] += made.service.drain is not None
        turned = sum(result.served for result in plan.workloads.values()) < made.rate * (1.0 - NEAR)
        count["drops"] += made.drops
        count["turned away"] += turned
        types = {kind for pool in plan.pools for kind in made.models[pool.model].layer_kinds if pool.measured is None}
        count["sliding layers"] += "sliding_attention" in types
        count["linear layers"] += "linear_attention" in types
        cut = {pool.model for pool in plan.pools if pool.parallelism.pp > 1}
        count["stages of several kinds"] += any(len(set(made.models[name].layer_kinds)) > 1 for name in cut)
        count[made.objective] += 1
    least = {
        "infeasible": 60, "optimal": 150, "TP": 40, "PP": 20, "PP across servers": 4, "units that do not nest": 8,
        "lengths": 80, "lengths, some of one token": 30, "handed over": 40, "handed over, some of one token": 10,
        "targets, batch given": 10, "first token": 15, "paced": 8, "measured": 15, "bundles": 12, "rented": 8,
        "steps": 4, "steps for sale": 30, "at least": 20, "spare": 25, "drain": 30, "drops": 25, "turned away": 8,
        "sliding layers": 10, "linear layers": 10, "stages of several kinds": 4,
        "effective_cost": 15, "cost": 30, "throughput": 15, "gpus": 15, "headroom": 15, "power": 15,
    }  # fmt: skip
    assert {name: count[name] for name, number in least.items() if count[name] < number} == {}, count
    assert count["unsure"] <= len(SEEDS) // 15
