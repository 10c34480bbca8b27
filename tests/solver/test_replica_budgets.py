"""Replicas of popular experts against batch and state, in one solve."""

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from models.errors import BadInput
from models.files import Document
from models.instance import Instance
from models.load import build, load
from models.plan import Plan
from solver.data import gather
from solver.popularity import popularity
from solver.shapes import shape_of
from solver.solve import Options, solve
from solver.verify import verify

LOADS = [2.0, 1.2, 1.0, 0.9, 0.8, 0.8, 0.7, 0.6]


@cache
def written(changes: str = "") -> Instance:
    """Eight GPUs of one server, experts of Mixtral over them; ``changes`` are lines of YAML for its model."""
    text: dict[str, Any] = {
        "schema": 1,
        "name": "popular",
        "hardware": {
            "groups": {"h100": {"server": "HGX-H100", "servers": 1, "price": "2/h", "tp": 1, "ep": 8}},
        },
        "models": {"m": {"catalog": "Mixtral-8x22B", "weights": "fp8", **yaml.safe_load(changes or "{}")}},
        "workloads": {"chat": {"model": "m", "rate": "2/s", "input": 1000, "output": 300}},
        "schemes": {"allow": ["replicas"]},
        "objective": "throughput",
    }
    return build(Document(text, {}, ""))


@cache
def planned(changes: str) -> Plan:
    plan = solve(written(changes), Options(plan_only=True))
    assert plan.status == "optimal"
    return plan


def busiest(loads: list[float], places: int, slots: int) -> float:
    """The least that the busiest place can have, by trying every placement of every replica count."""
    best = float("inf")
    total = places * slots
    for counts in itertools.product(range(1, places + 1), repeat=len(loads)):
        if sum(counts) != total:
            continue
        best = min(best, _dealt(loads, counts, places, slots))
    return best / (sum(loads) / places)


def _dealt(loads: list[float], counts: tuple[int, ...], places: int, slots: int) -> float:
    best = float("inf")
    ways = [list(itertools.combinations(range(places), count)) for count in counts]
    for choice in itertools.product(*ways):
        held, work = [0] * places, [0.0] * places
        for load_of, count, where in zip(loads, counts, choice, strict=True):
            for place in where:
                held[place] += 1
                work[place] += load_of / count
        if max(held) <= slots:
            best = min(best, max(work))
    return best


@pytest.mark.parametrize("slots", [2, 3])
def test_the_skew_of_a_few_experts_is_that_of_the_best_placement(slots: int) -> None:
    loads = [3.0, 1.5, 1.0, 0.5]
    found = popularity((tuple(loads),)).skew(2, slots)
    assert found >= busiest(loads, 2, slots) - 1e-12
    assert found == pytest.approx(busiest(loads, 2, slots), rel=0.02)


def test_without_replicas_the_busiest_gpu_has_the_most_popular_expert() -> None:
    assert popularity((tuple(LOADS),)).skew(8, 1) == pytest.approx(2.0)
    assert popularity((tuple(LOADS),)).balancedness(8, 1) == pytest.approx(0.5)


def test_replicas_are_weighed_against_state() -> None:
    """The plan has the budget that serves most; each budget holds the slots it says, and what is left is state."""
    instance = written(f"expert_loads: {LOADS}")
    routed = shape_of(instance.models["m"]).routed
    assert routed is not None
    each = routed.layers * routed.params
    own = [c for c in gather(instance).candidates if c.cut is not None and c.schemes == ("replicas",)]
    units = {c.cut.redundant: c for c in own if c.cut is not None and c.cut.micro == 1}
    assert set(units) == {0, 8, 16}
    for redundant, unit in units.items():
        assert unit.memory is not None
        assert unit.memory.experts == pytest.approx((8 + redundant) / 8 * each)
        assert unit.memory.used <= unit.memory.capacity
    assert units[16].batches["chat"] < units[8].batches["chat"] < units[0].batches["chat"]
    plan = planned(f"expert_loads: {LOADS}")
    most = max(1.0 / max(c.demand["chat"]) for c in own)
    assert plan.throughput == pytest.approx(most, rel=1e-6)
    assert plan.experts[0]["redundant"] == plan.pools[0].redundant_experts
    assert plan.experts[0]["slots_per_place"] == (8 + plan.pools[0].redundant_experts) / 8


def test_even_loads_need_no_replicas() -> None:
    even, stated = planned(""), planned("expert_loads: [3, 3, 3, 3, 3, 3, 3, 3]")
    assert stated.throughput == pytest.approx(even.throughput, rel=1e-9)
    assert stated.pools[0].redundant_experts == 0
    assert even.experts[0]["balancedness"] is None
    assert stated.experts[0]["balancedness"] == pytest.approx(1.0)


def test_replicas_fill_what_a_degree_leaves_over() -> None:
    """Eight experts over five GPUs: two slots on each are ten, two of them replicas; then three, then four."""
    text = written(f"expert_loads: {LOADS}").document()
    text["hardware"]["groups"]["h100"]["ep"] = [5]
    five = build(Document(text, {}, ""))
    cuts = {c.cut.redundant for c in gather(five).candidates if c.cut is not None and c.cut.ep == 5}
    assert cuts <= {2, 7, 12}
    assert 2 in cuts


def test_a_plan_with_other_replicas_is_refused() -> None:
    instance, plan = written(f"expert_loads: {LOADS}"), planned(f"expert_loads: {LOADS}")
    pool = plan.pools[0]
    other = pool.model_copy(update={"redundant_experts": 8 - pool.redundant_experts})
    assert verify(plan, instance) == []
    assert verify(plan.model_copy(update={"pools": [other]}), instance)


@pytest.mark.parametrize(
    ("loads", "said"),
    [
        ("[1, 2, 3]", "3 experts, the model has 8"),
        ("[[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1]]", "2 layers, the model has 56 with experts"),
        ("[1, 1, 1, 1, 1, 1, 1, 0]", "0"),
        ("[1, 1, 1, 1, 1, 1, 1, -2]", "-2"),
        ("[1, 1, 1, 1, 1, 1, 1, .nan]", "nan"),
        ("[1, 1, 1, 1, 1, 1, 1, lots]", "not a table of loads"),
        ("[]", "not a table of loads"),
        ("there.npy", "no file is read here"),
        ("{a: 1}", "not a table of loads"),
    ],
)
def test_loads_that_do_not_fit_are_named(loads: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        written(f"expert_loads: {loads}")
    problems = [p for p in refused.value.problems if p.path.startswith("models.m.expert_loads")]
    assert problems, refused.value
    assert any(said in str(p) for p in problems), refused.value


def test_loads_come_from_a_file_beside_the_instance(tmp_path: Path) -> None:
    document = written("").document()
    document["models"]["m"]["expert_loads"] = "loads.npy"
    (tmp_path / "popular.yaml").write_text(yaml.safe_dump(document))
    np.save(tmp_path / "loads.npy", np.tile(np.array(LOADS) * 1000, (56, 1)))
    there = load(tmp_path / "popular.yaml")
    table = there.models["m"].expert_loads
    assert table is not None
    assert table[5] == pytest.approx(np.array(LOADS) / np.mean(LOADS), rel=1e-5)
    again = build(Document(there.document(), {}, ""))
    assert again.sha256() == there.sha256()
    (tmp_path / "loads.npy").unlink()
    with pytest.raises(BadInput, match="cannot be read"):
        load(tmp_path / "popular.yaml")
