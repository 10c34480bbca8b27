"""The least change of what is asked with which every limit holds: shares, targets, batches, the deadline."""

from collections.abc import Iterator, Sequence

from models.instance import Instance
from models.told import Relaxation
from models.workload import Workload
from solver import cuts, physics, settle, units
from solver.changes import UNSURE, Sized, Solvable, relaxation
from solver.data import Data
from solver.limits import Limits
from solver.milp import master
from solver.optimise import rank
from solver.rounding import text as digits
from solver.rounding import up

MOST_BATCH = 1e6
"""Requests of a step beyond which no batch is looked for."""


def shares(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The largest part of the least shares that can be served."""
    if not instance.drops:
        return
    low, high = 0.0, 1.0
    while high - low > 1e-3 * high and high > 1e-3 and not limits.over:
        middle = (low + high) / 2.0
        low, high = (middle, high) if solvable(_with_shares(instance, middle)) else (low, middle)
    if low > 0.0:
        for name, workload in instance.workloads.items():
            before, after = workload.minimum_share, workload.minimum_share * low
            text = f"least share of {name} {100.0 * before:.4g} % -> {100.0 * after:.4g} %"
            text += ", and of every workload by as much" if len(instance.workloads) > 1 else ""
            yield 1.0 - low, relaxation(f"workloads.{name}.minimum_share", str(before), str(after), "", text)
            return


def _with_shares(instance: Instance, factor: float) -> Instance:
    workloads = {
        name: workload.model_copy(update={"minimum_share": workload.minimum_share * factor})
        for name, workload in instance.workloads.items()
    }
    return instance.model_copy(update={"workloads": workloads})


def targets(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The nearest time that can be kept in place of each target."""
    for name, workload in instance.workloads.items():
        for word in ("ttft", "tpot"):
            stated: float | None = getattr(workload.targets, word)
            if stated is None or not solvable(_with_target(instance, name, word, None)):
                continue
            below, above = stated, 2.0 * stated
            while not solvable(_with_target(instance, name, word, above)) and above < 1e6 * stated:
                below, above = above, 2.0 * above
            while above > below * 1.001 and not limits.over:
                middle = (below * above) ** 0.5
                helps = solvable(_with_target(instance, name, word, middle))
                below, above = (below, middle) if helps else (middle, above)
            after = up(above)
            if solvable(_with_target(instance, name, word, after)):
                text = f"{word} target of {name} {digits(1e3 * stated)} -> {digits(1e3 * after)} ms"
                path = f"workloads.{name}.targets.{word}"
                yield after / stated - 1.0, relaxation(path, f"{stated!r} s", f"{after!r} s", "s", text)


def _with_target(instance: Instance, name: str, word: str, seconds: float | None) -> Instance:
    workload = instance.workloads[name]
    targets = workload.targets.model_copy(update={word: seconds})
    changed = workload.model_copy(update={"targets": targets})
    return instance.model_copy(update={"workloads": {**instance.workloads, name: changed}})


def batch(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The nearest other batch of a workload with which every limit holds: the smallest larger one, or where the batch
    stated does not fit, the largest smaller one.
    """
    for name, workload in instance.workloads.items():
        if not isinstance(workload.batch, int) or not workload.decodes:
            continue
        sizes, stated = _fitting(apart[0], workload), workload.batch
        below = stated
        for above in sorted(size for size in sizes if size > stated):
            if solvable(_with_batch(instance, name, above)):
                while above - below > 1 and not limits.over:
                    middle = (below + above) // 2
                    helps = solvable(_with_batch(instance, name, middle))
                    below, above = (below, middle) if helps else (middle, above)
                yield above / stated - 1.0, _to_batch(name, stated, above)
                break
            below = above
        for smaller in sorted((size for size in sizes if 0 < size < stated), reverse=True):
            if solvable(_with_batch(instance, name, smaller)):
                yield 1.0 - smaller / stated, _to_batch(name, stated, smaller)
                break


def _to_batch(name: str, before: int, after: int) -> Relaxation:
    text = f"batch {before} -> {after} for {name}"
    return relaxation(f"workloads.{name}.batch", str(before), str(after), "requests", text)


def _fitting(data: Data, workload: Workload) -> set[int]:
    """The largest batch of each kind of unit on each group, alone and beside the buffer that another workload needs;
    and the largest that keeps the target for the time per token.
    """
    instance, sizes = data.instance, set()
    llm = instance.models[workload.model]
    beside = [other for other in instance.workloads.values() if other.model == workload.model]
    for group in instance.hardware.groups:
        for cut in cuts.cuts(instance, data.topology, group, workload.model, physics.shape_of(llm)):
            for kind in (units.DECODE, units.REPLICA, units.CHUNKED):
                shape = units.shape_of(kind, llm)
                rooms = {units.buffers(kind, shape, cut.device, other) for other in beside}
                sizes |= {units.largest_batch(shape, cut.device, workload, room) for room in rooms}
            step, target = units.costs(shape, cut.device, workload).step, workload.targets.tpot
            if target is not None:
                sizes.add(int(cut.pp * step.within(target / cut.pp, MOST_BATCH) + 1e-6))
    return sizes


def _with_batch(instance: Instance, name: str, batch: int) -> Instance:
    workload = instance.workloads[name].model_copy(update={"batch": batch})
    return instance.model_copy(update={"workloads": {**instance.workloads, name: workload}})


def deadline(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The earliest deadline that can be kept: with one startup time, that of the plan with the most requests/s."""
    deadline, seconds, sure = instance.service.drain, [], True
    endless = instance.hardware.endless
    for data in apart:
        problem = master.build(data, promises=False)
        ranked = rank(problem, [problem.by_throughput], limits)
        sure = sure and ranked.status in ("optimal", "infeasible")
        if ranked.found:
            found = settle.drained(data, ranked.counts, settle.capacity(data, ranked.counts))
            seconds.extend([found[0]] if found else [])
    if deadline is not None and endless:  # with as much as it takes, soon after the last unit is ready
        seconds.append(2.0 * max(deadline, *(c.startup for data in apart for c in data.candidates)))
    if deadline is None or not seconds or min(seconds) > 1e6 * deadline:  # no help to anybody
        return
    after = up(min(seconds))
    if not solvable(_with_deadline(instance, after)):
        return
    several = len({candidate.startup for data in apart for candidate in data.candidates}) > 1
    if several or endless:  # fewer late units, or more that are bought, may be done earlier
        below, above = deadline, after
        while above > below * 1.0002 and not limits.over:
            middle = (below * above) ** 0.5
            below, above = (below, middle) if solvable(_with_deadline(instance, middle)) else (middle, above)
        after, sure = up(above), sure and not limits.over
    text = f"deadline {digits(deadline)} s -> {digits(after)} s" + ("" if sure else UNSURE)
    yield after / deadline - 1.0, relaxation("service.drain", f"{deadline!r} s", f"{after!r} s", "s", text)


def _with_deadline(instance: Instance, seconds: float) -> Instance:
    service = instance.service.model_copy(update={"drain": seconds})
    return instance.model_copy(update={"service": service})
