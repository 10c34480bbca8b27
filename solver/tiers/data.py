"""What the rows about kept state are made from: parts of prompts, places, ages, and who may read where."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from models.instance import Instance
from models.tiers import HBM, Policy
from solver import units
from solver.candidate import Candidate
from solver.formulas import retention
from solver.tiers.parts import Part, cached_tokens, parts, whole_state
from solver.tiers.places import Place, places
from solver.tiers.states import first_seconds
from solver.topology import Topology

STEPS = 24
"""Ages at which so many equal parts of what returns have returned, for each part of a prompt."""
MOST_AGES, LEAST_AGES, MOST_LOADS = 48, 12, 4000
"""Ages at most and at least; between, so many that there are not more loads to be told apart, by age and policy."""
OWN = 6
"""Ages of one part, where each has times of its own."""
LEAST_AGE, MOST_AGE = 1e-3, 1e9
"""Seconds."""
AGAIN, FIRST = 1, 0


@dataclass(frozen=True)
class Kept:
    """Parts, places and ages, with what follows from them."""

    instance: Instance
    topology: Topology
    parts: tuple[Part, ...]
    places: tuple[Place, ...]
    ages: tuple[float, ...]
    fine: bool = True
    """Whether there are few enough loads for every age of every part."""

    def widened(self, topology: Topology, factor: Mapping[str, float]) -> "Kept":
        """The same where channels are so many times as wide."""
        return replace(self, topology=topology, places=tuple(place.widened(factor) for place in self.places))

    def elsewhere(self, instance: Instance, topology: Topology) -> "Kept":
        """The same ages for an instance with other bandwidths or efficiency."""
        return replace(self, instance=instance, topology=topology, places=places(instance, topology))

    def of(self, workload: str) -> list[Part]:
        """Parts of the prompt of a workload."""
        return [part for part in self.parts if part.workload == workload]

    def chain(self, workload: str, group: str) -> list[int]:
        """Places where requests of a workload on a group may find state, fastest first."""
        model = self.instance.workloads[workload].model
        return [number for number, place in enumerate(self.places) if place.serves(group, model)]

    @cached_property
    def split(self) -> bool:
        """Whether returns are told apart: the first one, and later ones, which alone are there under `second_hit`."""
        return any("second_hit" in place.policies for place in self.places)

    @property
    def kinds(self) -> tuple[int, ...]:
        """Kinds of returns."""
        return (FIRST, AGAIN) if self.split else (FIRST,)

    def weight(self, part: Part, kind: int) -> float:
        """Share of the returns of a part that are of a kind."""
        if not self.split:
            return 1.0
        return part.again if kind == AGAIN else 1.0 - part.again

    def covers(self, part: Part, place: Place, policy: Policy, kind: int) -> float:
        """Share of the returns of a kind whose state a place has under a policy, if they are soon enough."""
        if policy == "second_hit":
            return self.admitted(part, place) if kind == AGAIN else 0.0
        return 0.0 if policy == "never" else 1.0

    def admitted(self, part: Part, place: Place) -> float:
        """Share of all returns that `second_hit` still knows to have seen."""
        if place.said.admission is None or part.most <= 0.0:
            return 1.0
        copies = self._copies(part, place)
        seen = part.found(self.remembered(place), copies)
        return min(1.0, seen / (part.most if part.prompt else part.most / copies))

    def remembered(self, place: Place) -> float:
        """Seconds for which `second_hit` knows what it has seen."""
        tokens = sum(self._tokens(name) * w.rate for name, w in self.instance.workloads.items() if w.reuse)
        return math.inf if place.said.admission is None or not tokens else place.said.admission / tokens

    def may_keep(self, place: Place, policy: Policy, age: float) -> bool:
        """Whether a place may keep state for ``age``: under `second_hit` no longer than it is remembered, since what
        returns later than that, and is still there, is in no formula of what is alive and written.
        """
        return policy != "second_hit" or age <= self.remembered(place)

    def _tokens(self, workload: str) -> float:
        one = self.instance.workloads[workload]
        return one.mean_input + one.mean_output - 1.0

    def found(self, part: Part, place: Place, kind: int, age: float) -> float:
        """Share of the requests that return within ``age`` to a place, of a kind."""
        return self.weight(part, kind) * part.found(age, self._copies(part, place))

    def found_at(self, part: Part, number: int, age: float) -> float:
        """Share of the requests that return within ``age`` to a place, of any kind."""
        return part.found(age, self._copies(part, self.places[number]))

    def own_ages(self, workload: str, number: int, place: int) -> list[int]:
        """Ages to choose from for one part alone; where there are many loads, few: it has a mixture of times."""
        if self.fine:
            return list(range(len(self.ages)))
        part, copies = self.of(workload)[number], self._copies(self.of(workload)[number], self.places[place])
        shares = [part.found(age, copies) for age in self.ages]
        wanted = [min(shares[-1], shares[-1] * k / OWN) for k in range(1, OWN + 1)]
        return sorted({next(k for k, share in enumerate(shares) if share >= least) for least in wanted})

    def most(self, part: Part, kind: int) -> float:
        """Share of the requests that ever return."""
        return self.weight(part, kind) * part.most

    def _copies(self, part: Part, place: Place) -> float:
        return place.copies if part.prompt else place.spread

    def live(self, part: Part, place: Place, policy: Policy, age: float) -> float:
        """Bytes alive at a place for a request a second."""
        copies = self._copies(part, place)
        integral = part.integral(age, copies)
        if policy == "second_hit":
            share = self.admitted(part, place)
            most = share * part.most / (1.0 if part.prompt else copies)
            return retention.live_again_bytes(1.0, part.hit, most, age, share * part.again * integral)
        return 0.0 if policy == "never" else retention.live_bytes(1.0, part.kept, part.hit, age, integral)

    def written(self, part: Part, place: Place, policy: Policy, age: float) -> float:
        """Bytes written to a place for each request; of exclusive ones see :func:`evicted`."""
        copies = self._copies(part, place)
        found = part.found(age, copies)
        if policy == "second_hit":
            share = self.admitted(part, place)
            most = share * part.most / (1.0 if part.prompt else copies)
            return retention.written_again_bytes(1.0, part.hit, most, share * part.again * found)
        return 0.0 if policy == "never" else retention.written_bytes(1.0, part.kept, part.hit, found)

    def paused(self, workload: str) -> float:
        """Bytes of the state of a request that waits for tools."""
        one = self.instance.workloads[workload]
        return whole_state(units.shape_of(units.DECODE, self.instance.models[one.model]), one)

    def quick(self, candidate: Candidate, workload: str, place: Place) -> bool:
        """Whether reading from a place is no slower than computing, where a target for the first token asks for it."""
        one = self.instance.workloads[workload]
        if one.targets.ttft is None or candidate.device is None:
            return True
        shape = units.shape_of(candidate.kind, self.instance.models[candidate.model])
        whole = units.costs(shape, candidate.device, one).first_token
        return all(
            self.first(candidate, workload, place, state) <= whole * (1.0 + 1e-9)
            for state in range(1, len(cached_tokens(one)) + 1)
        )

    def first(self, candidate: Candidate, workload: str, place: Place, state: int) -> float:
        """Seconds to the first token of a request in ``state`` that reads all it finds from one place."""
        one, device = self.instance.workloads[workload], candidate.device
        if device is None:
            return float("inf")
        shape = units.shape_of(candidate.kind, self.instance.models[candidate.model])
        size = sum(part.hit for part in self.of(workload)[:state])
        read = place.seconds(size, candidate.group, candidate.cards, self.topology)
        tokens = cached_tokens(one)[state - 1]
        early = place.said.early_layers if candidate.room > 0.0 else 0  # else there is no room for them
        return first_seconds(shape, device, one, tokens, read, place.said, early)


def gather(instance: Instance, topology: Topology) -> Kept:
    """What is kept where."""
    listed, there = parts(instance), places(instance, topology)
    each = sum(
        len(place.policies)
        for name, workload in instance.workloads.items()
        for group in instance.hardware.groups
        for place in there
        if workload.reuse and workload.may_use(group) and place.serves(group, workload.model)
    )
    wanted = MOST_LOADS // max(each, 1)
    kept = Kept(instance, topology, listed, there, (), wanted >= MOST_AGES)
    return replace(kept, ages=_ages(listed, there, wanted, _full(kept)))


def _ages(listed: Sequence[Part], there: Sequence[Place], wanted: int, full: set[float]) -> tuple[float, ...]:
    """Retention times to choose from: where places are full, where reuse grows, and not too near to each other."""
    most = max(LEAST_AGES, min(MOST_AGES, wanted))
    stay = full if 2 * len(full) <= most else set()
    found = set(stay)
    for part in listed:
        copies = {place.copies if part.prompt else place.spread for place in there}
        for each in copies:
            found.update(part.ages(each, STEPS if not part.prompt else 3))
    ages = sorted({max(age, LEAST_AGE) for age in found if age <= MOST_AGE})
    while len(ages) > most:  # the two that are nearest to each other become one
        ratios = [b / a if not {a, b} <= stay else math.inf for a, b in itertools.pairwise(ages)]
        at = ratios.index(min(ratios))
        del ages[at + (ages[at] in stay)]
    return tuple(ages)


def _full(kept: Kept) -> set[float]:
    """Ages at which places of one size are full of what all requests leave, under each of their policies.

    An exclusive one has also what the place above has room for, if that is of one size.
    """
    found: set[float] = set()
    for number, place in enumerate(kept.places):
        above = kept.places[number - 1] if number else place
        shared = place.said.holds == "exclusive"
        if place.each_apart or not _fixed(place) or (shared and not _fixed(above)):
            continue
        room = place.size.at(place.most) / place.said.headroom
        room += above.size.at(above.most) / above.said.headroom if shared else 0.0
        mine = [part for part in kept.parts if _comes(kept, part, number)]
        for policy in place.policies:
            if policy != "never" and (age := _until(kept, mine, place, policy, room)) is not None:
                found.add(age)
    return found


def _fixed(place: Place) -> bool:
    return place.tier != HBM and place.least == place.most and place.size.at(place.most) > 0.0


def _comes(kept: Kept, part: Part, number: int) -> bool:
    workload = kept.instance.workloads[part.workload]
    groups = [group for group in kept.instance.hardware.groups if workload.may_use(group)]
    return any(number in kept.chain(part.workload, group) for group in groups)


def _until(kept: Kept, mine: Sequence[Part], place: Place, policy: Policy, room: float) -> float | None:
    """The age at which so many bytes are alive; None where that is never, or at once."""

    def fits(age: float) -> bool:
        return sum(part.rate * kept.live(part, place, policy, age) for part in mine) <= room

    low, high = LEAST_AGE, MOST_AGE
    if not fits(low) or fits(high):
        return None
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * (1.0 - 1e-9)
