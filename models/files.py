"""Reads YAML files into plain Python data with line numbers, and writes plain data as YAML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from models.errors import BadInput, Problem, shown
from models.reading import CORE, MAX_DEPTH, MAX_NODES, MAX_PROBLEMS, Builder, Document, control, resolve

MAX_BYTES = 4 * 2**20


def read(path: Path) -> Document:
    """The document in the file `path`. Raises BadInput with every problem that can be found."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise _bad("no such file", value=str(path)) from None
    except IsADirectoryError:
        raise _bad("is a directory, not a file", value=str(path)) from None
    except PermissionError:
        raise _bad("the file may not be read: permission denied", value=str(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _bad(f"the file cannot be read: {error}", value=str(path)) from None
    if len(data) > MAX_BYTES:
        raise _too_big(max(size, len(data)))
    return parse(data, str(path))


def parse(text: str | bytes, source: str = "<text>") -> Document:
    """The document in `text`, UTF-8 if bytes. Raises BadInput with every problem that can be found."""
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise _too_big(size)
    text = (_decoded(text) if isinstance(text, bytes) else text).removeprefix("\ufeff")
    controls = [
        Problem("", "a control character is in the text", found.group(), "printable text", line)
        for line, found in islice(_controls(text), MAX_PROBLEMS)
    ]
    if controls:
        raise BadInput(controls)
    return Builder().build(text, source)


def line_of(document: Document, path: Sequence[str | int]) -> int:
    """Line of the deepest part of `path` that the document has; of the document itself if none."""
    keys = tuple(path)
    while keys and keys not in document.lines:
        keys = keys[:-1]
    return document.lines.get(keys, 1)


def dump(data: Mapping[str, Any]) -> str:
    """YAML text that `parse` reads back as `data`: plain data with text keys, in their order.

    Raises TypeError for what is not plain data.
    """
    try:
        return yaml.dump(
            dict(data),
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            width=2**31,
            default_flow_style=False,
        )
    except yaml.representer.RepresenterError as error:
        raise TypeError(f"not plain data: {shown(error)}") from None


class _Dumper(yaml.SafeDumper):
    """Block style without aliases, with quotes where `resolve` would read something other than text."""

    def ignore_aliases(self, data: Any) -> bool:
        """True: what is repeated is written again."""
        return True


def _quoted_if_needed(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    plain = isinstance(resolve(text), str) and text.isprintable()
    return dumper.represent_scalar(CORE + "str", text, style=None if plain else '"')


_Dumper.add_representer(str, _quoted_if_needed)


def _controls(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    line, seen = 1, 0
    for found in control(text).finditer(text):
        line, seen = line + text.count("\n", seen, found.start()), found.start()
        yield line, found


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _bad(f"the file is not UTF-8 text: {error.reason}", line=line) from None


def _bad(message: str, value: str | None = None, line: int | None = None) -> BadInput:
    return BadInput([Problem("", message, value, None, line)])


def _too_big(size: int) -> BadInput:
    return _bad(f"the file holds {size:,} bytes; the limit is {MAX_BYTES:,} bytes (4 MiB)")


__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_PROBLEMS",
    "Document",
    "dump",
    "line_of",
    "parse",
    "read",
    "resolve",
]
