"""Flows with the counts chosen: what a linear program settled, or what a plan states."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Held:
    """State kept for later at the load: places are told by their number."""

    found: Mapping[tuple[str, int, str, int], float]
    """Workload, part of its prompt, group, place -> requests/s that find it there."""
    written: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    """Workload, group, place -> bytes/s."""
    alive: Mapping[int, float] = field(default_factory=dict)
    """Place -> bytes, with headroom."""
    ages: Mapping[tuple[str, int, str, int], Mapping[tuple[str, int], float]] = field(default_factory=dict)
    """Workload, part, group, place -> policy and number of an age -> requests/s whose state is kept so."""
    paused: Mapping[tuple[str, str, int], float] = field(default_factory=dict)
    """Workload, group, place -> pauses/s."""


@dataclass(frozen=True)
class Settled:
    """Flows at capacity, or at load, in requests/s."""

    throughput: float
    rates: Mapping[tuple[str, int], float]
    """(workload, candidate) -> rate."""
    routes: tuple[float, ...]
    served: Mapping[str, float] = field(default_factory=dict)
    """By workload, where it is not all that arrives."""
    hits: Mapping[tuple[str, int, int], float] = field(default_factory=dict)
    """(workload, candidate, number of parts of its prompt that are found) -> rate."""
    held: Held | None = None
    """State kept for later; None where nothing is."""


@dataclass(frozen=True)
class DrainPhase:
    """Rates in one phase of the drain; seconds from the start of startup."""

    start: float
    end: float
    rates: Mapping[tuple[str, int], float]
    routes: tuple[float, ...]
