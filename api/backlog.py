"""The startup backlog over time: its curve, what to say about it; and small pictures of backlogs in text."""

import itertools
from collections.abc import Iterator

from api import words
from models.instance import Instance
from models.plan import Plan

WIDTH, HEIGHT = 48, 4
BLOCKS = " ▁▂▃▄▅▆▇█"


def curve(plan: Plan, instance: Instance) -> list[tuple[float, float]]:
    """Corners of the backlog: second, requests waiting."""
    drain = plan.drain
    if drain is None or not drain.phases:
        return []
    begins = {pool.name for pool in plan.pools if pool.begins}
    points, waiting, at = [(0.0, 0.0)], 0.0, 0.0
    for phase in drain.phases:
        waiting += instance.rate * (phase.start_s - at)
        points.append((phase.start_s, waiting))
        served = sum(sum(rates.values()) for name, rates in phase.pools.items() if name in begins)
        waiting += (instance.rate - served) * (phase.end_s - phase.start_s)
        at = phase.end_s
        points.append((at, waiting if waiting > 1e-6 else 0.0))  # what is left by rounding is nothing
    return points


def end(plan: Plan) -> float:
    """The last second worth showing: the deadline, or when the backlog is gone."""
    drain = plan.drain
    return 0.0 if drain is None else max(drain.deadline_s or 0.0, drain.drained_s or drain.ready_s)


def facts(plan: Plan) -> list[str]:
    """When all is ready, when the backlog is gone, by when it must be, and with what margin."""
    drain = plan.drain
    if drain is None:
        return []
    parts = [f"all ready in second {drain.ready_s:.0f}"]
    parts.append("never gone" if drain.drained_s is None else f"gone in second {drain.drained_s:.1f}")
    if drain.deadline_s is not None:
        parts.append(f"deadline {drain.deadline_s:.4g} s")
    if drain.required_rate is not None and plan.throughput:
        spare = plan.throughput / drain.required_rate - 1.0
        parts.append(f"{drain.required_rate:.2f} req/s would do: {100.0 * spare:.0f} % margin")
    return parts


def backlog(plan: Plan, instance: Instance) -> Iterator[str]:
    """The curve with its peak, and when it is gone; nothing when there is no backlog."""
    points = curve(plan, instance)
    if plan.drain is None or plan.drain.drained_s is None or not points:
        return
    last = end(plan)
    if max(height for _, height in points) <= 0 or last <= 0:
        return
    yield from picture(points, last, "BACKLOG", "requests")
    yield " " * 17 + ", ".join(facts(plan))


def picture(points: list[tuple[float, float]], last: float, title: str, unit: str) -> Iterator[str]:
    """A curve from second 0 to ``last``, with its peak."""
    peak = max(height for _, height in points)
    heights = [_at(points, last * (i + 0.5) / WIDTH) / peak * HEIGHT for i in range(WIDTH)]
    for row in range(HEIGHT, 0, -1):
        cells = "".join(BLOCKS[min(8, max(0, round(8 * (height - row + 1))))] for height in heights)
        label = {HEIGHT: words.number(peak), 1: "0"}.get(row, "")
        word = {HEIGHT: title, HEIGHT - 1: unit}.get(row, "")
        yield f" {word:<9}{label:>6} |{cells}|"
    yield f"{'':18}0{f'{last:,.0f} s':>{WIDTH - 1}}"


def _at(points: list[tuple[float, float]], time: float) -> float:
    for (t0, y0), (t1, y1) in itertools.pairwise(points):
        if t0 <= time <= t1 and t1 > t0:
            return y0 + (y1 - y0) * (time - t0) / (t1 - t0)
    return 0.0
