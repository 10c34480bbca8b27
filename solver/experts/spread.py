"""Local search on one placement for several load patterns: what counts is the weighted sum of their busiest cards."""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout
from models.experts.placement import EMPTY, counted
from solver.experts.improve import membership


@dataclass
class Spread:
    """Placements of several layers for several load patterns, changed in place.

    slots: (layers, cards, widest). counts: (layers, experts).
    work: time of the tokens of each expert in each pattern, weight included, (layers, experts, patterns).
    fixed: time of an active slot in each pattern, weight included, (patterns,).
    """

    slots: np.ndarray
    counts: np.ndarray
    work: np.ndarray
    fixed: np.ndarray

    def values(self) -> np.ndarray:
        """Time of each slot in each pattern, (layers, cards, widest, patterns)."""
        layers = np.arange(len(self.slots))[:, None, None]
        size = self.fixed + self.work / np.maximum(self.counts, 1)[..., None]
        return np.where(self.slots[..., None] >= 0, size[layers, self.slots], 0.0)

    def cost(self) -> np.ndarray:
        """Sum over patterns of the busiest card, (layers,)."""
        return np.asarray(self.values().sum(2).max(1).sum(1))

    def take(self, rows: np.ndarray) -> "Spread":
        """Some layers, as a copy."""
        return Spread(self.slots[rows], self.counts[rows], self.work[rows], self.fixed)

    def put(self, rows: np.ndarray, other: "Spread") -> None:
        """Slots and counts of another in the place of ``rows``."""
        self.slots[rows], self.counts[rows] = other.slots, other.counts

    def settle(self) -> None:
        """Take the counts from the slots."""
        self.counts = counted(self.slots, self.counts.shape[1])


