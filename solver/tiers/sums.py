"""Sums over what a plan says of kept state, by the formulas: alive, written, read. Part of the verifier."""

from models.instance import Instance
from models.plan import Plan
from models.plan_tiers import Load, Retained, TierUse
from models.tiers import HBM
from solver import physics
from solver.formulas import retention
from solver.tiers.data import Kept
from solver.tiers.parts import Part, parts
from solver.tiers.places import Place, places
from solver.topology import Topology

TOLERANCE = 1e-6


def over(value: float, limit: float, least: float = 1e-9) -> bool:
    """Whether ``value`` is above ``limit`` by more than rounding, which is never less than that of ``least``."""
    return not value <= limit + TOLERANCE * max(abs(limit), least)


def kept_of(instance: Instance, topology: Topology) -> Kept:
    """Parts and places of an instance."""
    return Kept(instance, topology, parts(instance), places(instance, topology), ())


def part_of(kept: Kept, workload: str, number: int) -> Part:
    """A part of the prompt of a workload."""
    return next(part for part in kept.parts if (part.workload, part.number) == (workload, number))


def copies_at(part: Part, place: Place) -> float:
    """Places that see requests of a part in turn."""
    return place.copies if part.prompt else place.spread


def _use_above(plan: Plan, kept: Kept, number: int, keeps: Retained) -> tuple[Place, Retained] | None:
    """The next faster place of the same requests, if it keeps the part."""
    chain = kept.chain(keeps.workload, keeps.group)
    before = chain.index(number) - 1
    for one in plan.tiers[chain[before]].retained if before >= 0 else ():
        if (one.workload, one.part, one.group) == (keeps.workload, keeps.part, keeps.group):
            return kept.places[chain[before]], one
    return None


def alive(plan: Plan, kept: Kept, number: int) -> float:
    """Mean bytes of prefixes at a place."""
    place, use, total = kept.places[number], plan.tiers[number], 0.0
    for keeps in use.retained:
        part = part_of(kept, keeps.workload, keeps.part)
        mine = _alive(part, place, use.policy, keeps, kept)
        if place.said.holds == "exclusive" and (above := _use_above(plan, kept, number, keeps)):
            mine = max(0.0, mine - _alive(part, above[0], "all", above[1], kept))
        total += mine
    return total


def _alive(part: Part, place: Place, policy: str, keeps: Retained, kept: Kept) -> float:
    copies, total = copies_at(part, place), 0.0
    for one in keeps.ages:
        integral = part.integral(one.age_s, copies)
        if policy == "second_hit":
            seen = kept.admitted(part, place)
            most = seen * part.most / (1.0 if part.prompt else copies)
            total += retention.live_again_bytes(one.rate, part.hit, most, one.age_s, seen * part.again * integral)
        else:
            total += retention.live_bytes(one.rate, part.kept, part.hit, one.age_s, integral)
    return total


def written(plan: Plan, kept: Kept, number: int) -> dict[tuple[str, str], float]:
    """Bytes/s of new state written to a place, by workload and group."""
    place, use = kept.places[number], plan.tiers[number]
    found: dict[tuple[str, str], float] = {
        (w, g): 0.0
        for w in kept.instance.workloads
        for g in kept.instance.hardware.groups
        if place.tier != HBM and kept.of(w) and number in kept.chain(w, g)
    }
    for keeps in use.retained if place.tier != HBM else ():
        part = part_of(kept, keeps.workload, keeps.part)
        rate = sum(_written(part, place, use.policy, one.rate, one.age_s, kept) for one in keeps.ages)
        if place.said.holds == "exclusive":
            rate = sum(one.rate for one in keeps.ages) * part.kept
            if above := _use_above(plan, kept, number, keeps):
                gone = [part.found(one.age_s, copies_at(part, above[0])) * one.rate for one in above[1].ages]
                rate = max(0.0, rate - part.hit * sum(gone))
        found[keeps.workload, keeps.group] = found.get((keeps.workload, keeps.group), 0.0) + rate
    for key in found:
        found[key] = max(0.0, found[key] - _handed(plan, kept.instance, place, *key))
    return found


def _written(part: Part, place: Place, policy: str, rate: float, age: float, kept: Kept) -> float:
    copies = copies_at(part, place)
    there = part.found(age, copies)
    if policy == "second_hit":
        seen = kept.admitted(part, place)
        most = seen * part.most / (1.0 if part.prompt else copies)
        return retention.written_again_bytes(rate, part.hit, most, seen * part.again * there)
    return retention.written_bytes(rate, part.kept, part.hit, there)


def _handed(plan: Plan, instance: Instance, place: Place, workload: str, group: str) -> float:
    """Bytes/s that handoffs through the same store have written already."""
    if place.said.store is None:
        return 0.0
    described = instance.workloads[workload]
    payload = physics.handoff_payload(physics.shape_of(instance.models[described.model]), described)
    return sum(
        handoff.rate.at_load * payload
        for handoff in plan.handoffs
        if (handoff.workload, handoff.source, handoff.store) == (workload, group, place.said.store)
    )


def rate_at(rate: Load, word: str) -> float:
    """The rate at the load, or at capacity."""
    return rate.at_load if word == "at_load" else rate.at_capacity


def read(use: TierUse, word: str, group: str | None = None) -> float:
    """Bytes/s read from a place."""
    found = sum(rate_at(one.rate, word) * one.bytes_per_hit for one in use.found if group in (None, one.group))
    return found + paused(use, word, group)


def paused(use: TierUse, word: str, group: str | None = None) -> float:
    """Bytes/s of states that are put away while requests wait, and taken up again."""
    return sum(rate_at(one.rate, word) * one.bytes_each for one in use.paused if group in (None, one.group))
