"""A way from the current placement to a better one: how many copies, how long, and whether it is worth them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from models.experts.layout import TimeModel
from models.experts.loads import Loads
from models.experts.placement import Placement
from solver.experts.moves import cleaned, migrate, relabelled
from solver.experts.payback import Payback, copies, copy_time
from solver.experts.robust import scales
from solver.experts.times import card_times

TARGETS = (0.9, 0.95, 0.97, 0.98, 0.985, 0.99)
USUAL_TARGET = 0.98
"""What is aimed at where it is not known how long the loads last."""


@dataclass(frozen=True)
class Terms:
    """What copies cost. Unknown is None.

    expert_bytes: of one expert of one layer. rate: bytes/s of a card, each direction. startup: seconds of each copy.
    lifetime: steps for which the loads stay. in_flight: batches that still use a replica when it is to be reclaimed.
    timed: whether the time model is in seconds of one step.
    """

    expert_bytes: float | None = None
    rate: float | None = None
    startup: float = 0.0
    lifetime: float | None = None
    in_flight: int = 0
    timed: bool = False


@dataclass(frozen=True)
class Way:
    """One placement to move to. reclaimed: replicas that make room for others."""

    name: str
    placement: Placement
    balancedness: float
    step: float
    copies: int
    copies_by_layer: np.ndarray
    reclaimed: int
    bytes: float | None
    payback: Payback | None

    @property
    def short(self) -> bool:
        """Whether it is named for a balancedness that it does not reach."""
        return self.name[0].isdigit() and self.balancedness < float(self.name) - 1e-9

    def as_json(self, lifetime: float | None, layers: int) -> dict[str, Any]:
        """The way as a JSON object, without the placement."""
        return {
            "name": self.name,
            "balancedness": self.balancedness,
            "copies": self.copies,
            "copies_per_layer": self.copies / layers,
            "reclaimed": self.reclaimed,
            "bytes": self.bytes,
            **({} if self.payback is None else self.payback.as_json(lifetime)),
        }


@dataclass(frozen=True)
class Transition:
    """All ways, staying first, the fresh placement last; and the one chosen. order: layers by gain per copy."""

    ways: tuple[Way, ...]
    chosen: Way
    order: tuple[int, ...]


def mixed(loads: Loads, placement: Placement, time: TimeModel) -> np.ndarray:
    """One load pattern in place of several, weights and scales included: (layers, experts)."""
    if loads.scenarios == 1:
        return np.asarray(loads.tokens[0])
    scale = scales(loads, placement.layout, time) * loads.weights
    return np.asarray((scale[:, None, None] * loads.tokens).sum(0) / scale.sum())


@dataclass(frozen=True)
class _Case:
    """What all ways have in common. before: time of the busiest card of each layer now, weighted mean, (layers,)."""

    loads: Loads
    current: Placement
    time: TimeModel
    terms: Terms
    before: np.ndarray


def transition(loads: Loads, current: Placement, fresh: Placement, time: TimeModel, terms: Terms) -> Transition:
    """Ways from ``current`` towards ``fresh``, and the best of them for the stated lifetime.

    Without a lifetime, or a time of copies, the way to a balancedness of 0.98 is chosen, else the fresh placement. With
    several scenarios balancedness and times are weighted means over them.
    """
    shares = scales(loads, fresh.layout, time) * loads.weights
    case = _Case(loads, current, time, terms, _busiest(current, loads, time))
    named = [("stay", current)]
    for target in TARGETS:
        named.append((f"{target:g}", migrate(current, loads.tokens, time, target, shares).placement))
    named.append(("fresh", relabelled(current, fresh)))
    ways = [_way(name, placement, case) for name, placement in named]
    if terms.lifetime is not None and ways[0].payback is not None:
        ways.append(_by_layer(ways, case))
        lifetime = terms.lifetime
        chosen = max(ways, key=lambda way: way.payback.net(lifetime) if way.payback else 0.0)
    else:
        reached = [way for way in ways if way.balancedness >= USUAL_TARGET]
        chosen = min(reached, key=lambda way: way.copies) if reached else ways[-1]
    gain = case.before - _busiest(chosen.placement, loads, time)
    order = np.argsort(-gain / np.maximum(chosen.copies_by_layer, 1), kind="stable")
    moved = tuple(int(layer) for layer in order if chosen.copies_by_layer[layer] > 0)
    return Transition(tuple(ways), chosen, moved)


def _busiest(placement: Placement, loads: Loads, time: TimeModel) -> np.ndarray:
    """Time of the busiest card of each layer, weighted mean over scenarios: (layers,)."""
    each = np.stack([card_times(placement, tokens, time).max(1) for tokens in loads.tokens])
    return np.asarray(loads.weights @ each)


def _way(name: str, placement: Placement, case: _Case) -> Way:
    terms, balance = case.terms, 0.0
    for tokens, weight in zip(case.loads.tokens, case.loads.weights, strict=True):
        times = card_times(placement, tokens, case.time)
        balance += float(weight * (times.mean(1) / times.max(1)).mean())
    found = copies(case.current, placement)
    new, old = placement.holds(), case.current.holds()
    overwritten = int((old & ~new).sum())
    after = _busiest(placement, case.loads, case.time)
    moved = found.number * terms.expert_bytes if terms.expert_bytes is not None else None
    payback = None
    if terms.expert_bytes is not None and terms.rate is not None and terms.timed:
        wait = terms.in_flight * float(case.before.sum()) if overwritten else 0.0
        took = copy_time(found, terms.expert_bytes, terms.rate, terms.startup)
        payback = Payback(took, float((case.before - after).sum()), wait)
    by_layer = (new & ~old).sum((1, 2))
    return Way(name, placement, balance, float(after.sum()), found.number, by_layer, overwritten, moved, payback)


def _by_layer(ways: list[Way], case: _Case) -> Way:
    """Layer by layer the way that wins most in the lifetime, each copy charged its share of the cards' time."""
    terms, current = case.terms, case.current
    assert terms.expert_bytes is not None
    assert terms.rate is not None
    assert terms.lifetime is not None
    each = (terms.expert_bytes / terms.rate + terms.startup) / current.layout.cards
    saved = np.stack([case.before - _busiest(way.placement, case.loads, case.time) for way in ways])
    net = terms.lifetime * saved - each * np.stack([way.copies_by_layer for way in ways])
    pick = net.argmax(0)
    sources = [cleaned(current), *(way.placement for way in ways[1:])]
    slots = np.stack([sources[way].slots[layer] for layer, way in enumerate(pick.tolist())])
    return _way("by layer", Placement(slots, current.layout, current.experts), case)
