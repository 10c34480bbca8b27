"""Work that waits, over time: arrivals and service whose rates change, and bursts; a fluid, first come first served.

Work is counted in requests of weight 1, so that a long request may weigh as several (section 9.7, exercise 9-10).
"""

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

NOTHING = 1e-9
"""Work that is left by rounding."""


@dataclass(frozen=True)
class Steps:
    """A rate that changes at times: (time, rate from then on), in order; 0 before the first."""

    points: tuple[tuple[float, float], ...]

    @cached_property
    def _starts(self) -> list[float]:
        return [start for start, _ in self.points]

    def at(self, time: float) -> float:
        """The rate just after ``time``."""
        index = bisect.bisect_right(self._starts, time)
        return self.points[index - 1][1] if index else 0.0

    def amount(self, until: float) -> float:
        """What has come by ``until``."""
        index = bisect.bisect_right(self._starts, until) - 1
        return self._sums[index] + self.points[index][1] * (until - self._starts[index]) if index >= 0 else 0.0

    @cached_property
    def _sums(self) -> list[float]:
        parts = [rate * (end - start) for (start, rate), (end, _) in itertools.pairwise(self.points)]
        return [0.0, *itertools.accumulate(parts)]

    def seconds_for(self, work: float, start: float) -> float:
        """Time that ``work`` takes from ``start`` on; infinite where the rate ends at 0 before it is done."""
        if work <= 0:
            return 0.0
        ends = self._starts[bisect.bisect_right(self._starts, start) :]
        at = start
        for end in [*ends, math.inf]:
            rate = self.at(at)
            if rate > 0 and work <= rate * (end - at):
                return at + work / rate - start
            work -= rate * (end - at) if rate > 0 else 0.0
            at = end
        return math.inf


@dataclass(frozen=True)
class Window:
    """A stretch in which work waits without a break."""

    start: float
    end: float
    """Infinite: it never ends."""
    peak: float
    peak_at: float
    longest_wait: float
    """Of the work that arrives in it."""


@dataclass(frozen=True)
class Curve:
    """What waits: corners (time, work), two at one time for a burst; after the last it goes on with ``slope``."""

    corners: tuple[tuple[float, float], ...]
    slope: float
    service: Steps

    @cached_property
    def _times(self) -> list[float]:
        return [time for time, _ in self.corners]

    def at(self, time: float) -> float:
        """Work that waits at ``time``, a burst at that time included."""
        after = bisect.bisect_right(self._times, time)
        if not after:
            return 0.0
        (t0, y0) = self.corners[after - 1]
        if after == len(self.corners):
            return max(0.0, y0 + self.slope * (time - t0))
        (t1, y1) = self.corners[after]
        return y0 + (y1 - y0) * (time - t0) / (t1 - t0)

    def gone(self, since: float) -> float:
        """First time from ``since`` on at which nothing waits, and nothing begins to; infinite if never."""
        after = bisect.bisect_right(self._times, since)
        following = self.corners[after][1] if after < len(self.corners) else self.slope
        if self.at(since) <= NOTHING and following <= 0:
            return since
        return next((time for time, work in self.corners[after:] if work == 0.0), math.inf)

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """The stretches in which work waits."""
        return tuple(_windows(self.corners, self.slope, self.service))

    @property
    def deciding(self) -> Window | None:
        """The window with the longest wait: the one that capacity would have to be sized for."""
        return max(self.windows, key=lambda window: (window.longest_wait, window.peak), default=None)


def curve(arrivals: Steps, bursts: Sequence[tuple[float, float]], service: Steps) -> Curve:
    """The backlog from time 0 on; ``bursts`` are (time, work)."""
    jumps: dict[float, float] = {}
    for time, work in bursts:
        jumps[time] = jumps.get(time, 0.0) + work
    times = sorted({0.0, *jumps, *(time for time, _ in (*arrivals.points, *service.points) if time >= 0)})
    corners, waiting = [(0.0, 0.0)], 0.0
    for time, following in itertools.pairwise([*times, math.inf]):
        if time in jumps:
            waiting += jumps[time]
            corners.append((time, waiting))
        net = arrivals.at(time) - service.at(time)
        empty = time - waiting / net if net < 0 else math.inf
        if waiting > 0 and empty < following:
            corners.append((empty, 0.0))
            waiting = 0.0
        elif following < math.inf:
            waiting = max(0.0, waiting + net * (following - time))
            waiting = 0.0 if waiting < NOTHING else waiting
        if following < math.inf:
            corners.append((following, waiting))
    last = arrivals.at(times[-1]) - service.at(times[-1])
    slope = 0.0 if corners[-1][1] == 0.0 and last <= 0 else last
    return Curve(tuple(corners), slope, service)


def required_rate(
    arrivals: Steps, bursts: Sequence[tuple[float, float]], before: Steps, ready: float, deadline: float
) -> float:
    """The least rate from ``ready`` on with which nothing waits at some time up to ``deadline``; infinite if none."""
    if deadline <= ready:
        return math.inf

    def gone(rate: float) -> bool:
        kept = tuple(point for point in before.points if point[0] < ready)
        return curve(arrivals, bursts, Steps((*kept, (ready, rate)))).gone(ready) <= deadline

    high = 1.0
    while not gone(high):
        high *= 2.0
        if high > 1e15:
            return math.inf
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (low, middle) if gone(middle) else (middle, high)
    return high


def _windows(corners: Sequence[tuple[float, float]], slope: float, service: Steps) -> list[Window]:
    found: list[Window] = []
    inside: list[tuple[float, float]] = []
    for before, corner in zip([(0.0, 0.0), *corners], corners, strict=False):
        if corner[1] > 0 and not inside:
            inside = [before]
        if inside:
            inside.append(corner)
        if inside and corner[1] == 0.0:
            found.append(_window(inside, corner[0], 0.0, service))
            inside = []
    if slope > 0 or (inside and slope == 0):
        found.append(_window(inside or [corners[-1]], math.inf, slope, service))
    return found


def _window(inside: Sequence[tuple[float, float]], end: float, slope: float, service: Steps) -> Window:
    """Peak and longest wait; the wait bends where the rate of service changes, so those moments are looked at too."""
    peak_at, peak = max(inside, key=lambda corner: corner[1])
    longest = max((service.seconds_for(work, time) for time, work in inside), default=0.0)
    for (t0, y0), (t1, y1) in itertools.pairwise(inside):
        for change, _ in service.points:
            longest = max(longest, _served_at(change, (t0, y0), (t1, y1), service))
    if end == math.inf and slope > 0:
        peak, peak_at, longest = math.inf, math.inf, math.inf
    return Window(inside[0][0], end, peak, peak_at, longest)


def _served_at(change: float, start: tuple[float, float], end: tuple[float, float], service: Steps) -> float:
    """Wait of the work that comes between two corners and is served when the rate of service changes; else 0."""
    (t0, y0), (t1, y1) = start, end
    if t1 <= t0:
        return 0.0
    low, high = t0, t1
    if not t0 + service.seconds_for(y0, t0) < change < t1 + service.seconds_for(y1, t1):
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2.0
        waiting = y0 + (y1 - y0) * (middle - t0) / (t1 - t0)
        low, high = (middle, high) if middle + service.seconds_for(waiting, middle) < change else (low, middle)
    return change - low
