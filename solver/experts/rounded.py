"""Placements from the replica counts of the threshold program: fractions rounded in several ways, each one packed."""

import numpy as np

from models.experts.layout import TimeModel
from models.experts.placement import Placement
from solver.experts import counts
from solver.experts.explore import explore
from solver.experts.improve import swaps
from solver.experts.pack import largest_first, settled
from solver.experts.place import Effort, clipped, widened

ROUNDINGS = 24
"""Random roundings of each layer."""


def rounded(
    placement: Placement, tokens: np.ndarray, time: TimeModel, weights: dict[int, np.ndarray], effort: Effort
) -> Placement:
    """The placement with layers replaced where a rounding is better.

    tokens: (layers, experts). weights: by layer, z (experts, counts), each row adding up to 1.
    """
    layout = clipped(placement.layout, placement.experts)
    rows = np.array(sorted(weights))
    work, a = time.per_token * tokens[rows], time.per_slot
    rng = np.random.default_rng(effort.seed)
    most = sum(1 for s in layout.slots if s > 0)
    drawn = np.stack([_drawn(weights[layer], rng) for layer in rows.tolist()])  # (rows, roundings, experts)
    flat = drawn.reshape(-1, placement.experts)
    source = np.repeat(work, ROUNDINGS, axis=0)
    totals = np.full(len(flat), layout.total)
    flat = counts.trimmed(source, np.minimum(flat, most), totals)
    flat = counts.grow(source, flat, totals, most, counts.by_load) if a == 0.0 else flat
    made = largest_first(source, flat, layout, a)
    swaps(made, np.asarray(layout.slots), np.zeros(len(flat)), 60)
    top = made.busy().max(1).reshape(len(rows), ROUNDINGS)
    best = made.take(np.arange(len(rows)) * ROUNDINGS + top.argmin(1))
    explore(best, work, layout, a, np.zeros(len(rows)), rng, effort.rounds, effort.tries)
    slots = placement.slots[:, :, : layout.widest].copy()
    before = settled(slots[rows], work, a).busy().max(1)
    wins = best.busy().max(1) < before * (1.0 - 1e-9)
    slots[rows[wins]] = best.slots[wins]
    return Placement(widened(slots, placement.layout), placement.layout, placement.experts)


def _drawn(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Replica counts drawn by their weights, the likeliest ones first: (roundings, experts)."""
    share = np.clip(z, 0.0, None)
    share = share / np.maximum(share.sum(1, keepdims=True), 1e-12)
    steps = np.cumsum(share, axis=1)
    draws = rng.random((ROUNDINGS, len(z), 1))
    found = (draws > steps[None]).sum(2) + 1
    found[0] = share.argmax(1) + 1
    return np.asarray(np.minimum(found, z.shape[1]))
