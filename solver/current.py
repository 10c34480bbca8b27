"""What runs today, evaluated as it stands: what it sustains, what binds, when it breaks. Nothing is optimised."""

from dataclasses import replace

from models.errors import BadInput, Problem
from models.given import CurrentPool
from models.plan import Today
from solver import bill, compare, settle, usage
from solver.candidates import Candidate
from solver.chosen import Chosen
from solver.data import Data


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
            problems.append(Problem(f"current[{index}]", "no such unit can be built", found[0], found[1]))
    if problems:
        raise BadInput(problems)
    own = replace(data, candidates=tuple(candidates))
    return Chosen(own, tuple(counts), settle.capacity(own, counts), settle.load(own, counts))


def _candidate(data: Data, pool: CurrentPool) -> Candidate | tuple[str, str]:
    """The unit that a pool is made of, or what was asked for and what there is."""
    model = pool.model or next(iter(data.instance.models))
    here = [c for c in data.candidates if (c.stage, c.group, c.model) == (pool.stage, pool.group, model)]
    here = [c for c in here if pool.scheme is None or pool.scheme in c.schemes]
    cut = [c for c in here if (c.tp, c.pp) == (pool.tp, pool.pp)]
    if not cut:
        asked = f"{pool.stage} of {model} on {pool.group} at TP{pool.tp}" + (f" x PP{pool.pp}" if pool.pp > 1 else "")
        known = ", ".join(dict.fromkeys(f"TP{c.tp}" + (f" x PP{c.pp}" if c.pp > 1 else "") for c in here))
        why = next((r.reason for r in data.rejected if (r.group, r.stage) == (pool.group, pool.stage)), "none here")
        return asked, known or why
    if pool.batch is None:
        return max(cut, key=lambda c: max(c.batches.values()))
    return min(cut, key=lambda c: abs(max(c.batches.values()) - (pool.batch or 0)))


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
    reason = over[0] if over else compare.breaks(today, found[0] if found else None)
    margin = settle.margin(today.data, today.counts, "arrivals") if most > 0 else None
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
