"""What one more of each brings, and how far things may move before the plan breaks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from models.hardware import Step
from models.told import Marginal
from solver.chosen import Chosen, scheme_of
from solver.data import Data
from solver.limits import Limits, gap
from solver.margins import margins, with_link
from solver.milp import master
from solver.optimise import Ranked, rank
from solver.rounding import text as digits
from solver.topology import Topology

EACH = 1.0
"""Seconds of one question at most."""


def marginals(allowed: Data, chosen: Chosen, limits: Limits) -> list[Marginal]:
    """One more card of each group, one of each together; then how much the promises stand.

    ``allowed`` holds every allowed scheme. What the time left does not suffice for is left out.
    """
    apart = allowed.apart()
    may_idle = leaves_cards_idle(allowed)
    told = margins(chosen, limits)
    steps = _steps(allowed)
    costs = allowed.instance.objective in ("cost", "effective_cost") and not allowed.instance.drops
    savings = _savings(chosen, apart, steps, limits) if may_idle and costs else []
    rows = _more_served(allowed, apart, chosen, steps, may_idle, limits)
    return [*rows, *savings, *told]


def _steps(data: Data) -> list[tuple[dict[str, int], str]]:
    """One more card of each group, then one of each together."""
    groups = [name for name, group in data.instance.hardware.groups.items() if group.servers != "unlimited"]
    steps = [({name: 1}, f"+1 {name}") for name in groups]
    return [*steps, (dict.fromkeys(groups, 1), "+1 of each group")] if len(groups) > 1 else steps


def _more_served(
    allowed: Data,
    apart: Sequence[Data],
    chosen: Chosen,
    steps: Sequence[tuple[dict[str, int], str]],
    may_idle: bool,
    limits: Limits,
) -> list[Marginal]:
    """What one more of each lets the cards serve; where the plan leaves some idle, beyond what all of them could."""
    most_now = chosen.settled.throughput
    if allowed.instance.hardware.endless or allowed.instance.drops:
        return []  # what more would bring has no end, or is told in value
    base = _most(apart, {}, limits) if may_idle or _serves_less(allowed) else most_now
    if base is None:
        return []
    schemes = {scheme_of(chosen, index) for index, _ in chosen.used}
    same = [allowed.only(schemes).pruned()] if len(schemes) == 1 and len(allowed.schemes) > 1 else None
    rows, beyond = [], ""
    groups = allowed.instance.hardware.groups
    whole = {name: groups[name].per_server for extra, _ in steps if len(extra) > 1 for name in extra}
    if base > most_now * (1.0 + 1e-6):  # the objective leaves cards idle, or asks for other units
        word = "with every GPU in use" if may_idle else "with units for the most requests/s alone"
        text = f"{word}: {base:.2f} requests/s (+{base - most_now:.2f})"
        rows.append(Marginal(name="cards", step=0.0, unit="cards", gain=base - most_now, text=text))
        beyond = " beyond that"
    for extra, text in steps:
        most = _most(apart, extra, limits)
        if most is None:
            continue
        more = _more(extra, text + beyond, base, most)
        name = next(iter(extra))
        each = allowed.instance.hardware.groups[name].per_server
        if not more.gain and len(extra) == 1 and each > 1:  # a single GPU may make no unit: ask for a whole server
            server = _most(apart, {name: each}, limits)
            if server is not None:
                extra, most = {name: each}, server
                more = _more(extra, f"+1 server of {name} ({each} GPUs)" + beyond, base, most)
                more = more.model_copy(update={"step": float(each)})
        elif not more.gain and len(extra) > 1 and any(step > 1 for step in whole.values()):
            servers = _most(apart, whole, limits)
            if servers is not None:
                extra, most = whole, servers
                more = _more(extra, "+1 server of each group" + beyond, base, most)
        alone = _most(same, extra, limits) if same is not None and len(extra) == 1 else None
        if alone is not None and alone < most * (1.0 - 1e-6):
            more = more.model_copy(update={"text": f"{more.text}; {alone:.2f} with {next(iter(schemes))} alone"})
        rows.append(more)
    rows.extend(_wider(allowed, chosen, base, beyond, limits))
    return rows


def _wider(allowed: Data, chosen: Chosen, base: float, beyond: str, limits: Limits) -> Iterator[Marginal]:
    """One more port of each link that carries something, or one more step where it is sold in steps."""
    live = [chosen.data.routes[r] for r in chosen.live_routes]
    carrying = {link for route in live for link in (*route.links, *(route.features.links if route.features else ()))}
    for name, link in allowed.instance.hardware.links.items():
        if name not in carrying:
            continue
        ports = link.step.ports if link.step else 1
        free = link.model_copy(update={"step": Step.model_construct(ports=ports, price=0.0, at_most=10**4)})
        there = replace(allowed, topology=Topology(with_link(allowed.instance, name, free).hardware)).widened({name: 1})
        more_ports = link.model_copy(update={"ports": link.ports + ports})  # what is for sale comes on top
        there = replace(there, instance=with_link(allowed.instance, name, more_ports))
        most = _most(there.apart(), {}, limits)
        if most is not None:
            word = "step" if link.step else "port"
            text = f"+1 {word} of link {name} ({digits(ports * link.port_bandwidth / 1e9)} GB/s){beyond}"
            more = _more({name: 1}, text, base, most)
            yield more.model_copy(update={"name": f"link[{name}]", "unit": word})


def _savings(
    chosen: Chosen, apart: Sequence[Data], steps: Sequence[tuple[dict[str, int], str]], limits: Limits
) -> list[Marginal]:
    """What one more card, to be used where it helps, takes off the bill; of groups that are used up."""
    instance, rows = apart[0].instance, []
    full = [name for name, taken in chosen.cards.items() if taken >= chosen.there[name]]
    now = _cheapest(apart, {}, limits) if full else None
    for extra, text in (step for step in steps if len(step[0]) == 1 and set(step[0]) <= set(full)):
        less = _cheapest(apart, extra, limits)
        if now is None or less is None:
            continue
        if instance.billing.pay == "reserved":  # then it is paid for, used or not
            less += sum(3600.0 * (instance.hardware.groups[name].price or 0.0) for name in extra)
        unit = f"{instance.billing.currency}/h"
        saved = now - less if now - less > 1e-6 * now else 0.0
        said = f"{less:,.2f} instead of {now:,.2f} {unit}" if saved else "no cheaper"
        rows.append(Marginal(name=f"cost[{','.join(extra)}]", step=1.0, unit=unit, gain=saved, text=f"{text}: {said}"))
    return rows


def _cheapest(apart: Sequence[Data], extra: dict[str, int], limits: Limits) -> float | None:
    values = []
    for data in apart:
        problem = master.build(data, extra=extra)
        ranked = rank(problem, [problem.by_cost], limits.part(EACH))
        if not sure(ranked, limits):
            return None
        values.extend([ranked.value] if ranked.value is not None else [])
    return min(values, default=None)


def sure(ranked: Ranked, limits: Limits) -> bool:
    """Whether the answer is known: proven, to the gap that is asked for."""
    return ranked.status == "infeasible" or (ranked.found and gap(ranked.value, ranked.bound) <= limits.gap)


def _most(apart: Sequence[Data], extra: dict[str, int], limits: Limits) -> float | None:
    values = []
    for data in apart:
        problem = master.build(data, promises=False, extra=extra)
        ranked = rank(problem, [problem.by_throughput], limits.part(EACH))
        if not sure(ranked, limits):
            return None
        values.extend([ranked.value] if ranked.value is not None else [])
    return max(values, default=None)


def _serves_less(data: Data) -> bool:
    """Whether a plan with every card in use may still serve less than its cards could, for the sake of a promise."""
    instance = data.instance
    several = instance.service.drain is not None and len({c.startup for c in data.candidates}) > 1
    return instance.objective == "headroom" or instance.limits.spare is not None or several


def leaves_cards_idle(data: Data) -> bool:
    """Whether the plan may serve less than its cards could: only where leaving cards idle is worth something."""
    instance = data.instance
    if instance.objective in ("gpus", "power") or instance.drops:
        return True
    buys = bool(instance.hardware.purchases) or any(link.step for link in instance.hardware.links.values())
    return instance.objective in ("cost", "effective_cost") and (instance.billing.pay == "used" or buys)


def _more(extra: dict[str, int], text: str, base: float, most: float) -> Marginal:
    gain = most - base
    gain = 0.0 if gain < 1e-4 * max(base, 1e-12) else gain
    outcome = f"{most:.2f} requests/s" + (f" (+{gain:.2f})" if gain else " (no more: something else binds)")
    return Marginal(name=f"cards[{','.join(extra)}]", step=1.0, unit="cards", gain=gain, text=f"{text}: {outcome}")
