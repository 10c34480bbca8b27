"""Independent check of a finished plan: recomputed from the formulas, never from the rows that made it.

First the limits, from the plan's own counts and flows: cards exist and units pack into servers, memory holds, units
and links carry their flows at load, at capacity and in every phase of the drain, requests are conserved, promises are
kept. Then every number the plan reports is computed again and compared.
"""

import itertools
import math
from collections.abc import Iterator, Mapping

from models.instance import Instance
from models.plan import Plan, Pool
from solver import physics
from solver.formulas import memory, state
from solver.reported import differences
from solver.topology import Topology

TOLERANCE = 1e-6
"""Relative; below every digit shown."""


def verify(plan: Plan, instance: Instance) -> list[str]:
    """Violations, each named after the limit it breaks; an empty list when the plan holds."""
    return [*_identity(plan, instance), *_broken(plan, instance)]


def _identity(plan: Plan, instance: Instance) -> Iterator[str]:
    if plan.instance_document != instance.document() or plan.instance_sha256 != instance.sha256():
        yield "instance_document: not the instance as it stands"
    if plan.instance != instance.name or plan.objective.name != instance.objective:
        yield "objective: not the name or the objective of the instance"


def _broken(plan: Plan, instance: Instance) -> list[str]:
    if plan.status in ("infeasible", "stopped"):
        return ["status: there is no plan to verify"]
    found = list(_named(plan, instance))
    if found:
        return found
    found = [*_cards(plan, instance), *_schemes(plan, instance), *_pool_limits(plan, instance)]
    if found:
        return found  # nothing below can be computed for pools that cannot be
    found.extend(_memory(plan, instance))
    topology = Topology(instance.hardware)
    for name, regime in _regimes(plan).items():
        found.extend(f"{text} {name}" for text in _flows(plan, instance, topology, regime))
    found.extend(_served(plan, instance))
    found.extend(_drain(plan, instance))
    found.extend(_proof(plan))
    return found or list(differences(plan, instance))


def _over(value: float, limit: float) -> bool:
    return not value <= limit + TOLERANCE * max(abs(limit), 1e-9)


def _differ(a: float, b: float) -> bool:
    return not math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-9)


def _named(plan: Plan, instance: Instance) -> Iterator[str]:
    """Everything that the plan names has to be there before anything is computed with it."""
    hardware = instance.hardware
    for pool in plan.pools:
        if pool.group not in hardware.groups or pool.model not in instance.models:
            yield f"pools: {pool.name} is on a group or model that is not in the instance"
        if pool.stage not in ("prefill", "decode", "both"):
            yield f"pools: {pool.name} has no known stage"
        if any(name not in instance.workloads for name in pool.rates):
            yield f"pools: {pool.name} serves a workload that is not in the instance"
        batched = all(pool.batches.get(name, 0) >= 1 for name in pool.rates)
        if pool.stage != "prefill" and not batched:
            yield f"pools: {pool.name} has no batch for a workload"
    for handoff in plan.handoffs:
        places = {handoff.source, handoff.target} <= set(hardware.groups)
        store = handoff.store is None or handoff.store in hardware.stores
        if handoff.workload not in instance.workloads or not places or not store:
            yield f"handoff[{handoff.name}]: from or to a place that is not in the instance"


def _cards(plan: Plan, instance: Instance) -> Iterator[str]:
    taken: dict[str, int] = {}
    names = [pool.name for pool in plan.pools]
    for pool in plan.pools:
        if names.count(pool.name) > 1:
            yield f"pools: {pool.name} is listed twice"
        group = instance.hardware.groups[pool.group]
        if pool.units < 1 or pool.cards_per_unit != 1 or pool.cards != pool.units * pool.cards_per_unit:
            yield f"pools: {pool.name} has {pool.cards} cards for {pool.units} units of {pool.cards_per_unit}"
        if pool.cards_per_unit > group.per_server:
            yield f"cards[{pool.group}]: a unit of {pool.name} does not fit in a server"
        taken[pool.group] = taken.get(pool.group, 0) + pool.cards
    for name, cards in taken.items():
        group = instance.hardware.groups[name]
        if cards > group.cards:
            yield f"cards[{name}]: {cards} used of {group.cards}"
            continue
        sizes = [p.cards_per_unit for p in plan.pools if p.group == name for _ in range(min(p.units, 1000))]
        if cards <= 1000 and not packs(sizes, group.servers, group.per_server):
            yield f"cards[{name}]: units do not pack into {group.servers} servers of {group.per_server}"


