"""What one more of each brings, and how far things may move before the plan breaks."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from models.hardware import Link, Step
from models.instance import Instance
from models.plan import Marginal
from solver import assemble, settle
from solver.assemble import Chosen
from solver.backend import Limits
from solver.data import Data
from solver.milp import master
from solver.optimise import rank
from solver.rounding import down, up
from solver.rounding import text as digits
from solver.routes import find
from solver.topology import Topology


def marginals(allowed: Data, chosen: Chosen, limits: Limits) -> list[Marginal]:
    """One more card of each group, one of each together; then how much the promises stand.

    ``allowed`` holds every allowed scheme. What the time left does not suffice for is left out.
    """
    apart = allowed.apart()
    may_idle = leaves_cards_idle(allowed)
    endless = any(bundle.at_most is None for bundle in allowed.instance.hardware.purchases.values())
    most_now = chosen.settled.throughput
    base = None if endless else _most(apart, {}, limits) if may_idle or _serves_less(allowed) else most_now
    schemes = {assemble.scheme_of(chosen, index) for index, _ in chosen.used}
    same = [allowed.only(schemes).pruned()] if len(schemes) == 1 and len(allowed.schemes) > 1 else None
    rows = []
    groups = [n for n, g in allowed.instance.hardware.groups.items() if g.servers != "unlimited"]
    steps = [({name: 1}, f"+1 {name}") for name in groups]
    if len(groups) > 1:
        steps.append((dict.fromkeys(groups, 1), "+1 of each group"))
    beyond = ""
    if base is not None and base > most_now * (1.0 + 1e-6):  # the objective leaves cards idle, or asks for other units
        word = "with every GPU in use" if may_idle else "with units for the most requests/s alone"
        text = f"{word}: {base:.2f} requests/s (+{base - most_now:.2f})"
        rows.append(Marginal(name="cards", step=0.0, unit="cards", gain=base - most_now, text=text))
        beyond = " beyond that"
    for extra, text in steps if not endless else []:
        most = _most(apart, extra, limits)
        if base is None or most is None:
            continue
        more = _more(extra, text + beyond, base, most)
        alone = _most(same, extra, limits) if same is not None and len(extra) == 1 else None
        if alone is not None and alone < most * (1.0 - 1e-6):
            more = more.model_copy(update={"text": f"{more.text}; {alone:.2f} with {next(iter(schemes))} alone"})
        rows.append(more)
    rows.extend(_wider(allowed, chosen, base, beyond, limits))
    if may_idle and allowed.instance.objective in ("cost", "effective_cost") and not allowed.instance.drops:
        rows.extend(_savings(apart, steps, limits))
    rows.extend(_margins(chosen, limits))
    return rows


def _wider(allowed: Data, chosen: Chosen, base: float | None, beyond: str, limits: Limits) -> Iterator[Marginal]:
    """One more port of each link that carries something, or one more step where it is sold in steps."""
    carrying = {link for r in chosen.live_routes for link in chosen.data.routes[r].links}
    for name, link in allowed.instance.hardware.links.items():
        if name not in carrying or base is None:
            continue
        ports = link.step.ports if link.step else 1
        free = link.model_copy(update={"step": Step.model_construct(ports=ports, price=0.0, at_most=10**4)})
        there = replace(allowed, topology=Topology(_with(allowed, name, free).hardware)).widened({name: 1})
        more_ports = link.model_copy(update={"ports": link.ports + ports})  # what is for sale comes on top
        there = replace(there, instance=_with(allowed, name, more_ports))
        most = _most(there.apart(), {}, limits)
        if most is not None:
            word = "step" if link.step else "port"
            text = f"+1 {word} of link {name} ({digits(ports * link.port_bandwidth / 1e9)} GB/s){beyond}"
            more = _more({name: 1}, text, base, most)
            yield more.model_copy(update={"name": f"link[{name}]", "unit": word})


def _with(data: Data, name: str, link: Link) -> Instance:
    hardware = data.instance.hardware
    changed = hardware.model_copy(update={"links": {**hardware.links, name: link}})
    return data.instance.model_copy(update={"hardware": changed})


def _savings(apart: Sequence[Data], steps: list[tuple[dict[str, int], str]], limits: Limits) -> list[Marginal]:
    """What one more card, to be used where it helps, takes off the bill."""
    instance, rows = apart[0].instance, []
    now = _cheapest(apart, {}, limits)
    for extra, text in (step for step in steps if len(step[0]) == 1):
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
        if limits.over:
            return None
        problem = master.build(data, extra=extra)
        ranked = rank(problem, [problem.by_cost], limits)
        if ranked.status not in ("optimal", "infeasible"):
            return None
        values.extend([ranked.value] if ranked.value is not None else [])
    return min(values, default=None)


def _most(apart: Sequence[Data], extra: dict[str, int], limits: Limits) -> float | None:
    values = []
    for data in apart:
        if limits.over:
            return None
        problem = master.build(data, promises=False, extra=extra)
        ranked = rank(problem, [problem.by_throughput], limits)
        if ranked.status not in ("optimal", "infeasible"):
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
    gain = 0.0 if gain < 1e-9 * max(base, 1e-12) else gain
    outcome = f"{most:.2f} requests/s" + (f" (+{gain:.2f})" if gain else " (no more: something else binds)")
    return Marginal(name=f"cards[{','.join(extra)}]", step=1.0, unit="cards", gain=gain, text=f"{text}: {outcome}")


def _margins(chosen: Chosen, limits: Limits) -> list[Marginal]:
    """Arrivals, efficiency and links at which the chosen units just keep every promise."""
    instance, rows = chosen.instance, []
    most = None if limits.over else settle.margin(chosen.data, chosen.counts, "arrivals")
    if most is not None:
        rate = most * instance.rate
        rows.append(
            Marginal(
                name="arrivals",
                step=rate,
                unit="requests/s",
                gain=None,
                text=f"arrivals may grow to {down(rate):.4g} requests/s and every limit still holds",
            )
        )
    deadline = instance.service.drain
    if most is not None and deadline is not None and not limits.over:
        service = instance.service.model_copy(update={"drain": deadline + 1.0})
        later = replace(chosen.data, instance=instance.model_copy(update={"service": service}))
        more = settle.margin(later, chosen.counts, "arrivals")
        if more is not None:
            gain = max(0.0, (more - most) * instance.rate)
            said = f"{down(more * instance.rate):.4g} requests/s" if gain > 1e-9 else "no more"
            text = f"+1 s of deadline: arrivals may grow to {said}"
            rows.append(Marginal(name="drain", step=1.0, unit="s", gain=gain, text=text))
    fixed = all(candidate.measured for _, candidate in chosen.used)
    fixed = fixed or any(w.targets.ttft or w.targets.tpot for w in instance.workloads.values())  # units would be others
    least = None if limits.over or fixed else settle.margin(chosen.data, chosen.counts, "efficiency")
    if least is not None:
        stated = instance.hardware.efficiency
        same = stated.compute == stated.bandwidth and not any(
            group.efficiency for group in instance.hardware.groups.values()
        )
        text = (
            f"from {stated.compute:.4g} to {up(stated.compute * least):.4g}"
            if same
            else f"to {100.0 * up(least):.4g} % of what is assumed"
        )
        rows.append(
            Marginal(name="efficiency", step=least, unit="of stated", gain=None, text=f"efficiency may fall {text}")
        )
    return [*rows, *_narrower(chosen, limits)]


def _narrower(chosen: Chosen, limits: Limits) -> Iterator[Marginal]:
    """How far each channel that carries something may shrink; a link that is narrower is also slower."""
    channels = chosen.data.topology.channels
    for link in chosen.instance.hardware.links:
        least: dict[str, float] = {}
        for name in (name for name, channel in channels.items() if channel.link == link):
            resource = f"link[{name}]"
            if any(resource in chosen.data.routes[r].charges for r in chosen.live_routes):
                share = None if limits.over else settle.margin(chosen.data, chosen.counts, resource)
                least.update({} if share is None else {name: share})
        slowest = _slowest(chosen, link, max(least.values(), default=0.0), limits) if least else None
        for name, share in least.items() if slowest is not None else ():
            capacity = max(share, slowest if slowest is not None else 0.0) * channels[name].capacity
            text = f"link {name} may shrink to {up(capacity / 1e9):.4g} GB/s in all"
            yield Marginal(name=f"link[{name}]", step=capacity, unit="B/s", gain=None, text=text)


def _slowest(chosen: Chosen, link: str, share: float, limits: Limits) -> float | None:
    """The least share of the bandwidth of a link, from ``share`` on, with which the chosen units keep every promise
    though transfers take longer: 0 where ``share`` is enough; None where stages of units stand in several servers.
    """
    if any(candidate.charges for _, candidate in chosen.used):
        return None
    instance = chosen.instance
    waits = bool(instance.hardware.stores) or any(w.targets.ttft for w in instance.workloads.values())
    if not (waits or len(instance.hardware.links) > 1) or _holds(chosen, link, share):
        return 0.0
    below, above = share, 1.0
    while above > below * 1.0005 and not limits.over:
        middle = (below * above) ** 0.5
        below, above = (below, middle) if _holds(chosen, link, middle) else (middle, above)
    return above


def _holds(chosen: Chosen, link: str, share: float) -> bool:
    """Whether the chosen units keep every promise when a link has this share of its bandwidth."""
    described = chosen.instance.hardware.links[link]
    narrow = described.model_copy(update={"bandwidth": described.bandwidth * max(share, 1e-6) * (1.0 + 1e-9)})
    slower = _with(chosen.data, link, narrow)
    topology = Topology(slower.hardware)
    routes = tuple(find(slower, topology, chosen.data.schemes))
    data = replace(chosen.data, instance=slower, topology=topology, routes=routes).widened(chosen.steps)
    most = settle.margin(data, chosen.counts, "arrivals")
    return most is not None and most >= 1.0 - 1e-9
