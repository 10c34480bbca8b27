"""Recordings of SGLang's expert distribution recorder: `logical_count`, or `records` of physical counts.

Modes stat and stat_approx write {rank, logical_count [steps, layers, experts], ...}; per_pass and per_token write
{records: [{global_physical_count [layers, slots], ...}], last_physical_to_logical_map [layers, slots]}.
"""

from typing import Any

import numpy as np

from models.errors import BadInput, Problem


def arrays_of(document: dict[Any, Any], place: str) -> np.ndarray:
    """Tokens of a recording, steps added up: (layers, experts). Raises BadInput."""
    if "logical_count" in document:
        counts = _numbers(document["logical_count"], f"{place}.logical_count")
        if counts.ndim == 3:
            counts = counts.sum(0)
        if counts.ndim != 2:
            said = f"not layers x experts: {' x '.join(map(str, counts.shape))}"
            raise BadInput([Problem(f"{place}.logical_count", said, None, "[steps,] layers, experts")])
        return counts
    return _of_passes(document, place)


def _of_passes(document: dict[Any, Any], place: str) -> np.ndarray:
    """Physical counts of every pass, put together by the expert of each slot."""
    records, key = document["records"], "last_physical_to_logical_map"
    if not isinstance(records, list) or not records or key not in document:
        raise BadInput([Problem(f"{place}.records", f"no records, or no {key} beside them", None, "per_pass files")])
    where = _numbers(document[key], f"{place}.{key}").astype(np.int64)
    total = np.zeros(where.shape)
    for number, record in enumerate(records):
        here = f"{place}.records[{number}].global_physical_count"
        if not isinstance(record, dict) or "global_physical_count" not in record:
            raise BadInput([Problem(here, "is missing", None, "layers x slots")])
        counts = _numbers(record["global_physical_count"], here)
        if counts.shape != where.shape:
            shapes = [" x ".join(map(str, shape)) for shape in (counts.shape, where.shape)]
            raise BadInput([Problem(here, f"{shapes[0]} counts for a map of {shapes[1]}")])
        total += counts
    if where.ndim != 2 or where.size == 0 or where.min() < 0 or where.max() > 1_000_000:
        raise BadInput([Problem(f"{place}.{key}", "not a map of layers x slots to experts")])
    tokens = np.zeros((len(where), int(where.max()) + 1))
    np.add.at(tokens, (np.arange(len(where))[:, None], where), total)
    return tokens


def _numbers(value: Any, place: str) -> np.ndarray:
    """Lists, or a tensor, as numbers."""
    try:
        array = np.array(value.tolist() if hasattr(value, "tolist") else value)
    except ValueError:
        raise BadInput([Problem(place, "rows of different lengths")]) from None
    if array.dtype.kind not in "iuf":
        raise BadInput([Problem(place, "not a table of numbers")])
    return array.astype(np.float64)
