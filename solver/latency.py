"""First-token time and time per token of a unit, at its load and full; no queueing is counted.

A full unit holds its whole batch; one that receives less holds what Little's law says, and its steps are shorter. Of a
workload of several classes, the first token is that of the slowest class and the time per token that of the mix.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.workload import Workload
from solver import paced, units
from solver.formulas import stages
from solver.physics import Device, Shape, Step
from solver.tiers.states import Saved
from solver.units import Costs, Kind

ROUNDING = 1e-9
NOTHING: Saved = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Latency:
    """Seconds of one request of a workload on a unit; None where the stage has no such time."""

    first_token: float | None
    per_token: float | None


@dataclass(frozen=True)
class _Busy:
    """Shares of a unit's seconds, by the rates it receives."""

    prefill: float
    """Whole seconds of prefill (serial units)."""
    prefill_compute: float
    prefill_memory: float
    """Seconds of prefill by resource (overlapped units)."""
    compute: float
    memory: float
    """Seconds of decode that grow with the batch."""


def at(
    kind: Kind,
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    batches: Mapping[str, int],
    rates: Mapping[str, float],
    name: str,
    less: Saved = NOTHING,
) -> Latency:
    """Times of workload ``name`` on a unit that receives ``rates`` requests/s of each workload, and need not do
    ``less`` of their prefill.
    """
    workload = workloads[name]
    cost = units.costs(shape, gpu, workload)
    if kind.stage == "prefill" or not workload.decodes:
        return Latency(None if kind.stage == "decode" else cost.first_token, None)
    if kind.stage == "decode":
        return Latency(None, gpu.pp * _stretched(shape, gpu, workloads, batches, rates, name, 1.0))
    # whole requests: decode has the seconds that prefill leaves, and each step is stretched by them
    busy = _busy(shape, gpu, workloads, rates, _lines(shape, gpu, workloads, batches), less)
    left = 1.0 - (busy.prefill_memory if kind.overlapped else busy.prefill)
    if left <= 0.0 and not kind.overlapped:
        return Latency(cost.first_token, None)
    left = max(left, 1e-12)
    stretched = _stretched(shape, gpu, workloads, batches, rates, name, left)
    if not kind.overlapped:
        return Latency(cost.first_token, gpu.pp * stretched)
    in_flight = min(units.in_step(gpu, batches[name]), max(1.0, rates.get(name, 0.0) * cost.calls * stretched))
    return Latency(_chunked_first(gpu, cost, in_flight), gpu.pp * stretched)


ROUNDS = 50
"""Times that a step is reckoned anew by the requests that it holds."""


def _stretched(
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    batches: Mapping[str, int],
    rates: Mapping[str, float],
    name: str,
    left: float,
) -> float:
    """Seconds from step to step of a unit that decodes ``rates`` and has a share ``left`` of its time for that.

    Where a step is no straight line, its line is drawn at what the unit holds, which follows from the step: from a full
    unit down, so that the line is never below the step.
    """
    alone, own = units.costs(shape, gpu, workloads[name]).step.at(1).seconds, math.inf
    most = held = _largest(gpu, batches)
    for _ in range(ROUNDS):
        lines = _lines(shape, gpu, workloads, batches, held)
        busy, step = _busy(shape, gpu, workloads, rates, lines), lines[name]
        full = step.at(units.in_step(gpu, batches[name])).seconds
        before, own = own, stages.step_seconds_at_load(step.fixed + step.beside, busy.memory / left, alone, full)
        holds = sum(r * units.costs(shape, gpu, workloads[n]).calls for n, r in rates.items()) * own / left
        if not own < before * (1.0 - 1e-9):
            break
        held = min(most, max(1.0, holds))
    return min(own, before) / left


def _largest(gpu: Device, batches: Mapping[str, int]) -> float:
    """Requests of a step of a unit that is full."""
    return max(units.in_step(gpu, batch) for batch in batches.values())


def in_turn(
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    batches: Mapping[str, int],
    prefills: Mapping[str, float],
    decodes: Mapping[str, float],
    name: str,
) -> Latency:
    """Times of workload ``name`` on a unit that prefills some requests and decodes others, requests/s of each."""
    cost = units.costs(shape, gpu, workloads[name])
    if not workloads[name].decodes:
        return Latency(cost.first_token, None)
    lines = _lines(shape, gpu, workloads, batches)
    left = 1.0 - _busy(shape, gpu, workloads, prefills, lines).prefill
    if left <= 0.0:
        return Latency(cost.first_token, None)
    return Latency(cost.first_token, gpu.pp * _stretched(shape, gpu, workloads, batches, decodes, name, left))


