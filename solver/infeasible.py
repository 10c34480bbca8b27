"""Why nothing fits: the limits that cannot hold together, and the least change of one that helps."""

from collections.abc import Sequence

from models.instance import Instance
from models.plan import Conflict, Relaxation, Row
from solver.backend import Limits, Session
from solver.compare import cannot
from solver.data import Data, gather
from solver.milp import master


def reasons(data: Data, rows: Sequence[Row], limits: Limits) -> tuple[list[Conflict], list[Relaxation]]:
    """Conflicts and relaxations, smallest first; each relaxation was solved with."""
    instance = data.instance
    pruned = data.pruned()
    free = master.build(pruned, promises=False)
    outcome = Session(free.model).solve(free.by_throughput.terms, True, limits)
    cards = [f"cards[{name}]" for name in instance.hardware.groups]
    pools = [f"pools[{index}]" for index in range(len(instance.limits.pools))]
    if outcome.status == "infeasible":
        return [Conflict(limits=[*pools, *cards])], []
    most = outcome.value or 0.0
    if most <= 0.0:
        return [Conflict(limits=[f"memory or paths: {cannot(pruned)}", *pools, *cards])], []
    short = most < instance.rate * (1.0 - 1e-9)
    conflict = Conflict(limits=["sustain" if short else "drain", *pools, *cards])
    found = [_arrivals(pruned, limits)]
    if not short:
        found.append(_deadline(pruned, rows, limits))
    return [conflict], [relaxation for size, relaxation in sorted((f for f in found if f), key=lambda f: f[0])]


Sized = tuple[float, Relaxation]


def _arrivals(data: Data, limits: Limits) -> Sized | None:
    """The largest arrivals for which every limit holds."""
    problem = master.build(data)
    session = Session(problem.model)
    session.bound(problem.arrivals, 0.0, float("inf"))
    outcome = session.solve([(problem.arrivals, 1.0)], True, limits)
    if not outcome.found or not outcome.value or outcome.value <= 1e-9:
        return None
    rate, factor = data.instance.rate, outcome.value
    after = _down(rate * factor)
    if not _solvable(_scaled(data.instance, after / rate), limits):
        return None
    name = next(iter(data.instance.workloads))
    path = f"workloads.{name}.rate" if len(data.instance.workloads) == 1 else "workloads.*.rate"
    text = f"arrivals {rate:.4g} -> {after:.4g} requests/s in all"
    return 1.0 - factor, _relaxation(path, f"{rate:.6g}/s", f"{after:.6g}/s", "requests/s", text)


def _deadline(data: Data, rows: Sequence[Row], limits: Limits) -> Sized | None:
    """The earliest deadline that some scheme alone keeps."""
    instance = data.instance
    deadline = instance.service.drain
    seconds = [row.drained_s for row in rows if row.drained_s is not None and not row.excluded]
    if deadline is None or not seconds:
        return None
    after = _up(min(seconds))
    service = instance.service.model_copy(update={"drain": after})
    if not _solvable(instance.model_copy(update={"service": service}), limits):
        return None
    text = f"deadline {deadline:.4g} s -> {after:.4g} s"
    return after / deadline - 1.0, _relaxation("service.drain", f"{deadline:.6g} s", f"{after:.6g} s", "s", text)


def _relaxation(path: str, before: str, after: str, unit: str, text: str) -> Relaxation:
    return Relaxation.model_validate({"path": path, "from": before, "to": after, "unit": unit, "text": text})


def _up(value: float) -> float:
    """The next number of four digits above."""
    shown = float(f"{value:.4g}")
    return shown if shown >= value else float(f"{value * 1.0005:.4g}")


def _down(value: float) -> float:
    shown = float(f"{value:.4g}")
    return shown if shown <= value else float(f"{value * 0.9995:.4g}")


def _scaled(instance: Instance, factor: float) -> Instance:
    workloads = {
        name: workload.model_copy(update={"rate": workload.rate * factor})
        for name, workload in instance.workloads.items()
    }
    return instance.model_copy(update={"workloads": workloads})


def _solvable(instance: Instance, limits: Limits) -> bool:
    """Whether the changed instance has a plan."""
    data = gather(instance).only(instance.schemes.allow).pruned()
    problem = master.build(data)
    return Session(problem.model).solve(problem.by_throughput.terms, True, limits).found
