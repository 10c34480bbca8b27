"""The first screen: what runs where, how much it serves, what binds, why nothing else, what next."""

from collections.abc import Callable, Iterator

from api import answer, kept, words
from api.backlog import backlog
from models.errors import shown
from models.instance import Instance
from models.plan import Plan
from models.units import GIB


def render(plan: Plan, instance: Instance) -> str:
    """The plan as text of about one screen."""
    lines = list(_title(plan, instance))
    parts: tuple[Callable[[Plan, Instance], Iterator[str]], ...]
    if plan.pools:
        parts = (_sentence, _pools, kept.table, _times, backlog, _today, _why_not, _next, _warnings, _assumed)
    else:
        parts = (_no_plan, _today, _why_not, _warnings, _assumed)
    for part in parts:
        block = list(part(plan, instance))
        if block:
            lines.extend(["", *block])
    return "\n".join(lines)


def _title(plan: Plan, instance: Instance) -> Iterator[str]:
    state = plan.status.upper()
    if plan.pools:
        state += f"  gap {answer.gap(plan)}" + ("  verified" if plan.verified else "")
    what = f"{shown(plan.instance)}: {answer.size(instance)}"
    yield f"{what:<62} {state}  {plan.solve_seconds:.2f} s"


def _sentence(plan: Plan, instance: Instance) -> Iterator[str]:
    for sentence in answer.runs(plan, instance):
        yield from words.wrap(sentence)
    yield f"  {answer.served(plan, instance)}"
    price = answer.price(plan, instance)
    if price is not None:
        yield f"  {price}"


def _pools(plan: Plan, instance: Instance) -> Iterator[str]:
    binding = {row.name for row in plan.resources if row.binding}
    rows = [["POOL", "GPUs", "BUILT AS", "MEMORY PER GPU", "BUSY", "CAPACITY"]]
    several = len(instance.models) > 1
    for pool in plan.pools:
        if pool.shares is not None:
            continue
        memory = pool.memory
        held = "measured" if memory is None else f"{(memory.capacity - memory.free) / GIB:.1f}"
        held += "" if memory is None else f" of {memory.capacity / GIB:.1f} GiB"
        binds = answer.binding(pool, plan)
        batch = f", batch {pool.batch}" if pool.batch else ""
        rows.append(
            [
                answer.stage(pool) + (f" {pool.model}" if several else ""),
                f"{pool.cards:,} x {pool.group}",
                f"{words.plural(pool.units, 'unit')} x {pool.cards_per_unit} ({answer.cut(pool)}){batch}",
                held,
                words.percent(pool.utilisation),
                f"{words.rate(pool.capacity)} req/s" + ("  <- binds" if binds else ""),
            ]
        )
    rows.extend(_links(plan, binding))
    yield from words.table(rows)
    cards = [row for row in plan.resources if row.name.startswith("cards[")]
    yield " GPUs used: " + ", ".join(f"{row.demand:,.0f} of {row.capacity:,.0f} {row.name[6:-1]}" for row in cards)
    bought = answer.bought(plan)
    if bought:
        yield from words.wrap(f"bought or rented: {bought}", indent=" ")


def _links(plan: Plan, binding: set[str]) -> Iterator[list[str]]:
    average = " on average" if len(plan.workloads) > 1 else ""
    for row in plan.traffic:
        if row.bytes_per_s <= 0:
            continue
        load = f"{words.gigabytes_per_second(row.bytes_per_s)} of {words.gigabytes_per_second(row.capacity)} GB/s"
        served = sum(result.served for result in plan.workloads.values())
        per = f"{words.gibibytes(row.bytes_per_s / served)} a request{average}"
        most = f"{words.rate(served / row.utilisation)} req/s"
        binds = "  <- binds" if f"link[{row.link}]" in binding else ""
        yield [f"link {row.link}", "", per, load, words.percent(row.utilisation), most + binds]


