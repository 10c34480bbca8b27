"""A trace as the workload of an instance: what the formulas of tiers say of it, beside curves computed elsewhere."""

import csv
import math
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.experts import Measured
from benchmarks.prediction import Sizes, instance
from models.trace.chunks import Trace
from models.trace.reading import read
from solver.formulas import retention
from solver.tiers.parts import Part, parts
from solver.trace.fitted import fit
from solver.trace.retention import TtlCurve
from solver.trace.reuse import of_trace

NAME, FILE = "mooncake_conversation", "mooncake_conversation.jsonl.xz"
LONGEST = 1800.0
"""Seconds up to which the second half of the trace is warm."""
WRITTEN = {"through": 0.03, "selective2": 0.03, "exclusive": 0.12}
"""Policy of the table -> goal. What is still in DRAM when an hour ends was never written on: up to a tenth."""


def measure(data: Path) -> Iterator[Measured]:
    """Hits, live tokens and writes by the formulas."""
    trace = read(data / FILE)
    yield from _retention(data, trace)
    yield from _warm(trace)
    yield from _writes(data, trace)


class Formulas:
    """The parts of a trace, in blocks."""

    def __init__(self, trace: Trace, first: int = 0, since: float = 0.0, steady: bool = False) -> None:
        self.size = trace.block_tokens or 0
        found = fit(of_trace(trace, first), self.size, trace.span - since, steady)
        self.parts: tuple[Part, ...] = parts(instance(found, Sizes(1, 1), self.size))
        self.block = self.parts[0].hit / found.parts[0].tokens_per_hit * self.size
        self.tokens = found.input * self.parts[0].rate
        """Input tokens/s."""

    def hit(self, age: float, again: bool = False) -> float:
        """Share of the input tokens that is found; with ``again``, what `second_hit` has."""
        each = sum(one.rate * one.hit * one.found(age) * (one.again if again else 1.0) for one in self.parts)
        return each / self.block * self.size / self.tokens

    def alive(self, age: float, again: bool = False) -> float:
        """Blocks."""
        if again:
            told = [(one.hit, one.most, age, one.again * one.integral(age), one.rate) for one in self.parts]
            return sum(retention.live_again_bytes(rate, *rest) for *rest, rate in told) / self.block
        each = [retention.live_bytes(one.rate, one.kept, one.hit, age, one.integral(age)) for one in self.parts]
        return sum(each) / self.block

    def written(self, age: float, again: bool = False) -> float:
        """Blocks/s."""
        total = 0.0
        for one in self.parts:
            if again:
                total += retention.written_again_bytes(one.rate, one.hit, one.most, one.again * one.found(age))
            else:
                total += retention.written_bytes(one.rate, one.kept, one.hit, one.found(age))
        return total / self.block


def until(alive: Callable[[float], float], blocks: float) -> float:
    """The age at which so many blocks are alive."""
    low, high = 1e-3, 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if alive(middle) < blocks else (low, middle)
    return high


def _rows(data: Path, name: str) -> list[dict[str, str]]:
    with open(data / name, newline="") as file:
        return [row for row in csv.DictReader(file) if row["trace"] == NAME]


def _retention(data: Path, trace: Trace) -> Iterator[Measured]:
    """The whole trace, which begins cold: of a time T, what is held in the mean is less by T over twice the span."""
    found = Formulas(trace)
    rows = [row for row in _rows(data, "hit_curve_ttl.csv") if row["mean_live_tokens"]]
    hits = [found.hit(float(row["ttl_s"])) - float(row["hit_token"]) for row in rows]
    yield Measured(
        "as an instance, hits by retention, furthest",
        f"{max(map(abs, hits)):.4f}",
        "<= 0.005",
        max(map(abs, hits)) <= 0.005,
    )
    for row in rows:
        age = float(row["ttl_s"])
        if age in (60.0, 300.0, 600.0, 1800.0):
            off = found.alive(age) * found.size / float(row["mean_live_tokens"])
            warm = off * (1.0 - age / 2.0 / trace.span) - 1.0
            said = f"{off - 1.0:+.1%}, less what a cold start lacks {warm:+.1%}"
            yield Measured(f"as an instance, tokens held for {age:g} s", said, "<= 5 %", abs(warm) <= 0.05)


def _warm(trace: Trace) -> Iterator[Measured]:
    first = trace.requests // 2
    since = next(float(chunk.times[first]) for chunk in trace.chunks())
    found = Formulas(trace, first, since, True)
    curve = TtlCurve(trace, [float(row) for row in (10, 30, 60, 120, 300, 600, 1200, 1800)], first, since)
    for chunk in trace.chunks():
        curve.feed(chunk)
    off = {"hits": 0.0, "held": 0.0}
    tokens = found.tokens * (trace.span - since)
    for kept in curve.at():
        off["hits"] = max(off["hits"], abs(found.hit(kept.seconds) - kept.tokens / tokens))
        off["held"] = max(off["held"], abs(found.alive(kept.seconds) / (kept.mean_live or 1.0) - 1.0))
    said = f"hits {off['hits']:.4f}, tokens held {off['held']:.1%}"
    name = f"as an instance, second half, up to {LONGEST:g} s, furthest"
    yield Measured(name, said, "<= 0.005, <= 5 %", off["hits"] <= 0.005 and off["held"] <= 0.05)


def _writes(data: Path, trace: Trace) -> Iterator[Measured]:
    found = Formulas(trace)
    furthest = {policy: [0.0, 0.0] for policy in WRITTEN}
    for row in _rows(data, "ssd_write_policy.csv"):
        if row["policy"] not in WRITTEN:
            continue
        upper, lower, again = float(row["dram_blocks"]), float(row["ssd_blocks"]), row["policy"] == "selective2"
        above = until(found.alive, upper)
        whole = lower + upper if row["policy"] == "exclusive" else lower
        age = until(lambda one, again=again: found.alive(one, again), whole)  # type: ignore[misc]
        put = found.written(above if row["policy"] == "exclusive" else age, again) * found.size
        hit = found.hit(above) + max(0.0, found.hit(age, again) - found.hit(above, again))
        off = furthest[row["policy"]]
        off[0] = max(off[0], abs(put / float(row["ssd_write_tokens_per_s"]) - 1.0))
        off[1] = max(off[1], abs(hit - float(row["hit_total"])))
    for policy, (put, hit) in furthest.items():
        said = f"{put:.1%}, hits {hit:.4f}"
        yield Measured(
            f"SSD writes by formula, {policy}, furthest", said, f"<= {WRITTEN[policy]:.0%}", put <= WRITTEN[policy]
        )
