"""Interleaved repetitions on a machine that is never quiet.

What is compared runs in turn, A B A B, so that a busy moment hits both. Three figures are kept of each: the median of
the wall time; the least wall time, which is nearest to a quiet machine; and the median of the processor time, which
does not count the time that other programs take.
"""

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Seconds = tuple[float, float]
"""Wall time and processor time."""
Job = Callable[[], Seconds]


@dataclass(frozen=True)
class Times:
    """Repetitions of one job."""

    wall: tuple[float, ...]
    processor: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median of the wall times, in s."""
        return statistics.median(self.wall)

    @property
    def least(self) -> float:
        """Least wall time, in s."""
        return min(self.wall)

    @property
    def busy(self) -> float:
        """Median of the processor times, in s."""
        return statistics.median(self.processor)


@dataclass(frozen=True)
class Ratio:
    """One job over another: medians of the pairs that ran one after the other, and least over least."""

    median: float
    least: float
    processor: float


def interleaved(jobs: Mapping[str, Job], rounds: int, warm: int = 1) -> dict[str, Times]:
    """Every job ``rounds`` times in turn, after ``warm`` rounds that do not count."""
    for _ in range(warm):
        for job in jobs.values():
            job()
    kept: dict[str, list[Seconds]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            kept[name].append(job())
    return {name: Times(tuple(w for w, _ in runs), tuple(p for _, p in runs)) for name, runs in kept.items()}


def ratio(over: Times, under: Times) -> Ratio:
    """``over`` in units of ``under``."""
    return Ratio(
        _median_of_pairs(over.wall, under.wall),
        over.least / under.least,
        _median_of_pairs(over.processor, under.processor),
    )


def _median_of_pairs(over: Sequence[float], under: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def call(work: Callable[[], object]) -> Job:
    """A job that runs in this process."""

    def job() -> Seconds:
        gc.collect()
        wall, processor = time.perf_counter(), time.process_time()
        work()
        return time.perf_counter() - wall, time.process_time() - processor

    return job


def process(arguments: Sequence[str]) -> Job:
    """A job that is a whole process, from its start to its end, with its output thrown away."""
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0o600) for fd in (0, 1)]
    # where it is set, everything not installed by pip is compiled anew every time, which no user sees
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}

    def job() -> Seconds:
        wall = time.perf_counter()
        child = os.posix_spawn(arguments[0], list(arguments), environment, file_actions=nowhere)
        _, status, used = os.wait4(child, 0)
        wall = time.perf_counter() - wall
        if code := os.waitstatus_to_exitcode(status):
            raise RuntimeError(f"exit code {code}: {' '.join(arguments)}")
        return wall, used.ru_utime + used.ru_stime

    return job


def reference() -> int:
    """Plain Python that takes about as long as a solve, allocates like one, and never changes."""
    total = 0
    for turn in range(60):
        table = {f"c{i}": (i * turn) % 97 for i in range(1000)}
        total += sum(value for name, value in table.items() if name.endswith("7"))
    return total