def _times(plan: Plan, instance: Instance) -> Iterator[str]:
    rows = [["WORKLOAD", "req/s", "FIRST TOKEN", "at capacity", "HANDOFF", "PER TOKEN", "at capacity"]]
    targets = any(workload.targets.ttft or workload.targets.tpot for workload in instance.workloads.values())
    if targets:
        rows[0].append("TARGETS")
    for name, result in plan.workloads.items():
        waits = [handoff.seconds for handoff in plan.handoffs if handoff.workload == name]
        rows.append(
            [
                name,
                words.rate(result.served),
                words.seconds(result.ttft_s.at_load),
                words.seconds(result.ttft_s.at_capacity),
                words.seconds(max(waits)) if waits else "-",
                words.seconds(result.tpot_s.at_load),
                words.seconds(result.tpot_s.at_capacity),
                *([answer.targets(instance.workloads[name])] if targets else []),
            ]
        )
    yield from words.table(rows)
    yield f" {answer.SLOWEST}"


def _today(plan: Plan, _: Instance) -> Iterator[str]:
    for line in answer.today(plan):
        yield from words.wrap(line, indent=" ")


def _why_not(plan: Plan, instance: Instance) -> Iterator[str]:
    if not plan.alternatives:
        return
    rows = [["WHY NOT", "req/s", "drained", "cost/1000", "at capacity", ""]]
    if plan.pools:
        gone = answer.gone(plan.drain.drained_s) if plan.drain is not None and plan.drain.drained_s != 0.0 else "-"
        costs = [words.price(plan.cost.per_1000_requests), words.price(plan.cost.per_1000_at_capacity)]
        rate = sum(result.served for result in plan.workloads.values()) if instance.drops else plan.throughput
        rows.append(["this plan", words.rate(rate), gone, *costs, plan.scheme or ""])
    for row in plan.alternatives:
        known = bool(row.throughput)
        gone = "-" if row.drained_s == 0.0 else answer.gone(row.drained_s)  # nothing starts, nothing waits
        name = row.scheme + (" (not allowed)" if row.excluded else "")
        costs = [words.price(row.cost_per_1000_requests), words.price(row.cost_per_1000_at_capacity)]
        rows.append(
            [name, words.rate(row.throughput or None), gone if known else "-", *costs, answer.because(row, plan)]
        )
    yield from words.table(rows, right=frozenset({1}))


def _next(plan: Plan, _: Instance) -> Iterator[str]:
    if plan.marginal:
        yield " WHAT NEXT"
        for row in plan.marginal:
            yield f"   {row.text}"


def _warnings(plan: Plan, _: Instance) -> Iterator[str]:
    for text in plan.warnings:
        yield from words.wrap(f"note: {text}", indent=" ")


def _assumed(plan: Plan, _: Instance) -> Iterator[str]:
    """What it rests on, and how to see more."""
    first = plan.assumptions[0] if plan.assumptions else None
    if plan.pools and all(pool.measured for pool in plan.pools):
        yield " ASSUMED    rates: measured, as the file states them"
    elif first is not None:
        yield f" ASSUMED    stage times: {first.value}"
    if plan.pools:
        yield " every number: --json    keep it: --out plan.json    check it: inferplan verify FILE plan.json"
    else:
        yield " every number: --json    the schemes side by side: inferplan compare FILE"


def _no_plan(plan: Plan, _: Instance) -> Iterator[str]:
    if plan.status == "stopped":
        yield f"  {answer.STOPPED}"
        return
    yield f"  {answer.NO_PLAN}"
    for conflict in plan.conflicts:
        short = not answer.listed(conflict)
        yield from words.wrap(f"In conflict: {', '.join(conflict.limits)}." if short else "What stands in the way:")
        for limit in [] if short else conflict.limits:
            yield from words.wrap(limit, indent="    ")
    for relaxation in plan.relaxations:
        yield f"  Would help: {relaxation.text}."
