"""One deployment unit: what it holds in memory, and the unit-seconds that a request takes on it.

A serial unit has one resource; an overlapped unit has two, compute and memory, since a mix of requests can fill both
(one number per request would overstate a mix). Stage ``both`` is a unit that serves whole requests.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from models.instance import Instance
from models.llm import Llm
from models.workload import Length, LengthClass, Workload
from solver import physics
from solver.formulas import memory, stages
from solver.physics import Device, Shape, Step, Work


@dataclass(frozen=True)
class Kind:
    """How a unit works: its stage, whether its resources overlap, and the buffers it keeps."""

    stage: str
    overlapped: bool
    resources: tuple[str, ...]
    layout: str = "plain"
    """How its GPUs divide layers: `plain` (TP, PP), `spread` (that, or experts spread over them), `ffn` or `experts`
    (those on GPUs of their own), `host` (experts in host memory).
    """
    encodes: bool = True
    """Whether units that prefill hold the encoder of images, where the model has one."""


PREFILL = Kind("prefill", False, ("time",), "spread")
AFTER_ENCODE = Kind("prefill", False, ("time",), "spread", encodes=False)
"""Prefill of requests whose images are encoded elsewhere."""
ENCODE = Kind("encode", False, ("time",))
DECODE = Kind("decode", True, ("compute", "memory"), "spread")
REPLICA = Kind("both", False, ("time",), "spread")
CHUNKED = Kind("both", True, ("compute", "memory"))
HYBRID = Kind("both", False, ("time", "handoff"))
"""One thing at a time, of whole requests or of one stage; see :func:`solver.candidates.faces`."""
APART = Kind("both", False, ("time",), "ffn")
APART_DECODE = Kind("decode", False, ("time",), "ffn")
POOLED = Kind("both", False, ("time",), "experts")
POOLED_DECODE = Kind("decode", False, ("time",), "experts")
HOSTED = Kind("both", False, ("time",), "host")


def shape_of(kind: Kind, llm: Llm) -> Shape:
    """What a model costs on units of a kind: the encoder of images is where requests begin, unless it stands apart."""
    whole = physics.shape_of(llm)
    holds = kind.stage == "encode" or (kind.stage != "decode" and kind.encodes)
    return whole if holds else replace(whole, encoder=None)


def resources(kind: Kind, gpu: Device) -> tuple[str, ...]:
    """What a unit has seconds of: one thing where its GPUs wait for each other."""
    return kind.resources if gpu.layout is None else ("time",)


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of one GPU: weights, state of the resident batch, buffers; and what may be filled."""

    weights: float
    experts: float
    """Weights of experts that tokens choose; the others are `weights`."""
    kv: float
    buffers: float
    capacity: float

    @property
    def used(self) -> float:
        """Everything that is held."""
        return self.weights + self.experts + self.kv + self.buffers

    @property
    def free(self) -> float:
        """What is left; negative when the unit does not fit."""
        return self.capacity - self.used


@dataclass(frozen=True)
class Costs:
    """What one request of a workload costs on a unit, mean over its classes."""

    prefill: Work
    prefill_seconds: float
    """Of the slowest stage, as a whole."""
    first_token: float
    """Prefill of the slowest class through all stages."""
    longest_new: int
    """Input tokens that are computed of the class with the longest prefill."""
    longest_compute: float
    """Compute seconds of that prefill on the slowest stage, and those beside; those of its images included."""
    read: float
    """Seconds of reading the features of its images from the encoder cache."""
    calls: float
    """Decode calls."""
    step: Step
    """Of the slowest stage."""
    held: float
    """Bytes on one GPU while it is decoded."""

    def own(self, step: Step) -> tuple[float, float]:
        """Compute and memory seconds of all its decode calls in steps like that, what a step takes anyway apart."""
        return self.calls * (step.compute + step.beside_each), self.calls * (step.memory + step.beside_each)


def costs(shape: Shape, device: Device, workload: Workload) -> Costs:
    """The costs of a workload on a unit."""
    images = (workload.images, workload.image_hits)
    return _costs(shape, device, workload.classes, workload.longest_total if workload.longest else None, images)


@lru_cache(maxsize=256)
def _alone(classes: tuple[LengthClass, ...], images: float, hits: float) -> Workload:
    """A workload of these classes: two workloads that differ in rates or names cost the same."""
    lengths = [Length.model_construct(**one._asdict()) for one in classes]
    return Workload.model_construct(lengths=lengths, longest=None, model="", rate=1.0, images=images, image_hits=hits)


@lru_cache(maxsize=4096)
def _costs(
    shape: Shape, device: Device, classes: tuple[LengthClass, ...], longest: int | None, images: tuple[float, float]
) -> Costs:
    alone = _alone(classes, *images)
    held = physics.held_state(shape, device, alone)
    if longest is not None:
        held = physics.state_on_card(shape, device, shape.kept.layers.kept(longest - 1.0))
    longest_one = max(classes, key=lambda one: physics.class_prefill(shape, device, one).compute)
    longest_prefill = physics.class_prefill(shape, device, longest_one)
    encoded = physics.worst_encode(shape, device, alone)
    return Costs(
        prefill=physics.workload_prefill(shape, device, alone),
        prefill_seconds=physics.prefill_seconds(shape, device, alone),
        first_token=physics.first_token_seconds(shape, device, alone),
        longest_new=longest_one.input - longest_one.cached,
        longest_compute=longest_prefill.compute + longest_prefill.beside + encoded.compute + encoded.beside,
        read=physics.worst_read(shape, device, alone),
        calls=physics.mean_calls(alone),
        step=physics.workload_decode(shape, device, alone),
        held=held,
    )


