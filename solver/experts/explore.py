"""Trials: change replica counts at random where it hurts, mend by swaps, keep what became better."""

import numpy as np

from models.experts.layout import Layout
from models.experts.placement import EMPTY
from solver.experts.improve import GAIN, swaps
from solver.experts.pack import Packing, settled


def explore(
    packing: Packing,
    work: np.ndarray,
    layout: Layout,
    a: float,
    enough: np.ndarray,
    rng: np.random.Generator,
    rounds: int,
    tries: int,
    steps: int = 40,
) -> None:
    """``rounds`` of ``tries`` trials for every layer whose time is above ``enough`` (layers,). Changes ``packing``."""
    room = np.asarray(layout.slots)
    for _ in range(rounds):
        top = packing.busy().max(1)
        rows = np.flatnonzero(top > enough)
        if not len(rows):
            return
        trial = packing.take(np.repeat(rows, tries))
        source = np.repeat(work[rows], tries, axis=0)
        changed = _changed(trial, source, layout, rng, tries, not layout.engine and (a > 0.0 or not layout.even))
        trial = settled(trial.slots, source, a)
        swaps(trial, room, np.repeat(enough[rows], tries), steps)
        time = np.where(changed, trial.busy().max(1), np.inf).reshape(len(rows), tries)
        best = time.argmin(1)
        better = time[np.arange(len(rows)), best] < top[rows] * (1.0 - GAIN)
        packing.put(rows[better], trial.take((np.arange(len(rows)) * tries + best)[better]))


def _changed(
    trial: Packing, work: np.ndarray, layout: Layout, rng: np.random.Generator, tries: int, empty: bool
) -> np.ndarray:
    """Change one slot in each layer; whether there was one to change.

    Most often a slot of a replicated expert is given to an expert of the busiest card; in one trial of each layer to
    any expert, in another to none, where slots may stay ``empty``: where they cost time, or cards differ.
    """
    layers, cards, widest = trial.slots.shape
    b, experts = np.arange(layers), work.shape[1]
    kind = b % tries
    mine = trial.slots[b, trial.busy().argmax(1)]
    may = (mine >= 0) & (np.take_along_axis(trial.counts, np.maximum(mine, 0), axis=1) < cards)
    gains = mine[b, np.where(may, rng.random(mine.shape), -1.0).argmax(1)]
    anyone = rng.integers(0, experts, layers)
    gains = np.where((kind == 1) | ~may.any(1), anyone, gains)
    if empty:
        gains = np.where(kind == 2, EMPTY, gains)
    flat = trial.slots.reshape(layers, -1)
    there = (np.arange(widest) < np.asarray(layout.slots)[:, None]).ravel()
    spare = np.take_along_axis(trial.counts, np.maximum(flat, 0), axis=1) > 1
    spare = np.where(flat < 0, (layout.most is None) & (gains >= 0)[:, None], spare)
    holds = (trial.slots == gains[:, None, None]).any(2)[:, np.arange(cards * widest) // widest]
    able = there & spare & (~holds | (gains < 0)[:, None])
    at = np.where(able, rng.random(flat.shape), -1.0).argmax(1)
    fine = able[b, at]
    flat = flat.copy()
    flat[b[fine], at[fine]] = gains[fine]
    trial.slots = flat.reshape(trial.slots.shape)
    return np.asarray(fine)
