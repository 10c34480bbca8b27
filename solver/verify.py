"""Independent check of a finished plan: recomputed from the formulas, never from the rows that made it.

First the limits, from the plan's own counts and flows: cards exist and units pack into servers, memory holds, units
and links carry their flows at load, at capacity and in every phase of the drain, requests are conserved, promises are
kept. Then every number the plan reports is computed again and compared.
"""

import math
from collections.abc import Iterator, Mapping

from models.instance import Instance, digest
from models.plan import Plan, Pool
from solver import conservation, startup
from solver.conservation import TOLERANCE, differ, over, regimes
from solver.recomputed import built_of
from solver.reported import differences
from solver.standing import cards, held
from solver.tiers import check
from solver.topology import Topology

PARTED = {("both", "attention"), ("decode", "attention")}
SEPARATED = {("prefill", "prefill"), ("decode", "decode")}
STAGES: dict[str, set[tuple[str, str]]] = {
    "replicas": {("both", "both")},
    "chunked": {("both", "both")},
    "pd-direct": SEPARATED,
    "pd-pooled": SEPARATED,
    "hybrid": {("both", "both"), *SEPARATED},
    "attention-ffn": {*PARTED, ("prefill", "prefill"), ("both", "ffn"), ("decode", "ffn")},
    "expert-pool": {*PARTED, ("prefill", "prefill"), ("both", "expert"), ("decode", "expert")},
    "cpu-experts": {("both", "both")},
    "encode-pd": {("encode", "encode"), *SEPARATED},
}
"""What pools of a scheme do, and the stages that they are."""
KNOWN = {stage for pairs in STAGES.values() for _, stage in pairs}


def verify(plan: Plan, instance: Instance) -> list[str]:
    """Violations, each named after the limit it breaks; an empty list when the plan holds."""
    return [*_identity(plan, instance), *_broken(plan, instance)]


def _identity(plan: Plan, instance: Instance) -> Iterator[str]:
    document = instance.document()
    if plan.instance_document != document or plan.instance_sha256 != digest(document):
        yield "instance_document: not the instance as it stands"
    if plan.instance != instance.name or plan.objective.name != instance.objective:
        yield "objective: not the name or the objective of the instance"


def _broken(plan: Plan, instance: Instance) -> list[str]:
    if plan.status in ("infeasible", "stopped"):
        return ["status: there is no plan to verify"]
    found = list(_named(plan, instance))
    if found:
        return found
    topology, _ = Topology(instance.hardware).widened(
        {bought.name: bought.count for bought in plan.purchases if bought.kind == "link step"}
    )
    found = [*cards(plan, instance, topology), *_schemes(plan, instance), *_pool_limits(plan, instance)]
    found.extend(_unit_limits(plan, instance))
    if found:
        return found  # nothing below can be computed for pools that cannot be
    found.extend(held(plan, instance, topology))
    spare = instance.limits.spare.units if instance.limits.spare else 0
    if instance.reuses:
        built = {pool.name: built_of(plan, pool, instance, topology) for pool in plan.pools}
        found.extend(check.violations(plan, instance, check.kept_of(instance, topology), built))
    warm = {"at load": "at_load", "at capacity": "at_capacity"} if instance.reuses else {}
    for name, regime in regimes(plan).items():
        fewer = spare if name == "at load" else 0
        violations = conservation.violations(plan, instance, topology, regime, fewer, warm.get(name))
        found.extend(f"{text} {name}" for text in violations)
    found.extend(_targets(plan, instance))
    found.extend(_served(plan, instance))
    found.extend(_drain(plan, instance, topology))
    found.extend(_proof(plan))
    return found or list(differences(plan, instance))


def _named(plan: Plan, instance: Instance) -> Iterator[str]:
    """Everything that the plan names has to be there before anything is computed with it."""
    hardware = instance.hardware
    for pool in plan.pools:
        if pool.group not in hardware.groups or pool.model not in instance.models:
            yield f"pools: {pool.name} is on a group or model that is not in the instance"
        if pool.serves not in ("encode", "prefill", "decode", "both") or pool.stage not in KNOWN:
            yield f"pools: {pool.name} has no known stage"
        if any(name not in instance.workloads for name in pool.rates):
            yield f"pools: {pool.name} serves a workload that is not in the instance"
        batched = all(pool.batches.get(name, 0) >= 1 for name in pool.rates)
        if pool.serves in ("decode", "both") and not batched and pool.measured is None:
            yield f"pools: {pool.name} has no batch for a workload"
    for handoff in plan.handoffs:
        places = {handoff.source, handoff.target} <= set(hardware.groups)
        store = handoff.store is None or handoff.store in hardware.stores
        if handoff.features is not None:
            places = places and handoff.features.encoder in (None, *hardware.groups)
            store = store and handoff.features.cache in (None, *hardware.stores)
        if handoff.workload not in instance.workloads or not places or not store:
            yield f"handoff[{handoff.name}]: from or to a place that is not in the instance"


def _schemes(plan: Plan, instance: Instance) -> Iterator[str]:
    used = {pool.scheme for pool in plan.pools}
    for scheme in sorted(used | {handoff.scheme for handoff in plan.handoffs}):
        if scheme not in instance.schemes.allow:
            yield f"schemes: {scheme} is not allowed"
    if not instance.schemes.mix and len(used) > 1:
        yield f"schemes: {', '.join(sorted(used))} stand side by side where mix is false"
    for pool in plan.pools:
        if (pool.serves, pool.stage) not in STAGES.get(pool.scheme, set()):
            yield f"pools: stage {pool.stage} of {pool.name} is no part of {pool.scheme}"


