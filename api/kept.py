"""State kept for later, in sentences and a table: where, how long, what finds it, what is full first."""

from collections.abc import Iterator

from api import words
from models.instance import Instance
from models.plan import Plan
from models.plan_tiers import TierUse
from models.units import GIB

NOT_PIECES = ("sustain", "served", "drain", "cards[", "own[")
"""Resources that do not fill up as arrivals grow, or are those arrivals."""


def table(plan: Plan, instance: Instance) -> Iterator[str]:
    """A row for each place that keeps anything or was bought, and what each workload finds."""
    if not plan.tiers:
        return
    binding = {row.name for row in plan.resources if row.binding}
    rows = [["STATE KEPT", "WRITES", "FOR", "ALIVE", "FOUND", "READ", "WRITTEN", "PIECES", ""]]
    for use in plan.tiers:
        if use.policy == "never" and not use.pieces and not use.paused:
            continue
        rows.append([use.name, *_row(use, plan), _fullest(use, plan, binding)])
    if len(rows) > 1:
        yield from words.table(rows, frozenset({2, 3, 4, 5, 6, 7}))
    else:
        yield " STATE KEPT  none: computing anew is cheaper than every tier, or no tier has room"
    for name, result in plan.workloads.items():
        found = result.reuse
        if found is not None:
            waits = first_tokens(plan, name)
            said = f"{name}: {words.percent(found.requests)} of the requests find state, "
            said += f"{words.percent(found.tokens)} of the input tokens are not computed"
            yield from words.wrap(said + (f"; first token of a hit {waits}" if waits else ""), indent=" ")
    yield from words.wrap(grows(plan) or "", indent=" ")


def _row(use: TierUse, plan: Plan) -> list[str]:
    served = sum(result.served for result in plan.workloads.values())
    parts: dict[tuple[str, int], float] = {}
    for one in use.found:
        parts[one.workload, one.part] = parts.get((one.workload, one.part), 0.0) + one.rate.at_load
    found = sum(max(rate for (w, _), rate in parts.items() if w == name) for name in {w for w, _ in parts})
    kept = "-" if use.policy == "never" else "several" if use.retention_s is None else age(use.retention_s)
    return [
        "pauses" if use.policy == "never" and use.paused else use.policy,
        kept,
        f"{size(use.alive)} of {size(use.capacity)}",
        "-" if not served else words.percent(found / served),
        f"{words.gigabytes_per_second(use.read.at_load)} GB/s",
        f"{words.gigabytes_per_second(use.written.at_load)} GB/s",
        f"{use.pieces:,}" if use.pieces else "-",
    ]


def _fullest(use: TierUse, plan: Plan, binding: set[str]) -> str:
    """What of a place is used most; what binds."""
    mine = [r for r in plan.resources if r.name == f"tier[{use.name}]" or r.name.startswith(f"tier[{use.name},")]
    most = max(mine, key=lambda row: row.utilisation, default=None)
    if most is None:
        return ""
    word = most.name[5:-1].partition(",")[2] or "capacity"
    return f"{word} {words.percent(most.utilisation)}" + ("  <- binds" if most.name in binding else "")


def size(value: float) -> str:
    """Bytes in the unit that suits them."""
    return f"{words.number(value / 1e12, 3)} TB" if value >= 1e12 else f"{words.number(value / GIB, 3)} GiB"


def age(seconds: float) -> str:
    """A retention time."""
    for unit, length in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * length:
            return f"{words.number(seconds / length, 3)} {unit}"
    return f"{words.number(seconds, 3)} s"


def first_tokens(plan: Plan, name: str) -> str:
    """First tokens of requests that find all they may, by tier; of the slowest group."""
    slowest: dict[str, tuple[int, float]] = {}
    for use in plan.tiers:
        for one in use.found:
            if one.workload == name and one.rate.at_load > 0.0 and one.first_token_s is not None:
                part, time = slowest.get(use.tier, (-1, 0.0))
                time = one.first_token_s if one.part > part else max(time, one.first_token_s)
                slowest[use.tier] = (max(part, one.part), time) if one.part >= part else slowest[use.tier]
    return ", ".join(f"{words.seconds(time)} from {tier}" for tier, (_, time) in slowest.items())


def grows(plan: Plan) -> str | None:
    """What is full first as arrivals grow, nothing else changed."""
    served = sum(result.served for result in plan.workloads.values())
    full = [
        (1.0 / row.utilisation, row.name)
        for row in plan.resources
        if row.utilisation > 0.0 and not row.name.startswith(NOT_PIECES)
    ]
    if not full or not served:
        return None
    first = [f"{name} at {words.number(times, 3)} x the load" for times, name in sorted(full)[:3]]
    return f"full first as arrivals grow, retention as it is: {', then '.join(first)}"


def worth(plan: Plan, instance: Instance) -> Iterator[str]:
    """What is never found, and where reading is slower than computing."""
    for name, workload in instance.workloads.items():
        result = plan.workloads.get(name)
        if not workload.reuse or result is None or result.reuse is None:
            continue
        for number, part in enumerate(workload.reuse):
            if result.reuse.parts[number] <= 1e-9:
                yield f"{name}: the {part.kind} part of its prompt is not worth keeping: nothing is found of it"
        whole = result.ttft_s.at_load
        for use in plan.tiers:
            slow = [
                one.first_token_s
                for one in use.found
                if one.workload == name and one.first_token_s is not None and one.rate.at_load > 0.0
            ]
            if slow and whole is not None and max(slow) > whole:
                yield (
                    f"{name}: a hit in {use.name} takes {words.seconds(max(slow))} to its first token, computing anew "
                    f"{words.seconds(whole)}: it saves GPU time, not waiting"
                )
