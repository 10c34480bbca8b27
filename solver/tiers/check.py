"""State kept for later, against the formulas. Part of the verifier: nothing here knows the rows of the model.

What the plan says of retention gives what is alive, what is written and what can be found; what it says is found and
paused gives what is read.
"""

import itertools
from collections.abc import Iterator

from models.instance import Instance
from models.plan import Plan
from models.plan_tiers import TierUse
from models.tiers import HBM, Policy
from solver import physics
from solver.recomputed import Built
from solver.tiers.data import Kept
from solver.tiers.parts import cached_tokens
from solver.tiers.places import Place
from solver.tiers.sums import TOLERANCE, alive, copies_at, kept_of, over, part_of, paused, rate_at, read, written
from solver.topology import Topology

__all__ = ["alive", "crossing", "kept_of", "violations", "written"]
CRUMB = 1e-2
"""Of the rate of a workload: what rounding leaves of rates below that is told by it, not by the rate itself."""


def crossing(plan: Plan, kept: Kept, word: str, topology: Topology) -> dict[str, float]:
    """Bytes/s on channels."""
    found: dict[str, float] = {}
    for number, (place, use) in enumerate(zip(kept.places, plan.tiers, strict=True)):
        if place.said.store is None:
            continue
        new = written(plan, kept, number)
        for group in kept.instance.hardware.groups:
            put = sum(rate for (_, where), rate in new.items() if where == group) + paused(use, word, group)
            for ends, load in (((place.said.store, group), read(use, word, group)), ((group, place.said.store), put)):
                path = topology.path(*ends, 1e9) if load else None
                for channel in path.channels if path else ():
                    found[channel] = found.get(channel, 0.0) + load
    return found


def violations(plan: Plan, instance: Instance, kept: Kept, built: dict[str, Built]) -> Iterator[str]:
    """What the plan says of kept state that cannot be."""
    if [use.name for use in plan.tiers] != [place.name for place in kept.places]:
        yield "tiers: not the places of the instance"
        return
    for number, (place, use) in enumerate(zip(kept.places, plan.tiers, strict=True)):
        if not place.least <= use.pieces <= place.most:
            yield f"tier[{place.name}]: {use.pieces} pieces, outside {place.least} to {place.most}"
        if use.policy not in (*place.policies, "never"):
            yield f"tier[{place.name}]: the policy {use.policy} is not one of its own"
        if (use.policy == "never") != (not use.retained):
            yield f"tier[{place.name}]: kept without a policy, or not kept with one"
        longest = max((one.age_s for row in use.retained for one in row.ages), default=0.0)
        if not kept.may_keep(place, _policy(place, use), longest):
            yield f"tier[{place.name}]: kept for {longest:.6g} s, which is longer than second_hit remembers"
        yield from _fits(plan, kept, number, built)
        if place.tier == HBM:
            yield from _apart(plan, kept, number, built)
    for name, workload in instance.workloads.items():
        for group in instance.hardware.groups:
            yield from _available(plan, kept, name, group)
            if workload.tool_wait is not None:
                yield from _waits(plan, name, group, workload.tool_wait.calls, instance)
    yield from _states(plan, instance, kept, built)


def _fits(plan: Plan, kept: Kept, number: int, built: dict[str, Built]) -> Iterator[str]:
    place, use = kept.places[number], plan.tiers[number]
    new = sum(written(plan, kept, number).values())
    for word in ("at_load", "at_capacity"):
        wait = sum(
            rate_at(one.rate, word)
            * one.bytes_each
            * (w.mean if (w := kept.instance.workloads[one.workload].tool_wait) else 0.0)
            for one in use.paused
        )
        held, moved = _passing(plan, kept, place, word)
        needed = (alive(plan, kept, number) + wait) * place.said.headroom + held
        have = place.size.at(use.pieces) if place.tier != HBM else _room(plan, place, built)
        if over(needed, have):
            yield f"tier[{place.name}] {word}: {needed:.6g} of {have:.6g} B"
        got, put = read(use, word) + moved, new + paused(use, word) + moved
        for label, amount, pipe in (
            ("bandwidth", got + put, place.both),
            ("read", got, place.read),
            ("write", put, place.write),
            ("endurance", put, place.wear),
        ):
            if pipe is not None and place.tier != HBM and over(amount, pipe.at(use.pieces)):
                yield f"tier[{place.name},{label}] {word}: {amount:.6g} of {pipe.at(use.pieces):.6g} B/s"


