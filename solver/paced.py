r"""Units paced by a step time $\tau$: every request they hold gets a token each $\tau$ seconds, or sooner.

With a target for the time per token, or several workloads with different ones, the batch of one workload says little
about the others. At a given $\tau$ everything is linear in the rates $x_w$ on $n$ units, each row over its capacity:

    memory   $n (W/bw + a)/\sigma + \sum_w x_w m_w \le n$        compute   $n a/\sigma + \sum_w x_w c_w \le n$
    kv       $\sum_w x_w (G_w-1) \tau V_w \le M n$               slots     $\sum_w x_w (G_w-1) \tau / B_w \le n$

$\sigma = \tau/p$ is the step of one of $p$ stages, $a$ what stands beside it, $m_w$ and $c_w$ are seconds of a request
over all its calls (with its prefill, where the unit does that too), $V_w$ its state on a GPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from models.workload import Workload
from solver import physics, units
from solver.physics import Device, Shape, Step
from solver.units import Costs, Kind, MemoryUse

RESOURCES = ("compute", "memory", "kv", "slots", "ttft")
"""Of units whose GPUs wait for each other, `memory` is all their time."""
BETWEEN = 1
"""Points of the grid between the least and the largest step time that something asks for."""


@dataclass(frozen=True)
class Paced:
    """A unit at one step time."""

    tau: float
    resources: tuple[str, ...]
    demand: Mapping[str, tuple[float, ...]]
    """By workload: unit-seconds of each resource per request."""
    batches: Mapping[str, int]
    """Requests of a workload that the unit holds when it gets nothing else."""
    memory: MemoryUse
    scale: tuple[float, ...] = (1.0, 1.0)
    """By resource: what a second of prefill takes of it."""


def is_paced(kind: Kind, workloads: Mapping[str, Workload]) -> bool:
    """Whether a target asks for step times. A stated batch says how long a step takes only where a unit serves nothing
    else: the requests of others make it longer.
    """
    if kind.stage == "prefill" or not any(workload.decodes for workload in workloads.values()):
        return False
    if any(_asks(kind, workload) for workload in workloads.values()):
        return True
    return len(workloads) > 1 and any(
        (workload.decodes and workload.targets.tpot is not None)
        or (kind.overlapped and _first(kind, workload) is not None)
        for workload in workloads.values()
    )


def _asks(kind: Kind, workload: Workload) -> bool:
    if isinstance(workload.batch, int) or not workload.decodes:
        return False
    return workload.targets.tpot is not None or (kind.overlapped and _first(kind, workload) is not None)


def _first(kind: Kind, workload: Workload) -> float | None:
    """Target of the first token where the unit gives it."""
    return workload.targets.ttft if kind.stage == "both" else None


def grid(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> list[float]:
    """Step times to be tried, in s: each target, each workload's step when memory is full, and some between."""
    points = {w.targets.tpot for w in workloads.values() if w.targets.tpot is not None}
    buffer = max(units.buffers(kind, shape, gpu, w) for w in workloads.values())
    most = max(points) if all(w.targets.tpot is not None for w in workloads.values()) else float("inf")
    for workload in workloads.values():
        batch = units.largest_batch(shape, gpu, workload, buffer)
        if isinstance(workload.batch, int):
            batch = min(batch, workload.batch)
        if workload.decodes:
            even = _even(kind, shape, gpu, workload, buffer, most)
            points |= {even} if even is not None else set()
        if batch and workload.decodes:
            full = gpu.pp * units.costs(shape, gpu, workload).step.at(units.in_step(gpu, batch)).seconds
            points.add(min(full, most))
    listed = sorted(points)
    several = len(workloads) > 1 or (kind.stage == "both" and any(w.targets.ttft for w in workloads.values()))
    if several and len(listed) > 1 and listed[-1] > listed[0] * 1.02:
        ratio = (listed[-1] / listed[0]) ** (1.0 / (BETWEEN + 1))
        listed = sorted({*listed, *(listed[0] * ratio**k for k in range(1, BETWEEN + 1))})
    return listed


