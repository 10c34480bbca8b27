"""A time that is one of a few values, each with its probability: mean, quantiles, shares."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

ROUNDING = 1e-12
"""Probabilities that add up to a share but for rounding reach it."""


@dataclass(frozen=True)
class Law:
    """Values in s, from the least up, with their probabilities, which add up to 1."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, points: Iterable[tuple[float, float]]) -> "Law":
        """The law of values in any order; equal ones are joined, those of probability 0 left out."""
        joined: dict[float, float] = {}
        for value, probability in points:
            if probability > 0:
                joined[value] = joined.get(value, 0.0) + probability
        return cls(tuple(sorted(joined.items())))

    @property
    def mean(self) -> float:
        """Expected value."""
        return sum(value * probability for value, probability in self.points)

    def within(self, limit: float) -> float:
        """Probability of at most ``limit``."""
        return sum(probability for value, probability in self.points if value <= limit)

    def quantile(self, share: float) -> float:
        """The least value with at least ``share`` of the probability up to it: the inverse of the distribution."""
        reached = 0.0
        for value, probability in self.points:
            reached += probability
            if reached >= share - ROUNDING:
                return value
        return self.points[-1][0] if self.points else math.nan


def in_turn(chances: Iterable[float]) -> list[float]:
    """How often each of several places is the one that has what is asked for; the last number: none has.

    Each is asked when those before it have missed, and then has it with its chance.
    """
    left, shares = 1.0, []
    for chance in chances:
        shares.append(left * chance)
        left *= 1.0 - chance
    return [*shares, left]


def behind(tiers: Iterable[tuple[float, float]], recompute: float) -> Law:
    """Several tiers behind a miss: pairs of chance and time, asked in turn; when all miss, it takes ``recompute``.

    With one tier this is the two-point law of section 9.5.4; a copy in a lower tier makes three points of it.
    """
    asked = list(tiers)
    times = [*(seconds for _, seconds in asked), recompute]
    return Law.of(zip(times, in_turn(chance for chance, _ in asked), strict=True))
