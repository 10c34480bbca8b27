"""Experts spread over the GPUs of a unit (EP): attention on each group of GPUs with its own requests (DP), or the same
attention on all of them (TP x EP); dispatch and combine between them in every layer (sections 9.1.1 and 9.4.1).
"""

from collections.abc import Callable
from dataclasses import dataclass

from solver.attention import Tokens
from solver.device import Device
from solver.formulas import parallel
from solver.layouts import sections
from solver.shapes import Routed, Shape


@dataclass(frozen=True)
class Spread:
    """Experts over ``cards`` places of ``cut`` GPUs each, attention in ``streams`` groups."""

    streams: int
    cards: int
    cut: int
    """GPUs that share each expert's matrices: 1 unless attention is the same everywhere."""
    slots: int
    """Experts of a layer in each place, replicas included."""
    micro: int
    near: float
    """B/s that a GPU sends to others of its server, in one direction."""
    far: float
    """B/s that a GPU sends to other servers."""
    outside: float
    """Share of the rows that leave their server."""
    inside: float
    """Share that leaves its GPU and stays in the server."""
    startup: float
    """Seconds of each exchange."""

    def prefill(self, shape: Shape, device: Device, new: float, cached: float) -> float:
        """Seconds of a prefill on every stream at once."""
        sums = 2.0 * shape.layers
        own = sections.attention_prefill(shape, device, shape.own_params, sums, new, cached)
        return own + self._experts(shape, device, self.streams * new) + 2.0 * self._exchange(shape, self.streams * new)

    def step(self, shape: Shape, device: Device, context: Tokens) -> Callable[[float], float]:
        """Seconds of a decode step of so many requests."""
        sums = 2.0 * shape.layers

        def seconds(batch: float) -> float:
            part, count = sections.micro_batches(batch, self.micro)

            def own(tokens: float) -> float:
                return sections.attention_step(shape, device, shape.own_params, sums, tokens, context)

            rest, way = self._experts(shape, device, part), self._exchange(shape, part)
            chain = own(sections.longest_group(part, self.streams)) + rest + 2.0 * way
            # each GPU sends inputs and results on the same port, so that the way is busy with both
            return sections.in_micro_batches((own(part / self.streams) + rest, 2.0 * way), chain, count)

        return seconds

    def weights(self, shape: Shape, device: Device) -> tuple[float, float]:
        """Weight bytes of one GPU: those of experts that tokens choose apart."""
        own = sections.resident_bytes(shape, shape.own_params)
        return own / device.tp, sections.expert_bytes(shape, self.slots) / self.cut

    def _experts(self, shape: Shape, device: Device, tokens: float) -> float:
        return sections.spread_experts(shape, _routed(shape), device, tokens, self.cards, self.cut, self.slots)

    def _exchange(self, shape: Shape, tokens: float) -> float:
        """Seconds of one direction over all layers: what the busiest GPU receives, or sends back, on its ports."""
        routed = _routed(shape)
        if self.cut > 1:  # all have the inputs; results are summed, there and back in one
            payload = parallel.activation_bytes(tokens, shape.hidden, shape.other_bytes)
            total = parallel.allreduce_seconds(payload, self.cards * self.cut, self.near, self.startup)
            return routed.layers * total / 2.0
        rows = sections.busiest_rows(routed, tokens, self.cards, self.slots)
        size = parallel.activation_bytes(rows, shape.hidden, shape.other_bytes)
        near = size * self.inside / self.near if self.inside else 0.0
        far = size * self.outside / self.far if self.outside else 0.0
        return routed.layers * (max(near, far) + self.startup)


def _routed(shape: Shape) -> Routed:
    if shape.routed is None:
        raise ValueError("a dense model has no experts to spread")
    return shape.routed
