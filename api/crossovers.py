"""Where a choice flips: as part of a document and as text."""

from collections.abc import Callable, Iterable
from typing import Any

from api import words
from models.units import GIB
from solver.crossovers import Flip

_SHOWN: dict[str, Callable[[float], str]] = {
    "B/s": lambda value: f"{words.number(value / 1e9, 4)} GB/s",
    "B": lambda value: f"{words.number(value / GIB * 1024.0, 4)} MiB",
    "s": words.seconds,
    "": words.percent,
}


def listed(flips: Iterable[Flip]) -> list[dict[str, Any]]:
    """Every flip as an entry of a document."""
    return [
        {
            "path": flip.what,
            "of": flip.who,
            "value": flip.value,
            "unit": flip.unit,
            "below": flip.below,
            "above": flip.above,
            "stated": flip.stated,
        }
        for flip in flips
    ]


def lines(crossovers: list[dict[str, Any]]) -> list[str]:
    """The table of them, after an empty line; nothing when there are none."""
    if not crossovers:
        return []
    table = [["FLIPS AT", "", "now", "OF", "BELOW", "ABOVE"]]
    for flip in crossovers:
        unit = flip["unit"]
        shown = _SHOWN.get(unit, lambda value, unit=unit: f"{words.number(value, 4)} {unit}")
        table.append(
            [flip["path"], shown(flip["value"]), shown(flip["stated"]), flip["of"], flip["below"], flip["above"]]
        )
    return ["", *words.table(table, frozenset({1, 2}))]
