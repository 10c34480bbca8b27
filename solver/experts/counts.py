"""How many replicas each expert gets, before it is known where they go."""

from collections.abc import Callable

import numpy as np

Priority = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""How much each expert needs the next replica, from work and counts."""
Candidate = Callable[[np.ndarray], np.ndarray]
"""Replica counts for some layers, given by their indices."""


def by_load(work: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Load of a replica: the next one goes where replicas are largest, which keeps the largest small."""
    return np.asarray(work / counts)


def by_next(work: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Load after the next replica: prefers experts already split, fewer experts are touched."""
    return np.asarray(work / (counts + 1.0))


def by_mean(work: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Between both, as seats are apportioned by geometric means (Huntington-Hill)."""
    return np.asarray(work / np.sqrt(counts * (counts + 1.0)))


def grow(work: np.ndarray, start: np.ndarray, totals: np.ndarray, most: int, priority: Priority) -> np.ndarray:
    """Replica counts (layers, experts) grown from ``start`` one by one, to ``totals`` (layers,), each at most ``most``.

    work: tokens in time, (layers, experts). A layer stops early when every expert has ``most``.
    """
    counts = start.astype(np.float64)
    rank = np.where(counts < most, priority(work, counts), -1.0)
    row = np.arange(len(work))
    left = totals - counts.sum(1).astype(np.int64)
    for _ in range(int(max(left.max(initial=0), 0))):
        at = rank.argmax(1)
        grows = (left > 0) & (rank[row, at] > 0.0)
        if not grows.any():
            break
        r, e = row[grows], at[grows]
        counts[r, e] += 1.0
        left = left - grows
        rank[r, e] = np.where(counts[r, e] < most, priority(work[r, e], counts[r, e]), -1.0)
    return counts.astype(np.int64)


def needed(work: np.ndarray, limit: np.ndarray, a: float, most: int) -> np.ndarray:
    """Replicas without which an expert's own share exceeds ``limit`` (layers,): ceil(work / (limit - a))."""
    room = np.maximum(limit - a, 1e-300)[:, None]
    return np.asarray(np.clip(np.ceil(work / room * (1.0 - 1e-12)), 1, most), dtype=np.int64)


def trimmed(work: np.ndarray, counts: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Counts brought down to ``totals`` where there are too many, taking from the smallest replicas first."""
    counts = counts.copy()
    over = counts.sum(1) - totals
    row = np.arange(len(work))
    while (over > 0).any():
        after = np.where(counts > 1, work / np.maximum(counts - 1, 1), np.inf)
        at = after.argmin(1)
        shrinks = over > 0
        counts[row[shrinks], at[shrinks]] -= 1
        over = over - shrinks
    return counts
