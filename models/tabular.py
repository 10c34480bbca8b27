"""CSV files that an instance names: histograms of lengths, times of arrivals. Paths are relative to the instance."""

import csv
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from models.errors import BadInput, Problem, path_text, shown

Place = tuple[str | int, ...]
MAX_BYTES = 256 * 2**20
"""Largest file that is read."""
MOST_CLASSES = 5000
"""Rows of a histogram at most."""
_TIMES = ("timestamp", "time", "arrival", "arrived_at", "seconds")


def histogram(name: object, place: Place, base: Path | None) -> list[dict[str, Any]]:
    """Classes of a CSV with the columns input, output, and share or count (cached too, if it is there).

    Raises BadInput with every row that cannot be read.
    """
    rows = list(islice(_rows(name, place, base), MOST_CLASSES + 1))
    head = set(rows[0][1]) if rows else set()
    weight = "share" if "share" in head else "count"
    if not rows or not {"input", "output", weight} <= head:
        accepted = "a head line with input, output, and share or count; then a row for each class"
        raise _bad(place, "has not the columns of a histogram", ", ".join(head) or "no rows", accepted)
    if len(rows) > MOST_CLASSES:
        raise _bad(
            place,
            f"more than {MOST_CLASSES:,} rows",
            shown(name),
            f"at most {MOST_CLASSES:,}: join neighbouring lengths",
        )
    problems: list[Problem] = []
    classes, weights = [], []
    for line, row in rows:
        one = {key: _whole(row.get(key), key, place, line, problems) for key in ("input", "output")}
        if row.get("cached"):
            one["cached"] = _whole(row["cached"], "cached", place, line, problems, least=0)
        classes.append(one)
        weights.append(_weight(row.get(weight), weight, place, line, problems))
    total = math.fsum(weights)
    if not problems and weight == "share" and abs(total - 1.0) > 1e-6:
        problems.append(
            Problem(path_text(place), "the shares do not add up to 1", f"{total:.9g}", "shares that do, or count")
        )
    if not problems and total <= 0.0:
        problems.append(Problem(path_text(place), "all counts are 0", shown(name), "some requests"))
    if problems:
        raise BadInput(problems[:100])
    pairs = zip(classes, weights, strict=True)
    return [{"share": share / total, **one} for one, share in pairs if share > 0.0]


def times(name: object, place: Place, base: Path | None) -> list[float]:
    """Sorted seconds of a CSV with a column of times: numbers of seconds, or dates as 2026-01-31 12:00:00.5.

    Raises BadInput where there are fewer than two, or a row that cannot be read.
    """
    found: list[float] = []
    column, dates = "", False
    for line, row in _rows(name, place, base):
        if not column:
            known = [key for key in row if key.lower() in _TIMES]
            if not known:
                accepted = "one of the columns " + ", ".join(_TIMES)
                raise _bad(place, "has no column of times", ", ".join(row), accepted)
            column = known[0]
            dates = not is_number(row.get(column) or "")
        text = row.get(column) or ""
        if is_number(text) is dates:
            kind = "dates" if dates else "seconds"
            raise _bad(
                place, f"row in line {line} of the file: not of the kind of the rows before", text, f"{kind} throughout"
            )
        found.append(_time(text, place, line))
    if len(found) < 2:
        raise _bad(place, f"holds {len(found)} arrivals", shown(name), "two or more")
    return sorted(found)


def _rows(name: object, place: Place, base: Path | None) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and cells of each row. Raises BadInput where the file cannot be read."""
    if not isinstance(name, str) or not name or "\0" in name:
        raise _bad(place, "is not the name of a file", name, "a CSV file beside the instance")
    if base is None:
        raise _bad(place, "files are not read here", name, "the classes themselves, under lengths")
    path = base / name
    try:
        if not path.is_file() and path.exists():
            raise _bad(place, "is not a file that can be read whole", name, "a CSV file, relative to the instance file")
        if path.stat().st_size > MAX_BYTES:
            raise _bad(place, f"holds {path.stat().st_size:,} bytes", name, f"at most {MAX_BYTES:,}")
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            for row in reader:
                yield (
                    reader.line_num,
                    {str(k).strip(): (v or "").strip() for k, v in row.items() if isinstance(v, str | None)},
                )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _bad(place, f"cannot be read: {reason}", name, "a CSV file, relative to the instance file") from None


def _whole(text: str | None, key: str, place: Place, line: int, problems: list[Problem], least: int = 1) -> int:
    try:
        value = int(text or "")
    except ValueError:
        value = least - 1
    if least <= value <= 10**9:
        return value
    accepted = f"a whole number from {least}"
    problems.append(Problem(path_text(place), f"row in line {line} of the file: {key} is no length", text, accepted))
    return least


def _weight(text: str | None, key: str, place: Place, line: int, problems: list[Problem]) -> float:
    percent = (text or "").endswith("%")
    try:
        value = float((text or "").removesuffix("%")) * (0.01 if percent else 1.0)
    except ValueError:
        value = math.nan
    if 0.0 <= value <= 1e15:
        return value
    problems.append(Problem(path_text(place), f"row in line {line} of the file: {key} is no weight", text, "0 or more"))
    return 0.0


def is_number(text: str) -> bool:
    """Whether Python reads a cell as a number; infinities and NaN are ones too."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _time(text: str, place: Place, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        try:
            stamp = datetime.fromisoformat(text[:26])  # nanoseconds are more than it reads
            value = (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
        except ValueError:
            value = math.nan
    if math.isfinite(value) and abs(value) <= 1e13:
        return value
    message = f"row in line {line} of the file: not a time"
    raise _bad(place, message, text, "seconds, or a date such as 2026-01-31 12:00:00.5")


def _bad(place: Place, message: str, value: object, accepted: str) -> BadInput:
    return BadInput([Problem(path_text(place), message, shown(value), accepted)])
