"""Columns and rows of a mixed-integer linear program, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, field

INFINITY = float("inf")
Term = tuple[int, float]
"""A column and its coefficient."""


@dataclass(frozen=True)
class Row:
    """A named linear constraint: ``lower <= sum of terms <= upper``."""

    name: str
    terms: tuple[Term, ...]
    lower: float
    upper: float


def at_most(name: str, terms: Iterable[Term], upper: float) -> Row:
    """``terms <= upper``."""
    return Row(name, tuple(terms), -INFINITY, upper)


def at_least(name: str, terms: Iterable[Term], lower: float) -> Row:
    """``terms >= lower``."""
    return Row(name, tuple(terms), lower, INFINITY)


def equal(name: str, terms: Iterable[Term], value: float = 0.0) -> Row:
    """``terms = value``."""
    return Row(name, tuple(terms), value, value)


@dataclass
class Model:
    """A program under construction."""

    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    integer: list[bool] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def column(self, lower: float = 0.0, upper: float = INFINITY, integer: bool = False) -> int:
        """A new column; its number."""
        self.lower.append(lower)
        self.upper.append(upper)
        self.integer.append(integer)
        return len(self.lower) - 1

    def constant(self) -> int:
        """A new column that is 1: what an analysis may later let vary."""
        return self.column(1.0, 1.0)
