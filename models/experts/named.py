"""Loads of experts that an instance names: a file beside it, or rows in it."""

from pathlib import Path
from typing import Any

import numpy as np

from models.errors import BadInput, Problem, path_text, shown
from models.experts.loads import loads
from models.experts.reading import read

Place = tuple[str | int, ...]
DIGITS = 6
"""Significant digits that are kept of a load."""


def rows(value: object, place: Place, base: Path | None) -> list[list[float]]:
    """Loads of each layer, over their mean where they come from a file of one array, else rows as they are.

    Raises BadInput.
    """
    where = path_text(place)
    if isinstance(value, str):
        if base is None:
            raise BadInput([Problem(where, "no file is read here", shown(value), "rows of numbers, one row a layer")])
        arrays = read(base / value, where).arrays
        if len(arrays) > 1:
            accepted = "a file with one array; see `inferplan experts` for several"
            raise BadInput([Problem(where, f"several arrays: {', '.join(arrays)}", value, accepted)])
        tokens = loads(arrays, None, where).tokens[0]
        relative = tokens / tokens.mean(1, keepdims=True)
        return [[float(f"{one:.{DIGITS}g}") for one in row] for row in relative]
    table = _table(value, where)  # as it is, so that a resolved document stays what it was
    return [[float(one) for one in row] for row in loads({"loads": table}, None, where).tokens[0]]


def _table(value: object, where: str) -> np.ndarray:
    rows: Any = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    try:
        return np.asarray(rows, dtype=float)
    except (TypeError, ValueError):
        accepted = "a file, or rows of numbers: one row a layer, a number for each expert"
        raise BadInput([Problem(where, "not a table of loads", shown(value), accepted)]) from None
