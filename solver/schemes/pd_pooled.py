"""Prefill and decode on separate units, the state written whole to a shared store and then read (section 9.7.1)."""

from collections.abc import Iterator

from models.hardware import Store
from solver.schemes.base import Leg, Scheme
from solver.topology import Topology
from solver.units import DECODE, PREFILL


def legs(topology: Topology, stores: dict[str, Store], source: str, target: str, payload: float) -> Iterator[Leg]:
    """Through each store that both places reach and that holds at least one state."""
    for name, store in stores.items():
        if store.holds != "state":
            continue
        write, read = topology.path(source, name, payload), topology.path(name, target, payload)
        if write is not None and read is not None and payload <= store.capacity:
            yield Leg(name, (write, read))


SCHEME = Scheme("pd-pooled", (PREFILL, DECODE), legs, "handing the KV over through a shared store")
