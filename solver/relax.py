"""The least change of one limit with which every limit holds; each was solved with before it is shown."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from models.instance import Instance
from models.plan import Relaxation
from models.workload import Workload
from solver import cuts, physics, settle, units
from solver.backend import Limits, Outcome, Session
from solver.data import Data
from solver.milp import master
from solver.optimise import rank
from solver.rounding import down, up
from solver.rounding import text as digits

Solvable = Callable[[Instance], bool]
"""Whether an instance has a plan: the solve itself, so that each relaxation shown was solved with."""
Sized = tuple[float, Relaxation]
"""How large a change is, over what it changes; smallest first."""
UNSURE = " (less of a change may do: the time was up before that was known)"


def relaxations(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> list[Relaxation]:
    """Changes of arrivals, cards, links, batches, pools and the deadline, one at a time; smallest first.

    ``apart`` are the sets of schemes that may stand side by side.
    """
    steps = (_arrivals, _shares, _cards, _bundles, _links, _batch, _deadline, _targets, _pools, _each)
    found = [one for step in steps if not limits.over for one in step(apart, instance, solvable, limits)]
    return [relaxation for _, relaxation in sorted(found, key=lambda one: one[0])]


def _pools(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """Bounds on pools without which everything holds."""
    bounds = instance.limits.pools
    for index in range(len(bounds)):
        fewer = instance.limits.model_copy(update={"pools": [*bounds[:index], *bounds[index + 1 :]]})
        if solvable(instance.model_copy(update={"limits": fewer})):
            yield 1.0, _relaxation(f"limits.pools.{index}", "set", "left out", "", f"without limits.pools.{index}")


def _arrivals(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The largest arrivals for which every limit holds."""
    if instance.drops:
        return
    factors, sure = [], True
    for data in apart:
        problem = master.build(data)
        session = Session(problem.model)
        session.bound(problem.arrivals, 0.0, float("inf"))
        outcome = session.solve([(problem.arrivals, 1.0)], True, limits)
        sure = sure and _sure(outcome, limits)
        if outcome.found and outcome.value is not None:
            factors.append(outcome.value)
    factor = max(factors, default=0.0)
    after = down(instance.rate * factor)
    if factor <= 1e-9 or after <= 0.0 or not solvable(_scaled(instance, after / instance.rate)):
        return
    one = len(instance.workloads) == 1
    path = f"workloads.{next(iter(instance.workloads))}.rate" if one else "workloads.*.rate"
    text = f"arrivals {digits(instance.rate)} -> {digits(after)} requests/s" + ("" if one else " in all, same mix")
    text += "" if sure else UNSURE
    before = f"{instance.rate!r}/s"
    yield 1.0 - factor, _relaxation(path, before, f"{after!r}/s", "requests/s", text)


def _sure(outcome: Outcome, limits: Limits) -> bool:
    """Whether no smaller change helps: proven, to the gap that is asked for."""
    return outcome.status == "infeasible" or outcome.gap <= limits.gap


def _scaled(instance: Instance, factor: float) -> Instance:
    workloads = {
        name: workload.model_copy(update={"rate": workload.rate * factor})
        for name, workload in instance.workloads.items()
    }
    return instance.model_copy(update={"workloads": workloads})


