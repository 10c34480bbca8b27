"""Linear programs over recipes: a recipe is one whole way to serve a request, from first token to last.

Where the solver conserves flow at every place, here a recipe names its prefill unit, its trip and its decode unit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from ortools.linear_solver import pywraplp

from models.instance import Instance
from tests.against.accounting import Unit, payload, units
from tests.against.network import Channel, Network, trips
from tests.against.wide_units import Wide

Counts = Sequence[int]
Array = np.ndarray[Any, np.dtype[np.float64]]
INFINITY = float("inf")


@dataclass(frozen=True)
class Recipe:
    """Serves one request of a workload."""

    workload: str
    takes: tuple[tuple[int, int, float], ...]
    """(unit, resource, unit-seconds)."""
    load: dict[Channel, float]
    crossing: float
    ready: float
    """Second from which every unit in it is there."""


@dataclass(frozen=True)
class Case:
    """An instance with the units and recipes of some schemes."""

    instance: Instance
    schemes: tuple[str, ...]
    units: Sequence[Unit | Wide]
    recipes: tuple[Recipe, ...]

    @property
    def rows(self) -> list[tuple[int, int]]:
        return [(i, k) for i, unit in enumerate(self.units) for k in range(unit.resources)]

    @property
    def channels(self) -> list[Channel]:
        return sorted({channel for recipe in self.recipes for channel in recipe.load})

    def startup(self, unit: int) -> float:
        built = self.units[unit]
        return built.startup if isinstance(built, Wide) else self.instance.startup(built.group)


def case(instance: Instance, schemes: Sequence[str]) -> Case:
    kinds = [name for name in ("replicas", "chunked") if name in schemes]
    kinds += ["prefill", "decode"] if {"pd-direct", "pd-pooled"} & set(schemes) else []
    built = units(instance, kinds)
    network, recipes = Network(instance.hardware), []
    for i, first in enumerate(built):
        for name, seconds in first.seconds.items():
            workload = instance.workloads[name]
            begin = tuple((i, k, s) for k, s in enumerate(seconds))
            start = instance.startup(first.group)
            if first.stage == "both" or (first.stage == "prefill" and workload.output == 1):
                recipes.append(Recipe(name, begin, {}, 0.0, start))
            if first.stage != "prefill" or workload.output == 1:
                continue
            for j, second in enumerate(built):
                if second.stage != "decode" or name not in second.seconds:
                    continue
                finish = tuple((j, k, s) for k, s in enumerate(second.seconds[name]))
                ready = max(start, instance.startup(second.group))
                size = payload(instance, workload)
                for trip in trips(network, list(schemes), first.group, second.group, [(1.0, size)]):
                    recipes.append(Recipe(name, (*begin, *finish), trip.load, trip.crossing, ready))
    return Case(instance, tuple(schemes), tuple(built), tuple(recipes))


class Stage:
    """Recipes over one stretch of time; the capacity of its units is set afterwards."""

    def __init__(
        self, program: Any, case: Case, ready: float, seconds: float, widths: Mapping[str, float] | None = None
    ) -> None:
        self.seconds = seconds
        wide = widths or {}
        self.recipes = [(r, program.NumVar(0.0, INFINITY, "")) for r in case.recipes if r.ready <= ready]
        self.capacity = {row: program.Constraint(-INFINITY, 0.0) for row in case.rows}
        self.shared = [program.Constraint(-INFINITY, seconds * wide.get(c[0], 1.0)) for c in case.channels]
        for recipe, column in self.recipes:
            for i, k, need in recipe.takes:
                self.capacity[i, k].SetCoefficient(column, need)
            for channel, row in zip(case.channels, self.shared, strict=True):
                if recipe.load.get(channel):
                    row.SetCoefficient(column, recipe.load[channel])

    def set(self, counts: Counts) -> None:
        for (i, _), row in self.capacity.items():
            row.SetUb(float(counts[i]) * self.seconds)

    def served(self, row: Any, workload: str) -> None:
        for recipe, column in self.recipes:
            if recipe.workload == workload:
                row.SetCoefficient(column, 1.0)


@dataclass(frozen=True)
class Answer:
    """The optimum, and the linear bound that its dual gives for every vector of counts."""

    value: float
    slope: Array
    offset: float
    full: bool
    """Whether a channel or store limits the value."""


def solved(program: Any) -> bool:
    status = program.Solve()
    assert status in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.INFEASIBLE), status
    return bool(status == pywraplp.Solver.OPTIMAL)


class Largest:
    """max z over stages in which units serve: the throughput, or the multiple of arrivals that drains in time."""

    def __init__(self, case: Case, deadline: float | None = None, widths: Mapping[str, float] | None = None) -> None:
        self.case = case
        self.program = program = pywraplp.Solver.CreateSolver("GLOP")
        self.z = program.NumVar(0.0, INFINITY, "z")
        program.Objective().SetMaximization()
        program.Objective().SetCoefficient(self.z, 1.0)
        if deadline is None:
            self.stages = [Stage(program, case, INFINITY, 1.0, widths)]
            for name, workload in case.instance.workloads.items():
                row = program.Constraint(0.0, 0.0)
                self.stages[0].served(row, name)
                row.SetCoefficient(self.z, -workload.rate / case.instance.rate)
            return
        starts = sorted({case.startup(i) for i in range(len(case.units))})
        cuts = [start for start in starts if start < deadline] + [deadline]
        self.stages = [Stage(program, case, a, b - a, widths) for a, b in pairwise(cuts)]
        for name, workload in case.instance.workloads.items():
            for k, end in enumerate(cuts[1:]):
                row = program.Constraint(0.0 if end == deadline else -INFINITY, 0.0)
                row.SetCoefficient(self.z, -workload.rate * end)
                for stage in self.stages[: k + 1]:
                    stage.served(row, name)
            if len(cuts) == 1:  # nothing is ever ready in time
                program.Constraint(0.0, 0.0).SetCoefficient(self.z, workload.rate)

    def at(self, counts: Counts) -> Answer:
        for stage in self.stages:
            stage.set(counts)
        assert solved(self.program)
        value, slope, offset = self.z.solution_value(), np.zeros(len(counts)), 0.0
        for stage in self.stages:
            for (i, _), row in stage.capacity.items():
                slope[i] += max(0.0, row.dual_value()) * stage.seconds
            offset += sum(max(0.0, row.dual_value()) * row.ub() for row in stage.shared)
        assert abs(slope @ np.asarray(counts, float) + offset - value) <= 1e-6 * max(value, 1e-3), "duals do not add up"
        return Answer(value, slope, offset, offset > 1e-9)


def fewest_bytes(case: Case, counts: Counts, throughput: float) -> float:
    """Least bytes/s on links at ``throughput``."""
    program = pywraplp.Solver.CreateSolver("GLOP")
    stage = Stage(program, case, INFINITY, 1.0)
    stage.set(counts)
    for name, workload in case.instance.workloads.items():
        stage.served(program.Constraint(throughput * workload.rate / case.instance.rate, INFINITY), name)
    for recipe, column in stage.recipes:
        program.Objective().SetCoefficient(column, recipe.crossing / 1e9)
    program.Objective().SetMinimization()
    assert solved(program)
    return float(program.Objective().Value()) * 1e9


def earliest(case: Case, counts: Counts) -> float | None:
    """First second from which nothing waits any more: the backlog is gone and does not come back."""
    starts = sorted({case.startup(i) for i, count in enumerate(counts) if count})
    for last, start in enumerate(starts):
        found = _gone_in(case, counts, starts[: last + 1], starts[last + 1] if last + 1 < len(starts) else INFINITY)
        if found is not None and (found > 1e-6 or _keeps_up(case, counts, start)):
            return found
    return None


def _keeps_up(case: Case, counts: Counts, at: float) -> bool:
    """Whether the units that are ready at the first second serve all arrivals from then on."""
    ready = [count if case.startup(i) <= at else 0 for i, count in enumerate(counts)]
    return Largest(case).at(ready).value >= case.instance.rate * (1.0 - 1e-9)


def _gone_in(case: Case, counts: Counts, starts: Sequence[float], until: float) -> float | None:
    """Least end of a drain that ends between the last of ``starts`` and ``until``."""
    program = pywraplp.Solver.CreateSolver("GLOP")
    end = program.NumVar(starts[-1], until, "end")
    cuts = [*starts, starts[-1] + 1.0]
    stages = [Stage(program, case, a, b - a) for a, b in pairwise(cuts)]
    for stage in stages:
        stage.set(counts)
    for (i, _), row in stages[-1].capacity.items():  # as long as it takes, instead of one second
        row.SetUb(-float(counts[i]) * starts[-1])
        row.SetCoefficient(end, -float(counts[i]))
    for row in stages[-1].shared:
        row.SetUb(-starts[-1])
        row.SetCoefficient(end, -1.0)
    for name, workload in case.instance.workloads.items():
        for k, cut in enumerate(cuts[1:]):
            final = k == len(starts) - 1
            row = program.Constraint(0.0 if final else -INFINITY, 0.0 if final else workload.rate * cut)
            if final:
                row.SetCoefficient(end, -workload.rate)
            for stage in stages[: k + 1]:
                stage.served(row, name)
    program.Objective().SetMinimization()
    program.Objective().SetCoefficient(end, 1.0)
    return float(end.solution_value()) if solved(program) else None
