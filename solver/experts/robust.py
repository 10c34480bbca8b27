"""One placement for several load patterns: the weighted sum of their busiest cards, or the worst of them."""

import numpy as np

from models.experts.layout import TOKENS, Layout, TimeModel
from models.experts.loads import Loads, check_fit
from models.experts.placement import Placement
from solver.experts import counts
from solver.experts.pack import by_room
from solver.experts.place import USUAL, Effort, blocks, clipped, place, widened
from solver.experts.spread import Spread, dealt, swaps

STEPS = 400
"""Swaps of a layer at most."""
TURNS = 6
"""How often the weights of the worst pattern are raised."""


def scales(loads: Loads, layout: Layout, time: TimeModel) -> np.ndarray:
    """What each pattern's times are multiplied by: the mean card's time over all layers becomes 1. (scenarios,)."""
    mean = (time.per_token * loads.tokens.sum((1, 2)) + time.per_slot * loads.layers * loads.experts) / layout.cards
    return np.asarray(1.0 / mean)


def place_for_all(
    loads: Loads, layout: Layout, time: TimeModel = TOKENS, effort: Effort = USUAL, worst: bool = False
) -> Placement:
    """One placement for all scenarios of ``loads``. Raises BadInput when the experts do not fit.

    Minimises the sum over scenarios of weight times relative time, which is the busiest cards' time summed over layers
    over that of the mean card; with ``worst`` the largest relative time.
    """
    check_fit(loads.experts, layout)
    if loads.scenarios == 1:
        return place(loads.tokens[0], layout, time, effort)[0]
    used, scale = clipped(layout, loads.experts), scales(loads, layout, time)
    best = _placed(loads, used, time, effort, scale * loads.weights)
    if worst:
        best = _levelled(loads, used, time, effort, scale, best)
    return Placement(widened(best.slots, layout), layout, loads.experts)


def _placed(loads: Loads, layout: Layout, time: TimeModel, effort: Effort, weights: np.ndarray) -> Spread:
    work = np.moveaxis(loads.tokens * (time.per_token * weights[:, None, None]), 0, 2)
    fixed = time.per_slot * weights
    rows = blocks(len(work), loads.experts * loads.scenarios, layout, effort)
    parts = [_part(work[some], fixed, layout, effort) for some in rows]
    slots, counted = (np.concatenate(kind) for kind in zip(*((p.slots, p.counts) for p in parts), strict=True))
    return Spread(slots, counted, work, fixed)


def _part(work: np.ndarray, fixed: np.ndarray, layout: Layout, effort: Effort) -> Spread:
    best: Spread | None = None
    for count in _counts(work, fixed, layout):
        made = started(work, count, fixed, layout)
        swaps(made, np.asarray(layout.slots), np.zeros(len(work)), STEPS)
        if best is None:
            best = made
        else:
            better = np.flatnonzero(made.cost() < best.cost())
            best.put(better, made.take(better))
    assert best is not None
    _explore(best, layout, effort)
    return best


def _counts(work: np.ndarray, fixed: np.ndarray, layout: Layout) -> list[np.ndarray]:
    """Replica counts for the largest, the root mean square and the mean of the patterns; (layers, experts) each."""
    share = work / work.sum(1, keepdims=True)  # of each pattern, so that all are alike
    most = sum(1 for s in layout.slots if s > 0)
    found = []
    for mixed in (share.max(2), np.sqrt((share**2).mean(2)), share.mean(2)):
        start = np.ones(mixed.shape, dtype=np.int64)
        found.append(counts.grow(mixed, start, np.full(len(mixed), layout.total), most, counts.by_load))
    return found


def started(work: np.ndarray, count: np.ndarray, fixed: np.ndarray, layout: Layout) -> Spread:
    """A first placement of replica counts (layers, experts)."""
    slots, stuck = dealt(work, count, fixed, layout)
    for layer in np.flatnonzero(stuck):
        slots[layer] = by_room(work[layer].sum(1), count[layer], layout)
    made = Spread(slots, count.copy(), work, fixed)
    made.settle()
    return made


def _explore(best: Spread, layout: Layout, effort: Effort) -> None:
    """Trials with other counts: a slot of a replicated expert given to one of the busiest card, then swaps."""
    rng, room = np.random.default_rng(effort.seed), np.asarray(layout.slots)
    tries = max(1, effort.tries // 4)
    for _ in range(effort.rounds):
        trial = best.take(np.repeat(np.arange(len(best.slots)), tries))
        _changed(trial, layout, rng)
        swaps(trial, room, np.zeros(len(trial.slots)), 40)
        cost = trial.cost().reshape(-1, tries)
        pick = cost.argmin(1)
        better = np.flatnonzero(cost.min(1) < best.cost() * (1.0 - 1e-9))
        best.put(better, trial.take(better * tries + pick[better]))


def _changed(trial: Spread, layout: Layout, rng: np.random.Generator) -> None:
    layers, cards, widest = trial.slots.shape
    b = np.arange(layers)
    load = trial.values().sum(2)
    hot = load[b, :, rng.integers(0, load.shape[2], layers)].argmax(1)
    mine = trial.slots[b, hot]
    may = (mine >= 0) & (np.take_along_axis(trial.counts, np.maximum(mine, 0), axis=1) < cards)
    gains = mine[b, np.where(may, rng.random(mine.shape), -1.0).argmax(1)]
    flat = trial.slots.reshape(layers, -1)
    there = (np.arange(widest) < np.asarray(layout.slots)[:, None]).ravel()
    spare = ((flat < 0) & (layout.most is None)) | (np.take_along_axis(trial.counts, np.maximum(flat, 0), axis=1) > 1)
    holds = (trial.slots == gains[:, None, None]).any(2)[:, np.arange(cards * widest) // widest]
    able = there & spare & ~holds
    at = np.where(able, rng.random(flat.shape), -1.0).argmax(1)
    fine = np.flatnonzero(may.any(1) & able[b, at])
    flat = flat.copy()
    flat[fine, at[fine]] = gains[fine]
    trial.slots = flat.reshape(trial.slots.shape)
    trial.settle()


def _levelled(
    loads: Loads, layout: Layout, time: TimeModel, effort: Effort, scale: np.ndarray, first: Spread
) -> Spread:
    """Weights moved to the worst scenario again and again; the placement whose worst scenario is best."""
    weights, best, low = loads.weights.copy(), first, np.inf
    made = first
    for _ in range(TURNS):
        relative = relative_times(made.slots, loads, time, scale)
        if relative.max() < low:
            best, low = made, float(relative.max())
        weights = weights * np.exp(8.0 * (relative - relative.max()) / relative.max() + 0.0)
        weights = np.maximum(weights / weights.sum(), 0.02)
        made = _placed(loads, layout, time, Effort(effort.rounds // 2, effort.tries, effort.seed), scale * weights)
    return made if relative_times(made.slots, loads, time, scale).max() < low else best


def relative_times(slots: np.ndarray, loads: Loads, time: TimeModel, scale: np.ndarray) -> np.ndarray:
    """Busiest cards summed over layers, over the mean card, of each scenario: (scenarios,)."""
    work = np.moveaxis(loads.tokens * (time.per_token * scale[:, None, None]), 0, 2)
    spread = Spread(slots, np.ones((loads.layers, loads.experts), dtype=np.int64), work, time.per_slot * scale)
    spread.settle()
    return np.asarray(spread.values().sum(2).max(1).sum(0))
