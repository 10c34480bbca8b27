"""Looking at plain data of which nothing is known yet: checks of a document pass over values of the wrong type."""

from collections.abc import Iterator
from typing import Any, TypeGuard

from models.errors import Problem, path_text, shown

Path = tuple[str | int, ...]


def mapping(value: object) -> dict[str, Any]:
    """``value`` if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and entries that are mappings themselves."""
    for name, entry in mapping(value).items():
        if isinstance(entry, dict):
            yield name, entry


def is_whole(value: object) -> TypeGuard[int]:
    """Whether ``value`` is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def problem(path: Path, message: str, value: object = None, accepted: str | None = None) -> Problem:
    """A problem at ``path``."""
    return Problem(path_text(path), message, None if value is None else shown(value), accepted)
