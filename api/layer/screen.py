"""The answer to a layer question as text: a block for each section."""

from typing import Any

from api import crossovers, words
from models.units import GIB

MIB = GIB / 1024.0
_SIDES = {"cpu": "the CPU", "gpu": "the GPU", "af": "AF", "pd": "PD"}


def render(found: dict[str, Any]) -> str:
    """Everything, section by section."""
    lines = [f"{found['name']}: {words.plural(len(found) - 2, 'question')}"]
    lines.extend(f"  Does not hold: {what}." for what in found["fails"])
    for name, block in _BLOCKS.items():
        if name in found:
            lines.extend(["", f" {name.upper()}", *block(found[name])])
            lines.extend(crossovers.lines(found[name].get("crossovers", [])))
    return "\n".join(lines)


def size(value: float) -> str:
    """Bytes in the unit that suits them."""
    for unit, least in (("GiB", GIB), ("MiB", MIB), ("KiB", 1024.0)):
        if value >= least:
            return f"{words.number(value / least, 4)} {unit}"
    return f"{words.number(value, 4)} B"


def took(value: float | None) -> str:
    """A time to four digits: layers differ by little."""
    if value is None or value == 0:
        return "-" if value is None else "0"
    unit, least = next((unit for unit in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)) if value >= unit[1]), ("ns", 1e-9))
    return f"{words.number(value / least, 4)} {unit}"


def _limit(factor: float | None) -> str:
    return "without limit" if factor is None else f"{words.number(factor, 4)} x"


# --- experts in host memory ---------------------------------------------------------------------------


def _offload(block: dict[str, Any]) -> list[str]:
    first = block["first_gpu_rows"]
    until = "the CPU is never slower" if first is None else f"the GPU is quicker from {words.number(first, 6)} rows on"
    lines = [
        f"  An expert has {size(block['expert_bytes'])} of weights; {until}.",
        f"  The CPU turns from reading to computing at {words.number(block['cpu_knee_rows'], 4)} rows, "
        f"the GPU at {words.number(block['gpu_knee_rows'], 4)}.",
        "",
    ]
    table = [["ROWS OF AN EXPERT", "experts", "on the CPU", "moved to the GPU", "CPU WAITS FOR", "QUICKER"]]
    for side in block["sides"]:
        times = [took(side["experts"] * side[key]) for key in ("cpu_s", "gpu_s")]
        row = [words.number(side["rows"], 6), str(side["experts"]), *times, side["cpu_waits_for"]]
        table.append([*row, _SIDES[side["quicker"]]])
    total = [took(block[key]) for key in ("cpu_s", "gpu_s")]
    table.append(["all in turn", "", *total, "", _SIDES[block["quicker"]]])
    lines.extend([*words.table(table, frozenset({1, 2, 3})), ""])
    where = " with one socket" if len(block["sockets"]) > 1 else ""
    lines.append(f"  Each expert where it is quicker: {took(block['best_s'])} for the layer{where}.")
    return [*lines, *_touched_lines(block), *_resident_lines(block["resident"]), *_demand_lines(block["demand"])]


def _touched_lines(block: dict[str, Any]) -> list[str]:
    touched, sockets = block["touched"], block["sockets"]
    read = took(touched["read_s"])
    count = words.plural(touched["experts"], "expert")
    lines = [f"  Reading {count}, {size(touched['bytes'])}, takes one socket {read}."]
    if touched["random_experts"] is not None:
        mean = words.number(touched["random_experts"], 5)
        lines.append(f"  Random choices would touch {mean} experts in the mean, {size(touched['random_bytes'])}.")
    if len(sockets) > 1:
        times = ", ".join(f"{one['socket']}: {took(one['seconds'])}" for one in sockets)
        lines.append(f"  Sockets at the same time: {times}; the layer waits for socket {block['busiest_socket']}.")
    return lines


def _resident_lines(resident: dict[str, Any] | None) -> list[str]:
    if resident is None:
        return []
    fit = "" if resident["fit"] is None else f"; {resident['fit']} would fit"
    times = [took(resident[key]) for key in ("in_turn_s", "overlapped_s")]
    return [
        f"  {resident['kept']} experts of each layer on the GPU take {size(resident['bytes'])}{fit}.",
        f"  The layer then takes {times[0]}, or {times[1]} at least if both sides work at once.",
    ]


def _demand_lines(demand: dict[str, Any] | None) -> list[str]:
    if demand is None:
        return []
    grows, ceiling = demand["growth_per_s"], words.number(demand["ceiling_per_s"], 5)
    kept = f"{words.number(grows, 5)} more wait each second" if grows else "none waits for long"
    return [
        f"  All weights take {size(demand['weights'])} of {size(demand['host_memory'])} in host memory.",
        f"  The CPU computes {ceiling} tokens/s at most; {words.number(demand['tokens_per_s'], 5)} arrive: {kept}.",
    ]


