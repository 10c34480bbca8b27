"""Sections of a model on the GPUs that run them: attention with what every token goes through, and chosen experts.

A section takes the longer of computing and reading; sections that wait for each other add up (section 9.4.1).
"""

import math
from functools import lru_cache
from itertools import accumulate

from solver.attention import Tokens
from solver.device import Device
from solver.formulas import experts, parallel, parameters, stages, work
from solver.passes import read_bytes
from solver.shapes import Routed, Shape
from solver.skew import by_index, random_skew, random_touched

SIMULATED = ((1, 64), (4, 64), (16, 64), (64, 64), (256, 64), (1024, 64))
"""Tokens of a batch, and batches, of which the skew of random choices is simulated; in between it is interpolated."""
DRAWS = 20_000_000
"""Choices that are drawn at most for one number of tokens."""


def attention_prefill(shape: Shape, device: Device, params: float, sums: float, new: float, cached: float) -> float:
    """Seconds of ``new`` tokens behind ``cached`` ones through ``params`` parameters, attention and head, on ``tp``
    GPUs; ``sums`` over them in all layers.
    """
    pairs = shape.prefill_flops(new, cached, shape.kv.layers.shares())
    return _own(shape, device, params, sums, new, pairs + work.head_flops(1.0, shape.head_params), 0.0)


def attention_step(shape: Shape, device: Device, params: float, sums: float, tokens: float, context: Tokens) -> float:
    """The same of a decode step of ``tokens`` requests at mean context ``context``."""
    shares = shape.kv.layers.shares()
    pairs = shape.decode_flops(context, shares) + shape.query_flops
    seen = shape.kv.read(tokens, context, shares, device.tp)
    return _own(shape, device, params, sums, tokens, tokens * pairs + work.head_flops(tokens, shape.head_params), seen)


def _own(
    shape: Shape, device: Device, params: float, sums: float, tokens: float, other_flops: float, state: float
) -> float:
    matrices = stages.compute_seconds(work.prefill_matrix_flops(tokens, params), device.matrix_flops)
    compute = (matrices + stages.compute_seconds(other_flops, device.bf16_flops)) / device.tp
    rows = parameters.gathered_row_bytes(tokens, shape.hidden, shape.other_bytes)
    read = (read_bytes(shape, params) + rows) / device.tp + state
    payload = parallel.activation_bytes(tokens, shape.hidden, shape.other_bytes)
    summed = sums * parallel.allreduce_seconds(payload, device.tp, device.inside, device.inside_startup)
    return stages.roofline_seconds(compute, stages.memory_seconds(read, device.bandwidth)) + summed


def resident_bytes(shape: Shape, params: float) -> float:
    """Bytes of the model with ``params`` layer parameters, embeddings and head included."""
    return parameters.resident_weight_bytes(
        params, shape.head_params, shape.norm_params, shape.element_bytes, shape.other_bytes, shape.tied
    )


def expert_bytes(shape: Shape, count: float) -> float:
    """Bytes of ``count`` experts of each layer that has some."""
    routed = shape.routed
    if routed is None:
        return 0.0
    return experts.weight_bytes(routed.params, shape.element_bytes, count, routed.layers)


def spread_experts(
    shape: Shape, routed: Routed, device: Device, tokens: float, cards: int, cut: int, slots: int
) -> float:
    """Seconds of the chosen experts of all layers on the busiest of ``cards`` places, each of ``cut`` GPUs.

    Each place holds ``slots`` experts of a layer; the busiest has the most rows, and reads what its share touches.
    """
    rows = busiest_rows(routed, tokens, cards, slots)
    touched = busiest_touched(routed, tokens, cards, slots)
    flops = routed.layers * experts.expert_flops(rows, routed.params)
    compute = stages.compute_seconds(flops, device.matrix_flops) / cut
    reading = stages.memory_seconds(expert_bytes(shape, touched), device.bandwidth) / cut
    return stages.roofline_seconds(compute, reading)