def served(instance: Instance, kind: Kind, group: str, model: str) -> dict[str, Workload]:
    """Workloads of ``model`` that a unit on ``group`` may have work from; one output token needs no decode."""
    return {
        name: workload
        for name, workload in instance.workloads.items()
        if workload.model == model and workload.may_use(group) and not (kind.stage == "decode" and not workload.decodes)
    }


def device(instance: Instance, group: str, shape: Shape) -> Device:
    """A unit of one GPU of ``group`` for a model of this shape."""
    return physics.device_of(instance, instance.hardware.groups[group], shape.precision)


def buffers(kind: Kind, shape: Shape, gpu: Device, workload: Workload) -> float:
    """Bytes beside the batch: two states on prefill, a receive buffer on decode, one state in a chunked unit; all of
    them where a unit may do either. Where requests begin, the features of their images too.
    """
    one, features = physics.input_state(shape, gpu, workload), physics.feature_buffer(shape, workload)
    if kind == HYBRID:
        return memory.double_buffer_bytes(one) + one + features
    if kind.stage == "prefill":
        return memory.double_buffer_bytes(one) + features
    if kind.stage == "both":
        return features + (one if kind.overlapped else 0.0)
    return one


def resident(kind: Kind, shape: Shape, gpu: Device, workload: Workload, batch: int) -> float:
    """Bytes of state of the resident batch on one GPU; prefill keeps it in its buffers."""
    return 0.0 if kind.stage == "prefill" else math.ceil(batch / gpu.streams) * costs(shape, gpu, workload).held


def memory_use(
    kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload], batches: Mapping[str, int]
) -> MemoryUse:
    """Memory of a unit that serves ``workloads``: the largest batch and the largest buffer among them."""
    return MemoryUse(
        **weights(shape, gpu),
        kv=max((resident(kind, shape, gpu, w, batches[name]) for name, w in workloads.items()), default=0.0),
        buffers=max((buffers(kind, shape, gpu, w) for w in workloads.values()), default=0.0),
        capacity=gpu.memory,
    )


def weights(shape: Shape, gpu: Device) -> dict[str, float]:
    """Bytes of one GPU, by the names of :class:`MemoryUse`."""
    experts = physics.experts_on_card(shape, gpu)
    return {"weights": physics.weights_on_card(shape, gpu) - experts, "experts": experts}


def largest_batch(shape: Shape, gpu: Device, workload: Workload, buffer: float) -> int:
    """Largest batch of ``workload`` that fits beside ``buffer`` bytes; 0 when the longest request does not."""
    held = physics.weights_on_card(shape, gpu)
    if physics.largest_state(shape, gpu, workload) > gpu.memory - held - buffer:
        return 0
    most = int(memory.largest_batch(gpu.memory, held, costs(shape, gpu, workload).held, buffer)) * gpu.streams
    return most if most >= gpu.pp else 0


def in_step(gpu: Device, batch: float) -> float:
    """Requests of a step of one stage when the unit holds ``batch``: stages work on parts of it in turn."""
    return batch if gpu.pp == 1 else max(1.0, float(int(batch // gpu.pp)))


def lines(shape: Shape, gpu: Device, workloads: Mapping[str, Workload], largest: float) -> dict[str, Step]:
    """Steps as straight lines that hold for any mix of the workloads of up to ``largest`` requests together.

    Where experts are touched each is the tangent there. Where GPUs wait for each other, a step takes what the slowest
    takes before it has any request.
    """
    found = {n: costs(shape, gpu, w).step.upto(largest) for n, w in workloads.items()}
    if gpu.layout is None:
        return found
    fixed = max((found[n].fixed for n, w in workloads.items() if w.decodes), default=0.0)
    return {n: replace(line, fixed=fixed) for n, line in found.items()}


def lines_of(
    kind: Kind, shape: Shape, gpu: Device, workloads: Mapping[str, Workload], batches: Mapping[str, int]
) -> dict[str, Step]:
    """The same for the workloads that have a batch; none where nothing is decoded."""
    there = {name: workload for name, workload in workloads.items() if name in batches and kind.stage != "prefill"}
    return lines(shape, gpu, there, max(in_step(gpu, batches[name]) for name in there)) if there else {}


def demand(
    kind: Kind, shape: Shape, gpu: Device, workload: Workload, batch: int, line: Step | None = None
) -> tuple[float, ...]:
    """Unit-seconds that one request takes of each resource of the unit, when it holds ``batch`` requests.

    ``line`` bounds its steps beside other workloads; see :func:`lines`.
    """
    cost = costs(shape, gpu, workload)
    if kind.stage == "prefill":
        return (cost.prefill_seconds,)
    size = in_step(gpu, batch)
    step = (line or cost.step).at(size)
    compute = stages.decode_occupation(cost.calls, step.compute + step.beside, size)
    memory_seconds = stages.decode_occupation(cost.calls, step.memory + step.beside, size)
    if kind.stage == "decode":
        return (compute, memory_seconds) if gpu.layout is None else (memory_seconds,)
    if kind.overlapped:
        beside = cost.prefill.beside
        return (cost.prefill.compute + beside + compute, cost.prefill.memory + beside + memory_seconds)
    return (cost.prefill_seconds + stages.decode_occupation(cost.calls, step.seconds, size),)
