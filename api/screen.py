"""The first screen: what runs where, how much it serves, what binds, why nothing else, what next."""

from collections.abc import Callable, Iterator

from api import words
from api.backlog import backlog
from models.errors import shown
from models.instance import Instance
from models.plan import Plan, Pool, Row
from models.units import GIB
from solver.schemes import BY_NAME


def render(plan: Plan, instance: Instance) -> str:
    """The plan as text of about one screen."""
    lines = list(_title(plan, instance))
    parts: tuple[Callable[[Plan, Instance], Iterator[str]], ...]
    if plan.pools:
        parts = (_sentence, _pools, _times, backlog, _why_not, _next, _warnings, _assumed)
    else:
        parts = (_no_plan, _why_not, _warnings, _assumed)
    for part in parts:
        block = list(part(plan, instance))
        if block:
            lines.extend(["", *block])
    return "\n".join(lines)


def _title(plan: Plan, instance: Instance) -> Iterator[str]:
    gpus = sum(group.cards for group in instance.hardware.groups.values())
    counts = [(gpus, "GPU"), (len(instance.hardware.groups), "group"), (len(instance.workloads), "workload")]
    cards, groups, workloads = (words.plural(count, noun) for count, noun in counts)
    state = plan.status.upper()
    if plan.pools:
        gap = plan.objective.gap
        shown_gap = "unknown" if gap is None else "0 %" if gap < 1e-6 else f"{words.number(100.0 * gap, 2)} %"
        state += f"  gap {shown_gap}" + ("  verified" if plan.verified else "")
    what = f"{shown(plan.instance)}: {cards} in {groups}, {workloads}"
    yield f"{what:<62} {state}  {plan.solve_seconds:.2f} s"


def _sentence(plan: Plan, instance: Instance) -> Iterator[str]:
    several = len({pool.model for pool in plan.pools}) > 1
    for model in dict.fromkeys(pool.model for pool in plan.pools):
        start = f"{model}: run" if several else "Run"
        yield from words.wrap(f"{start} {_what_runs([p for p in plan.pools if p.model == model], instance)}.")
    needed = ""
    if plan.drain and plan.drain.drained_s is not None:
        deadline = f" of {words.number(plan.drain.deadline_s, 4)}" if plan.drain.deadline_s is not None else ""
        needed = f"; startup backlog gone in second {plan.drain.drained_s:.0f}{deadline}"
    yield f"  {words.rate(instance.rate)} requests/s served of {words.rate(plan.throughput)} possible{needed}."
    cost = plan.cost
    if cost.per_1000_requests is not None:
        gpus = sum(group.cards for group in instance.hardware.groups.values())
        used = sum(pool.cards for pool in plan.pools)
        paid = f"all {gpus} GPUs paid" if instance.billing.pay == "reserved" else f"{used} of {gpus} GPUs paid"
        money = cost.currency + ("s" if cost.currency == "credit" else "")
        per = words.price(cost.per_1000_requests)
        yield f"  {per} {money} per 1000 qualifying requests ({words.price(cost.per_hour)} {money}/h, {paid})."


def _what_runs(pools: list[Pool], instance: Instance) -> str:
    parts = []
    for scheme in dict.fromkeys(pool.scheme for pool in pools):
        stages = []
        mine = [pool for pool in pools if pool.scheme == scheme]
        for stage in dict.fromkeys(pool.stage for pool in mine):
            cards = " and ".join(_cards(pool, instance) for pool in mine if pool.stage == stage)
            stages.append(cards if stage == "both" else f"{stage} on {cards}")
        parts.append(f"{' and '.join(stages)}, {BY_NAME[scheme].sentence} ({scheme})")
    return "; beside it ".join(parts)


def _cards(pool: Pool, instance: Instance) -> str:
    return f"{pool.cards:,} x {instance.hardware.groups[pool.group].accelerator.name}"


