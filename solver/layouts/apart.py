"""Attention and feed-forward networks, or chosen experts, on different GPUs: a round trip in every layer of every step
(sections 9.3.1 and 9.3.4).
"""

from collections.abc import Callable
from dataclasses import dataclass

from solver.attention import Tokens
from solver.device import Device
from solver.formulas import experts, parallel, stages, work
from solver.layouts import sections
from solver.shapes import Shape


@dataclass(frozen=True)
class Apart:
    """Attention in ``streams`` groups with their own requests; what it hands over, to ``count`` other GPUs."""

    streams: int
    other: Device
    """One of the other GPUs."""
    count: int
    pooled: bool
    """Whether the others hold chosen experts alone, each whole (EP); else all feed-forward networks, cut (TP)."""
    slots: int
    """Experts of a layer on each of the others, replicas included, where they hold experts alone."""
    micro: int
    sends: float
    """B/s that all the GPUs with attention send or receive together, in one direction."""
    receives: float
    """B/s of all the others together."""
    startup: float
    """Seconds of each transfer."""
    shared: bool
    """Whether both directions draw on one bandwidth."""

    def prefill(self, shape: Shape, device: Device, new: float, cached: float) -> float:
        """Seconds of a prefill on every stream at once."""
        own = sections.attention_prefill(shape, device, self._kept(shape), self._sums(shape), new, cached)
        tokens = self.streams * new
        return own + self.elsewhere(shape, tokens) + 2.0 * self.way(shape, tokens)

    def step(self, shape: Shape, device: Device, context: Tokens) -> Callable[[float], float]:
        """Seconds of a decode step of so many requests."""

        def seconds(batch: float) -> float:
            part, count = sections.micro_batches(batch, self.micro)

            def own(tokens: float) -> float:
                return sections.attention_step(shape, device, self._kept(shape), self._sums(shape), tokens, context)

            other, way = self.elsewhere(shape, part), self.way(shape, part)
            both = 2.0 * way if self.shared else way
            chain = own(sections.longest_group(part, self.streams)) + other + 2.0 * way
            return sections.in_micro_batches((own(part / self.streams), other, both), chain, count)

        return seconds

    def weights(self, shape: Shape, device: Device) -> tuple[float, float]:
        """Weight bytes of one GPU with attention; it has no experts that tokens choose."""
        return sections.resident_bytes(shape, self._kept(shape)) / device.tp, 0.0

    def other_weights(self, shape: Shape) -> tuple[float, float]:
        """Weight bytes of one of the others: those of experts apart."""
        if self.pooled:
            return 0.0, sections.expert_bytes(shape, self.slots)
        return (
            shape.element_bytes * shape.ffn_params / self.count,
            shape.element_bytes * shape.expert_params / self.count,
        )

    def per_token(self, shape: Shape) -> float:
        """Bytes of a token on its way to the others, over all layers."""
        rows = shape.routed.layers * shape.routed.chosen if self.pooled and shape.routed else shape.layers
        return parallel.activation_bytes(float(rows), shape.hidden, shape.other_bytes)

    def way(self, shape: Shape, tokens: float) -> float:
        """Seconds of one direction over all layers: what one side sends, or the other receives, takes longer."""
        size, busier = tokens * self.per_token(shape), 1.0
        if self.pooled and shape.routed:
            busier = sections.busier(shape.routed, tokens, self.count, self.slots)
        messages = shape.routed.layers if self.pooled and shape.routed else shape.layers
        return max(size / self.sends, busier * size / self.receives) + messages * self.startup

    def elsewhere(self, shape: Shape, tokens: float) -> float:
        """Seconds of the others over all layers."""
        routed, other = shape.routed, self.other
        if self.pooled and routed:
            return sections.spread_experts(shape, routed, other, tokens, self.count, 1, self.slots)
        chosen = routed.layers * routed.chosen * routed.params if routed else 0.0
        flops = work.prefill_matrix_flops(tokens, shape.ffn_params + chosen)
        read = experts.weight_bytes(shape.read_params(tokens) - shape.attention_params, shape.element_bytes)
        payload = parallel.activation_bytes(tokens, shape.hidden, shape.other_bytes)
        summed = parallel.allreduce_seconds(payload, self.count, other.inside, other.inside_startup)
        return shape.layers * summed + stages.roofline_seconds(
            stages.compute_seconds(flops, other.matrix_flops) / self.count,
            stages.memory_seconds(read, other.bandwidth) / self.count,
        )

    def _kept(self, shape: Shape) -> float:
        """Parameters of all layers that stay with attention."""
        return shape.own_params if self.pooled else shape.attention_params

    def _sums(self, shape: Shape) -> float:
        return (2.0 if self.pooled else 1.0) * shape.layers
