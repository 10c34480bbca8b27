"""Flows of a plan against the formulas: units keep up, requests are neither lost nor made, links and stores hold.

Part of the verifier: nothing here knows the rows of the optimisation model.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from models.instance import Instance
from models.plan import Handoff, Plan, Pool
from models.workload import Workload
from solver import feature_flows, physics
from solver.recomputed import Built, built_of
from solver.tiers import check
from solver.tiers.parts import cached_tokens
from solver.topology import Topology

TOLERANCE = 1e-6
"""Relative; below every digit shown."""


def over(value: float, limit: float) -> bool:
    """Whether ``value`` is above ``limit`` by more than rounding."""
    return not value <= limit + TOLERANCE * max(abs(limit), 1e-9)


def differ(a: float, b: float) -> bool:
    """Whether two numbers are not the same but for rounding."""
    return not math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-9)


Regime = tuple[Mapping[str, Mapping[str, float]], Mapping[str, float]]
"""Rates of every pool by workload, and of every handoff."""


def regimes(plan: Plan) -> dict[str, Regime]:
    """Flows at load, at capacity, and in every phase of the drain, by the words that name them."""
    found: dict[str, Regime] = {
        f"at {word}": (
            {p.name: {n: getattr(r, f"at_{word}") for n, r in p.rates.items()} for p in plan.pools},
            {h.name: getattr(h.rate, f"at_{word}") for h in plan.handoffs},
        )
        for word in ("load", "capacity")
    }
    for number, phase in enumerate(plan.drain.phases if plan.drain else []):
        found[f"in phase {number} of the drain"] = (phase.pools, phase.handoffs)
    return found


def violations(
    plan: Plan, instance: Instance, topology: Topology, regime: Regime, fewer: int = 0, word: str | None = None
) -> Iterator[str]:
    """What one regime breaks, with so many units fewer in every pool; ``word`` names one that finds what was kept."""
    rates, carried = regime
    pools = {pool.name: pool for pool in plan.pools}
    for name, by_workload in rates.items():
        if name not in pools or any(w not in instance.workloads for w in by_workload):
            yield f"pools: {name} serves what the plan or instance does not name"
            return
        if any(rate < 0 or not math.isfinite(rate) for rate in by_workload.values()):
            yield f"pools: {name} has a rate that is no rate"
        yield from _allowed(pools[name], by_workload, instance)
    for pool in plan.pools:
        if pool.shares is None and pool.part_of is None:
            uses = [other for other in plan.pools if pool.name in (other.name, other.shares)]
            yield from _capacity([built_of(plan, use, instance, topology) for use in uses], rates, fewer, word)
    yield from _conserved(plan, instance, rates, carried)
    yield from _links(plan, instance, topology, regime, word)


def _allowed(pool: Pool, rates: Mapping[str, float], instance: Instance) -> Iterator[str]:
    for name, rate in rates.items():
        workload = instance.workloads[name]
        if rate and workload.model != pool.model:
            yield f"pools: {pool.name} serves {name}, a workload of another model"
        if rate and not workload.may_use(pool.group):
            yield f"pools: {pool.name} serves {name}, which may not use {pool.group}"
        if rate and name not in pool.rates:
            yield f"pools: {pool.name} serves {name}, which does not fit in it"
        target = workload.targets.tpot if workload.decodes else None
        if rate and pool.step_s is not None and target is not None and over(pool.step_s, target):
            yield f"targets[{name},tpot]: {pool.name} is paced by {pool.step_s:.6g} s, target {target:.6g} s"


def _capacity(
    uses: Sequence[Built], rates: Mapping[str, Mapping[str, float]], fewer: int, word: str | None
) -> Iterator[str]:
    """A pool with all its uses keeps up."""
    pool, busy = uses[0].pool, [0.0]
    for built in uses:
        for name, rate in rates.get(built.pool.name, {}).items():
            need = built.seconds(name)
            busy = busy if len(busy) == len(need) else [0.0] * len(need)
            busy = [have + rate * more for have, more in zip(busy, need, strict=True)]
            found = built.pool.hits.get(name, []) if word else []
            for tokens, hits in zip(cached_tokens(built.instance.workloads[name]), found, strict=False):
                less, part = built.seconds(name, tokens), getattr(hits, word or "")
                busy = [have - part * (a - b) for have, a, b in zip(busy, need, less, strict=True)]
    if over(max(busy), max(0, pool.units - fewer)):
        left = f" less {fewer} to spare" if fewer else ""
        yield f"capacity[{pool.name}]: {max(busy):.6g} of {pool.units} units{left} busy"


def _conserved(
    plan: Plan, instance: Instance, rates: Mapping[str, Mapping[str, float]], carried: Mapping[str, float]
) -> Iterator[str]:
    known = {handoff.name: handoff for handoff in plan.handoffs}
    if any(name not in known for name in carried):
        yield "handoffs: a phase names one that the plan does not list"
        return
    for name, workload in instance.workloads.items():
        for group in instance.hardware.groups:
            for stage in STAGES if workload.decodes else ENCODED:
                here = sum(
                    rates.get(pool.name, {}).get(name, 0.0)
                    for pool in plan.pools
                    if _stage(pool, workload) == stage and pool.group == group and pool.part_of is None
                )
                crossing = sum(
                    rate
                    for key, rate in carried.items()
                    if known[key].workload == name and _ends(known[key]).get(stage) == group
                )
                if abs(here - crossing) > TOLERANCE * max(here, crossing, plan.throughput or 0.0):
                    yield f"handoff[{name},{stage}@{group}]: {here:.6g} requests/s there, {crossing:.6g} handed over"


ENCODED = ("encode", "prefill after encode")
"""Stages of requests whose images are encoded on units of their own, without decode."""
STAGES = (*ENCODED, "prefill", "decode")


def _stage(pool: Pool, workload: Workload) -> str:
    """What a pool does for requests of a workload, as places where flows have to balance tell stages apart."""
    after = pool.serves == "prefill" and pool.scheme == "encode-pd" and workload.images > 0.0
    return "prefill after encode" if after else pool.serves


def _ends(handoff: Handoff) -> dict[str, str | None]:
    """Group of each stage that a handoff comes from or goes to."""
    before = "prefill" if handoff.features is None else "prefill after encode"
    ends: dict[str, str | None] = {before: handoff.source, "decode": handoff.target}
    return ends if handoff.features is None else {**ends, "encode": handoff.features.encoder}


def _links(plan: Plan, instance: Instance, topology: Topology, regime: Regime, word: str | None) -> Iterator[str]:
    rates, carried = regime
    used: dict[str, float] = {}
    if word and plan.tiers:
        used.update(check.crossing(plan, check.kept_of(instance, topology), word, topology))
    for pool in plan.pools:
        built = built_of(plan, pool, instance, topology)
        tokens = sum(rate * built.tokens(name) for name, rate in rates.get(pool.name, {}).items())
        for leg in built.legs if tokens else ():
            for channel in leg.path.channels:
                used[channel] = used.get(channel, 0.0) + tokens * leg.per_token
    yield from feature_flows.violations(plan, instance, topology, regime, used)
    stored: dict[str, float] = {}
    for handoff in plan.handoffs:
        rate = carried.get(handoff.name, 0.0)
        workload = instance.workloads[handoff.workload]
        shape = physics.shape_of(instance.models[workload.model])
        payload, longest = physics.handoff_payload(shape, workload), physics.longest_payload(shape, workload)
        ends = [handoff.source, handoff.store, handoff.target] if handoff.store else [handoff.source, handoff.target]
        if (handoff.store is None) != (handoff.scheme != "pd-pooled"):
            yield f"handoff[{handoff.name}]: {handoff.scheme} goes another way"
        paths = [topology.path(a, b, longest) for a, b in itertools.pairwise(ends) if a and b]
        held, store = 0.0, instance.hardware.stores[handoff.store] if handoff.store else None
        for path in paths:
            if path is None:
                yield f"handoff[{handoff.name}]: the places are not connected"
                return
            own = store.write if store and path is paths[0] else store.read if store else None
            for share, size in physics.handoff_sizes(shape, workload):
                held += share * size * max(path.seconds(size), size / own if own else 0.0)
            for channel in path.channels:
                used[channel] = used.get(channel, 0.0) + rate * payload
        if handoff.store:
            stored[handoff.store] = stored.get(handoff.store, 0.0) + rate * held
            yield from _store(instance, handoff.store, rate, payload, longest)
    for channel, load in used.items():
        if over(load, topology.channels[channel].capacity):
            yield f"link[{channel}]: {load:.6g} of {topology.channels[channel].capacity:.6g} B/s"
    for name, held in stored.items():
        if over(held, instance.hardware.stores[name].capacity):
            yield f"store[{name}]: {held:.6g} of {instance.hardware.stores[name].capacity:.6g} B"


def _store(instance: Instance, name: str, rate: float, payload: float, longest: float) -> Iterator[str]:
    store = instance.hardware.stores[name]
    if longest > store.capacity:
        yield f"store[{name}]: one state does not fit"
    for word, bandwidth in (("write", store.write), ("read", store.read)):
        if bandwidth is not None and over(rate * payload, bandwidth):
            yield f"store[{name},{word}]: {rate * payload:.6g} of {bandwidth:.6g} B/s"
