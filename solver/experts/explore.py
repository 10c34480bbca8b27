"""Trials: change replica counts at random where it hurts, mend by swaps, keep what became better."""

import numpy as np

from models.experts.layout import Layout
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
    steps: int = 60,
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
        changed = _changed(trial, source, layout, rng)
        trial = settled(trial.slots, source, a)
        swaps(trial, room, np.repeat(enough[rows], tries), steps)
        time = np.where(changed, trial.busy().max(1), np.inf).reshape(len(rows), tries)
        best = time.argmin(1)
        better = time[np.arange(len(rows)), best] < top[rows] * (1.0 - GAIN)
        packing.put(rows[better], trial.take((np.arange(len(rows)) * tries + best)[better]))


def _changed(trial: Packing, work: np.ndarray, layout: Layout, rng: np.random.Generator) -> np.ndarray:
    """Give a slot of a replicated expert, elsewhere, to an expert of the busiest card; whether there was one."""
    layers, cards, widest = trial.slots.shape
    b = np.arange(layers)
    hot = trial.busy().argmax(1)
    mine = trial.slots[b, hot]
    may = (mine >= 0) & (np.take_along_axis(trial.counts, np.maximum(mine, 0), axis=1) < cards)
    pick = np.where(may, rng.random(mine.shape), -1.0).argmax(1)
    gains = mine[b, pick]
    flat = trial.slots.reshape(layers, -1)
    card = np.arange(cards * widest) // widest
    there = (np.arange(widest) < np.asarray(layout.slots)[:, None]).ravel()
    spare = ((flat < 0) & (layout.most is None)) | (np.take_along_axis(trial.counts, np.maximum(flat, 0), axis=1) > 1)
    holds = (trial.slots == gains[:, None, None]).any(2)[:, card]
    able = there & spare & ~holds & (flat != gains[:, None])
    weight = np.where(able, rng.random(flat.shape), -1.0)
    at = weight.argmax(1)
    fine = may[b, pick] & able[b, at]
    flat = flat.copy()
    flat[b[fine], at[fine]] = gains[fine]
    trial.slots = flat.reshape(trial.slots.shape)
    return np.asarray(fine)
