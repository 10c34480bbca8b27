"""Flows with the counts chosen: what a linear program settled, or what a plan states."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settled:
    """Flows at capacity, or at load, in requests/s."""

    throughput: float
    rates: Mapping[tuple[str, int], float]
    """(workload, candidate) -> rate."""
    routes: tuple[float, ...]
    served: Mapping[str, float] = field(default_factory=dict)
    """By workload, where it is not all that arrives."""


@dataclass(frozen=True)
class DrainPhase:
    """Rates in one phase of the drain; seconds from the start of startup."""

    start: float
    end: float
    rates: Mapping[tuple[str, int], float]
    routes: tuple[float, ...]
