"""A placement with its figures: balance of every layer and scenario, proven bounds, gap, certificate."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.experts.layout import TimeModel
from models.experts.loads import Loads
from models.experts.placement import Placement
from solver.experts.certificate import LayerBound
from solver.experts.times import card_times


@dataclass(frozen=True)
class Scenario:
    """How a placement does for one load pattern.

    busiest, mean: time of the busiest and of the average card of each layer, (layers,).
    bounds: what no placement keeps the busiest card below, one for each layer; any_split: the same for any way to
    split tokens over replicas, (layers,).
    """

    name: str
    busiest: np.ndarray
    mean: np.ndarray
    bounds: tuple[LayerBound, ...] = ()
    any_split: np.ndarray | None = None

    @property
    def balance(self) -> np.ndarray:
        """Average over busiest card of each layer, (layers,)."""
        return np.asarray(self.mean / self.busiest)

    @property
    def balancedness(self) -> float:
        """Mean over layers of average over busiest card."""
        return float(self.balance.mean())

    @property
    def value(self) -> float:
        """Time of the busiest cards summed over layers."""
        return float(self.busiest.sum())

    @property
    def bound(self) -> float | None:
        """What no placement keeps ``value`` below; None where no bounds were made."""
        return sum(b.value for b in self.bounds) if self.bounds else None

    @property
    def gap(self) -> float | None:
        """How far ``value`` can be above the least possible, relative to itself."""
        return None if self.bound is None else max(0.0, (self.value - self.bound) / self.value)

    def as_json(self) -> dict[str, Any]:
        """Figures as a JSON object."""
        return {
            "balancedness": self.balancedness,
            "balancedness_min": float(self.balance.min()),
            "value": self.value,
            "bound": self.bound,
            "bound_any_split": None if self.any_split is None else float(self.any_split.sum()),
            "gap": self.gap,
        }


def scenario(
    name: str,
    placement: Placement,
    tokens: np.ndarray,
    time: TimeModel,
    bounds: tuple[LayerBound, ...] = (),
    any_split: np.ndarray | None = None,
) -> Scenario:
    """The figures of a placement for tokens (layers, experts)."""
    times = card_times(placement, tokens, time)
    return Scenario(name, times.max(1), times.mean(1), bounds, any_split)


@dataclass(frozen=True)
class Result:
    """A placement and what it is worth.

    value, bound: of the objective: for one scenario the busiest cards' time summed over layers, for several the
    weighted sum (or the largest) of relative times. seconds: processor time of placing and of the plain bounds;
    bound_seconds: of tightening them.
    """

    placement: Placement
    loads: Loads
    time: TimeModel
    scenarios: tuple[Scenario, ...]
    value: float
    bound: float
    seconds: float
    bound_seconds: float
    holdout: tuple[Scenario, ...] = ()
    notes: list[str] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """How far ``value`` can be above the least possible, relative to itself."""
        return max(0.0, (self.value - self.bound) / self.value)

    @property
    def balancedness(self) -> float:
        """Weighted mean of the scenarios."""
        return float(sum(w * s.balancedness for w, s in zip(self.loads.weights, self.scenarios, strict=True)))

    @property
    def balancedness_min(self) -> float:
        """Of the worst layer of any scenario."""
        return float(min(s.balance.min() for s in self.scenarios))

    def layers(self) -> list[dict[str, Any]]:
        """One JSON object for each layer: replicas, and for each scenario time, bound and why."""
        counts = self.placement.counts()
        rows: list[dict[str, Any]] = []
        for layer in range(self.placement.layers):
            each = {
                s.name: {
                    "balancedness": float(s.balance[layer]),
                    "busiest": float(s.busiest[layer]),
                    **(s.bounds[layer].as_json() if s.bounds else {}),
                }
                for s in self.scenarios
            }
            row: dict[str, Any] = {"layer": layer, "replicas": counts[layer].tolist()}
            rows.append({**row, **(next(iter(each.values())) if len(each) == 1 else {"scenarios": each})})
        return rows

    def as_json(self) -> dict[str, Any]:
        """The result as a JSON object of the public contract."""
        return {
            "balancedness": self.balancedness,
            "balancedness_min": self.balancedness_min,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "seconds": self.seconds,
            "bound_seconds": self.bound_seconds,
            "cards": self.placement.layout.cards,
            "slots_per_card": list(self.placement.layout.slots),
            "time": {"per_slot": self.time.per_slot, "per_token": self.time.per_token},
            "layers": self.layers(),
            "physical_to_logical_map": self.placement.rows(),
            "scenarios": {s.name: s.as_json() for s in self.scenarios},
            "holdout": {s.name: s.as_json() for s in self.holdout},
            "notes": self.notes,
        }