def _pool_limits(plan: Plan, instance: Instance) -> Iterator[str]:
    for index, limit in enumerate(instance.limits.pools):
        count = sum(
            pool.units
            for pool in plan.pools
            if pool.shares is None
            and pool.part_of is None
            and limit.model in (None, pool.model)
            and limit.scheme in (None, pool.scheme)
            and any(
                limit.stage in (None, one.stage, one.serves) and limit.group in (None, one.group)
                for one in plan.pools
                if pool.name in (one.name, one.part_of)
            )
        )
        low = limit.exactly if limit.exactly is not None else limit.at_least
        high = limit.exactly if limit.exactly is not None else limit.at_most
        if (low is not None and count < low) or (high is not None and count > high):
            most = "any" if high is None else high
            yield f"pools[{index}]: {count} units, outside {low if low is not None else 0} to {most}"


def _unit_limits(plan: Plan, instance: Instance) -> Iterator[str]:
    """Units of each pool that is there."""
    limits = instance.limits
    for pool in plan.pools:
        if limits.units is not None and pool.units < limits.units.at_least:
            yield f"units[{pool.name}]: {pool.units} of at least {limits.units.at_least}"


def _targets(plan: Plan, instance: Instance) -> Iterator[str]:
    """Times that the plan states, which are recomputed elsewhere, against the targets."""
    for name, workload in instance.workloads.items():
        said = plan.workloads.get(name)
        if said is None:
            yield f"workloads: {name} is missing"
            continue
        for word, target, times in (
            ("ttft", workload.targets.ttft, said.ttft_s),
            ("tpot", workload.targets.tpot if workload.decodes else None, said.tpot_s),
        ):
            for when, seconds in (("load", times.at_load), ("capacity", times.at_capacity)):
                if target is not None and (seconds is None or over(seconds, target)):
                    yield f"targets[{name},{word}]: {seconds} s at {when}, target {target:.6g} s"


def _begun(plan: Plan, rates: Mapping[str, Mapping[str, float]], name: str) -> float:
    return sum(rates.get(p.name, {}).get(name, 0.0) for p in plan.pools if p.begins)


def _served(plan: Plan, instance: Instance) -> Iterator[str]:
    flows, throughput = regimes(plan), plan.throughput or 0.0
    if not instance.drops and over(instance.rate, throughput):
        yield f"sustain: {throughput:.6g} requests/s for {instance.rate:.6g} that arrive"
    for name, workload in instance.workloads.items():
        served = plan.workloads[name].served if name in plan.workloads else 0.0
        if over(served, workload.rate) or over(workload.minimum_share * workload.rate, served):
            least = workload.minimum_share * workload.rate
            yield f"served[{name}]: {served:.6g} requests/s, outside {least:.6g} to {workload.rate:.6g}"
        wanted = {"at load": served, "at capacity": throughput * workload.rate / instance.rate}
        for word, rate in wanted.items():
            begun = _begun(plan, flows[word][0], name)
            if differ(begun, rate):
                yield f"serve[{name}] {word}: {begun:.6g} of {rate:.6g} requests/s"


def _ready(plan: Plan, pool: Pool, instance: Instance, topology: Topology) -> float:
    """Second at which the units of a pool are ready."""
    unit = instance.measured.get(pool.measured or "")
    if unit is not None:
        return instance.startup(pool.group) if unit.startup is None else unit.startup
    built = built_of(plan, pool, instance, topology)
    parts = (part.memory.weights + part.memory.experts for part in built.parts if part.memory is not None)
    heaviest = max(built.weights, *parts, 0.0)
    return startup.seconds(instance, pool.group, heaviest)


def _drain(plan: Plan, instance: Instance, topology: Topology) -> Iterator[str]:
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
            if over(done[name], workload.rate * at):
                yield f"drain[{name}]: serves more than has arrived by second {at:.6g}"
        for pool in plan.pools:
            busy = any(rate > 1e-9 for rate in phase.pools.get(pool.name, {}).values())
            ready = _ready(plan, pool, instance, topology) if busy else 0.0
            if busy and phase.start_s < ready * (1.0 - TOLERANCE):
                yield f"drain: {pool.name} serves before it is ready"
    end = plan.drain.drained_s
    if plan.drain.phases and differ(at, end):
        yield f"drain: phases end in second {at:.6g}, not {end:.6g}"
    for name, workload in instance.workloads.items():
        if plan.drain.phases and differ(done[name], workload.rate * end):
            yield f"drain[{name}]: {done[name]:.6g} of {workload.rate * end:.6g} requests served by second {end:.6g}"
    if not plan.drain.phases and end > 0:
        yield "drain: no phases show how the backlog goes"
    if deadline is not None and over(end, deadline):
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
    worse = goal.bound - goal.value if goal.name in ("throughput", "headroom") else goal.value - goal.bound
    if worse < -TOLERANCE * max(abs(goal.value), 1e-9):
        yield f"objective: the value {goal.value:.6g} is better than its own bound {goal.bound:.6g}"
