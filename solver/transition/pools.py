"""From one plan to another: units that stay, units that change their work, units that come and go, and what serves."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from models.errors import BadInput, Problem
from models.plain import is_whole, mapping
from models.plan import Plan, Pool

Kind = tuple[str, str, str, int]
"""Group, model, cut and GPUs of a unit: units of one kind have the same weights on the same GPUs."""


@dataclass(frozen=True)
class Change:
    """Units of one stage and kind."""

    group: str
    model: str
    stage: str
    cut: str
    """`TP4`, `TP8 x PP2`."""
    cards_per_unit: int
    before: int
    after: int
    kept: int
    """At the same work in both plans."""
    reassigned: int
    """That come from another stage of the same kind: their weights are there."""
    new: int
    """To be started, weights to be loaded."""


@dataclass(frozen=True)
class Difference:
    """All changes, the bytes of weights that new units load, and rates in requests/s."""

    changes: tuple[Change, ...]
    weights: float | None
    """Of all new units; None where a plan does not say."""
    busiest: float | None
    """Of the GPU that loads most."""
    before: float
    during: float
    """What the units that stay at their work complete alone."""
    after: float
    arrivals: float
    deadline: float | None
    crowded: tuple[str, ...]
    """Groups whose new units need GPUs of units that stop."""


def difference(before: Plan, after: Plan) -> Difference:
    """What changes. Raises BadInput where a file holds no plan, or pools of several models."""
    for option, plan in (("--from", before), ("--to", after)):
        if plan.throughput is None or not plan.pools:
            raise BadInput(
                [Problem(option, "there is no plan in it", plan.status, "a plan that is optimal or feasible")]
            )
        if any(pool.stage == "encode" for pool in plan.pools):
            message = "units that encode images are not supported yet"
            raise BadInput([Problem(option, message, None, "plans without them; else state service and bytes")])
        if len({pool.model for pool in plan.pools}) > 1:
            message = "a plan of several models is not supported yet"
            raise BadInput([Problem(option, message, None, "plans of one model; else state service and bytes")])
    changes = _changes(_own(before), _own(after))
    loads = [(change, _weights(after, change)) for change in changes if change.new]
    known = [(change, each) for change, each in loads if each is not None]
    complete = len(known) == len(loads)
    assert before.throughput is not None
    assert after.throughput is not None
    return Difference(
        changes=tuple(changes),
        weights=sum(change.new * change.cards_per_unit * each for change, each in known) if complete else None,
        busiest=max((each for _, each in known), default=0.0) if complete else None,
        before=before.throughput,
        during=_alone(before, changes),
        after=after.throughput,
        arrivals=sum(workload.rate for workload in after.workloads.values()),
        deadline=after.drain.deadline_s if after.drain else None,
        crowded=tuple(_crowded(before, changes)),
    )


def _own(plan: Plan) -> list[Pool]:
    return [pool for pool in plan.pools if pool.shares is None]


def _kind(pool: Pool) -> Kind:
    return (pool.group, pool.model, pool.parallelism.text, pool.cards_per_unit)


def _changes(before: Iterable[Pool], after: Iterable[Pool]) -> list[Change]:
    old: Counter[tuple[Kind, str]] = Counter()
    new: Counter[tuple[Kind, str]] = Counter()
    for counted, pools in ((old, before), (new, after)):
        for pool in pools:
            counted[_kind(pool), pool.stage] += pool.units
    kept = {key: min(old[key], new[key]) for key in (*old, *new)}
    freed = Counter({key: old[key] - kept[key] for key in old})
    changes = []
    for key in dict.fromkeys((*old, *new)):
        kind, stage = key
        wanted = new[key] - kept[key]
        moved = 0
        for other in [one for one in freed if one[0] == kind and one[1] != stage]:
            taken = min(wanted - moved, freed[other])
            freed[other] -= taken
            moved += taken
        group, model, cut, cards = kind
        changes.append(Change(group, model, stage, cut, cards, old[key], new[key], kept[key], moved, wanted - moved))
    return changes


def _weights(plan: Plan, change: Change) -> float | None:
    """Bytes of weights of one GPU of a unit."""
    for pool in _own(plan):
        cut = (pool.group, pool.stage, pool.cards_per_unit)
        if cut == (change.group, change.stage, change.cards_per_unit) and pool.memory is not None:
            return pool.memory.weights + pool.memory.experts
    return None


def _alone(plan: Plan, changes: list[Change]) -> float:
    """Requests/s of the units that stay: those of whole requests, and the lesser of prefill and decode."""
    kept = {(change.group, change.stage, change.cards_per_unit, change.cut): change.kept for change in changes}
    rates: dict[str, float] = {}
    for pool in _own(plan):
        if pool.part_of is not None:
            continue  # what goes through it is told of the pool that it is a part of
        cut = pool.parallelism.text
        stays = min(kept.get((pool.group, pool.stage, pool.cards_per_unit, cut), 0), pool.units)
        rates[pool.serves] = rates.get(pool.serves, 0.0) + (pool.capacity * stays / pool.units if stays else 0.0)
    return rates.get("both", 0.0) + min(rates.get("prefill", 0.0), rates.get("decode", 0.0))


def _crowded(plan: Plan, changes: list[Change]) -> Iterable[str]:
    groups = mapping(mapping(plan.instance_document.get("hardware")).get("groups"))
    for group in dict.fromkeys(change.group for change in changes):
        described = mapping(groups.get(group))
        servers, each = described.get("servers"), described.get("per_server")
        if not is_whole(servers) or not is_whole(each):
            continue  # rented as needed
        here = [change for change in changes if change.group == group]
        used = sum(change.before * change.cards_per_unit for change in here)
        wanted = sum(change.new * change.cards_per_unit for change in here)
        if used + wanted > servers * each:
            yield group
