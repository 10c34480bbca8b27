"""Proofs of the lower bounds of layers: they travel with a placement and are checked without solving anything."""

import time as clock
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.experts.layout import Layout, TimeModel
from solver.experts.bounds import KINDS, Bounds
from solver.experts.thresholds import Case, Multiplier, Proof, attempt, case

WIDEST = 4
"""Slots a card up to which the threshold program is tried; with more slots the other bounds are close."""
WORTH = 5e-4
"""Relative distance between bound and placement that is not worth another program."""
FINE = 0.1
"""Share of a gap to which it is worth knowing it."""


@dataclass(frozen=True)
class LayerBound:
    """No placement keeps the busiest card of a layer below ``value``; ``kind`` says why, ``proof`` with multipliers.

    ``kind`` is one of ``solver.experts.bounds.KINDS``. All but "thresholds" hold for any way to split an expert's
    tokens over its replicas; "thresholds" holds for even splits.
    """

    value: float
    kind: str
    proof: Proof | None = None

    def as_json(self) -> dict[str, Any]:
        """The bound as a JSON object; multipliers as [j, q, threshold, weight]."""
        document: dict[str, Any] = {"bound": self.value, "kind": self.kind}
        if self.proof is not None:
            document["dual"] = {
                "limit": self.proof.limit,
                "slots": self.proof.slots,
                "time": self.proof.time,
                "thresholds": [[m.j, m.q, m.threshold, m.weight] for m in self.proof.multipliers],
            }
        return document


def from_json(document: dict[str, Any]) -> LayerBound:
    """The bound that ``as_json`` wrote. Raises KeyError, TypeError or ValueError where it did not."""
    dual = document.get("dual")
    proof = None
    if dual is not None:
        rows = tuple(Multiplier(int(j), int(q), float(v), float(w)) for j, q, v, w in dual["thresholds"])
        proof = Proof(float(dual["limit"]), rows, float(dual["slots"]), float(dual["time"]))
    return LayerBound(float(document["bound"]), str(document["kind"]), proof)


def plain(found: Bounds) -> list[LayerBound]:
    """Combinatorial bounds, one of each layer."""
    return [LayerBound(float(value), KINDS[int(kind)]) for value, kind in zip(found.value, found.kind, strict=True)]


def tightened(
    known: list[LayerBound],
    tokens: np.ndarray,
    top: np.ndarray,
    layout: Layout,
    time: TimeModel,
    seconds: float,
) -> tuple[list[LayerBound], dict[int, np.ndarray]]:
    """Better bounds for even splits where cards have few slots; and the program's replica counts of each layer tried.

    tokens: (layers, experts). top: time of the busiest card in a placement, (layers,). seconds: when to stop; layers
    with the largest gaps come first. The counts z (experts, counts) are those of the last limit that could be kept.
    """
    found, weights = list(known), dict[int, np.ndarray]()
    if not 2 <= layout.widest <= WIDEST:
        return found, weights
    gaps = np.array([t - k.value for t, k in zip(top, known, strict=True)])
    ends = clock.monotonic() + seconds
    for layer in np.argsort(-gaps, kind="stable").tolist():
        if gaps[layer] <= WORTH * top[layer] or clock.monotonic() > ends:
            break
        this = case(tokens[layer], layout, time)
        better, z = _bisected(this, known[layer], float(top[layer]), ends)
        found[layer] = better
        if z is not None:
            weights[layer] = z
    return found, weights


def _bisected(this: Case, known: LayerBound, top: float, ends: float) -> tuple[LayerBound, np.ndarray | None]:
    low, high, best, z = known.value, top, known, None
    limits = [top * (1.0 - WORTH), low + 0.1 * (top - low)]  # is it tight already; does the program help at all
    while high - low > max(WORTH * high, FINE * (top - low)) and clock.monotonic() < ends:
        limit = limits.pop(0) if limits else 0.5 * (low + high)
        proof, weights = attempt(this, limit, max(ends - clock.monotonic(), 0.01))
        if proof is not None:
            low, best = limit, LayerBound(limit, "thresholds", proof)
        else:
            high, z = limit, weights if weights is not None else z
    return best, z
