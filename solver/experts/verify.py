"""Checks a placement and its bounds again, in plain arithmetic and without the code that found them.

Proofs by thresholds have the test that accepted them, which needs no solver.
"""

import math
from collections.abc import Sequence

import numpy as np

from models.experts.layout import Layout, TimeModel
from models.experts.placement import Placement
from solver.experts.certificate import LayerBound
from solver.experts.thresholds import case, holds

NEAR = 1e-9
"""Relative difference of two numbers that counts as none."""


def verify(
    placement: Placement,
    tokens: np.ndarray,
    time: TimeModel,
    busiest: Sequence[float],
    bounds: Sequence[LayerBound],
) -> list[str]:
    """What does not hold, in words; empty when all does.

    tokens: (layers, experts). busiest: the claimed time of the busiest card of each layer. bounds: one of each layer.
    """
    wrong = placement.faults()
    if wrong:
        return wrong
    if not len(tokens) == len(busiest) == len(bounds) == placement.layers:
        return [f"{placement.layers} layers placed, {len(tokens)} of loads, {len(busiest)} times, {len(bounds)} bounds"]
    for layer in range(placement.layers):
        slots = placement.slots[layer].tolist()
        held = [expert for card in slots for expert in card if expert >= 0]
        counts = {expert: held.count(expert) for expert in set(held)}
        each = {e: time.per_slot + time.per_token * float(tokens[layer, e]) / c for e, c in counts.items()}
        top = max(math.fsum(each[expert] for expert in card if expert >= 0) for card in slots)
        if abs(top - busiest[layer]) > NEAR * top:
            wrong.append(f"layer {layer}: the busiest card takes {top:.9g}, not {busiest[layer]:.9g}")
        if bounds[layer].value > top * (1.0 + NEAR):
            wrong.append(f"layer {layer}: the bound {bounds[layer].value:.9g} is above the placement, {top:.9g}")
        if not proves(bounds[layer], tokens[layer], placement.layout, time):
            wrong.append(f"layer {layer}: the bound {bounds[layer].value:.9g} ({bounds[layer].kind}) is not proven")
    return wrong


def proves(bound: LayerBound, tokens: np.ndarray, layout: Layout, time: TimeModel) -> bool:
    """Whether no placement of tokens (experts,) keeps the busiest card below the bound, for the reason it states."""
    used = Layout(tuple(min(s, len(tokens)) for s in layout.slots), layout.nodes, most=layout.most)
    work = sorted((time.per_token * float(w) for w in tokens), reverse=True)
    limit = bound.value * (1.0 - NEAR)
    if limit <= 0.0 or not math.isfinite(limit):
        return bound.value <= 0.0
    if bound.kind == "thresholds":
        return (
            bound.proof is not None
            and bound.value <= bound.proof.limit
            and holds(case(tokens, used, time), bound.proof)
        )
    tests = {"average": _average, "replicas": _replicas, "pigeonhole": _pigeonhole, "hot set": _hot_set}
    return bound.kind in tests and tests[bound.kind](work, used, time.per_slot, limit)


def _need(work: Sequence[float], a: float, limit: float) -> list[float]:
    """Replicas without which a single one is above the limit."""
    if limit <= a:
        return [math.inf] * len(work)
    return [max(1.0, math.ceil(w / (limit - a) * (1.0 - NEAR))) for w in work]


def _average(work: Sequence[float], layout: Layout, a: float, limit: float) -> bool:
    """The cards together have less time than the work takes."""
    need = math.fsum(_need(work, a, limit))
    return layout.cards * limit < math.fsum(work) + a * need


def _replicas(work: Sequence[float], layout: Layout, a: float, limit: float) -> bool:
    """More replicas are needed than there are slots, or of one expert than there are cards."""
    need = _need(work, a, limit)
    return math.fsum(need) > layout.total or max(need) > layout.cards


def _pigeonhole(work: Sequence[float], layout: Layout, a: float, limit: float) -> bool:
    """Of the experts that must stay whole, some card gets too many."""
    need = _need(work, a, limit)
    spare = layout.total - math.fsum(need)
    cold = sorted(a + w for w, n in zip(work, need, strict=True) if n == 1.0)
    if spare < 0 or len(cold) <= spare:
        return spare < 0
    whole = cold[: len(cold) - int(spare)][::-1]  # descending
    return any(
        math.fsum(whole[k * layout.cards - k : k * layout.cards + 1]) > limit
        for k in range(1, (len(whole) - 1) // layout.cards + 1)
    )


def _hot_set(work: Sequence[float], layout: Layout, a: float, limit: float) -> bool:
    """The hottest experts, and the cold ones that the other cards cannot hold, are too much for any number of cards."""
    values, experts = [a + w for w in work], len(work)
    widest = sorted(layout.slots, reverse=True)
    for h in range(1, experts + 1):
        hot, possible = math.fsum(values[:h]), False
        for k in range(1, min(layout.cards, h + layout.total - experts) + 1):
            cold = max(0, experts - h - sum(widest[: layout.cards - k]))
            if hot + math.fsum(values[experts - cold :]) <= k * limit:
                possible = True
                break
        if not possible:
            return True
    return False
