"""Where a choice flips as one number moves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

SPAN = 1e3
"""Rates and times are moved from a thousandth to a thousand times what is stated."""
POINTS = 240
"""Values that are looked at; two flips nearer to each other than these are not seen."""


@dataclass(frozen=True)
class Flip:
    """Below ``value`` it is ``below`` that is chosen, above it ``above``."""

    what: str
    """`links.nic`, `places.a.queue`, `offload.rows`."""
    who: str
    """Whose choice: `all places` for the choice between them, else the place whose own way changes."""
    value: float
    unit: str
    """As written behind numbers: `B/s`, `s`, `B`, a thing that is counted, or nothing for a share."""
    below: str
    above: str
    stated: float
    """The value as it is now."""


def around(stated: float) -> list[float]:
    """Values that are looked at, from a thousandth to a thousand times ``stated``."""
    return [stated * SPAN ** (2.0 * i / POINTS - 1.0) for i in range(POINTS + 1)]


def changes(choice: Callable[[float], str], values: list[float]) -> Iterator[tuple[float, str, str]]:
    """Where a choice changes between neighbouring values, to the last digits: value, choice below, choice above."""
    told = [choice(value) for value in values]
    for low, high, below, above in zip(values, values[1:], told, told[1:], strict=False):
        if below == above:
            continue
        for _ in range(200):
            middle = (low + high) / 2.0
            if middle in (low, high):
                break
            low, high = (middle, high) if choice(middle) == below else (low, middle)
        yield high, below, above