# --- exchanges and skew -------------------------------------------------------------------------------


def _exchange(block: dict[str, Any]) -> list[str]:
    table = [["STAGE", "at least", "BOUND BY", "bytes"]]
    for name in ("dispatch", "compute", "combine"):
        stage = block[name]
        if name == "compute":
            read = stage["read_s"]
            by = "reading" if read is not None and read > stage["compute_s"] else "computing"
            table.append([name, took(stage["seconds"]), f"{by}, {words.number(stage['rows'], 6)} rows", ""])
            continue
        edges = stage["edges"][:2] + (["..."] if len(stage["edges"]) > 2 else [])
        by = stage["binds"] + (f": {', '.join(edges)}" if stage["binds"] == "cut" else "")
        table.append([name, took(stage["seconds"]), by, size(stage["bytes"])])
    shares = f"{words.percent(block['exchange_share'])} of it in exchanges"
    row_times = [took(block[key]) for key in ("row_link_s", "row_compute_s")]
    table.append(["all in turn", took(block["staged_s"]), shares, ""])
    lines = [
        f"  The busiest card has {words.number(block['skew'], 4)} x the mean of "
        f"{words.number(block['mean_rows'], 6)} rows; {block['longest']} takes longest.",
        f"  A row takes {row_times[0]} on the link, {row_times[1]} on the card.",
        "",
        *words.table(table, frozenset({1, 3})),
        "",
    ]
    lines.append(f"  Cards and links bear {words.number(block['most_batches_per_s'], 4)} such batches/s at most.")
    lines.extend([*_micro_lines(block["micro_batches"]), *_message_lines(block["messages"]), ""])
    steps = [["WHAT NEXT", "all in turn", "saves"]]
    steps.extend([step["change"], took(step["staged_s"]), _signed(step["saving_s"])] for step in block["steps"])
    return [*lines, *words.table(steps, frozenset({1, 2}))]


def _signed(seconds: float) -> str:
    return "0" if abs(seconds) < 1e-12 else ("-" if seconds < 0 else "") + took(abs(seconds))


def _micro_lines(micro: dict[str, Any] | None) -> list[str]:
    if micro is None:
        return []
    return [
        f"  In {micro['batches']} micro-batches: {took(micro['seconds'])}, saving "
        f"{_signed(micro['saving_s'])}; gone when overlap slows both exchanges {_limit(micro['exchange_limit'])} or "
        f"the experts {_limit(micro['compute_limit'])}."
    ]


def _message_lines(messages: dict[str, Any] | None) -> list[str]:
    if messages is None:
        return []
    return [
        f"  A NIC runs out of {messages['binds']} first: a row has {size(messages['row_bytes'])}, the border is at "
        f"{size(messages['crossover_bytes'])}."
    ]


def _skew(block: dict[str, Any]) -> list[str]:
    mean, other = (words.number(block[key], 4) for key in ("expert_rows", "other_rows"))
    lines = [
        f"  {words.number(block['dispatches'], 9)} rows: {mean} of an expert in the mean, {other} of each not hot.",
        "",
    ]
    table = [
        [
            "CARDS",
            "experts each",
            "mean rows",
            "busiest",
            "over the mean",
            "idle",
            "receives",
            "at random over the mean",
        ]
    ]
    for one in block["degrees"]:
        receive, drawn = one["busiest_receive_s"], one["random_skew"]
        error = one["random_error"]
        table.append(
            [
                str(one["cards"]),
                words.number(one["experts_per_card"], 4),
                words.number(one["mean_rows"], 6),
                words.number(one["busiest_rows"], 6),
                words.percent(one["skew"] - 1.0),
                words.percent(one["idle_share"]),
                took(receive),
                "-" if drawn is None else f"{words.percent(drawn - 1.0)} +- {words.percent(error)}",
            ]
        )
    lines.extend(words.table(table, frozenset(range(8))))
    if len(block["degrees"]) > 1:
        mean, busiest = (words.number(block[key], 4) for key in ("mean_shrinks", "busiest_shrinks"))
        lines.extend(["", f"  From fewest to most cards the mean falls to 1/{mean}, the busiest card to 1/{busiest}."])
    return lines


# --- copies, handoffs, tiles, micro-batches -----------------------------------------------------------


