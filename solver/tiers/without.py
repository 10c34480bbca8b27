"""What each tier is worth: the best plan without it, and with each of its policies alone."""

from collections.abc import Iterator, Sequence

from models.instance import Instance
from models.plan import Plan
from models.tiers import HBM, Tier
from models.told import TierRow
from solver.limits import Limits
from solver.solve import Options, solve

AS_IT_IS = "as it is"
EACH = 10.0
"""Seconds of one row at most."""


def rows(instance: Instance, limits: Limits) -> list[TierRow]:
    """The plan as it is, then with other tiers; nothing where nothing is kept."""
    found: list[TierRow] = []
    for name, changed in variants(instance) if instance.reuses else ():
        limits.progress = f"tiers: {name}"
        if limits.over:
            found.append(_row(name, None, found))
            continue
        plan = solve(changed, Options(limits.part(EACH), plan_only=True, reasons=False))
        found.append(_row(name, plan, found))
    return found


def variants(instance: Instance) -> Iterator[tuple[str, Instance]]:
    """Names and instances."""
    tiers = instance.tiers
    own = {name: tier for name, tier in tiers.items() if name != HBM}
    yield AS_IT_IS, instance
    for name in own:
        if len(own) > 1:
            yield f"without {name}", _with(instance, {n: t for n, t in tiers.items() if n != name})
    for name, tier in own.items():
        policies = [policy for policy in tier.policies if policy != "never"]
        for policy in policies if len(policies) > 1 else ():
            alone = tier.model_copy(update={"write_policy": [policy, "never"]})
            yield f"{name}: {policy}", _with(instance, {**tiers, name: alone})
    if own:
        yield "HBM alone", _with(instance, {n: t for n, t in tiers.items() if n == HBM})
    if not any(workload.tool_wait for workload in instance.workloads.values()):
        yield "nothing kept", _with(instance, {HBM: Tier.model_validate({"in": []})})


def _with(instance: Instance, tiers: dict[str, Tier]) -> Instance:
    return instance.model_copy(update={"tiers": tiers})


def _row(name: str, plan: Plan | None, before: Sequence[TierRow]) -> TierRow:
    if plan is None or plan.status not in ("optimal", "feasible"):
        return TierRow(
            name=name,
            status="stopped" if plan is None else plan.status,
            objective=None,
            cost_per_hour=None,
            cost_per_1000_requests=None,
            throughput=None,
            cards=None,
            tokens_found=None,
            pieces={},
            policies={},
            worse=None,
        )
    value = plan.objective.value
    first = before[0].objective if before else value
    most = plan.objective.name in ("throughput", "headroom")
    change = None if value is None or not first else (first - value if most else value - first) / abs(first)
    return TierRow(
        name=name,
        status=plan.status,
        objective=value,
        cost_per_hour=plan.cost.per_hour,
        cost_per_1000_requests=plan.cost.per_1000_requests,
        throughput=plan.throughput,
        cards=sum(pool.cards for pool in plan.pools),
        tokens_found=_tokens(plan),
        pieces={use.name: use.pieces for use in plan.tiers if use.pieces},
        policies={use.name: use.policy for use in plan.tiers if use.policy != "never"},
        worse=change,
    )


def _tokens(plan: Plan) -> float:
    """Share of all input tokens that are found."""
    described = plan.instance_document["workloads"]
    total = found = 0.0
    for name, result in plan.workloads.items():
        workload = described[name]
        lengths = workload.get("lengths") or [{"share": 1.0, "input": workload["input"]}]
        tokens = result.served * sum(one["share"] * one["input"] for one in lengths)
        total += tokens
        found += tokens * (result.reuse.tokens if result.reuse else 0.0)
    return found / total if total else 0.0
