"""A pass over a model that is cut over ``tp`` GPUs of a server and ``pp`` stages, the slowest of which counts.

A stage takes the longer of computing and reading, and beside it the sums over its GPUs and the hop to the next stage.
"""

from collections.abc import Callable

from models.workload import LengthClass
from solver.device import Device, Step, Work
from solver.formulas import experts, parallel, parameters, stages, state, work
from solver.shapes import Shape


def _layers(shape: Shape, device: Device) -> tuple[tuple[float, bool], ...]:
    """Stages that may be the slowest: their share of the layers, and whether they have the output head."""
    if device.pp == 1:
        return ((1.0, True),)
    largest = parallel.largest_stage_layers(shape.layers, device.pp) / shape.layers
    last = parallel.last_stage_layers(shape.layers, device.pp) / shape.layers
    return ((largest, False), (last, True))


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
    pairs = work.causal_pairs(new, cached)
    matrices = work.prefill_matrix_flops(new, shape.layer_params)
    rows = parameters.gathered_row_bytes(new, shape.hidden, shape.other_bytes)
    compute = reading = 0.0
    for share, head in _layers(shape, device):
        other = share * pairs * shape.pair_flops + (work.head_flops(1.0, shape.head_params) if head else 0.0)
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


def decode(shape: Shape, device: Device, context: float) -> Step:
    """A decode step at mean context ``context`` on the slowest stage."""
    if device.layout is not None:
        return Step(0.0, 0.0, 0.0, whole=device.layout.step(shape, device, context))
    fixed = each = compute = 0.0
    seen = work.decode_kv_read_bytes(1.0, context, shape.kv_per_token) * parallel.state_share(shape.kv_heads, device.tp)
    rows = parameters.gathered_row_bytes(1.0, shape.hidden, shape.other_bytes)
    for share, head in _layers(shape, device):
        other = share * (context + 1.0) * shape.decode_pair_flops
        other += work.head_flops(1.0, shape.head_params) if head else 0.0
        seconds = stages.compute_seconds(
            share * work.prefill_matrix_flops(1.0, shape.layer_params), device.matrix_flops
        )
        compute = max(compute, (seconds + stages.compute_seconds(other, device.bf16_flops)) / device.tp)
        own = read_bytes(shape, shape.own_params, share, head)
        fixed = max(fixed, stages.memory_seconds(own, device.bandwidth) / device.tp)
        each = max(each, stages.memory_seconds(rows / device.tp + share * seen, device.bandwidth))
    query = stages.compute_seconds(shape.query_flops, device.bf16_flops) / device.cards
    beside = _beside(shape, device, 0.0)
    touching = _touching(shape, device)
    return Step(fixed, each, compute, beside, _beside(shape, device, 1.0) - beside + query, touching)


def _touching(shape: Shape, device: Device) -> Callable[[float], float] | None:
    """Memory seconds of the experts that a batch touches, on the slowest stage."""
    routed = shape.routed
    if routed is None:
        return None
    share = max(share for share, _ in _layers(shape, device))
    each = share * experts.weight_bytes(routed.params, shape.element_bytes, layers=routed.layers)
    seconds = stages.memory_seconds(each, device.bandwidth) / device.tp
    return lambda batch: seconds * routed.touched(batch)


def class_prefill(shape: Shape, device: Device, one: LengthClass) -> Work:
    """Prefill of one request of a class, on every stream of the unit at once."""
    return prefill(shape, device, one.input - one.cached, one.cached)


def class_decode(shape: Shape, device: Device, one: LengthClass) -> Step:
    """A decode step of requests of a class."""
    return decode(shape, device, state.mean_context(one.input, one.output))


def encode(shape: Shape, device: Device) -> Work:
    """One image through the encoder, cut over the GPUs of a stage; nothing where units hold none."""
    vision = shape.encoder
    if vision is None:
        return Work(0.0, 0.0)
    payload = parallel.activation_bytes(vision.patches, vision.hidden, shape.other_bytes)
    sums = 2.0 * vision.layers * parallel.allreduce_seconds(payload, device.tp, device.inside, device.inside_startup)
    compute = stages.compute_seconds(vision.flops, device.bf16_flops) / device.tp
    return Work(compute, stages.memory_seconds(vision.resident, device.bandwidth) / device.tp, sums)
