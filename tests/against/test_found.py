"""Small instances on which the brute force once found the solver wrong, each with what is right."""

from pathlib import Path
from typing import Any

import pytest

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build
from models.plan import Plan
from solver.solve import Options, solve
from tests.against.brute import brute_force

TEXT = (Path(__file__).resolve().parents[2] / "instances" / "chapter" / "eight-cards.yaml").read_text()
ONE_TOKEN = "workloads.reasoning.output=1"


def eight_cards(*changes: str) -> Instance:
    return build(files.parse(TEXT), changes)


def planned(*changes: str) -> Plan:
    return solve(eight_cards(*changes), Options(plan_only=True))


def test_a_deadline_before_any_unit_is_ready_is_infeasible() -> None:
    starts = [f"hardware.groups.{name}.startup={seconds} s" for name, seconds in (("a100", 20), ("h20", 30))]
    assert planned(*starts, "service.drain=15 s").status == "infeasible"


def test_a_backlog_that_is_still_to_come_is_not_gone() -> None:
    """Four H20 are ready at once but too few: what waits at second 30 is what counts."""
    plan = planned(
        "schemes.allow=[replicas]",
        "workloads.reasoning.rate=2.5/s",
        "hardware.groups.h20.startup=0 s",
        "hardware.groups.a100.startup=30 s",
        "service={startup: 0 s}",
    )
    assert plan.drain is not None
    assert plan.drain.drained_s is not None
    assert plan.drain.drained_s > 30.0


def test_one_buffer_stands_beside_every_batch() -> None:
    """Long requests bring a long receive buffer, also to a unit that is full of short ones."""
    loads: dict[str, dict[str, Any]] = {
        "short": {"model": "qwen3-8b", "rate": "1/s", "input": 512, "output": 1025, "batch": "max"},
        "long": {"model": "qwen3-8b", "rate": "0.2/s", "input": 30000, "output": 100, "batch": "max"},
    }
    data = {**files.parse(TEXT).data, "workloads": loads, "schemes": {"allow": ["chunked"]}}
    plan = solve(build(files.parse(files.dump(data))), Options(plan_only=True))
    assert plan.status == "optimal"
    assert [pool.name for pool in plan.pools if pool.memory is None or pool.memory.free < 0.0] == []


@pytest.mark.parametrize("mix", ["true", "false"])
def test_pruning_keeps_the_order_of_schemes(mix: str) -> None:
    """A prefill is all there is, so replicas and chunked are equal, and replicas are named first."""
    plan = planned(f"schemes={{allow: [replicas, chunked], mix: {mix}}}", ONE_TOKEN)
    assert plan.scheme == "replicas"


def test_a_pool_without_handoffs_is_of_the_scheme_that_was_solved() -> None:
    """Both schemes build the same prefill units, and nothing is handed over that would tell them apart."""
    allow = "schemes={allow: [pd-pooled, pd-direct], mix: false}"
    plan = planned(allow, "limits.pools=[{scheme: pd-direct, at_least: 1}]", ONE_TOKEN)
    assert plan.status == "optimal"
    assert {pool.scheme for pool in plan.pools} == {"pd-direct"}


@pytest.mark.parametrize("bound", ["at_least: 1", "at_most: 0"])
def test_a_bound_on_one_of_two_schemes_with_the_same_units_is_refused(bound: str) -> None:
    """Prefill and decode units serve both, so the bound could mean either; with one of them allowed it is clear."""
    limit = f"limits.pools=[{{scheme: pd-pooled, {bound}}}]"
    with pytest.raises(BadInput, match="units for one stage serve pd-direct and pd-pooled"):
        eight_cards("schemes.allow=[pd-direct, pd-pooled]", limit)
    plan = planned("schemes.allow=[pd-pooled, chunked]", limit, "service.drain=70 s")
    count = sum(pool.units for pool in plan.pools if pool.scheme == "pd-pooled")
    assert plan.status == "optimal"
    assert count >= 1 if bound == "at_least: 1" else count == 0


def test_two_batches_of_one_pool_have_two_names() -> None:
    """One workload fills memory, the other chooses: candidates differ in the smaller batch alone."""
    loads: dict[str, dict[str, Any]] = {
        "chosen": {"model": "qwen3-8b", "rate": "0.5/s", "input": 1024, "output": 300},
        "filled": {"model": "qwen3-8b", "rate": "0.5/s", "input": 1024, "output": 200, "batch": "max"},
    }
    data = {**files.parse(TEXT).data, "workloads": loads, "objective": "throughput"}
    for allow in (["pd-direct"], ["chunked"]):
        data["schemes"] = {"allow": allow}
        made = build(files.parse(files.dump(data)))
        for prune in (True, False):
            plan = solve(made, Options(plan_only=True, prune=prune))
            names = [pool.name for pool in plan.pools]
            assert len(names) == len(set(names))
            best = brute_force(made).best
            assert best is not None
            assert plan.throughput == pytest.approx(best.throughput, rel=1e-6)
