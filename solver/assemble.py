"""From counts and flows to a plan: pools, handoffs and the startup backlog, in the words of the contract."""

from collections.abc import Sequence
from typing import Any

from models.plan import Drain, FeatureHandoff, Handoff, Memory, Parallelism, Phase, Pool, Servers
from models.plan_tiers import Load
from solver.candidate import Candidate
from solver.chosen import Chosen, scheme_of
from solver.cut import Part
from solver.formulas import drain as fluid
from solver.layouts.apart import Apart
from solver.layouts.spread import Spread
from solver.regimes import DrainPhase
from solver.routes import Route
from solver.shapes import shape_of
from solver.tiers import told


def pools(chosen: Chosen) -> list[Pool]:
    """Every pool with units, idle ones too."""
    described = []
    for index, candidate in chosen.used:
        count, rates, loaded = chosen.counts[index], chosen.rates(index), chosen.rates(index, chosen.load)
        shares = rates if sum(rates.values()) > 0 else {n: chosen.instance.workloads[n].rate for n in rates}
        needs = chosen.needs(index, chosen.settled)
        alone = sum(shares.values()) / max(
            sum(shares[n] * need[k] for n, need in needs.items()) / count for k in range(len(candidate.resources))
        )
        known = candidate.stage not in ("prefill", "encode") and (
            candidate.measured is None or chosen.instance.measured[candidate.measured].batch is not None
        )
        cut, owner = candidate.cut, chosen.data.candidates[chosen.data.owners[index]]
        inside = 0 if cut is None else cut.inside
        described.append(
            Pool(
                name=candidate.name,
                scheme=scheme_of(chosen, index),
                stage=candidate.pools[0][0],
                serves=candidate.stage,
                group=candidate.group,
                model=candidate.model,
                units=count,
                cards_per_unit=owner.cards - inside,
                cards=0 if candidate.face else count * (candidate.cards - inside),
                parallelism=Parallelism(tp=candidate.tp, pp=candidate.pp) if cut is None else cut.parallelism,
                micro_batches=1 if cut is None else cut.micro,
                resident_experts=None if cut is None else cut.resident,
                redundant_experts=0 if cut is None else cut.redundant,
                batch=max(candidate.batches.values()) if known else None,
                batches={} if candidate.stage in ("prefill", "encode") else dict(candidate.batches),
                shares=owner.name if candidate.face else None,
                step_s=candidate.tau,
                measured=candidate.measured,
                memory=_memory(candidate),
                utilisation=max(chosen.busy(index, chosen.load)),
                capacity=alone,
                rates={name: Load(at_load=loaded[name], at_capacity=rate) for name, rate in rates.items()},
                hits=told.hits(chosen, index),
            )
        )
        described.extend(_part(part, described[-1]) for part in candidate.parts)
    return described


def _memory(candidate: Candidate) -> Memory | None:
    memory = candidate.memory
    if memory is None:
        return None
    return Memory(
        weights=memory.weights,
        kv=memory.kv,
        buffers=memory.buffers,
        experts=memory.experts,
        free=memory.free,
        capacity=memory.capacity,
    )


def _part(part: Part, main: Pool) -> Pool:
    """The pool of a part of the units of ``main``."""
    memory = Memory(
        weights=part.weights,
        kv=0.0,
        buffers=part.buffers,
        experts=part.experts,
        free=part.memory - part.used,
        capacity=part.memory,
    )
    return main.model_copy(
        update={
            "name": f"{part.stage} of {main.name}",
            "stage": part.stage,
            "part_of": main.name,
            "group": part.group,
            "cards_per_unit": part.cards,
            "cards": main.units * part.cards,
            "parallelism": Parallelism(tp=part.tp, ep=part.ep),
            "memory": memory,
            "rates": {},
            "hits": {},
        }
    )


