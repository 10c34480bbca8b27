"""How long a solve may take, when it may stop early, and what a run of it found."""

import time
from dataclasses import dataclass
from typing import Literal

Status = Literal["optimal", "feasible", "infeasible", "stopped"]
PROOF = 1e-6
"""Relative gap within which a value counts as proven."""


@dataclass(frozen=True)
class Outcome:
    """What a run found: `optimal` is proven to ``PROOF``, `stopped` found nothing and proved nothing."""

    status: Status
    value: float | None
    bound: float | None
    values: tuple[float, ...]

    @property
    def found(self) -> bool:
        """Whether there is a solution."""
        return self.status in ("optimal", "feasible")

    @property
    def gap(self) -> float:
        """How far the value may be off; infinite where nothing is known."""
        return gap(self.value, self.bound)


class Stop:
    """A request to stop, from another thread or a signal handler."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self) -> None:
        """Stop the run in progress and those to come."""
        self.asked = True


@dataclass
class Limits:
    """How long a solve may take, and when it may stop early."""

    seconds: float = 60.0
    gap: float = 1e-4
    seed: int | None = None
    stop: Stop | None = None
    started: float = 0.0
    progress: str = "preparing"
    """What is being done, in words, for whoever watches."""
    exact: bool = True
    """Whether a full proof is tried first; else any run may end inside the gap."""

    def start(self) -> None:
        """Begin to count."""
        self.started = time.monotonic()

    def part(self, seconds: float) -> "Limits":
        """Limits for side questions: at most ``seconds`` in all, and never beyond what is left."""
        part = Limits(min(seconds, self.left), self.gap, self.seed, self.stop, exact=False)
        part.start()
        return part

    @property
    def over(self) -> bool:
        """Whether nothing more should be begun."""
        return self.left <= 0.0 or (self.stop is not None and self.stop.asked)

    @property
    def left(self) -> float:
        """Seconds that remain."""
        return max(0.0, self.seconds - (time.monotonic() - self.started)) if self.started else self.seconds


def gap(value: float | None, bound: float | None) -> float:
    """|value - bound| / max(|value|, 1e-9); infinite where one is unknown."""
    if value is None or bound is None:
        return float("inf")
    return abs(value - bound) / max(abs(value), 1e-9)
