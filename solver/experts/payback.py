r"""What moving replicas costs and when it has paid back ("Distributed Inference", Example 9.6).

.. math:: N \Delta t > T_{copy}, \qquad N_{min} = \lfloor T_{copy} / \Delta t \rfloor + 1
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.experts.placement import Placement


@dataclass(frozen=True)
class Copies:
    """Replicas that have to be copied.

    number: of all layers. received, sent: of each card, (cards,). A copy is sent by the holder with least to send.
    """

    number: int
    received: np.ndarray
    sent: np.ndarray

    @property
    def busiest(self) -> int:
        """Copies that the busiest card receives or sends, one after the other."""
        return int(max(self.received.max(initial=0), self.sent.max(initial=0)))


def copies(current: Placement, planned: Placement) -> Copies:
    """What ``planned`` has on a card that ``current`` has not there: one copy each."""
    before, after = current.holds(), planned.holds()
    new = after & ~before
    cards = new.shape[2]
    sent = np.zeros(cards, dtype=np.int64)
    for layer, expert, _card in np.argwhere(new):
        holders = np.flatnonzero(before[layer, expert])
        sent[holders[sent[holders].argmin()]] += 1
    return Copies(int(new.sum()), new.sum((0, 1)), sent)


def copy_time(found: Copies, expert_bytes: float, rate: float, startup: float = 0.0) -> float:
    """Seconds until all are there: cards work at the same time, the copies of one card follow one another.

    expert_bytes: of one expert of one layer. rate: bytes/s in each direction of a card. startup: seconds of each copy.
    """
    return found.busiest * (expert_bytes / rate + startup)


@dataclass(frozen=True)
class Payback:
    """Times in s. break_even: steps after which a move has paid for itself, None when it never does."""

    copy: float
    saved_each_step: float
    drain: float = 0.0

    @property
    def break_even(self) -> int | None:
        """Least whole number of steps whose saving exceeds what the move costs."""
        if self.saved_each_step <= 0.0:
            return None
        return math.floor(self.cost / self.saved_each_step) + 1

    @property
    def cost(self) -> float:
        """What the move costs: the copies, and the wait for batches that still use what is reclaimed."""
        return self.copy + self.drain

    def net(self, steps: float) -> float:
        """Seconds won after so many steps; negative where the move has not paid back."""
        return steps * self.saved_each_step - self.cost

    def verdict(self, lifetime: float | None) -> str:
        """`move`, `stay`, or `unknown` where it is not known how long the loads stay as they are."""
        if self.break_even is None:
            return "stay"
        if lifetime is None:
            return "unknown"
        return "move" if self.net(lifetime) > 0.0 else "stay"

    def as_json(self, lifetime: float | None) -> dict[str, Any]:
        """The payback as a JSON object."""
        return {
            "copy_s": self.copy,
            "drain_s": self.drain,
            "saved_each_step_s": self.saved_each_step,
            "break_even_steps": self.break_even,
            "lifetime_steps": lifetime,
            "net_s": None if lifetime is None else self.net(lifetime),
            "verdict": self.verdict(lifetime),
        }


def fitting(free: float, expert_bytes: float) -> int:
    """Replicas that fit into ``free`` bytes of a card: 0 means that placement must change or room be made first."""
    return max(0, math.floor(free / expert_bytes * (1.0 + 1e-12)))
