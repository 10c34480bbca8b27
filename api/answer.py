"""What a plan says in sentences and single numbers, for the screen and the report alike."""

from api import words
from models.instance import Instance
from models.plan import Plan, Pool, Row
from solver.schemes import BY_NAME

NO_PLAN = "No plan keeps every limit; this is proven."
STOPPED = "Stopped before a plan was found; give it more time with --time-limit."
SLOWEST = "of the slowest pool that serves it, handoff included; no queueing is counted"


def size(instance: Instance) -> str:
    """How large the question is: `8 GPUs in 2 groups, 1 workload`."""
    counts = [(cards(instance), "GPU"), (len(instance.hardware.groups), "group"), (len(instance.workloads), "workload")]
    gpus, groups, workloads = (words.plural(count, noun) for count, noun in counts)
    return f"{gpus} in {groups}, {workloads}"


def cards(instance: Instance) -> int:
    """GPUs of all groups."""
    return sum(group.cards for group in instance.hardware.groups.values())


def gap(plan: Plan) -> str:
    """How far from the best the plan can be."""
    share = plan.objective.gap
    return "unknown" if share is None else "0 %" if share < 1e-6 else f"{words.number(100.0 * share, 2)} %"


def runs(plan: Plan, instance: Instance) -> list[str]:
    """What runs where, a sentence for each model."""
    several = len({pool.model for pool in plan.pools}) > 1
    sentences = []
    for model in dict.fromkeys(pool.model for pool in plan.pools):
        start = f"{model}: run" if several else "Run"
        sentences.append(f"{start} {_what_runs([p for p in plan.pools if p.model == model], instance)}.")
    return sentences


def served(plan: Plan, instance: Instance) -> str:
    """How much is served, of how much, and when the startup backlog is gone."""
    needed = ""
    if plan.drain and plan.drain.drained_s is not None:
        deadline = f" of {words.number(plan.drain.deadline_s, 4)}" if plan.drain.deadline_s is not None else ""
        needed = f"; startup backlog gone in second {plan.drain.drained_s:.0f}{deadline}"
    return f"{words.rate(instance.rate)} requests/s served of {words.rate(plan.throughput)} possible{needed}."


def price(plan: Plan, instance: Instance) -> str | None:
    """What it costs, and which GPUs that pays for; None without prices."""
    cost = plan.cost
    if cost.per_1000_requests is None:
        return None
    used = sum(pool.cards for pool in plan.pools)
    gpus = cards(instance)
    paid = f"all {gpus} GPUs paid" if instance.billing.pay == "reserved" else f"{used} of {gpus} GPUs paid"
    money = currency(plan)
    per = words.price(cost.per_1000_requests)
    return f"{per} {money} per 1000 qualifying requests ({words.price(cost.per_hour)} {money}/h, {paid})."


def currency(plan: Plan) -> str:
    """The money of the plan, in the plural."""
    return plan.cost.currency + ("s" if plan.cost.currency == "credit" else "")


def gone(drained_s: float | None) -> str:
    """When a backlog is gone."""
    return "never" if drained_s is None else f"second {drained_s:.0f}"


def because(row: Row, plan: Plan) -> str:
    """What another way to deploy lacks, or how it compares with the plan."""
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


def binding(pool: Pool, plan: Plan) -> bool:
    """Whether a limit of the pool's own is full when the plan gives its most."""
    return any(row.binding and row.name.startswith(f"capacity[{pool.name},") for row in plan.resources)


def _what_runs(pools: list[Pool], instance: Instance) -> str:
    parts = []
    for scheme in dict.fromkeys(pool.scheme for pool in pools):
        stages = []
        mine = [pool for pool in pools if pool.scheme == scheme]
        for stage in dict.fromkeys(pool.stage for pool in mine):
            gpus = " and ".join(_cards(pool, instance) for pool in mine if pool.stage == stage)
            stages.append(gpus if stage == "both" else f"{stage} on {gpus}")
        parts.append(f"{' and '.join(stages)}, {BY_NAME[scheme].sentence} ({scheme})")
    return "; beside it ".join(parts)


def _cards(pool: Pool, instance: Instance) -> str:
    return f"{pool.cards:,} x {instance.hardware.groups[pool.group].accelerator.name}"


def _payload(plan: Plan) -> float:
    completed = sum(result.served for result in plan.workloads.values())
    moved = sum(
        handoff.rate.at_load * handoff.bytes_per_request * (2 if handoff.store else 1) for handoff in plan.handoffs
    )
    return moved / completed if completed else 0.0
