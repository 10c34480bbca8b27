"""Where the replicas of every expert are."""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout

EMPTY = -1
"""A slot without a replica, or a place beyond the slots of a card."""


@dataclass(frozen=True)
class Placement:
    """A card for every replica.

    slots: expert of each slot, shape (layers, cards, widest); EMPTY where there is none.
    layout: the cards; slots beyond those of a card are EMPTY.
    experts: logical experts of a layer.
    """

    slots: np.ndarray
    layout: Layout
    experts: int

    @property
    def layers(self) -> int:
        """Layers with experts."""
        return int(self.slots.shape[0])

    def counts(self) -> np.ndarray:
        """Replicas of each expert, (layers, experts)."""
        return counted(self.slots, self.experts)

    def holds(self) -> np.ndarray:
        """Whether each card holds each expert, (layers, experts, cards)."""
        layers, cards, _ = self.slots.shape
        has = np.zeros((layers, self.experts + 1, cards), dtype=bool)
        has[np.arange(layers)[:, None, None], self.slots, np.arange(cards)[None, :, None]] = True
        return has[:, : self.experts]

    def rows(self) -> list[list[int]]:
        """physical_to_logical_map: the expert of every physical slot, card after card, EMPTY where there is none."""
        there = (np.arange(self.layout.widest) < np.asarray(self.layout.slots)[:, None]).ravel()
        flat: list[list[int]] = self.slots.reshape(self.layers, -1)[:, there].tolist()
        return flat

    def faults(self) -> list[str]:
        """What makes it no placement, in words; empty when every expert is placed and none twice on a card."""
        found: list[str] = []
        beyond = np.arange(self.slots.shape[2]) >= np.asarray(self.layout.slots)[:, None]
        if self.slots.shape[1:] != (self.layout.cards, self.layout.widest):
            return [f"slots of shape {self.slots.shape} for {self.layout.cards} cards"]
        if (self.slots[:, beyond] != EMPTY).any():
            found.append("a replica beyond the slots of its card")
        if self.slots.min() < EMPTY or self.slots.max() >= self.experts:
            return [*found, f"an expert that is not one of 0 to {self.experts - 1}"]
        missing = np.argwhere(self.counts() == 0)
        if len(missing):
            layer, expert = (int(i) for i in missing[0])
            found.append(f"layer {layer}: expert {expert} is on no card")
        ordered = np.sort(self.slots, axis=2)
        twice = np.argwhere((ordered[:, :, 1:] == ordered[:, :, :-1]) & (ordered[:, :, 1:] != EMPTY))
        if len(twice):
            layer, card, at = (int(i) for i in twice[0])
            found.append(f"layer {layer}: card {card} holds expert {int(ordered[layer, card, at])} twice")
        return found


def counted(slots: np.ndarray, experts: int) -> np.ndarray:
    """How often each expert is in (layers, cards, widest) slots: (layers, experts)."""
    layers = len(slots)
    first = np.arange(layers)[:, None, None] * (experts + 1)  # one more place a layer, for empty slots
    flat = first + np.where(slots >= 0, slots, experts)
    found = np.bincount(flat.ravel(), minlength=layers * (experts + 1))
    return np.asarray(found.reshape(layers, experts + 1)[:, :experts])
