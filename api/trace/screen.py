"""What a trace says, as text."""

from typing import Any

from api import words
from api.trace.snippet import exact
from solver.trace.reuse import AGES

ROWS = 14
"""Of a curve at most; --json has all of it."""
LEAST = 5e-4
"""Share below which a point of a curve is not written."""


def render(told: dict[str, Any]) -> str:
    """The document as a screen or two."""
    lines = [*_head(told), "", *_lengths(told), "", *_arrivals(told)]
    if told["hit_curve"] is not None:
        lines.extend(["", *_hits(told), "", *_kept(told), "", *_reuse(told)])
    else:
        lines.extend(["", "  No blocks: the trace does not tell which requests begin alike, so nothing of reuse."])
    if told["writes"] is not None:
        lines.extend(["", *_writes(told)])
    skipped = told["problems"]["skipped"]
    if skipped:
        first = told["problems"]["first"][0]
        where = f"line {first['line']}: {first['path']} {first['message']}".replace(":  ", ": ")
        lines.extend(["", f" note: {words.plural(skipped, 'line')} left out; {where}"])
    return "\n".join(lines)


def _head(told: dict[str, Any]) -> list[str]:
    set_by, span = told["parameters"], told["arrivals"]["span_s"]
    head = f"{told['file']}: {words.plural(told['requests'], 'request')} in {_time(span)}, format {told['format']}"
    if set_by["block_tokens"] is None:
        return [head]
    head += f", blocks of {set_by['block_tokens']:,} tokens"
    warm = set_by["warm_up"]["requests"]
    counted = f"after a warm-up of {words.plural(warm, 'request')}" if warm else "all requests, no warm-up"
    part = {"count": "kept as blocks", "drop": "not kept"}[set_by["partial_blocks"]]
    weight = {"token": "input tokens", "block": "blocks"}[set_by["weight"]]
    text = f"Hit rates: share of {weight}, {counted}; last blocks that are not full are {part}."
    if set_by["spread"]:
        text += " Requests of one time are spread until the next."
    if set_by["sessions"]:
        text += " Blocks are made of sessions: a turn begins with the input and output of the turn before it."
    return [head, "", *words.wrap(text)]


def _lengths(told: dict[str, Any]) -> list[str]:
    names = list(told["lengths"]["input"])
    rows = [["TOKENS", *names]]
    rows.extend([side, *(f"{one[name]:,.0f}" for name in names)] for side, one in told["lengths"].items())
    return words.table(rows, frozenset(range(1, len(names) + 1)))


def _arrivals(told: dict[str, Any]) -> list[str]:
    one = told["arrivals"]
    rows = [
        ["ARRIVALS", "variation", "busiest 1 min", "dispersion 1 min", "busiest 10 s"],
        [
            f"{words.rate(one['rate'])} req/s",
            _digits(one["interarrival_cv"]),
            _times(one["peak_to_mean_1min"]),
            _digits(one["index_of_dispersion_1min"]),
            _times(one["peak_to_mean_10s"]),
        ],
    ]
    text = "variation: of the times between arrivals; dispersion: variance over mean of counts; both 1 if Poisson"
    return [*words.table(rows, frozenset(range(1, 5))), f" {text}"]


def _hits(told: dict[str, Any]) -> list[str]:
    sized = told["parameters"]["kv_bytes_per_token"] is not None
    rows = [["LRU CACHE", "tokens", *(["size"] if sized else []), "HIT"]]
    for one in _thinned(told["hit_curve"], "capacity_blocks"):
        blocks = one["capacity_blocks"]
        name = "without limit" if blocks is None else words.plural(int(blocks), "block")
        size = [_size(one.get("capacity_bytes"))] if sized else []
        rows.append([name, _count(one["capacity_tokens"]), *size, _share(one["hit"])])
    return words.table(rows, frozenset(range(1, len(rows[0]))))


def _kept(told: dict[str, Any]) -> list[str]:
    sized = told["parameters"]["kv_bytes_per_token"] is not None
    rows = [["KEPT FOR", "HIT", "tokens held", "at the peak", *(["size"] if sized else []), "new tokens/s"]]
    for one in told["ttl_curve"]:
        name = "ever" if one["ttl_s"] is None else _time(one["ttl_s"])
        size = [_size(one.get("peak_live_bytes"))] if sized else []
        held = [_count(one[f"{which}_live_tokens"]) for which in ("mean", "peak")]
        rows.append([name, _share(one["hit"]), *held, *size, _count(one["insert_tokens_per_s"])])
    return words.table(rows, frozenset(range(1, len(rows[0]))))


