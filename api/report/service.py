"""The parts of the report about what users get: backlog, other schemes, latency, cost, and what next."""

from api import answer, words
from api.backlog import curve, facts
from api.report.markup import NOTHING, Html, details, join, table, tag
from api.report.sections import chart
from models.instance import Instance
from models.plan import Plan


def backlog(plan: Plan, instance: Instance) -> Html:
    """The startup backlog over time."""
    points = curve(plan, instance)
    if plan.drain is None:
        return NOTHING
    said = ", ".join(facts(plan))
    parts = [tag("p", f"{said[:1].upper()}{said[1:]}.")]
    if points and max(waiting for _, waiting in points) > 0:
        rows = [[words.number(time, 4), words.number(waiting, 4)] for time, waiting in points]
        shown = table("Corners of the curve", ["Second", "Requests waiting"], rows, (0, 1))
        parts += [chart("backlog", "Requests waiting over time"), details("As a table", shown)]
    else:
        parts.append(tag("p", "No request waits: everything is ready at once.", class_="note"))
    return join(parts)


def schemes(plan: Plan, _: Instance) -> Html:
    """Each other way to deploy, and what it lacks."""
    if not plan.alternatives:
        return NOTHING
    rows = []
    if plan.pools:
        gone = answer.gone(plan.drain.drained_s) if plan.drain is not None else "-"
        costs = [words.price(plan.cost.per_1000_requests), words.price(plan.cost.per_1000_at_capacity)]
        rows.append(["this plan", words.rate(plan.throughput), gone, *costs, tag("strong", plan.scheme or "")])
    for row in plan.alternatives:
        gone = answer.gone(row.drained_s) if row.throughput else "-"
        name = row.scheme + (" (not allowed)" if row.excluded else "")
        costs = [words.price(row.cost_per_1000_requests), words.price(row.cost_per_1000_at_capacity)]
        rows.append([name, words.rate(row.throughput or None), gone, *costs, answer.because(row, plan)])
    head = ["Scheme", "req/s at most", "Backlog gone", "Cost of 1000", "the same at most", "Verdict"]
    note = "Each scheme alone, at its most, without the promises; the verdict says which one it breaks."
    return join(
        [
            tag("p", note, class_="note"),
            chart("schemes", "Requests a second of each scheme, against the arrivals"),
            table("Schemes side by side", head, rows, (1, 2, 3, 4)),
        ]
    )


def workloads(plan: Plan, instance: Instance) -> Html:
    """What is asked, and what each workload gets."""
    asked = []
    for name, workload in instance.workloads.items():
        cached = f" ({workload.cached:,} cached)" if workload.cached else ""
        mean = f" on average of {len(workload.classes):,} classes" if workload.lengths is not None else ""
        lengths = [f"{workload.mean_input:,.6g}{cached}{mean}", f"{workload.mean_output:,.6g}"]
        rate = words.rate(workload.rate)
        row = [name, workload.model, rate, *lengths, words.percent(workload.qualifying), answer.targets(workload)]
        asked.append(row)
    titles = ["Workload", "Model", "req/s", "Tokens in", "Tokens out", "Qualify", "Targets"]
    got = []
    for name, result in plan.workloads.items():
        waits = [handoff.seconds for handoff in plan.handoffs if handoff.workload == name]
        times = [result.ttft_s.at_load, result.ttft_s.at_capacity, max(waits) if waits else None]
        times += [result.tpot_s.at_load, result.tpot_s.at_capacity]
        rates = [words.rate(result.served), words.rate(result.capacity)]
        got.append([name, *rates, *(words.seconds(time) for time in times)])
    head = ["Workload", "req/s served", "at most", "First token", "at capacity", "Handoff", "Per token", "at capacity"]
    parts = [table("What is asked", titles, asked, (2, 3, 4, 5)), table("What each gets", head, got, range(1, 8))]
    return join([*parts, tag("p", f"Times are those {answer.SLOWEST}.", class_="note") if got else NOTHING])


def cost(plan: Plan, instance: Instance) -> Html:
    """Money."""
    if not plan.pools:
        return NOTHING
    bill, money = plan.cost, answer.currency(plan)
    listed = [
        ("an hour", bill.per_hour),
        ("1000 qualifying requests, at the stated arrivals", bill.per_1000_requests),
        ("1000 qualifying requests, at the most the plan sustains", bill.per_1000_at_capacity),
        ("a million output tokens", bill.per_million_output_tokens),
        ("a million tokens, input and output", bill.per_million_total_tokens),
    ]
    if all(value is None for _, value in listed):
        return tag("p", "No cost: a price that counts is missing.", class_="note")
    rows = [[name, words.price(value)] for name, value in listed]
    paid = "every GPU listed is paid" if instance.billing.pay == "reserved" else "only GPUs in the plan are paid"
    parts = [table(f"Cost in {money}; {paid}", ["Of", money], rows, (1,))]
    if plan.purchases:
        bought = [
            [row.name, row.kind, f"{row.count:,}", ", ".join(f"{n:,} {g}" for g, n in row.cards.items()) or "-",
             words.price(row.per_hour)]
            for row in plan.purchases
        ]  # fmt: skip
        head = ["What", "Kind", "How many", "GPUs", f"{money} an hour"]
        parts.append(table("Bought or rented besides", head, bought, (2, 4)))
    return join(parts)


def today(plan: Plan, _: Instance) -> Html:
    """What runs today, as it stands."""
    return join([tag("p", line) for line in answer.today(plan)]) if plan.current is not None else NOTHING


def next_steps(plan: Plan, _: Instance) -> Html:
    """What one more GPU brings, and how far things may move."""
    rows = []
    for row in plan.marginal:
        gain = "-" if row.gain is None else f"{row.gain:+,.4g}"
        rows.append([row.text, row.name, gain])
    head = ["If", "Of", "Gain"]
    note = "Gains of GPUs are in requests/s when everything may be arranged anew; lines without a gain are margins."
    return join([tag("p", note, class_="note"), table("What next", head, rows, (2,))]) if rows else NOTHING
