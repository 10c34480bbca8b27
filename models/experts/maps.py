"""Reads where replicas are now: maps of SGLang, TensorRT-LLM, vLLM and vLLM-Ascend, from JSON or YAML."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from models.errors import BadInput, Problem
from models.experts.layout import Layout
from models.experts.placement import EMPTY, Placement, counted

MOST_BYTES = 256 * 2**20


def read(path: Path, layout: Layout, layer_ids: tuple[int, ...], experts: int, place: str = "--current") -> Placement:
    """The placement in a file, for the layers that have loads. Raises BadInput with the numbers that do not fit.

    layer_ids: the model's ids of those layers; a map with more rows than they are many is taken to have one for each
    layer of the model. Rows are card after card.
    """
    rows = _rows(_document(path, place), layer_ids, place)
    return _placement(rows, path, layout, layer_ids, experts, place)


def placed(rows: Any, path: Path, layout: Layout, layers: int, experts: int, place: str) -> Placement:
    """The placement of rows that were read, one for each layer. Raises BadInput with the numbers that do not fit."""
    return _placement(_whole(rows, place), path, layout, tuple(range(layers)), experts, place)


def _placement(
    rows: list[list[int]], path: Path, layout: Layout, layer_ids: tuple[int, ...], experts: int, place: str
) -> Placement:
    if len(rows) != len(layer_ids):
        last = max(layer_ids)
        if len(rows) <= last:
            message = f"{len(rows)} layers in the map, {len(layer_ids)} in the loads"
            raise BadInput([Problem(place, message, str(path), "a row for each layer")])
        rows = [rows[i] for i in layer_ids]
    slots = np.full((len(rows), layout.cards, layout.widest), EMPTY, dtype=np.int64)
    for layer, row in enumerate(rows):
        if len(row) != layout.total:
            message = f"row {layer} has {len(row)} slots, the cards have {layout.total}"
            raise BadInput([Problem(place, message, str(path), f"{layout.total} experts a row")])
        at = 0
        for card, size in enumerate(layout.slots):
            slots[layer, card, :size] = row[at : at + size]
            at += size
    return _checked(Placement(slots, layout, experts), path, place)


def _checked(placement: Placement, path: Path, place: str) -> Placement:
    """Every expert of the loads placed, and no other. The same expert twice on a card is let pass: peers do that."""
    low, high = int(placement.slots.min()), int(placement.slots.max())
    if low < EMPTY or high >= placement.experts:
        message = f"expert {high if high >= placement.experts else low} in the map, the loads have {placement.experts}"
        raise BadInput([Problem(place, message, str(path), f"0 to {placement.experts - 1}")])
    missing = np.argwhere(counted(placement.slots, placement.experts) == 0)
    if len(missing):
        layer, expert = (int(i) for i in missing[0])
        message = f"expert {expert} of layer {layer} is on no card, and {len(missing) - 1} more"
        raise BadInput([Problem(place, message, str(path), "every expert placed")])
    return placement


def _document(path: Path, place: str) -> Any:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadInput([Problem(place, "the file is too large", str(path))])
        text = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() in (".yaml", ".yml"):
            return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return json.loads(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput([Problem(place, f"the file cannot be read: {reason}", str(path))]) from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        reason = str(error).splitlines()[0] if str(error) else "not JSON or YAML"
        raise BadInput([Problem(place, f"the file cannot be read: {reason}", str(path))]) from None


def _rows(document: Any, layer_ids: tuple[int, ...], place: str) -> list[list[int]]:
    """Rows of any of the formats."""
    if isinstance(document, dict) and "physical_to_logical_map" in document:
        return _whole(document["physical_to_logical_map"], place)
    if isinstance(document, dict) and "initial_global_assignments" in document:
        table = document["initial_global_assignments"]
        if not isinstance(table, dict):
            raise BadInput([Problem(place, "initial_global_assignments is not an object")])
        missing = [i for i in layer_ids if i not in table and str(i) not in table]
        if missing:
            message = f"layer {missing[0]} is not in initial_global_assignments, which has {len(table)} layers"
            raise BadInput([Problem(place, message, None, "model layer ids; see --first-layer")])
        return _whole([table.get(i, table.get(str(i))) for i in layer_ids], place)
    if isinstance(document, dict) and "layer_list" in document:
        return _whole([_of_devices(layer, place) for layer in _listed(document["layer_list"], place)], place)
    return _whole(document, place)


def _of_devices(layer: Any, place: str) -> list[Any]:
    devices = _listed(layer.get("device_list") if isinstance(layer, dict) else None, place)
    return [
        e
        for device in devices
        for e in _listed(device.get("device_expert") if isinstance(device, dict) else None, place)
    ]


def _listed(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadInput(
            [Problem(place, "not a map of experts that is known", None, "sglang, trtllm, vllm, vllm-ascend")]
        )
    return value


def _whole(rows: Any, place: str) -> list[list[int]]:
    """Rows of whole numbers; a single row stands for one layer."""
    listed = _listed(rows, place)
    if listed and not isinstance(listed[0], list):
        listed = [listed]
    for number, row in enumerate(listed):
        if not isinstance(row, list) or not all(type(e) is int and abs(e) < 2**31 for e in row):
            raise BadInput([Problem(f"{place}[{number}]", "not a row of expert numbers", None, "[0, 1, 2, ...]")])
    return listed
