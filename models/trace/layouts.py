"""Formats of traces: which names their fields have, in which unit they count time, how large their blocks are."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from models.errors import BadInput, Problem, nearest

FIELDS = ("time", "input", "output", "blocks", "session")
NEEDED = ("time", "input", "output")
UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units of time that a file may count in: how many make a second."""


@dataclass(frozen=True)
class Layout:
    """A format."""

    name: str
    kind: Literal["jsonl", "csv"]
    names: Mapping[str, tuple[str, ...]]
    """Field -> names that it may have, compared without regard to case, blanks and underscores."""
    per_second: float = 1.0
    """Units of time in a second."""
    block_tokens: int | None = None


_USUAL = {
    "time": ("timestamp", "time", "arrival", "arrived_at", "arrival_time", "arrival_timestamp", "seconds", "ts"),
    "input": (
        *("input_length", "input", "input_tokens", "prompt_tokens", "context_tokens", "request_tokens"),
        *("num_prefill_tokens", "prompt_len", "input_len", "isl"),
    ),
    "output": (
        *("output_length", "output", "output_tokens", "completion_tokens", "generated_tokens", "response_tokens"),
        *("num_decode_tokens", "output_len", "osl"),
    ),
    "blocks": ("hash_ids", "blocks", "block_ids", "block_hashes"),
    "session": ("session_id", "session", "chat_id", "conversation_id", "conversation", "user"),
}
LAYOUTS = {
    layout.name: layout
    for layout in (
        Layout(
            "mooncake",
            "jsonl",
            {
                "time": ("timestamp",),
                "input": ("input_length",),
                "output": ("output_length",),
                "blocks": ("hash_ids",),
                "session": ("session_id",),
            },
            1e3,
            512,
        ),
        Layout(
            "bailian",
            "jsonl",
            {
                "time": ("timestamp",),
                "input": ("input_length",),
                "output": ("output_length",),
                "blocks": ("hash_ids",),
                "session": ("chat_id",),
            },
            1.0,
            16,
        ),
        Layout(
            "azure",
            "csv",
            {"time": ("TIMESTAMP",), "input": ("ContextTokens",), "output": ("GeneratedTokens",)},
        ),
        Layout(
            "burstgpt",
            "csv",
            {
                "time": ("Timestamp",),
                "input": ("Request tokens",),
                "output": ("Response tokens",),
                "session": ("Session ID",),
            },
        ),
        Layout("jsonl", "jsonl", _USUAL),
        Layout("csv", "csv", _USUAL),
    )
}


def folded(name: str) -> str:
    """A name without case, blanks, underscores and dashes."""
    return "".join(c for c in name.casefold() if c not in " _-\ufeff")


def detected(lines: Sequence[bytes]) -> Layout:
    """The format of a file, from its first lines. Raises BadInput where there is none."""
    first = next((line.strip().removeprefix(b"\xef\xbb\xbf") for line in lines if line.strip()), b"")
    if not first:
        raise BadInput([Problem("FILE", "holds no requests", None, "a line for each request")])
    if first.startswith(b"["):
        said = "one JSON object a line, as jq -c '.[]' writes them"
        raise BadInput([Problem("FILE", "begins with a JSON array", None, said, 1)])
    if first.startswith(b"{"):
        return LAYOUTS[_of_keys(lines)]
    head = {folded(cell.strip().strip('"')) for cell in first.decode("utf-8", "replace").split(",")}
    for name in ("azure", "burstgpt"):
        if {folded(LAYOUTS[name].names[field][0]) for field in NEEDED} <= head:
            return LAYOUTS[name]
    return LAYOUTS["csv"]


def _of_keys(lines: Sequence[bytes]) -> str:
    """By the first line that has the keys of a format; lines that cannot be read are told of later."""
    others = False
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            if {"chat_id", "parent_chat_id", "input_length"} <= record.keys():
                return "bailian"
            if {"timestamp", "input_length"} <= record.keys():
                return "mooncake"
            others = True
    return "jsonl" if others else "mooncake"


def changed(layout: Layout, columns: Mapping[str, str], unit: str | None, block_tokens: int | None) -> Layout:
    """A format with names, unit and block size that the user states. Raises BadInput for fields that there are not."""
    problems = [
        Problem("--columns", f"no such field; {nearest(field, FIELDS)}".rstrip("; "), field, ", ".join(FIELDS))
        for field in columns
        if field not in FIELDS
    ]
    if unit is not None and unit not in UNITS:
        problems.append(Problem("--time-unit", "not a unit of time that is read", unit, ", ".join(UNITS)))
    if problems:
        raise BadInput(problems)
    return replace(
        layout,
        names={**layout.names, **{field: (name,) for field, name in columns.items()}},
        per_second=layout.per_second if unit is None else UNITS[unit],
        block_tokens=block_tokens or layout.block_tokens,
    )


def found(layout: Layout, present: Sequence[str], stated: Mapping[str, str]) -> dict[str, str]:
    """Field -> its name in the file. Raises BadInput where one that is needed, or stated, is missing."""
    by_folded = {folded(name): name for name in reversed(present)}
    names: dict[str, str] = {}
    problems = []
    for field, accepted in layout.names.items():
        name = next((by_folded[folded(name)] for name in accepted if folded(name) in by_folded), None)
        if name is not None:
            names[field] = name
        elif field in stated or field in NEEDED:
            where = "--columns" if field in stated else "FILE"
            said = f"has no {'key' if layout.kind == 'jsonl' else 'column'} for {field}"
            such = f"{' or '.join(accepted[:4])}; or --columns {field}=NAME"
            problems.append(Problem(where, said, ", ".join(present[:12]), such))
    if problems:
        raise BadInput(problems)
    return names
