"""The answer of `inferplan queue`: what waits before each stage over time, as a document and as text."""

import math
from typing import Any

from api import words
from api.backlog import picture
from models.instance import Instance
from models.workload import Workload
from solver.queueing.fluid import Needed
from solver.queueing.queues import Stage, longest_waits

INDENT = " " * 11


def answer(instance: Instance, stages: list[Stage], asked: float | None) -> dict[str, Any]:
    """The document. Times that never come, and peaks that are never reached, are null.

    ``asked`` is the longest wait that is allowed; without it the drain deadline sizes the capacity that is told.
    """
    waits, wait = longest_waits(stages, instance), instance.service.drain if asked is None else asked
    return {
        "instance": instance.name,
        "followed_s": stages[0].until if stages else 0.0,
        "wait_s": wait,
        "kept": None if asked is None else all(longest <= asked * (1.0 + 1e-9) for longest in waits.values()),
        "ends": all(math.isfinite(longest) for longest in waits.values()),
        "workloads": {
            name: {
                "rate": workload.rate,
                "over_time": over_time(workload),
                "longest_wait_s": _finite(waits[name]),
            }
            for name, workload in instance.workloads.items()
        },
        "stages": [_stage(instance, stage, wait) for stage in stages],
    }


def over_time(workload: Workload) -> str:
    """How requests come, in words."""
    if workload.bursts is not None:
        return f"in the first {workload.bursts.first:.6g} s of every {workload.bursts.every:.6g} s"
    if workload.profile is not None:
        return f"as its profile says, {workload.profile[-1].at:.6g} s"
    return "evenly"


def _stage(instance: Instance, stage: Stage, wait: float | None) -> dict[str, Any]:
    told = {
        "stage": stage.system.stage,
        "pools": list(stage.system.pools),
        "capacity": {"work": stage.queue.capacity, "requests": stage.queue.capacity / stage.system.mean_work},
        "work_of_a_request": {**stage.system.weights},
        "load": stage.load,
        **_waiting(stage),
        "curve": _curve(stage),
    }
    lengths = {
        length
        for name in stage.system.weights
        if (bursts := instance.workloads[name].bursts) is not None
        for length in (bursts.first, bursts.every)
    }
    told["windows"] = [
        {
            "seconds": window.seconds,
            "start_s": window.start,
            "work": window.rate,
            "of_capacity": window.rate / stage.queue.capacity,
        }
        for window in stage.busiest(lengths)
    ]
    told["shortest_window_s"] = stage.shortest
    told["needed"] = _needs(stage, wait)
    told["at_once"] = None
    if stage.at_once is not None:
        told["at_once"] = _waiting(stage.at_once)
    return told


