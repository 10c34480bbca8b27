"""Why nothing fits: the limits that cannot hold together, and the least change of one that helps."""

from collections.abc import Callable, Sequence

from models.instance import Instance
from models.plan import Conflict, Relaxation
from solver import settle
from solver.backend import Limits, Session
from solver.compare import cannot
from solver.data import Data
from solver.milp import master
from solver.optimise import rank
from solver.rounding import down, up

Solvable = Callable[[Instance], bool]
"""Whether an instance has a plan: the solve itself, so that each relaxation shown was solved with."""


def reasons(data: Data, solvable: Solvable, limits: Limits) -> tuple[list[Conflict], list[Relaxation]]:
    """Conflicts and relaxations, smallest first; ``data`` holds the allowed schemes."""
    instance = data.instance
    apart = [data.pruned()] if instance.schemes.mix else [data.only([name]).pruned() for name in data.schemes]
    most = [rate for rate in (_throughput(one, limits) for one in apart) if rate is not None]
    cards = [f"cards[{name}]" for name in instance.hardware.groups]
    pools = [f"pools[{index}]" for index in range(len(instance.limits.pools))]
    if not most:
        return [Conflict(limits=[*pools, *cards])], []
    if max(most) <= 0.0:
        return [Conflict(limits=[*(cannot(data) or cards), *pools])], []
    short = max(most) < instance.rate * (1.0 - 1e-9)
    conflict = Conflict(limits=["sustain" if short else "drain", *pools, *cards])
    found = [_arrivals(apart, instance, solvable, limits)]
    if not short:
        found.append(_deadline(apart, instance, solvable, limits))
    return [conflict], [relaxation for _, relaxation in sorted((f for f in found if f), key=lambda f: f[0])]


Sized = tuple[float, Relaxation]


def _throughput(data: Data, limits: Limits) -> float | None:
    """The most that the cards sustain without promises; None when limits on pools cannot be met."""
    problem = master.build(data, promises=False)
    outcome = Session(problem.model).solve(problem.by_throughput.terms, True, limits)
    return outcome.value if outcome.found else None


def _arrivals(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Sized | None:
    """The largest arrivals for which every limit holds."""
    factors = []
    for data in apart:
        problem = master.build(data)
        session = Session(problem.model)
        session.bound(problem.arrivals, 0.0, float("inf"))
        outcome = session.solve([(problem.arrivals, 1.0)], True, limits)
        if outcome.found and outcome.value is not None:
            factors.append(outcome.value)
    factor = max(factors, default=0.0)
    after = down(instance.rate * factor)
    if factor <= 1e-9 or after <= 0.0 or not solvable(_scaled(instance, after / instance.rate)):
        return None
    one = len(instance.workloads) == 1
    path = f"workloads.{next(iter(instance.workloads))}.rate" if one else "workloads.*.rate"
    text = f"arrivals {instance.rate:.4g} -> {after:.4g} requests/s" + ("" if one else " in all, same mix")
    before = f"{instance.rate:.6g}/s"
    return 1.0 - factor, _relaxation(path, before, f"{after:.6g}/s", "requests/s", text)


def _deadline(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Sized | None:
    """The deadline that the plan with the most requests/s keeps: with one startup time, the earliest there is."""
    deadline, seconds = instance.service.drain, []
    for data in apart:
        problem = master.build(data, promises=False)
        ranked = rank(problem, [problem.by_throughput], limits)
        if ranked.found:
            found = settle.drained(data, ranked.counts, settle.capacity(data, ranked.counts))
            seconds.extend([found[0]] if found else [])
    if deadline is None or not seconds:
        return None
    after = up(min(seconds))
    service = instance.service.model_copy(update={"drain": after})
    if not solvable(instance.model_copy(update={"service": service})):
        return None
    text = f"deadline {deadline:.4g} s -> {after:.4g} s"
    return after / deadline - 1.0, _relaxation("service.drain", f"{deadline:.6g} s", f"{after:.6g} s", "s", text)


def _relaxation(path: str, before: str, after: str, unit: str, text: str) -> Relaxation:
    return Relaxation.model_validate({"path": path, "from": before, "to": after, "unit": unit, "text": text})


def _scaled(instance: Instance, factor: float) -> Instance:
    workloads = {
        name: workload.model_copy(update={"rate": workload.rate * factor})
        for name, workload in instance.workloads.items()
    }
    return instance.model_copy(update={"workloads": workloads})
