"""What a unit is made of, and how long its passes take: the GPU with its cut, work by resource, and decode steps."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from models.hardware import Group
from models.instance import Instance
from solver.attention import Tokens
from solver.formulas import memory, stages
from solver.shapes import Routed, Shape


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
    cached: "tuple[float, float] | None" = None
    """Bandwidth and startup of reading from the encoder cache, where there is one and a way to it."""
    layout: "Layout | None" = None
    """How its GPUs divide a layer where they do not all do the same; None: as TP and PP have it."""

    @property
    def streams(self) -> int:
        """Requests that its GPUs prefill side by side, each group of them with its own."""
        return 1 if self.layout is None else self.layout.streams

    @property
    def cards(self) -> int:
        """GPUs of the unit that hold context state."""
        return self.tp * self.pp * self.streams


class Layout(Protocol):
    """A way to divide layers over GPUs. Seconds are those of the unit; bytes those of one GPU that holds state."""

    @property
    def streams(self) -> int:
        """Groups of GPUs that hold requests of their own."""
        ...

    def prefill(self, shape: Shape, device: Device, new: float, cached: float) -> float:
        """Seconds of a prefill of ``new`` tokens behind ``cached`` ones, on every stream at once."""
        ...

    def step(self, shape: Shape, device: Device, context: Tokens) -> Callable[[float], float]:
        """Seconds of a decode step of so many requests of all streams together, at mean context ``context``."""
        ...

    def weights(self, shape: Shape, device: Device) -> tuple[float, float]:
        """Weight bytes of one GPU: those of experts that tokens choose apart."""
        ...


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
class Touching:
    """Memory seconds of the experts that a batch touches: ``seconds`` for one of each layer."""

    seconds: float
    routed: Routed

    def at(self, batch: float) -> float:
        """Of a batch."""
        return self.seconds * self.routed.touched(batch)

    def slope(self, batch: float) -> float:
        """What one request more adds."""
        return self.seconds * self.routed.touched_more(batch)


@dataclass(frozen=True)
class Step:
    """A decode step of b requests on one stage: ``beside + b x (own)``; weights are read once for all of them.

    Where a step is no straight line in b, :meth:`upto` gives one that is never below it for fewer requests.
    """

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
    touching: "Touching | None" = None
    """Further memory seconds of a batch: of the experts that it touches."""
    whole: Callable[[float], float] | None = None
    """Seconds of a batch, in place of all the others, for units whose GPUs wait for each other."""

    def at(self, batch: float) -> Work:
        """The step at ``batch`` requests."""
        if self.whole is not None:
            return Work(0.0, self.whole(batch))
        fixed = self.fixed + (self.touching.at(batch) if self.touching else 0.0)
        return Work(batch * self.compute, fixed + batch * self.memory, self.beside + batch * self.beside_each)

    def upto(self, batch: float) -> "Step":
        """A straight line that is exact at ``batch``, and not below the step for fewer requests.

        Where GPUs wait for each other it is held against the step at `SMALLER` and powers of two, and may fall short
        of it by 4e-4 between those.

        Where experts are touched it is the tangent, which is not below the step for more requests either.
        """
        if self.whole is not None:
            return _above(self.whole, batch)
        if self.touching is not None:
            slope = self.touching.slope(batch)
            fixed = self.fixed + self.touching.at(batch) - slope * batch
            return replace(self, fixed=fixed, memory=self.memory + slope, touching=None)
        return self

    def within(self, seconds: float, most: float, compute: float = 0.0, memory: float = 0.0) -> float:
        """Requests, at most ``most``, whose step takes no longer than ``seconds``, with so many seconds of computing
        and of reading for each of them besides.
        """

        def fits(batch: float) -> bool:
            step = self.at(batch)
            return max(step.compute + batch * compute, step.memory + batch * memory) + step.beside <= seconds

        if fits(most):
            return most
        low, high = 0.0, most
        while high - low > 1e-9 * most:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low


SMALLER = (*(k / 32 for k in range(32)), *(1.0 - 2.0**-k for k in range(6, 12)))
"""Smaller batches, as shares, at which a line is held against the step that it bounds; powers of two besides, where
micro-batches and simulated batches begin.
"""


def _above(whole: Callable[[float], float], batch: float) -> Step:
    """The steepest line through the step at ``batch`` that smaller batches stay under, never falling."""
    powers = [2.0**k for k in range(int(batch).bit_length()) if 2.0**k < batch]
    most, smaller = whole(batch), [(size, whole(size)) for size in (*(share * batch for share in SMALLER), *powers)]
    slope = max(0.0, min((most - seconds) / (batch - size) for size, seconds in smaller))
    return Step(max(most - slope * batch, *(seconds - slope * size for size, seconds in smaller)), slope, 0.0)


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
