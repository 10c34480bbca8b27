"""Request traces: how near curves computed elsewhere are, and how fast a million requests are read.

`python -m benchmarks traces --data PATH`. PATH holds traces in their public formats and curves of them:
`trace_stats.csv`, `hit_curve_lru.csv`, `hit_curve_ttl.csv`, `reuse_interval.csv`, `ssd_write_policy.csv`. Nothing of it
is part of the project; without a path, only the speed is measured, on generated requests.
"""

import csv
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks import as_instance, prediction
from benchmarks.experts import Measured
from models.trace.chunks import Trace
from models.trace.reading import read
from solver.trace import reuse, writes
from solver.trace.arrivals import arrivals
from solver.trace.generate import Conversations, conversations, write
from solver.trace.hits import HitCurve
from solver.trace.replay import replay
from solver.trace.retention import TtlCurve

FILES = {
    "mooncake_conversation": "mooncake_conversation.jsonl.xz",
    "mooncake_synthetic": "mooncake_synthetic_fast25.jsonl.xz",
    "mooncake_synthetic_fast25": "mooncake_synthetic_fast25.jsonl.xz",
    "SYNTHETIC_arxiv_like_issue4020": "SYNTHETIC_arxiv_like_issue4020.jsonl.xz",
    "azure23_code": "azure_llm_2023_code.csv.xz",
    "azure23_conv": "azure_llm_2023_conv.csv.xz",
}
"""Name in the curves -> file."""
POLICIES = {
    "through": "through",
    "demote": "demote",
    "exclusive": "exclusive",
    "selective2": "second-access",
    "demote2": "demote-second",
}
REQUESTS, QUESTION, FRESH = 1_000_000, (2150.0, 0.9), (9000.0, 0.5)
"""Of the measurement of speed: about 20 blocks a request; in the second kind most are read once."""
SECONDS, MEGABYTES = 60.0, 2000.0


def measure(data: Path | None) -> Iterator[Measured]:
    """All figures; those of curves need ``data``."""
    if data is not None:
        for part in (_stats, _hits, _retention, _intervals, _writes):
            yield from part(data)
        yield _replays(data)
        yield from as_instance.measure(data)
        yield from prediction.measure(data)
    yield from speed("conversations of 4 turns", Conversations(question=QUESTION))
    yield from speed("single turns, hardly a block read again", Conversations(question=FRESH, turns=1.0))


def _rows(data: Path, name: str) -> Iterator[tuple[str, Trace, list[dict[str, str]]]]:
    """Rows of a curve by trace, of the traces that are there."""
    by_trace: dict[str, list[dict[str, str]]] = defaultdict(list)
    with open(data / name, newline="") as file:
        for row in csv.DictReader(file):
            by_trace[row["trace"]].append(row)
    for trace, rows in by_trace.items():
        if trace in FILES:
            yield trace, read(data / FILES[trace]), rows


def _stats(data: Path) -> Iterator[Measured]:
    for name, trace, [row] in _rows(data, "trace_stats.csv"):
        found = arrivals(trace.chunks())
        lengths, told = found.lengths(), found.arrivals()
        ours: dict[str, float | None] = {
            f"{short}_{key}": value
            for side, short in (("input", "in"), ("output", "out"))
            for key, value in lengths[side].items()
        }
        ours |= {"rate_rps" if key == "rate" else key: value for key, value in told.items()}
        differ = [key for key in ours if key in row and not _printed(row[key], ours[key])]
        yield Measured(f"statistics of {name}", f"{len(differ)} of 18 differ {' '.join(differ)}", "0", not differ)


def _printed(text: str, value: float | None) -> bool:
    """Whether a value is what is printed, to its last digit."""
    return value is not None and abs(float(text) - value) <= 0.5000001 * 10.0 ** -len(text.partition(".")[2])


def _hits(data: Path) -> Iterator[Measured]:
    for name, trace, rows in _rows(data, "hit_curve_lru.csv"):
        curve = HitCurve(trace.block_tokens or 0)
        for chunk in trace.chunks():
            curve.feed(chunk)
        hits = curve.at([float(row["capacity_blocks"]) for row in rows])
        off = max(
            max(
                abs(one.blocks / curve.accesses - float(row["hit_block"])),
                abs(one.tokens / curve.input_tokens - float(row["hit_token"])),
            )
            for one, row in zip(hits, rows, strict=True)
        )
        yield Measured(f"LRU hits of {name}, {len(rows)} rows, furthest", f"{off:.6f}", "<= 0.002", off <= 0.002)


