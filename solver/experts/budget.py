"""Memory for replicas where it helps most: a budget over all layers as an exact multiple-choice knapsack.

For each layer and each number of replicas the best placement found says how long its busiest card takes; more replicas
are never counted as worse. One number is chosen for each layer so that the sum of times is least within the budget:

    min sum_l T_l(r_l)  such that  sum_l r_l <= B

by dynamic programming over B, exact for every budget at once. The price is the dual of B in the linear relaxation: the
slope of the convex hulls of T_l at the budget. CRAFT (arXiv 2603.28768) asks the same of a greedy rule.
"""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout, TimeModel
from models.experts.loads import Loads
from models.experts.placement import EMPTY, Placement
from solver.experts.place import Effort, clipped, widened
from solver.experts.robust import place_for_all, scales
from solver.experts.times import card_times

LIGHT = Effort(rounds=2, tries=4)
"""Search of one point of a curve."""


@dataclass(frozen=True)
class Curves:
    """Gain curves. replicas: (options,). time: relative time of each layer, (layers, options), never increasing.

    placements: one for each option. chosen: the option whose placement is used, (layers, options).
    """

    replicas: np.ndarray
    time: np.ndarray
    placements: tuple[Placement, ...]
    chosen: np.ndarray


def options(most: int) -> list[int]:
    """Numbers of replicas that are tried: all small ones, then in steps of about a third."""
    found, step = [0], 1.0
    while found[-1] < most:
        step = max(found[-1] + 1, round(found[-1] * 4 / 3))
        found.append(int(min(step, most)))
    return found


def curves(loads: Loads, cards: int, most: int, time: TimeModel, effort: Effort = LIGHT) -> Curves:
    """Curves of up to ``most`` replicas a layer beyond one of each expert, cards as evenly filled as balance allows.

    Time of a layer is the weighted sum over scenarios of its busiest card, relative to the mean card of all layers.
    """
    counts = options(min(most, loads.experts * (cards - 1)))
    placed, rows = [], []
    for extra in counts:
        total = loads.experts + extra
        each = -(-total // cards) + (1 if total % cards == 0 else 0)  # one slot of freedom where all would be full
        layout = clipped(Layout((each,) * cards, most=total), loads.experts)
        placement = place_for_all(loads, layout, time, effort)
        scale = scales(loads, layout, time) * loads.weights
        busiest = np.stack([card_times(placement, tokens, time).max(1) for tokens in loads.tokens])
        placed.append(placement)
        rows.append(scale @ busiest)
    found = np.stack(rows, axis=1)
    chosen = np.zeros(found.shape, dtype=np.int64)
    for i in range(1, len(counts)):
        better = found[:, i] < np.take_along_axis(found, chosen[:, i - 1 : i], 1)[:, 0]
        chosen[:, i] = np.where(better, i, chosen[:, i - 1])
    return Curves(np.array(counts), np.take_along_axis(found, chosen, axis=1), tuple(placed), chosen)


def allocate(found: Curves, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """The best option of each layer within ``budget`` replicas, (layers,); and the least time of every smaller budget.

    The second has the shape (budget + 1,).
    """
    layers, count = found.time.shape
    best = np.zeros(budget + 1)
    picks = np.zeros((layers, budget + 1), dtype=np.int64)
    for layer in range(layers):
        options = np.full((count, budget + 1), np.inf)
        for i, extra in enumerate(found.replicas.tolist()):
            if extra <= budget:
                options[i, extra:] = best[: budget + 1 - extra] + found.time[layer, i]
        picks[layer] = options.argmin(0)
        best = options.min(0)
    left, chosen = budget, np.zeros(layers, dtype=np.int64)
    for layer in reversed(range(layers)):
        chosen[layer] = picks[layer, left]
        left -= int(found.replicas[chosen[layer]])
    return chosen, best


def price(found: Curves, budget: int) -> float:
    """Relative time that one replica more saves in the linear relaxation: the dual of the budget, 0 if it is slack."""
    steps: list[tuple[float, int]] = []
    for row in found.time:
        at = 0
        while at < len(row) - 1:
            width = found.replicas[at + 1 :] - found.replicas[at]
            slopes = (row[at] - row[at + 1 :]) / width
            best = int(slopes.argmax())
            if slopes[best] <= 0.0:
                break
            steps.append((float(slopes[best]), int(width[best])))
            at += 1 + best
    for slope, width in sorted(steps, reverse=True):
        budget -= width
        if budget < 0:
            return slope
    return 0.0


def assembled(found: Curves, chosen: np.ndarray) -> Placement:
    """The placement of a choice (layers,). Cards are renamed layer by layer so that all hold about as many replicas."""
    layout = max((p.layout for p in found.placements), key=lambda one: one.widest)
    rows = []
    held = np.zeros(layout.cards, dtype=np.int64)
    for layer, option in enumerate(chosen.tolist()):
        source = found.placements[int(found.chosen[layer, option])]
        slots = widened(source.slots[layer][None], layout)[0]
        used = (slots != EMPTY).sum(1)
        renamed = np.empty_like(slots)
        renamed[np.argsort(held, kind="stable")] = slots[np.argsort(-used, kind="stable")]
        held += (renamed != EMPTY).sum(1)
        rows.append(renamed)
    whole = Layout((layout.widest,) * layout.cards)
    return Placement(np.stack(rows), whole, found.placements[0].experts)
