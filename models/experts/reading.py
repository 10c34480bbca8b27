"""Reads measured loads: .npz, .npy, .csv, .json, and recordings of SGLang (.pt where torch is installed).

Rows are layers, columns logical experts, numbers tokens. A third axis in front counts steps, which are added up.
Several arrays of one file are scenarios. Rows of zeros in a recording (a document with `logical_count`) are dense
layers: they are left out, and the ids of the others kept.
"""

import csv
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.errors import BadInput, Problem
from models.experts.recording import arrays_of
from models.tabular import is_number

MOST_BYTES = 512 * 2**20
"""Of a file, and of an array in it."""
ENDINGS = (".npz", ".npy", ".csv", ".json", ".pt")


@dataclass(frozen=True)
class Read:
    """Arrays of a file by their names, (layers, experts) each; and the model's ids of the layers where it told them."""

    arrays: dict[str, np.ndarray]
    layer_ids: tuple[int, ...] | None = None


def read(path: Path, place: str = "LOADS") -> Read:
    """The loads in a file, not yet checked. Raises BadInput."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise BadInput([Problem(place, "not a kind of file that is read", str(path), ", ".join(ENDINGS))])
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput([Problem(place, "the file is too large", str(path), f"at most {MOST_BYTES >> 20} MiB")])
        if ending in (".npz", ".npy"):
            return _named(_numpy(path, place), place)
        if ending == ".csv":
            return _named(_csv(path, place), place)
        if ending == ".json":
            return _document(json.loads(path.read_text(encoding="utf-8-sig")), path, place)
        return _document(_torch(path, place), path, place)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput([Problem(place, f"the file cannot be read: {reason}", str(path))]) from None
    except json.JSONDecodeError as error:
        raise BadInput([Problem(place, f"not valid JSON: {error.msg}", str(path), None, error.lineno)]) from None
    except RecursionError:
        raise BadInput([Problem(place, "nested too deep", str(path))]) from None
    except (
        ValueError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        csv.Error,
        EOFError,
        MemoryError,
    ) as error:  # what numpy raises for a damaged file
        raise BadInput([Problem(place, f"the file cannot be read: {error}", str(path))]) from None


def _named(arrays: dict[str, np.ndarray], place: str) -> Read:
    return Read({name: _summed(array, f"{place}[{name}]") for name, array in arrays.items()})


def _summed(array: np.ndarray, place: str) -> np.ndarray:
    """Steps added up, where there are three axes."""
    if array.ndim == 3 and array.dtype.kind in "iuf":
        return np.asarray(array.astype(np.float64).sum(0))
    if array.ndim != 2:
        said = " x ".join(map(str, array.shape)) or "a single number"
        raise BadInput([Problem(place, f"not a table of loads: {said}", None, "layers x experts")])
    return array


def _numpy(path: Path, place: str) -> dict[str, np.ndarray]:
    if path.suffix.lower() == ".npy":
        found = np.load(path, allow_pickle=False)
        return {path.stem: np.asarray(found)}
    with zipfile.ZipFile(path) as packed:
        for entry in packed.infolist():
            if entry.file_size > MOST_BYTES:
                most = f"at most {MOST_BYTES >> 20} MiB"
                raise BadInput([Problem(f"{place}[{entry.filename}]", "an array too large", None, most)])
    with np.load(path, allow_pickle=False) as archive:
        return {name: np.asarray(archive[name]) for name in archive.files}


def _csv(path: Path, place: str) -> dict[str, np.ndarray]:
    """A table: a row a layer; or with the heads layer, expert, tokens (and scenario), a row an expert."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row and not row[0].lstrip().startswith("#")]
    if not rows:
        raise BadInput([Problem(place, "the file is empty", str(path), "a row a layer")])
    head = [cell.strip().lower() for cell in rows[0]]
    if {"layer", "expert", "tokens"} <= set(head):
        return _long(rows[1:], head, path, place)
    start = 0 if is_number(rows[0][0]) else 1
    width = len(rows[start]) if len(rows) > start else 0
    table = []
    for number, row in enumerate(rows[start:], start + 1):
        if len(row) != width:
            raise BadInput([Problem(place, f"row {number} has {len(row)} columns, the first one {width}", str(path))])
        table.append([_number(cell, f"{place}[{number - start - 1},{i}]") for i, cell in enumerate(row)])
    return {path.stem: np.array(table, dtype=np.float64)}


def _long(rows: list[list[str]], head: list[str], path: Path, place: str) -> dict[str, np.ndarray]:
    at = {name: head.index(name) for name in ("layer", "expert", "tokens")}
    found: dict[str, dict[tuple[int, int], float]] = {}
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            raise BadInput([Problem(place, f"row {number} has {len(row)} columns, the head {len(head)}", str(path))])
        name = row[head.index("scenario")] if "scenario" in head else path.stem
        layer, expert = (_index(row[at[key]], f"{place} row {number}, {key}") for key in ("layer", "expert"))
        cells = found.setdefault(name, {})
        cells[layer, expert] = cells.get((layer, expert), 0.0) + _number(row[at["tokens"]], f"{place} row {number}")
    made = {}
    for name, cells in found.items():
        layers, experts = (1 + max(key[i] for key in cells) for i in (0, 1))
        if layers * experts != len(cells):
            message = f"{len(cells)} of {layers} layers x {experts} experts are stated"
            raise BadInput([Problem(f"{place}[{name}]", message, None, "every layer and expert once")])
        table = np.zeros((layers, experts))
        for (layer, expert), tokens in cells.items():
            table[layer, expert] = tokens
        made[name] = table
    return made


def _number(text: str, place: str) -> float:
    if not is_number(text):
        raise BadInput([Problem(place, "not a number", text, "tokens")])
    return float(text)


def _index(text: str, place: str) -> int:
    if not text.strip().isdecimal() or len(text.strip()) > 6:
        raise BadInput([Problem(place, "not a layer or expert", text, "a whole number from 0")])
    return int(text)


def _document(document: Any, path: Path, place: str) -> Read:
    """JSON or a recording: one table, scenarios by name, or an object with `logical_count` or `records`."""
    if isinstance(document, dict) and ("logical_count" in document or "records" in document):
        table = arrays_of(document, place)
        kept = np.flatnonzero(table.any(axis=1))
        return Read({path.stem: table[kept]}, tuple(kept.tolist()))
    tables = document if isinstance(document, dict) else {path.stem: document}
    if not tables:
        raise BadInput([Problem(place, "the file is empty", str(path), "layers x experts")])
    return Read({str(name): _summed(_array(table, f"{place}[{name}]"), place) for name, table in tables.items()})


def _array(table: Any, place: str) -> np.ndarray:
    """Lists of numbers as an array. Raises BadInput where rows differ in length or hold something else."""
    try:
        array = np.array(table)
    except ValueError:
        raise BadInput([Problem(place, "rows of different lengths", None, "layers x experts")]) from None
    if array.dtype.kind not in "iuf":
        raise BadInput([Problem(place, "not a table of numbers", None, "[[tokens, ...], ...]")])
    return array


def _torch(path: Path, place: str) -> Any:
    """What torch saved. Raises BadInput where torch is missing or the file is not one of its own."""
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        said = "torch is not installed, which .pt files need"
        raise BadInput([Problem(place, said, str(path), "a .npz, .npy, .csv or .json file")]) from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch and pickle raise what they like for files that are not theirs
        raise BadInput([Problem(place, f"torch cannot read the file: {error}", str(path))]) from None
