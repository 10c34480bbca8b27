"""Replicas onto cards: the largest first, each to the least busy card that has a free slot and not that expert yet."""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout
from models.experts.placement import EMPTY, counted


@dataclass
class Packing:
    """Placements of several layers, changed in place by searches.

    slots: expert of each slot, (layers, cards, widest); EMPTY where there is none, or no slot.
    counts: replicas of each expert, (layers, experts).
    size: time of one replica of each expert, (layers, experts).
    """

    slots: np.ndarray
    counts: np.ndarray
    size: np.ndarray

    def values(self) -> np.ndarray:
        """Time of each slot, (layers, cards, widest); 0 where it is empty."""
        layers = np.arange(len(self.slots))[:, None, None]
        return np.where(self.slots >= 0, self.size[layers, self.slots], 0.0)

    def busy(self) -> np.ndarray:
        """Time of each card, (layers, cards)."""
        return np.asarray(self.values().sum(2))

    def take(self, rows: np.ndarray) -> "Packing":
        """Some layers, as a copy."""
        return Packing(self.slots[rows], self.counts[rows], self.size[rows])

    def put(self, rows: np.ndarray, other: "Packing") -> None:
        """Layers of another packing in the place of ``rows``."""
        self.slots[rows], self.counts[rows], self.size[rows] = other.slots, other.counts, other.size


def sizes(work: np.ndarray, counts: np.ndarray, a: float) -> np.ndarray:
    """Time of one replica with an even split: a + work / count."""
    return np.asarray(a + work / counts)


def largest_first(work: np.ndarray, counts: np.ndarray, layout: Layout, a: float) -> Packing:
    """A placement of the counts, layer by layer, or of as many of them as its cards can take.

    work: tokens in time, (layers, experts). Counts that do not fit come back smaller. Largest first is Graham's LPT
    rule with a limit on items per card, as in EPLB.
    """
    size = sizes(work, counts, a)
    order = np.argsort(-size, axis=1, kind="stable")
    items = _listed(order, counts)
    value = np.where(items >= 0, np.take_along_axis(size, np.maximum(items, 0), axis=1), 0.0)
    slots, stuck = _dealt(items, value, layout, work.shape[1])
    for layer in np.flatnonzero(stuck):
        slots[layer] = by_room(work[layer], counts[layer], layout)
    return settled(slots, work, a)


def settled(slots: np.ndarray, work: np.ndarray, a: float) -> Packing:
    """A packing of given slots, counts and sizes taken from them."""
    counts = counted(slots, work.shape[1])
    return Packing(slots, counts, sizes(work, np.maximum(counts, 1), a))


def _listed(order: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Replicas in the order of ``order``, (layers, most); EMPTY at the end of shorter layers."""
    repeated = np.take_along_axis(counts, order, axis=1)
    totals = repeated.sum(1)
    flat = np.repeat(order.ravel(), repeated.ravel())
    items = np.full((len(order), int(totals.max())), EMPTY, dtype=np.int64)
    items[np.arange(items.shape[1])[None, :] < totals[:, None]] = flat
    return items


def _dealt(items: np.ndarray, value: np.ndarray, layout: Layout, experts: int) -> tuple[np.ndarray, np.ndarray]:
    """Slots after dealing, and the layers where a replica found no card."""
    layers, room = len(items), np.asarray(layout.slots)
    slots = np.full((layers, layout.cards, layout.widest), EMPTY, dtype=np.int64)
    busy = np.where(room > 0, np.zeros((layers, 1)), np.inf)  # infinite where a card is full
    held = np.zeros((layers, layout.cards), dtype=np.int64)
    last = np.full((layers, layout.cards), EMPTY - 1, dtype=np.int64)
    stuck = np.zeros(layers, dtype=bool)
    row, ended = np.arange(layers), bool((items < 0).any())
    for i in range(items.shape[1]):
        expert = items[:, i]
        cost = np.where(last == expert[:, None], np.inf, busy)
        card = cost.argmin(1)
        r, e, v = row, expert, value[:, i]
        lost = ~np.isfinite(cost[row, card])
        if ended or lost.any():
            stuck |= lost & (expert >= 0)
            use = ~lost & (expert >= 0)
            r, card, e, v = row[use], card[use], e[use], v[use]
        at = held[r, card]
        slots[r, card, at] = e
        last[r, card] = e
        held[r, card] = at + 1
        busy[r, card] = np.where(at + 1 >= room[card], np.inf, busy[r, card] + v)
    return slots, stuck


def by_room(work: np.ndarray, counts: np.ndarray, layout: Layout) -> np.ndarray:
    """A placement of one layer without regard to time: most replicas first, each to cards with most free slots.

    It places all counts if that is possible at all (the Gale-Ryser theorem); else as many as it can, every expert at
    least once, and what stays free goes to experts that are large. work, counts: (experts,). Returns (cards, widest).
    """
    slots = np.full((layout.cards, layout.widest), EMPTY, dtype=np.int64)
    free, held = np.array(layout.slots), np.zeros(len(counts), dtype=np.int64)

    def put(expert: int, card: int) -> None:
        slots[card, layout.slots[card] - free[card]] = expert
        free[card] -= 1
        held[expert] += 1

    for expert in np.argsort(-counts, kind="stable").tolist():
        for card in np.argsort(-free, kind="stable")[: counts[expert]].tolist():
            if free[card] > 0:
                put(expert, card)
    for expert in np.flatnonzero(held == 0).tolist():
        card, at = next(
            (r, i)
            for r in range(layout.cards)
            for i in range(layout.slots[r])
            if slots[r, i] < 0 or held[slots[r, i]] > 1
        )
        if slots[card, at] >= 0:
            held[slots[card, at]] -= 1
            slots[card, at] = expert
            held[expert] += 1
        else:
            put(expert, card)
    if held.sum() < counts.sum() and layout.most is None:
        for card in np.flatnonzero(free).tolist():
            for _ in range(int(free[card])):
                absent = np.setdiff1d(np.arange(len(counts)), slots[card])
                if len(absent):
                    put(int(absent[(work[absent] / held[absent]).argmax()]), card)
    return slots
