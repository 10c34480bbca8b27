"""The answer to a layer question as a document."""

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from api import crossovers
from models.layer.asked import SECTIONS, LayerQuestion
from solver.layer.copied import copied
from solver.layer.exchange import exchanged
from solver.layer.offload import offloaded
from solver.layer.separated import separated
from solver.layer.skewed import skewed
from solver.layer.stepped import padded, piped

_ANSWERS: dict[str, Callable[[Any], object]] = {
    "offload": offloaded,
    "exchange": exchanged,
    "skew": skewed,
    "copies": copied,
    "separate": separated,
    "tiles": padded,
    "pipeline": piped,
}


def answer(asked: LayerQuestion) -> dict[str, Any]:
    """A block for each section, in SI units; `fails` names what does not fit or cannot keep up."""
    blocks = {
        name: _plain(_ANSWERS[name](getattr(asked, name))) for name in SECTIONS if getattr(asked, name) is not None
    }
    return {"name": asked.name, "fails": list(_fails(blocks)), **blocks}


def _plain(found: object) -> Any:
    """Attributes as keys; numbers that are not finite as null."""
    if is_dataclass(found):
        told = {field.name: getattr(found, field.name) for field in fields(found)}
        flips = told.pop("crossovers", None)
        plain = {key: _plain(value) for key, value in told.items()}
        return plain if flips is None else {**plain, "crossovers": crossovers.listed(flips)}
    if isinstance(found, tuple):
        return [_plain(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


def _fails(blocks: dict[str, Any]) -> list[str]:
    offload, copies = blocks.get("offload", {}), blocks.get("copies", {})
    resident, demand = offload.get("resident") or {}, offload.get("demand") or {}
    failing = {
        "experts that stay do not fit on the GPU": resident.get("fits") is False,
        "weights do not fit in host memory": demand.get("fits") is False,
        "the CPU cannot keep up": demand.get("growth_per_s", 0) > 0,
        "copies do not fit": copies.get("fits") is False,
    }
    return [what for what, so in failing.items() if so]
