"""Experts in host memory beside those that stay on the GPU: computed by the CPU, or moved to the GPU and computed,
whichever is quicker for the rows that reach them (sections 9.3.2 and 9.3.3).
"""

from collections.abc import Callable
from dataclasses import dataclass

from solver.attention import Tokens
from solver.device import Device
from solver.expert_work import Engine, Expert
from solver.formulas import experts
from solver.layouts import sections
from solver.offload import Offload
from solver.shapes import Shape


@dataclass(frozen=True)
class Hosted:
    """``resident`` experts of each layer on the GPUs of the unit; the others at its part of the host."""

    resident: int
    engine: Engine
    """What the unit has of the CPUs."""
    link: float
    """B/s between host memory and the GPUs of the unit, in one direction."""
    startup: float
    width: int
    """Of an expert."""

    @property
    def streams(self) -> int:
        """Groups of GPUs that hold requests of their own."""
        return 1

    def prefill(self, shape: Shape, device: Device, new: float, cached: float) -> float:
        """Seconds of a prefill."""
        own = sections.attention_prefill(shape, device, shape.own_params, 2.0 * shape.layers, new, cached)
        return own + self.experts(shape, device, new)

    def step(self, shape: Shape, device: Device, context: Tokens) -> Callable[[float], float]:
        """Seconds of a decode step of so many requests."""

        def seconds(batch: float) -> float:
            own = sections.attention_step(shape, device, shape.own_params, 2.0 * shape.layers, batch, context)
            return own + self.experts(shape, device, batch)

        return seconds

    def weights(self, shape: Shape, device: Device) -> tuple[float, float]:
        """Weight bytes of one GPU: those of experts that tokens choose apart."""
        own = sections.resident_bytes(shape, shape.own_params)
        return own / device.tp, sections.expert_bytes(shape, self.resident) / device.tp

    def experts(self, shape: Shape, device: Device, tokens: float) -> float:
        """Seconds of all layers: the experts on the GPU and those at the host work side by side, one after the other
        on each side, each with the mean rows of an expert that is touched.
        """
        routed = shape.routed
        if routed is None or tokens <= 0.0:
            return 0.0
        touched = routed.touched(tokens)
        rows = experts.dispatches(tokens, routed.chosen) / touched
        kept = touched * self.resident / routed.experts
        gpu = Engine(device.matrix_flops * device.tp, device.bandwidth * device.tp)
        expert = Expert(shape.hidden, self.width, shape.element_bytes, shape.other_bytes)
        both = Offload(expert, self.engine, gpu, self.link, self.startup)
        on_gpu, moved = gpu.seconds(expert.flops(rows), expert.weights), both.on_gpu(rows) < both.on_cpu(rows)
        here = touched * on_gpu if moved else kept * on_gpu  # what is moved is computed here too
        away = (touched - kept) * min(both.on_cpu(rows), both.on_gpu(rows))
        return routed.layers * max(here, away)
