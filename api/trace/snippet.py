"""A trace as the workload of an instance: plain data, and YAML to paste."""

from typing import Any

from api import words
from models.reuse import Reuse
from solver.trace.fitted import Fitted

PER_LINE = 6
"""Points of a curve."""
INDENT = "    "


def document(found: Fitted) -> dict[str, Any]:
    """The keys of a workload as instances take them, and how they came about."""
    rate = {} if found.rate is None else {"rate": f"{found.rate:.6g}/s"}
    workload: dict[str, Any] = {**rate, "input": found.input, "output": found.output}
    if found.parts:
        workload["reuse"] = [_part(part) for part in found.parts]
    return {
        "workload": workload,
        "steady": found.steady,
        "hot_in_conversation": found.folded,
        "tokens_per_hit_found": found.capped,
    }


def _part(part: Reuse) -> dict[str, Any]:
    if part.kind == "system-prompt":
        told: dict[str, Any] = {"kind": part.kind, "tokens_per_hit": part.tokens_per_hit}
        told.update({"share": float(f"{part.share:.6g}")} if part.share < 1.0 else {})
        return {**told, "distinct": part.distinct} if part.distinct > 1 else told
    return {
        "kind": part.kind,
        "tokens_per_hit": part.tokens_per_hit,
        "tokens_kept": part.tokens_kept,
        "again": part.again,
        "curve": [{"age": exact(one.age), "share": one.share} for one in part.curve or []],
    }


def render(told: dict[str, Any]) -> str:
    """The keys as YAML, to stand below the name of a workload."""
    found, set_by = told["instance_reuse"], told["parameters"]
    workload, warm = found["workload"], set_by["warm_up"]["requests"]
    counted = f"after a warm-up of {words.plural(warm, 'request')}" if warm else "all requests, no warm-up"
    lines = [f"# {told['file']}: {words.plural(told['requests'], 'request')}, {counted}"]
    lines.append(
        "# as if the requests before the trace had been like those in it"
        if found["steady"]
        else "# as counted: nothing was read before the trace begins"
    )
    lines.extend(f"{key}: {workload[key]}" for key in ("rate", "input", "output") if key in workload)
    if "rate" not in workload:
        lines.append("rate:    # all requests come at once")
    if "reuse" not in workload:
        return _indented([*lines, "# nothing comes back"])
    if found["hot_in_conversation"]:
        lines.append("# hot blocks are part of the conversation: fewer requests read them than find any history")
    if found["tokens_per_hit_found"] is not None:
        tokens = f"{found['tokens_per_hit_found']:,}"
        lines.append(
            f"# requests that find any find {tokens} tokens; as many as the mean input has room for, more often"
        )
    lines.append("reuse:")
    for part in workload["reuse"]:
        lines.extend(_prompt(part) if part["kind"] == "system-prompt" else _conversation(part))
    return _indented(lines)


def _prompt(part: dict[str, Any]) -> list[str]:
    known = {**part, **({"share": _percent(part["share"])} if "share" in part else {})}
    return [f"  - {{{', '.join(f'{key}: {value}' for key, value in known.items())}}}"]


def _conversation(part: dict[str, Any]) -> list[str]:
    points = [f"{one['age']}: {_percent(one['share'])}" for one in part["curve"]]
    rows = [", ".join(points[i : i + PER_LINE]) for i in range(0, len(points), PER_LINE)]
    return [
        "  - kind: conversation",
        f"    tokens_per_hit: {part['tokens_per_hit']}",
        f"    tokens_kept: {part['tokens_kept']}",
        f"    again: {_percent(part['again'])}",
        "    curve: {",
        *(f"      {row}{',' if i + 1 < len(rows) else ''}" for i, row in enumerate(rows)),
        "    }",
    ]


def _indented(lines: list[str]) -> str:
    return "\n".join(INDENT + line for line in lines)


def _percent(share: float) -> str:
    return f"{100.0 * share:.4g} %"


def exact(seconds: float) -> str:
    """A time that reads back as it is: 2 min, 94.5 s."""
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size and seconds % size == 0.0:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.6g} s"