def _passing(plan: Plan, kept: Kept, place: Place, word: str) -> tuple[float, float]:
    """What handoffs through the store of a pool hold of it, in bytes, and move, in B/s each way."""
    held = moved = 0.0
    stores = kept.instance.hardware.stores
    for handoff in plan.handoffs:
        if place.said.store is None or handoff.store != place.said.store:
            continue
        store, described = stores[handoff.store], kept.instance.workloads[handoff.workload]
        shape = physics.shape_of(kept.instance.models[described.model])
        longest, rate = physics.longest_payload(shape, described), rate_at(handoff.rate, word)
        for ends, own in (
            ((handoff.source, handoff.store), store.write),
            ((handoff.store, handoff.target), store.read),
        ):
            path = kept.topology.path(*ends, longest)
            for share, size in physics.handoff_sizes(shape, described) if path else ():
                held += rate * share * size * max(path.seconds(size) if path else 0.0, size / own if own else 0.0)
        moved += rate * physics.handoff_payload(shape, described)
    return held, moved


def _apart(plan: Plan, kept: Kept, number: int, built: dict[str, Built]) -> Iterator[str]:
    """HBM of the units that have it: prefixes where requests begin, pauses where requests of their workload stay."""
    place, use = kept.places[number], plan.tiers[number]
    mine = [
        p
        for p in plan.pools
        if (p.group, p.model) == (place.group, place.model) and p.part_of is None and p.shares is None
    ]
    begin = frozenset(p.name for p in mine if p.begins and p.hits)
    for word in ("at_load", "at_capacity"):
        sorts: dict[frozenset[str], float] = {begin: alive(plan, kept, number)}
        for one in use.paused:
            workload = kept.instance.workloads[one.workload]
            ends = ("both", "decode") if workload.decodes else ("both", "decode", "prefill")
            stay = frozenset(p.name for p in mine if one.workload in p.rates and p.serves in ends)
            bytes_ = rate_at(one.rate, word) * one.bytes_each * (workload.tool_wait.mean if workload.tool_wait else 0.0)
            sorts[stay] = sorts.get(stay, 0.0) + bytes_
        for count in range(1, len(sorts) + 1):
            for some in itertools.combinations(sorts, count):
                units = frozenset[str]().union(*some)
                have = sum(p.units * built[p.name].room() for p in mine if p.name in units)
                needed = sum(sorts[one] for one in some) * place.said.headroom
                if over(needed, have):
                    yield f"tier[{place.name}] {word}: {needed:.6g} of {have:.6g} B on the units that have it"


def _room(plan: Plan, place: Place, built: dict[str, Built]) -> float:
    """Bytes of whole states that units leave free."""
    return sum(
        pool.units * built[pool.name].room()
        for pool in plan.pools
        if (pool.group, pool.model) == (place.group, place.model) and pool.part_of is None and pool.shares is None
    )


def _begun(plan: Plan, name: str, group: str) -> float:
    """Requests/s of a workload that begin on a group, at the load."""
    mine = [p for p in plan.pools if p.begins and p.group == group and p.part_of is None and name in p.hits]
    return sum(pool.rates[name].at_load for pool in mine if name in pool.rates)


