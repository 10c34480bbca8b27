"""Whole plans with units that divide a layer, against every vector of counts with numbers of our own."""

import random
from typing import Any

import pytest

from models.plan import Plan
from solver.solve import Options, solve
from solver.verify import verify
from tests.against.generate_layouts import HOST, MIXTURE, SMALL, built
from tests.against.layout_search import LayoutSearch

NEAR = 1e-6
LARGE: dict[str, Any] = {**MIXTURE, "num_experts": 32, "num_experts_per_tok": 4}
SETS = (["expert-pool"], ["attention-ffn"], ["pd-direct"], ["replicas", "cpu-experts"], ["replicas", "expert-pool"])


def document(seed: int) -> dict[str, Any]:
    """Two groups of few GPUs whose memory makes units of several worth it."""
    draw = random.Random(31_000 + seed)
    schemes = SETS[seed % len(SETS)]
    model = draw.choice((LARGE, MIXTURE, SMALL) if schemes == ["attention-ffn"] else (LARGE, MIXTURE))
    groups: dict[str, Any] = {}
    for name in ("g0", "g1"):
        servers, each = draw.choice(((1, 2), (2, 2), (1, 3), (1, 4)))
        groups[name] = {
            "accelerator": {
                "name": f"own-{name}",
                "memory": f"{draw.choice((0.7, 1, 1.6))} GB",
                "bandwidth": f"{draw.uniform(0.5, 3):.3g} TB/s",
                "compute": {"bf16": f"{draw.uniform(60, 500):.3g} TFLOP/s"},
            },
            "servers": servers,
            "per_server": each,
            "scale_up": {"bandwidth": f"{draw.choice((20, 100))} GB/s", "startup": "2 us"},
            **_degrees(draw, servers * each),
            **({"host": HOST} if name == "g0" else {}),
        }
    link = {
        "connects": ["g0", "g1"],
        "bandwidth": f"{draw.choice((0.5, 2, 20))} GB/s",
        "duplex": draw.choice(("shared", "per-direction")),
        "per": draw.choice(("link", "server")),
        "ports": draw.choice((1, 2)),
        "startup": "4 us",
    }
    loads = {
        f"w{i}": {
            "model": "m",
            "rate": f"{draw.uniform(0.3, 1):.3g}/s",
            "input": draw.randint(200, 3000),
            "output": draw.randint(2, 400),
            **({"batch": draw.choice((2, 16))} if draw.random() < 0.3 else {}),
        }
        for i in range(draw.choice((1, 2)))
    }
    return {
        "schema": 1,
        "name": f"layout-plan-{seed}",
        "models": {"m": model},
        "hardware": {"groups": groups, "links": {"l": link}},
        "workloads": loads,
        "schemes": {"allow": schemes},
        "objective": "throughput",
    }


def _degrees(draw: random.Random, most: int) -> dict[str, list[int]]:
    stated = {"tp": draw.choice(([1], [1, 2])), "pp": [1], "ep": [2, 4], "dp": draw.choice(([1, 2], [2], [1, 2, 4]))}
    return {key: [degree for degree in degrees if degree <= most] for key, degrees in stated.items()}


def planned(document: dict[str, Any]) -> Plan:
    return solve(built(document), Options(plan_only=True, reasons=False))


@pytest.mark.parametrize("seed", range(25))
def test_no_vector_of_counts_is_better(seed: int) -> None:
    asked = document(seed)
    for load in asked["workloads"].values():
        load["rate"] = f"{float(load['rate'][:-2]) * 1e-6!r}/s"  # little, so that the most is asked for
    search = LayoutSearch(built(asked))
    best, plan = search.throughput(), planned(asked)
    assert (plan.status == "optimal") == (best > 0.0)
    if not best:
        return
    assert plan.throughput == pytest.approx(best, rel=NEAR)
    assert not verify(plan, built(asked))
    total = sum(float(load["rate"][:-2]) for load in asked["workloads"].values())
    for load in asked["workloads"].values():
        load["rate"] = f"{float(load['rate'][:-2]) * 0.45 * best / total!r}/s"
    fewer = planned({**asked, "objective": "gpus"})
    assert fewer.objective is not None
    assert fewer.objective.value == search.fewest(0.45 * best)


def _with(plan: Plan, index: int, **changes: Any) -> Plan:
    pools = [pool.model_copy(update=changes) if i == index else pool for i, pool in enumerate(plan.pools)]
    return plan.model_copy(update={"pools": pools})


def _plan(seed: int) -> tuple[Plan, dict[str, Any]]:
    asked = document(seed)
    for load in asked["workloads"].values():
        load["rate"] = f"{float(load['rate'][:-2]) * 1e-6!r}/s"
    plan = planned(asked)
    assert not verify(plan, built(asked))
    return plan, asked


@pytest.mark.parametrize("seed", [0, 1, 10, 11, 21])
def test_other_parts_are_refused(seed: int) -> None:
    plan, asked = _plan(seed)
    (at, *_) = [i for i, pool in enumerate(plan.pools) if pool.part_of is not None]
    part = plan.pools[at]
    (owner,) = [i for i, pool in enumerate(plan.pools) if pool.name == part.part_of]
    without = plan.model_copy(update={"pools": [pool for i, pool in enumerate(plan.pools) if i != at]})
    more = part.cards_per_unit * 2
    changed = [
        without,
        _with(plan, at, cards_per_unit=more, cards=more * part.units),
        _with(plan, at, group="g1" if part.group == "g0" else "g0"),
        _with(plan, at, units=part.units + 1, cards=part.cards_per_unit * (part.units + 1)),
        _with(plan, at, part_of=None),
        _with(_with(plan, at, micro_batches=4), owner, micro_batches=4),
        _with(_with(plan, at, micro_batches=1), owner, micro_batches=1),
        _with(plan, owner, batches={name: 2 * batch for name, batch in plan.pools[owner].batches.items()}),
    ]
    for number, other in enumerate(changed):
        assert verify(other, built(asked)), number


@pytest.mark.parametrize("seed", [3, 8, 13, 14, 18, 24])
def test_other_degrees_are_refused(seed: int) -> None:
    plan, asked = _plan(seed)
    for index, pool in enumerate(plan.pools):
        said = pool.parallelism
        if pool.resident_experts is not None:
            fewer = {"resident_experts": pool.resident_experts // 2}
            assert verify(_with(plan, index, **fewer), built(asked))
            assert verify(_with(plan, index, resident_experts=None), built(asked))
        elif said.ep > 1:
            one = said.model_copy(update={"ep": 1, "dp": 1})
            twice = said.model_copy(update={"ep": 2 * said.ep, "dp": 2 * said.dp})
            for degrees in (one, twice, said.model_copy(update={"ep": 1}), said.model_copy(update={"dp": 1})):
                assert verify(_with(plan, index, parallelism=degrees), built(asked))
            assert verify(_with(plan, index, micro_batches=3 - pool.micro_batches), built(asked))


def test_degrees_that_are_not_allowed_are_refused() -> None:
    """The same plan, where the group states other degrees."""
    plan, asked = _plan(24)
    for stated in ({"ep": [1]}, {"dp": [1]}):
        for group in asked["hardware"]["groups"].values():
            group.update({"ep": [2], "dp": [1, 2]} | stated)
        instance = built(asked)
        found = verify(plan.model_copy(update={"instance_document": instance.document()}), instance)
        assert any("is not allowed" in one for one in found)
