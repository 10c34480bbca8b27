"""A bound for even splits and few slots a card: a linear program over replica counts with threshold rows.

At a time U every card with S slots (empty ones count, with time 0) keeps, for j < S, q <= S - j and each v in
(U / (j + 1), U / j]: if it holds j replicas of time v or more, the other S - j share U - j v, so at least S - j - q + 1
of them take at most (U - j v) / q. Over all R cards, with x the time of a replica:

    #(x >= v) - #(x <= (U - j v) / q) / (S - j - q + 1) <= R (j - 1)

Replica counts c of an expert have weights z[e, c] that add up to 1, and c replicas of time a + b w / c each. Where no z
keeps all rows, no placement keeps U. A multiplier for each row proves that, and is checked without the program.
For S = 2 this is the rule that largest and smallest are paired.
"""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout, TimeModel
from solver.backend import priced
from solver.milp.model import INFINITY, Model, Term, at_most, equal

ROOM = 1e-9
"""Relative room for rounding when times are compared with a threshold, on the safe side."""
WIDTH = 4
"""Counts above the least that are columns from the start."""


@dataclass(frozen=True)
class Multiplier:
    """The weight of one threshold row."""

    j: int
    q: int
    threshold: float
    weight: float


@dataclass(frozen=True)
class Proof:
    """That no placement with even splits keeps ``limit``: weights of threshold rows, of slots, and of total time."""

    limit: float
    multipliers: tuple[Multiplier, ...]
    slots: float
    time: float


@dataclass(frozen=True)
class Case:
    """One layer. work: (experts,) tokens in time."""

    work: np.ndarray
    layout: Layout
    a: float

    @property
    def most(self) -> int:
        """Replicas that one expert can have."""
        return max(1, min(self.layout.cards, self.layout.total - len(self.work) + 1))


def case(tokens: np.ndarray, layout: Layout, time: TimeModel) -> Case:
    """A layer of tokens (experts,) as a case."""
    return Case(time.per_token * tokens, layout, time.per_slot)


def families(slots: int) -> list[tuple[int, int]]:
    """All (j, q) for a card with so many slots."""
    return [(j, q) for j in range(1, slots) for q in range(1, slots - j + 1)]


def holds(case: Case, proof: Proof) -> bool:
    """Whether the proof is one: its weighted rows cannot be kept by any replica counts."""
    weights = [proof.slots, proof.time, *(m.weight for m in proof.multipliers)]
    if not all(np.isfinite(weights)) or min(weights[1:]) < 0 or not 0 < proof.limit < INFINITY:
        return False
    return excess(case, proof) > 0.0


def excess(case: Case, proof: Proof) -> float:
    """By how much the weighted rows are exceeded at best; above 0 it is a proof. -inf where a row is none at all."""
    limit, wide, cards = proof.limit, case.layout.widest, case.layout.cards
    counts = np.arange(1, case.most + 1)
    size = case.a + case.work[:, None] / counts  # (experts, counts)
    empty, right = proof.slots, proof.slots * cards * wide + proof.time * cards * limit
    for m in proof.multipliers:
        if not (1 <= m.j < wide and 1 <= m.q <= wide - m.j and limit / (m.j + 1) < m.threshold <= limit / m.j):
            return -INFINITY
        small = m.weight / (wide - m.j - m.q + 1)
        empty -= small
        right += m.weight * cards * (m.j - 1)
    cost = np.where(size <= limit * (1.0 + ROOM), _prices(case, proof, size), INFINITY)
    if not np.isfinite(cost).any(1).all():
        return INFINITY  # an expert does not fit at all
    least, most = cards * wide - case.layout.total, cards * wide - len(case.work)
    left = float(cost.min(1).sum()) + min(empty * least, empty * most)
    return left - right - 1e-7 * (abs(right) + float(np.abs(cost.min(1)).sum()) * 1e-3)


def attempt(case: Case, limit: float, seconds: float = 10.0) -> tuple[Proof | None, np.ndarray | None]:
    """A proof that ``limit`` cannot be kept, or the weights z (experts, counts) with which the rows are kept."""
    counts = np.arange(1, case.most + 1)
    size = case.a + case.work[:, None] / counts
    fits = size <= limit * (1.0 + ROOM)
    if not fits.any(1).all():
        return Proof(limit, (), 0.0, 0.0), None
    least = fits.argmax(1)
    chosen = fits & (np.arange(case.most) < least[:, None] + WIDTH)
    for _ in range(4):
        proof, z, cost = _solved(case, limit, size, chosen, seconds)
        if proof is None:
            return None, z
        if holds(case, proof):
            return proof, None
        lower = fits & ~chosen & (cost < np.where(chosen, cost, INFINITY).min(1)[:, None])
        if not lower.any():
            return None, None
        chosen = chosen | lower
    return None, None


