"""How far things may move before the chosen units break a promise: arrivals, deadline, efficiency, links."""

from collections.abc import Iterator
from dataclasses import replace

from models.hardware import Link
from models.instance import Instance
from models.told import Marginal
from solver import again, settle
from solver.chosen import Chosen
from solver.limits import Limits
from solver.rounding import down, up

FINE = 1.0005
"""Ratio to which a bisection goes."""


def with_link(instance: Instance, name: str, link: Link) -> Instance:
    """The instance with another link of this name."""
    hardware = instance.hardware.model_copy(update={"links": {**instance.hardware.links, name: link}})
    return instance.model_copy(update={"hardware": hardware})


def margins(chosen: Chosen, limits: Limits) -> list[Marginal]:
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
            grows = f"arrivals may grow to {down(more * instance.rate):.4g} requests/s"
            text = f"+1 s of deadline: {grows if gain > 1e-9 else 'nothing more, something else binds'}"
            rows.append(Marginal(name="drain", step=1.0, unit="s", gain=gain, text=text))
    least = None if limits.over else _efficiency(chosen, limits)
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


def _efficiency(chosen: Chosen, limits: Limits) -> float | None:
    """Least share of the stated efficiency; with targets, of the same units at slower stage times."""
    if all(candidate.measured for _, candidate in chosen.used):
        return None
    if not any(w.targets.ttft or w.targets.tpot for w in chosen.instance.workloads.values()):
        return settle.margin(chosen.data, chosen.counts, "efficiency")
    if not again.holds(chosen, again.slower(chosen.instance, 1.0)):
        return None
    below, above = 1e-3, 1.0
    while above > below * FINE and not limits.over:
        middle = (below * above) ** 0.5
        keeps = again.holds(chosen, again.slower(chosen.instance, middle))
        below, above = (below, middle) if keeps else (middle, above)
    return above


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
        if slowest is None:
            continue
        for name, share in least.items():
            capacity = max(share, slowest) * channels[name].capacity
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
    while above > below * FINE and not limits.over:
        middle = (below * above) ** 0.5
        below, above = (below, middle) if _holds(chosen, link, middle) else (middle, above)
    return above


def _holds(chosen: Chosen, link: str, share: float) -> bool:
    """Whether the chosen units keep every promise when a link has this share of its bandwidth."""
    described = chosen.instance.hardware.links[link]
    narrow = described.model_copy(update={"bandwidth": described.bandwidth * max(share, 1e-6) * (1.0 + 1e-9)})
    return again.holds(chosen, with_link(chosen.instance, link, narrow))
