"""Results as rows, with the goal of each and whether it was met."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.timing import Ratio, Times


@dataclass(frozen=True)
class Result:
    """One measured quantity."""

    what: str
    unit: str
    median: float
    least: float
    processor: float
    goal: float | None = None

    @property
    def met(self) -> str:
        """Whether the goal was met, by the median, by the least alone, or not."""
        if self.goal is None:
            return ""
        if self.median <= self.goal:
            return "yes"
        return "least only" if self.least <= self.goal else "no"

    def as_json(self) -> dict[str, Any]:
        """The row as a JSON object."""
        return {**asdict(self), "met": self.met or None}


def in_ms(what: str, times: Times, goal: float | None = None) -> Result:
    """Times as a row, in milliseconds."""
    return Result(what, "ms", 1e3 * times.median, 1e3 * times.least, 1e3 * times.busy, goal)


def as_ratio(what: str, ratio: Ratio, goal: float | None = None) -> Result:
    """A ratio as a row."""
    return Result(what, "x", ratio.median, ratio.least, ratio.processor, goal)


def table(results: Sequence[Result]) -> str:
    """The results as text."""
    header = ("", "median", "least", "processor", "goal", "met")
    return columns(
        header,
        [
            (
                r.what,
                _figure(r.median, r.unit),
                _figure(r.least, r.unit),
                _figure(r.processor, r.unit),
                "" if r.goal is None else f"<= {r.goal:g} {r.unit}",
                r.met,
            )
            for r in results
        ],
    )


def _figure(value: float, unit: str) -> str:
    return f"{value:.1f} ms" if unit == "ms" else f"{value:.2f} {unit}"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Aligned columns; the first ``left`` and the last to the left, the others to the right."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    last = len(header) - 1
    sides: list[Callable[[str, int], str]] = [
        str.ljust if i < left or i == last else str.rjust for i in range(last + 1)
    ]
    lines = ["  ".join(sides[i](line[i], widths[i]) for i in range(len(header))).rstrip() for line in (header, *rows)]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])
