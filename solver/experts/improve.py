"""Local search on placements of one load pattern: swaps, moves to empty slots, and replicas given to other experts.

Every layer of a batch takes one step at a time, so that numpy works on all of them at once.
"""

import numpy as np

from models.experts.placement import EMPTY
from solver.experts.pack import Packing

GAIN = 1e-9
"""Relative gain below which a step is not taken."""


def swaps(packing: Packing, room: np.ndarray, enough: np.ndarray, most: int = 400) -> None:
    """Swap replicas of the busiest card with those of others, best first, until none helps or time is ``enough``.

    room: slots of each card (cards,). enough: time (layers,) at which a layer is good enough. Changes ``packing``.
    """
    cards, widest = packing.slots.shape[1:]
    _layers, experts = packing.size.shape
    slot_there = np.arange(widest) < room[:, None]  # (cards, widest)
    value, busy = packing.values(), packing.busy()
    has = membership(packing.slots, experts)
    live = np.flatnonzero(busy.max(1) > enough)
    for _ in range(most):
        if not len(live):
            return
        b = np.arange(len(live))
        load, slots = busy[live], packing.slots[live]
        hot = load.argmax(1)
        top = load[b, hot]
        mine, size = slots[b, hot], value[live, hot]  # (live, widest)
        half = 0.5 * (top[:, None] - load)  # what would even both cards out
        gap = size[:, :, None, None] - value[live][:, None]
        distance = np.abs(gap - half[:, None, :, None])
        there = has[live[:, None], mine]  # (live, widest, cards): the card holds mine already
        taken = has[live[:, None, None], slots, hot[:, None, None]] | ~slot_there  # (live, cards, widest)
        cost = 0.5 * (top[:, None] + load)[:, None, :, None] + distance
        cost = np.where(there[..., None] | taken[:, None], np.inf, cost).reshape(len(live), -1)
        best = cost.argmin(1)
        gains = cost[b, best] < top * (1.0 - GAIN)
        mine_at, card, at = np.unravel_index(best[gains], (widest, cards, widest))
        rows = live[gains]
        _swap(packing, value, busy, has, rows, hot[gains], mine_at, card, at)
        live = rows[busy[rows].max(1) > enough[rows]]


def membership(slots: np.ndarray, experts: int) -> np.ndarray:
    """Whether each card holds each expert, (layers, experts + 1, cards); the last place, EMPTY, never."""
    layers, cards, _widest = slots.shape
    has = np.zeros((layers, experts + 1, cards), dtype=bool)
    has[np.arange(layers)[:, None, None], slots, np.arange(cards)[None, :, None]] = True
    has[:, EMPTY] = False
    return has


def _swap(
    packing: Packing,
    value: np.ndarray,
    busy: np.ndarray,
    has: np.ndarray,
    rows: np.ndarray,
    hot: np.ndarray,
    mine_at: np.ndarray,
    card: np.ndarray,
    at: np.ndarray,
) -> None:
    """Exchange one slot of ``hot`` with one of ``card``, in each of ``rows``."""
    slots = packing.slots
    mine, other = slots[rows, hot, mine_at], slots[rows, card, at]
    slots[rows, hot, mine_at], slots[rows, card, at] = other, mine
    change = value[rows, hot, mine_at] - value[rows, card, at]
    one, two = value[rows, hot, mine_at].copy(), value[rows, card, at].copy()
    value[rows, hot, mine_at], value[rows, card, at] = two, one
    busy[rows, hot] -= change
    busy[rows, card] += change
    has[rows, mine, hot], has[rows, mine, card] = False, mine >= 0
    has[rows, other, card], has[rows, other, hot] = False, other >= 0
    has[:, EMPTY] = False
