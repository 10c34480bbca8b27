"""The parts of the report about what runs, what is full, and what crosses the links."""

from api import answer, words
from api.report.figures import MOST_BARS, amounts, by_fullness, charted, memory_of
from api.report.markup import NOTHING, Html, bullets, details, join, table, tag
from api.report.picture import MOST_PLACES, picture
from models.instance import Instance
from models.plan import Plan, Pool
from models.units import GIB

LEGEND = (("prefill", "prefill"), ("decode", "decode"), ("both", "whole requests"), ("none", "no work"))
ENCODE = ("encode", "images")
BINDS = tag("strong", "binds", class_="binds")
MOST_HANDOFFS = 6
"""Handoffs named beside the picture."""


def chart(name: str, label: str, left_out: int = 0) -> Html:
    """The place of a chart; the table beside it has what the chart leaves out, and is there without scripts too."""
    drawn = tag("div", id=f"figure-{name}", class_="chart", role="img", aria_label=label)
    note = f"The chart leaves out {left_out:,} rows; the table has them."
    return join([drawn, tag("p", note, class_="note") if left_out > 0 else NOTHING])


def cluster(plan: Plan, instance: Instance) -> Html:
    """The picture with its legend, and what crosses its links."""
    keys = [
        tag("p", tag("i", class_=f"key {stage}", aria_hidden="true"), f" {text}", class_="entry")
        for stage, text in ((ENCODE, *LEGEND) if any(pool.stage == "encode" for pool in plan.pools) else LEGEND)
    ]
    drawn = tag("div", picture(plan, instance), class_="scroll", tabindex="0", role="region", aria_label="Cluster")
    note = (
        "Boxes are groups, links and stores; a dot is a joint; arrows show which way KV goes. GPUs are counted: which "
    )
    note += "ones a pool takes is not said. A link shows the load of its busiest channel at the stated arrivals."
    moved = [
        f"{row.name}: {words.gibibytes(row.bytes_per_request)} a request in {words.seconds(row.seconds)}, "
        f"{words.rate(row.rate.at_load)} req/s"
        for row in plan.handoffs[:MOST_HANDOFFS]
    ]
    moved += [
        f"features for {row.name}: {words.gibibytes(row.features.bytes_per_request)} a request, there after "
        f"{words.seconds(row.features.seconds)}, encoding included"
        for row in plan.handoffs[:MOST_HANDOFFS]
        if row.features is not None
    ]
    more = len(plan.handoffs) - MOST_HANDOFFS
    moved += [f"and {more:,} more below"] if more > 0 else []
    crosses = [tag("p", tag("strong", "KV on its way")), bullets(moved)] if moved else []
    hardware = instance.hardware
    hidden = sum(max(0, len(kind) - MOST_PLACES) for kind in (hardware.groups, hardware.links, hardware.stores))
    note += f" {hidden:,} groups, links or stores are not drawn." if hidden else ""
    return tag("figure", drawn, tag("figcaption", *keys, *crosses, tag("p", note, class_="note")), class_="beside")


def pools(plan: Plan, instance: Instance) -> Html:
    """Pools, and where the memory of their GPUs goes."""
    if not plan.pools:
        return NOTHING
    head = ["Pool", "GPUs", "Busy", "req/s at most", "At its most", "Memory per GPU", "Batch", "Built as"]
    head += ["Scheme", "Model"]
    rows = [_pool(pool, plan, instance) for pool in plan.pools]
    parts = [table("Pools: identical units of a stage", head, rows, (2, 3))]
    known = [(pool.name, memory) for pool in plan.pools if (memory := memory_of(pool)) is not None]
    if known:
        kinds = ["weights", "kv", "buffers", "experts", "free", "capacity"]
        listed = [(name, *(words.number(getattr(m, kind) / GIB, 4) for kind in kinds)) for name, m in known]
        titles = ["Pool", "Weights", "KV", "Buffers", "Experts", "Free", "Capacity"]
        shown = table("Memory of one GPU, in GiB", titles, listed, range(1, 7))
        parts += [
            tag("h3", "Memory of one GPU"),
            chart("memory", "Memory of one GPU by pool", len(known) - MOST_BARS),
            details("As a table", shown),
        ]
    return join(parts)


def _pool(pool: Pool, plan: Plan, instance: Instance) -> list[str]:
    memory = memory_of(pool)
    used = "-"
    if memory is not None:
        used = f"{(memory.capacity - memory.free) / GIB:.1f} of {memory.capacity / GIB:.1f} GiB"
    return [
        pool.name,
        f"{pool.cards:,} x {instance.hardware.groups[pool.group].accelerator.name}",
        words.percent(pool.utilisation),
        words.rate(pool.capacity),
        BINDS if answer.binding(pool, plan) else "",
        used,
        _batches(pool),
        f"{words.plural(pool.units, 'unit')} x {pool.cards_per_unit} ({answer.cut(pool)})",
        pool.scheme,
        pool.model,
    ]


def _batches(pool: Pool) -> str:
    if len(set(pool.batches.values())) > 1:
        return ", ".join(f"{workload} {batch}" for workload, batch in pool.batches.items())
    return "-" if pool.batch is None else f"{pool.batch:,}"


def fullness(plan: Plan, _: Instance) -> Html:
    """Every resource: how much of it is used, and which bind."""
    if not plan.resources:
        return NOTHING
    rows = [
        [row.name, *amounts(row), words.percent(row.utilisation), BINDS if row.binding else ""]
        for row in by_fullness(plan)
    ]
    note = "Used at the stated arrivals. What binds is full when the plan gives its most: more of it would allow more."
    shown = table("Every resource", ["Resource", "Now", "Of", "Used", "At its most"], rows, (1, 2, 3))
    return join(
        [
            tag("p", note, class_="note"),
            chart("utilisation", "Use of every resource, in per cent", len(rows) - len(charted(plan))),
            shown,
        ]
    )


def crossing(plan: Plan, _: Instance) -> Html:
    """Handoffs of KV, and the load of the links."""
    handoffs = [
        [
            row.name,
            row.scheme,
            ", ".join(row.links) or "none",
            row.store or "-",
            words.gibibytes(row.bytes_per_request),
            words.seconds(row.seconds),
            words.rate(row.rate.at_load),
            words.rate(row.rate.at_capacity),
        ]
        for row in plan.handoffs
    ]
    head = ["Handoff", "Scheme", "Links", "Store", "A request", "Takes", "req/s now", "req/s at most"]
    traffic = [
        [
            row.link,
            words.gigabytes_per_second(row.bytes_per_s),
            words.gigabytes_per_second(row.capacity),
            words.percent(row.utilisation),
        ]
        for row in plan.traffic
    ]
    titles = ["Channel", "GB/s now", "GB/s at most", "Used"]
    return join(
        [
            table("KV handed from one group to another; a pooled handoff crosses twice", head, handoffs, (4, 5, 6, 7)),
            table("What crosses each channel at the stated arrivals", titles, traffic, (1, 2, 3)),
        ]
    )
