"""Two versions of a model side by side: weights are fixed to cards, so each version needs its own (section 9.6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass

from solver.formulas.startup import units_for_rate


@dataclass(frozen=True)
class Version:
    """One version: what a unit completes, and the cards it takes."""

    unit_rate: float
    cards: int


@dataclass(frozen=True)
class Stage:
    """One stage of a rollout."""

    share: float
    """Of requests that go to the new version."""
    old_units: int
    new_units: int
    cards: int
    fits: bool


def stages(old: Version, new: Version, rate: float, shares: Sequence[float], cards: int) -> list[Stage]:
    """Units and cards of each stage; a stage begins when the units of both sides are ready.

    While units of the new version start, those of the old one still serve the share of the stage before: the cards of a
    stage are the larger need of its own and of that moment.
    """
    found, before = [], units_for_rate(rate, old.unit_rate)
    for share in shares:
        old_units, new_units = (
            units_for_rate(rate * (1.0 - share), old.unit_rate),
            units_for_rate(rate * share, new.unit_rate),
        )
        needed = int(max(before, old_units) * old.cards + new_units * new.cards)
        found.append(Stage(share, int(old_units), int(new_units), needed, needed <= cards))
        before = old_units
    return found
