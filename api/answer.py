"""What a plan says in sentences and single numbers, for the screen and the report alike."""

from api import words
from models.instance import Instance
from models.plan import Plan, Pool
from models.told import Conflict, Row
from models.workload import Workload
from solver.schemes import BY_NAME

NO_PLAN = "No plan keeps every limit; this is proven."
STOPPED = "Stopped before a plan was found; give it more time with --time-limit."
SLOWEST = "of the slowest pool that serves it, handoff included; no queueing is counted"


def size(instance: Instance) -> str:
    """How large the question is: `8 GPUs in 2 groups, 1 workload`."""
    counts = [(cards(instance), "GPU"), (len(instance.hardware.groups), "group"), (len(instance.workloads), "workload")]
    gpus, groups, workloads = (words.plural(count, noun) for count, noun in counts)
    if not cards(instance):
        gpus = "GPUs to buy or rent"
    return f"{gpus} in {groups}, {workloads}"


def cards(instance: Instance) -> int:
    """GPUs of all groups, those that may be bought or rented apart."""
    return sum(group.cards for group in instance.hardware.groups.values())


def there(plan: Plan, instance: Instance) -> dict[str, int]:
    """GPUs of each group that are there, bought or rented."""
    return {
        name: group.cards + sum(bought.cards.get(name, 0) for bought in plan.purchases)
        for name, group in instance.hardware.groups.items()
    }


def bought(plan: Plan) -> str | None:
    """What is bought or rented besides; None when nothing is."""
    parts = []
    for row in plan.purchases:
        gpus = sum(row.cards.values())
        what = {
            "link step": f"{words.plural(row.count, 'step')} of link {row.name}",
            "bundle": f"{row.count:,} x {row.name}",
            "rented": f"{words.plural(gpus, 'GPU')} of {row.name} rented",
            "tier": f"{words.plural(row.count, 'piece')} of {row.name}",
        }[row.kind]
        parts.append(what + ("" if row.per_hour is None else f" ({words.price(row.per_hour)} {currency(plan)}/h)"))
    return ", ".join(parts) or None


def today(plan: Plan) -> list[str]:
    """What runs today, as it stands."""
    now = plan.current
    if now is None:
        return []
    used = ", ".join(f"{count:,} {name}" for name, count in now.cards.items() if count)
    cost = "" if now.cost_per_hour is None else f", {words.price(now.cost_per_hour)} {currency(plan)}/h"
    lines = [f"today ({used}{cost}): {words.rate(now.throughput)} requests/s possible"]
    lines[0] += f"; {now.reason}" if now.reason else ", every promise is kept"
    if now.breaks_at is not None:
        lines.append(
            f"it breaks from {words.number(now.breaks_at, 4)} requests/s on; what binds: {', '.join(now.binds)}"
        )
    elif now.binds:
        lines.append(f"what binds: {', '.join(now.binds)}")
    return lines


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
    taken = sum(result.served for result in plan.workloads.values())
    if instance.drops:
        share = words.percent(taken / instance.rate)
        goal = plan.objective
        worth = f"; {words.price(goal.value)} {goal.unit}" if "value" in goal.unit else ""
        return f"{words.rate(taken)} of {words.rate(instance.rate)} requests/s served ({share}){worth}."
    return f"{words.rate(instance.rate)} requests/s served of {words.rate(plan.throughput)} possible{needed}."


def price(plan: Plan, instance: Instance) -> str | None:
    """What it costs, and which GPUs that pays for; None without prices."""
    cost = plan.cost
    if cost.per_1000_requests is None:
        return None
    used = sum(pool.cards for pool in plan.pools)
    gpus = sum(there(plan, instance).values())
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


def listed(conflict: Conflict) -> bool:
    """Whether what conflicts is told line by line."""
    return any(len(limit) >= 40 for limit in conflict.limits)


