"""One instance over a grid of changes: a row for each, solved on its own."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from models.instance import Instance
from models.plan import Plan
from solver.limits import Limits, Stop
from solver.solve import Options, solve

MOST_ROWS = 10_000
"""Rows of a grid that are solved at most."""


@dataclass(frozen=True)
class Axis:
    """A place in the instance and the values it takes, as written."""

    path: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class SweepRow:
    """One point of the grid with its plan."""

    values: dict[str, str]
    plan: Plan

    def as_json(self) -> dict[str, Any]:
        """What differs from row to row; the plan itself is a solve away."""
        plan = self.plan
        return {
            "values": self.values,
            "status": plan.status,
            "scheme": plan.scheme,
            "throughput": plan.throughput,
            "served": sum(result.served for result in plan.workloads.values()) if plan.pools else None,
            "drained_s": plan.drain.drained_s if plan.drain else None,
            "cost_per_hour": plan.cost.per_hour,
            "cost_per_1000_requests": plan.cost.per_1000_requests,
            "cards": sum(pool.cards for pool in plan.pools) if plan.pools else None,
            "pools": {pool.name: pool.units for pool in plan.pools},
            "objective": plan.objective.value,
            "gap": plan.objective.gap,
        }


def points(axes: Sequence[Axis]) -> Iterator[dict[str, str]]:
    """Every combination, the last axis running fastest."""
    for values in itertools.product(*(axis.values for axis in axes)):
        yield {axis.path: value for axis, value in zip(axes, values, strict=True)}


def rows(
    axes: Sequence[Axis], instance: Callable[[dict[str, str]], Instance], limits: Limits, stop: Stop | None
) -> list[SweepRow]:
    """Solve every point, each within ``limits``; those that were not reached before ``stop`` are missing.

    ``instance`` makes the instance of a point; it may raise BadInput.
    """
    grid: list[tuple[dict[str, str], Instance]] = []
    for values in points(axes):  # all bad values are found before the first solve
        if stop is not None and stop.asked:
            return []
        grid.append((values, instance(values)))
    found: list[SweepRow] = []
    for number, (values, made) in enumerate(grid, 1):
        if stop is not None and stop.asked:
            break
        limits.progress = f"point {number} of {len(grid)}"
        own = Limits(limits.seconds, limits.gap, limits.seed, stop)
        found.append(SweepRow(values, solve(made, Options(own, plan_only=True, reasons=False))))
    return found