def _even(kind: Kind, shape: Shape, gpu: Device, workload: Workload, buffer: float, most: float) -> float | None:
    """The step time at which a unit that serves this workload alone is as busy as it is full: the best it has.

    Longer steps spread the weights over more requests, which hold more state.
    """
    cost = units.costs(shape, gpu, workload)
    room = gpu.memory - physics.weights_on_card(shape, gpu) - buffer
    if room <= 0.0 or not cost.held:
        return None
    step = cost.step.upto(_most(gpu, workload, cost, room))
    compute, memory = _own(kind, cost, step)
    each = max(cost.held / (room * gpu.streams), 1.0 / workload.batch if isinstance(workload.batch, int) else 0.0)

    def busy(tau: float) -> float:
        """Seconds of a request over those of its state, less 1."""
        sigma = tau / gpu.pp
        left = 1.0 - step.beside / sigma, 1.0 - (step.fixed + step.beside) / sigma
        if min(left) <= 0.0:
            return 1.0
        return max(compute / left[0], memory / left[1]) - cost.calls * tau * each

    low = gpu.pp * step.at(1.0).seconds
    high = min(most, low * 1e6)
    if busy(low) <= 0.0 or busy(high) > 0.0:  # full before it is busy, or never
        return None if high == most or busy(low) <= 0.0 else high
    while high > low * (1.0 + 1e-12):
        middle = (low * high) ** 0.5
        if not low < middle < high:
            break
        low, high = (middle, high) if busy(middle) > 0.0 else (low, middle)
    return high


def at(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload], tau: float) -> Paced | None:
    """The unit at step time ``tau``, with the workloads that it can serve so; None when there is none."""
    able = {name: w for name, w in workloads.items() if floor(kind, shape, gpu, w, tau) is None}
    if not able:
        return None
    sigma = tau / gpu.pp
    room = room_for(kind, shape, gpu, able)
    reserved = max(_reserved(kind, shape, gpu, w, tau) for w in able.values())
    lines = lines_at(kind, shape, gpu, able, sigma, room)
    paced = [lines[name] for name, w in able.items() if w.decodes]  # where nothing is decoded there are no steps
    beside = max((line.beside for line in paced), default=0.0)
    fixed = beside + max((line.fixed for line in paced), default=0.0)
    if fixed >= sigma * (1.0 - 1e-9):  # a step is full before it has any request of the slowest
        return at(kind, shape, gpu, _without_slowest(able, lines), tau)
    demand: dict[str, tuple[float, ...]] = {}
    for name, workload in able.items():
        cost = units.costs(shape, gpu, workload)
        if cost.calls and cost.held > room:
            return None
        compute, memory = _own(kind, cost, lines[name])
        calls, batch = cost.calls, workload.batch
        demand[name] = (
            compute / (1.0 - beside / sigma),
            memory / (1.0 - fixed / sigma),
            calls * tau * cost.held / (room * gpu.streams) if calls else 0.0,
            calls * tau / batch if isinstance(batch, int) else 0.0,
            cost.own(lines[name])[0] / (1.0 - (beside + reserved) / sigma) if reserved else 0.0,
        )
    used = [k for k in range(len(RESOURCES)) if k < 3 or any(need[k] for need in demand.values())]
    demand = {name: tuple(need[k] for k in used) for name, need in demand.items()}
    batches = {name: _held(units.costs(shape, gpu, w), tau, max(demand[name])) for name, w in able.items()}
    most = max((batches[n] / gpu.streams * units.costs(shape, gpu, w).held for n, w in able.items()), default=0.0)
    buffer = max(units.buffers(kind, shape, gpu, w) for w in able.values())
    use = MemoryUse(**units.weights(shape, gpu), kv=min(most, room), buffers=buffer, capacity=gpu.memory)
    stretched = (1.0 / (1.0 - beside / sigma), 1.0 / (1.0 - fixed / sigma), 0.0, 0.0, 0.0)
    scale = tuple(stretched[k] for k in used)
    return Paced(tau, tuple(RESOURCES[k] for k in used), demand, batches, use, scale)


def _without_slowest(workloads: Mapping[str, Workload], lines: Mapping[str, Step]) -> dict[str, Workload]:
    """All but those whose steps take most before they have any request."""
    most = max(lines[name].fixed for name, workload in workloads.items() if workload.decodes)
    return {name: w for name, w in workloads.items() if w.decodes and lines[name].fixed < most}