def packs(sizes: list[int], servers: int, per_server: int) -> bool:
    """Whether units of these sizes fit into servers, largest first into the first server with room."""
    room: list[int] = []
    for size in sorted(sizes, reverse=True):
        place = next((i for i, left in enumerate(room) if left >= size), None)
        if place is None:
            if len(room) == servers or size > per_server:
                return False
            room.append(per_server)
            place = len(room) - 1
        room[place] -= size
    return True


def _schemes(plan: Plan, instance: Instance) -> Iterator[str]:
    used = {pool.scheme for pool in plan.pools}
    for scheme in sorted(used | {handoff.scheme for handoff in plan.handoffs}):
        if scheme not in instance.schemes.allow:
            yield f"schemes: {scheme} is not allowed"
    if not instance.schemes.mix and len(used) > 1:
        yield f"schemes: {', '.join(sorted(used))} stand side by side where mix is false"
    for pool in plan.pools:
        if (pool.stage == "both") != (pool.scheme in ("replicas", "chunked")):
            yield f"pools: stage {pool.stage} of {pool.name} is no part of {pool.scheme}"


def _pool_limits(plan: Plan, instance: Instance) -> Iterator[str]:
    for index, limit in enumerate(instance.limits.pools):
        count = sum(
            pool.units
            for pool in plan.pools
            if limit.stage in (None, pool.stage)
            and limit.group in (None, pool.group)
            and limit.model in (None, pool.model)
            and limit.scheme in (None, pool.scheme)
        )
        low = limit.exactly if limit.exactly is not None else limit.at_least
        high = limit.exactly if limit.exactly is not None else limit.at_most
        if (low is not None and count < low) or (high is not None and count > high):
            yield f"pools[{index}]: {count} units, outside {low if low is not None else 0} to {high or 'any'}"


def _memory(plan: Plan, instance: Instance) -> Iterator[str]:
    for pool in plan.pools:
        shape = physics.shape_of(instance.models[pool.model])
        group = instance.hardware.groups[pool.group]
        usable = memory.usable_bytes(group.accelerator.memory, group.usable)
        held, buffer = 0.0, 0.0
        for name in pool.rates:
            longest = instance.workloads[name].admitted
            one = state.state_bytes(longest.input, shape.kv_per_token)
            if pool.stage == "prefill":
                buffer = max(buffer, memory.double_buffer_bytes(one))
                continue
            final = state.state_bytes(state.covered_tokens(longest.input, longest.output), shape.kv_per_token)
            held = max(held, final * pool.batches[name])
            buffer = max(buffer, 0.0 if pool.scheme == "replicas" else one)
        need = memory.resident_bytes(shape.resident, held, 1.0, buffer)
        if _over(need, usable):
            yield f"memory[{pool.name}]: {need:.6g} B of {usable:.6g} B"


Regime = tuple[Mapping[str, Mapping[str, float]], Mapping[str, float]]
"""Rates of every pool by workload, and of every handoff."""


def _regimes(plan: Plan) -> dict[str, Regime]:
    regimes: dict[str, Regime] = {
        f"at {word}": (
            {p.name: {n: getattr(r, f"at_{word}") for n, r in p.rates.items()} for p in plan.pools},
            {h.name: getattr(h.rate, f"at_{word}") for h in plan.handoffs},
        )
        for word in ("load", "capacity")
    }
    for number, phase in enumerate(plan.drain.phases if plan.drain else []):
        regimes[f"in phase {number} of the drain"] = (phase.pools, phase.handoffs)
    return regimes


def _flows(plan: Plan, instance: Instance, topology: Topology, regime: Regime) -> Iterator[str]:
    rates, carried = regime
    pools = {pool.name: pool for pool in plan.pools}
    for name, by_workload in rates.items():
        if name not in pools or any(w not in instance.workloads for w in by_workload):
            yield f"pools: {name} serves what the plan or instance does not name"
            return
        if any(rate < 0 or not math.isfinite(rate) for rate in by_workload.values()):
            yield f"pools: {name} has a rate that is no rate"
        yield from _capacity(pools[name], by_workload, instance)
    yield from _conserved(plan, instance, rates, carried)
    yield from _links(plan, instance, topology, carried)


