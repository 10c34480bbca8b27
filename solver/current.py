"""What runs today, evaluated as it stands: what it sustains, what binds, when it breaks. Nothing is optimised."""

from dataclasses import replace

from models.errors import BadInput, Problem
from models.given import CurrentPool
from models.instance import Instance
from models.plan import Parallelism
from models.told import Today
from models.workload import Targets
from solver import bill, compare, settle, times, usage
from solver.candidate import Candidate
from solver.chosen import Chosen
from solver.data import Data, gather


def chosen(data: Data) -> Chosen:
    """The units that run today with their flows. Raises BadInput with every pool that cannot be built."""
    candidates: list[Candidate] = []
    counts: list[int] = []
    problems = []
    for index, pool in enumerate(data.instance.current):
        found = _candidate(data, pool)
        if isinstance(found, Candidate):
            candidates.append(replace(found, name=f"{found.label} of today, pool {index + 1}"))
            counts.append(pool.units)
        else:
            problems.append(Problem(f"current[{index}]", f"no such unit can be built: {found[1]}", found[0]))
    if problems:
        raise BadInput(problems)
    own = replace(data, candidates=tuple(candidates))
    return Chosen(own, tuple(counts), settle.capacity(own, counts), settle.load(own, counts))


def _asked(instance: Instance, pool: CurrentPool, model: str) -> Instance:
    """The instance in which units of ``model`` hold what the pool holds, whatever the targets: those are looked at
    when it is seen what the units do.
    """
    workloads = {
        name: workload.model_copy(
            update={"targets": Targets(), **({"batch": pool.batch} if pool.batch and workload.decodes else {})}
        )
        for name, workload in instance.workloads.items()
        if workload.model == model
    }
    return instance.model_copy(update={"workloads": workloads})


def _candidate(data: Data, pool: CurrentPool) -> Candidate | tuple[str, str]:
    """The unit that a pool is made of, or what was asked for and why there is none."""
    model = pool.model or next(iter(data.instance.models))
    cut = Parallelism(tp=pool.tp, pp=pool.pp, ep=pool.ep, dp=pool.dp)
    asked = f"{pool.stage} of {model} on {pool.group} at {cut.text}"
    asked += f", batch {pool.batch}" if pool.batch else ""
    group = data.instance.hardware.groups[pool.group].model_copy(
        update={"tp": [pool.tp], "pp": [pool.pp], "ep": [pool.ep], "dp": [pool.dp]}
    )
    hardware = data.instance.hardware.model_copy(
        update={"groups": {**data.instance.hardware.groups, pool.group: group}}
    )
    free = data.instance.models[model].model_copy(update={"tp": None, "pp": None, "ep": None, "dp": None})
    there = data.instance.model_copy(update={"hardware": hardware, "models": {**data.instance.models, model: free}})
    made = gather(_asked(there, pool, model), data.topology)
    here = [c for c in made.candidates if (c.stage, c.group, c.model) == (pool.stage, pool.group, model) and not c.face]
    here = [c for c in here if c.cut is None or c.cut.parallelism == cut]
    here = [c for c in here if (c.tp, c.pp) == (pool.tp, pool.pp)]
    here = [c for c in here if pool.scheme is None or pool.scheme in c.schemes]
    if here:
        return min(here, key=lambda c: min(made.schemes.index(scheme) for scheme in c.schemes))
    reasons = [r.reason for r in made.rejected if (r.stage, r.group) == (pool.stage, pool.group)]
    return asked, next(iter(reasons), "no scheme that is allowed has one")


def evaluate(data: Data) -> Today:
    """What runs today, in words and numbers. Raises BadInput as :func:`chosen` does."""
    today = chosen(data)
    instance, most = today.instance, today.settled.throughput
    found = settle.drained(today.data, today.counts, today.settled) if most > 0 else None
    over = [
        f"cards[{name}]: {used} used of {there}"
        for (name, used), there in zip(today.cards.items(), today.there.values(), strict=True)
        if used > there
    ]
    reason = over[0] if over else compare.breaks(today, found[0] if found else None) or _late(today)
    margin = settle.margin(today.data, today.counts, "arrivals") if most > 0 and reason is None else None
    spent = bill.money_per_second(today)
    return Today(
        throughput=most,
        holds=reason is None,
        reason=reason,
        binds=[row.name for row in usage.resources(today, None) if row.binding and not row.name.startswith("cards")],
        breaks_at=None if margin is None else margin * instance.rate,
        drained_s=found[0] if found else None,
        cost_per_hour=None if spent is None else 3600.0 * spent,
        cards=today.cards,
    )


def _late(today: Chosen) -> str | None:
    """The target that is missed at the stated arrivals."""
    for name, result in times.workloads(today).items():
        targets = today.instance.workloads[name].targets
        for word, target, seconds in (
            ("ttft", targets.ttft, result.ttft_s.at_load),
            ("tpot", targets.tpot, result.tpot_s.at_load),
        ):
            if target is not None and seconds is not None and seconds > target * (1.0 + 1e-9):
                return f"{word} of {name} is {1e3 * seconds:.4g} ms, target {1e3 * target:.4g} ms"
    return None
