"""A trace under the tiers of a plan, beside what the plan says of them: plain data, and a small table."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from api import words
from models.trace.chunks import Trace
from solver.trace.planned import Outcome, Planned, Predicted
from solver.trace.tiers import Found, Tier

MOVED = ("read_bytes_per_s", "written_bytes_per_s")


def replay(found: Outcome, trace: Trace) -> dict[str, Any]:
    """`predicted`, `replayed` and their `differences`, tier by tier, at the rate of the trace."""
    plan, told, size = found.planned, found.replayed, trace.block_tokens or 0
    block = size * plan.token_bytes
    predicted = [_predicted(one, found) for one in plan.tiers]
    real = [
        _real(one, tier, block, plan, told.seconds, told.tokens, predicted[i]["written_bytes_per_s"] is not None)
        for i, (one, tier) in enumerate(zip(told.tiers, found.tiers, strict=True))
    ]
    differences = [_difference(a, b) for a, b in zip(predicted, real, strict=True)]
    total = sum(one["hit"] for one in predicted)
    return {
        "workload": plan.workload,
        "group": plan.group,
        "share_of_load": plan.share,
        "plan_rate": plan.rate,
        "trace_rate": found.rate,
        "scale": found.scale,
        "copies": plan.copies,
        "kv_bytes_per_token": plan.token_bytes,
        "weight": "token",
        "notes": list(plan.notes),
        "predicted": {"hit": total, "tiers": predicted},
        "replayed": {"hit": told.token_hit_rate, "tiers": real},
        "differences": {"hit": told.token_hit_rate - total, "tiers": differences},
    }


def _predicted(one: Predicted, found: Outcome) -> dict[str, Any]:
    return {
        "name": one.name,
        "policy": one.policy,
        "retention_s": one.retention,
        "hit": one.found,
        "read_bytes_per_s": one.read * found.rate,
        "written_bytes_per_s": None if one.written is None else one.written * found.rate,
        "held": one.alive,
    }


def _real(
    one: Found, tier: Tier, block: float, plan: Planned, seconds: float, tokens: int, written: bool
) -> dict[str, Any]:
    room = tier.capacity * (1 if tier.shared else plan.copies)
    return {
        "name": one.name,
        "hit": one.hit_tokens / tokens if tokens else 0.0,
        "read_bytes_per_s": one.hit_tokens * plan.token_bytes / seconds,
        "written_bytes_per_s": one.writes * block / seconds if written else None,
        "capacity_blocks": room if isfinite(room) else None,
        "capacity_bytes": room * block if isfinite(room) else None,
        "held": one.mean / room if room else 0.0,
        "peak": one.peak / room if room else 0.0,
    }


def _difference(predicted: dict[str, Any], real: dict[str, Any]) -> dict[str, Any]:
    """Of the hit rate as a difference, of bytes as a share of what was predicted."""

    def relative(key: str) -> float | None:
        before, after = predicted[key], real[key]
        return after / before - 1.0 if before and after is not None else None

    return {"name": real["name"], "hit": real["hit"] - predicted["hit"], **{key: relative(key) for key in MOVED}}


def render(told: dict[str, Any]) -> str:
    """The table."""
    one = told["replay"]
    warm, span = told["parameters"]["warm_up"], told["arrivals"]["span_s"]
    counted = f"after a warm-up of {words.plural(warm['requests'], 'request')}" if warm["requests"] else "no warm-up"
    head = (
        f"{told['file']}: {words.plural(told['requests'], 'request')} in {span:,.0f} s, in the tiers of {one['group']}"
    )
    scale = f"times {one['scale']:.4g}" if one["scale"] != 1.0 else "as planned"
    here, there = words.rate(one["trace_rate"]), words.rate(one["plan_rate"])
    text = (
        f"{one['workload']}: {here} requests/s here, {there} in the plan; capacities {scale}. "
        f"Hits: share of input tokens, {counted}. First what is planned for this rate, then what was replayed."
    )
    if one["copies"] > 1:
        text += f" Each request goes to one of {one['copies']} places at random."
    rows = [["TIER", "writes", "HIT", "replayed", "READ GB/s", "replayed", "WRITTEN GB/s", "replayed"]]
    rows[0] += ["held", "peak"]
    for a, b in zip(one["predicted"]["tiers"], one["replayed"]["tiers"], strict=True):
        row = [a["name"], a["policy"], words.percent(a["hit"]), words.percent(b["hit"])]
        row += [_rate(side[key]) for key in MOVED for side in (a, b)]
        rows.append([*row, words.percent(b["held"]), words.percent(b["peak"])])
    total = [words.percent(one[side]["hit"]) for side in ("predicted", "replayed")]
    rows.append(["all tiers", "", *total, *[""] * 6])
    points = f"{100.0 * one['differences']['hit']:+.1f} points from what is planned; held and peak: of the capacity"
    return "\n".join([head, "", *words.wrap(text), "", *words.table(rows, _right(rows)), f" {points}", *_notes(one)])


def _right(rows: Sequence[Sequence[str]]) -> frozenset[int]:
    return frozenset(range(2, len(rows[0])))


def _notes(one: dict[str, Any]) -> list[str]:
    return [line for note in one["notes"] for line in words.wrap(f"note: {note}", " ")]


def _rate(value: float | None) -> str:
    return "-" if value is None else words.gigabytes_per_second(value)
