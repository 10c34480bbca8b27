"""Where the answer flips, as JSON and as a screen."""

from typing import Any

from api import words
from models.instance import Instance
from models.number import Number
from solver.flips.search import Flip, Found, Point, Range
from solver.flips.winner import Now
from solver.rounding import text

DIGITS = 4
"""Of values: flips are found to a thousandth."""
GOALS = {
    "throughput": "requests/s",
    "gpus": "fewer GPUs",
    "found": "more state found",
    "bytes": "fewer bytes on links",
    "value": "value served",
    "order": "the order of schemes.allow",
    "limits": "limits",
}
"""What decides between two answers, where it is not the objective."""
LAST = "an answer that changes and changes back between two values that are tried is not seen"


def answer(instance: Instance, found: Found) -> dict[str, Any]:
    """The document of `--json`."""
    return {
        "instance": instance.name,
        "now": None if found.now is None else _now(found.now),
        "flips": [_flip(flip) for flip in found.flips],
        "unchanged": [_range(one) for one in found.unchanged],
        "stopped": [_range(one) for one in found.stopped],
    }


def _now(now: Now) -> dict[str, Any]:
    other = None
    if now.other is not None:
        plan = now.other[1]
        other = {"scheme": now.other[0], "objective": plan.objective.value, "throughput": plan.throughput}
    return {
        **_side(now.outcome, now.plan),
        "name": now.plan.objective.name,
        "unit": now.plan.objective.unit,
        "other": other,
        "margin": now.margin,
        "decided_by": now.decided_by,
    }


def _side(outcome: tuple[str, ...], plan: Any) -> dict[str, Any]:
    return {
        "scheme": " + ".join(outcome) or None,
        "status": plan.status,
        "objective": plan.objective.value,
        "throughput": plan.throughput,
    }


def _flip(flip: Flip) -> dict[str, Any]:
    number = flip.number
    return {
        "path": number.path,
        "unit": number.unit,
        "now": _value(number, number.now),
        "at": _value(number, flip.at),
        "below": {"value": _value(number, flip.below.value), **_side(flip.below.outcome, flip.below.plan)},
        "above": {"value": _value(number, flip.above.value), **_side(flip.above.outcome, flip.above.plan)},
        "tie": flip.tie,
        "decided_by": flip.decided_by,
    }


def _range(one: Range) -> dict[str, Any]:
    number = one.number
    return {
        "path": number.path,
        "unit": number.unit,
        "now": _value(number, number.now),
        "from": _value(number, one.low),
        "to": _value(number, one.high),
    }


def _value(number: Number, value: float) -> float | int:
    return int(value) if number.whole else value


def render(instance: Instance, found: Found) -> str:
    """The screen."""
    lines = [f"{instance.name}: where the answer flips", "", *(f"  {line}" for line in _said_now(found.now))]
    if found.flips:
        rows = [["PATH", "NOW", "FLIPS AT", "BELOW", "ABOVE", ""]]
        for flip in found.flips:
            sides = (_said_side(flip.below), _said_side(flip.above))
            rows.append(
                [flip.number.path, _said(flip.number, flip.number.now), _said(flip.number, flip.at), *sides, _why(flip)]
            )
        lines.extend(["", *words.table(rows, frozenset({1, 2}))])
    for title, ranges in (("the same answer", found.unchanged), ("the time was up; known", found.stopped)):
        if ranges:
            rows = [
                [one.number.path, f"{_said(one.number, one.low)} to {_said(one.number, one.high)}"] for one in ranges
            ]
            lines.extend(["", f" {title} for", *words.table(rows, indent="   ")])
    return "\n".join([*lines, "", f" each number moves alone; {LAST}"])


def _said_now(now: Now | None) -> list[str]:
    if now is None:
        return ["now: the time was up before there was an answer"]
    plan = now.plan
    if not now.outcome:
        return ["now: infeasible, no scheme keeps the limits"]
    unproven = "" if plan.status == "optimal" else ", not proven best"
    lines = [f"now: {' + '.join(now.outcome)}, {_objective(plan)}{unproven}"]
    if now.other is None:
        return [*lines, "no other scheme that is allowed keeps the limits"]
    scheme, other = now.other
    if now.decided_by == "order":
        return [*lines, f"next: {scheme} alone, the same in every goal; decided by {GOALS['order']}"]
    next_one, margin = f"next: {scheme} alone, {_objective(other)}", words.percent(now.margin or 0.0)
    if now.decided_by == plan.objective.name:
        return [*lines, f"{next_one}; margin {margin}"]
    return [*lines, f"{next_one}; a tie, decided by {GOALS.get(now.decided_by or '', now.decided_by)}: margin {margin}"]


def _objective(plan: Any) -> str:
    value, unit = plan.objective.value, plan.objective.unit
    return f"{words.number(value, DIGITS)} {unit}" + (
        "" if plan.objective.name == "throughput" else f", {words.rate(plan.throughput)} requests/s possible"
    )


def _said_side(point: Point) -> str:
    if not point.outcome:
        return "infeasible"
    unproven = "" if point.plan.status == "optimal" else " (not proven)"
    return f"{' + '.join(point.outcome)} {words.number(point.plan.objective.value, DIGITS)}{unproven}"


def _why(flip: Flip) -> str:
    if flip.decided_by is None:
        return "not followed to the end"
    if flip.tie:
        return f"tie, decided by {GOALS.get(flip.decided_by, flip.decided_by)}"
    return ""


def _said(number: Number, value: float) -> str:
    """A value in a unit that suits it."""
    if number.whole:
        return f"{value:,.0f}"
    if number.unit == "s":
        size, unit = next(((s, u) for s, u in ((1e-6, "us"), (1e-3, "ms")) if 0 < value < 1e3 * s), (1.0, "s"))
        return f"{text(value / size)} {unit}"
    if number.unit == "B/s":
        return f"{text(value / 1e9)} GB/s"
    if number.unit.endswith("/s") and number.unit != "/s" and number.unit != "FLOP/s":  # a price
        return f"{text(3600.0 * value)} {number.unit[:-2]}/h"
    return text(value) + ("" if number.unit.startswith("/") or not number.unit else " ") + number.unit
