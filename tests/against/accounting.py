"""Unit-seconds and memory of one-GPU units, written again from the described hardware and models alone."""

import math
from dataclasses import dataclass

from models.hardware import Group
from models.instance import Instance
from models.llm import Llm
from models.workload import Workload
from tests.against import contexts
from tests.against.contexts import BYTES

RESOURCES = {"prefill": 1, "decode": 2, "replicas": 1, "chunked": 2}
"""Kind of unit -> resources that it can fill independently."""


@dataclass(frozen=True)
class Unit:
    """One kind of unit on one group for one model, with what a request takes of it."""

    kind: str
    group: str
    model: str
    seconds: dict[str, tuple[float, ...]]
    """Workload -> unit-seconds of each resource; only workloads that fit."""

    @property
    def stage(self) -> str:
        return self.kind if self.kind in ("prefill", "decode") else "both"

    @property
    def resources(self) -> int:
        return RESOURCES[self.kind]


def payload(instance: Instance, workload: Workload) -> float:
    """State of the whole input, handed from prefill to decode."""
    return sum(one.share * contexts.state(instance.models[workload.model], one.input) for one in workload.classes)


@dataclass(frozen=True)
class Weights:
    """Parameters and weight bytes of a dense model."""

    layer: float
    head: float
    kept: float
    read: float

    @staticmethod
    def of(llm: Llm) -> "Weights":
        h, f, n = llm.hidden_size, llm.intermediate_size, llm.num_hidden_layers
        layer = contexts.attention_params(llm) + n * 3 * h * f
        head = float(h * llm.vocab_size)
        norms = n * (2 * h + (2 * llm.head_dim if llm.qk_norm else 0)) + h
        tables = 1 if llm.tie_word_embeddings else 2
        matrices = BYTES[llm.weights] * layer
        return Weights(layer, head, matrices + 2 * (tables * head + norms), matrices + 2 * (head + norms))


@dataclass(frozen=True)
class Times:
    """Seconds of a request: prefill on compute and memory; a decode call likewise, weights apart."""

    prefill_compute: float
    prefill_memory: float
    call_compute: float
    call_memory: float
    weights: float

    @staticmethod
    def of(instance: Instance, group: Group, workload: Workload) -> "Times":
        llm = instance.models[workload.model]
        weights = Weights.of(llm)
        share = group.efficiency or instance.hardware.efficiency
        peaks = group.accelerator.compute
        other = peaks["bf16"] * share.compute
        matrix = peaks.get(llm.weights, peaks["bf16"]) * share.compute
        memory = group.accelerator.bandwidth * share.bandwidth
        layers = contexts.layers_of(llm)
        one = workload.classes[0]  # here all requests of a workload are of one length
        cached = one.cached
        new = one.input - cached
        attention = contexts.work(llm, layers, contexts.pairs(llm, layers, new, cached), new)
        seen = contexts.visible(llm, layers, one.input, one.output)
        row = 2.0 * llm.hidden_size
        return Times(
            prefill_compute=2.0 * new * weights.layer / matrix + (attention + 2.0 * weights.head) / other,
            prefill_memory=(weights.read + row * new) / memory,
            call_compute=2.0 * weights.layer / matrix
            + (contexts.work(llm, layers, seen, 1) + 2.0 * weights.head) / other,
            call_memory=(row + contexts.moves(llm, layers, seen)) / memory,
            weights=weights.read / memory,
        )


def buffer(instance: Instance, kind: str, workload: Workload) -> float:
    """Bytes that a unit keeps free for one request beside its batch."""
    states = {"prefill": 2, "decode": 1, "replicas": 0, "chunked": 1}[kind]
    return states * contexts.state(instance.models[workload.model], workload.longest_input)


def batch_of(instance: Instance, group: Group, kind: str, workload: Workload, held: float) -> int:
    """Requests that share a decode step beside ``held`` bytes of buffer, 0 when the unit cannot serve the workload.

    Larger batches never take more unit-seconds, so one that may be chosen is the largest.
    """
    llm = instance.models[workload.model]
    room = group.accelerator.memory * group.usable - Weights.of(llm).kept
    if kind == "prefill":
        return 1 if room >= held else 0
    most = max(0, math.floor((room - held) / contexts.state(llm, workload.longest_total - 1)))
    if workload.output == 1:
        return min(1, most)
    if isinstance(workload.batch, int):
        return workload.batch if most >= workload.batch else 0
    return most


def sharing(instance: Instance, group: Group, kind: str, served: dict[str, Workload]) -> list[dict[str, int]]:
    """Batches of the workloads that one unit serves together, set by set.

    A unit has one buffer, for the largest of its requests. Where that leaves no room for another workload, the workload
    with the largest buffer gets units of its own.
    """
    alone = {n: w for n, w in served.items() if batch_of(instance, group, kind, w, buffer(instance, kind, w))}
    sets = []
    while alone:
        some = dict(alone)
        while True:
            held = max(buffer(instance, kind, w) for w in some.values())
            batches = {n: batch_of(instance, group, kind, w, held) for n, w in some.items()}
            if all(batches.values()):
                break
            some.pop(max(some, key=lambda n: buffer(instance, kind, some[n])))
        sets.append(batches)
        alone = {n: w for n, w in alone.items() if n not in batches}
    return sets


def seconds(instance: Instance, group: Group, kind: str, workload: Workload, batch: int) -> tuple[float, ...]:
    """Unit-seconds that a request takes of each resource of a unit."""
    times = Times.of(instance, group, workload)
    calls = workload.mean_output - 1
    compute = calls * times.call_compute
    memory = calls * (times.weights / batch + times.call_memory)
    prefill = max(times.prefill_compute, times.prefill_memory)
    if kind == "prefill":
        return (prefill,)
    if kind == "decode":
        return (compute, memory)
    if kind == "chunked":
        return (times.prefill_compute + compute, times.prefill_memory + memory)
    return (prefill + max(compute, memory),)


def units(instance: Instance, kinds: list[str]) -> list[Unit]:
    """Every unit that can be built, group by group."""
    built = []
    for name, group in instance.hardware.groups.items():
        for model in dict.fromkeys(w.model for w in instance.workloads.values()):
            for kind in kinds:
                served = {
                    label: workload
                    for label, workload in instance.workloads.items()
                    if workload.model == model
                    and not (kind == "decode" and workload.output == 1)
                    and name not in workload.deny
                    and (not workload.allow or name in workload.allow)
                }
                for batches in sharing(instance, group, kind, served):
                    takes = {n: seconds(instance, group, kind, served[n], batch) for n, batch in batches.items()}
                    built.append(Unit(kind, name, model, takes))
    return built
