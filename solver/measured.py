"""Units with measured rates, as candidates beside computed ones."""

from collections.abc import Iterator

from models.given import Measured, Point
from models.instance import Instance
from models.workload import LengthClass, Workload
from solver.candidate import Candidate, Rejected
from solver.units import Kind

KINDS = {stage: Kind(stage, False, ("time",)) for stage in ("prefill", "decode", "both")}


def make(instance: Instance, schemes: tuple[str, ...]) -> Iterator[Candidate | Rejected]:
    """A candidate for each measured unit that some allowed scheme has; why not, for each workload without a rate."""
    for name, unit in instance.measured.items():
        mine = _schemes(unit, schemes)
        if not mine:
            continue
        rates: dict[str, float] = {}
        for key, workload in instance.workloads.items():
            if workload.model != unit.model or not workload.may_use(unit.group):
                continue
            if unit.stage == "decode" and not workload.decodes:
                continue
            seconds, reason = _seconds(unit, key, workload)
            limit = "measured"
            late = "" if seconds is None else _late(unit, workload)
            if late:
                seconds, reason, limit = None, late, "targets"
            if seconds is None:
                yield Rejected(mine, unit.stage, unit.group, key, f"{name}: {reason}", limit)
            else:
                rates[key] = seconds
        if rates:
            yield _candidate(instance, name, unit, mine, rates)


def _schemes(unit: Measured, schemes: tuple[str, ...]) -> tuple[str, ...]:
    if unit.stage != "both":
        return tuple(s for s in schemes if s in ("pd-direct", "pd-pooled"))
    own = (unit.scheme,) if unit.scheme else ("replicas", "chunked")
    return tuple(s for s in schemes if s in own)


def _candidate(
    instance: Instance, name: str, unit: Measured, schemes: tuple[str, ...], rates: dict[str, float]
) -> Candidate:
    group = instance.hardware.groups[unit.group]
    block = unit.size if unit.size <= group.per_server else unit.tp
    aims = [key for key in rates if instance.workloads[key].targets.ttft is not None]
    said = {key: times(unit, instance.workloads[key]).ttft for key in aims}
    return Candidate(
        name="",
        label=f"{name}@{unit.group}",
        schemes=schemes,
        kind=KINDS[unit.stage],
        group=unit.group,
        model=unit.model,
        cards=unit.size,
        batches=dict.fromkeys(rates, 1 if unit.stage == "prefill" else unit.batch or 1),
        demand={key: (seconds,) for key, seconds in rates.items()},
        memory=None,
        startup=instance.startup(unit.group) if unit.startup is None else unit.startup,
        price=unit.size * (group.price or 0.0) if unit.price is None else unit.price,
        tp=unit.tp,
        pp=unit.pp,
        block=block,
        first={key: seconds for key, seconds in said.items() if seconds is not None},
        measured=name,
        power=unit.size * (group.accelerator.power or 0.0),
    )


def _seconds(unit: Measured, name: str, workload: Workload) -> tuple[float | None, str]:
    """Unit-seconds of a request, or why they are not known."""
    if name in unit.rates:
        return 1.0 / unit.rates[name], ""
    if not unit.table:
        return None, "no rate is stated for it"
    total = 0.0
    for one in workload.classes:
        point = nearest(unit, one)
        if point is None:
            return None, f"its table has no point of {one.input} input and {one.output} output tokens or more"
        total += one.share / point.rate
    return total, ""


def nearest(unit: Measured, one: LengthClass) -> Point | None:
    """The quickest point of the table that is at least as long in both, so that a request never counts as shorter."""
    able = [point for point in unit.table if point.input >= one.input and point.output >= one.output]
    return max(able, key=lambda point: point.rate, default=None)


def times(unit: Measured, workload: Workload) -> Measured | Point:
    """Where the times of a workload are stated: the slowest point of its classes, else the unit itself."""
    points = [point for one in workload.classes if (point := nearest(unit, one)) is not None]
    slow = [point for point in points if point.ttft is not None or point.tpot is not None]
    return max(slow, key=lambda point: (point.ttft or 0.0, point.tpot or 0.0), default=unit)


def _late(unit: Measured, workload: Workload) -> str:
    """Which target it is not known to keep."""
    said, targets = times(unit, workload), workload.targets
    for word, target, own, counts in (
        ("ttft", targets.ttft, said.ttft, unit.stage != "decode"),
        ("tpot", targets.tpot, said.tpot, unit.stage != "prefill" and workload.decodes),
    ):
        if target is None or not counts:
            continue
        if own is None:
            return f"states no {word}, and the workload has a target for it"
        if own > target:
            return f"{word} {own:.4g} s, target {target:.4g} s"
    return ""
