"""A pass over a model that is cut over ``tp`` GPUs of a server and ``pp`` stages, the slowest of which counts.

A stage takes the longer of computing and reading, and beside it the sums over its GPUs and the hop to the next stage.
"""

import itertools
from dataclasses import dataclass

from models.workload import LengthClass
from solver.attention import Shares, Tokens
from solver.device import Device, Step, Touching, Work
from solver.formulas import experts, parallel, parameters, stages, work
from solver.shapes import Shape


@dataclass(frozen=True)
class Stage:
    """A stage that may be the slowest, or the fullest."""

    share: float
    """Of the layers."""
    head: bool
    """Whether it has the output head."""
    layers: range | None = None
    """Its layers by number, where they are of several kinds."""

    def seen(self, shape: Shape) -> Shares:
        """Its part of the layers by what they see."""
        return shape.kv.layers.shares(self.share, self.layers)

    def kept(self, shape: Shape) -> Shares:
        """The same of the state that it keeps, which may be that of another model."""
        other = len(shape.kept.layers.kinds) != shape.layers
        return shape.kept.layers.shares(self.share, None if other else self.layers)


def stages_of(shape: Shape, device: Device) -> tuple[Stage, ...]:
    """Stages that may be the slowest: the largest and the last, or each where layers are of several kinds."""
    if device.pp == 1:
        return (Stage(1.0, True),)
    if not shape.kv.layers.kinds and not shape.kept.layers.kinds:
        largest = parallel.largest_stage_layers(shape.layers, device.pp) / shape.layers
        last = parallel.last_stage_layers(shape.layers, device.pp) / shape.layers
        return (Stage(largest, False), Stage(last, True))
    least, more = divmod(shape.layers, device.pp)
    starts = [stage * least + min(stage, more) for stage in range(device.pp + 1)]
    parts = [range(start, end) for start, end in itertools.pairwise(starts)]
    return tuple(Stage(len(part) / shape.layers, part is parts[-1], part) for part in parts)


def _beside(shape: Shape, device: Device, tokens: float) -> float:
    """Seconds of a stage beside its work on ``tokens`` tokens: two sums a layer, and the hop to the next stage."""
    payload = parallel.activation_bytes(tokens, shape.hidden, shape.other_bytes)
    layers = parallel.largest_stage_layers(shape.layers, device.pp)
    sums = 2.0 * layers * parallel.allreduce_seconds(payload, device.tp, device.inside, device.inside_startup)
    return sums + (0.0 if device.pp == 1 else payload / device.hop + device.hop_startup)


def prefill(shape: Shape, device: Device, new: float, cached: float) -> Work:
    """Prefill of ``new`` tokens behind ``cached`` ones on the slowest stage."""
    if device.layout is not None:
        return Work(0.0, device.layout.prefill(shape, device, new, cached))
    matrices = work.prefill_matrix_flops(new, shape.layer_params)
    rows = parameters.gathered_row_bytes(new, shape.hidden, shape.other_bytes)
    compute = reading = 0.0
    for stage in stages_of(shape, device):
        share, head = stage.share, stage.head
        other = shape.prefill_flops(new, cached, stage.seen(shape))
        other += work.head_flops(1.0, shape.head_params) if head else 0.0
        seconds = stages.compute_seconds(share * matrices, device.matrix_flops)
        compute = max(compute, (seconds + stages.compute_seconds(other, device.bf16_flops)) / device.tp)
        read = read_bytes(shape, shape.read_params(new), share, head) + (0.0 if device.pp > 1 and head else rows)
        reading = max(reading, stages.memory_seconds(read, device.bandwidth) / device.tp)
    return Work(compute, reading, _beside(shape, device, new))


def read_bytes(shape: Shape, params: float, share: float = 1.0, head: bool = True) -> float:
    """Weight bytes of a stage with ``share`` of the layers, which have ``params`` matrix parameters in all."""
    head_params = shape.head_params if head else 0.0
    return parameters.read_weight_bytes(
        share * params, head_params, share * shape.norm_params, shape.element_bytes, shape.other_bytes
    )


def decode(shape: Shape, device: Device, context: Tokens) -> Step:
    """A decode step at mean context ``context`` on the slowest stage."""
    if device.layout is not None:
        return Step(0.0, 0.0, 0.0, whole=device.layout.step(shape, device, context))
    fixed = each = compute = 0.0
    rows = parameters.gathered_row_bytes(1.0, shape.hidden, shape.other_bytes)
    for stage in stages_of(shape, device):
        share, head, shares = stage.share, stage.head, stage.seen(shape)
        other = shape.decode_flops(context, shares)
        other += work.head_flops(1.0, shape.head_params) if head else 0.0
        seconds = stages.compute_seconds(
            share * work.prefill_matrix_flops(1.0, shape.layer_params), device.matrix_flops
        )
        compute = max(compute, (seconds + stages.compute_seconds(other, device.bf16_flops)) / device.tp)
        own = read_bytes(shape, shape.own_params, share, head)
        fixed = max(fixed, stages.memory_seconds(own, device.bandwidth) / device.tp)
        seen = shape.kv.read(1.0, context, shares, device.tp)
        each = max(each, stages.memory_seconds(rows / device.tp + seen, device.bandwidth))
    query = stages.compute_seconds(shape.query_flops, device.bf16_flops) / device.cards
    beside = _beside(shape, device, 0.0)
    touching = _touching(shape, device)
    return Step(fixed, each, compute, beside, _beside(shape, device, 1.0) - beside + query, touching)


def _touching(shape: Shape, device: Device) -> Touching | None:
    """Memory seconds of the experts that a batch touches, on the slowest stage."""
    routed = shape.routed
    if routed is None:
        return None
    share = max(stage.share for stage in stages_of(shape, device))
    each = share * experts.weight_bytes(routed.params, shape.element_bytes, layers=routed.layers)
    return Touching(stages.memory_seconds(each, device.bandwidth) / device.tp, routed)


def class_prefill(shape: Shape, device: Device, one: LengthClass) -> Work:
    """Prefill of one request of a class, on every stream of the unit at once."""
    return prefill(shape, device, one.input - one.cached, one.cached)


def class_decode(shape: Shape, device: Device, one: LengthClass) -> Step:
    """A decode step of requests of a class."""
    return decode(shape, device, shape.kv.layers.context(one.input, one.output))
