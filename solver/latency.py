"""First-token time and time per token of a unit, at its load and full; no queueing is counted.

A full unit holds its whole batch; one that receives less holds what Little's law says, and its steps are shorter.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from models.workload import Workload
from solver import physics
from solver.formulas import stages, state
from solver.physics import Device, Shape
from solver.units import Kind


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
    prefill_memory: float
    """Memory seconds of prefill (overlapped units)."""
    decode: float
    """Memory seconds of decode that grow with the batch."""


def at(
    kind: Kind,
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    batches: Mapping[str, int],
    rates: Mapping[str, float],
    name: str,
) -> Latency:
    """Times of workload ``name`` on a unit that receives ``rates`` requests/s of each workload."""
    workload = workloads[name]
    prefill = physics.workload_prefill(shape, gpu, workload)
    if kind.stage == "prefill" or workload.output == 1:
        return Latency(None if kind.stage == "decode" else prefill.seconds, None)
    busy = _busy(shape, gpu, workloads, rates)
    step = physics.workload_decode(shape, gpu, workload)
    first, full = step.at(1).seconds, step.at(batches[name]).seconds
    if kind.stage == "decode":
        return Latency(None, stages.step_seconds_at_load(step.fixed, busy.decode, first, full))
    if not kind.overlapped:  # decode has the seconds that prefill leaves, and each step is stretched by them
        left = 1.0 - busy.prefill
        if left <= 0.0:
            return Latency(prefill.seconds, None)
        own = stages.step_seconds_at_load(step.fixed, busy.decode / left, first, full)
        return Latency(prefill.seconds, own / left)
    left = 1.0 - busy.prefill_memory
    own = stages.step_seconds_at_load(step.fixed, busy.decode / left, first, full) if left > 0.0 else full
    calls = state.decode_calls(workload.output)
    in_flight = min(float(batches[name]), max(1.0, rates.get(name, 0.0) * calls * own / max(left, 1e-12)))
    return Latency(_chunked_first(shape, gpu, workload, in_flight), own / max(left, 1e-12))


def full(kind: Kind, shape: Shape, gpu: Device, workload: Workload, batch: int, unit_seconds: float) -> Latency:
    """Times on a unit kept full of this workload; ``unit_seconds`` is a request's need of its busiest resource."""
    prefill = physics.workload_prefill(shape, gpu, workload)
    if kind.stage == "prefill" or workload.output == 1:
        return Latency(None if kind.stage == "decode" else prefill.seconds, None)
    calls = state.decode_calls(workload.output)
    if kind.stage == "decode":
        return Latency(None, physics.workload_decode(shape, gpu, workload).at(batch).seconds)
    per_token = stages.residence_tpot(batch, unit_seconds, calls)
    first = _chunked_first(shape, gpu, workload, batch) if kind.overlapped else prefill.seconds
    return Latency(first, per_token)


def _busy(shape: Shape, gpu: Device, workloads: Mapping[str, Workload], rates: Mapping[str, float]) -> _Busy:
    prefill = prefill_memory = decode = 0.0
    for name, rate in rates.items():
        workload = workloads[name]
        cost = physics.workload_prefill(shape, gpu, workload)
        prefill += rate * cost.seconds
        prefill_memory += rate * cost.memory
        decode += rate * state.decode_calls(workload.output) * physics.workload_decode(shape, gpu, workload).memory
    return _Busy(prefill, prefill_memory, decode)


def _chunked_first(shape: Shape, gpu: Device, workload: Workload, in_flight: float) -> float | None:
    """First token of a prompt whose chunks ride on steps of ``in_flight`` requests; None when no step has room."""
    step = physics.workload_decode(shape, gpu, workload).at(in_flight)
    new = workload.input - workload.cached
    seconds_per_token = physics.workload_prefill(shape, gpu, workload).compute / new
    room = stages.piggyback_tokens(step.compute, step.memory, seconds_per_token, 1.0)
    if room <= 0.0:
        return None
    return stages.chunked_first_token_seconds(stages.chunks(new, room), step.seconds)
