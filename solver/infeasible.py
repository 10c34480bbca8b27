"""Why nothing fits: the limits that cannot hold together, and the least change of one that helps."""

from collections.abc import Callable, Sequence

from models.instance import Instance
from models.plan import Conflict, Relaxation
from models.workload import PoolLimit
from solver import settle
from solver.backend import Limits, Session
from solver.compare import cannot
from solver.data import Data
from solver.milp import master
from solver.optimise import rank
from solver.rounding import down, up
from solver.rounding import text as digits

Solvable = Callable[[Instance], bool]
"""Whether an instance has a plan: the solve itself, so that each relaxation shown was solved with."""


def reasons(data: Data, solvable: Solvable, limits: Limits) -> tuple[list[Conflict], list[Relaxation]]:
    """Conflicts and relaxations, smallest first; ``data`` holds the allowed schemes."""
    instance = data.instance
    apart = [data.pruned()] if instance.schemes.mix else [data.only([name]).pruned() for name in data.schemes]
    most = [rate for rate in (_throughput(one, limits) for one in apart) if rate is not None]
    cards = [f"cards[{name}]" for name in instance.hardware.groups]
    pools = [f"pools[{index}] ({_named(limit)})" for index, limit in enumerate(instance.limits.pools)]
    ready = min(instance.startup(name) for name in instance.hardware.groups)
    if instance.service.drain is not None and instance.service.drain <= ready:
        late = f"drain: the deadline of {digits(instance.service.drain)} s is over before any unit is ready"
        return [Conflict(limits=[f"{late} ({digits(ready)} s)"])], _later(instance, data, solvable, limits)
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


def _later(instance: Instance, data: Data, solvable: Solvable, limits: Limits) -> list[Relaxation]:
    apart = [data.pruned()] if instance.schemes.mix else [data.only([name]).pruned() for name in data.schemes]
    found = _deadline(apart, instance, solvable, limits)
    return [found[1]] if found else []


def _named(limit: PoolLimit) -> str:
    """A bound on pools in words."""
    what = [word for word in (limit.stage, limit.scheme, limit.model) if word] or ["units"]
    where = f" on {limit.group}" if limit.group else ""
    bounds = [f"{key.replace('_', ' ')} {getattr(limit, key)}" for key in ("exactly", "at_least", "at_most")
              if getattr(limit, key) is not None]  # fmt: skip
    return f"{' '.join(what)}{where}: {', '.join(bounds)}"


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
    text = f"arrivals {digits(instance.rate)} -> {digits(after)} requests/s" + ("" if one else " in all, same mix")
    before = f"{instance.rate!r}/s"
    return 1.0 - factor, _relaxation(path, before, f"{after!r}/s", "requests/s", text)


def _deadline(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Sized | None:
    """The deadline that the plan with the most requests/s keeps: with one startup time, the earliest there is."""
    deadline, seconds = instance.service.drain, []
    for data in apart:
        problem = master.build(data, promises=False)
        ranked = rank(problem, [problem.by_throughput], limits)
        if ranked.found:
            found = settle.drained(data, ranked.counts, settle.capacity(data, ranked.counts))
            seconds.extend([found[0]] if found else [])
    if deadline is None or not seconds or min(seconds) > 1e6 * deadline:  # no help to anybody
        return None
    after = up(min(seconds))
    service = instance.service.model_copy(update={"drain": after})
    if not solvable(instance.model_copy(update={"service": service})):
        return None
    text = f"deadline {digits(deadline)} s -> {digits(after)} s"
    return after / deadline - 1.0, _relaxation("service.drain", f"{deadline!r} s", f"{after!r} s", "s", text)


def _relaxation(path: str, before: str, after: str, unit: str, text: str) -> Relaxation:
    return Relaxation.model_validate({"path": path, "from": before, "to": after, "unit": unit, "text": text})


def _scaled(instance: Instance, factor: float) -> Instance:
    workloads = {
        name: workload.model_copy(update={"rate": workload.rate * factor})
        for name, workload in instance.workloads.items()
    }
    return instance.model_copy(update={"workloads": workloads})
