"""From described models and workloads to seconds and bytes of one request, on one unit."""

from models.workload import Workload
from solver.attention import Tokens, mean
from solver.device import Device, Step, Work, device_of
from solver.formulas import parallel, state
from solver.passes import class_decode, class_prefill, decode, read_bytes, stages_of
from solver.shapes import BYTES, Shape, shape_of


def workload_prefill(shape: Shape, device: Device, workload: Workload) -> Work:
    """Prefill of one request of ``workload``, mean over its classes."""
    parts = [(one.share, class_prefill(shape, device, one)) for one in workload.classes]
    return Work(
        sum(share * part.compute for share, part in parts),
        sum(share * part.memory for share, part in parts),
        sum(share * part.beside for share, part in parts),
    )


def prefill_seconds(shape: Shape, device: Device, workload: Workload) -> float:
    """Unit-seconds of a prefill: those of its slowest stage, of which every stream has its part; mean over classes."""
    return sum(one.share * class_prefill(shape, device, one).seconds for one in workload.classes) / device.streams


def workload_decode(shape: Shape, device: Device, workload: Workload) -> Step:
    """A decode step of requests of ``workload``, each class as often as it has calls."""
    calls = mean_calls(workload)
    if device.layout is not None:  # linear in the context, whatever the batch
        weights = [one.share * (state.decode_calls(one.output) if calls else 1.0) for one in workload.classes]
        contexts = [shape.kv.layers.context(one.input, one.output) for one in workload.classes]
        return decode(shape, device, mean(list(zip(weights, contexts, strict=True))))
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
        parts[0][1].touching,
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
    return tuple((one.share, shape.kept.at(one.input)) for one in workload.classes if one.output > 1)


def handoff_payload(shape: Shape, workload: Workload) -> float:
    """Bytes that a request hands from prefill to decode, mean over all classes."""
    return sum(share * size for share, size in handoff_sizes(shape, workload))


def longest_payload(shape: Shape, workload: Workload) -> float:
    """The same for the longest input that decodes."""
    return shape.kept.at(max(one.input for one in workload.classes if one.output > 1))


def state_on_card(shape: Shape, device: Device, tokens: Tokens) -> float:
    """Bytes on one GPU of the fullest stage of a request with state of so many tokens."""
    return max(shape.kept.held(tokens, stage.kept(shape), device.tp) for stage in stages_of(shape, device))


def weights_on_card(shape: Shape, device: Device) -> float:
    """Bytes of weights on one GPU of the fullest stage."""
    return sum(_weights(shape, device))


def experts_on_card(shape: Shape, device: Device) -> float:
    """Of those, the bytes of experts that tokens choose."""
    return _weights(shape, device)[1]


def _weights(shape: Shape, device: Device) -> tuple[float, float]:
    """Bytes on one GPU of the fullest stage: of weights that every token goes through, and of experts."""
    if device.layout is not None:
        return device.layout.weights(shape, device)
    routed = shape.element_bytes * shape.expert_params
    if device.pp == 1:
        return (shape.resident - routed) / device.tp, routed / device.tp
    table = shape.other_bytes * shape.head_params
    first = parallel.largest_stage_layers(shape.layers, device.pp) / shape.layers
    last = parallel.last_stage_layers(shape.layers, device.pp) / shape.layers
    kept = shape.kept_params
    whole = max(read_bytes(shape, kept, first, False), read_bytes(shape, kept, last, False)) + table
    return (whole - first * routed) / device.tp, first * routed / device.tp


def largest_state(shape: Shape, device: Device, workload: Workload) -> float:
    """Bytes on one GPU of the longest request admitted, its output complete."""
    return state_on_card(shape, device, shape.kept.layers.kept(workload.longest_total - 1.0))


def held_state(shape: Shape, device: Device, workload: Workload) -> float:
    """Bytes on one GPU of a request that is being decoded, as if its output were complete.

    Classes count by how long they stay. Where the instance states the longest request, every request counts as that.
    """
    if workload.longest or not mean_calls(workload):
        return largest_state(shape, device, workload)
    kept = [
        (
            one.share * state.decode_calls(one.output),
            shape.kept.layers.kept(state.covered_tokens(one.input, one.output)),
        )
        for one in workload.classes
    ]
    return state_on_card(shape, device, mean(kept))


def input_state(shape: Shape, device: Device, workload: Workload) -> float:
    """Bytes on one GPU of the longest input admitted."""
    return state_on_card(shape, device, shape.kept.layers.kept(workload.longest_input))


__all__ = [
    "BYTES",
    "Device",
    "Shape",
    "Step",
    "Work",
    "class_decode",
    "class_prefill",
    "device_of",
    "shape_of",
]