def _shares(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
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
            yield 1.0 - low, _relaxation(f"workloads.{name}.minimum_share", str(before), str(after), "", text)
            return


def _with_shares(instance: Instance, factor: float) -> Instance:
    workloads = {
        name: workload.model_copy(update={"minimum_share": workload.minimum_share * factor})
        for name, workload in instance.workloads.items()
    }
    return instance.model_copy(update={"workloads": workloads})


def _bundles(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The fewest bundles of each kind with which every limit holds, more than may be bought."""
    for name, bundle in instance.hardware.bundles.items():
        if bundle.at_most is None:
            continue
        endless = {**instance.hardware.bundles, name: bundle.model_copy(update={"at_most": None})}
        hardware = instance.hardware.model_copy(update={"bundles": endless})
        changed = instance.model_copy(update={"hardware": hardware})
        fewest = []
        for data in apart:
            problem = master.build(replace(data, instance=changed))
            outcome = Session(problem.model).solve([(problem.purchases.bundles[name], 1.0)], False, limits)
            if outcome.status == "optimal" and outcome.value is not None:
                fewest.append(round(outcome.value))
        if fewest:
            path, text = f"hardware.bundles.{name}.at_most", f"{name} at most {bundle.at_most} -> {min(fewest)}"
            size = (min(fewest) - bundle.at_most) / max(1, bundle.at_most)
            yield size, _relaxation(path, f"{bundle.at_most}", f"{min(fewest)}", "bundles", text)


def _targets(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
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
                yield after / stated - 1.0, _relaxation(path, f"{stated!r} s", f"{after!r} s", "s", text)


def _with_target(instance: Instance, name: str, word: str, seconds: float | None) -> Instance:
    workload = instance.workloads[name]
    targets = workload.targets.model_copy(update={word: seconds})
    changed = workload.model_copy(update={"targets": targets})
    return instance.model_copy(update={"workloads": {**instance.workloads, name: changed}})


def _each(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """Fewer units to spare, or fewer units at least in each pool."""
    for word, key in (("units", "at_least"), ("spare", "units")):
        limit = getattr(instance.limits, word)
        stated = getattr(limit, key) if limit is not None else 0
        for fewer in range(stated - 1, -1, -1):
            changed = limit.model_copy(update={key: fewer}) if fewer else None
            if solvable(instance.model_copy(update={"limits": instance.limits.model_copy(update={word: changed})})):
                path = f"limits.{word}.{key}" if fewer else f"limits.{word}"
                text = f"{path} {stated} -> {fewer}" if fewer else f"without limits.{word}"
                yield 1.0 - fewer / stated, _relaxation(path, str(stated), str(fewer), "units", text)
                break


def _cards(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The fewest cards more of each group with which every limit holds."""
    for name, group in instance.hardware.groups.items():
        if group.servers == "unlimited":
            continue
        fewest = []
        for data in apart:
            problem = master.build(data, buy=name)
            outcome = Session(problem.model).solve([(problem.bought[name], 1.0)], False, limits)
            if outcome.status == "optimal" and outcome.value is not None:
                fewest.append(round(outcome.value))
        if fewest:
            more = min(fewest)
            path, text = f"hardware.groups.{name}", f"+{more} {name}"
            yield more / max(1, group.cards), _relaxation(path, f"{group.cards}", f"{group.cards + more}", "GPUs", text)


def _links(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The least bandwidth of each link with which every limit holds."""
    for name, link in instance.hardware.links.items():
        least, sure = [], True
        for data in apart:
            problem = master.build(data, widen=name)
            outcome = Session(problem.model).solve([(problem.wider, 1.0)], False, limits)
            sure = sure and _sure(outcome, limits)
            if outcome.found and outcome.value is not None:
                least.append(outcome.value)
        if not least or min(least) <= 1.0 + 1e-9:
            continue
        after = up(link.bandwidth * min(least))
        wider = link.model_copy(update={"bandwidth": after})
        hardware = instance.hardware.model_copy(update={"links": {**instance.hardware.links, name: wider}})
        if solvable(instance.model_copy(update={"hardware": hardware})):
            path, text = f"hardware.links.{name}.bandwidth", f"link {name} {digits(link.bandwidth / 1e9)} -> "
            text += f"{digits(after / 1e9)} GB/s" + ("" if sure else UNSURE)
            yield min(least) - 1.0, _relaxation(path, f"{link.bandwidth!r} B/s", f"{after!r} B/s", "B/s", text)


def _batch(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
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
                while above - below > 1:
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
    return _relaxation(f"workloads.{name}.batch", str(before), str(after), "requests", text)


def _fitting(data: Data, workload: Workload) -> set[int]:
    """The largest batch of each kind of unit on each group, alone and beside the buffer that another workload needs;
    and the largest that keeps the target for the time per token.
    """
    instance, sizes = data.instance, set()
    shape = physics.shape_of(instance.models[workload.model])
    beside = [other for other in instance.workloads.values() if other.model == workload.model]
    for group in instance.hardware.groups:
        for cut in cuts.cuts(instance, data.topology, group, workload.model, shape):
            for kind in (units.DECODE, units.REPLICA, units.CHUNKED):
                rooms = {units.buffers(kind, shape, cut.device, other) for other in beside}
                sizes |= {units.largest_batch(shape, cut.device, workload, room) for room in rooms}
            step, target = units.costs(shape, cut.device, workload).step, workload.targets.tpot
            if target is not None:
                room = target / cut.pp - step.fixed - step.beside
                sizes.add(max(0, int(cut.pp * room / (step.memory + step.beside_each))))
    return sizes


def _with_batch(instance: Instance, name: str, batch: int) -> Instance:
    workload = instance.workloads[name].model_copy(update={"batch": batch})
    return instance.model_copy(update={"workloads": {**instance.workloads, name: workload}})


def _deadline(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The earliest deadline that can be kept: with one startup time, that of the plan with the most requests/s."""
    deadline, seconds, sure = instance.service.drain, [], True
    endless = any(bundle.at_most is None for bundle in instance.hardware.purchases.values())
    for data in apart:
        problem = master.build(data, promises=False)
        ranked = rank(problem, [problem.by_throughput], limits)
        sure = sure and ranked.status in ("optimal", "infeasible")
        if ranked.found:
            found = settle.drained(data, ranked.counts, settle.capacity(data, ranked.counts))
            seconds.extend([found[0]] if found else [])
    if deadline is not None and endless:  # with as much as it takes, soon after the last unit is ready
        seconds.append(2.0 * max(deadline, *(instance.startup(name) for name in instance.hardware.groups)))
    if deadline is None or not seconds or min(seconds) > 1e6 * deadline:  # no help to anybody
        return
    after = up(min(seconds))
    if not solvable(_with_deadline(instance, after)):
        return
    several = len({candidate.startup for data in apart for candidate in data.candidates}) > 1
    if several or endless:  # fewer late units, or more that are bought, may be done earlier
        below, above = deadline, after
        while above > below * 1.0002:
            middle = (below * above) ** 0.5
            below, above = (below, middle) if solvable(_with_deadline(instance, middle)) else (middle, above)
        after = up(above)
    text = f"deadline {digits(deadline)} s -> {digits(after)} s" + ("" if sure else UNSURE)
    yield after / deadline - 1.0, _relaxation("service.drain", f"{deadline!r} s", f"{after!r} s", "s", text)


def _with_deadline(instance: Instance, seconds: float) -> Instance:
    service = instance.service.model_copy(update={"drain": seconds})
    return instance.model_copy(update={"service": service})


def _relaxation(path: str, before: str, after: str, unit: str, text: str) -> Relaxation:
    return Relaxation.model_validate({"path": path, "from": before, "to": after, "unit": unit, "text": text})
