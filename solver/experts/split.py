"""Unequal shares: how the tokens of an expert are best divided over the replicas of a given placement."""

import numpy as np

from models.experts.layout import TimeModel
from models.experts.placement import Placement
from solver.backend import priced
from solver.milp.model import Model, Term, at_most, equal


def best_split(placement: Placement, tokens: np.ndarray, time: TimeModel, seconds: float = 30.0) -> np.ndarray:
    """Share of its expert's tokens that each slot gets, (layers, cards, widest); 0 in empty slots.

    Minimises the time of each layer's busiest card, a linear program a layer. Layers whose program is not solved in
    time keep even shares. Slots that get nothing still count as active. tokens: (layers, experts).
    """
    counts = np.maximum(placement.counts(), 1)
    layers = np.arange(placement.layers)[:, None, None]
    shares = np.where(placement.slots >= 0, 1.0 / counts[layers, placement.slots], 0.0)
    for layer in range(placement.layers):
        found = _layer(placement.slots[layer], time.per_token * tokens[layer], time.per_slot, seconds)
        if found is not None:
            shares[layer] = found
    return np.asarray(shares)


def _layer(slots: np.ndarray, work: np.ndarray, a: float, seconds: float) -> np.ndarray | None:
    model = Model()
    top = model.column()
    where = [(int(r), int(s)) for r, s in np.argwhere(slots >= 0)]
    columns = [model.column(0.0, 1.0) for _ in where]
    of_expert: list[list[Term]] = [[] for _ in work]
    scale = float(work.sum()) / len(slots)
    of_card: list[list[Term]] = [[(top, -1.0)] for _ in slots]
    for (r, s), column in zip(where, columns, strict=True):
        expert = int(slots[r, s])
        of_expert[expert].append((column, 1.0))
        of_card[r].append((column, float(work[expert]) / scale))
    model.rows += [equal("whole", terms, 1.0) for terms in of_expert]
    model.rows += [
        at_most("card", t, -a * int((row >= 0).sum()) / scale) for t, row in zip(of_card, slots, strict=True)
    ]
    solved = priced(model, [(top, 1.0)], False, seconds)
    if solved is None:
        return None
    shares = np.zeros(slots.shape)
    for (r, s), column in zip(where, columns, strict=True):
        shares[r, s] = max(0.0, solved.values[column])
    return shares


def split_times(placement: Placement, tokens: np.ndarray, time: TimeModel, shares: np.ndarray) -> np.ndarray:
    """Time of each card with given shares, (layers, cards)."""
    layers = np.arange(placement.layers)[:, None, None]
    each = time.per_slot + time.per_token * shares * tokens[layers, placement.slots]
    return np.asarray(np.where(placement.slots >= 0, each, 0.0).sum(2))
