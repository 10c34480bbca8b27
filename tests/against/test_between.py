"""Instances too large to go through: the plan lies between a rounded plan and a bound, both found apart from it.

Both come from one linear program over whole ways to serve a request, with numbers of units that need not be whole.
"""

import math
import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
from ortools.linear_solver import pywraplp

from models import files
from models.instance import Instance
from models.load import build
from models.plan import Plan
from solver.solve import Options, solve
from solver.verify import verify
from tests.against.generate_parts import CARDS, MODELS, WIRES
from tests.against.programs import INFINITY, Case, Largest, Stage, solved
from tests.against.wide_case import packs, wide_case
from tests.against.wide_units import Wide

SEEDS = range(16)
SECONDS = 1.5
NEAR = 2e-6


def large(seed: int) -> Instance:
    """Two or three models, three to five groups, four to eight workloads."""
    draw = random.Random(55_000 + seed)
    models = dict(zip(("a", "b", "c"), draw.sample(MODELS, draw.choice((2, 3))), strict=False))
    groups = {f"g{i}": _group(draw, i) for i in range(draw.randint(3, 5))}
    loads: dict[str, Any] = {}
    for index in range(draw.randint(4, 8)):
        load: dict[str, Any] = {"model": list(models)[index % len(models)], "rate": f"{draw.uniform(3.0, 20.0):.5g}/s"}
        if draw.random() < 0.4:
            load["lengths"] = [
                {"share": f"{share} %", "input": draw.choice((300, 1500, 5000)), "output": draw.choice((1, 80, 400))}
                for share in (35, 65)
            ]
        else:
            load |= {"input": draw.choice((256, 1000, 4000)), "output": draw.choice((30, 200, 700))}
        if draw.random() < 0.3:
            load["batch"] = draw.choice((8, "max"))
        if draw.random() < 0.2:
            load["deny"] = [draw.choice(list(groups))]
        loads[f"w{index}"] = load
    data = {
        "schema": 1,
        "name": f"large-{seed}",
        "hardware": {
            "groups": groups,
            "links": {
                "l0": {"connects": list(groups), "bandwidth": f"{draw.uniform(5, 60):.4g} GB/s", "duplex": "shared"},
                "l1": {"connects": list(groups)[:2], "bandwidth": f"{draw.uniform(5, 60):.4g} GB/s", "startup": "5 us"},
            },
        },
        "models": models,
        "workloads": loads,
        "schemes": {"allow": draw.choice((["pd-direct"], ["replicas", "pd-direct"], ["chunked", "pd-direct"]))},
        "billing": {"pay": "used"},
        "objective": draw.choice(("cost", "gpus", "power", "throughput")),
    }
    return build(files.parse(files.dump(data)))


def _group(draw: random.Random, index: int) -> dict[str, Any]:
    each = draw.choice((2, 4, 6, 8))
    return {
        "accelerator": draw.choice(CARDS),
        "servers": draw.randint(2, 5),
        "per_server": each,
        "price": f"{draw.choice((1.1, 2, 3.4)) + index / 9:.4g}/h",
        "scale_up": draw.choice(WIRES),
        "tp": [t for t in draw.choice(((1, 2), (1, 2, 4), (1,), (2, 4))) if t <= each],
        "pp": [1],
    }


