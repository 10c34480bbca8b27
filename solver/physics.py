"""From described hardware and models to stage times: the formulas applied to one request, on one unit.

A unit is cut over ``tp`` GPUs of a server and ``pp`` stages; its times are those of its slowest stage. A stage takes
the longer of computing and reading, and beside it the sums over its GPUs and the hop to the next stage.
"""

from dataclasses import dataclass

from models.hardware import Group
from models.instance import Instance
from models.workload import LengthClass, Workload
from solver.formulas import memory, parallel, parameters, stages, state, work
from solver.shapes import BYTES, Shape, shape_of, state_bytes_per_token


@dataclass(frozen=True)
class Device:
    """What one GPU of a unit gives, and how the unit is cut: bytes, effective FLOP/s and B/s."""

    memory: float
    """Usable, of one GPU."""
    matrix_flops: float
    """For layer matrices, in the precision of the weights where the GPU has it."""
    bf16_flops: float
    """For attention and the output head."""
    bandwidth: float
    tp: int = 1
    pp: int = 1
    inside: float = float("inf")
    """Payload bandwidth of one GPU inside the server."""
    inside_startup: float = 0.0
    hop: float = float("inf")
    """Payload bandwidth from one stage to the next."""
    hop_startup: float = 0.0

    @property
    def cards(self) -> int:
        """GPUs of the unit."""
        return self.tp * self.pp


@dataclass(frozen=True)
class Work:
    """Compute and memory seconds of a piece of work, and seconds beside both."""

    compute: float
    memory: float
    beside: float = 0.0

    @property
    def seconds(self) -> float:
        """Roofline time."""
        return stages.roofline_seconds(self.compute, self.memory) + self.beside


@dataclass(frozen=True)
class Step:
    """A decode step of b requests on one stage: ``beside + b x (own)``; weights are read once for all of them."""

    fixed: float
    """Memory seconds whatever the batch."""
    memory: float
    """Memory seconds of each request."""
    compute: float
    """Compute seconds of each request."""
    beside: float = 0.0
    """Seconds beside both, whatever the batch."""
    beside_each: float = 0.0
    """The same, of each request."""

    def at(self, batch: float) -> Work:
        """The step at ``batch`` requests."""
        return Work(batch * self.compute, self.fixed + batch * self.memory, self.beside + batch * self.beside_each)


def device_of(
    instance: Instance, group: Group, precision: str, tp: int = 1, pp: int = 1, hop: tuple[float, float] | None = None
) -> Device:
    """One GPU of ``group`` at the efficiency that applies to it; ``hop`` is bandwidth and startup between stages."""
    card = group.accelerator
    efficiency = group.efficiency or instance.hardware.efficiency
    bf16 = card.compute["bf16"]
    wired = group.scale_up
    return Device(
        memory=memory.usable_bytes(card.memory, group.usable),
        matrix_flops=stages.effective_peak(card.compute.get(precision, bf16), efficiency.compute),
        bf16_flops=stages.effective_peak(bf16, efficiency.compute),
        bandwidth=stages.effective_peak(card.bandwidth, efficiency.bandwidth),
        tp=tp,
        pp=pp,
        inside=wired.payload_bandwidth if wired and tp > 1 else float("inf"),
        inside_startup=wired.startup if wired and tp > 1 else 0.0,
        hop=hop[0] if hop and pp > 1 else float("inf"),
        hop_startup=hop[1] if hop and pp > 1 else 0.0,
    )


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
    pairs = work.causal_pairs(new, cached)
    matrices = work.prefill_matrix_flops(new, shape.layer_params)
    rows = parameters.gathered_row_bytes(new, shape.hidden, shape.other_bytes)
    compute = reading = 0.0
    for share, head in _layers(shape, device):
        other = share * pairs * shape.pair_flops + (work.head_flops(1.0, shape.head_params) if head else 0.0)
        seconds = stages.compute_seconds(share * matrices, device.matrix_flops)
        compute = max(compute, (seconds + stages.compute_seconds(other, device.bf16_flops)) / device.tp)
        read = _weights(shape, share, head) + (0.0 if device.pp > 1 and head else rows)
        reading = max(reading, stages.memory_seconds(read, device.bandwidth) / device.tp)
    return Work(compute, reading, _beside(shape, device, new))


def _weights(shape: Shape, share: float, head: bool) -> float:
    """Weight bytes that a pass over a stage reads."""
    head_params = shape.head_params if head else 0.0
    return parameters.read_weight_bytes(
        share * shape.kept_params, head_params, share * shape.norm_params, shape.element_bytes, shape.other_bytes
    )


def decode(shape: Shape, device: Device, context: float) -> Step:
    """A decode step at mean context ``context`` on the slowest stage."""
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
        fixed = max(fixed, stages.memory_seconds(_weights(shape, share, head), device.bandwidth) / device.tp)
        each = max(each, stages.memory_seconds(rows / device.tp + share * seen, device.bandwidth))
    query = stages.compute_seconds(shape.query_flops, device.bf16_flops) / device.cards
    beside = _beside(shape, device, 0.0)
    return Step(fixed, each, compute, beside, _beside(shape, device, 1.0) - beside + query)