def _waiting(stage: Stage) -> dict[str, Any]:
    """The peak, the longest wait, and the stretch in which it is."""
    peak, deciding = stage.peak, stage.deciding
    if peak is None or deciding is None:
        none = {"at_s": 0.0, "work": 0.0, "mean_requests": 0.0, "requests": dict.fromkeys(stage.system.weights, 0.0)}
        return {"peak": none, "longest_wait_s": 0.0, "waits": None, "empty_again_s": 0.0}
    if math.isinf(stage.wait):
        window = {"start_s": deciding.start, "end_s": None}
        return {"peak": None, "longest_wait_s": None, "waits": window, "empty_again_s": None}
    at = peak.peak_at
    return {
        "peak": {
            "at_s": at,
            "work": peak.peak,
            "mean_requests": peak.peak / stage.system.mean_work,
            "requests": stage.queue.requests(at),
        },
        "longest_wait_s": stage.wait,
        "waits": {"start_s": deciding.start, "end_s": _finite(deciding.end)},
        "empty_again_s": _finite(deciding.end),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _curve(stage: Stage) -> list[dict[str, Any]]:
    """Corners of what waits: in between it is straight."""
    queue = stage.queue
    flows = [*queue.arrivals.values(), *queue.departures.values()]
    times = {0.0, stage.until, *(time for time, _ in queue.curve.corners)}
    times.update(time for steps in flows for time, _ in steps.points)
    return [
        {"second": time, "work": queue.curve.at(time), "requests": queue.requests(time)}
        for time in sorted(times)
        if time <= stage.until
    ]


def _needs(stage: Stage, wait: float | None) -> list[dict[str, Any]]:
    """Capacity for no wait at all, and for the one that is asked for."""
    found: list[Needed] = [stage.needed(asked) for asked in sorted({0.0, wait or 0.0})]
    return [
        {
            "wait_s": one.wait,
            "work": one.capacity,
            "requests": one.capacity / stage.system.mean_work,
            "of_capacity": one.capacity / stage.queue.capacity,
            "window": None if math.isinf(one.seconds) else {"start_s": one.start, "seconds": one.seconds},
        }
        for one in found
    ]


# --- text ---------------------------------------------------------------------------------------------


def render(told: dict[str, Any]) -> str:
    """The document as one screen."""
    lines = [f"{told['instance']}: {told['followed_s']:,.6g} s, first come first served", ""]
    lines.extend([*words.wrap(_sentence(told)), ""])
    table = [["WORKLOAD", "req/s", "ARRIVES", "LONGEST WAIT"]]
    for name, one in told["workloads"].items():
        longest = "no end" if one["longest_wait_s"] is None else _seconds(one["longest_wait_s"])
        table.append([name, words.rate(one["rate"]), one["over_time"], longest])
    lines.extend([*words.table(table, frozenset({1, 3})), ""])
    table = [["STAGE", "POOLS", "CAPACITY", "LOAD", "MOST WAITING", "IN SECOND", "LONGEST WAIT"]]
    table.extend(_row(stage) for stage in told["stages"])
    lines.extend(words.table(table, frozenset(range(2, 7))))
    for stage in told["stages"]:
        if stage["waits"] is not None:
            lines.extend(["", *_queue_lines(stage, told)])
    return "\n".join(lines)


def _sentence(told: dict[str, Any]) -> str:
    queued = [stage for stage in told["stages"] if stage["waits"] is not None]
    if not queued:
        return "Nothing waits: every stage has the capacity for what arrives at any time."
    endless = [stage["stage"] for stage in queued if stage["longest_wait_s"] is None]
    if endless:
        return f"More arrives on average than {_listed(endless)} can do: the queue grows without end."
    longest = max(one["longest_wait_s"] for one in told["workloads"].values())
    text = f"Up to {words.seconds(longest)} of waiting for a request, all stages together"
    if told["kept"] is not None:
        text += f"; the limit, {words.seconds(told['wait_s'])}, is {'kept' if told['kept'] else 'exceeded'}"
    return text + "."


def _seconds(value: float) -> str:
    return "none" if value == 0.0 else words.seconds(value)


def _listed(names: list[str]) -> str:
    return " and ".join(names)


def _row(stage: dict[str, Any]) -> list[str]:
    peak, pools = stage["peak"], ", ".join(stage["pools"])
    named = [stage["stage"], pools, f"{words.rate(stage['capacity']['requests'])} req/s", words.percent(stage["load"])]
    if stage["waits"] is None:
        return [*named, "nothing", "-", "-"]
    if peak is None:
        return [*named, "no end", "-", "no end"]
    count = f"{words.number(sum(peak['requests'].values()))} requests"
    return [*named, count, f"{peak['at_s']:,.1f}", words.seconds(stage["longest_wait_s"])]


def _queue_lines(stage: dict[str, Any], told: dict[str, Any]) -> list[str]:
    """The curve, the peak as work, windows and needed capacity of one queue."""
    lines: list[str] = []
    points = [(point["second"], point["work"]) for point in stage["curve"]]
    if max(work for _, work in points) > 0.0:
        lines.extend(picture(points, told["followed_s"], stage["stage"].upper(), "unit-s"))
    each = ", ".join(f"{name} {words.number(work)}" for name, work in stage["work_of_a_request"].items())
    lines.append(f"{INDENT}work of a request: {each} unit-seconds; {stage['capacity']['work']:.6g} a second are served")
    if stage["peak"] is not None:
        table = [["AT THE PEAK", "unit-s", "mean requests", *stage["peak"]["requests"], "empty again"]]
        once = stage["at_once"]
        table.append(_peak("as it is" if once is None else "as prefill hands over", stage))
        if once is not None and once["peak"] is not None:
            table.append(_peak("if prefill had no limit", once))
        lines.extend(words.table(table, frozenset(range(1, len(table[0]))), INDENT))
    table = [["WINDOW", "busiest", "begins", ""]]
    table.extend(
        [
            f"{words.number(window['seconds'], 4)} s",
            f"{words.percent(window['of_capacity'])} of capacity",
            f"{window['start_s']:,.1f}",
            "the shortest that fits" if window["seconds"] == stage["shortest_window_s"] else "",
        ]
        for window in stage["windows"]
    )
    lines.extend(words.table(table, frozenset({0, 1, 2}), INDENT))
    return [*lines, *(f"{INDENT}{_need(need)}" for need in stage["needed"])]


def _peak(name: str, waiting: dict[str, Any]) -> list[str]:
    peak, again = waiting["peak"], waiting["empty_again_s"]
    counts = [words.number(count) for count in peak["requests"].values()]
    empty = "never" if again is None else f"second {again:,.1f}"
    return [name, words.number(peak["work"]), words.number(peak["mean_requests"]), *counts, empty]


def _need(need: dict[str, Any]) -> str:
    wait = "no wait" if need["wait_s"] == 0.0 else f"at most {words.seconds(need['wait_s'])} of wait"
    window = need["window"]
    decides = "the mean decides" if window is None else f"a window of {words.number(window['seconds'], 4)} s decides"
    rate = f"{words.rate(need['requests'])} req/s, {words.percent(need['of_capacity'])} of what there is"
    return f"{wait} needs {rate}: {decides}"