def rounded_and_bound(instance: Instance) -> tuple[float | None, float | None]:
    """Value of a plan of whole units, and a value that no plan is better than; None where there is none."""
    case = wide_case(instance, instance.schemes.allow)
    made = [unit for unit in case.units if isinstance(unit, Wide)]
    most = instance.objective == "throughput"
    program = pywraplp.Solver.CreateSolver("GLOP")
    stage = Stage(program, case, INFINITY, 1.0)
    counts = [program.NumVar(0.0, INFINITY, "") for _ in made]
    for (i, _), row in stage.capacity.items():
        row.SetUb(0.0)
        row.SetCoefficient(counts[i], -1.0)
    for name, group in instance.hardware.groups.items():
        row = program.Constraint(-INFINITY, float(group.cards))
        for unit, column in zip(made, counts, strict=True):
            if unit.group == name:
                row.SetCoefficient(column, float(unit.cards))
    total = program.NumVar(instance.rate, INFINITY if most else instance.rate, "total")
    for name, workload in instance.workloads.items():
        row = program.Constraint(0.0, 0.0)
        stage.served(row, name)
        row.SetCoefficient(total, -workload.rate / instance.rate)
    weights = [_weight(instance, unit) for unit in made]
    program.Objective().SetOptimizationDirection(most)
    for column, weight in zip(counts, weights, strict=True):
        program.Objective().SetCoefficient(column, weight)
    if most:
        program.Objective().SetCoefficient(total, 1.0)
    if not solved(program):
        return None, None
    bound = float(program.Objective().Value())
    whole = _rounded(case, made, [column.solution_value() for column in counts], most)
    if whole is None:
        return None, bound
    value, found = whole
    return value if most else sum(n * weight for n, weight in zip(found, weights, strict=True)), bound


def _weight(instance: Instance, unit: Wide) -> float:
    return {"cost": 3600.0 * unit.price, "gpus": float(unit.cards), "power": unit.power}.get(instance.objective, 0.0)


def _rounded(case: Case, made: Sequence[Wide], counts: list[float], most: bool) -> tuple[float, list[int]] | None:
    """Whole units near ``counts`` that serve the arrivals, with what they give; then whatever still fits."""
    program, rate = Largest(case), case.instance.rate
    up = [math.ceil(n - 1e-9) for n in counts]
    tried = [math.floor(n + 1e-9) for n in counts] if most or not _fit(case, made, up) else up
    value = program.at(tried).value
    while True:
        options = [[n + (i == at) for i, n in enumerate(tried)] for at in range(len(tried)) if counts[at] > 1e-9]
        better = [(program.at(option).value, option) for option in options if _fit(case, made, option)]
        if (not most and value >= rate * (1 - 1e-9)) or not better or max(better)[0] <= value * (1 + 1e-9):
            break
        value, tried = max(better)
    return (value, tried) if value >= rate * (1 - 1e-9) else None


def _fit(case: Case, made: Sequence[Wide], counts: list[int]) -> bool:
    for name, group in case.instance.hardware.groups.items():
        mine = [(unit.block, n) for unit, n in zip(made, counts, strict=True) if unit.group == name and n]
        blocks = tuple(sorted((size for size, n in mine for _ in range(n)), reverse=True))
        if sum(blocks) > group.cards or not packs(blocks, (group.per_server,) * int(group.servers)):
            return False
    return True


@cache
def tried(seed: int) -> tuple[Instance, Plan, float | None, float | None]:
    made, options = large(seed), Options(plan_only=True, reasons=False)
    options.limits.seconds = SECONDS
    value, bound = rounded_and_bound(made)
    return made, solve(made, options), value, bound


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_lies_between(seed: int) -> None:
    made, plan, value, bound = tried(seed)
    if bound is None:
        assert plan.status == "infeasible"
        return
    assert value is None or plan.status in ("optimal", "feasible")
    if plan.status not in ("optimal", "feasible"):
        return
    assert verify(plan, made) == []
    found, sign = plan.objective.value or 0.0, 1.0 if made.objective == "throughput" else -1.0
    assert sign * found <= sign * bound + NEAR * abs(bound)
    assert plan.objective.bound is None or sign * plan.objective.bound >= sign * found - NEAR * abs(found)
    if value is not None and plan.status == "optimal":
        assert sign * found >= sign * value - NEAR * abs(found)


def test_plans_are_near_their_bounds() -> None:
    """Were bounds far away, or rounded plans rare, the test above would say little."""
    known = [(plan, value, bound) for _, plan, value, bound in map(tried, SEEDS) if value is not None]
    assert len(known) >= 11
    assert sum(plan.status == "optimal" for plan, _, _ in known) >= 6
    near = sum(bound is not None and 0.6 <= (plan.objective.value or 0.0) / bound <= 1.7 for plan, _, bound in known)
    assert near >= 0.7 * len(known)
