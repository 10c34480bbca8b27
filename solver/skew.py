"""Rows of cards: where experts and their copies lie, one hot expert, and random choices simulated with a seed.

Skew is the busiest card over the mean; its excess is skew less one (section 9.4.1).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from solver.formulas import experts

CHUNK = 2**22
"""Choices drawn at a time; bounds memory."""


@dataclass(frozen=True)
class Placement:
    """Which cards hold each expert; the rows of one with several copies are divided evenly between them."""

    cards: int
    homes: tuple[tuple[int, ...], ...]
    """Cards of each expert."""

    def with_copies(self, copies: Sequence[tuple[int, int]]) -> "Placement":
        """The same with further copies, pairs of expert and card. Raises ValueError for a second one on a card."""
        homes = [list(cards) for cards in self.homes]
        for expert, card in copies:
            if card in homes[expert]:
                raise ValueError(f"card {card} has expert {expert} already")
            homes[expert].append(card)
        return replace(self, homes=tuple(map(tuple, homes)))

    def rows(self, rows: Sequence[float]) -> list[list[float]]:
        """Rows of each expert on each card, from those of each expert."""
        placed: list[list[float]] = [[] for _ in range(self.cards)]
        for each, cards in zip(rows, self.homes, strict=True):
            for card in cards:
                placed[card].append(each / len(cards))
        return placed

    def loads(self, rows: Sequence[float]) -> list[float]:
        """Rows of each card."""
        return [sum(each) for each in self.rows(rows)]


def by_index(count: int, cards: int) -> Placement:
    """``count`` experts dealt to cards in order, as evenly as can be."""
    return Placement(cards, tuple((expert * cards // count,) for expert in range(count)))


def one_hot(tokens: int, chosen: int, count: int, hot: float) -> list[float]:
    """Rows of ``count`` experts when the first gets ``hot`` and the others share the rest."""
    return [hot] + [experts.other_expert_rows(tokens, chosen, count, hot)] * (count - 1)


def skew(loads: Sequence[float]) -> float:
    """The busiest over the mean."""
    return experts.expert_skew(max(loads), sum(loads) / len(loads))


@dataclass(frozen=True)
class Simulated:
    """Mean over simulated batches, and the standard error of that mean."""

    mean: float
    error: float


def random_skew(tokens: int, chosen: int, placement: Placement, batches: int, seed: int) -> Simulated:
    """Skew of cards when each token chooses ``chosen`` different experts evenly, whatever the others choose."""
    count, cards = len(placement.homes), placement.cards
    share = np.zeros((count, cards))
    for expert, homes in enumerate(placement.homes):
        share[expert, list(homes)] = 1.0 / len(homes)
    found = [(rows @ share).max(axis=1) for rows in _random_rows(tokens, chosen, count, batches, seed)]
    return _mean(np.concatenate(found) * cards / (tokens * chosen))


def random_touched(tokens: int, chosen: int, placement: Placement, batches: int, seed: int) -> Simulated:
    """Experts with any rows on the card that has most of such, when tokens choose as in :func:`random_skew`."""
    count = len(placement.homes)
    here = np.zeros((count, placement.cards))
    for expert, homes in enumerate(placement.homes):
        here[expert, list(homes)] = 1.0
    found = [((rows > 0) @ here).max(axis=1) for rows in _random_rows(tokens, chosen, count, batches, seed)]
    return _mean(np.concatenate(found))


def _mean(values: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> Simulated:
    error = float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Simulated(float(values.mean()), error)


def _random_rows(
    tokens: int, chosen: int, count: int, batches: int, seed: int
) -> Iterator["np.ndarray[tuple[int, int], np.dtype[np.int64]]"]:
    """Rows of each expert in each batch, some batches at a time."""
    rng = np.random.default_rng(seed)
    at_once = max(1, CHUNK // (tokens * chosen))
    for start in range(0, batches, at_once):
        size = min(at_once, batches - start)
        choices = _choices(rng, size * tokens, chosen, count).reshape(size, -1)
        batch = np.repeat(np.arange(size), choices.shape[1])
        yield np.bincount(batch * count + choices.ravel(), minlength=size * count).reshape(size, count)


def _choices(
    rng: np.random.Generator, tokens: int, chosen: int, count: int
) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    """``chosen`` different experts of each token, every set equally likely."""
    if chosen * chosen > count:  # with repetition, few sets would be of different experts
        return rng.random((tokens, count)).argpartition(chosen - 1, axis=1)[:, :chosen]
    drawn = rng.integers(count, size=(tokens, chosen))
    again = np.arange(tokens)
    while again.size:  # a set with a repetition is drawn anew as a whole, so that no set is favoured
        ordered = np.sort(drawn[again], axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        drawn[again] = rng.integers(count, size=(again.size, chosen))
    return drawn
