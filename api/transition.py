"""The answer to a transition: as a document and as text, with the reason for each number."""

import math
from typing import Any

from api import words
from models.transition import Transition
from solver.transition import graph
from solver.transition.timeline import Timeline


def answer(asked: Transition, found: Timeline) -> dict[str, Any]:
    """The document. Times that never come are null."""
    moved = [move.bytes for move in found.moves.values() if move.bytes is not None]
    return {
        "name": asked.name,
        "possible": found.possible,
        "steps": [_step(row, found) for row in found.steps],
        "critical_path": graph.critical_path(found.steps),
        "ready_s": _finite(found.ready),
        "stops_s": _finite(found.stops),
        "bytes_moved": sum(moved) if math.isfinite(found.ready) else None,
        "pools": [] if found.difference is None else [_change(change) for change in found.difference.changes],
        "crowded_groups": [] if found.difference is None else list(found.difference.crowded),
        "service": {
            key: {"rate": rate.value, "reason": rate.reason}
            for key, rate in (("before", found.before), ("during", found.during), ("after", found.after))
        },
        "arrivals": found.arrivals,
        "backlog": _backlog(found),
        "rollout": [
            {
                "share": stage.share,
                "old_units": stage.old_units,
                "new_units": stage.new_units,
                "cards": stage.cards,
                "fits": stage.fits,
            }
            for stage in found.rollout
        ],
        "failures": {
            name: {
                "way": one.way,
                "cached_tokens": one.cached,
                "replayed_tokens": one.replayed,
                "covered_tokens": one.covered,
                "next_output": one.next_output,
                "seen_and_lost": one.seen_and_lost,
            }
            for name, one in found.recoveries.items()
        },
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _step(row: graph.Timed, found: Timeline) -> dict[str, Any]:
    move = found.moves[row.step.name]
    return {
        "name": row.step.name,
        "start_s": _finite(row.start),
        "end_s": _finite(row.end),
        "seconds": _finite(row.step.seconds),
        "bytes": move.bytes,
        "link": row.step.link,
        "within": row.step.within,
        "waits_for": row.waits_for,
        "critical": row.critical,
        "pause_s": move.pause,
        "reason": move.reason,
    }


def _change(change: Any) -> dict[str, Any]:
    return {
        "group": change.group,
        "model": change.model,
        "stage": change.stage,
        "cut": change.cut,
        "before": change.before,
        "after": change.after,
        "kept": change.kept,
        "reassigned": change.reassigned,
        "new": change.new,
    }


def _backlog(found: Timeline) -> dict[str, Any]:
    told: dict[str, Any] = dict.fromkeys(
        ("at_ready", "peak", "peak_s", "longest_wait_s", "drained_s", "deciding_window", "required_rate")
    )
    told |= {"deadline_s": found.deadline, "met": found.met}
    if found.waiting is None:
        return told
    window = found.waiting.deciding
    told |= {"at_ready": found.waiting.at(found.ready), "drained_s": _finite(found.drained)}
    told |= {"required_rate": None if found.required is None else _finite(found.required)}
    if window is None:
        return told | {"peak": 0.0, "longest_wait_s": 0.0}
    return told | {
        "peak": _finite(max(one.peak for one in found.waiting.windows)),
        "peak_s": _finite(max(found.waiting.windows, key=lambda one: one.peak).peak_at),
        "longest_wait_s": _finite(window.longest_wait),
        "deciding_window": {"start_s": window.start, "end_s": _finite(window.end)},
    }


# --- text ---------------------------------------------------------------------------------------------


def render(told: dict[str, Any]) -> str:
    """The document as one screen."""
    steps = words.plural(len(told["steps"]), "step")
    lines = [f"{told['name']}: {steps}" + ("" if told["possible"] else "    NOT POSSIBLE"), ""]
    lines.extend([*_summary(told), "", *_step_lines(told), ""])
    lines.extend([*_pool_lines(told), *_rate_lines(told), *_wait_lines(told)])
    lines.extend([*_rollout_lines(told), *_failure_lines(told)])
    return "\n".join(lines).rstrip()


def _second(value: float | None, digits: int = 1) -> str:
    return "never" if value is None else f"second {value:.{digits}f}"


def _summary(told: dict[str, Any]) -> list[str]:
    never = next((step for step in told["steps"] if step["seconds"] is None), None)
    if never is not None:
        return [f"  Never ready: {never['name']} does not end ({never['reason']})."]
    path = " -> ".join(told["critical_path"])
    lines = [f"  All ready in {_second(told['ready_s'], 2)}; the longest path is {path}."]
    backlog = told["backlog"]
    if backlog["deciding_window"] is None:
        return lines
    count = words.number(backlog["at_ready"])
    gone = (
        "the backlog is never gone"
        if backlog["drained_s"] is None
        else f"nothing waits from {_second(backlog['drained_s'])} on"
    )
    waits = f"  {count} requests wait then; {gone}"
    if backlog["met"] is not None:
        waits += f"; the deadline, second {backlog['deadline_s']:.4g}, is {'kept' if backlog['met'] else 'missed'}"
    return [*lines, waits + "."]


def _step_lines(told: dict[str, Any]) -> list[str]:
    table = [["STEP", "begins", "takes", "ends", "waits for", "", "WHY SO LONG"]]
    for step in told["steps"]:
        inside = step["within"] is not None
        path = "longest path" if step["critical"] else "not added" if inside else ""
        pause = f", the last {words.seconds(step['pause_s'])} as a pause" if step["pause_s"] else ""
        table.append(
            [
                ("  " if inside else "") + step["name"],
                _short(step["start_s"]),
                _short(step["seconds"]),
                _short(step["end_s"]),
                f"in {step['within']}" if inside else step["waits_for"] or "-",
                path,
                step["reason"] + pause,
            ]
        )
    return words.table(table, frozenset({1, 2, 3}))


def _short(value: float | None) -> str:
    return "never" if value is None else "0" if value == 0 else words.seconds(value)


def _pool_lines(told: dict[str, Any]) -> list[str]:
    if not told["pools"]:
        return []
    table = [["UNITS OF", "stage", "cut", "before", "after", "stay", "change stage", "new"]]
    for pool in told["pools"]:
        counts = [str(pool[key]) for key in ("before", "after", "kept", "reassigned", "new")]
        table.append([pool["group"], pool["stage"], pool["cut"], *counts])
    lines = words.table(table, frozenset(range(3, 8)))
    if told["crowded_groups"]:
        lines.append(f" new units need GPUs of units that stop: {', '.join(told['crowded_groups'])}")
    return [*lines, ""]


def _rate_lines(told: dict[str, Any]) -> list[str]:
    if told["arrivals"] == "none stated":
        return []
    stops = "" if not told["stops_s"] else f" (from {_second(told['stops_s'], 2)})"
    names = {"before": "served before", "during": f"meanwhile{stops}", "after": "once ready"}
    table = [[names[key], f"{words.rate(rate['rate'])}/s", rate["reason"]] for key, rate in told["service"].items()]
    return words.table([["RATES", "", ""], *table, ["arrivals", "", told["arrivals"]]], frozenset({1}))


def _wait_lines(told: dict[str, Any]) -> list[str]:
    backlog = told["backlog"]
    if not backlog["peak"] and backlog["deciding_window"] is None:
        return []
    window = backlog["deciding_window"]
    peak = "grows without end" if backlog["peak"] is None else f"at most {words.number(backlog['peak'])} requests wait"
    when = "" if backlog["peak_s"] is None else f", in {_second(backlog['peak_s'])}"
    longest = (
        ""
        if backlog["longest_wait_s"] is None
        else f"; who waits longest waits {words.seconds(backlog['longest_wait_s'])}"
    )
    lines = ["", f" BACKLOG  {peak}{when}{longest}"]
    ends = "without end" if window["end_s"] is None else f"to {window['end_s']:.1f}"
    lines.append(f"          the stretch that decides: second {window['start_s']:.1f} {ends}")
    if backlog["required_rate"] is not None:
        lines.append(f"          {words.rate(backlog['required_rate'])}/s once ready would keep the deadline")
    return lines


def _rollout_lines(told: dict[str, Any]) -> list[str]:
    if not told["rollout"]:
        return []
    table = [["ON THE NEW VERSION", "old units", "new units", "GPUs", ""]]
    for stage in told["rollout"]:
        counts = [str(stage[key]) for key in ("old_units", "new_units", "cards")]
        table.append([words.percent(stage["share"]), *counts, "" if stage["fits"] else "more than there are"])
    return ["", *words.table(table, frozenset({0, 1, 2, 3}))]


def _failure_lines(told: dict[str, Any]) -> list[str]:
    if not told["failures"]:
        return []
    table = [["FAILURE", "", "state used", "prefilled again", "then covered", "next output", "seen, may differ"]]
    for name, one in told["failures"].items():
        counts = ("cached_tokens", "replayed_tokens", "covered_tokens", "next_output", "seen_and_lost")
        table.append([name, one["way"], *(f"{one[key]:,}" for key in counts)])
    return ["", *words.table(table, frozenset(range(2, 7)))]