def _reuse(told: dict[str, Any]) -> list[str]:
    reuse = told["reuse"]
    names = {"all": "all blocks", "hot": "hot blocks", "other": "other blocks"}
    if not reuse["hot"]["blocks"]:
        names = {"all": "all blocks"}
    shown = ("p10", "p25", "p50", "p75", "p90", "p99")
    rows = [["READ AGAIN", "share", "tokens per hit", *shown]]
    for key, name in names.items():
        one = reuse[key]
        tokens = _count(one["tokens_per_hit"])
        rows.append([name, _share(one["reused"]), tokens, *(_age(one["interval_s"][at]) for at in shown)])
    lines = words.table(rows, frozenset(range(1, len(rows[0]))))
    lines.extend(words.wrap(_hot(told), " "))
    last = "other" if reuse["hot"]["blocks"] else "all"
    if reuse[last]["curve"]:
        lines.extend([f" {names[last]}, for an instance file (all of it: --reuse):"])
        lines.append(f"   curve: {written(reuse[last]['curve'])}")
    return lines


def _hot(told: dict[str, Any]) -> str:
    hot, share = told["reuse"]["hot"], f"{100.0 * told['parameters']['hot_share']:.3g} %"
    others = f"the most read other block by {hot['most_requests_of_others']:,}"
    if not hot["blocks"]:
        return f"no block is hot, read by {share} of the requests: {others}"
    return (
        f"hot: read by {share} of the requests; {words.plural(hot['blocks'], 'block')}, read by "
        f"{words.plural(hot['least_requests'], 'request')} or more, {others}"
    )


def written(curve: list[list[float]]) -> str:
    """A curve of reuse as instance files have it, {1 min: 8 %, ...}: at round ages, and to the oldest."""
    *some, last = curve
    chosen = [point for point in some if point[0] in AGES and point[1] >= LEAST]
    return "{" + ", ".join(f"{exact(age)}: {100.0 * share:.4g} %" for age, share in [*chosen, last]) + "}"


def _writes(told: dict[str, Any]) -> list[str]:
    table = told["writes"]
    priced = table["policies"][0]["drives_by_endurance"] is not None
    sized = table["policies"][0]["write_bytes_per_s"] is not None
    head = ["WRITTEN TO SSD", "hit", "from SSD", "written tok/s", "read tok/s"]
    rows = [[*head, *(["written GB/s"] if sized else []), *(["drives by wear", "by size"] if priced else [])]]
    for one in table["policies"]:
        row = [one["policy"], _share(one["hit_block"]), _share(one["hit_ssd"])]
        row.extend(_count(one[key]) for key in ("write_tokens_per_s", "read_tokens_per_s"))
        row.extend([words.gigabytes_per_second(one["write_bytes_per_s"])] if sized else [])
        row.extend([words.number(one[f"drives_by_{what}"]) for what in ("endurance", "capacity")] if priced else [])
        rows.append(row)
    tiers = f"DRAM {table['dram_blocks']:,.0f} blocks, SSD {table['ssd_blocks']:,.0f} blocks; hits: shares of blocks"
    return [*words.table(rows, frozenset(range(1, len(rows[0])))), f" {tiers}"]


# --- words --------------------------------------------------------------------------------------------


def _thinned(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """The rows that show where a curve rises: those where nothing changes, and the middle of long curves, left out."""
    kept = [
        row
        for before, row in zip([None, *rows], rows, strict=False)
        if before is None or row[key] is None or row["hit"] is None or row["hit"] > (before["hit"] or 0.0) + 5e-4
    ]
    return kept[-ROWS:]


def _time(seconds: float) -> str:
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2.0 * size or seconds == size != 86400.0:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _age(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} s" if value >= 100.0 else f"{value:.3g} s"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "-" if value is None else words.percent(value)


def _digits(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} x mean"


def _size(value: float | None) -> str:
    return "-" if value is None else words.gibibytes(value)
