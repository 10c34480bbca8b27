"""Blanks: the text `???` where a value has yet to be filled in, as `inferplan new` writes it."""

from collections.abc import Iterable, Iterator
from typing import Any

from models.errors import Problem, path_text

BLANK = "???"
MESSAGE = "left blank"
_KEPT = ("unknown key", "not supported yet")
"""Problems of a key itself, which filling in its value would not mend."""


def places(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Where a document is blank, in its order."""
    if isinstance(data, str) and data.strip() == BLANK:
        yield path_text(path)
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from places(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from places(value, (*path, index))


def explained(problems: Iterable[Problem], blank: Iterable[str]) -> list[Problem]:
    """The problems with one for each blank place: that it is blank, and what its own error says would fit."""
    left = dict.fromkeys(blank)
    kept: list[Problem] = []
    fitting: dict[str, list[str]] = {place: [] for place in left}
    for problem in problems:
        if problem.path not in left:
            kept.append(problem)
        elif problem.message.startswith(_KEPT):
            kept.append(problem)
            del left[problem.path]
        elif problem.accepted:
            fitting[problem.path].append(problem.accepted)
    for place in left:  # text would pass any check where text is accepted: no error of its own
        accepted = ", or ".join(dict.fromkeys(fitting[place])) or "a value of your own"
        kept.append(Problem(place, MESSAGE, BLANK, accepted))
    return kept
