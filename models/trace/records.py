"""Lines of a trace as requests, each checked; what is wrong is told with its line."""

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from models.errors import BadInput, Problem, shown
from models.trace.layouts import NEEDED, Layout, found

MOST_TOKENS = 10**9
"""Of one request."""
MOST_SECONDS = 1e13
_LENGTH = f"a whole number from 0 to {MOST_TOKENS:,}"
_TIME = "a number, or a date such as 2026-01-31 12:00:00.5"
_ID = "whole numbers from 0 to 2^64 - 1"
_INT = {int}


class Request(NamedTuple):
    """One request as the file tells it."""

    time: float
    """In s, as the file counts."""
    input: int
    output: int
    blocks: list[int] | None
    """Ids of the blocks of its input, where the file has them."""
    session: str | None
    line: int


class Refused(Exception):  # noqa: N818 - reads as what happened
    """A line that cannot be used; ``problem`` says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


Parsed = Iterator[Request | Problem]


def requests(lines: Iterable[tuple[int, bytes]], layout: Layout, stated: Mapping[str, str]) -> Parsed:
    """Requests of a file in their order, and a problem in place of each line that cannot be used.

    Raises BadInput where the file has not the keys or columns of its format.
    """
    return _of_json(lines, layout, stated) if layout.kind == "jsonl" else _of_csv(lines, layout, stated)


def _of_json(lines: Iterable[tuple[int, bytes]], layout: Layout, stated: Mapping[str, str]) -> Parsed:
    read: Callable[[Any, int], Request] | None = None
    for line, text in lines:
        if text.isspace():
            continue
        try:
            record = _object(text, line)
            if read is None:
                read = _reader(layout, found(layout, _keys(layout, record), stated))
            yield read(record, line)
        except Refused as refused:
            yield refused.problem


def _keys(layout: Layout, record: Mapping[str, Any]) -> list[str]:
    """Keys that a file has: those of its format, where that knows them, and those of its first request."""
    certain = (names[0] for field, names in layout.names.items() if field in NEEDED and len(names) == 1)
    return list(dict.fromkeys([*record, *certain]))


def _object(text: bytes, line: int) -> dict[str, Any]:
    try:
        record = json.loads(text if line > 1 else text.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as error:  # not UTF-8 either, and numbers of thousands of digits
        cut = "" if text.endswith(b"\n") else "; the file may be cut off"
        said = error.msg if isinstance(error, json.JSONDecodeError) else str(error).partition(";")[0]
        value = text[:200].decode("utf-8", "replace").rstrip()
        raise Refused(Problem("", f"is not JSON: {said}{cut}", value, "one JSON object a line", line)) from None
    if not isinstance(record, dict):
        raise Refused(Problem("", "is not a JSON object", shown(record), "one JSON object a line", line))
    return record


def _of_csv(lines: Iterable[tuple[int, bytes]], layout: Layout, stated: Mapping[str, str]) -> Parsed:
    numbers: list[int] = []
    rows = csv.reader(_decoded(lines, numbers), skipinitialspace=True)
    try:
        head = [cell.strip().removeprefix("\ufeff") for cell in next(rows, [])]
    except csv.Error as error:
        raise BadInput([Problem("FILE", f"is not CSV: {error}", None, "a head line", numbers[-1])]) from None
    names = found(layout, head, stated)
    read = _reader(layout, names)
    at = {name: head.index(name) for name in names.values()}
    last = max(at.values())
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Problem("", f"is not CSV: {error}", None, "cells between commas", numbers[-1])
            continue
        if not row or (len(row) == 1 and not row[0].strip()):
            continue
        try:
            if len(row) <= last:
                said = f"has {len(row)} cells, the head line {len(head)}; the file may be cut off"
                raise Refused(Problem("", said, ",".join(row), f"{len(head)} cells", numbers[-1]))
            yield read({name: row[i].strip() for name, i in at.items()}, numbers[-1])
        except Refused as refused:
            yield refused.problem


def _decoded(lines: Iterable[tuple[int, bytes]], numbers: list[int]) -> Iterator[str]:
    """Lines as text; the number of the one read last stands in ``numbers``."""
    for line, text in lines:
        numbers[:] = [line]
        yield text.decode("utf-8", "replace").replace("\0", "\ufffd")


# --- one request --------------------------------------------------------------------------------------


def _reader(layout: Layout, names: Mapping[str, str]) -> Callable[[Any, int], Request]:
    """A function that makes a request of the cells of a line, by their names. It raises Refused."""
    time, taken, given = (names[field] for field in ("time", "input", "output"))
    blocks, session = names.get("blocks"), names.get("session")
    per_second, text, size = layout.per_second, layout.kind == "csv", layout.block_tokens

    def read(cells: Any, line: int) -> Request:
        when = _time(cells.get(time), time, per_second, line)
        length, answer = cells.get(taken), cells.get(given)
        if type(length) is not int or not 0 <= length <= MOST_TOKENS:
            length = _length(length, taken, text, line)
        if type(answer) is not int or not 0 <= answer <= MOST_TOKENS:
            answer = _length(answer, given, text, line)
        ids = None if blocks is None else cells.get(blocks)
        if blocks is not None and ids is not None:
            ids = _ids(ids, blocks, length, size, text, line)
        who = None if session is None else cells.get(session)
        return Request(when, length, answer, ids, None if who in (None, "") else str(who), line)

    return read


def _time(value: Any, name: str, per_second: float, line: int) -> float:
    kind, number = type(value), value
    if kind is not int and kind is not float:
        if value is None or value == "":
            raise Refused(Problem(name, "is missing", None, _TIME, line))
        number = _time_of(value)
        if number is None:  # a date is in seconds already
            number = _date(value) * per_second
    elif kind is int and abs(value) > 1e25:
        number = math.inf
    seconds = number / per_second
    if not -MOST_SECONDS <= seconds <= MOST_SECONDS:  # NaN neither
        raise Refused(Problem(name, "is not a time", shown(value), _TIME, line))
    return float(seconds)


def _time_of(value: Any) -> float | None:
    """A number in text; None where it is none; infinite where it is no text either."""
    if not isinstance(value, str):
        return math.inf
    try:
        return float(value)
    except ValueError:
        return None


def _date(text: str) -> float:
    """Seconds since 1970 of a date; infinite where it is none."""
    try:
        stamp = datetime.fromisoformat(text)
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return math.inf


def _length(value: Any, name: str, text: bool, line: int) -> int:
    """A length that is not simply a whole number within bounds."""
    number: Any = value
    if text and isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    if value is None or value == "":
        raise Refused(Problem(name, "is missing", None, _LENGTH, line))
    if isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number <= MOST_TOKENS:
        whole = int(number)
        if whole == number:
            return whole
    negative = isinstance(number, int | float) and not isinstance(number, bool) and number < 0
    raise Refused(Problem(name, "is negative" if negative else "is no length", shown(value), _LENGTH, line))


def _ids(value: Any, name: str, length: int, size: int | None, text: bool, line: int) -> list[int]:
    """Ids of blocks: whole numbers, distinct, as many as the length has blocks."""
    ids = value
    if text and isinstance(value, str):
        parts = value.strip("[]").replace(",", " ").replace(";", " ").split()
        ids = [int(part) if part.isascii() and part.isdigit() and len(part) <= 20 else part for part in parts]
    if not isinstance(ids, list):
        raise Refused(Problem(name, "is no list of ids", shown(value), _ID, line))
    if not ids:
        ids = []
    elif set(map(type, ids)) != _INT or min(ids) < 0 or max(ids) >= 2**64:
        bad = next(one for one in ids if type(one) is not int or not 0 <= one < 2**64)
        raise Refused(Problem(name, "holds something else than ids", shown(bad), _ID, line))
    elif len(set(ids)) != len(ids):
        said = "names a block twice; a block stands for everything before it too"
        raise Refused(Problem(name, said, shown(value), "each block once", line))
    if size is not None and not length // size <= len(ids) <= -(-length // size):
        low, high = length // size, -(-length // size)
        said = f"holds {len(ids):,} blocks for {length:,} tokens"
        accepted = f"{low:,}" if low == high else f"{low:,} or {high:,}"
        raise Refused(Problem(name, said, shown(value), f"{accepted} blocks of {size} tokens; --block-tokens", line))
    return list(ids)
