"""Places that must exchange state have to be connected: said before anything is solved."""

from models.errors import BadInput, Problem
from models.workload import Workload
from solver.data import Data
from solver.schemes import BY_NAME


def unreachable(data: Data) -> list[Problem]:
    """A problem for each workload whose every allowed scheme hands state over where no path exists."""
    instance = data.instance
    allowed = [BY_NAME[name] for name in instance.schemes.allow]
    if any(kind.stage == "both" for scheme in allowed for kind in scheme.kinds):  # requests may stay where they are
        return []
    problems = []
    for name, workload in instance.workloads.items():
        carried = any(route.workload == name and route.scheme in instance.schemes.allow for route in data.routes)
        if not (workload.decodes or _encoded(data, workload)) or carried or _connected(data):
            continue
        names = ", ".join(instance.schemes.allow)
        there = any(store.holds == "state" for store in instance.hardware.stores.values())
        pooled = instance.schemes.allow == ["pd-pooled"] and not there
        problems.append(
            Problem(
                "hardware.stores" if pooled else "hardware.links",
                f"{name} is served by {names} alone, and "
                + ("there is no store" if pooled else "no path joins two places for its handoff"),
                None,
                "a store on a link" if pooled else "a link between groups, `inside_handoffs: free`, or another scheme",
            )
        )
    return problems


def _encoded(data: Data, workload: Workload) -> bool:
    """Whether images have to come from units of their own."""
    return workload.images > 0.0 and data.instance.schemes.allow == ["encode-pd"]


def _connected(data: Data) -> bool:
    """Whether a store joins places but cannot hold a single state: no fault of the links."""
    instance, topology = data.instance, data.topology
    return "pd-pooled" in instance.schemes.allow and any(
        topology.path(group, store, 1.0) is not None
        for store, described in instance.hardware.stores.items()
        if described.holds == "state"
        for group in instance.hardware.groups
    )


def require_paths(data: Data) -> None:
    """Raises BadInput with every problem of :func:`unreachable`."""
    problems = unreachable(data)
    if problems:
        raise BadInput(problems)