def _pools(plan: Plan, instance: Instance) -> Iterator[str]:
    binding = {row.name for row in plan.resources if row.binding}
    rows = [["POOL", "GPUs", "BUILT AS", "MEMORY PER GPU", "BUSY", "CAPACITY"]]
    several = len(instance.models) > 1
    for pool in plan.pools:
        memory = pool.memory
        used = (memory.capacity - memory.free) / GIB
        binds = any(name.startswith(f"capacity[{pool.name},") for name in binding)
        batch = f", batch {pool.batch}" if pool.batch else ""
        rows.append(
            [
                (pool.stage if pool.stage != "both" else pool.scheme) + (f" {pool.model}" if several else ""),
                f"{pool.cards:,} x {pool.group}",
                f"{words.plural(pool.units, 'unit')} x {pool.cards_per_unit} (TP{pool.parallelism.tp}){batch}",
                f"{used:.1f} of {memory.capacity / GIB:.1f} GiB",
                words.percent(pool.utilisation),
                f"{words.rate(pool.capacity)} req/s" + ("  <- binds" if binds else ""),
            ]
        )
    rows.extend(_links(plan, binding))
    yield from words.table(rows)
    cards = [row for row in plan.resources if row.name.startswith("cards[")]
    yield " GPUs used: " + ", ".join(f"{row.demand:,.0f} of {row.capacity:,.0f} {row.name[6:-1]}" for row in cards)


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
            ]
        )
    yield from words.table(rows)
    yield " of the slowest pool that serves it, handoff included; no queueing is counted"


def _why_not(plan: Plan, _: Instance) -> Iterator[str]:
    if not plan.alternatives:
        return
    rows = [["WHY NOT", "req/s", "drained", "cost/1000", "at capacity", ""]]
    if plan.pools and plan.drain is not None:
        gone = "never" if plan.drain.drained_s is None else f"second {plan.drain.drained_s:.0f}"
        costs = [words.price(plan.cost.per_1000_requests), words.price(plan.cost.per_1000_at_capacity)]
        rows.append(["this plan", words.rate(plan.throughput), gone, *costs, plan.scheme or ""])
    for row in plan.alternatives:
        known = bool(row.throughput)
        gone = "never" if row.drained_s is None else f"second {row.drained_s:.0f}"
        name = row.scheme + (" (not allowed)" if row.excluded else "")
        costs = [words.price(row.cost_per_1000_requests), words.price(row.cost_per_1000_at_capacity)]
        rows.append([name, words.rate(row.throughput or None), gone if known else "-", *costs, _because(row, plan)])
    yield from words.table(rows, right=frozenset({1}))


def _because(row: Row, plan: Plan) -> str:
    if row.reason is not None:
        nothing = not plan.pools and row.reason.startswith("memory[")
        return "nothing fits, see above" if nothing else row.reason
    if plan.throughput is None or row.throughput is None:
        return ""
    mine, own = plan.cost.per_1000_requests, row.cost_per_1000_requests
    if plan.objective.name in ("cost", "effective_cost") and mine and own and abs(own / mine - 1.0) > 1e-6:
        return f"keeps every promise, {100.0 * abs(own / mine - 1.0):.3g} % {'dearer' if own > mine else 'cheaper'}"
    if row.throughput > plan.throughput * (1.0 + 1e-6):
        return "would serve more" if row.excluded else f"could serve more, but the objective is {plan.objective.name}"
    if row.throughput < plan.throughput * (1.0 - 1e-6):
        return f"keeps every promise, with {plan.throughput - row.throughput:.3g} req/s less"
    more = (row.payload_bytes_per_request or 0.0) - _payload(plan)
    return "ties" + (f"; moves {words.gibibytes(more)} more a request" if more > 0 else "")


def _payload(plan: Plan) -> float:
    served = sum(result.served for result in plan.workloads.values())
    moved = sum(
        handoff.rate.at_load * handoff.bytes_per_request * (2 if handoff.store else 1) for handoff in plan.handoffs
    )
    return moved / served if served else 0.0


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
    if first is not None:
        yield f" ASSUMED    stage times: {first.value}"
    if plan.pools:
        yield " every number: --json    keep it: --out plan.json    check it: inferplan verify FILE plan.json"
    else:
        yield " every number: --json    the schemes side by side: inferplan compare FILE"


def _no_plan(plan: Plan, _: Instance) -> Iterator[str]:
    if plan.status == "stopped":
        yield "  Stopped before a plan was found; give it more time with --time-limit."
        return
    yield "  No plan keeps every limit; this is proven."
    for conflict in plan.conflicts:
        short = all(len(limit) < 40 for limit in conflict.limits)
        yield from words.wrap(f"In conflict: {', '.join(conflict.limits)}." if short else "What stands in the way:")
        for limit in [] if short else conflict.limits:
            yield from words.wrap(limit, indent="    ")
    for relaxation in plan.relaxations:
        yield f"  Would help: {relaxation.text}."
