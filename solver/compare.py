"""Every scheme on its own, side by side, without the sustain and drain limits; what a row breaks is said in it."""

from dataclasses import dataclass, replace

from models.hardware import Store
from models.instance import Instance
from models.told import Row, Status
from solver import bill, physics, settle, usage
from solver.chosen import FULL, Chosen
from solver.data import Data, gather
from solver.formulas import cost as money
from solver.limits import Limits
from solver.milp import master
from solver.optimise import Ranked, rank
from solver.reachable import require_paths
from solver.rounding import text

EACH = 1.0
"""Seconds of one scheme at most, where it is told beside a plan."""


@dataclass(frozen=True)
class Alternative:
    """A row, with the plan behind it where there is one."""

    row: Row
    chosen: Chosen | None


def compare(instance: Instance, limits: Limits) -> list[Row]:
    """The row of every scheme. Raises BadInput as solve does."""
    data = gather(instance)
    require_paths(data)
    return [found.row for found in alternatives(data, limits)]


def alternatives(data: Data, limits: Limits) -> list[Alternative]:
    """A row for every scheme: allowed ones first, then those that the instance excludes."""
    endless = data.instance.hardware.endless
    return [alternative(data, scheme, limits, endless) for scheme in data.schemes]


def alternative(data: Data, scheme: str, limits: Limits, objective: bool = False) -> Alternative:
    """The best that ``scheme`` does alone: most requests/s, then fewest cards; its flows move the fewest bytes.

    With ``objective`` it is the best plan for the instance's own objective that keeps every promise, if there is one.
    """
    excluded = scheme not in data.instance.schemes.allow
    if limits.over:
        return Alternative(_empty(scheme, "stopped", excluded, "the time was up before it was looked at"), None)
    limits = limits if limits.exact else limits.part(EACH)
    alone = data.only([scheme]).pruned()
    ranked = None
    if objective:
        problem = master.build(alone)
        ranked = rank(problem, master.goals(problem)[:3], limits)
    if ranked is None or not ranked.found:
        problem = master.build(alone, promises=False)
        ranked = rank(problem, [problem.by_throughput, problem.by_cards], limits)
    if not ranked.found:
        status: Status = "infeasible" if ranked.status == "infeasible" else "stopped"
        reason = "breaks a limit on pools" if status == "infeasible" else "stopped before a plan was found"
        return Alternative(_empty(scheme, status, excluded, reason), None)
    chosen = chosen_of(alone, ranked)
    return Alternative(_row(chosen, scheme, excluded, "optimal" if ranked.status == "optimal" else "feasible"), chosen)


def chosen_of(data: Data, ranked: Ranked) -> Chosen:
    """The plan behind what was ranked best, with its flows."""
    wide = replace(data, choice=ranked.choice).widened(ranked.steps)
    loaded = settle.load(wide, ranked.counts)
    settled = settle.capacity(wide, ranked.counts, loaded)
    filled = tuple((one.group, count, dict(one.blocks)) for one, count in ranked.filled)
    return Chosen(wide, ranked.counts, settled, loaded, ranked.bundles, ranked.steps, filled)


def _empty(scheme: str, status: Status, excluded: bool, reason: str) -> Row:
    return Row(
        scheme=scheme,
        status=status,
        throughput=None,
        compute_capacity=None,
        channel_capacity=None,
        payload_bytes_per_request=None,
        drained_s=None,
        met=None,
        cost_per_1000_requests=None,
        cost_per_1000_at_capacity=None,
        split={},
        excluded=excluded,
        reason=reason,
    )


def _row(chosen: Chosen, scheme: str, excluded: bool, status: Status) -> Row:
    instance, most = chosen.instance, chosen.settled.throughput
    found = settle.drained(chosen.data, chosen.counts, chosen.settled) if most > 0 else None
    drained = found[0] if found else None
    busiest = max(usage.charges(chosen).values(), default=0.0)
    compute = most  # a limit that does not bind takes nothing away
    if busiest >= FULL or most <= 0:
        compute = settle.most(chosen.data, chosen.counts, links=False)
    reason = breaks(chosen, drained)
    served = sum(chosen.served(name) for name in instance.workloads) if chosen.loaded is not None else 0.0
    return Row(
        scheme=scheme,
        status=status,
        throughput=served if instance.drops else most,
        compute_capacity=compute,
        channel_capacity=most / busiest if busiest > 0 else None,
        payload_bytes_per_request=payload(chosen),
        drained_s=drained,
        met=reason is None,
        cost_per_1000_requests=_cost(chosen, served if instance.drops else min(most, instance.rate)),
        cost_per_1000_at_capacity=_cost(chosen, most),
        split=split(chosen),
        built=built(chosen),
        excluded=excluded,
        reason=reason,
    )


