r"""State kept for later: how long each place keeps it, what is found there, and what that takes and saves.

A place keeps state for one of the ages $T_j$ under one of its policies: a column $\delta_{P,p,j}$ that is 0 or 1 (under
LRU), or for each workload a mixture (with a time to live). $y_{w,g,P,p,j}$ is the part of the load of workload w on
group g that is kept so; $\varphi_{w,k,g,P}$ requests/s that find part k of their prompt at P.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from models.tiers import HBM
from solver.data import Data
from solver.milp import ages
from solver.milp.ages import Way
from solver.milp.flows import Flows
from solver.milp.model import Model, Row, Term, at_least, at_most, equal
from solver.tiers.choice import Choice
from solver.tiers.data import Kept
from solver.tiers.parts import Part

LEAST = 1e-12
"""Requests/s below which nothing is kept."""
Line = tuple[str, int | None, str, int]
"""A workload, or one part of its prompt, on a group at a place."""


@dataclass
class Keeping:
    """Columns about kept state."""

    kept: Kept
    pieces: dict[int, int] = field(default_factory=dict)
    """Place -> how many pieces it has."""
    ways: dict[int, dict[Way, int]] = field(default_factory=dict)
    """Place -> its policies and ages -> column; under a time to live the ages are not told apart."""
    held: dict[Line, dict[Way, int]] = field(default_factory=dict)
    """Load that is kept so."""
    written: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """Workload, group, place -> bytes/s written, as a share of what the place is told in."""
    slack: dict[int, list[Term]] = field(default_factory=dict)
    """Columns that only rows from below hold, with the terms that each is no less than: as small as can be, they are
    what they stand for."""
    found: dict[str, dict[tuple[str, int, int, str, int], int]] = field(default_factory=dict)
    """By regime: workload, part, kind of return, group, place -> requests."""
    paused: dict[str, dict[tuple[str, str, int], int]] = field(default_factory=dict)
    """By regime: workload, group, place -> pauses."""


def scale(data: Data, workload: str) -> float:
    """Requests/s that one of a column of flows is."""
    return data.share(workload) / data.tick


def columns(model: Model, data: Data, choice: Choice | None = None) -> Keeping:
    """Columns of pieces and ways; with a choice they are what it says."""
    kept = data.kept
    if kept is None:
        raise ValueError("nothing is kept")
    found = Keeping(kept)
    for number, place in enumerate(kept.places):
        made = None if choice is None else choice.places[number]
        low, high = (place.least, place.most) if made is None else (made.pieces, made.pieces)
        found.pieces[number] = model.column(float(low), float(high), integer=made is None)
        every = [0] if place.each_apart else ages.worth(data, number)
        for policy in place.policies:
            if policy == "never":
                continue
            numbers = [n for n in every if place.each_apart or kept.may_keep(place, policy, kept.ages[n])]
            if made is not None:
                mine = {(policy, age): float((policy, age) == made.way) for age in numbers}
                found.ways.setdefault(number, {}).update({way: model.column(v, v) for way, v in mine.items()})
            else:
                found.ways.setdefault(number, {}).update(ages.steps(model, place.name, policy, numbers))
        ways = found.ways.setdefault(number, {})
        if made is None and ways:
            model.rows.append(at_most(f"retention[{place.name}]", [(c, 1.0) for c in ways.values()], 1.0))
    return found


def load(model: Model, data: Data, keeping: Keeping, regime: Flows, most: float) -> None:
    r"""The load is kept as the places say: $\sum_{p,j} y \le x$, $y_{p,j} \le \lambda_w \delta_{P,p,j}$."""
    kept = keeping.kept
    for workload, group in pairs(data, regime):
        begun = beginning(data, regime, workload, group)
        for number in kept.chain(workload, group):
            apart = kept.places[number].each_apart
            for part in range(len(kept.of(workload))) if apart else [None]:
                line: dict[Way, int] = {}
                for (policy, age), column in keeping.ways[number].items():
                    alike = kept.own_ages(workload, part, number) if part is not None else [age]
                    alike = [n for n in alike if kept.may_keep(kept.places[number], policy, kept.ages[n])]
                    if model.upper[column] <= 0.0:
                        continue
                    for each in alike:
                        line[policy, each] = model.column(0.0, most)
                    terms = [(line[policy, each], 1.0) for each in alike]
                    name = f"kept[{workload},{group},{kept.places[number].name}]"
                    model.rows.append(at_most(name, [*terms, (column, -most)], 0.0))
                if line:
                    name = f"keeps[{workload},{group},{kept.places[number].name}]"
                    terms = [*((c, 1.0) for c in line.values()), *((c, -k) for c, k in begun)]
                    model.rows.append(at_most(name, terms, 0.0))
                    if not apart:  # then a place that is in use keeps what everybody leaves
                        used = [(column, -most) for column in keeping.ways[number].values()]
                        model.rows.append(at_least(f"all-{name}", [*terms, *used], -most))
                    if kept.places[number].tier == HBM and _prompts(kept, workload, part):
                        roomy = _roomy(data, regime, workload, group)
                        name = f"prompts[{workload},{group},{kept.places[number].name}]"
                        model.rows.append(at_most(name, [*((c, 1.0 / most) for c in line.values()), *roomy], 0.0))
                keeping.held[workload, part, group, number] = line


def _prompts(kept: Kept, workload: str, number: int | None) -> bool:
    """Whether a part, or any of them, is a system prompt."""
    return any(part.prompt for part in kept.of(workload) if number in (None, part.number))


def _roomy(data: Data, regime: Flows, workload: str, group: str) -> list[Term]:
    """Units that have room beside system prompts; those without do not hold the prompts either."""
    return [
        (column, -k)
        for index, candidate in enumerate(data.candidates)
        if candidate.group == group and candidate.begins and workload in candidate.hits and candidate.room > 0.0
        for column, k in regime.units[index]
    ]


def exact(keeping: Keeping, values: Sequence[float], unit: Mapping[str, float]) -> list[float]:
    """Values without what rounding leaves: nothing is kept for hardly a request, and slack is what its terms say.

    ``unit`` gives requests/s of one of a column, by workload.
    """
    found = list(values)
    for (workload, *_), line in keeping.held.items():
        for column in line.values():
            found[column] = found[column] if found[column] * unit[workload] > LEAST else 0.0
    for column, terms in reversed(keeping.slack.items()):  # those that another needs come after it
        found[column] = max(0.0, sum(k * found[c] for c, k in terms))
    return found


def pairs(data: Data, regime: Flows) -> list[tuple[str, str]]:
    """Workloads whose prompts have parts, each with the groups where it may begin and find them."""
    found: dict[tuple[str, str], None] = {}
    for (workload, index), _ in regime.rates.items():
        candidate = data.candidates[index]
        if candidate.begins and workload in candidate.hits:
            found[workload, candidate.group] = None
    return list(found)


def beginning(data: Data, regime: Flows, workload: str, group: str) -> list[Term]:
    """Flows of a workload that begin on a group, on units that may find its prompt."""
    return [
        (column, 1.0)
        for (name, index), column in regime.rates.items()
        if name == workload
        and data.candidates[index].group == group
        and data.candidates[index].begins
        and workload in data.candidates[index].hits
    ]


def line_of(keeping: Keeping, part: Part, group: str, number: int) -> Mapping[Way, int]:
    """Load of a part that is kept at a place."""
    own = part.number if keeping.kept.places[number].each_apart else None
    return keeping.held.get((part.workload, own, group, number), {})


def regime(model: Model, data: Data, keeping: Keeping, flows: Flows) -> None:
    """Columns of what is found in a regime, and what ties them to its flows."""
    kept, name = keeping.kept, flows.name
    found: dict[tuple[str, int, int, str, int], int] = {}
    for workload, group in pairs(data, flows):
        chain = kept.chain(workload, group)
        for part in kept.of(workload):
            terms: list[Term] = []
            for kind in kept.kinds:
                for number in chain:
                    column = model.column()
                    found[workload, part.number, kind, group, number] = column
                    terms.append((column, 1.0))
            states = [
                (column, -1.0)
                for (w, index, state), column in flows.hits.items()
                if w == workload and state > part.number and data.candidates[index].group == group
            ]
            model.rows.append(equal(f"found[{workload},{part.number},{group}]{name}", [*terms, *states]))
    keeping.found[name] = found
    model.rows.extend(_states(data, flows))
    model.rows.extend(_in_time(data, keeping, flows))
    _pauses(model, data, keeping, flows)


def _states(data: Data, flows: Flows) -> Iterator[Row]:
    r"""A request finds the first k parts, or none: $\sum_k h_{w,c,k} \le x_{w,c}$."""
    mine: dict[tuple[str, int], list[Term]] = {}
    for (workload, index, _), column in flows.hits.items():
        mine.setdefault((workload, index), []).append((column, 1.0))
    for (workload, index), terms in mine.items():
        name = f"states[{workload},{data.candidates[index].name}]{flows.name}"
        yield at_most(name, [*terms, (flows.rates[workload, index], -1.0)], 0.0)


def _in_time(data: Data, keeping: Keeping, flows: Flows) -> Iterator[Row]:
    r"""What is read from places so slow that some units had better compute is read for the others.

    For every set of places: $\sum_{P \in S} \varphi_{w,k,g,P} \le \sum_{c\ may\ use\ one} \sum_{s \ge k} h_{w,c,s}$.
    """
    kept = keeping.kept
    for workload, group in pairs(data, flows):
        if data.instance.workloads[workload].targets.ttft is None:
            continue
        chain = kept.chain(workload, group)
        mine = [i for (w, i) in flows.rates if w == workload and data.candidates[i].group == group]
        mine = [i for i in mine if data.candidates[i].begins and workload in data.candidates[i].hits]
        quick = {i: {n for n in chain if kept.quick(data.candidates[i], workload, kept.places[n])} for i in mine}
        for some in range(1, 2 ** len(chain)):
            places = {n for k, n in enumerate(chain) if some >> k & 1}
            able = [i for i in mine if quick[i] & places]
            if len(able) == len(mine):
                continue
            for part in kept.of(workload):
                read = [
                    (c, 1.0)
                    for (w, k, _, g, n), c in keeping.found[flows.name].items()
                    if (w, k, g) == (workload, part.number, group) and n in places
                ]
                states = [
                    (c, -1.0) for (w, i, s), c in flows.hits.items() if w == workload and i in able and s > part.number
                ]
                yield at_most(f"in-time[{workload},{part.number},{group},{some}]{flows.name}", [*read, *states], 0.0)


def _pauses(model: Model, data: Data, keeping: Keeping, flows: Flows) -> None:
    r"""State of requests that wait for tools is somewhere: $\sum_P q_{w,g,P} = calls\,\sum_c x_{w,c}$."""
    kept = keeping.kept
    paused: dict[tuple[str, str, int], int] = {}
    for workload, described in data.instance.workloads.items():
        if described.tool_wait is None:
            continue
        for group in data.instance.hardware.groups:
            ends = [
                (c, -described.tool_wait.calls)
                for (w, i), c in flows.rates.items()
                if w == workload and data.candidates[i].group == group and ending(data, i, workload)
            ]
            if not ends:
                continue
            mine = {(workload, group, number): model.column() for number in kept.chain(workload, group)}
            paused.update(mine)
            name = f"waits[{workload},{group}]{flows.name}"
            model.rows.append(equal(name, [*((c, 1.0) for c in mine.values()), *ends]))
    keeping.paused[flows.name] = paused


def ending(data: Data, index: int, workload: str) -> bool:
    """Whether requests of a workload stay on units of a candidate until their end."""
    stage = data.candidates[index].stage
    return stage in ("both", "decode") or (stage == "prefill" and not data.instance.workloads[workload].decodes)


def within(data: Data, keeping: Keeping, flows: Flows, load_name: str) -> Iterator[Row]:
    r"""More than the stated load is not kept: a regime finds no more than it, $\varphi \le \varphi^{load}$."""
    kept, found, loaded = keeping.kept, keeping.found[flows.name], keeping.found[load_name]
    grouped: dict[tuple[str, int, str, int], list[Term]] = {}
    for (workload, part, _, group, number), column in found.items():
        grouped.setdefault((workload, part, group, number), []).append((column, 1.0))
    for (workload, part, _, group, number), column in loaded.items():
        grouped.setdefault((workload, part, group, number), []).append((column, -1.0))
    for (workload, part, group, number), terms in grouped.items():
        yield at_most(f"within[{workload},{part},{group},{kept.places[number].name}]{flows.name}", terms, 0.0)
