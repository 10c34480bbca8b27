"""The top of the report: the answer and its numbers; or why there is no plan, and what would help."""

from collections.abc import Iterator

from api import answer, words
from api.report.markup import NOTHING, Html, bullets, join, table, tag
from models.instance import Instance
from models.plan import Plan

MEANING = {
    "optimal": "Proven: no plan is better.",
    "feasible": "A plan that holds, not proven to be the best; the gap says how far it may be off.",
    "infeasible": "Proven: no plan keeps every limit.",
    "stopped": "Stopped before anything was known.",
}


def headline(plan: Plan, instance: Instance) -> Html:
    """Name, status, the answer in sentences, the numbers that matter most, and the warnings."""
    badges = [tag("span", plan.status.upper(), class_=f"badge {plan.status}", title=MEANING[plan.status])]
    if plan.pools:
        badges.append(tag("span", f"gap {answer.gap(plan)}", class_="badge", title="How far from the best it can be"))
        if plan.verified:
            badges.append(tag("span", "verified", class_="badge", title="Computed again without the solver's model"))
    parts = [
        tag("p", *(join([badge, " "]) for badge in badges), class_="badges"),
        tag("h1", plan.instance),
        tag("p", answer.size(instance), class_="muted"),
        tag("p", instance.about, class_="about") if instance.about else NOTHING,
        *(_answer(plan, instance) if plan.pools else _no_plan(plan)),
        _warnings(plan),
    ]
    return tag("header", *parts)


def _answer(plan: Plan, instance: Instance) -> Iterator[Html]:
    yield from (tag("p", sentence, class_="answer") for sentence in answer.runs(plan, instance))
    price = answer.price(plan, instance)
    yield tag("p", answer.served(plan, instance), f" {price}" if price is not None else "")
    yield tag("div", *(_tile(*numbers) for numbers in _numbers(plan, instance)), class_="tiles")


def _numbers(plan: Plan, instance: Instance) -> Iterator[tuple[str, str, str]]:
    """What it is, the number, and what to hold it against."""
    spare = (plan.throughput or 0.0) / instance.rate - 1.0
    possible = f"of {words.rate(plan.throughput)} possible: {100.0 * spare:.0f} % room"
    taken = sum(result.served for result in plan.workloads.values())
    if instance.drops:
        possible = f"of {words.rate(instance.rate)} that arrive"
    yield "served", f"{words.rate(taken)} req/s", possible
    if plan.cost.per_1000_requests is not None:
        hour = f"{words.price(plan.cost.per_hour)} {answer.currency(plan)} an hour"
        yield "cost of 1000 requests", f"{words.price(plan.cost.per_1000_requests)} {answer.currency(plan)}", hour
    if plan.drain is not None:
        deadline = plan.drain.deadline_s
        until = "no deadline" if deadline is None else f"deadline: second {deadline:.4g}"
        yield "startup backlog gone", answer.gone(plan.drain.drained_s), until
    used, there = sum(pool.cards for pool in plan.pools), sum(answer.there(plan, instance).values())
    paid = "all are paid" if instance.billing.pay == "reserved" else "only these are paid"
    yield "GPUs at work", f"{used:,} of {there:,}", paid
    first = [w.ttft_s.at_load for w in plan.workloads.values() if w.ttft_s.at_load is not None]
    token = [w.tpot_s.at_load for w in plan.workloads.values() if w.tpot_s.at_load is not None]
    if first:
        per = f"then {words.seconds(max(token))} a token" if token else ""
        yield "first token" + (", slowest" if len(plan.workloads) > 1 else ""), words.seconds(max(first)), per


def _tile(name: str, number: str, against: str) -> Html:
    inside = [tag("span", text, class_=kind) for text, kind in ((name, "muted"), (number, "big"), (against, "muted"))]
    return tag("p", *(join([part, " "]) for part in inside), class_="tile")


def _no_plan(plan: Plan) -> Iterator[Html]:
    if plan.status == "stopped":
        yield tag("p", answer.STOPPED, class_="answer")
        return
    yield tag("p", answer.NO_PLAN, class_="answer")
    for conflict in plan.conflicts:
        yield tag("h2", "These cannot hold together")
        yield bullets(tag("code", limit) for limit in conflict.limits)
    if plan.relaxations:
        yield tag("h2", "What would help")
        yield tag("p", "Each line alone makes it solvable, and was solved with; the smallest change first.")
        rows = [(row.text, row.path, row.before, row.after, row.unit) for row in plan.relaxations]
        yield table("Changes of one limit that help", ["Change", "Key", "Now", "Then", "Unit"], rows)
    elif plan.conflicts:
        yield tag("p", "No single change that was tried makes it solvable.")


def _warnings(plan: Plan) -> Html:
    if not plan.warnings:
        return NOTHING
    return tag("div", tag("strong", "Before acting on it"), bullets(plan.warnings), class_="warnings", role="note")