def _capacity(pool: Pool, rates: Mapping[str, float], instance: Instance) -> Iterator[str]:
    busy = [0.0, 0.0]
    for name, rate in rates.items():
        if rate and instance.workloads[name].model != pool.model:
            yield f"pools: {pool.name} serves {name}, a workload of another model"
        if rate and name not in pool.rates:
            yield f"pools: {pool.name} serves {name}, which does not fit in it"
        need = _seconds(pool, instance, name)
        busy = [have + rate * more for have, more in zip(busy, need, strict=True)]
    if _over(max(busy), pool.units):
        yield f"capacity[{pool.name}]: {max(busy):.6g} of {pool.units} units busy"


def _seconds(pool: Pool, instance: Instance, name: str) -> tuple[float, float]:
    """Compute and memory seconds of a request; twice the same where the unit does one thing at a time."""
    workload = instance.workloads[name]
    shape = physics.shape_of(instance.models[pool.model])
    gpu = physics.device_of(instance, instance.hardware.groups[pool.group], shape.precision)
    first = physics.workload_prefill(shape, gpu, workload)
    if pool.stage == "prefill":
        return first.seconds, first.seconds
    calls, batch = workload.output - 1, pool.batches.get(name, 1)
    step = physics.workload_decode(shape, gpu, workload)
    compute = calls * step.compute
    read = calls * (step.fixed / batch + step.memory)
    if pool.stage == "decode":
        return compute, read
    if pool.scheme == "chunked":
        return first.compute + compute, first.memory + read
    serial = first.seconds + max(compute, read)
    return serial, serial


def _conserved(
    plan: Plan, instance: Instance, rates: Mapping[str, Mapping[str, float]], carried: Mapping[str, float]
) -> Iterator[str]:
    known = {handoff.name: handoff for handoff in plan.handoffs}
    if any(name not in known for name in carried):
        yield "handoffs: a phase names one that the plan does not list"
        return
    for name, workload in instance.workloads.items():
        if workload.output == 1:
            continue
        for group in instance.hardware.groups:
            for stage, end in (("prefill", "source"), ("decode", "target")):
                here = sum(
                    rates.get(pool.name, {}).get(name, 0.0)
                    for pool in plan.pools
                    if pool.stage == stage and pool.group == group
                )
                crossing = sum(
                    rate
                    for key, rate in carried.items()
                    if known[key].workload == name and getattr(known[key], end) == group
                )
                if abs(here - crossing) > TOLERANCE * max(here, crossing, plan.throughput or 0.0):
                    yield f"handoff[{name},{stage}@{group}]: {here:.6g} requests/s there, {crossing:.6g} handed over"


def _links(plan: Plan, instance: Instance, topology: Topology, carried: Mapping[str, float]) -> Iterator[str]:
    used: dict[str, float] = {}
    stored: dict[str, float] = {}
    for handoff in plan.handoffs:
        rate = carried.get(handoff.name, 0.0)
        workload = instance.workloads[handoff.workload]
        payload = workload.input * physics.shape_of(instance.models[workload.model]).kv_per_token
        ends = [handoff.source, handoff.store, handoff.target] if handoff.store else [handoff.source, handoff.target]
        if (handoff.store is None) != (handoff.scheme == "pd-direct"):
            yield f"handoff[{handoff.name}]: {handoff.scheme} goes another way"
        paths = [topology.path(a, b, payload) for a, b in itertools.pairwise(ends) if a and b]
        stay, store = 0.0, instance.hardware.stores[handoff.store] if handoff.store else None
        for path in paths:
            if path is None:
                yield f"handoff[{handoff.name}]: the places are not connected"
                return
            own = store.write if store and path is paths[0] else store.read if store else None
            stay += max(path.seconds(payload), payload / own if own else 0.0)
            for channel in path.channels:
                used[channel] = used.get(channel, 0.0) + rate * payload
        if handoff.store:
            stored[handoff.store] = stored.get(handoff.store, 0.0) + rate * payload * stay
            yield from _store(instance, handoff.store, rate, payload)
    for channel, load in used.items():
        if _over(load, topology.channels[channel].capacity):
            yield f"link[{channel}]: {load:.6g} of {topology.channels[channel].capacity:.6g} B/s"
    for name, held in stored.items():
        if _over(held, instance.hardware.stores[name].capacity):
            yield f"store[{name}]: {held:.6g} of {instance.hardware.stores[name].capacity:.6g} B"


