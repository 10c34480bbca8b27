"""Flows with the counts chosen: what a linear program settled, or what a plan states."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Settled:
    """Flows at capacity, in requests/s."""

    throughput: float
    rates: Mapping[tuple[str, int], float]
    """(workload, candidate) -> rate."""
    routes: tuple[float, ...]


@dataclass(frozen=True)
class DrainPhase:
    """Rates in one phase of the drain; seconds from the start of startup."""

    start: float
    end: float
    rates: Mapping[tuple[str, int], float]
    routes: tuple[float, ...]
