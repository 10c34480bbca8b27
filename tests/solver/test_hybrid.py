"""Units that prefill and decode in turn and may hand over; the figure is a linear program over stage times."""

import pytest

from models.plan import Plan
from solver.compare import alternative
from solver.data import gather
from solver.limits import Limits
from solver.solve import Options, solve
from solver.verify import verify
from tests.instances import eight

ALONE = "schemes.allow=[hybrid]"


def planned(*changes: str) -> Plan:
    return solve(eight(*changes), Options(plan_only=True))


def test_handing_over_between_all_units_beats_whole_cards_for_a_stage() -> None:
    """All prefill on A100, and what is left of them decodes: a linear program of stage times gives 4.5923."""
    plan = planned(ALONE)
    assert plan.status == "optimal"
    assert plan.scheme == "hybrid"
    assert plan.throughput == pytest.approx(4.592288459, rel=1e-6)
    assert verify(plan, eight(ALONE)) == []


def test_each_use_of_a_unit_is_told_and_counted_once() -> None:
    plan = planned(ALONE)
    owners = {pool.name: pool for pool in plan.pools if pool.shares is None}
    uses = [pool for pool in plan.pools if pool.shares is not None]
    assert {pool.stage for pool in owners.values()} == {"both"}
    assert {pool.stage for pool in uses} == {"prefill", "decode"}
    assert all(pool.cards == 0 and owners[pool.shares or ""].units == pool.units for pool in uses)
    assert sum(pool.cards for pool in plan.pools) == 8
    assert sum(row.demand for row in plan.resources if row.name.startswith("cards[")) == 8


def test_without_links_units_serve_their_own_requests_alone() -> None:
    """Nothing can be handed over, so they are full replicas: sum of 1 / (prefill + decode)."""
    instance = eight(ALONE, "hardware.links={}", "hardware.stores={}")
    row = alternative(gather(instance), "hybrid", Limits()).row
    replicas = alternative(gather(eight()), "replicas", Limits()).row
    assert row.throughput == pytest.approx(replicas.throughput, rel=1e-9)


def test_beside_separated_pools_it_is_never_worse_than_either() -> None:
    both = planned("schemes.allow=[pd-direct,hybrid]")
    assert both.throughput is not None
    assert both.throughput >= 4.592288459 * (1.0 - 1e-6)


def test_it_is_looked_at_only_where_it_is_named() -> None:
    plan = solve(eight(), Options())
    assert "hybrid" not in [row.scheme for row in plan.alternatives]


def test_no_time_per_token_is_promised() -> None:
    plan = planned(ALONE, "workloads.reasoning.targets={tpot: 1 s}")
    assert plan.status == "infeasible"
    assert any("promise nothing about the time per token" in text for c in plan.conflicts for text in c.limits)


def test_spare_units_count_for_all_uses() -> None:
    plan = planned(ALONE, "limits.spare={units: 1}", "workloads.reasoning.rate=2/s")
    assert plan.status == "optimal"
    assert plan.throughput is not None
    assert verify(plan, eight(ALONE, "limits.spare={units: 1}", "workloads.reasoning.rate=2/s")) == []
