"""What a plan predicts of the next half of a trace, from the first one, and what the replay of that half finds.

The curve, the rate and the lengths come from the first half by time; the plan keeps state in a DRAM and an SSD tier of
stated sizes; the second half is replayed in the tiers of the plan, with the first one to fill them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.experts import Measured
from models import files
from models.instance import Instance
from models.load import build
from models.tiers import HBM, Tier
from models.trace.chunks import Chunk, Store, Trace
from models.trace.reading import read
from solver.limits import Limits
from solver.solve import Options, solve
from solver.trace import reuse
from solver.trace.fitted import Fitted, fit
from solver.trace.planned import Outcome, planned, replayed

SERVERS = 16
TOKEN_BYTES = 70_272.0
"""Of DeepSeek-V3."""
HEADROOM = 1.05
SIZES = ((2_000, 10_000), (5_859, 30_000), (10_000, 30_000), (20_000, 100_000))
POLICIES = ("all", "second_hit", "exclusive", "on_eviction")
POINTS = 0.02


@dataclass(frozen=True)
class Sizes:
    """Two tiers, in blocks, and how the lower one is written."""

    dram: int
    ssd: int
    policy: str = "all"
    """all, second_hit, on_eviction or exclusive."""


def part(trace: Trace, begin: float, end: float) -> Trace:
    """The requests from ``begin`` on and before ``end``, in s since the first; there is one at least."""
    store, made, start = Store(), list[Chunk](), 0.0
    for chunk in trace.chunks():
        low, high = (int(np.searchsorted(chunk.times, at)) for at in (begin, end))
        if low < high:
            start = start if made else float(chunk.times[low])
            blocks = chunk.blocks[chunk.starts[low] : chunk.starts[high]]
            starts = chunk.starts[low : high + 1] - chunk.starts[low]
            made.append(
                Chunk(chunk.times[low:high] - start, chunk.inputs[low:high], chunk.outputs[low:high], starts, blocks)
            )
            store.put(made[-1])
    return Trace(
        format=trace.format,
        store=store,
        requests=sum(len(one.times) for one in made),
        start=0.0,
        span=float(made[-1].times[-1]),
        block_tokens=trace.block_tokens,
        accesses=sum(len(one.blocks) for one in made),
        distinct=trace.distinct,
        input_tokens=sum(int(one.inputs.sum()) for one in made),
        output_tokens=sum(int(one.outputs.sum()) for one in made),
    )


def instance(found: Fitted, sizes: Sizes, block_tokens: int) -> Instance:
    """Servers enough for the load, HBM that keeps nothing, and two tiers."""
    reuse_of = [one.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for one in found.parts]
    each = block_tokens * TOKEN_BYTES / SERVERS
    lower = {"holds": "exclusive", "write_policy": "on_eviction"} if sizes.policy == "exclusive" else {}
    group = {"server": "HGX-H200", "servers": SERVERS, "price": "3.50/h", "tp": [8], "pp": [1], "ep": [1]}
    drives = {"count": 1, "size": f"{sizes.ssd * each!r} B", "read": "100 GB/s", "write": "100 GB/s"}
    data = {
        "schema": 1,
        "name": "halves",
        "hardware": {"groups": {"h200": group}},
        "tiers": {
            "dram": {"capacity": f"{sizes.dram * each!r} B", "headroom": HEADROOM, "write_policy": "all"},
            "ssd": {"drives": drives, "headroom": HEADROOM, **(lower or {"write_policy": sizes.policy})},
        },
        "models": {"deepseek": {"catalog": "DeepSeek-V3", "weights": "fp8"}},
        "workloads": {
            "chat": {
                "model": "deepseek",
                "rate": f"{found.rate!r}/s",
                "input": found.input,
                "output": found.output,
                "reuse": reuse_of,
            }
        },
        "schemes": {"allow": ["chunked"]},
        "billing": {"currency": "USD", "pay": "used"},
    }
    made = build(files.Document(data, {}, "halves"))
    return made.model_copy(update={"tiers": {HBM: Tier.model_validate({"in": []}), **made.tiers}})


def predict(trace: Trace, sizes: Sizes, same_load: bool = False) -> Outcome:
    """The second half under the plan of the first.

    same_load: capacities are multiplied by the input tokens/s of the second half over those of the first.
    """
    middle, size = trace.span / 2.0, trace.block_tokens or 0
    halves = part(trace, 0.0, middle), part(trace, middle, np.inf)
    found = fit(reuse.of_trace(halves[0]), size, middle)
    plan = solve(instance(found, sizes, size), Options(Limits(), plan_only=True, reasons=False))
    scale = halves[1].input_tokens / halves[0].input_tokens if same_load else 1.0
    return replayed(trace, planned(plan, None), halves[0].requests, trace.span - halves[1].span, scale)


def measure(data: Path) -> Iterator[Measured]:
    """The conversation trace, several sizes and policies; sizes are not scaled."""
    trace = read(data / "mooncake_conversation.jsonl.xz")
    for dram, ssd in SIZES:
        for policy in POLICIES:
            told = predict(trace, Sizes(dram, ssd, policy))
            before, after = sum(tier.found for tier in told.planned.tiers), told.replayed.token_hit_rate
            said = f"{before:.1%} planned, {after:.1%} replayed, {100.0 * (after - before):+.1f} points"
            name = f"second half, DRAM {dram:,} blocks, SSD {ssd:,}, {policy}"
            yield Measured(name, said, "<= 2 points", abs(after - before) <= POINTS)
