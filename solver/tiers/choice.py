"""What was chosen for each place that keeps state."""

from dataclasses import dataclass

from models.tiers import Policy


@dataclass(frozen=True)
class Chose:
    """One place."""

    pieces: int
    way: tuple[Policy, int] | None
    """Policy and number of the age it is kept for; under a time to live the number says nothing. None: not used."""


@dataclass(frozen=True)
class Choice:
    """All places, in their order."""

    places: tuple[Chose, ...]
