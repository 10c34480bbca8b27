"""From $p$ shards of tensor parallelism to $q$: which bytes each card keeps, sends and receives (section 9.6.2).

Matrices and state are cut into contiguous parts. What every card holds whole (norms) is copied to cards that have none,
by the source with the least to send.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Cut = tuple[Fraction, Fraction]
"""Part of the whole, from and to."""


@dataclass
class Moved:
    """Bytes of a re-sharding, by card."""

    sent: dict[int, float] = field(default_factory=dict)
    received: dict[int, float] = field(default_factory=dict)
    kept: dict[int, float] = field(default_factory=dict)
    """Needed where they are: read and written on the card itself."""

    @property
    def network(self) -> float:
        """Bytes that go from one card to another."""
        return sum(self.sent.values())

    @property
    def local(self) -> float:
        """Bytes read and written on the cards themselves, each once."""
        return 2.0 * sum(self.kept.values())

    @property
    def busiest(self) -> float:
        """Most bytes that one card sends or receives."""
        return max([*self.sent.values(), *self.received.values()], default=0.0)

    @property
    def busiest_sender(self) -> float:
        """Most bytes that one card sends."""
        return max(self.sent.values(), default=0.0)


def cuts(degree: int, parts: int | None = None) -> list[Cut]:
    """The part of each of ``degree`` cards; where ``parts`` (KV heads) are fewer, cards hold the same ones."""
    if parts is None or degree <= parts:
        return [(Fraction(card, degree), Fraction(card + 1, degree)) for card in range(degree)]
    return [(Fraction(k := card * parts // degree, parts), Fraction(k + 1, parts)) for card in range(degree)]


def reshard(
    matrices: float,
    whole: float,
    state: float,
    before: int,
    after: int,
    kv_heads: int | None = None,
    sources: Sequence[int] | None = None,
    targets: Sequence[int] | None = None,
) -> Moved:
    """Bytes from ``before`` cards to ``after``; ``whole`` is held by every card, ``state`` cut by KV heads.

    Cards are numbered; by default both sets begin with card 0, so that the sources are among the targets.
    """
    had, wanted = list(sources or range(before)), list(targets or range(after))
    moved = Moved()
    _cut(moved, matrices, dict(zip(had, cuts(before), strict=True)), dict(zip(wanted, cuts(after), strict=True)))
    states = [dict(zip(cards, cuts(len(cards), kv_heads), strict=True)) for cards in (had, wanted)]
    _cut(moved, state, *states)
    for card in wanted if whole else ():
        if card in had:
            moved.kept[card] = moved.kept.get(card, 0.0) + whole
        else:
            _send(moved, whole, min(had, key=lambda one: moved.sent.get(one, 0.0)), card)
    return moved


def _cut(moved: Moved, total: float, had: dict[int, Cut], wanted: dict[int, Cut]) -> None:
    """Each piece comes from the card itself if it is there, else from the holder with the least to send."""
    edges = sorted({edge for cut in (*had.values(), *wanted.values()) for edge in cut})
    for card, (start, end) in wanted.items():
        for low, high in itertools.pairwise(edges):
            if not start <= low < end:
                continue
            holders = [one for one, cut in had.items() if cut[0] <= low and high <= cut[1]]
            piece = total * (high - low).numerator / (high - low).denominator
            if card in holders:
                moved.kept[card] = moved.kept.get(card, 0.0) + piece
            else:
                _send(moved, piece, min(holders, key=lambda one: moved.sent.get(one, 0.0)), card)


def _send(moved: Moved, count: float, source: int, target: int) -> None:
    moved.sent[source] = moved.sent.get(source, 0.0) + count
    moved.received[target] = moved.received.get(target, 0.0) + count


def seconds(moved: Moved, bandwidth: float, per_card: bool) -> float:
    """Time of the moves: all bytes over one port, or the busiest card's over its own."""
    if bandwidth <= 0:
        return math.inf
    return (moved.busiest if per_card else moved.network) / bandwidth
