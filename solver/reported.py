"""Every number that a plan reports, computed again from its counts and flows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from models.instance import Instance
from models.plan import Plan, Pool
from solver import assemble, bill, times, usage
from solver.candidate import Candidate
from solver.chosen import Chosen
from solver.data import Data, gather
from solver.formulas import drain as fluid
from solver.regimes import DrainPhase, Settled
from solver.tiers import stated, told


def differences(plan: Plan, instance: Instance) -> Iterator[str]:
    """Places where the plan says something else than its own counts and flows give."""
    found = _match(plan, gather(instance).only(instance.schemes.allow if instance.schemes.mix else [plan.scheme or ""]))
    if isinstance(found, str):
        yield found
        return
    chosen, phases = found
    drained = None if plan.drain is None or plan.drain.drained_s is None else (plan.drain.drained_s, phases)
    drain = assemble.drain(chosen, drained)
    again = {
        "pools": assemble.pools(chosen),
        "handoffs": assemble.handoffs(chosen, phases),
        "tiers": told.tiers(chosen),
        "experts": assemble.experts(chosen),
        "workloads": times.workloads(chosen),
        "resources": usage.resources(chosen, drain),
        "drain": drain,
        "cost": bill.cost(chosen),
        "purchases": usage.purchases(chosen),
        "traffic": usage.traffic(chosen),
    }
    for key, value in again.items():
        yield from _unlike(key, _plain(getattr(plan, key)), _plain(value))
    yield from _objective(plan, chosen)
    schemes = {pool.scheme for pool in plan.pools}
    yield from _unlike("scheme", plan.scheme, next(iter(schemes)) if len(schemes) == 1 else "mixed")


def _headroom(chosen: Chosen) -> float | None:
    """Largest multiple of the arrivals where one startup time gives it in closed form."""
    instance = chosen.instance
    starts = {c.startup for _, c in chosen.used}
    if instance.limits.spare is not None or (len(starts) > 1 and instance.service.drain is not None):
        return None
    deadline = instance.service.drain
    needed = instance.rate if deadline is None else fluid.required_rate(instance.rate, max(starts), deadline)
    return chosen.settled.throughput / max(instance.rate, needed)


def _match(plan: Plan, data: Data) -> tuple[Chosen, list[DrainPhase]] | str:
    """The candidates and flows that the plan speaks of, or what does not match."""
    indices = {}
    pools = [pool for pool in plan.pools if pool.part_of is None]
    for pool in pools:
        match = [
            i
            for i, c in enumerate(data.candidates)
            if (c.stage, c.pools[0][0], c.group, c.model) == (pool.serves, pool.stage, pool.group, pool.model)
            and pool.scheme in c.schemes
            and set(c.demand) == set(pool.rates)
            and (pool.serves in ("prefill", "encode") or dict(c.batches) == pool.batches)
            and c.face == (pool.shares is not None)
            and c.measured == pool.measured
            and _same_cut(c, pool, [part for part in plan.pools if part.part_of == pool.name])
            and math.isclose(c.tau or 0.0, pool.step_s or 0.0, rel_tol=1e-12)
        ]
        if not match:
            return f"pools: {pool.name} cannot be built like that"
        indices[pool.name] = match[0]
    names = {i: name for name, i in indices.items()}
    order = [indices[pool.name] for pool in pools]
    candidates = tuple(replace(data.candidates[i], name=names[i]) for i in order)
    place = {pool.name: number for number, pool in enumerate(pools)}
    steps = {bought.name: bought.count for bought in plan.purchases if bought.kind == "link step"}
    bundles = {bought.name: bought.count for bought in plan.purchases if bought.kind != "link step"}
    found = None if data.kept is None else stated.of(plan, data.kept)
    if isinstance(found, str):
        return found
    choice = None if found is None else found.choice
    mine = Data(data.instance, data.topology, data.schemes, candidates, data.routes, (), data.kept, choice)
    mine = mine.widened(steps)
    numbers = {(assemble.route_name(r), r.scheme): n for n, r in enumerate(data.routes)}
    at = {h.name: numbers.get((h.name, h.scheme)) for h in plan.handoffs}
    if None in at.values():
        return "handoffs: one of them has no path in the instance"
    routes, loads = [0.0] * len(data.routes), [0.0] * len(data.routes)
    for handoff in plan.handoffs:
        routes[at[handoff.name] or 0] = handoff.rate.at_capacity
        loads[at[handoff.name] or 0] = handoff.rate.at_load
    rates = {(n, place[p.name]): r.at_capacity for p in pools for n, r in p.rates.items()}
    loaded = {(n, place[p.name]): r.at_load for p in pools for n, r in p.rates.items()}
    phases = []
    for phase in plan.drain.phases if plan.drain else []:
        crossing = [0.0] * len(data.routes)
        for name, rate in phase.handoffs.items():
            crossing[at.get(name) or 0] = rate
        served = {(n, place[p]): rate for p, row in phase.pools.items() for n, rate in row.items()}
        phases.append(DrainPhase(phase.start_s, phase.end_s, served, tuple(crossing)))
    settled = Settled(plan.throughput or 0.0, rates, tuple(routes))
    taken = {name: result.served for name, result in plan.workloads.items()}
    load = Settled(sum(taken.values()), loaded, tuple(loads), taken)
    if found is not None:
        hits = [stated.hits(plan, place, word) for word in ("at_capacity", "at_load")]
        settled = replace(settled, hits=hits[0], held=found.capacity)
        load = replace(load, hits=hits[1], held=found.load)
    return Chosen(mine, tuple(pool.units for pool in pools), settled, load, bundles, steps), phases


def _same_cut(candidate: Candidate, pool: Pool, parts: Sequence[Pool]) -> bool:
    """Whether a pool is cut like a candidate, and has the same parts."""
    cut, said = candidate.cut, pool.parallelism
    if cut is None:
        return (candidate.tp, candidate.pp) == (said.tp, said.pp)
    mine = (cut.tp, cut.pp, cut.ep, cut.dp, cut.micro, cut.resident, cut.redundant)
    kept = (pool.resident_experts, pool.redundant_experts)
    theirs = (said.tp, said.pp, said.ep, said.dp, pool.micro_batches, *kept)
    beside = [(part.stage, part.group, part.cards, part.tp, part.ep) for part in candidate.parts]
    stated = [(p.stage, p.group, p.cards_per_unit, p.parallelism.tp, p.parallelism.ep) for p in parts]
    return mine == theirs and beside == stated


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.model_dump() if hasattr(value, "model_dump") else value


def _unlike(path: str, said: Any, found: Any) -> Iterator[str]:
    if isinstance(said, dict) and isinstance(found, dict):
        for key in sorted({*said, *found}):
            if key not in said or key not in found:
                yield f"{path}.{key}: {'missing' if key not in said else 'not part of the plan'}"
            else:
                yield from _unlike(f"{path}.{key}", said[key], found[key])
    elif isinstance(said, list) and isinstance(found, list):
        if len(said) != len(found):
            yield f"{path}: {len(said)} entries, {len(found)} expected"
        for index, (a, b) in enumerate(zip(said, found, strict=False)):
            yield from _unlike(f"{path}[{index}]", a, b)
    elif isinstance(said, float) and isinstance(found, int | float) and not isinstance(found, bool):
        if not math.isclose(said, found, rel_tol=1e-6, abs_tol=1e-9):
            yield f"{path}: says {said!r}, recomputed {found!r}"
    elif said != found:
        yield f"{path}: says {said!r}, recomputed {found!r}"


def _objective(plan: Plan, chosen: Chosen) -> Iterator[str]:
    if plan.objective.name != chosen.instance.objective:
        return  # said elsewhere
    value = bill.objective_value(chosen, plan.cost, _headroom(chosen))
    if plan.objective.name == "headroom" and value is None:  # several startup times: the bound that needs no program
        most, said = chosen.settled.throughput / chosen.instance.rate, plan.objective.value or 0.0
        if said > most * (1.0 + 1e-6):
            yield f"objective.value: says {said!r}, at most {most!r}"
    else:
        yield from _unlike("objective.value", plan.objective.value, value)
    unit = bill.objective_unit(plan.objective.name, chosen.instance)
    yield from _unlike("objective.unit", plan.objective.unit, unit)
