r"""What may be bought: whole bundles of cards, rented servers, steps of links; and what a plan costs.

Cost of an hour: cards that are there (all of them where they are reserved, else those in use), cards rented one by one,
bundles, rented servers and steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solver.data import Data
from solver.milp.model import Model, Term, at_most, equal
from solver.topology import step_ratio

MOST = 10**6
"""Bundles or servers bought where the instance states no limit."""
HOUR = 3600.0


@dataclass(frozen=True)
class Purchases:
    """Columns of what may be bought."""

    bundles: Mapping[str, int]
    """Name of a bundle, or of a group rented by servers -> column."""
    steps: Mapping[str, int]
    """Link -> column."""
    cards: tuple[tuple[str, int, int], ...]
    """Group, column, and cards of one."""


def columns(model: Model, data: Data, limit: bool = False) -> Purchases:
    """A column for everything that may be bought; with ``limit`` nothing of which there is no end."""
    hardware = data.instance.hardware
    bundles: dict[str, int] = {}
    cards: list[tuple[str, int, int]] = []
    for name, bundle in hardware.purchases.items():
        group = hardware.groups.get(name)
        if group is not None and group.rent == "gpu":
            continue  # counted by the units themselves
        most = bundle.at_most if bundle.at_most is not None else 0 if limit else MOST
        bundles[name] = model.column(upper=float(most), integer=True)
        cards.extend((where, bundles[name], count) for where, count in bundle.cards.items())
    steps = {
        name: model.column(upper=float(link.step.at_most), integer=True)
        for name, link in hardware.links.items()
        if link.step is not None
    }
    return Purchases(bundles, steps, tuple(cards))


def widths(model: Model, data: Data, bought: Purchases, one: int, wider: tuple[str, int] | None) -> dict[str, int]:
    r"""Columns that multiply the capacity of channels: $1 + r\,s_l$ for a link with steps; ``wider`` is another."""
    multiples: dict[str, int] = {}
    for name, link in data.instance.hardware.links.items():
        base = wider[1] if wider is not None and wider[0] == name else one
        if name in bought.steps:
            multiple = model.column()
            terms = [(multiple, 1.0), (base, -1.0), (bought.steps[name], -step_ratio(link))]
            model.rows.append(equal(f"step[{name}]", terms))
            base = multiple
        if base != one:
            multiples.update({f"link[{c}]": base for c, at in data.topology.channels.items() if at.link == name})
    return multiples


def cost(
    model: Model, data: Data, units: Sequence[int], bought: Purchases, one: int, more: Sequence[Term] = ()
) -> list[Term]:
    """Money an hour, ``more`` included; empty where every plan costs the same."""
    instance = data.instance
    hardware, used = instance.hardware, instance.billing.pay == "used"
    terms: list[Term] = [*more]
    fixed = 0.0
    for name, group in hardware.groups.items():
        mine = [(units[i], c) for i, c in enumerate(data.candidates) if c.on(name)]
        if group.servers == "unlimited":
            terms += [(n, HOUR * c.price_on(name)) for n, c in mine] if group.rent == "gpu" else []
        elif not used:
            fixed += HOUR * group.cards * (group.price or 0.0)
        elif any(where == name for where, _, _ in bought.cards):
            own = model.column()  # how many there are is said by the row of the cards
            needed = [(n, float(c.on(name))) for n, c in mine]
            more = [(column, -float(each)) for where, column, each in bought.cards if where == name]
            model.rows.append(at_most(f"own[{name}]", [*needed, (own, -1.0), *more], 0.0))
            terms.append((own, HOUR * (group.price or 0.0)))
        else:
            terms += [(n, HOUR * c.price_on(name)) for n, c in mine]
    for name, column in bought.bundles.items():
        terms.append((column, HOUR * (hardware.purchases[name].price or 0.0)))
    for name, column in bought.steps.items():
        step = hardware.links[name].step
        terms.append((column, HOUR * (step.price if step else 0.0)))
    return [*terms, (one, fixed)] if terms and fixed else terms or ([(one, fixed)] if instance.drops else [])
