"""Lengths and arrivals of a trace: means, percentiles, and how bursty it is."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from models.trace.chunks import Chunk
from solver.trace.counted import Counted

PERCENTILES = (10, 50, 90, 99)
MINUTE, TEN_SECONDS = 60.0, 10.0


@dataclass
class Windows:
    """Counts of arrivals in whole windows of one length, from the first arrival; the last window, cut off, is left out.

    Only what the figures need is kept, so that the memory does not grow with the time.
    """

    seconds: float
    full: int = 0
    """Windows that have ended."""
    total: float = 0.0
    squares: float = 0.0
    peak: int = 0
    _open: tuple[int, int] = (0, 0)

    def add(self, times: np.ndarray) -> None:
        """Add arrivals in their order, float64 (n,), in s since the first."""
        numbers, counts = np.unique(np.floor_divide(times, self.seconds).astype(np.int64), return_counts=True)
        if not len(numbers):
            return
        counts = counts.astype(np.int64)
        if numbers[0] == self._open[0]:
            counts[0] += self._open[1]
        else:
            self._close(np.array([self._open[1]]))
        self._close(counts[:-1])
        self._open = (int(numbers[-1]), int(counts[-1]))
        self.full = self._open[0]

    def _close(self, counts: np.ndarray) -> None:
        self.total += float(counts.sum())
        self.squares += float((counts.astype(np.float64) ** 2).sum())
        self.peak = max(self.peak, int(counts.max(initial=0)))

    @property
    def peak_to_mean(self) -> float | None:
        """Arrivals of the busiest window over the mean; None before one window has ended."""
        return self.peak * self.full / self.total if self.total else None

    @property
    def dispersion(self) -> float | None:
        """Variance of the counts over their mean: 1 for Poisson arrivals."""
        if not self.total:
            return None
        mean = self.total / self.full
        return max(0.0, self.squares / self.full - mean * mean) / mean


@dataclass
class Arrivals:
    """Lengths and arrivals; feed it every chunk."""

    inputs: Counted = field(default_factory=Counted)
    outputs: Counted = field(default_factory=Counted)
    minute: Windows = field(default_factory=lambda: Windows(MINUTE))
    ten: Windows = field(default_factory=lambda: Windows(TEN_SECONDS))
    requests: int = 0
    squares: float = 0.0
    """Of the times between arrivals, in s^2."""
    last: float | None = None

    def feed(self, chunk: Chunk) -> None:
        """Take the requests of a chunk."""
        self.inputs.add(chunk.inputs)
        self.outputs.add(chunk.outputs)
        self.minute.add(chunk.times)
        self.ten.add(chunk.times)
        gaps = np.diff(chunk.times, prepend=chunk.times[0] if self.last is None else self.last)
        self.squares += float(gaps @ gaps)
        self.requests += len(chunk.times)
        self.last = float(chunk.times[-1])

    def lengths(self) -> dict[str, dict[str, float]]:
        """Mean, percentiles and largest of input and output, in tokens."""
        return {
            name: {
                "mean": counted.mean,
                **{f"p{p}": at for p, at in zip(PERCENTILES, counted.percentiles(PERCENTILES), strict=True)},
                "max": float(counted.values[-1]),
            }
            for name, counted in (("input", self.inputs), ("output", self.outputs))
        }

    def arrivals(self) -> dict[str, float | None]:
        """Rate, span and burstiness; None where the trace is too short to tell."""
        span, gaps = self.last or 0.0, self.requests - 1
        variation = None
        if span > 0.0:
            mean = span / gaps
            variation = math.sqrt(max(0.0, self.squares / gaps - mean * mean)) / mean
        return {
            "span_s": span,
            "rate": self.requests / span if span > 0.0 else None,
            "interarrival_cv": variation,
            "peak_to_mean_1min": self.minute.peak_to_mean,
            "index_of_dispersion_1min": self.minute.dispersion,
            "peak_to_mean_10s": self.ten.peak_to_mean,
        }


def arrivals(chunks: Iterable[Chunk]) -> Arrivals:
    """Lengths and arrivals of a trace."""
    found = Arrivals()
    for chunk in chunks:
        found.feed(chunk)
    return found
