"""Reads a JSON file of a stranger: its size, depth and numbers are checked before anything is made of it."""

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from models.errors import BadInput, Problem

STANDARD_INPUT = "-"


def read(path: Path, option: str, most_bytes: int) -> dict[str, Any]:
    """The object in a file, or on standard input for `-`. Raises BadInput."""
    data = _bytes(path, option, most_bytes)
    if len(data) > most_bytes:
        raise BadInput([Problem(option, f"more than {most_bytes:,} bytes", str(path), "a smaller file")])
    try:
        found = json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise BadInput([Problem(option, f"not valid JSON: {error.msg}", str(path), None, error.lineno)]) from None
    except UnicodeDecodeError as error:
        raise BadInput([Problem(option, f"not UTF-8 text: {error.reason}", str(path))]) from None
    except RecursionError:
        raise BadInput([Problem(option, "nested too deep", str(path))]) from None
    except ValueError as error:  # NaN, Infinity, or a number of thousands of digits
        message = str(error) if isinstance(error, _NotFiniteError) else "a number has too many digits"
        raise BadInput([Problem(option, f"not valid JSON: {message}", str(path))]) from None
    if not isinstance(found, dict):
        raise BadInput([Problem(option, "the top level is not an object", str(path), "a JSON object: {...}")])
    return found


class _NotFiniteError(ValueError):
    """A number that JSON does not have."""


def _refuse(word: str) -> NoReturn:
    raise _NotFiniteError(f"{word} is not a number")


def _bytes(path: Path, option: str, most_bytes: int) -> bytes:
    try:
        if str(path) == STANDARD_INPUT:
            return sys.stdin.buffer.read(most_bytes + 1)
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > most_bytes:
                raise BadInput([Problem(option, f"more than {most_bytes:,} bytes", str(path), "a smaller file")])
            return file.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput([Problem(option, f"cannot be read: {reason.lower()}", str(path))]) from None
