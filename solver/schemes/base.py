"""What a scheme is: the kinds of its units, and the handoffs between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from models.hardware import Store
from solver.topology import Path, Topology
from solver.units import Kind


@dataclass(frozen=True)
class Leg:
    """A way from a prefill group to a decode group for one payload."""

    store: str | None
    paths: tuple[Path, ...]
    """One for a direct handoff; write and read for a pooled one, one after the other."""

    def seconds(self, payload: float) -> float:
        """Time from the last prefill token to the state being whole at its target."""
        return sum(path.seconds(payload) for path in self.paths)


class Legs(Protocol):
    """How state gets from one group to another."""

    def __call__(
        self, topology: Topology, stores: dict[str, Store], source: str, target: str, payload: float
    ) -> Iterator[Leg]:
        """Every way there is."""
        ...


@dataclass(frozen=True)
class Scheme:
    """A deployment scheme."""

    name: str
    kinds: tuple[Kind, ...]
    legs: Legs | None
    """None when a unit serves whole requests and nothing is handed over."""
    sentence: str
    """What the plan does, in words, for the first screen."""