def because(row: Row, plan: Plan) -> str:
    """What another way to deploy lacks, or how it compares with the plan."""
    if row.reason is not None:
        nothing = any(listed(conflict) for conflict in plan.conflicts) and not plan.pools
        nothing = nothing and row.reason.startswith(("memory[", "targets[", "measured["))
        return "nothing fits, see above" if nothing else row.reason
    if plan.throughput is None or row.throughput is None:
        return ""
    mine, own = plan.cost.per_1000_requests, row.cost_per_1000_requests
    if plan.objective.name in ("cost", "effective_cost") and mine and own and abs(own / mine - 1.0) > 1e-6:
        most = "at most " if row.status == "feasible" and own > mine else ""
        share = f"{100.0 * abs(own / mine - 1.0):.3g} %"
        return f"keeps every promise, {most}{share} {'dearer' if own > mine else 'cheaper'}"
    if row.throughput > plan.throughput * (1.0 + 1e-6):
        return "would serve more" if row.excluded else f"could serve more, but the objective is {plan.objective.name}"
    if row.throughput < plan.throughput * (1.0 - 1e-6):
        return f"keeps every promise, with {plan.throughput - row.throughput:.3g} req/s less"
    more = (row.payload_bytes_per_request or 0.0) - _payload(plan)
    return "ties" + (f"; moves {words.gibibytes(more)} more a request" if more > 0 else "")


def cut(pool: Pool) -> str:
    """How a unit is cut over its GPUs: TP4, TP8 x PP2, DP8 x EP8; its micro-batches; the experts that it keeps."""
    said = [pool.parallelism.text]
    said += [f"{pool.micro_batches} micro-batches"] if pool.micro_batches > 1 else []
    said += [f"{pool.redundant_experts} redundant experts"] if pool.redundant_experts else []
    said += [f"{pool.resident_experts} experts a layer on the GPU"] if pool.resident_experts is not None else []
    return ", ".join(said)


def stage(pool: Pool) -> str:
    """What a pool is called: its stage, or its scheme where it serves whole requests."""
    if pool.stage == "both":
        return pool.scheme
    return pool.stage if pool.stage == pool.serves or pool.serves == "both" else f"{pool.stage} ({pool.serves})"


def targets(workload: Workload) -> str:
    """The targets of a workload."""
    said = (("first", workload.targets.ttft), ("token", workload.targets.tpot))
    return ", ".join(f"{word} {words.seconds(value)}" for word, value in said if value is not None) or "-"


def binding(pool: Pool, plan: Plan) -> bool:
    """Whether a limit of the pool's own is full when the plan gives its most."""
    return any(row.binding and row.name.startswith(f"capacity[{pool.name},") for row in plan.resources)


def _what_runs(pools: list[Pool], instance: Instance) -> str:
    parts = []
    for scheme in dict.fromkeys(pool.scheme for pool in pools):
        stages = []
        mine = [pool for pool in pools if pool.scheme == scheme and pool.shares is None]
        for stage in dict.fromkeys(pool.stage for pool in mine):
            gpus = " and ".join(_cards(pool, instance) for pool in mine if pool.stage == stage)
            stages.append(gpus if stage == "both" else f"{stage} on {gpus}")
        how = BY_NAME[scheme].sentence
        how = how.replace("each GPU", "each unit") if any(pool.cards_per_unit > 1 for pool in mine) else how
        parts.append(f"{' and '.join(stages)}, {how} ({scheme})")
    return "; beside it ".join(parts)


def _cards(pool: Pool, instance: Instance) -> str:
    card = instance.hardware.groups[pool.group].accelerator.name
    if pool.cards_per_unit == 1:
        return f"{pool.cards:,} x {card}"
    return f"{pool.cards:,} x {card} ({words.plural(pool.units, 'unit')} of {pool.cards_per_unit})"


def _payload(plan: Plan) -> float:
    completed = sum(result.served for result in plan.workloads.values())
    moved = sum(
        handoff.rate.at_load * handoff.bytes_per_request * (2 if handoff.store else 1) for handoff in plan.handoffs
    )
    moved += sum(h.rate.at_load * h.features.bytes_per_request for h in plan.handoffs if h.features is not None)
    return moved / completed if completed else 0.0
