"""The best plan that keeps state, by going through every policy and retention time of every place.

For one vector of policies and times everything else is linear. Each such program is bounded without whole numbers
first, and solved with them only where the bound says that it may be best. Under a time to live requests are told apart
by what is done with their state in all places together; the solver only knows how many there are of each sort, place by
place.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ortools.linear_solver import pywraplp

from models.instance import Instance
from tests.against import tiers_kept as own
from tests.against.accounting import payload
from tests.against.network import Network, trips
from tests.against.tiers_kept import Own, Part, Sums, Unit, Way

HOUR = 3600.0
INFINITY = float("inf")
Combination = tuple[Way | None, ...]
"""What each place does; under a time to live only the policy counts."""
Class = tuple[Way | None, ...]
"""What the places of a chain do with some of the state."""


@dataclass
class Case:
    instance: Instance
    units: list[Unit]
    places: list[Own]
    parts: list[Part]
    ages: tuple[float, ...]
    sums: Sums
    barred: set[tuple[str, int]] = field(default_factory=set)
    """Workload and place: reading from it is slower than computing, where the first token has a target."""

    def chain(self, group: str) -> list[int]:
        return [n for n, p in enumerate(self.places) if p.group in (None, group) and p.said.on(group)]

    def of(self, workload: str) -> list[Part]:
        return [part for part in self.parts if part.workload == workload]

    def combinations(self) -> Iterator[Combination]:
        each: list[list[Way | None]] = []
        for place in self.places:
            ages = [self.ages[0]] if place.ttl else self.ages
            ways = [Way(policy, age) for policy in place.policies for age in ages]
            each.append([None, *(w for w in ways if place.ttl or self.sums.outlives(place, w.policy, w.age))])
        return itertools.product(*each)


def case(instance: Instance, ages: tuple[float, ...]) -> Case:
    (scheme,) = instance.schemes.allow
    kinds = ["prefill", "decode"] if scheme.startswith("pd") else [str(scheme)]
    built = Case(instance, own.units(instance, kinds), own.places(instance), own.parts(instance), ages, Sums(instance))
    for name, workload in instance.workloads.items():
        if workload.targets.ttft is None:
            continue
        for unit in built.units:
            if not unit.begins:
                continue
            cold = unit.takes[name][0][0]
            for number in built.chain(unit.group):
                size = 0.0
                for state, part in enumerate(built.of(name), 1):
                    size += part.hit
                    read = own.reading(instance, built.places[number], unit.group, size)
                    if first(built.places[number], instance, read, unit.takes[name][state][0]) > cold * (1 + 1e-9):
                        built.barred.add((name, number))
    return built


def first(place: Own, instance: Instance, read: float, compute: float) -> float:
    """Seconds to a first token: read layer by layer, one after the other, or while the request waits."""
    (llm,) = instance.models.values()
    if place.said.fetch == "prefetch":
        return max(0.0, read - place.said.wait) + compute
    if place.said.fetch == "serial":
        return read + compute
    there = done = 0.0
    for layer in range(llm.num_hidden_layers):
        if layer >= place.said.early_layers:
            there += read / llm.num_hidden_layers
        done = max(done, there) + compute / llm.num_hidden_layers
    return done


Rows = list[tuple[Any, float]]


@dataclass
class Regime:
    """Columns of one regime; rates are over the stated rate of their workload."""

    served: dict[str, Any]
    begun: dict[tuple[str, int, int], Any]
    """Workload, unit, parts found -> share."""
    decoded: dict[tuple[str, int], Any]
    found: dict[tuple[str, int, str, int], Rows]
    paused: dict[tuple[str, str, int], Any]


class Program:
    """The program of one combination; counts and pieces are whole where ``whole`` says so."""

    def __init__(self, case: Case, combination: Combination, whole: bool) -> None:
        self.case, self.combination, self.whole = case, combination, whole
        self.instance = case.instance
        self.solver = pywraplp.Solver.CreateSolver("SCIP" if whole else "GLOP")
        groups = self.instance.hardware.groups

        def count(low: float, high: float) -> Any:
            return self.solver.IntVar(low, high, "") if whole else self.solver.NumVar(low, high, "")

        self.counts = [count(0, groups[u.group].cards) for u in case.units]
        for name, group in groups.items():
            mine = [c for c, u in zip(self.counts, case.units, strict=True) if u.group == name]
            self.row([(c, 1.0) for c in mine], group.cards)
        self.pieces = [count(p.least, p.most) for p in case.places]
        for limit in self.instance.limits.pools:
            mine = [
                (c, 1.0)
                for c, u in zip(self.counts, case.units, strict=True)
                if limit.group in (None, u.group) and limit.stage in (None, u.kind, "both" if u.ends else "")
            ]
            if limit.exactly is not None:
                self.row(mine, limit.exactly, limit.exactly)
        drops = any(w.minimum_share < 1.0 for w in self.instance.workloads.values())
        self.load = self.regime(
            {n: self.number(w.minimum_share if drops else 1.0, 1.0) for n, w in self.instance.workloads.items()}
        )
        self.held: dict[tuple[str, int, str], list[tuple[Class, Any]]] = {}
        self.keep()
        self.alive = {n: self._alive(n) for n in range(len(case.places))}
        self.written = {
            (n, g): self._written(n, g) for n, p in enumerate(case.places) for g in groups if not p.hbm and p.said.on(g)
        }
        self.room(self.load)
        self._links(self.load, False)
        self.throughput = self.number(0.0 if drops else 1.0, INFINITY)  # over the stated mix
        self.capacity = self.regime(dict.fromkeys(self.instance.workloads, self.throughput), self.load)
        self.room(self.capacity)
        self._links(self.capacity, False)
        drain, start = self.instance.service.drain, max(self.instance.startup(g) for g in groups)
        if drain is not None and not drops:
            needed = drain / (drain - start) if drain > start else INFINITY
            fixed = self.number(needed, needed) if needed < INFINITY else self.number(1.0, 0.0)
            self._links(self.regime(dict.fromkeys(self.instance.workloads, fixed), None, cold=True), True)
        self.cost = [
            (c, HOUR * (groups[u.group].price or 0.0)) for c, u in zip(self.counts, case.units, strict=True)
        ] + [(c, HOUR * p.price) for c, p in zip(self.pieces, case.places, strict=True) if p.price]

    def number(self, low: float = 0.0, high: float = INFINITY) -> Any:
        return self.solver.NumVar(low, high, "")

    def row(self, terms: Rows, high: float, low: float = -INFINITY) -> None:
        made = self.solver.Constraint(low, high)
        total: dict[int, tuple[Any, float]] = {}
        for column, k in terms:
            before = total.get(column.index(), (column, 0.0))[1]
            total[column.index()] = (column, before + k)
        for column, k in total.values():
            made.SetCoefficient(column, k)

    def rate(self, workload: str) -> float:
        return float(self.instance.workloads[workload].rate)

    # flows

    def regime(self, served: dict[str, Any], load: Regime | None = None, cold: bool = False) -> Regime:
        case, instance = self.case, self.instance
        begun: dict[tuple[str, int, int], Any] = {}
        decoded: dict[tuple[str, int], Any] = {}
        for number, unit in enumerate(case.units):
            for name, takes in unit.takes.items():
                if unit.begins:
                    for state in range(1 if cold else len(takes)):
                        begun[name, number, state] = self.number()
                if unit.kind == "decode" and instance.workloads[name].output != 1:
                    decoded[name, number] = self.number()
        for name in instance.workloads:
            self.row([*((c, 1.0) for k, c in begun.items() if k[0] == name), (served[name], -1.0)], 0.0, 0.0)
            if decoded and instance.workloads[name].output != 1:
                self.row([*((c, 1.0) for k, c in decoded.items() if k[0] == name), (served[name], -1.0)], 0.0, 0.0)
        for number, unit in enumerate(case.units):
            for k in range({"chunked": 2, "decode": 2}.get(unit.kind, 1)):
                terms = [(self.counts[number], -1.0)]
                for (name, u, state), column in begun.items():
                    if u == number:
                        terms.append((column, unit.takes[name][state][k] * self.rate(name)))
                for (name, u), column in decoded.items():
                    if u == number:
                        terms.append((column, unit.takes[name][0][k] * self.rate(name)))
                self.row(terms, 0.0)
        made = Regime(served, begun, decoded, {}, {})
        if not cold:
            self._finding(made, load)
            self._pauses(made)
        return made

    def _finding(self, made: Regime, load: Regime | None) -> None:
        """Places give what requests find; at capacity no more than at the load."""
        for group in self.instance.hardware.groups:
            for name in self.instance.workloads:
                for part in self.case.of(name):
                    needed = [
                        (c, -1.0)
                        for (w, u, s), c in made.begun.items()
                        if w == name and s > part.number and self.case.units[u].group == group
                    ]
                    given: Rows = []
                    for number in self.case.chain(group):
                        column = self.number(0.0, 0.0 if (name, number) in self.case.barred else INFINITY)
                        made.found[name, part.number, group, number] = [(column, 1.0)]
                        given.append((column, 1.0))
                        if load is not None:
                            known = load.found[name, part.number, group, number]
                            self.row([(column, 1.0), *((c, -k) for c, k in known)], 0.0)
                    self.row([*given, *needed], 0.0, 0.0)

    def _pauses(self, made: Regime) -> None:
        for name, workload in self.instance.workloads.items():
            wait = workload.tool_wait
            for group in self.instance.hardware.groups if wait is not None else ():
                assert wait is not None
                ends: Rows = [
                    (c, -wait.calls)
                    for (w, u, _), c in made.begun.items()
                    if w == name and self.case.units[u].group == group and self._ends(w, u)
                ]
                ends += [
                    (c, -wait.calls)
                    for (w, u), c in made.decoded.items()
                    if w == name and self.case.units[u].group == group
                ]
                there = []
                for number in self.case.chain(group):
                    made.paused[name, group, number] = column = self.number()
                    there.append((column, 1.0))
                self.row([*there, *ends], 0.0, 0.0)

    def _ends(self, name: str, unit: int) -> bool:
        """Whether requests stay on such units to their end."""
        one = self.case.units[unit]
        return one.begins if self.instance.workloads[name].output == 1 else one.ends

    # what is kept

    def keep(self) -> None:
        """Classes of requests by what becomes of their state, and what they find."""
        case = self.case
        for group in self.instance.hardware.groups:
            chain = case.chain(group)
            for part in case.parts:
                choices: list[list[Way | None]] = []
                for number in chain:
                    way = self.combination[number]
                    if way is None or not case.places[number].ttl:
                        choices.append([way])
                    else:
                        place, policy = case.places[number], way.policy
                        some = [age for age in case.ages if case.sums.outlives(place, policy, age)]
                        choices.append([None, *(Way(policy, age) for age in some)])
                begun = [
                    (c, 1.0)
                    for (w, u, _), c in self.load.begun.items()
                    if w == part.workload and case.units[u].group == group
                ]
                line: list[tuple[Class, Any]] = [(one, self.number()) for one in itertools.product(*choices)]
                self.held[part.workload, part.number, group] = line
                self.row([*((c, 1.0) for _, c in line), *((c, -k) for c, k in begun)], 0.0, 0.0)
                total: dict[int, Rows] = {number: [] for number in chain}
                for one, column in line:
                    self._found_by(part, chain, one, column, total)
                for number in chain:
                    found = self.load.found[part.workload, part.number, group, number]
                    self.row([*found, *((c, -k) for c, k in total[number])], 0.0)

    def _found_by(self, part: Part, chain: Sequence[int], one: Class, load: Any, total: dict[int, Rows]) -> None:
        """What a class finds: in any set of places no more than one of them has."""
        split = any("second_hit" in self.case.places[n].policies for n in chain)
        for weight, later in [(1.0 - part.later, False), (part.later, True)] if split else [(1.0, True)]:
            spans: dict[int, tuple[float, float]] = {}
            for number, way in zip(chain, one, strict=True):
                place = self.case.places[number]
                if way is None or (way.policy == "second_hit" and not later):
                    continue
                known = self.case.sums.admitted(part, place) if way.policy == "second_hit" else 1.0
                spans[number] = (weight * part.share(way.age, place), known)
            columns = {number: self.number() for number in spans}
            for number, column in columns.items():
                total[number].append((column, 1.0))
            for size in range(1, len(spans) + 1):
                for some in itertools.combinations(spans, size):
                    self.row([*((columns[n], 1.0) for n in some), (load, -_union([spans[n] for n in some]))], 0.0)

    def _sums(self, part: Part, number: int, way: Way) -> tuple[float, float, float]:
        return self.case.sums.of(part, self.case.places[number], way)

    def _above(self, chain: Sequence[int], one: Class, number: int) -> tuple[int, Way] | None:
        before = chain.index(number) - 1
        way = one[before] if before >= 0 else None
        return None if way is None else (chain[before], way)

    def _alive(self, number: int) -> Rows:
        """Bytes alive, per request a second of each class."""
        terms: Rows = []
        for (name, k, group), line in self.held.items():
            chain = self.case.chain(group)
            if number not in chain:
                continue
            part = self.case.of(name)[k]
            for one, column in line:
                way = one[chain.index(number)]
                if way is None:
                    continue
                bytes_ = self._sums(part, number, way)[0]
                above = self._above(chain, one, number)
                if self.case.places[number].said.holds == "exclusive" and above is not None:
                    bytes_ = max(0.0, bytes_ - self._sums(part, *above)[0])
                if self.case.places[number].hbm and part.prompt:
                    mine = [u for u in self.case.units if u.group == group and u.begins]
                    bytes_ = 0.0 if all(unit.prompts for unit in mine) else part.hit
                terms.append((column, bytes_ * self.rate(name)))
        return terms

    def _written(self, number: int, group: str) -> list[Any]:
        """Columns of bytes/s, one for each workload, over the size of the place."""
        place, columns = self.case.places[number], []
        size = place.base + place.most * place.each or 1.0
        chain = self.case.chain(group)
        for name in self.instance.workloads if number in chain else ():
            terms: Rows = []
            for part in self.case.of(name):
                for one, load in self.held[name, part.number, group]:
                    way = one[chain.index(number)]
                    if way is None:
                        continue
                    rate = self._sums(part, number, way)[1]
                    if place.said.holds == "exclusive":
                        above = self._above(chain, one, number)
                        rate = part.left - (
                            part.hit * part.share(above[1].age, self.case.places[above[0]]) if above else 0
                        )
                    terms.append((load, max(0.0, rate) * self.rate(name) / size))
            if place.store is not None and self.instance.schemes.allow == ["pd-pooled"]:
                each = payload(self.instance, self.instance.workloads[name]) * self.rate(name) / size
                if self.instance.workloads[name].output != 1:
                    terms += [(c, -each) for (w, _, _), c in self.load.begun.items() if w == name]
            column = self.number()
            self.row([*terms, (column, -1.0)], 0.0)
            columns.append((column, size))
        return columns

    # room

    def _read(self, made: Regime, number: int, group: str | None = None) -> Rows:
        terms: Rows = []
        for (name, k, where, n), columns in made.found.items():
            if n == number and group in (None, where):
                terms += [(c, x * self.case.of(name)[k].hit * self.rate(name)) for c, x in columns]
        return terms + self._put_away(made, number, group)

    def _put_away(self, made: Regime, number: int, group: str | None = None) -> Rows:
        return [
            (c, own.whole(self.instance, self.instance.workloads[name]) * self.rate(name))
            for (name, where, n), c in made.paused.items()
            if n == number and group in (None, where)
        ]

    def _put(self, made: Regime, number: int, group: str | None = None) -> Rows:
        terms = self._put_away(made, number, group)
        for (n, where), columns in self.written.items():
            if n == number and group in (None, where):
                terms += columns
        return terms

    def room(self, made: Regime) -> None:
        for number, place in enumerate(self.case.places):
            waits = {name: self._waiting(made, number, name) for name in self.instance.workloads}
            if place.hbm:
                self._hbm(number, waits)
                continue
            size = place.base + place.most * place.each or 1.0
            head = place.said.headroom / size
            passing, moved = self._passing(made, place)
            held = [(c, k * head) for terms in (self.alive[number], *waits.values()) for c, k in terms]
            held += [(c, k / size) for c, k in passing]
            self.row([*held, (self.pieces[number], -place.each / size)], place.base / size)
            read, put = [*self._read(made, number), *moved], [*self._put(made, number), *moved]
            for what, there, each in place.pipes:
                terms = {"both": [*read, *put], "read": read, "write": put, "wear": put}[what]
                most = there + place.most * each or 1.0
                self.row([*((c, k / most) for c, k in terms), (self.pieces[number], -each / most)], there / most)

    def _passing(self, made: Regime, place: Own) -> tuple[Rows, Rows]:
        """Bytes that handoffs hold of the store of a pool, and move in and out of it."""
        held: Rows = []
        moved: Rows = []
        if place.store is None or self.instance.schemes.allow != ["pd-pooled"]:
            return held, moved
        (group,), network = self.instance.hardware.groups, Network(self.instance.hardware)
        for name, workload in self.instance.workloads.items():
            if workload.output == 1:
                continue
            size = payload(self.instance, workload)
            (trip,) = trips(network, ["pd-pooled"], group, group, [(1.0, size)])
            stays = trip.load[place.store, "bytes"] * self.instance.hardware.stores[place.store].capacity
            mine = [c for (w, _, _), c in made.begun.items() if w == name]
            held += [(c, stays * self.rate(name)) for c in mine]
            moved += [(c, size * self.rate(name)) for c in mine]
        return held, moved

    def _waiting(self, made: Regime, number: int, name: str) -> Rows:
        wait = self.instance.workloads[name].tool_wait
        each = own.whole(self.instance, self.instance.workloads[name]) * self.rate(name)
        long = wait.mean if wait is not None else 0.0
        return [(c, each * long) for (w, _, n), c in made.paused.items() if n == number and w == name]

    def _hbm(self, number: int, waits: dict[str, Rows]) -> None:
        """Prefixes go to units where requests begin, pauses to those where requests of their workload end."""
        place, head = self.case.places[number], self.case.places[number].said.headroom / 1e9
        mine = [u for u, unit in enumerate(self.case.units) if unit.group == place.group]
        filled: dict[int, Rows] = {u: [(self.counts[u], -self.case.units[u].room / 1e9)] for u in mine}
        sorts = [(self.alive[number], [u for u in mine if self.case.units[u].begins])]
        sorts += [(terms, [u for u in mine if self._ends(name, u)]) for name, terms in waits.items()]
        for terms, there in sorts:
            put = {u: self.number() for u in there}
            for u, column in put.items():
                filled[u].append((column, 1.0))
            self.row([*((c, k * head) for c, k in terms), *((c, -1.0) for c in put.values())], 0.0, 0.0)
        for row in filled.values():
            self.row(row, 0.0)

    def _links(self, made: Regime, cold: bool) -> None:
        """Handoffs, and what is read from a pool and written to it."""
        load: dict[tuple[str, ...], Rows] = {}
        if made.decoded:
            network = Network(self.instance.hardware)
            (group,) = self.instance.hardware.groups
            for name, workload in self.instance.workloads.items():
                if workload.output == 1:
                    continue
                size = payload(self.instance, workload)
                (trip,) = trips(network, list(self.instance.schemes.allow), group, group, [(1.0, size)])
                for channel, share in trip.load.items():
                    load.setdefault(channel, []).extend(
                        (c, share * self.rate(name)) for (w, _, _), c in made.begun.items() if w == name
                    )
        for number, place in enumerate(self.case.places) if not cold else ():
            for where in self.instance.hardware.groups if place.store is not None else ():
                if not place.said.on(where):
                    continue
                there, back = own.crossing(self.instance, place, where)
                for channel, share in there.items():
                    load.setdefault(channel, []).extend((c, k * share) for c, k in self._read(made, number, where))
                for channel, share in back.items():
                    load.setdefault(channel, []).extend((c, k * share) for c, k in self._put(made, number, where))
        for terms in load.values():
            self.row(terms, 1.0)

    # answers

    def _solve(self, terms: Rows, largest: bool) -> float | None:
        objective = self.solver.Objective()
        objective.Clear()
        for column, k in terms:
            objective.SetCoefficient(column, k)
        objective.SetOptimizationDirection(largest)
        status = self.solver.Solve()
        if status == pywraplp.Solver.ABNORMAL and not self.whole:
            return 0.0  # no bound
        assert status in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.INFEASIBLE), status
        return float(objective.Value()) if status == pywraplp.Solver.OPTIMAL else None

    def cheapest(self) -> float | None:
        """Money an hour."""
        return self._solve(self.cost, False)

    def most(self) -> float | None:
        """Requests/s of the stated mix."""
        value = self._solve([(self.throughput, 1.0)], True)
        return None if value is None else value * self.instance.rate

    def value(self) -> float | None:
        """What is served of the load, where some may be turned away."""
        return self._solve([(self.load.served[name], self.rate(name)) for name in self.load.served], True)

    def serve(self, value: float) -> None:
        terms = [(self.load.served[name], self.rate(name)) for name in self.load.served]
        self.row(terms, INFINITY, value * (1.0 - 1e-8))

    def spend(self, money: float) -> None:
        self.row(list(self.cost), money * (1.0 + 1e-9) + 1e-9)


@dataclass
class Best:
    cost: float
    throughput: float
    combinations: int
    programs: int
    ways: list[Combination]
    """Those with the least cost."""


def late(case: Case) -> bool:
    """Whether prefill and handoff together break a target, on the one group that there is then."""
    network, schemes = Network(case.instance.hardware), list[str](case.instance.schemes.allow)
    for name, workload in case.instance.workloads.items():
        if workload.targets.ttft is None or not schemes[0].startswith("pd"):
            continue
        (group,) = case.instance.hardware.groups
        sent = 0.0
        if workload.output != 1:
            (trip,) = trips(network, schemes, group, group, [(1.0, payload(case.instance, workload))])
            sent = trip.seconds
        if all(u.takes[name][0][0] + sent > workload.targets.ttft for u in case.units if u.begins):
            return True
    return False


def search(case: Case) -> Best | None:
    """The least cost, and the most throughput that it buys; None where there is no plan."""
    if late(case):
        return None
    bounds = []
    every = list(case.combinations())
    for combination in every:
        bound = Program(case, combination, whole=False).cheapest()
        if bound is not None:
            bounds.append((bound, combination))
    bounds.sort(key=lambda one: one[0])
    best, programs, costs = INFINITY, len(every), list[tuple[float, Combination]]()
    for bound, combination in bounds:
        if bound > best * (1.0 + 1e-7):
            break
        cost = Program(case, combination, whole=True).cheapest()
        programs += 1
        if cost is not None:
            costs.append((cost, combination))
            best = min(best, cost)
    if best == INFINITY:
        return None
    ways = [combination for cost, combination in costs if cost <= best * (1.0 + 1e-7)]
    most, value = 0.0, 0.0
    for combination in ways:
        program = Program(case, combination, whole=True)
        program.spend(best)
        worth = program.value()
        if worth is None or worth < value * (1.0 - 1e-7):
            continue
        if worth > value * (1.0 + 1e-7):
            most, value = 0.0, worth
        program.serve(worth)
        most = max(most, program.most() or 0.0)
    return Best(best, most, len(every), programs + len(ways), ways)


def _union(spans: Sequence[tuple[float, float]]) -> float:
    """Returns that some place has, of (returns soon enough, share of them that is there): one above the other."""
    total, before = 0.0, 0.0
    for until, _ in sorted(spans):
        covered = max(known for other, known in spans if other >= until)
        total += (until - before) * covered
        before = until
    return total