def workload_prefill(shape: Shape, device: Device, workload: Workload) -> Work:
    """Prefill of one request of ``workload``, mean over its classes."""
    parts = [(one.share, class_prefill(shape, device, one)) for one in workload.classes]
    return Work(
        sum(share * part.compute for share, part in parts),
        sum(share * part.memory for share, part in parts),
        sum(share * part.beside for share, part in parts),
    )


def prefill_seconds(shape: Shape, device: Device, workload: Workload) -> float:
    """Seconds that a prefill keeps its slowest stage busy, mean over the classes."""
    return sum(one.share * class_prefill(shape, device, one).seconds for one in workload.classes)


def class_prefill(shape: Shape, device: Device, one: LengthClass) -> Work:
    """Prefill of one request of a class."""
    return prefill(shape, device, one.input - one.cached, one.cached)


def class_decode(shape: Shape, device: Device, one: LengthClass) -> Step:
    """A decode step of requests of a class."""
    return decode(shape, device, state.mean_context(one.input, one.output))


def workload_decode(shape: Shape, device: Device, workload: Workload) -> Step:
    """A decode step of requests of ``workload``, each class as often as it has calls."""
    calls = mean_calls(workload)
    parts = [
        (one.share * state.decode_calls(one.output) / calls if calls else one.share, class_decode(shape, device, one))
        for one in workload.classes
    ]
    return Step(
        parts[0][1].fixed,
        sum(share * part.memory for share, part in parts),
        sum(share * part.compute for share, part in parts),
        parts[0][1].beside,
        sum(share * part.beside_each for share, part in parts),
    )


def mean_calls(workload: Workload) -> float:
    """Decode calls of a request, mean over the classes."""
    return sum(one.share * state.decode_calls(one.output) for one in workload.classes)


def first_token_seconds(shape: Shape, device: Device, workload: Workload) -> float:
    """Prefill of the slowest class through all stages."""
    return device.pp * max(class_prefill(shape, device, one).seconds for one in workload.classes)


def handoff_sizes(shape: Shape, workload: Workload) -> tuple[tuple[float, float], ...]:
    """Share of the requests, and the bytes that each hands from prefill to decode: the state of its whole input, cached
    part included. A request of one output token hands nothing over.
    """
    return tuple(
        (one.share, state.state_bytes(one.input, shape.state_per_token)) for one in workload.classes if one.output > 1
    )


def handoff_payload(shape: Shape, workload: Workload) -> float:
    """Bytes that a request hands from prefill to decode, mean over all classes."""
    return sum(share * size for share, size in handoff_sizes(shape, workload))


def longest_payload(shape: Shape, workload: Workload) -> float:
    """The same for the longest input that decodes."""
    return state.state_bytes(max(one.input for one in workload.classes if one.output > 1), shape.state_per_token)


def state_on_card(shape: Shape, device: Device) -> float:
    """Bytes of state of one token on one GPU of the largest stage."""
    layers = parallel.largest_stage_layers(shape.layers, device.pp) / shape.layers
    return shape.state_per_token * layers * parallel.state_share(shape.kv_heads, device.tp)


def weights_on_card(shape: Shape, device: Device) -> float:
    """Bytes of weights on one GPU of the fullest stage."""
    if device.pp == 1:
        return shape.resident / device.tp
    table = shape.other_bytes * shape.head_params
    first = parallel.largest_stage_layers(shape.layers, device.pp) / shape.layers
    last = parallel.last_stage_layers(shape.layers, device.pp) / shape.layers
    return (max(_weights(shape, first, False), _weights(shape, last, False)) + table) / device.tp


def largest_state(shape: Shape, device: Device, workload: Workload) -> float:
    """Bytes on one GPU of the longest request admitted, its output complete."""
    return state.state_bytes(workload.longest_total - 1.0, state_on_card(shape, device))


def held_state(shape: Shape, device: Device, workload: Workload) -> float:
    """Bytes on one GPU of a request that is being decoded, as if its output were complete.

    Classes count by how long they stay. Where the instance states the longest request, every request counts as that.
    """
    calls = mean_calls(workload)
    if workload.longest or not calls:
        return largest_state(shape, device, workload)
    tokens = sum(
        one.share * state.decode_calls(one.output) * state.covered_tokens(one.input, one.output)
        for one in workload.classes
    )
    return state.state_bytes(tokens / calls, state_on_card(shape, device))


def input_state(shape: Shape, device: Device, workload: Workload) -> float:
    """Bytes on one GPU of the longest input admitted."""
    return state.state_bytes(workload.longest_input, state_on_card(shape, device))


__all__ = ["BYTES", "Device", "Shape", "Step", "Work", "shape_of", "state_bytes_per_token"]
