"""What a plan costs: by the hour, and per request and token that qualifies."""

from models.instance import Instance
from models.plan import Cost
from solver.chosen import Chosen
from solver.formulas import cost as money
from solver.usage import purchases


def cost(chosen: Chosen) -> Cost:
    """What the plan costs an hour, and per request and token that qualifies."""
    instance = chosen.instance
    spent = money_per_second(chosen)
    qualifying = sum(money.qualifying_rate(_average(chosen, n), w.qualifying) for n, w in instance.workloads.items())
    output, total = served_tokens(chosen)

    def per(rate: float, many: float) -> float | None:
        return None if spent is None or rate <= 0 else many * money.cost_per_request(spent, rate)

    stated = sum(money.qualifying_rate(w.rate, w.qualifying) for w in instance.workloads.values())
    most = stated * chosen.settled.throughput / instance.rate
    return Cost(
        per_hour=None if spent is None else 3600.0 * spent,
        per_1000_requests=per(qualifying, 1e3),
        per_1000_at_capacity=per(most, 1e3),
        per_million_output_tokens=per(output, 1e6),
        per_million_total_tokens=per(total, 1e6),
        currency=instance.billing.currency,
    )


def money_per_second(chosen: Chosen) -> float | None:
    """What the plan costs; None when a price that counts is unknown.

    Cards that are there: all of them where they are reserved, else those in use that no bundle brought. Besides, all
    that is bought or rented.
    """
    instance, total = chosen.instance, 0.0
    units: dict[str, float] = dict.fromkeys(instance.hardware.groups, 0.0)
    for index, candidate in chosen.used:
        for place in units:
            units[place] += chosen.counts[index] * candidate.price_on(place)
    for name, group in instance.hardware.groups.items():
        bundled = sum(b.cards.get(name, 0) * chosen.bundles.get(k, 0) for k, b in instance.hardware.bundles.items())
        if group.servers == "unlimited":
            continue  # among the purchases
        reserved = instance.billing.pay == "reserved"
        count = group.cards if reserved else max(0, chosen.cards[name] - bundled)
        sells = any(name in bundle.cards for bundle in instance.hardware.bundles.values())
        if count and group.price is None and (reserved or sells or not units[name]):
            return None
        total += units[name] if not reserved and not sells else count * (group.price or 0.0)
    for purchase in purchases(chosen):
        if purchase.per_hour is None:
            return None
        total += purchase.per_hour / 3600.0
    return total


def value_per_second(chosen: Chosen) -> float:
    """What the requests that are served and qualify are worth together."""
    return sum(w.value * w.qualifying * _average(chosen, name) for name, w in chosen.instance.workloads.items())


def _average(chosen: Chosen, name: str) -> float:
    """Requests/s of a workload that are served on average, where the plan is for a busy window."""
    workload = chosen.instance.workloads[name]
    return chosen.served(name) * workload.average / workload.rate


def served_tokens(chosen: Chosen) -> tuple[float, float]:
    """Output tokens and all tokens a second of what is served."""
    served = [(_average(chosen, name), w) for name, w in chosen.instance.workloads.items()]
    output = sum(rate * w.mean_output for rate, w in served)
    return output, output + sum(rate * w.mean_input for rate, w in served)


def objective_value(chosen: Chosen, cost: Cost, headroom: float | None) -> float | None:
    """The value of the stated objective."""
    spent, worth = cost.per_hour, value_per_second(chosen)
    cards = chosen.data.candidates
    return {
        "effective_cost": None if spent is None else 1e3 * spent / 3600.0 / worth,
        "cost": spent,
        "throughput": chosen.settled.throughput,
        "headroom": headroom,
        "power": sum(chosen.counts[i] * c.power for i, c in chosen.used),
        "gpus": float(sum(chosen.counts[i] * c.all_cards for i, c in enumerate(cards))),
    }[chosen.instance.objective]


def objective_unit(name: str, instance: Instance) -> str:
    """The unit in which an objective is told."""
    currency = instance.billing.currency
    worth = any(workload.value != 1.0 for workload in instance.workloads.values())
    return {
        "effective_cost": f"{currency}/1000 {'of value' if worth else 'requests'}",
        "headroom": "times the stated arrivals",
        "power": "W",
        "cost": f"{currency}/h",
        "throughput": "requests/s",
        "gpus": "cards",
    }[name]