def _available(plan: Plan, kept: Kept, name: str, group: str) -> Iterator[str]:
    """No more is found than is there."""
    begun, little = _begun(plan, name, group), CRUMB * kept.instance.workloads[name].rate
    for part in kept.of(name):
        so_far = 0.0
        lines: dict[int, list[tuple[float, float, float]]] = {kind: [] for kind in kept.kinds}
        for number in kept.chain(name, group):
            place, use = kept.places[number], plan.tiers[number]
            mine = sum(
                one.rate.at_load
                for one in use.found
                if (one.workload, one.part, one.group) == (name, part.number, group)
            )
            keeps = [r for r in use.retained if (r.workload, r.part, r.group) == (name, part.number, group)]
            rates = sum(one.rate for row in keeps for one in row.ages)
            if over(rates, begun, little):
                yield f"kept[{name},{group},{place.name}]: {rates:.6g} of {begun:.6g} requests/s"
            if (
                keeps
                and not place.each_apart
                and (
                    over(begun, rates, little) or any(one.age_s != use.retention_s for row in keeps for one in row.ages)
                )
            ):
                yield f"kept[{name},{group},{place.name}]: not all of the load for one time"
            own = 0.0
            for kind in kept.kinds:
                cover = kept.covers(part, place, _policy(place, use), kind) if keeps else 0.0
                ages = [one for row in keeps for one in row.ages]
                shares = [kept.weight(part, kind) * part.found(one.age_s, copies_at(part, place)) for one in ages]
                own += sum(cover * one.rate * share for one, share in zip(ages, shares, strict=True))
                lines[kind] += [(share, one.rate, cover) for one, share in zip(ages, shares, strict=True)]
            so_far += mine
            if over(mine, own, little):
                yield f"found[{name},{part.number},{group},{place.name}]: {mine:.6g} of {own:.6g} requests/s"
            together = sum(_together(some, begun) for some in lines.values())
            if over(so_far, together, little):
                label = f"found[{name},{part.number},{group},{place.name}]"
                yield f"{label}: {so_far:.6g} of {together:.6g} with faster ones"


def _together(lines: list[tuple[float, float, float]], begun: float) -> float:
    """Requests/s that find what some place has, of lines of (share that returns so soon, load, share that is there): of
    each level no more than there are, where most of them is there first.
    """
    total = before = 0.0
    for share in sorted({share for share, _, _ in lines}):
        left = begun
        for cover in sorted({cover for _, _, cover in lines}, reverse=True):
            some = min(left, sum(rate for other, rate, one in lines if other >= share and one == cover))
            total += (share - before) * cover * some
            left -= some
        before = share
    return total


def _policy(place: Place, use: TierUse) -> Policy:
    return next((policy for policy in place.policies if policy == use.policy), "never")


def _waits(plan: Plan, name: str, group: str, calls: float, instance: Instance) -> Iterator[str]:
    for word in ("at_load", "at_capacity"):
        ends = [
            p
            for p in plan.pools
            if p.group == group
            and p.part_of is None
            and name in p.rates
            and (p.serves in ("both", "decode") or (p.serves == "prefill" and not instance.workloads[name].decodes))
        ]
        wanted = calls * sum(rate_at(pool.rates[name], word) for pool in ends)
        kept = sum(
            rate_at(one.rate, word)
            for use in plan.tiers
            for one in use.paused
            if (one.workload, one.group) == (name, group)
        )
        if over(kept, wanted) or over(wanted, kept):
            yield f"waits[{name},{group}] {word}: {kept:.6g} of {wanted:.6g} pauses/s are kept"


def _states(plan: Plan, instance: Instance, kept: Kept, built: dict[str, Built]) -> Iterator[str]:
    """What pools find is what places give, in time where that is asked for, and no more than at the load."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for use in plan.tiers:
        for one in use.found:
            row = found.setdefault((one.workload, one.part, one.group), [0.0, 0.0])
            row[0] += one.rate.at_load
            row[1] += one.rate.at_capacity
            if over(one.rate.at_capacity, one.rate.at_load, CRUMB * instance.workloads[one.workload].rate):
                yield f"within[{one.workload},{one.part},{one.group},{use.name}]: more at capacity than at the load"
            if one.bytes_per_hit != part_of(kept, one.workload, one.part).hit:
                yield f"found[{one.workload},{one.part}]: another size"
    for pool in plan.pools:
        for name, states in pool.hits.items() if pool.part_of is None else ():
            if len(states) != len(cached_tokens(instance.workloads[name])):
                yield f"pools: {pool.name} finds parts that {name} has not"
                return
            for word, at in (("at_load", 0), ("at_capacity", 1)):
                total = sum(rate_at(load, word) for load in states)
                if over(total, rate_at(pool.rates[name], word), CRUMB * instance.workloads[name].rate):
                    yield f"states[{name},{pool.name}] {word}: more find parts of their prompt than there are"
                for part in range(len(states)):
                    row = found.setdefault((name, part, pool.group), [0.0, 0.0])
                    row[at] -= sum(rate_at(load, word) for load in states[part:])
    most = max((plan.throughput or 0.0, instance.rate))
    for (name, part, group), (load, full) in found.items():
        if max(abs(load), abs(full)) > TOLERANCE * most:
            yield f"found[{name},{part},{group}]: not what the pools find"
