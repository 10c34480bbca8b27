"""The best plan by going through every vector of unit counts.

A vector is priced by a linear program; the dual of each program bounds all vectors (the optimum is concave in the
counts), so that vectors which cannot be best need no program of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.instance import Instance
from tests.against.programs import Array, Case, Counts, Largest, case, fewest_bytes

EXACT, CLOSE = 1e-9, 2e-6
"""Relative: throughputs nearer than the first are equal, farther than the second different; between, unclear."""
MOST_VECTORS = 200_000


@dataclass
class Best:
    """What the best plans have in common."""

    cost: float
    """Money/s of the cards used."""
    throughput: float
    cards: tuple[int, int]
    """Fewest cards among plans that are as good: with throughputs close to the best, and exactly the best."""
    bytes: float
    """Fewest bytes/s on links among the plans with exactly the best throughput and the fewest cards."""
    schemes: tuple[str, ...]
    full: bool
    """Whether a channel or store limits the throughput."""


@dataclass
class Result:
    best: Best | None
    late: bool = False
    """Whether a plan that kept up with arrivals was refused for its drain."""
    programs: int = 0
    vectors: int = 0


def _splits(cards: int, width: int) -> Iterator[tuple[int, ...]]:
    """Every way to give at most ``cards`` to ``width`` kinds of units."""
    if width == 0:
        yield ()
        return
    for first in range(cards + 1):
        for rest in _splits(cards - first, width - 1):
            yield (first, *rest)


def vectors(case: Case) -> Array:
    """Every vector of counts that the cards and pool limits allow, a row each."""
    groups = case.instance.hardware.groups
    parts = []
    for name, group in groups.items():
        width = sum(unit.group == name for unit in case.units)
        parts.append(list(_splits(group.cards, width)))
    total = int(np.prod([len(part) for part in parts]))
    assert total <= MOST_VECTORS, f"{total} vectors are too many for a test"
    picks = np.indices([len(part) for part in parts]).reshape(len(parts), -1)
    every = np.hstack(
        [np.array(part, float).reshape(len(part), -1)[pick] for part, pick in zip(parts, picks, strict=True)]
    )
    for limit in case.instance.limits.pools:
        named = [
            (limit.stage or unit.stage, limit.group or unit.group, limit.model or unit.model)
            == (unit.stage, unit.group, unit.model)
            and (limit.scheme is None or limit.scheme in _schemes(case, unit.kind))
            for unit in case.units
        ]
        count = every[:, named].sum(axis=1)
        low = limit.at_least if limit.exactly is None else limit.exactly
        high = limit.at_most if limit.exactly is None else limit.exactly
        every = every[(count >= (low or 0)) & (count <= (np.inf if high is None else high))]
    return every


def _schemes(case: Case, kind: str) -> Sequence[str]:
    """Schemes that a kind of unit can be part of."""
    apart = ("pd-direct", "pd-pooled")
    return [name for name in case.schemes if (name in apart if kind in ("prefill", "decode") else name == kind)]


@dataclass
class _Bound:
    """Values known, and upper bounds of those that are not."""

    program: Largest
    every: Array
    upper: Array
    known: dict[int, Any] = field(default_factory=dict)

    def at(self, index: int) -> Any:
        if index not in self.known:
            answer = self.program.at([int(n) for n in self.every[index]])
            self.known[index] = answer
            np.minimum(self.upper, self.every @ answer.slope + answer.offset * (1 + 1e-9), out=self.upper)
            self.upper[index] = answer.value
        return self.known[index]


class Search:
    """The search over the vectors of one case."""

    def __init__(self, case: Case) -> None:
        self.case, self.every = case, vectors(case)
        unlimited = np.full(len(self.every), np.inf)
        instance = case.instance
        self.most = _Bound(Largest(case), self.every, unlimited)
        drain = instance.service.drain
        self.drain = None if drain is None else _Bound(Largest(case, drain), self.every, unlimited.copy())
        self.late = False
        self.cards = self.every.sum(axis=1)
        prices = [instance.hardware.groups[unit.group].price or 0.0 for unit in case.units]
        self.cost = self.every @ np.array(prices, float)
        used = instance.billing.pay == "used" and instance.objective in ("cost", "effective_cost")
        self.first = self.cost if used else self.cards if instance.objective == "gpus" else 0.0 * self.cards

    def kept(self, index: int) -> float:
        """Throughput of a vector that keeps every promise; 0 where one is broken."""
        rate, value = self.case.instance.rate, float(self.most.at(index).value)
        if value < rate * (1.0 - EXACT):
            return 0.0
        if self.drain is not None and self.drain.at(index).value < 1.0 - EXACT:
            self.late = True
            return 0.0
        return value

    def run(self) -> Best | None:
        rate = self.case.instance.rate
        values = np.round(self.first / max(float(self.first.max(initial=0.0)), 1e-12), 9)
        for value in np.unique(values):
            mine = values == value
            best, tried = 0.0, np.zeros(len(mine), bool)
            while True:
                promising = mine & ~tried & (self.most.upper >= max(rate, best) * (1.0 + (EXACT if best else -EXACT)))
                if self.drain is not None:
                    promising &= self.drain.upper >= 1.0 - EXACT
                if not promising.any():
                    break
                index = int(np.argmax(np.where(promising, self.most.upper, -1.0)))
                tried[index] = True
                best = max(best, self.kept(index))
            if best:
                return self.ties(mine, best)
        return None

    def ties(self, mine: Any, best: float) -> Best:
        """Of the plans as good as the best, those with the fewest cards; of these the fewest bytes."""
        close = None
        for cards in np.unique(self.cards[mine]):
            exact: list[int] = []
            for index in np.flatnonzero(mine & (self.cards == cards)):
                if self.most.upper[index] < best * (1.0 - CLOSE):
                    continue
                if self.drain is not None and self.drain.upper[index] < 1.0 - EXACT:
                    continue
                value = self.kept(int(index))
                if value >= best * (1.0 - CLOSE) and close is None:
                    close = int(cards)
                if value >= best * (1.0 - EXACT):
                    exact.append(int(index))
            if exact and close is not None:
                crossing = min(
                    fewest_bytes(self.case, self.counts(i), self.most.at(i).value * (1.0 - 1e-12)) for i in exact
                )
                full = any(self.most.at(i).full for i in exact)
                return Best(float(self.cost[exact[0]]), best, (close, int(cards)), crossing, self.case.schemes, full)
        raise AssertionError("the best plan is not among its own ties")

    def counts(self, index: int) -> Counts:
        return [int(n) for n in self.every[index]]


def brute_force(instance: Instance) -> Result:
    """The best plan of all; where schemes may not stand side by side, the best of each scheme alone."""
    allow = list(instance.schemes.allow)
    result = Result(None)
    for schemes in [allow] if instance.schemes.mix else [[name] for name in allow]:
        search = Search(case(instance, schemes))
        found = search.run()
        result.late |= search.late
        result.programs += len(search.most.known) + (len(search.drain.known) if search.drain else 0)
        result.vectors += len(search.every)
        if found is not None and (result.best is None or _before(found, result.best, instance)):
            result.best = found
    return result


def _before(a: Best, b: Best, instance: Instance) -> bool:
    order = [(a.throughput, b.throughput, -1), (a.cards[1], b.cards[1], 1), (a.bytes, b.bytes, 1)]
    if instance.objective == "gpus":
        order.insert(0, order[1])
    elif instance.objective != "throughput" and instance.billing.pay == "used":
        order.insert(0, (a.cost, b.cost, 1))
    for x, y, sign in order:
        if abs(x - y) > 1e-7 * max(abs(x), abs(y), 1e-12):
            return sign * (x - y) < 0
    return False
