"""What a plan costs: by the hour, and per request and token that qualifies."""

from collections.abc import Mapping

from models.instance import Instance
from models.plan import Cost
from solver.assemble import Chosen
from solver.formulas import cost as money


def cost(chosen: Chosen) -> Cost:
    """What the plan costs an hour, and per request and token that qualifies."""
    instance = chosen.instance
    spent = money_per_second(instance, chosen.cards)
    qualifying = sum(money.qualifying_rate(w.rate, w.qualifying) for w in instance.workloads.values())
    output, total = served_tokens(instance)

    def per(rate: float, many: float) -> float | None:
        return None if spent is None or rate <= 0 else many * money.cost_per_request(spent, rate)

    most = qualifying * chosen.settled.throughput / instance.rate
    return Cost(
        per_hour=None if spent is None else 3600.0 * spent,
        per_1000_requests=per(qualifying, 1e3),
        per_1000_at_capacity=per(most, 1e3),
        per_million_output_tokens=per(output, 1e6),
        per_million_total_tokens=per(total, 1e6),
        currency=instance.billing.currency,
    )


def money_per_second(instance: Instance, cards: Mapping[str, int]) -> float | None:
    """What the plan costs; None when a price that counts is unknown."""
    total = 0.0
    for name, group in instance.hardware.groups.items():
        count = group.cards if instance.billing.pay == "reserved" else cards.get(name, 0)
        if count and group.price is None:
            return None
        total += count * (group.price or 0.0)
    return total


def served_tokens(instance: Instance) -> tuple[float, float]:
    """Output tokens and all tokens a second at the stated arrivals."""
    output = sum(w.rate * w.output for w in instance.workloads.values())
    return output, output + sum(w.rate * w.input for w in instance.workloads.values())


def objective_unit(name: str, instance: Instance) -> str:
    """The unit in which an objective is told."""
    currency = instance.billing.currency
    return {
        "effective_cost": f"{currency}/1000 requests",
        "cost": f"{currency}/h",
        "throughput": "requests/s",
        "gpus": "cards",
    }[name]
