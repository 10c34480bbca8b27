"""Experts in host memory: computed by the CPU there, or moved to a GPU; which is quicker, and from how many rows on.

Experts run one after the other, each on its own; between them nothing overlaps (section 9.3.2).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from solver.expert_work import Engine, Expert
from solver.formulas import offload, stages


@dataclass(frozen=True)
class Offload:
    """An expert's weights at a CPU, and a GPU at the other end of a link."""

    expert: Expert
    cpu: Engine
    gpu: Engine
    link: float
    """B/s, one direction."""
    startup: float
    """Seconds of each transfer."""

    def on_cpu(self, rows: float) -> float:
        """Seconds when the activations go to the CPU and come back."""
        compute, read = _times(self.expert, rows, self.cpu)
        return offload.on_cpu_seconds(compute, read, self.expert.activations(rows), self.link, self.startup)

    def on_gpu(self, rows: float) -> float:
        """Seconds when the weights go to the GPU."""
        compute, read = _times(self.expert, rows, self.gpu)
        return offload.on_gpu_seconds(compute, read, self.expert.weights, self.link, self.startup)

    def first_gpu_rows(self) -> float:
        """Least whole number of rows at which the GPU is quicker; infinite when it never is. Equal times keep the CPU.

        The difference of the two times is a straight line between the rows at which one of them turns from reading to
        computing; on each such piece the root is exact.
        """
        for low, high in self._pieces():
            if self._gain(low) > 0:
                return low
            slope = self._gain(low + 1.0) - self._gain(low)
            if slope > 1e-12 * self.on_cpu(low):  # below that it is rounding
                rows = low + max(0.0, math.floor(-self._gain(low) / slope) - 1.0)
                while self._gain(rows) <= 0 and rows <= high:  # rounding moves the root by less than a row
                    rows += 1.0
                if rows <= high:
                    return rows
        return math.inf

    def last_cpu_rows(self) -> float:
        """Largest number of rows up to which the CPU is at least as quick."""
        return self.first_gpu_rows() - 1.0

    def batch(self, rows: Sequence[float]) -> tuple[float, tuple[str, ...]]:
        """Seconds of a layer's experts in turn, each on its quicker side, and those sides; no rows need none."""
        sides = tuple("" if not each else "gpu" if self._gain(each) > 0 else "cpu" for each in rows)
        return sum(min(self.on_cpu(each), self.on_gpu(each)) for each in rows if each), sides

    def _gain(self, rows: float) -> float:
        return self.on_cpu(rows) - self.on_gpu(rows)

    def _pieces(self) -> Iterator[tuple[float, float]]:
        """Ranges of whole rows, ends included, on which both times are straight lines."""
        knees = sorted(
            math.floor(offload.knee_rows(engine.flops, engine.bandwidth, self.expert.weight_bytes))
            for engine in (self.cpu, self.gpu)
        )
        low = 1.0
        for high in (*map(float, knees), math.inf):
            if high >= low:
                yield low, high
                low = high + 1.0


def _times(expert: Expert, rows: float, engine: Engine) -> tuple[float, float]:
    """Seconds of computing, and of reading the weights once."""
    return (
        stages.compute_seconds(expert.flops(rows), engine.flops),
        stages.memory_seconds(expert.weights, engine.bandwidth),
    )


def socket_seconds(
    expert: Expert, rows: Sequence[float], homes: Sequence[int], engines: Mapping[int, Engine]
) -> dict[int, float]:
    """Seconds that each CPU socket takes for the experts in its memory, in turn; the layer waits for the longest.

    ``homes`` says in whose memory the weights of each expert lie; experts without rows are not read.
    """
    taken = dict.fromkeys(engines, 0.0)
    for each, home in zip(rows, homes, strict=True):
        if each:
            taken[home] += max(_times(expert, each, engines[home]))
    return taken


@dataclass(frozen=True)
class Residence:
    """A layer some of whose experts stay on the GPU; the others are in host memory."""

    kept: frozenset[int]
    """Experts on the GPU."""
    here: float
    """Seconds of those, on the GPU."""
    away: float
    """Seconds of the others, each on its quicker side."""

    @property
    def in_turn(self) -> float:
        """Seconds of the layer when one part waits for the other."""
        return self.here + self.away

    @property
    def overlapped(self) -> float:
        """Seconds when both run at the same time, and the layer waits for both: no less than this."""
        return max(self.here, self.away)


def keep(both: Offload, rows: Sequence[float], count: int) -> Residence:
    """The ``count`` experts that save most by staying on the GPU, for mean rows of each expert of a layer.

    All take the same memory, so those that save most are the best choice for parts that run in turn. How many fit is
    :func:`solver.formulas.experts.resident_experts`.
    """
    at_home = [max(_times(both.expert, each, both.gpu)) if each else 0.0 for each in rows]
    elsewhere = [min(both.on_cpu(each), both.on_gpu(each)) if each else 0.0 for each in rows]
    order = sorted(range(len(rows)), key=lambda index: (at_home[index] - elsewhere[index], index))
    kept = frozenset(order[:count])
    return Residence(
        kept,
        sum(at_home[index] for index in kept),
        sum(elsewhere[index] for index in range(len(rows)) if index not in kept),
    )
