"""What a plan predicts of the next half of a trace, from the first one, and what the replay of that half finds.

The curve, the rate and the lengths come from the first half by time; the plan keeps state in a DRAM and an SSD tier of
stated sizes; the second half is replayed in the tiers of the plan, with the first one to fill them.
"""

from dataclasses import dataclass

import numpy as np

from models import files
from models.instance import Instance
from models.load import build
from models.tiers import HBM, Tier
from models.trace.chunks import Chunk, Store, Trace
from solver.limits import Limits
from solver.solve import Options, solve
from solver.trace import reuse
from solver.trace.fitted import Fitted, fit
from solver.trace.planned import Outcome, planned, replayed

SERVERS = 6
TOKEN_BYTES = 70_272.0
"""Of DeepSeek-V3."""
HEADROOM = 1.05


@dataclass(frozen=True)
class Sizes:
    """Two tiers, in blocks, and how the lower one is written."""

    dram: int
    ssd: int
    policy: str = "all"
    """all, second_hit, on_eviction or exclusive."""


def part(trace: Trace, begin: float, end: float) -> Trace:
    """The requests from ``begin`` on and before ``end``, in s since the first."""
    store, requests, times = Store(), 0, [0.0]
    accesses = inputs = outputs = 0
    for chunk in trace.chunks():
        low, high = (int(np.searchsorted(chunk.times, at)) for at in (begin, end))
        if low == high:
            continue
        blocks = chunk.blocks[chunk.starts[low] : chunk.starts[high]]
        start = float(chunk.times[low]) if not requests else begin_at
        begin_at = start
        starts = chunk.starts[low : high + 1] - chunk.starts[low]
        made = Chunk(chunk.times[low:high] - start, chunk.inputs[low:high], chunk.outputs[low:high], starts, blocks)
        store.put(made)
        requests, times = requests + high - low, [float(made.times[-1])]
        accesses, inputs = accesses + len(blocks), inputs + int(made.inputs.sum())
        outputs += int(made.outputs.sum())
    size = trace.block_tokens
    return Trace(trace.format, store, requests, 0.0, times[-1], size, accesses, trace.distinct, inputs, outputs)


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


def predict(trace: Trace, sizes: Sizes) -> Outcome:
    """The second half under the plan of the first."""
    middle, size = trace.span / 2.0, trace.block_tokens or 0
    first = part(trace, 0.0, middle)
    found = fit(reuse.of_trace(first), size, middle)
    plan = solve(instance(found, sizes, size), Options(Limits(), plan_only=True, reasons=False))
    later = next(float(chunk.times[i]) for chunk in trace.chunks() for i in [int(np.searchsorted(chunk.times, middle))] if i < len(chunk.times))
    return replayed(trace, planned(plan, None), first.requests, later, scaled=False)