def experts(chosen: Chosen) -> list[dict[str, Any]]:
    """How experts are spread in each pool whose GPUs exchange rows: slots, replicas, and how even that is."""
    found = []
    for _, candidate in chosen.used:
        layout = None if candidate.cut is None else candidate.cut.device.layout
        routed = shape_of(chosen.instance.models[candidate.model]).routed
        if candidate.cut is None or routed is None:
            continue
        if isinstance(layout, Spread):
            places, slots = layout.cards, layout.slots
        elif isinstance(layout, Apart) and layout.pooled:
            places, slots = layout.count, layout.slots
        else:
            continue
        found.append(
            {
                "pool": candidate.name,
                "layers": routed.layers,
                "experts": routed.experts,
                "places": places,
                "slots_per_place": slots,
                "redundant": candidate.cut.redundant,
                "balancedness": None if routed.loads is None else routed.loads.balancedness(places, slots),
                "busiest_over_mean": routed.skew(places, slots),
            }
        )
    return found


def servers(chosen: Chosen) -> list[Servers]:
    """How servers are filled, where units do not nest in them."""
    return [
        Servers(group=group, count=count, blocks={str(size): number for size, number in blocks.items()})
        for group, count, blocks in chosen.filled
    ]


def route_name(route: Route) -> str:
    """A handoff in one line, the same in every part of a plan."""
    places = [route.source] if route.features and not route.payload else [route.source, route.target]
    if route.features:
        places = [route.features.encoder or route.features.cache or "", *places]
    name = f"{route.workload}: {' -> '.join(places)}" + (f" via {route.store}" if route.store else "")
    return f"{name} (hybrid)" if route.scheme == "hybrid" else name


def handoffs(chosen: Chosen, phases: Sequence[DrainPhase]) -> list[Handoff]:
    """Every route that carries something, at capacity or while the backlog drains."""
    live = set(chosen.live_routes) | {r for p in phases for r, rate in enumerate(p.routes) if rate > 1e-9}
    return [
        Handoff(
            name=route_name(route),
            workload=route.workload,
            scheme=route.scheme,
            source=route.source,
            target=route.target,
            store=route.store,
            links=list(route.links),
            bytes_per_request=route.payload,
            seconds=route.seconds,
            rate=Load(at_load=chosen.load.routes[r], at_capacity=chosen.settled.routes[r]),
            features=_features(route),
        )
        for r, route in ((r, chosen.data.routes[r]) for r in sorted(live))
    ]


def _features(route: Route) -> FeatureHandoff | None:
    found = route.features
    if found is None:
        return None
    return FeatureHandoff(
        encoder=found.encoder,
        cache=found.cache,
        links=list(found.links),
        bytes_per_request=found.payload,
        seconds=found.seconds,
    )


def drain(chosen: Chosen, found: tuple[float, list[DrainPhase]] | None) -> Drain | None:
    """The startup backlog; None when the instance has neither startup nor deadline."""
    instance = chosen.instance
    deadline = instance.service.drain
    ready = max((c.startup for _, c in chosen.used), default=0.0)
    if deadline is None and ready == 0.0:
        return None
    at, phases = found if found is not None else (None, [])
    done = 0.0
    for phase in phases:
        seconds = max(0.0, min(phase.end, ready) - phase.start)
        done += seconds * sum(rate for (_, i), rate in phase.rates.items() if chosen.data.candidates[i].begins)
    starts = {c.startup for _, c in chosen.used}
    single = deadline is not None and len(starts) == 1
    return Drain(
        ready_s=ready,
        backlog=max(0.0, fluid.startup_backlog(instance.rate, ready) - done),
        drained_s=at,
        deadline_s=deadline,
        required_rate=_finite(fluid.required_rate(instance.rate, ready, deadline or 0.0)) if single else None,
        met=None if deadline is None else at is not None and at <= deadline * (1.0 + 1e-6),
        phases=[_phase(chosen, phase) for phase in phases if phase.end > phase.start],
    )


def _finite(value: float) -> float | None:
    return value if value < float("inf") else None


def _phase(chosen: Chosen, phase: DrainPhase) -> Phase:
    served: dict[str, dict[str, float]] = {}
    for (name, index), rate in phase.rates.items():
        served.setdefault(chosen.data.candidates[index].name, {})[name] = rate
    carried = {route_name(chosen.data.routes[r]): rate for r, rate in enumerate(phase.routes) if rate > 1e-9}
    return Phase(start_s=phase.start, end_s=phase.end, pools=served, handoffs=carried)
