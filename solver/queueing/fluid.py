"""A queue of several workloads as a fluid: served at a constant capacity in work, first come first served.

Work of a request is its weight; what leaves one stage arrives at the next in the order in which it came.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solver.transition.backlog import NOTHING, Curve, Steps, curve

Flow = Mapping[str, Steps]
"""Requests/s by workload."""
SAME = 1e-9
"""Moments nearer to each other than this, relative to their size, are one."""


def moments(flow: Flow) -> list[float]:
    """When any of the rates changes, second 0 included."""
    return sorted({0.0, *(time for steps in flow.values() for time, _ in steps.points)})


@dataclass(frozen=True)
class Queue:
    """What waits before a stage, and what leaves it."""

    arrivals: Flow
    weights: Mapping[str, float]
    """Work of one request."""
    capacity: float
    """Work served in a second."""

    @cached_property
    def work(self) -> Steps:
        """Work that arrives in a second."""
        return Steps(tuple((time, self.at(time)) for time in moments(self.arrivals)))

    @cached_property
    def curve(self) -> Curve:
        """Work that waits."""
        return curve(self.work, [], Steps(((0.0, self.capacity),)))

    @cached_property
    def departures(self) -> Flow:
        """Requests/s that leave, by workload: while anything waits, in the mix in which what is served now came."""
        times = sorted({*moments(self.arrivals), *(time for time, _ in self.curve.corners)})
        leaving: list[tuple[float, dict[str, float]]] = []
        for time in times:
            waiting, work = self.curve.at(time), self.work.at(time)
            queued = waiting > NOTHING or work > self.capacity
            slower = self.capacity / work if queued and work > 0.0 else 1.0
            at = time + waiting / self.capacity
            if leaving and at - leaving[-1][0] <= SAME * max(at, 1.0):  # nothing left in between
                at = leaving.pop()[0]
            leaving.append((at, {name: steps.at(time) * slower for name, steps in self.arrivals.items()}))
        return {name: Steps(tuple((at, rates[name]) for at, rates in leaving)) for name in self.arrivals}

    def at(self, time: float) -> float:
        """Work that arrives in a second at ``time``."""
        return sum(self.weights[name] * steps.at(time) for name, steps in self.arrivals.items())

    def requests(self, time: float) -> dict[str, float]:
        """Requests that wait at ``time``, by workload; those in service count by what is left of them."""
        if self.curve.at(time) <= NOTHING:
            return dict.fromkeys(self.arrivals, 0.0)
        came_less_gone = {
            name: steps.amount(time) - self.departures[name].amount(time) for name, steps in self.arrivals.items()
        }
        return {name: max(0.0, waiting) for name, waiting in came_less_gone.items()}


@dataclass(frozen=True)
class Busiest:
    """The window of a length into which most work falls."""

    seconds: float
    start: float
    rate: float
    """Work a second in it."""


@dataclass(frozen=True)
class Needed:
    """Capacity that keeps a wait, and the window that asks for it."""

    wait: float
    capacity: float
    start: float
    seconds: float
    """Infinite: the mean decides."""


class Windows:
    """Work that falls into stretches of the time up to ``until``."""

    def __init__(self, work: Steps, until: float) -> None:
        self._until, self._mean = until, work.points[-1][1]
        self._edges = np.array([*(time for time, _ in work.points if time < until), until])
        self._came = np.array([work.amount(time) for time in self._edges])

    def busiest(self, seconds: float) -> Busiest:
        """Of all windows of a length: one begins or ends where the rate changes."""
        starts = np.concatenate((self._edges, self._edges - seconds))
        starts = np.sort(starts[(starts >= 0.0) & (starts <= self._until - seconds)])
        starts = starts if starts.size else np.zeros(1)
        work = self._by(starts + seconds) - self._by(starts)
        most = int(np.argmax(work > work.max() - SAME * self._came[-1]))  # the first of those that are alike
        return Busiest(seconds, float(starts[most]), float(work[most]) / seconds)

    def shortest(self, capacity: float, least: float) -> float | None:
        """Least length from ``least`` on of which no window brings more than ``capacity``; None: none so short.

        There the busiest window brings just as much, and one of its ends is where the rate changes.
        """
        excess = self._came - capacity * self._edges
        slopes = np.diff(excess)
        lengths = {least, self._until}
        for edge, level in zip(self._edges, excess, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                share = (level - excess[:-1]) / slopes
            crossed = np.isfinite(share) & (share >= 0.0) & (share <= 1.0)
            found = np.abs(self._edges[:-1] + share * np.diff(self._edges) - edge)[crossed]
            lengths.update(float(length) for length in found if least < length < self._until)
        room = SAME * (capacity * self._until + float(self._came[-1]))
        for length in sorted(lengths):
            if self.busiest(length).rate * length <= capacity * length + room:
                return length
        return None

    def needed(self, wait: float) -> Needed:
        r"""The least capacity with which nothing waits longer: $\max_{s<t} \frac{A(t)-A(s)}{t-s+W}$, or the mean.

        What comes from $s$ to $t$ has to be served by $t+W$. The quotient has no peak inside a stretch of constant
        rate, so $s$ and $t$ are moments at which it changes.
        """
        best = Needed(wait, self._mean, 0.0, math.inf)
        for index in range(len(self._edges) - 1):
            seconds = self._edges[index + 1 :] - self._edges[index]
            asked = (self._came[index + 1 :] - self._came[index]) / (seconds + wait)
            most = int(np.argmax(asked))
            if asked[most] > best.capacity * (1.0 + SAME):
                best = Needed(wait, float(asked[most]), float(self._edges[index]), float(seconds[most]))
        return best

    def _by(self, times: np.ndarray) -> np.ndarray:
        """Work that came by each of the times."""
        return np.asarray(np.interp(times, self._edges, self._came), dtype=float)
