"""Columns for the ages of a place: which are worth looking at, and in what order a search may ask for them."""

from collections.abc import Sequence

from models.tiers import HBM, Policy
from solver.data import Data
from solver.milp.model import Model, equal

Way = tuple[Policy, int]
"""A policy, and the number of an age."""


def steps(model: Model, place: str, policy: Policy, ages: Sequence[int]) -> dict[Way, int]:
    r"""Columns $\delta_j$ with whole $z_j = \sum_{i \le j} \delta_i$: a search then asks for shorter or longer, not for
    this age or any other.
    """
    ways: dict[Way, int] = {}
    for age in ages:
        ways[policy, age] = model.column(0.0, 1.0, integer=True)
        step = model.column(0.0, 1.0, integer=True)
        name = f"shorter[{place},{policy},{age}]"
        model.rows.append(equal(name, [*((c, 1.0) for c in ways.values()), (step, -1.0)]))
    return ways


LITTLE = 0.02
"""Part of the load that a place keeps at least, if it is to keep anything for an age."""


def worth(data: Data, number: int) -> list[int]:
    """Ages for which a place could keep a part of the load worth speaking of; all, where there are few loads."""
    kept = data.kept
    if kept is None:
        return []
    if kept.fine:
        return list(range(len(kept.ages)))
    place = kept.places[number]
    most = _most(data, place.group, place.model) if place.tier == HBM else place.size.at(place.most)
    parts = [part for part in kept.parts if _there(data, part.workload, number)]
    found = []
    for age, seconds in enumerate(kept.ages):
        alive = (
            min(
                sum(part.rate * kept.live(part, place, policy, seconds) for part in parts)
                for policy in place.policies
                if policy != "never"
            )
            if place.said.holds == "inclusive"
            else 0.0
        )
        if place.said.headroom * LITTLE * alive <= most:
            found.append(age)
    return found


def _there(data: Data, workload: str, number: int) -> bool:
    kept = data.kept
    groups = [g for g in data.instance.hardware.groups if data.instance.workloads[workload].may_use(g)]
    return kept is not None and any(number in kept.chain(workload, group) for group in groups)


def _most(data: Data, group: str | None, model: str | None) -> float:
    """Bytes that units on a group may leave free at most; where there is no end of them, as many as never matter."""
    if group is None or data.instance.hardware.groups[group].servers == "unlimited" or data.instance.hardware.bundles:
        return float("inf")
    cards = data.instance.hardware.groups[group].cards
    mine = [c for c in data.candidates if (c.group, c.model) == (group, model) and c.cards]
    return max((c.room * (cards // c.cards) for c in mine if c.hits), default=0.0)