def dealt(work: np.ndarray, counts: np.ndarray, fixed: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Replicas dealt largest first, each where the sum of squares grows least; and the layers where one found no card.

    work: (layers, experts, patterns). counts: (layers, experts). Returns slots (layers, cards, widest).
    """
    layers, _, patterns = work.shape
    size = fixed + work / counts[..., None]
    order = np.argsort(-size.max(2), axis=1, kind="stable")
    repeated = np.take_along_axis(counts, order, axis=1)
    items = np.full((layers, int(repeated.sum(1).max())), EMPTY, dtype=np.int64)
    items[np.arange(items.shape[1]) < repeated.sum(1)[:, None]] = np.repeat(order.ravel(), repeated.ravel())
    room, row = np.asarray(layout.slots), np.arange(layers)
    slots = np.full((layers, layout.cards, layout.widest), EMPTY, dtype=np.int64)
    load = np.zeros((layers, layout.cards, patterns))
    held = np.zeros((layers, layout.cards), dtype=np.int64)
    last = np.full((layers, layout.cards), EMPTY - 1, dtype=np.int64)
    stuck = np.zeros(layers, dtype=bool)
    for i in range(items.shape[1]):
        expert = items[:, i]
        value = size[row, expert]
        grows = (load * value[:, None]).sum(2)  # twice this and a constant: what the sum of squares grows by
        cost = np.where((last == expert[:, None]) | (held >= room), np.inf, grows)
        card = cost.argmin(1)
        fits = np.isfinite(cost[row, card]) & (expert >= 0)
        stuck |= ~fits & (expert >= 0)
        r, g, e = row[fits], card[fits], expert[fits]
        slots[r, g, held[r, g]] = e
        held[r, g] += 1
        last[r, g] = e
        load[r, g] += value[fits]
    return slots, stuck


def swaps(spread: Spread, room: np.ndarray, enough: np.ndarray, most: int) -> None:
    """Swap replicas of a pattern's busiest card with others, the patterns in turn, until none helps or ``most`` steps.

    enough: cost (layers,) at which a layer is good enough.
    """
    patterns = spread.work.shape[2]
    value = spread.values()
    load = value.sum(2)
    has = membership(spread.slots, spread.work.shape[1])
    idle = np.zeros(len(spread.slots), dtype=np.int64)  # patterns in a row without a gain
    for step in range(most):
        live = np.flatnonzero((idle < patterns) & (load.max(1).sum(1) > enough))
        if not len(live):
            return
        rows, hot, mine, card, at = _best(spread, value, load, has, live, step % patterns, room)
        idle[live] += 1
        idle[rows] = 0
        _swap(spread, value, load, has, rows, hot, mine, card, at)


def _others(load: np.ndarray, hot: np.ndarray) -> np.ndarray:
    """The busiest of the cards other than ``hot`` and each card, (layers, cards, patterns)."""
    layers, cards, _ = load.shape
    rest = load.copy()
    rest[np.arange(layers), hot] = 0.0
    if cards < 2:
        return rest
    first = rest.argmax(1)
    top = np.take_along_axis(rest, first[:, None], axis=1)
    second = rest.copy()
    np.put_along_axis(second, first[:, None], 0.0, axis=1)
    is_first = np.arange(cards)[None, :, None] == first[:, None]
    return np.where(is_first, second.max(1)[:, None], top)


def _best(
    spread: Spread,
    value: np.ndarray,
    load: np.ndarray,
    has: np.ndarray,
    live: np.ndarray,
    pattern: int,
    room: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The best swap of each live layer's busiest card in ``pattern``: layers that gain, both cards, both slots."""
    _cards, widest = spread.slots.shape[1:]
    b = np.arange(len(live))
    here, slots = load[live], spread.slots[live]
    hot = here[:, :, pattern].argmax(1)
    mine = slots[b, hot]
    size, other = value[live, hot].astype(np.float32), value[live].astype(np.float32)
    there = has[live[:, None], mine]  # (live, widest, cards)
    taken = has[live[:, None, None], slots, hot[:, None, None]] | (np.arange(widest) >= room[:, None])
    gap = size[:, :, None, None, pattern] - other[:, None, ..., pattern]
    spare = (here[b, hot, pattern][:, None] - here[..., pattern]).astype(np.float32)
    fits = (gap > 0) & (gap < spare[:, None, :, None]) & ~there[..., None] & ~taken[:, None]
    n, i, g, s = np.nonzero(fits)
    if not len(n):
        none = np.zeros(0, dtype=np.int64)
        return none, none, none, none, none
    rest = _others(here, hot)
    total = np.zeros(len(n))
    for k in range(load.shape[2]):
        change = size[n, i, k] - other[n, g, s, k]
        both = np.maximum(here[b, hot, k][n] - change, here[n, g, k] + change)
        total += np.maximum(both, rest[n, g, k])
    first = np.flatnonzero(np.append(True, n[1:] != n[:-1]))
    least = np.minimum.reduceat(total, first)
    owner = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(n))))
    at = np.flatnonzero(total == least[owner])
    at = at[np.append(True, owner[at][1:] != owner[at][:-1])]
    gains = least < here.max(1).sum(1)[n[first]] * (1.0 - 1e-6)
    at = at[gains]
    return live[n[at]], hot[n[at]], i[at], g[at], s[at]


def _swap(
    spread: Spread,
    value: np.ndarray,
    load: np.ndarray,
    has: np.ndarray,
    rows: np.ndarray,
    hot: np.ndarray,
    mine: np.ndarray,
    card: np.ndarray,
    at: np.ndarray,
) -> None:
    one, two = spread.slots[rows, hot, mine], spread.slots[rows, card, at]
    spread.slots[rows, hot, mine], spread.slots[rows, card, at] = two, one
    high, low = value[rows, hot, mine], value[rows, card, at]
    value[rows, hot, mine], value[rows, card, at] = low, high
    load[rows, hot] += low - high
    load[rows, card] += high - low
    has[rows, one, hot], has[rows, one, card] = False, True
    has[rows, two, card], has[rows, two, hot] = False, True
    has[:, EMPTY] = False
