"""What no placement can beat: lower bounds on the time of the busiest card, for any way to split an expert's tokens.

For a time U to be kept, with S_r slots on card r and P in all, whole experts taking v_e = a + b w_e:

- *average*: R U is at least the sum of all times, a for each replica that is needed included.
- *replicas*: expert e needs ceil(b w_e / (U - a)) replicas; together at most P, and each at most R.
- *pigeonhole*: with P - need replicas to spare, all but so many of the experts with v_e <= U stay whole. Of the coldest
  such set, the k R + 1 largest put k + 1 on one card, for every k.
- *hot set*: the h hottest experts are on k <= h + P - E cards at most; what the other R - k cards cannot hold, whole
  cold experts, is on those k too. So for some such k, k U is at least the sum of both.

None of them knows how tokens are split over replicas, so they hold for even and for arbitrary splits.
"""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout, TimeModel

SMALL = 1e-12
"""Relative room for rounding in the tests, always on the safe side."""
STEPS = 36
"""Halvings of the interval in which a bound is searched."""
KINDS = ("average", "replicas", "pigeonhole", "hot set", "thresholds")


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of every layer: ``value`` (layers,) in time, ``kind`` an index into KINDS for each."""

    value: np.ndarray
    kind: np.ndarray


def bounds(tokens: np.ndarray, layout: Layout, time: TimeModel) -> Bounds:
    """The best combinatorial bound of each layer.

    tokens: shape (layers, experts). Source: pigeonhole arguments as for bin packing with a limit on items per bin.
    """
    work = np.sort(time.per_token * tokens, axis=1)[:, ::-1]
    a, cards = time.per_slot, layout.cards
    hot = _hot_set(work + a, layout)
    low = np.maximum((work.sum(1) + a * work.shape[1]) / cards, a + work[:, 0] / cards)
    kind = np.where(hot > low, 3, 0)
    kind[(kind == 0) & (low > (work.sum(1) + a * work.shape[1]) / cards)] = 1
    low = np.maximum(low, hot)
    high = np.maximum(a + work.sum(1), low)  # everything on one card is never infeasible by these tests
    _, failed = _tests(work, low, layout, a)
    open_ = np.flatnonzero(failed > 0)
    if len(open_):
        work, bottom, top = work[open_], low[open_], high[open_]
        reason = failed[open_]
        for _ in range(STEPS):
            middle = 0.5 * (bottom + top)
            passed, why = _tests(work, middle, layout, a)
            bottom, top = np.where(passed, bottom, middle), np.where(passed, middle, top)
            reason = np.where(passed, reason, why)
            if float(((top - bottom) / top).max()) < 1e-9:
                break
        low[open_] = bottom
        kind[open_] = np.maximum(reason - 1, 0)
    return Bounds(low * (1.0 - SMALL), kind)


def _tests(work: np.ndarray, limit: np.ndarray, layout: Layout, a: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether each layer passes at its limit; and the test it fails: 0 none, else index into KINDS + 1."""
    cards, slots = layout.cards, layout.total
    room = np.maximum(limit - a, 1e-300)[:, None]
    need = np.ceil(work / room * (1.0 - SMALL))
    need = np.maximum(need, 1.0)
    total = need.sum(1)
    average = cards * limit * (1.0 + SMALL) < work.sum(1) + a * total
    replicas = (total > slots) | (need[:, 0] > cards)
    pigeon = _pigeonhole(work + a, need, slots - total, limit, cards)
    why = np.where(average, 1, np.where(replicas, 2, np.where(pigeon, 3, 0)))
    return why == 0, why


def _pigeonhole(values: np.ndarray, need: np.ndarray, spare: np.ndarray, limit: np.ndarray, cards: int) -> np.ndarray:
    """Whether whole experts that must share a card exceed the limit. values: descending, (layers, experts)."""
    layers, experts = values.shape
    whole = (need == 1.0).sum(1) - np.maximum(spare, 0.0)  # so many of the coldest stay whole
    whole = whole.astype(np.int64)
    ascending = values[:, ::-1]
    sums = np.zeros((layers, experts + 1))
    np.cumsum(ascending, axis=1, out=sums[:, 1:])
    broken = np.zeros(layers, dtype=bool)
    row = np.arange(layers)
    for k in range(1, (experts - 1) // cards + 1):
        low = whole - k * cards - 1  # ascending index of the smallest of the k R + 1 largest
        able = low >= 0
        at = np.maximum(low, 0)
        shared = sums[row, np.minimum(at + k + 1, experts)] - sums[row, at]
        broken |= able & (shared > limit * (1.0 + SMALL))
    return broken


def _hot_set(values: np.ndarray, layout: Layout) -> np.ndarray:
    """The bound from the h hottest experts, best h. values: times of whole experts, descending."""
    layers, experts = values.shape
    cards, spare = layout.cards, layout.total - experts
    widest = np.concatenate(([0], np.cumsum(sorted(layout.slots, reverse=True))))
    hottest = np.concatenate((np.zeros((layers, 1)), np.cumsum(values, axis=1)), axis=1)
    coldest = np.concatenate((np.zeros((layers, 1)), np.cumsum(values[:, ::-1], axis=1)), axis=1)
    best = np.zeros(layers)
    for h in range(1, min(experts, cards - spare - 1) + 1):  # from h + spare = R on, all cards count: the average
        k = np.arange(1, h + spare + 1)
        held = np.maximum(experts - h - widest[cards - k], 0)
        best = np.maximum(best, ((hottest[:, h, None] + coldest[:, held]) / k).min(1))
    return best
