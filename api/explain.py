"""explain: an infeasible instance in full, or what binds a plan and what would change it."""

from collections.abc import Iterator

from api import kept, words
from api.screen import render as screen
from models.instance import Instance
from models.plan import Plan, Resource
from models.units import GIB


def render(plan: Plan, instance: Instance) -> str:
    """The plan's reasons as text."""
    if not plan.pools:
        return screen(plan, instance)
    return "\n".join(_lines(plan, instance))


def _lines(plan: Plan, instance: Instance) -> Iterator[str]:
    goal = plan.objective
    yield f"{plan.instance}: {plan.status}, {goal.name} {words.number(goal.value, 4)} {goal.unit}"
    yield ""
    yield " WHAT BINDS when the plan gives its most"
    rows = [["LIMIT", "now", "of", "used"]]
    for row in sorted(plan.resources, key=lambda row: (not row.binding, -row.utilisation)):
        if row.demand > 0:
            rows.append([row.name, *_amounts(row), words.percent(row.utilisation), "binds" if row.binding else ""])
    yield from words.table(rows, frozenset({1, 2, 3}), indent="   ")
    yield ""
    state = [*kept.table(plan, instance), *(f" {line}" for line in kept.worth(plan, instance))]
    yield from (*state, "") if state else ()
    yield " WHAT NEXT"
    for step in plan.marginal:
        yield f"   {step.text}"
    yield ""
    yield " WHY NOT"
    for other in plan.alternatives:
        yield f"   {other.scheme}: {words.rate(other.throughput or None)} req/s, {other.reason or 'keeps every limit'}"
    for text in plan.warnings:
        yield from words.wrap(f"note: {text}", indent=" ")


def _amounts(row: Resource) -> tuple[str, str]:
    """Demand and capacity in units that people use."""
    scale, unit = {"B/s": (1e9, "GB/s"), "B": (GIB, "GiB")}.get(row.unit, (1.0, row.unit))
    return f"{words.number(row.demand / scale, 4)}", f"{words.number(row.capacity / scale, 4)} {unit}"