def _solved(
    case: Case, limit: float, size: np.ndarray, chosen: np.ndarray, seconds: float
) -> tuple[Proof | None, np.ndarray | None, np.ndarray]:
    """Least ``t`` by which rows must give way: a would-be proof if above 0, else z; and the price of each count."""
    wide, cards = case.layout.widest, case.layout.cards
    model = Model()
    give = model.column()
    empty = model.column(cards * wide - case.layout.total, cards * wide - len(case.work))
    expert, at = np.nonzero(chosen)
    columns = np.array([model.column(0.0, 1.0) for _ in expert])
    x, count = size[expert, at], at + 1.0
    by_expert: list[list[Term]] = [[] for _ in case.work]
    for e, column in zip(expert.tolist(), columns.tolist(), strict=True):
        by_expert[e].append((column, 1.0))
    model.rows += [equal("one", terms, 1.0) for terms in by_expert]
    slot_row = len(model.rows)
    held = list(zip(columns.tolist(), count.tolist(), strict=True))
    model.rows.append(equal("slots", [*held, (empty, 1.0)], float(cards * wide)))
    times = [*zip(columns.tolist(), (count * x / limit).tolist(), strict=True), (give, -1.0)]
    model.rows.append(at_most("time", times, float(cards)))
    chains = [(j, q, *_chain(model, (j, q), limit, case, x, count, columns, give, empty)) for j, q in families(wide)]
    found = priced(model, [(give, 1.0)], False, seconds)
    if found is None:
        return None, None, np.zeros_like(size)
    if found.value <= 1e-7:
        z = np.zeros(size.shape)
        z[expert, at] = np.asarray(found.values)[columns]
        return None, z, np.zeros_like(size)
    multipliers: list[Multiplier] = []
    for j, q, thresholds, rows in chains:
        price = np.array([found.prices[row] for row in rows])
        step = price - np.append(price[1:], 0.0)
        multipliers += [
            Multiplier(j, q, float(v), float(-w)) for v, w in zip(thresholds, step, strict=True) if w < -1e-9
        ]
    proof = Proof(limit, tuple(multipliers), -found.prices[slot_row], max(0.0, -found.prices[slot_row + 1]) / limit)
    return proof, None, _prices(case, proof, size)


def _prices(case: Case, proof: Proof, size: np.ndarray) -> np.ndarray:
    """What each count of each expert adds to the left side of the proof, (experts, counts)."""
    wide = case.layout.widest
    each = np.full(size.shape, proof.slots) + proof.time * size
    for m in proof.multipliers:
        low = (proof.limit - m.j * m.threshold) / m.q
        small = m.weight / (wide - m.j - m.q + 1)
        each = each + m.weight * (size >= m.threshold * (1.0 + ROOM)) - small * (size <= low * (1.0 + ROOM))
    return np.asarray(each * np.arange(1, size.shape[1] + 1))


def _chain(
    model: Model,
    family: tuple[int, int],
    limit: float,
    case: Case,
    x: np.ndarray,
    count: np.ndarray,
    columns: np.ndarray,
    give: int,
    empty: int,
) -> tuple[np.ndarray, list[int]]:
    """Rows of one family, thresholds descending: what is left after each, s_k = s_(k-1) + small - large >= 0."""
    (j, q), wide, cards = family, case.layout.widest, case.layout.cards
    large = np.flatnonzero((x > limit / (j + 1) * (1.0 + ROOM)) & (x <= limit / j * (1.0 + ROOM)))
    above = np.flatnonzero(x > limit / j * (1.0 + ROOM))
    thresholds = np.unique(np.minimum(x[large] / (1.0 + ROOM), limit / j))[::-1]
    thresholds = thresholds[thresholds > limit / (j + 1)]
    if not len(thresholds):
        return thresholds, []
    share = 1.0 / (wide - j - q + 1)
    low = (limit - j * thresholds) / q
    terms: list[list[Term]] = [[] for _ in thresholds]
    # Index of the first threshold (descending) at which each replica counts as large, or as small.
    from_large = np.searchsorted(-thresholds, -x / (1.0 + ROOM) - 1e-15 * limit)
    from_small = np.searchsorted(low * (1.0 + ROOM), x)
    for i in [*large.tolist(), *above.tolist()]:
        k = int(from_large[i]) if x[i] <= limit / j * (1.0 + ROOM) else 0
        if k < len(thresholds):
            terms[k].append((int(columns[i]), float(count[i])))
    for i in np.flatnonzero(from_small < len(thresholds)).tolist():
        terms[int(from_small[i])].append((int(columns[i]), -float(count[i]) * share))
    terms[0] += [(empty, -share), (give, -1.0)]
    rows, before = [], -1
    for k, inside in enumerate(terms):
        left = model.column()
        chain = [*inside, (left, 1.0)] + ([(before, -1.0)] if before >= 0 else [])
        rows.append(len(model.rows))
        model.rows.append(equal("threshold", chain, float(cards * (j - 1)) if k == 0 else 0.0))
        before = left
    return thresholds, rows