def _copies(block: dict[str, Any]) -> list[str]:
    rows = [words.number(block[f"busiest_rows_{when}"], 6) for when in ("before", "after")]
    payback = block["payback_batches"]
    pays = "never" if payback is None else f"from batch {words.number(payback, 9)} on"
    cards = ", ".join(map(str, block["short_cards"]))
    lines = [
        f"  The busiest card: {took(block['before_s'])} a batch with {rows[0]} rows, "
        f"{took(block['after_s'])} with {rows[1]} after copying; saves {_signed(block['saving_s'])}.",
        f"  Before, it reads and writes {words.number(block['first_traffic_bytes'] / 1e6, 5)} MB a batch.",
        f"  Copying {size(block['copied_bytes'])} takes {took(block['copy_s'])}: it pays {pays}."
        if block["fits"]
        else f"  {size(block['copied_bytes'])} of copies have no room on card {cards}; without it they never pay.",
    ]
    for one in block["lasting"] if block["fits"] else []:
        says = "worth it" if one["worth"] else "not worth it"
        lines.append(f"  A hotspot of {one['batches']} batches wins {_signed(one['seconds'])}: {says}.")
    layers = block["layers"]
    if layers:
        names = ", ".join(map(str, layers["chosen"])) or "none"
        lines.append(
            f"  One more expert in every layer takes {size(layers['all_bytes'])}; within the memory, {names}: "
            f"{size(layers['bytes'])}, saving {took(layers['saving_s'])}."
        )
    return lines


def _separate(block: dict[str, Any]) -> list[str]:
    pd, af = block["pd"], block["af"]
    table = [["HANDED OVER", "bytes", "transfers", "time"]]
    table.append(["state of the input, once (PD)", size(pd["bytes"]), "1", took(pd["seconds"])])
    table.append(["the same in parts", size(pd["bytes"]), str(af["messages"]), took(pd["in_parts_s"])])
    table.append(["a step of one token (AF)", size(af["step_bytes"]), str(af["messages"]), took(af["step_s"])])
    table.append(["the prefill (AF)", size(af["prefill_bytes"]), str(af["messages"]), took(af["prefill_s"])])
    critical = block["critical_startup_s"]
    below = "at no startup" if critical is None else f"while a startup takes less than {took(critical)}"
    lines = [
        f"  One step against one handoff of PD: {_SIDES[block['step_quicker']]} is quicker; AF is, {below}.",
        f"  From step {block['af_dearer_from_step']:,} on, AF has taken longer than that handoff.",
        f"  The link carries {words.number(pd['most_per_s'], 5)} PD handoffs/s"
        + ("." if pd["needed"] is None else f"; the stated rate needs {words.number(pd['needed'] / 1e9, 5)} GB/s."),
        "",
        *words.table(table, frozenset({1, 2, 3})),
        "",
    ]
    rows = [["TOKENS OUT", "PD", "AF, decode alone", "over PD", "AF, prefill too", "QUICKER"]]
    for one in block["requests"]:
        over = one["decode_over_pd"]
        times = [took(one[key]) for key in ("pd_s", "decode_s")]
        ratio = "-" if over is None else f"{words.number(over, 4)} x"
        rows.append([f"{one['output']:,}", *times, ratio, took(one["af_s"]), _SIDES[one["quicker"]]])
    return [*lines, *words.table(rows, frozenset(range(5)))]


def _tiles(block: dict[str, Any]) -> list[str]:
    table = [["ROWS THAT RUN", "rows", "over valid ones", "work"]]
    named = {"valid": "valid ones", "non_empty": "experts with rows padded", "every": "every expert padded"}
    for key, name in named.items():
        ran = block[key]
        work = "-" if ran["flops"] is None else f"{words.number(ran['flops'] / 1e9, 5)} GFLOP"
        table.append([name, words.number(ran["rows"], 9), f"{words.number(ran['ratio'], 4)} x", work])
    return words.table(table, frozenset({1, 2, 3}))


def _pipeline(block: dict[str, Any]) -> list[str]:
    limits = ", ".join(f"{one['stage']} {_limit(one['factor'])}" for one in block["limits"])
    serial, joint, period, first = (took(block[key]) for key in ("serial_s", "pipelined_s", "period_s", "first_s"))
    lines = [
        f"  One stage at a time: {serial}; at the same time {joint}, the first micro-batch after {first}, then one "
        f"every {period}.",
        f"  {_signed(block['saving_s'])} may be added before nothing is saved; slower alone: {limits}.",
    ]
    if block["with_contention_s"] is not None:
        lines.append(f"  With the stated slowdown: {took(block['with_contention_s'])}.")
    if block["with_late_parts_s"] is not None:
        lines.append(f"  With parts that come late: done at {took(block['with_late_parts_s'])}.")
    for one in block["tokens"]:
        times = [took(one[key]) for key in ("seconds", "at_barrier_s")]
        lines.append(f"  Token {one['token']} goes on at {times[0]}, at a barrier at {times[1]}.")
    return lines


_BLOCKS = {
    "offload": _offload,
    "exchange": _exchange,
    "skew": _skew,
    "copies": _copies,
    "separate": _separate,
    "tiles": _tiles,
    "pipeline": _pipeline,
}
