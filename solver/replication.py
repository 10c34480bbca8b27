"""Copies of hot experts on other cards: whether they fit, what they save a batch, and after how many they pay.

A layer waits for its busiest card; copies are sent one after the other (section 9.4.2).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solver.expert_work import Engine, Expert, Tiles
from solver.formulas import replication
from solver.skew import Placement


@dataclass(frozen=True)
class Layer:
    """The experts of a layer on their cards, all cards alike."""

    expert: Expert
    tiles: Tiles
    engine: Engine
    placement: Placement

    def seconds(self, rows: Sequence[float]) -> float:
        """Time of the busiest card for a batch with these rows of each expert."""
        return max(self.tiles.seconds(self.expert, each, self.engine) for each in self.placement.rows(rows))


@dataclass(frozen=True)
class Replication:
    """Copies weighed: memory first, then time."""

    fits: bool
    """Whether every card that receives has room."""
    saving: float
    """Seconds of each batch."""
    copying: float
    """Seconds, once."""

    @property
    def payback(self) -> float:
        """First batch after which more is saved than the copies took; infinite when they do not fit or save nothing."""
        return replication.payback_batches(self.copying, self.saving) if self.fits else math.inf

    def net(self, batches: float) -> float:
        """Seconds won by a hotspot of so many batches; none when the copies do not fit, since they are not made."""
        return replication.net_saving(batches, self.saving, self.copying) if self.fits else 0.0


def weigh(
    layer: Layer,
    rows: Sequence[float],
    copies: Sequence[tuple[int, int]],
    link: float,
    startup: float,
    spare: Mapping[int, float],
) -> Replication:
    """What ``copies``, pairs of expert and card, do for a hotspot with these rows of each expert.

    ``link`` is B/s and ``startup`` seconds of a copy; ``spare`` bytes are free on the cards that receive.
    """
    after = Layer(layer.expert, layer.tiles, layer.engine, layer.placement.with_copies(copies))
    weights = layer.expert.weights
    received = {card: sum(at == card for _, at in copies) for _, card in copies}
    return Replication(
        all(replication.copies_fit(spare.get(card, 0.0), weights, count) for card, count in received.items()),
        layer.seconds(rows) - after.seconds(rows),
        replication.copy_seconds(len(copies), weights, link, startup),
    )


def best_layers(savings: Sequence[float], each: float, budget: float) -> tuple[int, ...]:
    """Layers to copy in when each takes ``each`` bytes of a budget: those that save most, none that saves nothing."""
    order = sorted(range(len(savings)), key=lambda layer: (-savings[layer], layer))
    return tuple(sorted(layer for layer in order[: math.floor(budget / each)] if savings[layer] > 0))