def _store(instance: Instance, name: str, rate: float, payload: float) -> Iterator[str]:
    store = instance.hardware.stores[name]
    if payload > store.capacity:
        yield f"store[{name}]: one state does not fit"
    for word, bandwidth in (("write", store.write), ("read", store.read)):
        if bandwidth is not None and _over(rate * payload, bandwidth):
            yield f"store[{name},{word}]: {rate * payload:.6g} of {bandwidth:.6g} B/s"


def _begun(plan: Plan, rates: Mapping[str, Mapping[str, float]], name: str) -> float:
    return sum(rates.get(p.name, {}).get(name, 0.0) for p in plan.pools if p.stage != "decode")


def _served(plan: Plan, instance: Instance) -> Iterator[str]:
    regimes, throughput = _regimes(plan), plan.throughput or 0.0
    if _over(instance.rate, throughput):
        yield f"sustain: {throughput:.6g} requests/s for {instance.rate:.6g} that arrive"
    for name, workload in instance.workloads.items():
        wanted = {"at load": workload.rate, "at capacity": throughput * workload.rate / instance.rate}
        for word, rate in wanted.items():
            begun = _begun(plan, regimes[word][0], name)
            if _differ(begun, rate):
                yield f"serve[{name}] {word}: {begun:.6g} of {rate:.6g} requests/s"


def _drain(plan: Plan, instance: Instance) -> Iterator[str]:
    deadline = instance.service.drain
    if plan.drain is None or plan.drain.drained_s is None:
        if deadline is not None:
            yield "drain: the plan does not say when the backlog is gone"
        return
    done, at = dict.fromkeys(instance.workloads, 0.0), 0.0
    for phase in plan.drain.phases:
        if phase.start_s < at - 1e-9 or phase.end_s < phase.start_s:
            yield "drain: phases overlap"
        at = phase.end_s
        for name, workload in instance.workloads.items():
            done[name] += (phase.end_s - phase.start_s) * _begun(plan, phase.pools, name)
            if _over(done[name], workload.rate * at):
                yield f"drain[{name}]: serves more than has arrived by second {at:.6g}"
        for pool in plan.pools:
            busy = any(rate > 1e-9 for rate in phase.pools.get(pool.name, {}).values())
            if busy and phase.start_s < instance.startup(pool.group) * (1.0 - TOLERANCE):
                yield f"drain: {pool.name} serves before it is ready"
    end = plan.drain.drained_s
    if plan.drain.phases and _differ(at, end):
        yield f"drain: phases end in second {at:.6g}, not {end:.6g}"
    for name, workload in instance.workloads.items():
        if plan.drain.phases and _differ(done[name], workload.rate * end):
            yield f"drain[{name}]: {done[name]:.6g} of {workload.rate * end:.6g} requests served by second {end:.6g}"
    if not plan.drain.phases and end > 0:
        yield "drain: no phases show how the backlog goes"
    if deadline is not None and _over(end, deadline):
        yield f"drain: gone in second {end:.6g}, after the deadline of {deadline:.6g} s"


def _proof(plan: Plan) -> Iterator[str]:
    goal = plan.objective
    if not plan.verified:
        yield "verified: the plan says that it was not"
    if (goal.bound is None) != (goal.gap is None):
        yield "objective.gap: stands without a bound, or a bound without it"
    if goal.value is not None and goal.gap is not None and goal.bound is not None:
        real = abs(goal.value - goal.bound) / max(abs(goal.value), 1e-9)
        if not math.isclose(goal.gap, real, rel_tol=1e-3, abs_tol=1e-9):
            yield f"objective.gap: says {goal.gap:.3g}, recomputed {real:.3g}"
    if plan.status == "optimal" and (goal.gap is None or goal.gap > TOLERANCE):
        yield f"objective: called optimal with a gap of {goal.gap}"
    if goal.value is None or goal.bound is None:
        return
    worse = goal.bound - goal.value if goal.name == "throughput" else goal.value - goal.bound
    if worse < -TOLERANCE * max(abs(goal.value), 1e-9):
        yield f"objective: the value {goal.value:.6g} is better than its own bound {goal.bound:.6g}"
