"""Cards and their slots, and what a replica costs in time."""

from dataclasses import dataclass

import numpy as np

from models.errors import BadInput, Problem

MOST_CARDS = 4096
"""More cards than any expert-parallel group has."""
MOST_SLOTS = 65_536
"""Physical slots of one layer."""


@dataclass(frozen=True)
class Layout:
    """Slots of one layer on every card; cards of a node follow one another.

    slots: replicas that each card can hold, one number a card.
    nodes: nodes with the same number of cards each.
    engine: whether an engine will load it, which needs equal cards and every slot filled.
    most: replicas of one layer at most, where these are fewer than the slots.
    """

    slots: tuple[int, ...]
    nodes: int = 1
    engine: bool = False
    most: int | None = None

    def __post_init__(self) -> None:
        problems = _problems(self)
        if problems:
            raise BadInput(problems)

    @property
    def cards(self) -> int:
        """How many cards there are."""
        return len(self.slots)

    @property
    def total(self) -> int:
        """Slots of one layer over all cards, or the replicas that it may have where these are fewer."""
        return sum(self.slots) if self.most is None else min(sum(self.slots), self.most)

    @property
    def widest(self) -> int:
        """Slots of the card that has most."""
        return max(self.slots)

    @property
    def even(self) -> bool:
        """Whether all cards have as many slots."""
        return min(self.slots) == max(self.slots)

    @property
    def node_of(self) -> np.ndarray:
        """The node of each card, counted from 0: shape (cards,)."""
        return np.arange(self.cards) // (self.cards // self.nodes)


def _problems(layout: Layout) -> list[Problem]:
    cards, found = len(layout.slots), []
    if not 1 <= cards <= MOST_CARDS:
        found.append(Problem("--cards", "number of cards out of range", str(cards), f"1 to {MOST_CARDS:,}"))
        return found
    if min(layout.slots) < 0:
        found.append(Problem("--slots-per-card", "negative slots", str(min(layout.slots)), "0 or more"))
    if not 1 <= layout.total <= MOST_SLOTS:
        found.append(Problem("--slots", "slots of a layer out of range", str(layout.total), f"1 to {MOST_SLOTS:,}"))
    if layout.nodes < 1 or cards % layout.nodes:
        message = f"{cards} cards cannot be divided over {layout.nodes} nodes"
        found.append(Problem("--nodes", message, str(layout.nodes), "a divisor of --cards"))
    if layout.engine and not layout.even:
        low, high = min(layout.slots), max(layout.slots)
        message = (
            f"{layout.total} slots on {cards} cards leave cards with {low} and with {high}; engines need equal cards"
        )
        near = f"{layout.total // cards * cards} or {(layout.total // cards + 1) * cards} slots"
        found.append(Problem("--slots", message, str(layout.total), near))
    return found


def spread(cards: int, total: int) -> tuple[int, ...]:
    """``total`` slots over ``cards`` cards as evenly as whole numbers allow, the first cards having one more."""
    if not 1 <= cards <= MOST_CARDS:
        raise BadInput([Problem("--cards", "number of cards out of range", str(cards), f"1 to {MOST_CARDS:,}")])
    least, more = divmod(total, cards)
    return (least + 1,) * more + (least,) * (cards - more)


@dataclass(frozen=True)
class TimeModel:
    """Time of one replica in a step: ``per_slot`` if it has tokens, and ``per_token`` for each of them.

    With ``per_slot`` 0 and ``per_token`` 1 times are token counts. per_slot is the read of the expert's weights and
    the padding of its last tile ("Distributed Inference", section 9.4.2; LPLB's README names what tokens alone miss).
    """

    per_slot: float = 0.0
    per_token: float = 1.0

    def __post_init__(self) -> None:
        for name, value, least in (("--slot-time", self.per_slot, 0.0), ("--token-time", self.per_token, 1e-300)):
            if not least <= value < float("inf"):
                raise BadInput([Problem(name, "not a usable time", str(value), "a finite time, not negative")])


TOKENS = TimeModel()
"""Time counted in tokens."""
