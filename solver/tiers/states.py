"""What finding parts of a prompt saves on a unit: unit-seconds of a request behind cached tokens, and its first token.

State k of a request: the first k parts of its prompt were found. Attention over the cached tokens is still paid.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from models.instance import Instance
from models.tiers import Tier
from models.workload import Length, LengthClass, Workload
from solver import physics, units
from solver.cut import Cut
from solver.formulas import prefetch
from solver.physics import Device, Shape
from solver.tiers.parts import cached_tokens
from solver.units import HYBRID, Kind


def behind(workload: Workload, tokens: int) -> Workload:
    """The workload with so many more cached tokens in every class; at least one input token is computed."""
    return _behind(workload.classes, tokens, workload.images, workload.image_hits)


@lru_cache(maxsize=1024)
def _behind(classes: tuple[LengthClass, ...], tokens: int, images: float, hits: float) -> Workload:
    lengths = [
        Length.model_construct(
            share=one.share,
            input=one.input,
            output=one.output,
            cached=max(one.cached, min(one.cached + tokens, one.input - 1)),
        )
        for one in classes
    ]
    return Workload.model_construct(lengths=lengths, longest=None, model="", rate=1.0, images=images, image_hits=hits)


def before(kind: Kind, shape: Shape, gpu: Device, workload: Workload) -> tuple[float, ...]:
    """Seconds of prefill by resource; of one where they do not overlap, the same for each."""
    cost = units.costs(shape, gpu, workload)
    if kind.overlapped and gpu.layout is None:
        beside = cost.prefill.beside
        return cost.prefill.compute + beside, cost.prefill.memory + beside
    return cost.prefill_seconds, cost.prefill_seconds


def hits(
    kind: Kind,
    shape: Shape,
    gpu: Device,
    workloads: Mapping[str, Workload],
    demand: Mapping[str, tuple[float, ...]],
    scale: tuple[float, ...],
) -> dict[str, tuple[tuple[float, ...], ...]]:
    """By workload and state, from 1 on: unit-seconds of each resource.

    ``scale`` is what a second of prefill takes of each resource.
    """
    if kind.stage not in ("prefill", "both") or kind == HYBRID:
        return {}
    found = {}
    for name, need in demand.items():
        workload = workloads[name]
        whole, states = before(kind, shape, gpu, workload), []
        for tokens in cached_tokens(workload):
            less = before(kind, shape, gpu, behind(workload, tokens))
            saved = [max(0.0, a - b) for a, b in zip(whole, less, strict=True)]
            each = tuple(saved[min(k, 1)] * scale[k] for k in range(len(need)))
            states.append(tuple(max(0.0, n - s) for n, s in zip(need, each, strict=True)))
        if states:
            found[name] = tuple(states)
    return found


def room(shape: Shape, cut: Cut, workloads: Iterable[Workload], free: float, early: int = 0) -> float:
    """Bytes of whole states that a unit may keep in ``free`` bytes of each of its GPUs, beside all system prompts, and
    ``early`` layers of the largest state that is read ahead.
    """
    device, one = cut.device, 8192.0
    on_card = physics.state_on_card(shape, device, shape.kept.layers.kept(one))
    whole = max(0.0, free) * shape.kept.at(one) / on_card if on_card else 0.0
    prompts = ahead = 0.0
    for workload in workloads:
        tokens = 0
        for part in workload.reuse or []:
            size = shape.kept.at(tokens + part.tokens_per_hit) - shape.kept.at(tokens)
            prompts += part.distinct * size if part.kind == "system-prompt" else 0.0
            tokens += part.tokens_per_hit
        ahead = max(ahead, min(early, shape.layers) / shape.layers * shape.kept.at(tokens) if tokens else 0.0)
    return device.streams * max(0.0, whole - prompts - ahead)


def early_layers(instance: Instance, group: str) -> int:
    """Layers that some tier of a group has read before a request begins."""
    return max((tier.early_layers for tier in instance.tiers.values() if tier.on(group)), default=0)


def first_seconds(
    shape: Shape, gpu: Device, workload: Workload, tokens: int, read: float, said: Tier, early: int
) -> float:
    """First token of a request that reads state for ``read`` seconds and computes the rest, handoff apart."""
    compute = units.costs(shape, gpu, behind(workload, tokens)).first_token
    if said.fetch == "prefetch":
        return max(0.0, read - said.wait) + compute
    if said.fetch == "layer-wise":
        layers = shape.layers
        return prefetch.layerwise_seconds(layers, read / layers, compute / layers, min(early, layers))
    return prefetch.read_then_compute_seconds(read, compute)


Saved = tuple[float, float, float]
"""Seconds of prefill: as a whole, of computing, of reading."""


def saved(shape: Shape, gpu: Device, workload: Workload) -> list[Saved]:
    """What a request does not take when it finds the first part of its prompt, the first two, and so on."""
    whole, found = _prefill(shape, gpu, workload), []
    for tokens in cached_tokens(workload):
        less = _prefill(shape, gpu, behind(workload, tokens))
        found.append((whole[0] - less[0], whole[1] - less[1], whole[2] - less[2]))
    return found


def _prefill(shape: Shape, gpu: Device, workload: Workload) -> Saved:
    cost = units.costs(shape, gpu, workload)
    return cost.prefill_seconds, cost.prefill.compute + cost.prefill.beside, cost.prefill.memory + cost.prefill.beside
