"""What of the load is served: all of it, as much as the units can, or what pays where some may be turned away."""

from solver.data import Data
from solver.milp import flows
from solver.milp.model import Model, Term, at_least, at_most


def asked(
    model: Model, data: Data, throughput: int, one: int, arrivals: int, promises: bool
) -> tuple[dict[str, tuple[Term, ...]], dict[str, int]]:
    """What is served of the load, and its columns where some may be turned away: all of it, if it is promised."""
    most = data.instance.rate * data.tick
    if promises and data.instance.drops:
        served = shares(model, data)
        return {name: ((column, 1.0),) for name, column in served.items()}, served
    if promises:  # places are for the stated load, also where it is asked how far arrivals may grow
        load = one if data.instance.objective == "headroom" else arrivals
        return dict.fromkeys(data.instance.workloads, ((load, most),)), {}
    part = model.column(0.0, most)  # as much of it as the units can
    model.rows.append(at_most("part", [(part, 1.0), (throughput, -1.0)], 0.0))
    return dict.fromkeys(data.instance.workloads, ((part, 1.0),)), {}


def shares(model: Model, data: Data) -> dict[str, int]:
    r"""Columns of what is served: $s_w \lambda_w \le served_w \le \lambda_w$."""
    most = data.instance.rate * data.tick
    served = {name: model.column(0.0, most) for name in data.instance.workloads}
    for name, workload in data.instance.workloads.items():
        model.rows.append(at_least(f"served[{name}]", [(served[name], 1.0)], workload.minimum_share * most))
    return served


def load(
    model: Model, data: Data, ready: tuple[tuple[Term, ...], ...], one: int, links: dict[str, int]
) -> dict[str, int]:
    """Flows of what is served; the columns of what is."""
    served = shares(model, data)
    regime = flows.add(model, data, "[load]", ready, one, links)
    model.rows.extend(flows.rows(data, regime, {name: ((column, 1.0),) for name, column in served.items()}))
    return served
