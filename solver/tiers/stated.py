"""What a plan states of kept state, as it is worked with. Part of the verifier: nothing here knows the rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.plan import Plan
from models.plan_tiers import TierUse
from models.tiers import POLICIES, Policy
from solver.regimes import Held
from solver.tiers import check
from solver.tiers.choice import Choice, Chose
from solver.tiers.data import Kept


@dataclass(frozen=True)
class Stated:
    """What was chosen, and flows of kept state at the load and at capacity."""

    choice: Choice
    load: Held
    capacity: Held


def of(plan: Plan, kept: Kept) -> Stated | str:
    """What the plan states, or what does not match."""
    if [use.name for use in plan.tiers] != [place.name for place in kept.places]:
        return "tiers: not the places of the instance"
    chose = []
    for use in plan.tiers:
        policy = next((name for name in POLICIES if name == use.policy), None)
        if policy is None:
            return f"tiers[{use.name}]: no known policy"
        chose.append(Chose(use.pieces, _way(use, policy, kept)))
    load, full = (_held(plan, kept, word) for word in ("at_load", "at_capacity"))
    return Stated(Choice(tuple(chose)), load, full)


def _way(use: TierUse, policy: Policy, kept: Kept) -> tuple[Policy, int] | None:
    if policy == "never":
        return None
    return policy, 0 if use.retention_s is None else _age(use.retention_s, kept)


def _age(seconds: float, kept: Kept) -> int:
    return min(range(len(kept.ages)), key=lambda number: abs(math.log(kept.ages[number] / max(seconds, 1e-12))))


def _held(plan: Plan, kept: Kept, word: str) -> Held:
    found: dict[tuple[str, int, str, int], float] = {}
    paused: dict[tuple[str, str, int], float] = {}
    ages: dict[tuple[str, int, str, int], Mapping[tuple[str, int], float]] = {}
    written: dict[tuple[str, str, int], float] = {}
    alive: dict[int, float] = {}
    for number, use in enumerate(plan.tiers):
        for one in use.found:
            found[one.workload, one.part, one.group, number] = getattr(one.rate, word)
        for wait in use.paused:
            paused[wait.workload, wait.group, number] = getattr(wait.rate, word)
        for keeps in use.retained:
            key = keeps.workload, keeps.part, keeps.group, number
            ages[key] = {(use.policy, _age(one.age_s, kept)): one.rate for one in keeps.ages}
        for (workload, group), rate in check.written(plan, kept, number).items():
            written[workload, group, number] = rate
        alive[number] = check.alive(plan, kept, number) * kept.places[number].said.headroom
    return Held(found, written, alive, ages, paused)


def hits(plan: Plan, place: Mapping[str, int], word: str) -> dict[tuple[str, int, int], float]:
    """(workload, candidate, state) -> requests/s of pools that find so many parts of their prompt."""
    return {
        (name, place[pool.name], state): getattr(load, word)
        for pool in plan.pools
        if pool.part_of is None
        for name, states in pool.hits.items()
        for state, load in enumerate(states, 1)
    }
