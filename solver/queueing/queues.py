"""The queue of a plan over time: what arrives when, and what waits before each stage in turn."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from models.errors import BadInput, Problem
from models.instance import Instance
from models.plan import Plan
from models.workload import Workload
from solver.queueing.fluid import Busiest, Needed, Queue, Windows
from solver.queueing.systems import Members, System, systems
from solver.recomputed import built_of
from solver.topology import Topology
from solver.transition.backlog import Steps, Window

PERIODS = 2
MOST_BURSTS = 1000
"""Of a workload that are followed; after them it arrives at its mean."""
LADDER = 6
"""Windows that are halves of halves of the time that is followed."""


@dataclass(frozen=True)
class Stage:
    """One queue: pools that serve from it, what arrives at them, and what waits."""

    system: System
    queue: Queue
    until: float
    """What arrives until then is followed; then the mean goes on."""
    at_once: "Stage | None" = None
    """Of decode: the same as if prefill took no time and had no limit."""

    @property
    def load(self) -> float:
        """Work over capacity at the rates that are planned for."""
        return self.system.work / self.queue.capacity

    @property
    def deciding(self) -> Window | None:
        """The stretch with the longest wait; None where nothing waits."""
        return self.queue.curve.deciding

    @property
    def peak(self) -> Window | None:
        """The stretch in which most work waits."""
        return max(self.queue.curve.windows, key=lambda window: window.peak, default=None)

    @property
    def wait(self) -> float:
        """The longest wait; infinite where the queue grows without end."""
        return 0.0 if self.deciding is None else self.deciding.longest_wait

    @cached_property
    def windows(self) -> Windows:
        """Work in stretches of what arrives."""
        return Windows(self.queue.work, self.until)

    @cached_property
    def shortest(self) -> float | None:
        """Length of the shortest windows none of which brings more than the capacity; None: there is none so long."""
        stretches = self.queue.curve.windows
        if not stretches:
            return 0.0
        if math.isinf(stretches[-1].end):
            return None
        twice = 2.0 * max(self.until, stretches[-1].end)  # room for windows that begin late
        longest = max(stretch.end - stretch.start for stretch in stretches)
        return Windows(self.queue.work, twice).shortest(self.queue.capacity, longest)

    def busiest(self, lengths: set[float]) -> list[Busiest]:
        """The busiest window of each length, of the shortest that fits, and of halves of halves of the whole time."""
        halves = {self.until / 2.0**step for step in range(LADDER)}
        edges = [time for time, _ in self.queue.work.points if time < self.until]
        least = min((later - earlier for earlier, later in itertools.pairwise(edges)), default=self.until)
        asked = {length for length in {*lengths, *halves, self.shortest or 0.0} if least <= length <= self.until}
        return [self.windows.busiest(length) for length in sorted(asked)]

    def needed(self, wait: float) -> Needed:
        """Capacity with which nothing waits longer, prefill and this stage together where prefill has what it needs.

        Of stages in a row, the fluid waits as long as at the slowest one alone where the work of all workloads is in
        one proportion at both; else prefill may bunch what decode works on, and both together may take longer.
        """
        return (self.at_once or self).windows.needed(wait)

    def left(self, time: float) -> float:
        """When what arrives at ``time`` is served."""
        return time + self.queue.curve.at(time) / self.queue.capacity

    @cached_property
    def corners(self) -> list[float]:
        """Between these moments, what arrives waits evenly longer or shorter."""
        changes = (time for time, _ in self.queue.work.points)
        return sorted({*changes, *(time for time, _ in self.queue.curve.corners)})


def queues(plan: Plan, instance: Instance, periods: int = PERIODS) -> list[Stage]:
    """Every queue of the plan, in the order in which requests meet them. Raises BadInput for units of many stages."""
    apart = sorted(pool.name for pool in plan.pools if pool.stage == "encode")
    if apart:
        message = "a queue before units that encode images is not worked out"
        raise BadInput([Problem("schemes.allow", message, ", ".join(apart), "a plan without encode units")])
    mixed = sorted({pool.name for pool in plan.pools if pool.scheme == "hybrid"})
    if mixed:
        message = "its units take all stages in turn; a queue for each stage is not worked out for them"
        raise BadInput([Problem("schemes.allow", message, ", ".join(mixed), "a plan without hybrid units")])
    until = horizon(instance, periods)
    topology = Topology(instance.hardware)
    arrivals = {name: arriving(instance.workloads[name], until) for name in instance.workloads}
    stages: list[Stage] = []
    fed: dict[str, Steps] = {}
    for stage in ("both", "prefill", "decode"):
        members = [
            Members(pool, {name: built_of(plan, pool, instance, topology).seconds(name) for name in pool.rates})
            for pool in plan.pools
            if pool.serves == stage and pool.part_of is None
        ]
        shares = {name: _share(plan, stage, name) for name in instance.workloads}
        for system in systems(stage, members, {name: shares[name] * w.rate for name, w in instance.workloads.items()}):
            direct = {name: _scaled(arrivals[name], shares[name]) for name in system.weights}
            flow = {name: fed.get(name, steps) for name, steps in direct.items()}
            queue = Queue(direct, system.weights, float(system.units))
            found = Stage(system, queue, until)
            if stage == "decode":
                found = replace(found, queue=replace(queue, arrivals=flow), at_once=found)
            stages.append(found)
            if stage == "prefill":
                fed.update(queue.departures)
    return stages


def longest_waits(stages: Sequence[Stage], instance: Instance) -> dict[str, float]:
    """The longest wait of a request of each workload, all stages together; infinite where a queue grows for ever."""
    return {name: max([0.0, *_waits(name, stages)]) for name in instance.workloads}


def _waits(name: str, stages: Sequence[Stage]) -> Iterator[float]:
    mine = {stage.system.stage: stage for stage in stages if name in stage.system.weights}
    if any(math.isinf(stage.wait) for stage in mine.values()):
        yield math.inf
        return
    later = mine.get("decode")
    for first in (mine[stage] for stage in ("both", "prefill") if stage in mine):
        then = later if first.system.stage == "prefill" else None
        times = first.corners
        if then is not None:  # and what comes to the next stage at one of its corners
            gone = [first.left(time) for time in times]
            times = sorted({*times, *(float(time) for time in np.interp(then.corners, gone, times))})
        flow = first.queue.arrivals[name]
        for time, end in itertools.pairwise([*times, times[-1] + 1.0]):
            if flow.at(time) > 0.0:
                for at in (time, end):
                    yield (first.left(at) if then is None else then.left(first.left(at))) - at


def horizon(instance: Instance, periods: int) -> float:
    """Seconds that are followed: ``periods`` of the longest bursts, and every profile to its end."""
    longest = [periods * w.bursts.every for w in instance.workloads.values() if w.bursts is not None]
    ends = [w.profile[-1].at for w in instance.workloads.values() if w.profile is not None]
    return max([*longest, *ends], default=0.0) or 60.0 * periods


def arriving(workload: Workload, until: float) -> Steps:
    """Requests/s of a workload over time; from ``until`` on at its mean."""
    if workload.profile is not None:
        return Steps(tuple((point.at, point.rate) for point in workload.profile))
    bursts = workload.bursts
    if bursts is None or bursts.first == bursts.every:
        return Steps(((0.0, workload.rate),))
    number = min(MOST_BURSTS, math.ceil(until / bursts.every - 1e-9))
    dense = workload.rate * bursts.every / bursts.first
    points: list[tuple[float, float]] = []
    for period in range(number):
        begin = period * bursts.every
        points.extend([(begin, dense), (begin + bursts.first, 0.0)])
    return Steps((*points, (number * bursts.every, workload.rate)))


def _share(plan: Plan, stage: str, name: str) -> float:
    """Share of the arrivals of a workload that pools of a stage serve, as the plan splits them at its most."""
    begun = {"both": 0.0, "prefill": 0.0}
    for pool in plan.pools:
        if pool.serves in begun and pool.part_of is None and name in pool.rates:
            begun[pool.serves] += pool.rates[name].at_capacity
    total, result = sum(begun.values()), plan.workloads.get(name)
    if not total or result is None:
        return 0.0
    served = min(1.0, result.served / result.rate)
    return served * begun["both" if stage == "both" else "prefill"] / total


def _scaled(steps: Steps, share: float) -> Steps:
    return steps if share == 1.0 else Steps(tuple((time, share * rate) for time, rate in steps.points))


def told(instance: Instance, plan: Plan) -> list[str]:
    """What bursts do to a plan, a sentence for each queue that they cause; nothing where the instance has none."""
    hybrid = any(pool.scheme == "hybrid" or pool.stage == "encode" for pool in plan.pools)
    if hybrid or not any(workload.bursts for workload in instance.workloads.values()):
        return []
    said = []
    for stage in queues(plan, instance):
        peak = stage.peak
        if peak is None:
            continue
        where = f"bursts exceed the capacity of {', '.join(stage.system.pools)}"
        if math.isinf(stage.wait):
            said.append(f"{where}, and so do arrivals on average: the queue grows without end")
            continue
        waiting = sum(stage.queue.requests(peak.peak_at).values())
        said.append(
            f"{where}: up to {waiting:.3g} requests wait, up to {stage.wait:.3g} s; `inferplan queue` follows them"
        )
    return said
