"""Goals met one after the other: each is proven best among the plans that are best so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from solver.backend import Limits, Outcome, Session, gap
from solver.milp.master import Goal, Master
from solver.milp.model import Row

SLACK = 1e-7
"""Relative room left on a goal that is met: above the solver's own, so that the next goal is not cut off, and below any
digit shown."""


@dataclass(frozen=True)
class Ranked:
    """The counts chosen, how the first goal stands, and whether every goal was proven."""

    status: str
    counts: tuple[int, ...]
    value: float | None
    """Of the first goal."""
    bound: float | None
    stages: tuple[tuple[str, float], ...]
    """Value reached of each goal, in order."""

    @property
    def found(self) -> bool:
        """Whether there is a plan."""
        return self.status in ("optimal", "feasible")


def rank(master: Master, goals: Sequence[Goal], limits: Limits) -> Ranked:
    """Meet ``goals`` in order. Stops at the first that cannot be proven; what was found so far stands."""
    session = Session(master.model)
    last: Outcome | None = None
    first: Outcome | None = None
    proven, stages = True, []
    for goal in goals:
        if not goal.terms:  # nothing to choose: the goal is the same for every plan
            stages.append((goal.name, 0.0))
            continue
        limits.progress = f"goal {goal.name}" + _standing(stages)
        outcome = session.solve(goal.terms, goal.maximise, limits, last.values if last else ())
        if outcome.status == "infeasible" and last is None:
            return Ranked("infeasible", (), None, None, ())
        if not outcome.found or outcome.value is None:
            proven = False
            break
        last, first = outcome, first or outcome
        stages.append((goal.name, outcome.value * goal.unit))
        if outcome.status != "optimal":
            proven = False
            break
        session.add(_keep(goal, outcome.value))
    if last is None or first is None:
        return Ranked("stopped", (), None, None, ())
    status, counts = "optimal" if proven else "feasible", _counts(master, last)
    if not goals[0].terms:
        return Ranked(status, counts, None, None, tuple(stages))
    bound = None if first.bound is None else first.bound * goals[0].unit
    return Ranked(status, counts, stages[0][1], bound, tuple(stages))


def _counts(master: Master, outcome: Outcome) -> tuple[int, ...]:
    return tuple(round(outcome.values[column]) for column in master.units)


def _standing(stages: Sequence[tuple[str, float]]) -> str:
    return "; so far " + ", ".join(f"{name} {value:.6g}" for name, value in stages) if stages else ""


def _keep(goal: Goal, value: float) -> Row:
    """The goal no worse than ``value``, up to ``SLACK``."""
    room = SLACK * max(abs(value), 1e-6)
    infinity = float("inf")
    low, high = (value - room, infinity) if goal.maximise else (-infinity, value + room)
    return Row(f"keep[{goal.name}]", goal.terms, low, high)


def better(a: Ranked, b: Ranked, goals: Sequence[Goal]) -> bool:
    """Whether ``a`` comes before ``b`` in the order of ``goals``; the last goal compares only within one model."""
    for (_, x), (_, y), goal in zip(a.stages, b.stages, goals[:-1], strict=False):
        if gap(x, y) > 2.0 * SLACK:
            return (x > y) == goal.maximise
    return False
