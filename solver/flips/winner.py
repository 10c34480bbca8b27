"""Which schemes win, which other comes next, and what decides between two of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from models.instance import Instance
from models.plan import Plan
from models.tiers import HBM, Tier
from solver.data import gather
from solver.limits import Limits, gap
from solver.milp import master
from solver.optimise import Ranked, better, rank
from solver.schemes import BY_NAME
from solver.solve import Options, solve

SAME = 1e-6
"""Relative difference of goals that is none."""


class StoppedError(Exception):
    """The time is up."""


@dataclass(frozen=True)
class Now:
    """The answer as things are, and the best other scheme alone."""

    plan: Plan
    outcome: tuple[str, ...]
    other: tuple[str, Plan] | None = None
    decided_by: str | None = None
    """The first goal in which the other is worse."""
    margin: float | None = None
    """How much worse, relative to the other."""


def solved(instance: Instance, limits: Limits, progress: str) -> Plan:
    """The plan alone. Raises StoppedError where the time does not suffice for one."""
    if not limits.over:
        limits.progress = progress
        plan = solve(instance, Options(_rest(limits), plan_only=True, reasons=False))
        if not _cut_short(plan.status, limits):
            return plan
    raise StoppedError


def _cut_short(status: str, limits: Limits) -> bool:
    """Whether a solve ended since the time was up: what it found last may be any scheme."""
    return status == "stopped" or (status == "feasible" and limits.over)


def _rest(limits: Limits) -> Limits:
    rest = Limits(limits.left, limits.gap, limits.seed, limits.stop)
    rest.start()
    return rest


def outcome_of(plan: Plan) -> tuple[str, ...]:
    """Schemes of its pools in the order in which they are allowed, and tiers in use with what is written to them; none
    where there is no plan.
    """
    used = {pool.scheme for pool in plan.pools}
    kept = [f"{use.tier}: {use.policy}" for use in plan.tiers if use.policy != "never" and use.tier != HBM]
    schemes = [scheme for scheme in plan.instance_document["schemes"]["allow"] if scheme in used]
    return (*schemes, *dict.fromkeys(kept))


def schemes_of(outcome: Sequence[str]) -> tuple[str, ...]:
    """The schemes of an answer."""
    return tuple(name for name in outcome if name in BY_NAME)


def _alone(instance: Instance, schemes: Sequence[str], limits: Limits) -> Ranked | None:
    """How schemes stand without the others; None where they keep no limits. Raises StoppedError."""
    if limits.over:
        raise StoppedError
    problem = master.build(gather(instance).only(schemes).pruned())
    ranked = rank(problem, master.goals(problem), _rest(limits))
    if _cut_short(ranked.status, limits):
        raise StoppedError
    return ranked if ranked.found else None


def _differ(instance: Instance, a: Ranked, b: Ranked) -> tuple[str, float]:
    """The first goal in which two differ, and by how much relative to ``b``; that of the fixed order where in none."""
    for count, ((name, x), (_, y)) in enumerate(zip(a.stages, b.stages, strict=False)):
        if name != "order" and gap(y, x) > SAME:
            return instance.objective if count == 0 else name, gap(y, x)
    return "order", 0.0


def decided(places: Sequence[Instance], one: Sequence[str], other: Sequence[str], limits: Limits) -> str:
    """What makes the difference between two answers on both sides of a flip. Raises StoppedError."""
    found: list[str] = []
    if one and schemes_of(one) == schemes_of(other):
        return _by_tiers(places, one, other, limits)
    for instance in places:
        both = schemes_of(one), schemes_of(other)
        a, b = (_alone(instance, schemes, limits) if schemes else None for schemes in both)
        if a is None or b is None:
            return "limits"
        found.append(_differ(instance, a, b)[0])
    objective = places[0].objective
    return objective if objective in found else found[0]


def _by_tiers(places: Sequence[Instance], one: Sequence[str], other: Sequence[str], limits: Limits) -> str:
    """The same where only tiers, or what is written to them, are others."""
    found = []
    for instance in places:
        a, b = (solved(_written_as(instance, outcome), limits, "tiers alone") for outcome in (one, other))
        if a.objective.value is None or b.objective.value is None:
            return "limits"
        goals = [(instance.objective, a.objective.value, b.objective.value)]
        goals.append(("throughput", a.throughput or 0.0, b.throughput or 0.0))
        goals.append(("gpus", float(_gpus(a)), float(_gpus(b))))
        found.append(next((name for name, x, y in goals if gap(y, x) > SAME), "found"))
    return places[0].objective if places[0].objective in found else found[0]


def _written_as(instance: Instance, outcome: Sequence[str]) -> Instance:
    """The instance with what an answer writes to each tier, and nothing else."""
    tiers = {
        name: tier if name == HBM else tier.model_copy(update={"write_policy": _policies(name, tier, outcome)})
        for name, tier in instance.tiers.items()
    }
    return instance.model_copy(update={"tiers": tiers})


def _policies(name: str, tier: Tier, outcome: Sequence[str]) -> list[str]:
    return [policy for policy in tier.policies if f"{name}: {policy}" in outcome] or ["never"]


def _gpus(plan: Plan) -> int:
    return sum(pool.cards for pool in plan.pools)


def compared(instance: Instance, now: Now, limits: Limits) -> Now:
    """With the best other scheme alone, and by how much it loses. Raises StoppedError."""
    mine = schemes_of(now.outcome)
    own = _alone(instance, mine, limits) if mine else None
    order = master.goals(master.build(gather(instance).only(instance.schemes.allow), promises=False))
    best: tuple[str, Ranked] | None = None
    for scheme in instance.schemes.allow:
        if own is None or mine == (scheme,):
            continue
        limits.progress = f"{scheme} alone"
        ranked = _alone(instance, [scheme], limits)
        if ranked is not None and (best is None or better(ranked, best[1], order)):
            best = scheme, ranked
    if own is None or best is None:
        return now
    schemes = instance.schemes.model_copy(update={"allow": [best[0]]})
    plan = solved(instance.model_copy(update={"schemes": schemes}), limits, f"{best[0]} alone")
    decided_by, margin = _differ(instance, own, best[1])
    return replace(now, other=(best[0], plan), decided_by=decided_by, margin=margin)