def _retention(data: Path) -> Iterator[Measured]:
    for name, trace, rows in _rows(data, "hit_curve_ttl.csv"):
        curve = TtlCurve(trace, [float(row["ttl_s"]) for row in rows])
        for chunk in trace.chunks():
            curve.feed(chunk)
        size, off = trace.block_tokens or 0, {"hit": 0.0, "mean": 0.0, "peak": 0.0, "insert": 0.0}
        for one, row in zip(curve.at(), sorted(rows, key=lambda row: float(row["ttl_s"])), strict=True):
            pairs = {
                "hit": (one.tokens / trace.input_tokens, row["hit_token"]),
                "mean": ((one.mean_live or 0.0) * size, row["mean_live_tokens"]),
                "peak": (one.peak_live * size, row["peak_live_tokens"]),
                "insert": ((trace.input_tokens - one.tokens) / trace.span, row["insert_tokens_per_s"]),
            }
            for key, (value, text) in pairs.items():
                off[key] = max(off[key], abs(value / float(text) - 1.0)) if text else off[key]
        said = ", ".join(f"{key} {value:.3%}" for key, value in off.items())
        yield Measured(f"retention of {name}, {len(rows)} rows, furthest", said, "<= 2 %", max(off.values()) <= 0.02)


def _intervals(data: Path) -> Iterator[Measured]:
    for name, trace, rows in _rows(data, "reuse_interval.csv"):
        found = reuse.of_trace(trace)
        differ = 0
        for row in rows:
            at = int(row["pctl"])
            for kind, key in ((found.all, "per_block_access"), (found.other, "excluding_hot_blocks")):
                value = reuse.percentiles(kind, [at])[f"p{at}"]
                differ += value is None or abs(value - float(row[f"interval_s_{key}"])) > 0.0501
        yield Measured(f"reuse intervals of {name}", f"{differ} of {2 * len(rows)} differ", "0", differ == 0)


def _writes(data: Path) -> Iterator[Measured]:
    for name, trace, rows in _rows(data, "ssd_write_policy.csv"):
        furthest = 0.0
        for row in rows:
            tiers = writes.tiers(POLICIES[row["policy"]], float(row["dram_blocks"]), float(row["ssd_blocks"]))
            found = replay(trace.chunks(), tiers, trace.block_tokens or 0)
            above, below = found.tiers
            for value, key in (
                (below.writes, "ssd_writes_blocks"),
                (below.hits, "ssd_reads_blocks"),
                (above.hits / found.accesses, "hit_dram"),
                (below.hits / found.accesses, "hit_ssd"),
            ):
                slack = 0.5e-4 if key.startswith("hit") else 0.0  # of the printed digits
                furthest = max(furthest, max(0.0, abs(value - float(row[key])) - slack) / float(row[key]))
        yield Measured(
            f"SSD writes of {name}, {len(rows)} rows, furthest", f"{furthest:.4%}", "<= 2 %", furthest <= 0.02
        )


def _replays(data: Path) -> Measured:
    trace = read(data / FILES["mooncake_conversation"])
    started = time.process_time()
    for policy in writes.POLICIES:
        replay(trace.chunks(), writes.tiers(policy, 5859, 100_000), trace.block_tokens or 0)
    rate = len(writes.POLICIES) * trace.accesses / (time.process_time() - started)
    return Measured("accesses replayed in two tiers", f"{rate / 1e6:.2f} million/s", ">= 0.5", rate >= 5e5)


def speed(name: str, like: Conversations) -> Iterator[Measured]:
    """Reading and the hit curve of a million requests, in a process of its own, on one core."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requests.jsonl"
        with open(path, "wb") as file:
            write(file, conversations(REQUESTS, like, 1))
        said = subprocess.run(
            [sys.executable, "-m", "benchmarks.traces", str(path)], capture_output=True, text=True, check=True
        ).stdout
    accesses, distinct, seconds, megabytes = map(float, said.split())
    title = f"{REQUESTS:,} requests, {accesses / 1e6:.1f} million blocks, {distinct / 1e6:.1f} million distinct: {name}"
    yield Measured(f"{title}: read, hit curve", f"{seconds:.1f} s", f"<= {SECONDS:g} s", seconds <= SECONDS)
    yield Measured("the same, memory", f"{megabytes:.0f} MB", f"<= {MEGABYTES:g} MB", megabytes <= MEGABYTES)


def _one(path: Path) -> None:
    """Accesses, distinct blocks, seconds and megabytes of one file."""
    import resource

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    started = time.perf_counter()
    trace = read(path)
    curve = HitCurve(trace.block_tokens or 0)
    for chunk in trace.chunks():
        curve.feed(chunk)
    curve.at([1.0])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(trace.accesses, trace.distinct, time.perf_counter() - started, memory)


if __name__ == "__main__":
    _one(Path(sys.argv[1]))
