"""One deployment unit of one GPU: what it holds in memory, and the unit-seconds a request takes on it.

A serial unit has one resource; an overlapped unit has two, compute and memory, since a mix of requests can fill both
(one number per request would overstate a mix). Stage ``both`` is a unit that serves whole requests.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from models.instance import Instance
from models.workload import Workload
from solver import physics
from solver.formulas import memory, stages, state
from solver.physics import Device, Shape


@dataclass(frozen=True)
class Kind:
    """How a unit works: its stage, whether its resources overlap, and the buffers it keeps."""

    stage: str
    overlapped: bool
    resources: tuple[str, ...]


PREFILL = Kind("prefill", False, ("time",))
DECODE = Kind("decode", True, ("compute", "memory"))
REPLICA = Kind("both", False, ("time",))
CHUNKED = Kind("both", True, ("compute", "memory"))


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of one card: weights, state of the resident batch, buffers; and what may be filled."""

    weights: float
    kv: float
    buffers: float
    capacity: float

    @property
    def used(self) -> float:
        """Everything that is held."""
        return self.weights + self.kv + self.buffers

    @property
    def free(self) -> float:
        """What is left; negative when the unit does not fit."""
        return self.capacity - self.used


def served(instance: Instance, kind: Kind, group: str, model: str) -> dict[str, Workload]:
    """Workloads of ``model`` that a unit on ``group`` may have work from; one output token needs no decode."""
    return {
        name: workload
        for name, workload in instance.workloads.items()
        if workload.model == model and workload.may_use(group) and not (kind.stage == "decode" and workload.output == 1)
    }


def device(instance: Instance, group: str, shape: Shape) -> Device:
    """One GPU of ``group`` for a model of this shape."""
    return physics.device_of(instance, instance.hardware.groups[group], shape.precision)


def buffers(kind: Kind, shape: Shape, workload: Workload) -> float:
    """Bytes beside the batch: two states on prefill, a receive buffer on decode, one state in a chunked unit."""
    one = physics.input_state(shape, workload.admitted)
    if kind.stage == "prefill":
        return memory.double_buffer_bytes(one)
    return 0.0 if kind == REPLICA else one


def resident(kind: Kind, shape: Shape, workload: Workload, batch: int) -> float:
    """Bytes of state of the resident batch at the longest admitted request; prefill keeps it in its buffers."""
    return 0.0 if kind.stage == "prefill" else batch * physics.final_state(shape, workload.admitted)


def memory_use(
    kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload], batches: Mapping[str, int]
) -> MemoryUse:
    """Memory of a unit that serves ``workloads``: the largest batch and the largest buffer among them."""
    return MemoryUse(
        weights=shape.resident,
        kv=max((resident(kind, shape, w, batches[name]) for name, w in workloads.items()), default=0.0),
        buffers=max((buffers(kind, shape, w) for w in workloads.values()), default=0.0),
        capacity=gpu.memory,
    )


def largest_batch(shape: Shape, gpu: Device, workload: Workload, buffer: float) -> int:
    """Largest batch of ``workload`` that fits beside ``buffer`` bytes; 0 when not one request does."""
    final = physics.final_state(shape, workload.admitted)
    return int(memory.largest_batch(gpu.memory, shape.resident, final, buffer))


def demand(kind: Kind, shape: Shape, gpu: Device, workload: Workload, batch: int) -> tuple[float, ...]:
    """Unit-seconds that one request takes of each resource of the unit."""
    calls = state.decode_calls(workload.output)
    prefill = physics.workload_prefill(shape, gpu, workload)
    if kind.stage == "prefill":
        return (prefill.seconds,)
    step = physics.workload_decode(shape, gpu, workload).at(batch)
    compute = stages.decode_occupation(calls, step.compute, batch)
    memory_seconds = stages.decode_occupation(calls, step.memory, batch)
    if kind.stage == "decode":
        return (compute, memory_seconds)
    if kind.overlapped:
        return (prefill.compute + compute, prefill.memory + memory_seconds)
    return (prefill.seconds + stages.decode_occupation(calls, step.seconds, batch),)