def full(kind: Kind, shape: Shape, gpu: Device, workload: Workload, batch: int, unit_seconds: float) -> Latency:
    """Times on a unit kept full of this workload; ``unit_seconds`` is a request's need of its busiest resource."""
    cost = units.costs(shape, gpu, workload)
    if kind.stage == "prefill" or not workload.decodes:
        return Latency(None if kind.stage == "decode" else cost.first_token, None)
    size = units.in_step(gpu, batch)
    if kind.stage == "decode":
        return Latency(None, gpu.pp * cost.step.at(size).seconds)
    per_token = stages.residence_tpot(batch, unit_seconds, cost.calls)
    first = _chunked_first(gpu, cost, size) if kind.overlapped else cost.first_token
    return Latency(first, per_token)


def at_pace(
    kind: Kind,
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    tau: float,
    rates: Mapping[str, float],
    name: str,
    less: Saved = NOTHING,
) -> Latency:
    """Times of workload ``name`` on a unit paced by ``tau`` that receives ``rates`` requests/s of each workload, and
    need not do ``less`` of their prefill.
    """
    workload = workloads[name]
    cost = units.costs(shape, gpu, workload)
    if not workload.decodes:
        return Latency(None if kind.stage == "decode" else cost.first_token, None)
    sigma = tau / gpu.pp
    room = paced.room_for(kind, shape, gpu, workloads)
    lines = paced.lines_at(kind, shape, gpu, workloads, sigma, room)
    line = lines[name]
    busy, alone = _busy(shape, gpu, workloads, rates, lines, less), cost.step.at(1).seconds
    first = {"prefill": (0.0, 0.0), "decode": (0.0, 0.0), "both": (busy.prefill, busy.prefill)}[kind.stage]
    if kind.stage == "both" and kind.overlapped:
        first = (busy.prefill_compute, busy.prefill_memory)
    own = max(
        stages.step_seconds_at_load(line.beside, first[0] + busy.compute, alone, sigma),
        stages.step_seconds_at_load(line.fixed + line.beside, first[1] + busy.memory, alone, sigma),
    )
    if kind.stage == "decode":
        return Latency(None, gpu.pp * own)
    if not kind.overlapped:
        return Latency(cost.first_token, gpu.pp * own)
    idle = sigma * (1.0 - busy.compute) - line.beside
    if idle <= 0.0:
        return Latency(None, gpu.pp * own)
    chunks = math.ceil(cost.longest_compute / idle - ROUNDING)
    return Latency(cost.read + (chunks + gpu.pp - 1) * sigma, gpu.pp * own)


def bounds(kind: Kind, shape: Shape, gpu: Device, workload: Workload, batch: int) -> tuple[float | None, float | None]:
    """The longest first token and time per token of a unit that holds at most ``batch`` requests of a workload."""
    need = max(units.demand(kind, shape, gpu, workload, batch))
    most = full(kind, shape, gpu, workload, batch, need)
    if most.first_token is None or not (kind.overlapped and kind.stage == "both" and workload.decodes):
        late = kind.stage == "both" and kind.overlapped and workload.decodes and most.first_token is None
        return math.inf if late else most.first_token, most.per_token
    cost = units.costs(shape, gpu, workload)  # chunks are whole, and smaller batches have more of them in shorter steps
    step = cost.step.at(units.in_step(gpu, batch))
    idle = max(1.0 - (step.compute + step.beside) / step.seconds, 1e-12)
    return max(most.first_token, cost.read + cost.longest_compute / idle + gpu.pp * step.seconds), most.per_token


def _lines(
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    batches: Mapping[str, int],
    held: float | None = None,
) -> dict[str, Step]:
    """Steps as straight lines, of a full unit or of one that holds ``held`` requests a step."""
    there = {name: workload for name, workload in workloads.items() if name in batches}
    return units.lines(shape, gpu, there, _largest(gpu, batches) if held is None else held)


def _busy(
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    rates: Mapping[str, float],
    lines: Mapping[str, Step],
    less: Saved = NOTHING,
) -> _Busy:
    prefill, compute, memory = (-seconds for seconds in less)
    decode_compute = decode_memory = 0.0
    for name, rate in rates.items():
        cost = units.costs(shape, gpu, workloads[name])
        own = cost.own(lines[name])
        prefill += rate * cost.prefill_seconds
        compute += rate * (cost.prefill.compute + cost.prefill.beside)
        memory += rate * (cost.prefill.memory + cost.prefill.beside)
        decode_compute += rate * own[0]
        decode_memory += rate * own[1]
    return _Busy(prefill, compute, memory, decode_compute, decode_memory)


def _chunked_first(gpu: Device, cost: Costs, in_flight: float) -> float | None:
    """First token of a prompt whose chunks ride on steps of ``in_flight`` requests; None when no step has room."""
    step = cost.step.at(in_flight)
    room = stages.piggyback_tokens(step.compute, step.memory, cost.longest_compute / cost.longest_new, 1.0)
    if room <= 0.0:
        return None
    chunks = stages.chunks(cost.longest_new, room)
    return cost.read + stages.chunked_first_token_seconds(chunks + gpu.pp - 1, step.seconds)