def busiest_rows(routed: Routed, tokens: float, cards: int, slots: int) -> float:
    """Rows of the busiest of ``cards`` places: what popular experts make of the mean, and chance on top."""
    return experts.mean_rows(tokens, routed.chosen, cards) * busier(routed, tokens, cards, slots)


def busier(routed: Routed, tokens: float, cards: int, slots: int) -> float:
    """Rows of the busiest place over the mean; every token chooses whatever the others choose."""
    return routed.skew(cards, slots) + excess(routed.experts, routed.chosen, cards, tokens)


def busiest_touched(routed: Routed, tokens: float, cards: int, slots: int) -> float:
    """Experts that are read on the place that reads most, of the ``slots`` that it holds."""
    mean = slots * routed.touched(tokens) / routed.experts
    if cards == 1 or tokens <= 0.0:
        return mean
    most = _between(_touched(routed.experts, routed.chosen, cards), min(tokens, float(SIMULATED[-1][0])))
    return min(float(slots), max(mean, most * min(tokens, 1.0)))


def excess(count: int, chosen: int, cards: int, tokens: float) -> float:
    """Rows of the busiest place over the mean, less 1: simulated, and falling with the root of the tokens beyond."""
    if cards == 1 or tokens <= 0.0:
        return 0.0
    known = _simulated(count, chosen, cards)
    sizes = [size for size, _ in SIMULATED]
    if tokens >= sizes[-1]:
        return known[-1] * math.sqrt(sizes[-1] / tokens)
    return _between(known, tokens)


def _between(known: tuple[float, ...], tokens: float) -> float:
    """What is known of some numbers of tokens, between them on a line of the logarithms."""
    sizes = [size for size, _ in SIMULATED]
    place = min(max(0, sum(size <= tokens for size in sizes) - 1), len(sizes) - 2)
    low, high = sizes[place], sizes[place + 1]
    between = math.log(max(tokens, low) / low) / math.log(high / low)
    return math.exp((1.0 - between) * math.log(known[place]) + between * math.log(known[place + 1]))


@lru_cache(maxsize=256)
def _simulated(count: int, chosen: int, cards: int) -> tuple[float, ...]:
    placement = by_index(count, cards)
    floor = 1e-6  # so that its logarithm exists
    return tuple(
        max(floor, random_skew(size, chosen, placement, batches, seed=0).mean - 1.0)
        for size, batches in _batches(count, chosen)
    )


def _batches(count: int, chosen: int) -> list[tuple[int, int]]:
    """Tokens of a batch, and how many are simulated: fewer where many are chosen of very many experts."""
    drawn = chosen if chosen * chosen <= count else count
    return [(size, max(1, min(batches, DRAWS // (size * drawn)))) for size, batches in SIMULATED]


@lru_cache(maxsize=256)
def _touched(count: int, chosen: int, cards: int) -> tuple[float, ...]:
    """Experts touched on the place with most of them."""
    placement = by_index(count, cards)
    found = [random_touched(size, chosen, placement, batches, seed=0).mean for size, batches in _batches(count, chosen)]
    return tuple(accumulate(found, max))


def micro_batches(batch: float, most: int) -> tuple[float, float]:
    """Requests of a micro-batch, one at least, and how many there are, at most ``most``."""
    part = max(batch / most, min(batch, 1.0))
    return part, batch / part if part else 1.0


def longest_group(part: float, streams: int) -> float:
    """Requests of a micro-batch on the group of GPUs that has most of them: one at least."""
    return max(part / streams, min(part, 1.0))


def in_micro_batches(busy: tuple[float, ...], chain: float, count: float) -> float:
    """Seconds of a batch in ``count`` micro-batches, each of which takes ``chain`` seconds from part to part.

    ``busy`` are the seconds of one micro-batch on each of the parts. Steps follow each other without a pause, so the
    slowest part sets the pace, or the chain where there are too few micro-batches to fill it (section 9.3.4).
    """
    return chain if count <= 1.0 else max(count * max(busy), chain)