def payload(chosen: Chosen) -> float:
    """Bytes handed over per request, all trips counted: a pooled handoff makes two. Mean over the mix.

    Of features of images what reaches prefill counts.
    """
    moved = handed = featured = 0.0
    for r in chosen.live_routes:
        route, rate = chosen.data.routes[r], chosen.settled.routes[r]
        handed += rate if route.payload else 0.0
        moved += rate * route.payload * (2.0 if route.store else 1.0)
        featured += rate * route.features.payload if route.features else 0.0
    decoding = sum(chosen.data.share(name) for name, w in chosen.instance.workloads.items() if w.decodes)
    whole = featured / chosen.settled.throughput if featured else 0.0
    return whole + (moved / handed * decoding if handed else 0.0)


def split(chosen: Chosen) -> dict[str, dict[str, int]]:
    """Units by stage and group, groups without units included."""
    counts: dict[str, dict[str, int]] = {}
    for index, candidate in enumerate(chosen.data.candidates):
        if candidate.face:
            continue
        row = counts.setdefault(candidate.stage, {})
        row[candidate.group] = row.get(candidate.group, 0) + chosen.counts[index]
    return counts


LETTERS = {"encode": "E", "prefill": "P", "decode": "D"}


def built(chosen: Chosen) -> list[str]:
    """Pools in words, a line for each stage: units of one GPU, or `2x8`: two units of eight."""
    stages: dict[str, dict[str, None]] = {}
    for index, candidate in chosen.used:
        if candidate.face:
            continue
        inside = 0 if candidate.cut is None else candidate.cut.inside
        parts = [(candidate.pools[0][0], candidate.group, candidate.cards - inside)]
        parts += [(part.stage, part.group, part.cards) for part in candidate.parts]
        for stage, group, cards in parts:
            size = f"{chosen.counts[index]}" if cards == 1 else f"{chosen.counts[index]}x{cards}"
            stages.setdefault(stage, {})[f"{size} {group}"] = None
    return [
        " + ".join(pools) if stage == "both" else f"{LETTERS.get(stage, stage)}: {' + '.join(pools)}"
        for stage, pools in stages.items()
    ]


def _cost(chosen: Chosen, completed: float) -> float | None:
    instance = chosen.instance
    spent = bill.money_per_second(chosen)
    if spent is None or completed <= 0:
        return None
    share = sum(w.average * w.qualifying for w in instance.workloads.values()) / instance.rate
    return money.cost_per_thousand(spent, money.qualifying_rate(completed, share))


def breaks(chosen: Chosen, drained: float | None) -> str | None:
    """The promise that a scheme breaks, in words; None when it keeps them all."""
    instance, most = chosen.instance, chosen.settled.throughput
    deadline = instance.service.drain
    if most <= 0:
        return "; ".join(cannot(chosen.data)) or "the cards and limits leave it no units for every stage"
    if instance.drops:
        return None if chosen.loaded is not None else "cannot serve the least shares"
    if most < instance.rate * (1.0 - 1e-9):
        return f"below the {text(instance.rate)} requests/s that arrive"
    spare = instance.limits.spare
    if spare is not None and chosen.loaded is None:
        return f"does not serve the arrivals with {spare.units} unit{'s' * (spare.units > 1)} of every pool to spare"
    if deadline is None:
        return None
    if drained is None:
        return "the startup backlog never drains"
    if drained > deadline * (1.0 + 1e-6):
        return f"misses the deadline by {text(drained - deadline)} s"
    return None


def cannot(data: Data) -> list[str]:
    """Why some workload can be served by no unit at all, whatever the cards; empty when each of them can."""
    reasons: dict[str, None] = {}
    for name, workload in data.instance.workloads.items():
        groups, images = {stage: set[str]() for stage in ("both", "prefill", "after", "decode")}, workload.images > 0.0
        for candidate in data.candidates:
            if name in candidate.demand and candidate.stage != "encode":
                stage = "after" if candidate.after_encode and images else candidate.stage
                groups[stage].add(candidate.group)
        prefill, after, decode = groups["prefill"], groups["after"], groups["decode"]
        joined = any(
            r.workload == name
            and r.source in (after if r.features else prefill)
            and (r.target in decode or not workload.decodes)
            for r in data.routes
        )
        if groups["both"] or joined or (not workload.decodes and prefill):
            continue
        if (prefill or after) and (decode or not workload.decodes):
            reasons[_no_way(data)] = None
            continue
        for r in data.rejected:
            if r.workload == name:
                reasons[f"{r.limit}[{r.group}]: {name}: {r.reason}"] = None
    return list(reasons)


def _no_way(data: Data) -> str:
    """Why nothing can be handed over between units that could be built."""
    stores = data.instance.hardware.stores
    if data.schemes == ("pd-pooled",) and not any(store.holds == "state" for store in stores.values()):
        return "there is no store"
    small = [name for name, store in stores.items() if store.holds == "state" and _too_small(data, store)]
    if "pd-pooled" in data.schemes and small:
        return f"store[{small[0]}]: too small for one state"
    return "no path between any two places that it could use"


def _too_small(data: Data, store: Store) -> bool:
    """Whether a store cannot hold the state of a single request of some workload."""
    return any(
        physics.longest_payload(physics.shape_of(data.instance.models[w.model]), w) > store.capacity
        for w in data.instance.workloads.values()
        if w.decodes
    )
