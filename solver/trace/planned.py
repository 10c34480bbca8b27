"""The tiers of a plan as a replay takes them, for one workload on one group, and what the plan predicts of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from pydantic import ValidationError

from models.errors import BadInput, Problem, nearest
from models.instance import Instance
from models.plan import Plan
from models.plan_tiers import TierUse
from models.tiers import HBM
from models.trace.chunks import Chunk, Trace
from models.workload import Workload
from solver import physics
from solver.tiers import check
from solver.tiers.data import Kept
from solver.tiers.places import Place
from solver.topology import Topology
from solver.trace.replay import replay
from solver.trace.tiers import Replayed, Tier, Write

PLACE = "--plan"
WRITES: dict[str, Write] = {"all": "all", "second_hit": "second_access", "on_eviction": "on_eviction"}
FRONT = "requests"
"""A first tier without room, where the fastest tier of the plan does not take everything."""


@dataclass(frozen=True)
class Predicted:
    """A tier in the plan. Of each request that begins on the group: a share of its input, or bytes."""

    name: str
    policy: str
    retention: float
    """Seconds; the mean where there are several."""
    found: float
    """Share of the input tokens."""
    read: float
    """Bytes."""
    written: float | None
    """Bytes; None of HBM, where nothing is counted."""
    alive: float
    """Bytes, as a share of the capacity."""
    capacity: float
    """Bytes for the workload: its part where several share the tier."""
    prompts: float
    """System prompts that take room, or have it beside the capacity where below 0: how many times all of them."""
    timed: bool
    write: Write
    exclusive: bool
    admission: float | None
    """Tokens that are remembered, those of this workload."""
    spread: float
    """Places among which requests are scattered."""


@dataclass(frozen=True)
class Planned:
    """A workload on the group where most of it begins."""

    workload: str
    group: str
    share: float
    """Of the load of the workload that begins there."""
    rate: float
    """Requests/s that begin there, at the load."""
    token_bytes: float
    prompt_bytes: float
    """Of all its different system prompts."""
    tiers: tuple[Predicted, ...]
    notes: tuple[str, ...]

    @property
    def copies(self) -> int:
        """Caches of which each request sees one at random."""
        return max(1, round(max(tier.spread for tier in self.tiers)))

    def replayable(self, block_tokens: int, scale: float) -> tuple[Tier, ...]:
        """The tiers with capacities in blocks of one copy, for a trace of ``scale`` times the load of the group."""
        block, found, shared = self.token_bytes * block_tokens, list[Tier](), False
        prompts = self.prompt_bytes / block
        for one in self.tiers:
            shared = shared or (self.copies > 1 and one.spread <= 1.0)
            copies = 1 if shared else self.copies
            free = one.capacity / block - one.prompts * prompts
            blocks = free * scale + copies * prompts if free > 0.0 else one.capacity / block * scale
            remembered = None if one.admission is None else max(1, round(one.admission * scale / block_tokens / copies))
            found.append(
                Tier(
                    one.name,
                    float(int(blocks / copies * (1.0 + 1e-9))),
                    one.retention if one.timed else inf,
                    "exclusive" if one.exclusive else "inclusive",
                    one.write,
                    remembered,
                    shared,
                )
            )
        if found[0].write != "all" or found[0].holds == "exclusive":
            found.insert(0, Tier(FRONT, 0.0, shared=found[0].shared))
        return tuple(found)


def planned(plan: Plan, workload: str | None) -> Planned:
    """The tiers of a workload in a plan. Raises BadInput where the plan has none, or it is not told which."""
    if plan.status not in ("optimal", "feasible"):
        raise BadInput([Problem(PLACE, "there is no plan in it", plan.status, "a plan that is optimal or feasible")])
    try:
        instance = Instance.model_validate(plan.instance_document)
    except ValidationError:
        raise BadInput([Problem(PLACE, "instance_document is no instance", None, "a plan of solve --out")]) from None
    name = _named(instance, workload)
    kept = check.kept_of(instance, Topology(instance.hardware))
    if not plan.tiers or [use.name for use in plan.tiers] != [place.name for place in kept.places]:
        raise BadInput([Problem(PLACE, "tells of no tiers", plan.instance, "a plan of an instance with tiers")])
    begun = {group: _begun(plan, name, group) for group in instance.hardware.groups}
    group = max(begun, key=lambda one: begun[one])
    total = sum(begun.values())
    chain = [n for n in kept.chain(name, group) if plan.tiers[n].policy in WRITES and _kept(plan.tiers[n], name, group)]
    if not chain or total <= 0.0:
        message = f"keeps nothing of {name} in any tier"
        raise BadInput([Problem(PLACE, message, None, "a plan with a tier that is not 'never'")])
    notes: list[str] = []
    if begun[group] < total * (1.0 - 1e-9):
        part = 100.0 * begun[group] / total
        notes.append(f"{part:.3g} % of {name} begins on {group}; its tiers alone are replayed")
    described = instance.workloads[name]
    shape = physics.shape_of(instance.models[described.model])
    tiers = tuple(_tier(plan, kept, number, name, group, begun[group], notes) for number in chain)
    _check_routing(tiers)
    prompts = sum(part.said.distinct * part.hit for part in kept.of(name) if part.prompt)
    each = shape.kept.at(described.mean_input) / described.mean_input
    return Planned(name, group, begun[group] / total, begun[group], each, prompts, tiers, tuple(notes))


def _named(instance: Instance, workload: str | None) -> str:
    known = [name for name, one in instance.workloads.items() if one.reuse]
    accepted = "one of " + ", ".join(known) if known else "an instance whose workloads have reuse"
    if not known:
        raise BadInput([Problem(PLACE, "no workload of the plan has reuse", instance.name, accepted)])
    if workload is None and len(known) > 1:
        raise BadInput([Problem("--workload", "is not told, and the plan serves several", None, accepted)])
    if workload is not None and workload not in known:
        guess = nearest(workload, known)
        message = "no workload with reuse of this name in the plan" + (f"; {guess}" if guess else "")
        raise BadInput([Problem("--workload", message, workload, accepted)])
    return workload or known[0]


def _begun(plan: Plan, workload: str, group: str) -> float:
    """Requests/s of a workload that begin on a group, at the load."""
    mine = [pool for pool in plan.pools if pool.begins and pool.group == group and pool.part_of is None]
    return sum(pool.rates[workload].at_load for pool in mine if workload in pool.rates)


def _kept(use: TierUse, workload: str, group: str) -> bool:
    return any((one.workload, one.group) == (workload, group) and one.ages for one in use.retained)


def _tier(plan: Plan, kept: Kept, number: int, name: str, group: str, begun: float, notes: list[str]) -> Predicted:
    use, place, workload = plan.tiers[number], kept.places[number], kept.instance.workloads[name]
    key = (name, group)
    mine = [
        one.model_copy(update={"retained": [row for row in one.retained if (row.workload, row.group) == key]})
        for one in plan.tiers
    ]
    alive = check.alive(plan.model_copy(update={"tiers": mine}), kept, number)
    share = min(1.0, alive / use.alive) if use.alive > 0.0 else 1.0
    if share < 1.0 - 1e-6:
        notes.append(f"{name} has {100.0 * share:.3g} % of {place.name}, its part of what is kept there")
    found = [one for one in use.found if (one.workload, one.group) == key]
    parts = workload.reuse or []
    tokens = sum(one.rate.at_load * parts[one.part].tokens_per_hit for one in found)
    return Predicted(
        name=place.name,
        policy=use.policy,
        retention=_retention(use, place, name, group, begun, notes),
        found=tokens / begun / workload.mean_input,
        read=sum(one.rate.at_load * one.bytes_per_hit for one in found) / begun,
        written=None if place.tier == HBM else check.written(plan, kept, number).get(key, 0.0) / begun,
        alive=alive / (use.capacity * share) if use.capacity > 0.0 and share > 0.0 else 0.0,
        capacity=use.capacity * share,
        prompts=place.copies if place.tier != HBM else 0.0,
        timed=place.each_apart,
        write=WRITES[use.policy],
        exclusive=place.said.holds == "exclusive",
        admission=_admission(place, use, kept.instance.workloads, name),
        spread=place.spread,
    )


def _retention(use: TierUse, place: Place, name: str, group: str, begun: float, notes: list[str]) -> float:
    """Seconds for which the last part of the prompts is kept, mean over requests."""
    mine = [one for one in use.retained if (one.workload, one.group) == (name, group) and one.ages]
    ages = max(mine, key=lambda one: one.part).ages
    rate = sum(one.rate for one in ages)
    if place.each_apart and len(ages) > 1:
        notes.append(f"{place.name} keeps state of {name} for {len(ages)} times; the mean is replayed")
    if place.each_apart and rate < begun * (1.0 - 1e-6):
        notes.append(f"{place.name} keeps {100.0 * rate / begun:.3g} % of {name}; all of it is replayed")
    return sum(one.rate * one.age_s for one in ages) / rate


def _admission(place: Place, use: TierUse, workloads: dict[str, Workload], name: str) -> float | None:
    if place.said.admission is None or use.policy != "second_hit":
        return None
    tokens = {w: (one.mean_input + one.mean_output - 1.0) * one.rate for w, one in workloads.items() if one.reuse}
    return place.said.admission * tokens[name] / sum(tokens.values())


def _check_routing(tiers: Sequence[Predicted]) -> None:
    spreads = [tier.spread for tier in tiers]
    scattered = [spread > 1.0 for spread in spreads]
    if scattered != sorted(scattered, reverse=True):
        message = "has a tier with routing: affinity above one with random, which no replay can follow"
        raise BadInput([Problem(PLACE, message, None, "tiers with the same routing")])


@dataclass(frozen=True)
class Outcome:
    """A replay of the tiers of a plan."""

    planned: Planned
    rate: float
    """Requests/s of the trace, those that count."""
    scale: float
    """By which capacities were multiplied."""
    tiers: tuple[Tier, ...]
    replayed: Replayed
    """Its tiers are those of the plan, without any in front."""


def replayed(
    trace: Trace,
    found: Planned,
    first: int,
    since: float,
    scale: float | None = None,
    chunks: Iterable[Chunk] | None = None,
) -> Outcome:
    """The trace under the tiers of a plan; requests before ``first``, which comes at ``since``, fill them.

    A trace has mostly a part of the load that the plan is for: without a ``scale``, capacities are as much smaller.
    Raises BadInput.
    """
    size, seconds = trace.block_tokens, trace.span - since
    if size is None:
        message = "needs blocks, and the trace tells of none"
        raise BadInput([Problem(PLACE, message, None, "a trace with hash_ids, or --sessions --block-tokens N")])
    if seconds <= 0.0:
        message = "needs a rate, and all requests that count come at once"
        raise BadInput([Problem(PLACE, message, None, "a longer trace, or a shorter --warm-up")])
    rate = (trace.requests - first) / seconds
    scale = rate / found.rate if scale is None else scale
    tiers = found.replayable(size, scale)
    told = replay(trace.chunks() if chunks is None else chunks, tiers, size, first=first, copies=found.copies)
    front = len(tiers) - len(found.tiers)
    return Outcome(found, rate, scale, tiers[front:], replace(told, tiers=told.tiers[front:]))
