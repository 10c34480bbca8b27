"""Prefill and decode on separate units, the state handed over directly (section 9.2)."""

from collections.abc import Iterator

from models.hardware import Store
from solver.schemes.base import Leg, Scheme
from solver.topology import Topology
from solver.units import DECODE, PREFILL


def legs(topology: Topology, stores: dict[str, Store], source: str, target: str, payload: float) -> Iterator[Leg]:
    """The quickest path, if the places are connected."""
    path = topology.path(source, target, payload)
    if path is not None:
        yield Leg(None, (path,))


SCHEME = Scheme("pd-direct", (PREFILL, DECODE), legs, "handing the KV over directly")
