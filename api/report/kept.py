"""The part of the report about state that is kept for later."""

from api import kept, words
from api.report.markup import NOTHING, Html, bullets, join, table, tag
from models.instance import Instance
from models.plan import Plan


def state(plan: Plan, instance: Instance) -> Html:
    """Every place that keeps state, what finds it there, and what is full first as arrivals grow."""
    if not plan.tiers:
        return NOTHING
    places = [
        [
            use.name,
            use.policy,
            "-" if use.policy == "never" else "several" if use.retention_s is None else kept.age(use.retention_s),
            kept.size(use.alive),
            kept.size(use.capacity),
            f"{use.pieces:,}" if use.pieces else "-",
            words.gigabytes_per_second(use.read.at_load),
            words.gigabytes_per_second(use.written.at_load),
            words.gigabytes_per_second(use.endurance) if use.endurance is not None else "-",
            words.price(use.per_hour) if use.per_hour else "-",
        ]
        for use in plan.tiers
    ]
    found = [
        [
            one.workload,
            f"{one.part + 1}",
            use.name,
            words.rate(one.rate.at_load),
            words.gibibytes(one.bytes_per_hit),
            words.seconds(one.first_token_s),
        ]
        for use in plan.tiers
        for one in use.found
    ]
    head = [
        "Place",
        "Writes",
        "Kept for",
        "Alive",
        "Capacity",
        "Pieces",
        "GB/s read",
        "GB/s written",
        "GB/s endured",
        "An hour",
    ]
    titles = ["Workload", "Part", "Found in", "req/s", "State", "First token"]
    said = [*kept.worth(plan, instance), *([grows] if (grows := kept.grows(plan)) else [])]
    shares = [
        f"{name}: {words.percent(result.reuse.requests)} of the requests find state, "
        f"{words.percent(result.reuse.tokens)} of the input tokens are not computed"
        for name, result in plan.workloads.items()
        if result.reuse is not None
    ]
    return join(
        [
            table("Places that keep state, at the stated arrivals", head, places, range(3, 10)),
            bullets([*shares, *said]) if shares or said else NOTHING,
            table("Parts of prompts, and where they are found", titles, found, (3, 4, 5)) if found else NOTHING,
            tag("p", "A place that is not in use says never. Part 1 is where a prompt begins.", class_="note"),
        ]
    )
