"""One load pattern onto cards: replica counts, a card for each replica, and what nothing can beat."""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import TOKENS, Layout, TimeModel
from models.experts.loads import check_fit
from models.experts.placement import EMPTY, Placement
from solver.experts import counts
from solver.experts.bounds import Bounds, bounds
from solver.experts.explore import explore
from solver.experts.improve import swaps
from solver.experts.pack import Packing, largest_first

CLOSE = 1e-4
"""Relative distance to the bound at which the swaps of a layer end."""
OPEN = 4e-4
"""Relative distance to the bound from which on a layer is tried with other counts."""
BLOCK = 500_000_000
"""Bytes that the trials of layers worked on together may take, about."""


@dataclass(frozen=True)
class Effort:
    """How long to search: ``rounds`` of ``tries`` trials for layers that are not close to their bound."""

    rounds: int = 8
    tries: int = 8
    seed: int = 0


USUAL = Effort()


def clipped(layout: Layout, experts: int) -> Layout:
    """The layout without slots that no replica can use: a card holds an expert once."""
    if layout.widest <= experts:
        return layout
    return Layout(tuple(min(s, experts) for s in layout.slots), layout.nodes, layout.engine, layout.most)


def widened(slots: np.ndarray, layout: Layout) -> np.ndarray:
    """Slots (layers, cards, fewer) with empty ones up to the widest card of ``layout``."""
    more = layout.widest - slots.shape[2]
    return np.pad(slots, ((0, 0), (0, 0), (0, more)), constant_values=EMPTY) if more else slots


def place(
    tokens: np.ndarray,
    layout: Layout,
    time: TimeModel = TOKENS,
    effort: Effort = USUAL,
) -> tuple[Placement, Bounds]:
    """A placement of tokens (layers, experts) that keeps the busiest card of each layer low; and lower bounds.

    An expert's tokens are split evenly over its replicas. Raises BadInput when the experts do not fit.
    """
    _layers, experts = tokens.shape
    check_fit(experts, layout)
    used = clipped(layout, experts)
    low = bounds(tokens, used, time)
    work = time.per_token * tokens
    parts = [
        packed(work[rows], used, time.per_slot, low.value[rows], effort, layout.engine).slots
        for rows in blocks(len(work), experts, used, effort)
    ]
    return Placement(widened(np.concatenate(parts), layout), layout, experts), low


def blocks(layers: int, experts: int, layout: Layout, effort: Effort) -> list[slice]:
    """Layers that are worked on together: all, unless their trials would take too much memory."""
    each = max(effort.tries, 1) * layout.cards * max(experts, 8 * layout.widest**2)
    size = max(1, BLOCK // each)
    return [slice(at, at + size) for at in range(0, layers, size)]


def packed(
    work: np.ndarray, layout: Layout, a: float, low: np.ndarray, effort: Effort = USUAL, fill: bool = False
) -> Packing:
    """The best packing found; see ``place``. low: bounds (layers,). fill: whether every slot must be used."""
    room = np.asarray(layout.slots)
    close, open_ = low * (1.0 + CLOSE), low * (1.0 + OPEN)
    best: Packing | None = None
    rows = np.arange(len(work))
    for candidate in candidates(work, layout, a, low, fill):
        if best is not None:
            rows = np.flatnonzero(best.busy().max(1) > open_)
            if not len(rows):
                break
        made = largest_first(work[rows], candidate(rows), layout, a)
        swaps(made, room, close[rows])
        if best is None:
            best = made
        else:
            better = made.busy().max(1) < best.busy().max(1)[rows]
            best.put(rows[better], made.take(np.flatnonzero(better)))
    assert best is not None
    explore(best, work, layout, a, open_, np.random.default_rng(effort.seed), effort.rounds, effort.tries)
    return best


def candidates(work: np.ndarray, layout: Layout, a: float, low: np.ndarray, fill: bool) -> list["counts.Candidate"]:
    """Ways to choose replica counts, each a function from some layers to their counts (layers, experts).

    Where a slot in use costs time and none has to be filled, also counts that leave slots empty.
    """
    most, total = sum(1 for s in layout.slots if s > 0), layout.total

    def grown(rule: counts.Priority) -> counts.Candidate:
        def count(rows: np.ndarray) -> np.ndarray:
            start = np.ones((len(rows), work.shape[1]), dtype=np.int64)
            return counts.grow(work[rows], start, np.full(len(rows), total), most, rule)

        return count

    def just(room: float) -> counts.Candidate:
        def count(rows: np.ndarray) -> np.ndarray:
            least = counts.needed(work[rows], low[rows] * (1.0 + room), a, most)
            return counts.trimmed(work[rows], least, np.full(len(rows), total))

        return count

    full = [grown(rule) for rule in (counts.by_load, counts.by_mean, counts.by_next)]
    return full if a == 0.0 or fill else [just(0.0), just(0.02), just(0.1), just(0.3), *full]