def lines_at(
    kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload], sigma: float, room: float
) -> dict[str, Step]:
    """Steps of each workload as straight lines, exact at the most that the unit holds when paced by ``sigma``.

    ``room`` is what state may fill of a GPU. Of stated batches only the largest bounds a mix, and where all are stated.
    """
    stated = [w.batch for w in workloads.values() if w.decodes]
    largest, sizes = 1.0, [float(batch) for batch in stated if isinstance(batch, int)]
    for workload in workloads.values():
        cost = units.costs(shape, gpu, workload)
        first = _first_seconds(kind, cost)
        each = tuple(seconds / cost.calls if cost.calls else 0.0 for seconds in first)
        largest = max(largest, cost.step.within(sigma, _held_at_most(gpu, cost, room), *each))
    if sizes and len(sizes) == len(stated):
        largest = min(largest, max(1.0, max(sizes) / gpu.pp))
    return units.lines(shape, gpu, workloads, largest)


def room_for(kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload]) -> float:
    """Bytes of a GPU that state may fill, beside weights and the largest buffer."""
    buffer = max(units.buffers(kind, shape, gpu, w) for w in workloads.values())
    return gpu.memory - physics.weights_on_card(shape, gpu) - buffer


def _most(gpu: Device, workload: Workload, cost: Costs, room: float) -> float:
    """Requests of a workload that a step has at most, when it has no other."""
    held = _held_at_most(gpu, cost, room)
    return max(1.0, min(held, workload.batch / gpu.pp)) if isinstance(workload.batch, int) else held


def _held_at_most(gpu: Device, cost: Costs, room: float) -> float:
    """Requests of a step whose state fits in ``room``; 1 where there is no state."""
    return max(1.0, (room * gpu.streams / cost.held if cost.held else 1.0) / gpu.pp)


def _own(kind: Kind, cost: Costs, step: Step) -> tuple[float, float]:
    """Compute and memory seconds of a request on the slowest stage, what a step costs anyway apart."""
    (compute, memory), first = cost.own(step), _first_seconds(kind, cost)
    return first[0] + compute, first[1] + memory


def _first_seconds(kind: Kind, cost: Costs) -> tuple[float, float]:
    """Compute and memory seconds of a request's prefill, where the unit does that too."""
    if kind.stage == "decode":
        return 0.0, 0.0
    if kind.overlapped:
        beside = cost.prefill.beside
        return cost.prefill.compute + beside, cost.prefill.memory + beside
    return cost.prefill_seconds, cost.prefill_seconds


def _held(cost: Costs, tau: float, need: float) -> int:
    """Requests that are held when the unit is full of one workload (Little's law)."""
    return max(1, int(cost.calls * tau / need + 1e-9)) if need > 0 and cost.calls else 1


def _steps(gpu: Device, target: float, tau: float) -> int:
    """Steps that a prompt may take, the last chunk passing through all stages."""
    return int(target / (tau / gpu.pp) + 1e-9) - (gpu.pp - 1)


def _reserved(kind: Kind, shape: Shape, gpu: Device, workload: Workload, tau: float) -> float:
    """Compute seconds of a step that prompts need, so that the first token comes in time; 0 where nothing asks."""
    target = _first(kind, workload)
    if target is None or not kind.overlapped:
        return 0.0
    cost = units.costs(shape, gpu, workload)
    return cost.longest_compute / max(1, _steps(gpu, target - cost.read, tau))


def floor(kind: Kind, shape: Shape, gpu: Device, workload: Workload, tau: float) -> str | None:
    """Why a unit cannot serve ``workload`` at step time ``tau``, with the least that it can; None when it can."""
    cost, targets = units.costs(shape, gpu, workload), workload.targets
    alone = cost.step.at(1.0)
    if workload.decodes and targets.tpot is not None and tau > targets.tpot * (1.0 + 1e-9):
        return f"a step of {tau:.4g} s is above the target"
    sigma = tau / gpu.pp
    if workload.decodes and alone.seconds > sigma * (1.0 + 1e-12):
        return f"one request alone takes {1e3 * gpu.pp * alone.seconds:.3g} ms per token"
    target = _first(kind, workload)
    if target is None:
        return None
    if not kind.overlapped:
        late = cost.first_token > target * (1.0 + 1e-9)
        return f"prefill alone takes {cost.first_token:.3g} s" if late else None
    if (
        _steps(gpu, target - cost.read, tau) < 1
        or _reserved(kind, shape, gpu, workload, tau) + alone.compute + alone.beside > sigma
    ):
        least = gpu.pp * max(physics.class_prefill(shape, gpu, one).seconds for one in workload.classes)
        return f"prefill alone takes {least:.3g} s, and leaves no room for decode steps"
    return None
