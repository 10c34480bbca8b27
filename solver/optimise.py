"""Goals met one after the other: each is proven best among the plans that are best so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from solver.backend import Session
from solver.limits import PROOF, Limits, Outcome, gap
from solver.milp import warm
from solver.milp.master import Goal, Master
from solver.milp.model import Row
from solver.milp.servers import Filling
from solver.tiers.choice import Choice

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
    bundles: Mapping[str, int] = field(default_factory=dict)
    """How many of each thing are bought."""
    steps: Mapping[str, int] = field(default_factory=dict)
    """How many steps are added to each link."""
    filled: tuple[tuple[Filling, int], ...] = ()
    """How many servers are filled in each way, where that matters."""
    choice: Choice | None = None
    """How state is kept for later."""

    @property
    def found(self) -> bool:
        """Whether there is a plan."""
        return self.status in ("optimal", "feasible")


def rank(master: Master, goals: Sequence[Goal], limits: Limits, met: Ranked | None = None) -> Ranked:
    """Meet ``goals`` in order. Stops at the first that cannot be proven; what was found so far stands.

    ``met`` is what a smaller program proved of the first goal.
    """
    session = Session(master.model)
    last: Outcome | None = None
    first: Outcome | None = None
    proven, stages = True, []
    if met is not None and met.value is not None:
        session.add(_keep(goals[0], met.value / goals[0].unit))
        stages.append((goals[0].name, met.value))
    for goal in goals[len(stages) :]:
        if not goal.terms:  # nothing to choose: the goal is the same for every plan
            stages.append((goal.name, 0.0))
            continue
        limits.progress = f"goal {goal.name}" + _standing(stages)
        outcome = _meet(session, goal, limits, last.values if last else ())
        if outcome.status == "infeasible" and last is None and met is None:
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
    if (last is None or first is None) and met is not None:
        return replace(met, status="feasible")
    if last is None or first is None:
        return Ranked("stopped", (), None, None, ())
    status = "optimal" if proven else "feasible"
    counts = tuple(round(last.values[master.units[owner]]) for owner in master.data.owners)
    bundles = {name: round(last.values[column]) for name, column in master.purchases.bundles.items()}
    steps = {name: round(last.values[column]) for name, column in master.purchases.steps.items()}
    filled = tuple((one, count) for one in master.fillings if (count := round(last.values[one.column])))
    choice = None if master.kept is None else warm.choice(master.kept, last.values)
    if not goals[0].terms:
        return Ranked(status, counts, None, None, tuple(stages), bundles, steps, filled, choice)
    bound = None if first.bound is None else first.bound * goals[0].unit
    bound = bound if met is None else met.bound
    return Ranked(status, counts, stages[0][1], bound, tuple(stages), bundles, steps, filled, choice)


MOST_ROUNDS = 50


def _meet(session: Session, goal: Goal, limits: Limits, hint: Sequence[float]) -> Outcome:
    r"""The best value of a goal; a ratio $N/D$ by Dinkelbach's method.

    For the best ratio q so far, $F = \min N - q D$ is at most 0, and 0 only where nothing is better. Any plan has
    $N/D \ge q + F/D \ge q + F_{lb}/D_{min}$, which is the bound.
    """
    if not goal.over:
        return session.solve(goal.terms, goal.maximise, limits, hint)
    ratio, best, bound = 0.0, Outcome("stopped", None, None, ()), 0.0
    for _ in range(MOST_ROUNDS):
        terms = [*goal.terms, *((column, -ratio * worth) for column, worth in goal.over)]
        outcome = session.solve(terms, False, limits, best.values or hint)
        if not outcome.found:
            return outcome if not best.found else best
        number, worth = (sum(k * outcome.values[c] for c, k in part) for part in (goal.terms, goal.over))
        if outcome.bound is not None:
            bound = max(bound, ratio + min(0.0, outcome.bound) / goal.least)
        better = number / max(worth, goal.least)  # rounding may leave nothing of very little
        if best.found and better >= ratio * (1.0 - 1e-12):
            break
        ratio, best = better, outcome
    proven = gap(ratio, bound) <= PROOF
    return Outcome("optimal" if proven else "feasible", ratio, bound, best.values)


def _standing(stages: Sequence[tuple[str, float]]) -> str:
    return "; so far " + ", ".join(f"{name} {value:.6g}" for name, value in stages) if stages else ""


def _keep(goal: Goal, value: float) -> Row:
    """The goal no worse than ``value``, up to ``SLACK``."""
    infinity = float("inf")
    if goal.over:  # N <= q D
        terms = [*goal.terms, *((column, -value * (1.0 + SLACK) * worth) for column, worth in goal.over)]
        return Row(f"keep[{goal.name}]", tuple(terms), -infinity, 0.0)
    room = SLACK * max(abs(value), 1e-6)
    low, high = (value - room, infinity) if goal.maximise else (-infinity, value + room)
    return Row(f"keep[{goal.name}]", goal.terms, low, high)


def better(a: Ranked, b: Ranked, goals: Sequence[Goal]) -> bool:
    """Whether ``a`` comes before ``b`` in the order of ``goals``; the last goal compares only within one model."""
    for (_, x), (_, y), goal in zip(a.stages, b.stages, goals[:-1], strict=False):
        if gap(x, y) > 2.0 * SLACK:
            return (x > y) == goal.maximise
    return False
