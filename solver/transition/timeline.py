"""A transition as a whole: the steps in time, the rates that are served meanwhile, and what waits until when."""

import math
from dataclasses import dataclass

from models.errors import BadInput, Problem
from models.transition import Arriving, Transition
from solver.transition import backlog, graph, recover, rollout
from solver.transition.moves import Move, move
from solver.transition.pools import Difference


@dataclass(frozen=True)
class Rate:
    """Requests/s, and where the number comes from."""

    value: float
    reason: str


@dataclass(frozen=True)
class Timeline:
    """Everything that there is to say; infinite times are those that never come."""

    steps: tuple[graph.Timed, ...]
    moves: dict[str, Move]
    ready: float
    stops: float
    """When the old units stop."""
    before: Rate
    during: Rate
    after: Rate
    arrivals: str
    deadline: float | None
    waiting: backlog.Curve | None
    """None where the steps never end."""
    drained: float
    required: float | None
    """Rate from ready on that keeps the deadline; None without one."""
    difference: Difference | None
    rollout: tuple[rollout.Stage, ...]
    recoveries: dict[str, recover.Recovery]

    @property
    def met(self) -> bool | None:
        """Whether nothing waits any more by the deadline; None without one."""
        return None if self.deadline is None else self.drained <= self.deadline

    @property
    def possible(self) -> bool:
        """Whether the steps end, the deadline is kept, and every stage of the rollout fits."""
        return math.isfinite(self.ready) and self.met is not False and all(stage.fits for stage in self.rollout)


def timeline(asked: Transition, difference: Difference | None = None) -> Timeline:
    """The transition in time. Raises BadInput where two plans are needed and none are given."""
    needed = [name for name, step in asked.steps.items() if step.loads is not None]
    if needed and difference is None:
        accepted = "--from A.json --to B.json on the command line"
        raise BadInput([Problem(f"steps.{name}.loads", "needs two plans", None, accepted) for name in needed])
    moves = {name: move(asked, name, difference) for name in asked.steps}
    _nested(asked, moves)
    timed = graph.schedule(
        graph.Step(name, moves[name].seconds, tuple(step.after), step.within, step.link)
        for name, step in asked.steps.items()
    )
    ready = graph.ready(timed)
    deadline = asked.deadline if asked.deadline is not None or difference is None else difference.deadline
    stops = _stops(asked, timed, moves)
    before, during, after = _rates(asked, difference)
    arriving, said = _arriving(asked.arrivals, difference)
    bursts = [
        (burst.at + (burst.every or 0.0) * i, burst.requests * burst.weight)
        for burst in asked.arrivals.bursts
        for i in range(burst.times)
    ]
    waiting, drained, required = None, math.inf, None
    if math.isfinite(ready):
        served = backlog.Steps(tuple({0.0: before.value, min(stops, ready): during.value, ready: after.value}.items()))
        waiting = backlog.curve(arriving, bursts, served)
        drained = waiting.gone(ready)
        required = None if deadline is None else backlog.required_rate(arriving, bursts, served, ready, deadline)
    stages: tuple[rollout.Stage, ...] = ()
    if asked.rollout is not None:
        old, new = (rollout.Version(one.unit_rate, one.cards) for one in (asked.rollout.old, asked.rollout.new))
        most = max((rate for _, rate in arriving.points), default=0.0)
        stages = tuple(rollout.stages(old, new, most, asked.rollout.shares, asked.rollout.cards))
    recoveries = {
        name: recover.recover(
            one.input, one.returned, one.returned if one.logged is None else one.logged, one.saved, one.compatible
        )
        for name, one in asked.failures.items()
    }
    return Timeline(
        tuple(timed), moves, ready, stops, before, during, after, said, deadline, waiting, drained, required,
        difference, stages, recoveries,
    )  # fmt: skip


def _nested(asked: Transition, moves: dict[str, Move]) -> None:
    """A step cannot take longer than the one that it is within. Raises BadInput."""
    wrong = []
    for outer in asked.steps:
        part = [
            graph.Step(name, moves[name].seconds, tuple(step.after), None, step.link)
            for name, step in asked.steps.items()
            if step.within == outer
        ]
        took = graph.ready(graph.schedule(part))
        if took > moves[outer].seconds * (1.0 + 1e-9):
            names = ", ".join(step.name for step in part)
            message = f"takes {moves[outer].seconds:.6g} s, but what is within it takes {took:.6g} s ({names})"
            wrong.append(Problem(f"steps.{outer}", message, None, "at least as long as what is within"))
    if wrong:
        raise BadInput(wrong)


def _stops(asked: Transition, timed: list[graph.Timed], moves: dict[str, Move]) -> float:
    name = asked.service.stops
    if name is None:
        return 0.0
    row = next(row for row in timed if row.step.name == name)
    return row.end - moves[name].pause if moves[name].pause else row.start


def _rates(asked: Transition, difference: Difference | None) -> tuple[Rate, Rate, Rate]:
    stated = asked.service
    beside = difference is not None and not difference.crowded and stated.stops is None
    found = []
    for key in ("before", "during", "after"):
        value: float | None = getattr(stated, key)
        if value is not None:
            found.append(Rate(value, "as stated"))
        elif difference is None:
            found.append(Rate(0.0, "not stated: nothing is served"))
        elif key == "during" and beside and not any(change.reassigned for change in difference.changes):
            found.append(Rate(difference.before, "new units start beside the old ones, which serve until all is ready"))
        else:
            reason = {"before": "throughput of the first plan", "after": "throughput of the second plan"}
            found.append(Rate(getattr(difference, key), reason.get(key, "units that stay at their work, alone")))
    return found[0], found[1], found[2]


def _arriving(arrivals: Arriving, difference: Difference | None) -> tuple[backlog.Steps, str]:
    if arrivals.points:
        return backlog.Steps(tuple((point.at, point.rate) for point in arrivals.points)), "points as stated"
    if arrivals.rate is not None:
        return backlog.Steps(((0.0, arrivals.rate),)), f"{arrivals.rate:.4g}/s as stated"
    if difference is not None:
        return backlog.Steps(((0.0, difference.arrivals),)), f"{difference.arrivals:.4g}/s of the second plan"
    return backlog.Steps(()), "none stated"
