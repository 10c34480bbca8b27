"""One solve, from an instance to a verified plan: read :func:`solve` and you know the product."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from models.errors import InferplanError
from models.instance import Instance, digest
from models.plan import Cost, ObjectiveValue, Plan
from models.told import Conflict, Relaxation, Row, Status, Today
from solver import assemble, bill, settle, times, usage
from solver.assumptions import assumptions, warnings
from solver.chosen import Chosen, scheme_of
from solver.compare import alternative, alternatives, chosen_of
from solver.data import Data, gather
from solver.limits import PROOF, Limits, gap
from solver.milp import master
from solver.next_steps import leaves_cards_idle, marginals
from solver.optimise import Ranked, better, rank
from solver.reachable import require_paths
from solver.tiers import told
from solver.verify import verify

SIDE, REASONS = 3.0, 10.0
"""Seconds at most for what is told beside the plan, alternatives and next steps; and for why there is none."""


class UnverifiedError(InferplanError):
    """A plan that its own verifier refuses: a defect of the program; the plan is never shown."""


@dataclass
class Options:
    """How to solve."""

    limits: Limits = field(default_factory=Limits)
    plan_only: bool = False
    """Leave out alternatives and marginals."""
    reasons: bool = True
    """Tell what stands in the way where there is no plan."""
    prune: bool = True
    """Drop dominated candidates first; never changes the optimum."""


def solve(instance: Instance, options: Options | None = None) -> Plan:
    """The plan for ``instance``: optimal, feasible, infeasible or stopped; verified in the first two cases.

    Raises BadInput where places that must exchange state are not connected, UnverifiedError on a defect of ours.
    """
    options = options or Options()
    options.limits.start()
    began = time.perf_counter()
    data = gather(instance)
    require_paths(data)
    allowed = data.only(instance.schemes.allow)
    ranked, chosen = _best(allowed, options.limits, options.prune)
    if chosen is None:
        return _without_plan(instance, data, ranked, began, options.limits.part(REASONS), options.reasons)
    found = settle.drained(chosen.data, chosen.counts, chosen.settled)
    today = _today(data)
    rows, steps = [], []
    if not options.plan_only:
        extra = options.limits.part(SIDE)
        rows = _others(data, chosen, extra)
        steps = marginals(allowed, chosen, extra)
    drain = assemble.drain(chosen, found)
    cost = bill.cost(chosen)
    pools = assemble.pools(chosen)
    objective, document = _objective(instance, ranked, chosen, cost), instance.document()
    plan = Plan(
        instance=instance.name,
        instance_sha256=digest(document),
        instance_document=document,
        status=_status(ranked, objective),
        objective=objective,
        solve_seconds=time.perf_counter() - began,
        scheme=_scheme([pool.scheme for pool in pools]),
        throughput=chosen.settled.throughput,
        pools=pools,
        servers=assemble.servers(chosen),
        handoffs=assemble.handoffs(chosen, found[1] if found else []),
        workloads=times.workloads(chosen),
        resources=usage.resources(chosen, drain),
        drain=drain,
        cost=cost,
        purchases=usage.purchases(chosen),
        current=today,
        tiers=told.tiers(chosen),
        experts=assemble.experts(chosen),
        traffic=usage.traffic(chosen),
        alternatives=rows,
        marginal=steps,
        conflicts=[],
        relaxations=[],
        assumptions=assumptions(instance),
        warnings=[],
        verified=True,
    )
    plan = plan.model_copy(update={"warnings": warnings(instance, plan)})
    if violations := verify(plan, instance):
        raise UnverifiedError("the plan does not pass its own verifier: " + "; ".join(violations[:5]))
    return plan


def _today(data: Data) -> Today | None:
    """What runs today, where the instance says it."""
    if not data.instance.current:
        return None
    from solver.current import evaluate  # here, since few instances say so

    return evaluate(data)


def _status(ranked: Ranked, objective: ObjectiveValue) -> Status:
    proven = ranked.status == "optimal" and objective.gap is not None and objective.gap <= PROOF
    return "optimal" if proven else "feasible"


def _scheme(names: Sequence[str]) -> str:
    return names[0] if len(set(names)) == 1 else "mixed"


def _best(data: Data, limits: Limits, prune: bool = True) -> tuple[Ranked, Chosen | None]:
    """The best plan; where schemes may not stand side by side, the best of each scheme alone."""
    tried = [_solved(one, limits) for one in data.apart(prune)]
    if len(tried) == 1:
        return tried[0]
    order = master.goals(master.build(data, promises=False))
    best: tuple[Ranked, Chosen | None] | None = None
    for one in tried:
        if one[1] is not None and (best is None or better(one[0], best[0], order)):
            best = one
    if best is None:
        stopped = [ranked for ranked, _ in tried if ranked.status != "infeasible"]
        return (stopped or [tried[0][0]])[0], None
    open_ones = [ranked for ranked, _ in tried if ranked.status != "infeasible"]
    if all(ranked.status == "optimal" for ranked in open_ones):
        return best
    ranked, chosen = best
    bounds = [one.bound for one in open_ones]
    known = [bound for bound in bounds if bound is not None]
    bound = (max if order[0].maximise else min)(known) if known and len(known) == len(bounds) else None
    return Ranked("feasible", ranked.counts, ranked.value, bound, ranked.stages), chosen


def _solved(data: Data, limits: Limits) -> tuple[Ranked, Chosen | None]:
    ranked = _first(data, limits) if data.kept is not None else None
    if ranked is None or ranked.status == "optimal":
        problem = master.build(data)
        ranked = rank(problem, master.goals(problem), limits, ranked)
    return ranked, chosen_of(data, ranked) if ranked.found else None


def _first(data: Data, limits: Limits) -> Ranked | None:
    """The first goal alone, where flows at capacity do not matter for it; None where they do, or nothing is chosen."""
    if data.instance.objective in ("throughput", "headroom"):
        return None
    problem = master.build(data, lean=True)
    goals = master.goals(problem)[:1]
    return rank(problem, goals, limits) if goals[0].terms else None


def _others(data: Data, chosen: Chosen, limits: Limits) -> list[Row]:
    """The schemes that were not chosen, each alone."""
    used = {scheme_of(chosen, index) for index, _ in chosen.used}
    own = leaves_cards_idle(data)  # then the most requests/s would answer a question that nobody asked
    left = [name for name in data.schemes if used != {name}]
    return [alternative(data, scheme, limits, own).row for scheme in left]


def _solvable(instance: Instance, limits: Limits) -> bool:
    """Whether a changed instance has a plan."""
    return _best(gather(instance).only(instance.schemes.allow), limits)[1] is not None


def _objective(instance: Instance, ranked: Ranked, chosen: Chosen, cost: Cost) -> ObjectiveValue:
    name = instance.objective
    headroom = settle.margin(chosen.data, chosen.counts, "arrivals") if name == "headroom" else None
    value = bill.objective_value(chosen, cost, headroom)
    unit = bill.objective_unit(name, instance)
    if value is None:
        raise UnverifiedError("an objective without a value")
    bound: float | None
    if ranked.value is None:  # every plan costs the same
        bound = value
    elif ranked.bound is None:
        bound = None
    else:
        scale = 1.0
        if name == "effective_cost":
            scale = 1e3 / 3600.0 if instance.drops else 1e3 / 3600.0 / bill.value_per_second(chosen)
        most = name in ("throughput", "headroom")
        bound = max(ranked.bound * scale, value) if most else min(ranked.bound * scale, value)
    return ObjectiveValue(
        name=name, value=value, bound=bound, gap=None if bound is None else gap(value, bound), unit=unit
    )


def _without_plan(instance: Instance, data: Data, ranked: Ranked, began: float, limits: Limits, told: bool) -> Plan:
    """Infeasible, with what conflicts and what would help; or stopped before anything was known."""
    from solver.infeasible import reasons  # here, since only an instance without a plan needs it

    infeasible = ranked.status == "infeasible"
    rows: list[Row] = []
    conflicts: list[Conflict] = []
    relaxations: list[Relaxation] = []
    if infeasible and told:
        rows = [found.row for found in alternatives(data, limits)]
        conflicts, relaxations = reasons(
            data.only(instance.schemes.allow), lambda changed: _solvable(changed, limits), limits
        )
    document = instance.document()
    today = _today(data)
    return Plan(
        instance=instance.name,
        instance_sha256=digest(document),
        instance_document=document,
        status="infeasible" if infeasible else "stopped",
        objective=ObjectiveValue(name=instance.objective, value=None, bound=None, gap=None, unit=""),
        solve_seconds=time.perf_counter() - began,
        scheme=None,
        throughput=None,
        pools=[],
        handoffs=[],
        workloads={},
        resources=[],
        drain=None,
        cost=Cost(
            per_hour=None,
            per_1000_requests=None,
            per_1000_at_capacity=None,
            per_million_output_tokens=None,
            per_million_total_tokens=None,
            currency=instance.billing.currency,
        ),
        purchases=[],
        current=today,
        traffic=[],
        alternatives=rows,
        marginal=[],
        conflicts=conflicts,
        relaxations=relaxations,
        assumptions=assumptions(instance),
        warnings=[],
        verified=False,
    )
