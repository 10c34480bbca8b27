"""The best plan by going through every vector of unit counts, with purchases, spare units and requests turned away.

For each number of link steps, every vector of units that the cards there or for sale allow and that packs into servers;
each costs what its cheapest purchases cost. Linear programs price vectors, and their duals bound the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from models.instance import Instance
from tests.against.brute import EXACT, MOST_VECTORS
from tests.against.programs import INFINITY, Array, Case, Largest
from tests.against.wide_case import Served, packs, splits, wide_case
from tests.against.wide_units import Wide

RENTED = 6
"""GPUs that are rented of a group at most, in whole servers where those are rented; see :meth:`Found.sure`."""


@dataclass
class Found:
    """The best value of the objective, and the throughput where it is told apart by that."""

    value: float
    throughput: float | None
    sure: bool = True
    """Whether renting more could not have been better."""


@dataclass
class _Bound:
    program: Largest
    every: Array
    upper: Array
    known: dict[int, float] = field(default_factory=dict)

    def at(self, index: int) -> float:
        if index not in self.known:
            answer = self.program.at([int(n) for n in self.every[index]])
            self.known[index] = float(answer.value)
            np.minimum(self.upper, self.every @ answer.slope + answer.offset * (1 + 1e-9), out=self.upper)
            self.upper[index] = answer.value
        return self.known[index]


class WideSearch:
    """The search over one case."""

    def __init__(self, case: Case) -> None:
        self.case, self.instance = case, case.instance
        self.units: list[Wide] = [u for u in case.units if isinstance(u, Wide)]
        self.every = self._vectors()
        money = [self._money(row) for row in self.every]
        kept = np.array([m is not None for m in money], bool)
        self.every, self.money = self.every[kept], np.array([m for m in money if m is not None], float)
        self.cards = self.every @ np.array([u.cards for u in self.units], float)
        self.power = self.every @ np.array([u.power for u in self.units], float)

    def _offers(self) -> Iterator[tuple[float, dict[str, int]]]:
        """Everything that may be bought in bundles: its price, and the GPUs that come with it."""
        bundles = self.instance.hardware.bundles
        for counts in product(*(range((b.at_most if b.at_most is not None else RENTED) + 1) for b in bundles.values())):
            cards = dict.fromkeys(self.instance.hardware.groups, 0)
            for count, bundle in zip(counts, bundles.values(), strict=True):
                for name, each in bundle.cards.items():
                    cards[name] += count * each
            yield sum(c * (b.price or 0.0) for c, b in zip(counts, bundles.values(), strict=True)), cards

    def _most(self, name: str) -> int:
        group = self.instance.hardware.groups[name]
        if group.servers == "unlimited":
            return RENTED // group.per_server * group.per_server if group.rent == "server" else RENTED
        return group.cards + max(cards[name] for _, cards in self._offers())

    def _vectors(self) -> Array:
        parts = []
        for name in self.instance.hardware.groups:
            sizes = [u.cards for u in self.units if u.group == name]
            parts.append(list(splits(self._most(name), tuple(sizes))))
        total = int(np.prod([len(part) for part in parts]))
        assert total <= MOST_VECTORS, f"{total} vectors are too many for a test"
        order = [i for name in self.instance.hardware.groups for i, u in enumerate(self.units) if u.group == name]
        rows = np.array([sum(pick, ()) for pick in product(*parts)], float).reshape(total, -1)
        every = np.zeros_like(rows)
        every[:, order] = rows
        limits = self.instance.limits
        for limit in limits.pools:
            named = [
                (limit.stage or u.stage, limit.group or u.group, limit.model or u.model) == (u.stage, u.group, u.model)
                and limit.scheme in (None, u.kind)
                for u in self.units
            ]
            count = every[:, named].sum(axis=1)
            low = limit.at_least if limit.exactly is None else limit.exactly
            high = limit.at_most if limit.exactly is None else limit.exactly
            every = every[(count >= (low or 0)) & (count <= (np.inf if high is None else high))]
        least = max(limits.units.at_least if limits.units else 1, limits.spare.units if limits.spare else 1)
        return np.asarray(every[((every == 0) | (every >= least)).all(axis=1)])

    def _money(self, row: Any) -> float | None:
        """Money/s of a vector with its cheapest purchases; None where it does not pack whatever is bought."""
        groups = self.instance.hardware.groups
        return self._spent(
            tuple(
                tuple(
                    sorted(
                        (
                            (u.block, int(n) * (u.cards // u.block), u.cards * int(n), u.price * n)
                            for u, n in zip(self.units, row, strict=True)
                            if n and u.group == name
                        ),
                        reverse=True,
                    )
                )
                for name in groups
            )
        )

    def _spent(self, used: tuple[tuple[tuple[int, int, int, float], ...], ...]) -> float | None:
        groups, best = self.instance.hardware.groups, None
        sold = {name for bundle in self.instance.hardware.bundles.values() for name in bundle.cards}
        for price, bought in self._offers():
            total = price
            for (name, group), mine in zip(groups.items(), used, strict=True):
                blocks = tuple(size for size, count, _, _ in mine for _ in range(count))
                cards, own = sum(c for _, _, c, _ in mine), sum(p for _, _, _, p in mine)
                if group.servers == "unlimited" and group.rent == "gpu":
                    total += own
                    continue
                if group.servers == "unlimited":
                    most = RENTED // group.per_server
                    fewest = next((n for n in range(most + 1) if packs(blocks, (group.per_server,) * n)), None)
                    if fewest is None:
                        break
                    total += fewest * group.per_server * (group.price or 0.0)
                    continue
                there = group.cards + bought[name]
                rest = (there % group.per_server,) if there % group.per_server else ()
                if cards > there or not packs(blocks, rest + (group.per_server,) * (there // group.per_server)):
                    break
                if self.instance.billing.pay == "reserved":
                    total += group.cards * (group.price or 0.0)
                else:
                    total += max(0, cards - bought[name]) * (group.price or 0.0) if name in sold else own
            else:
                best = total if best is None else min(best, total)
        return best

    def run(self) -> Found | None:
        links = {n: link for n, link in self.instance.hardware.links.items() if link.step is not None}
        best: Found | None = None
        for counts in product(*(range(link.step.at_most + 1) for link in links.values() if link.step)):
            widths, price = {}, 0.0
            for count, (name, link) in zip(counts, links.items(), strict=True):
                if link.step is not None:
                    widths[name], price = 1 + count * link.step.ports / link.ports, price + count * link.step.price
            found = self._with(widths, price)
            if found is not None and (best is None or self.before(found, best)):
                best = found
        if best is not None:
            best.sure = best.value <= self._beyond() * (1 - EXACT)
        return best

    def _beyond(self) -> float:
        """Least value of a plan that rents more of some group than is tried."""
        least, instance = INFINITY, self.instance
        for name, group in instance.hardware.groups.items():
            if group.servers != "unlimited":
                continue
            cards = self._most(name) + 1
            price = min(
                [cards * (group.price or 0.0)] + [cards * u.price / u.cards for u in self.units if u.group == name]
            )
            good = sum(w.rate * w.qualifying * w.value for w in instance.workloads.values())
            power = cards * (group.accelerator.power or 0.0)
            by = {"gpus": float(cards), "power": power, "cost": price, "effective_cost": price / good}
            least = min(least, by[instance.objective])
        return least

    def before(self, a: Found, b: Found) -> bool:
        sign = -1 if self.instance.objective in ("throughput", "headroom") else 1
        if abs(a.value - b.value) > 1e-9 * abs(b.value):
            return sign * a.value < sign * b.value
        return (a.throughput or 0.0) > (b.throughput or 0.0)

    def _with(self, widths: dict[str, float], price: float) -> Found | None:
        self.total, unlimited = self.money + price, np.full(len(self.every), np.inf)
        self.most = _Bound(Largest(self.case, None, widths), self.every, unlimited)
        drain = self.instance.service.drain
        self.drain = None if drain is None else _Bound(Largest(self.case, drain, widths), self.every, unlimited.copy())
        spare = self.instance.limits.spare
        self.spare = None
        if spare is not None:
            fewer = np.maximum(0.0, self.every - spare.units)
            self.spare = _Bound(self.most.program, fewer, unlimited.copy())
        if self.instance.drops:
            return self._dropping(widths)
        return self._headroom() if self.instance.objective == "headroom" else self._plain()

    def _multiple(self, index: int, least: float) -> float:
        """Largest multiple of the arrivals with every promise kept, or 0 when it is below ``least``."""
        value = INFINITY
        for bound, unit in ((self.most, self.instance.rate), (self.drain, 1.0), (self.spare, self.instance.rate)):
            if bound is not None:
                value = min(value, bound.at(index) / unit)
                if value < least:
                    return 0.0
        return value

    def _upper(self) -> Array:
        upper = self.most.upper / self.instance.rate
        if self.drain is not None:
            upper = np.minimum(upper, self.drain.upper)
        return np.asarray(upper if self.spare is None else np.minimum(upper, self.spare.upper / self.instance.rate))

    def _headroom(self) -> Found | None:
        best, tried = 0.0, np.zeros(len(self.every), bool)
        while len(tried):
            upper = np.where(tried, -1.0, self._upper())
            index = int(np.argmax(upper))
            if upper[index] <= max(best, 1.0) * (1.0 + (EXACT if best else -EXACT)):
                break
            tried[index] = True
            best = max(best, self._multiple(index, max(best, 1.0 - EXACT)))
        return Found(best, None) if best else None

    def _first(self) -> Array:
        good = sum(w.rate * w.qualifying * w.value for w in self.instance.workloads.values())
        values: dict[str, Array] = {
            "effective_cost": self.total / good,
            "cost": self.total,
            "throughput": 0.0 * self.total,
            "gpus": self.cards,
            "power": self.power,
        }
        return values[self.instance.objective]

    def _plain(self) -> Found | None:
        first = self._first()
        values = np.round(first / max(float(first.max(initial=0.0)), 1e-300), 10)
        for value in np.unique(values):
            mine, best, at = values == value, 0.0, -1
            tried = np.zeros(len(mine), bool)
            while True:
                keeps = self._upper() >= 1.0 - EXACT
                rate = self.instance.rate * (1 - EXACT)
                promising = mine & ~tried & keeps & (self.most.upper > max(rate, best * (1 + EXACT)))
                if not promising.any():
                    break
                index = int(np.argmax(np.where(promising, self.most.upper, -1.0)))
                tried[index] = True
                if self._multiple(index, 1.0 - EXACT) and self.most.at(index) > best:
                    best, at = self.most.at(index), index
            if best:
                goal = best if self.instance.objective == "throughput" else float(first[at])
                return Found(goal, best)
        return None

    def _dropping(self, widths: dict[str, float]) -> Found | None:
        """Least cost over value where that is asked for, else the least of what is; every least share is served."""
        program, spare = Served(self.case, widths), self.instance.limits.spare
        ratio = self.instance.objective == "effective_cost"
        first = self.total if ratio else self._first()
        most = sum(w.rate * w.qualifying * w.value for w in self.instance.workloads.values()) if ratio else 1.0
        best: Found | None = None
        for index in np.lexsort((-self.cards, first)):
            if best is not None and first[index] / most >= best.value * (1 - EXACT):
                break
            if self._covered(int(index), first):
                continue
            counts = [int(n) for n in self.every[index]]
            served = program.at([max(0, n - spare.units) for n in counts] if spare else counts)
            if served is None:
                continue
            value = float(first[index]) / (served if ratio else 1.0)
            if best is None or value < best.value:
                best = Found(value, None)
        return best

    def _covered(self, index: int, first: Array) -> bool:
        """Whether a larger vector costs the same."""
        row = self.every[index]
        same = (first <= first[index] * (1 + 1e-12)) & (self.cards > self.cards[index])
        return bool((self.every[same] >= row).all(axis=1).any()) if same.any() else False


def wide_brute_force(instance: Instance) -> Found | None:
    """The best plan of all; where schemes may not stand side by side, the best of each scheme alone."""
    allow = list(instance.schemes.allow)
    best: Found | None = None
    for schemes in [allow] if instance.schemes.mix else [[name] for name in allow]:
        search = WideSearch(wide_case(instance, schemes))
        found = search.run()
        if found is not None and (best is None or search.before(found, best)):
            best = found
    return best
