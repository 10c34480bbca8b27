"""The nearest flip on either side: outward by factors of two, then between, until two values are near each other.

An answer that changes and changes back between two values that are tried is not seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from models.instance import Instance
from models.number import Number, moved
from models.plan import Plan
from solver.flips.asked import Asked, between, outward
from solver.flips.winner import Now, StoppedError, compared, decided, outcome_of, solved
from solver.limits import Limits


@dataclass(frozen=True)
class Point:
    """The plan at a value."""

    value: float
    plan: Plan
    outcome: tuple[str, ...]
    """Schemes of its pools in the order in which they are allowed, and tiers in use with what is written to them; none
    where there is no plan.
    """


@dataclass(frozen=True)
class Flip:
    """The answer at ``below`` is another one than at ``above``; both were solved."""

    number: Number
    at: float
    """The one of the two values that is farther from the present one: there the other answer holds."""
    below: Point
    above: Point
    decided_by: str | None
    """The first goal in which the two answers differ: the objective or, in a tie, a later one; `limits` where only one
    of them keeps the limits. None where the time was up before that was known."""

    @property
    def tie(self) -> bool | None:
        """Whether both answers have the same objective, and a later goal decides."""
        own = ("limits", self.below.plan.objective.name)
        return None if self.decided_by is None else self.decided_by not in own


@dataclass(frozen=True)
class Range:
    """Values between which the answer was found to be the present one."""

    number: Number
    low: float
    high: float


@dataclass
class Found:
    """What is known when the search ends."""

    now: Now | None = None
    """None where the time was up before there was an answer."""
    flips: list[Flip] = field(default_factory=list)
    unchanged: list[Range] = field(default_factory=list)
    stopped: list[Range] = field(default_factory=list)
    """Numbers that were not followed to the end, with how far they were."""


def flips(instance: Instance, ranges: Sequence[Asked], limits: Limits) -> Found:
    """The nearest flip of each number on either side."""
    limits.start()
    found = Found()
    try:
        plan = solved(instance, limits, "the answer now")
        found.now = Now(plan, outcome_of(plan))
        found.now = compared(instance, found.now, limits)
    except StoppedError:
        found.stopped.extend(Range(one.number, one.number.now, one.number.now) for one in ranges)
        return found
    for count, one in enumerate(ranges, 1):
        start = Point(one.number.now, found.now.plan, found.now.outcome)
        ends, standing = (one.low, one.high), f"number {count} of {len(ranges)}"
        ways = [_Way(instance, one.number, end, limits, standing, start) for end in ends]
        for way in ways:
            way.go()
        found.flips.extend(way.flip(way.far) for way in ways if way.far is not None)
        span = Range(one.number, *(way.near.value for way in ways))
        if any(way.stopped for way in ways):
            found.stopped.append(span)
        elif not any(way.far for way in ways):
            found.unchanged.append(span)
    return found


@dataclass
class _Way:
    """From the present value to one end of the range, up to the first other answer."""

    instance: Instance
    number: Number
    end: float
    limits: Limits
    standing: str
    near: Point
    """The farthest value known with the present answer."""
    far: Point | None = None
    """The nearest value known with another one."""
    decided_by: str | None = None
    stopped: bool = False

    def go(self) -> None:
        """Solve outward, then between, until both are near each other or the time is up."""
        try:
            for value in outward(self.number, self.end):
                self._solve(value)
                if self.far is not None:
                    break
            while self.far is not None:
                middle = between(self.number, self.near.value, self.far.value)
                if middle is None:
                    self.decided_by = self._decided(self.far)
                    break
                self._solve(middle)
        except StoppedError:
            self.stopped = True

    def flip(self, far: Point) -> Flip:
        """What was found."""
        below, above = (self.near, far) if self.near.value < far.value else (far, self.near)
        return Flip(self.number, far.value, below, above, self.decided_by)

    def _solve(self, value: float) -> None:
        changed = moved(self.instance, self.number, value)
        plan = solved(changed, self.limits, f"{self.number.path} = {self.number.text(value)}; {self.standing}")
        point = Point(value, plan, outcome_of(plan))
        if point.outcome == self.near.outcome:
            self.near = point
        else:
            self.far = point

    def _decided(self, far: Point) -> str:
        places = [moved(self.instance, self.number, point.value) for point in (far, self.near)]
        return decided(places, self.near.outcome, far.outcome, self.limits)
