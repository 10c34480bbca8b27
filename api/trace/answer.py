"""What a trace says, as a document: SI units, shares, blocks and tokens; null where it cannot be told."""

from math import isfinite
from typing import Any

from api.trace.request import Request
from api.trace.snippet import document
from models.trace.chunks import Trace
from solver.trace.analysis import Analysis, Blocks
from solver.trace.fitted import fit
from solver.trace.reuse import PERCENTILES, Class, percentiles
from solver.trace.tiers import Replayed
from solver.trace.writes import POLICIES


def answer(file: str, trace: Trace, found: Analysis, asked: Request) -> dict[str, Any]:
    """The document; keys that need blocks are null where the trace tells of none."""
    told: dict[str, Any] = {
        "file": file,
        "requests": trace.requests,
        "format": trace.format,
        "parameters": _parameters(trace, found, asked),
        "lengths": found.arrivals.lengths(),
        "arrivals": found.arrivals.arrivals(),
        "blocks": None,
        "hit_curve": None,
        "ttl_curve": None,
        "reuse": None,
        "instance_reuse": None,
        "writes": None,
        "problems": {"skipped": trace.skipped[0], "first": [problem.as_json() for problem in trace.skipped[1]]},
    }
    if found.blocks is not None:
        told.update(_of_blocks(trace, found, found.blocks, asked))
    return told


def _parameters(trace: Trace, found: Analysis, asked: Request) -> dict[str, Any]:
    return {
        "block_tokens": trace.block_tokens,
        "warm_up": {"requests": found.first, "seconds": found.since},
        "weight": asked.weight,
        "partial_blocks": asked.reading.partial,
        "hot_share": asked.hot_share,
        "sorted": asked.reading.sort,
        "spread": asked.reading.spread,
        "sessions": asked.reading.sessions,
        "kv_bytes_per_token": asked.token_bytes,
        "admission": asked.admission,
    }


def _of_blocks(trace: Trace, found: Analysis, blocks: Blocks, asked: Request) -> dict[str, Any]:
    size, each = trace.block_tokens or 0, asked.token_bytes

    def share(part: int, of: int) -> float | None:
        return part / of if of else None

    def amount(name: str, count: float | None) -> dict[str, float | None]:
        known = count is not None and isfinite(count)
        told = {f"{name}_tokens": count * size if known and count is not None else None}
        if each is not None:
            told[f"{name}_bytes"] = count * size * each if known and count is not None else None
        return told

    seconds = trace.span - found.since

    def rates(blocks_hit: int, tokens_hit: int) -> dict[str, Any]:
        in_blocks, in_tokens = share(blocks_hit, blocks.accesses), share(tokens_hit, blocks.input_tokens)
        chosen = in_tokens if asked.weight == "token" else in_blocks
        return {"hit": chosen, "hit_block": in_blocks, "hit_token": in_tokens}

    return {
        "blocks": {
            "accesses": trace.accesses,
            "distinct": trace.distinct,
            "counted": blocks.accesses,
            "counted_tokens": blocks.input_tokens,
        },
        "hit_curve": [
            {
                "capacity_blocks": one.capacity if isfinite(one.capacity) else None,
                **amount("capacity", one.capacity),
                **rates(one.blocks, one.tokens),
            }
            for one in blocks.hits
        ],
        "ttl_curve": [
            {
                "ttl_s": one.seconds if isfinite(one.seconds) else None,
                **rates(one.blocks, one.tokens),
                **amount("mean_live", one.mean_live),
                **amount("peak_live", one.peak_live),
                "insert_tokens_per_s": (blocks.input_tokens - one.tokens) / seconds if seconds > 0.0 else None,
            }
            for one in blocks.kept
        ],
        "reuse": _reuse(blocks, found, trace, asked.weight),
        "instance_reuse": document(fit(blocks.reuse, size, seconds, asked.steady)),
        "writes": _writes(blocks, size, asked) if blocks.writes else None,
    }


def _reuse(blocks: Blocks, found: Analysis, trace: Trace, weight: str) -> dict[str, Any]:
    reuse = blocks.reuse
    requests = trace.requests - found.first
    kinds = {"all": reuse.all, "hot": reuse.hot, "other": reuse.other}
    told: dict[str, Any] = {name: _class(kind, requests, weight) for name, kind in kinds.items()}
    told["hot"] |= {
        "blocks": blocks.hot,
        "least_requests": blocks.least_hot,
        "most_requests_of_others": blocks.most_other,
    }
    for name in kinds:
        told[name]["curve"] = [list(point) for point in reuse.curve(weight, name)]
    return {"curve": told["all"]["curve"], "never_reused": told["all"]["never_reused"], **told}


def _class(kind: Class, requests: int, weight: str) -> dict[str, Any]:
    blocks, tokens = kind.again
    again, of = (tokens, kind.tokens) if weight == "token" else (blocks, kind.accesses)
    return {
        "accesses": kind.accesses,
        "tokens": kind.tokens,
        "reused": again / of if of else None,
        "never_reused": 1.0 - again / of if of else None,
        "requests_with_a_hit": kind.requests / requests if requests else None,
        "tokens_per_hit": tokens / kind.requests if kind.requests else None,
        "again": kind.third,
        "interval_s": percentiles(kind, PERCENTILES),
    }


def _writes(blocks: Blocks, size: int, asked: Request) -> dict[str, Any]:
    dram, ssd = blocks.tiers or (0.0, 0.0)
    return {
        "dram_blocks": dram,
        "ssd_blocks": ssd,
        "policies": [
            {"policy": policy, "about": POLICIES[policy][1], **_policy(found, size, ssd, asked)}
            for policy, found in blocks.writes.items()
        ],
    }


def _policy(found: Replayed, size: int, ssd: float, asked: Request) -> dict[str, Any]:
    upper, lower = found.tiers
    each, drive, seconds = asked.token_bytes, asked.drive, found.seconds

    def rate(blocks: int, of_token: float | None) -> float | None:
        return blocks * size * of_token / seconds if seconds > 0.0 and of_token is not None else None

    written = rate(lower.writes, each)
    return {
        "hit_dram": upper.hits / found.accesses if found.accesses else None,
        "hit_ssd": lower.hits / found.accesses if found.accesses else None,
        "hit_block": found.hit_rate if found.accesses else None,
        "hit_token": found.token_hit_rate if found.tokens else None,
        "writes_blocks": lower.writes,
        "reads_blocks": lower.hits,
        "evictions_blocks": lower.evictions,
        "held_blocks": {"mean": lower.mean, "peak": lower.peak},
        "write_tokens_per_s": rate(lower.writes, 1.0),
        "read_tokens_per_s": rate(lower.hits, 1.0),
        "write_bytes_per_s": written,
        "read_bytes_per_s": rate(lower.hits, each),
        "drives_by_endurance": None if drive is None or written is None else written / drive.rate,
        "drives_by_capacity": None if drive is None or each is None else ssd * size * each / drive.capacity,
    }
