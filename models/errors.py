"""Errors that inferplan raises on purpose.

    Exception
    `-- InferplanError      anything reported on purpose; the message is for the person at the keyboard
        `-- BadInput        a file or value the user wrote is wrong; .problems says what and where

Whatever else escapes is a defect of the program, not of its input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
SHOWN_CHARACTERS = 80
"""Longest text of the user's that a message repeats."""


def shown(value: object, limit: int = SHOWN_CHARACTERS) -> str:
    """The text of `value` on one line, at most `limit` characters, safe to print.

    Cut text ends in an ellipsis. Characters that a terminal would act on (line breaks, escapes,
    direction marks, lone surrogates) are written as Python escapes.
    """
    if isinstance(value, str):
        text = value
    elif value is None or value is True or value is False:
        text = "null" if value is None else str(value).lower()  # as the input file spells them
    elif isinstance(value, int) and value.bit_length() > 4 * limit:
        text = hex(value)  # str() raises ValueError on integers of more than 4300 digits
    elif isinstance(value, list | tuple | dict):
        text = f"{{{len(value)} keys}}" if isinstance(value, dict) else f"[{len(value)} items]"
    else:
        text = str(value)
    # Cut once before escaping (a megabyte need not be escaped) and once after (escapes are longer).
    text = "".join(_printable(character) for character in text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def path_text(parts: Sequence[str | int]) -> str:
    """A place in the input as people write it: ("pools", 0, "gpu") gives "pools[0].gpu"."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + shown(part)
    return text


@dataclass(frozen=True)
class Problem:
    """One thing wrong with the input.

    path: where in the input, "workloads.chat.rate"; empty for the input as a whole.
    message: what is wrong, a sentence fragment without a full stop.
    value: the offending value as the user wrote it, cut to 80 characters on construction.
    accepted: what would have been right.
    line: line of the file, counted from 1, where known.
    """

    path: str
    message: str
    value: str | None = None
    accepted: str | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        if self.value is not None:
            object.__setattr__(self, "value", shown(self.value))

    def __str__(self) -> str:
        """One line: `line 12  workloads.chat.rate = "3.5": message; accepted: ...`."""
        place = self.path
        if self.value is not None:
            place += f'{" = " if place else ""}"{self.value}"'
        return (
            (f"line {self.line}  " if self.line is not None else "")
            + (f"{place}: " if place else "")
            + self.message
            + (f"; accepted: {self.accepted}" if self.accepted is not None else "")
        )

    def as_json(self) -> dict[str, object]:
        """The problem as a JSON object with the keys path, line, value, message and accepted."""
        return {
            "path": self.path,
            "line": self.line,
            "value": self.value,
            "message": self.message,
            "accepted": self.accepted,
        }


class InferplanError(Exception):
    """Anything inferplan reports on purpose."""


class BadInput(InferplanError):  # noqa: N818 - reads as what happened
    """The user's input is wrong; `problems` holds everything found, in the order found.

    Raises ValueError if constructed without a problem: an empty report would tell nobody anything.
    """

    problems: tuple[Problem, ...]

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        if not self.problems:
            raise ValueError("BadInput needs at least one problem")
        super().__init__(self.problems)  # args as given, so that the error survives pickling

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def tried(read: Callable[[], T], problems: list[Problem]) -> T | None:
    """What ``read`` gives, or None and its problems beside the others."""
    try:
        return read()
    except BadInput as error:
        problems.extend(error.problems)
        return None


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean "A100-SXM-80GB"?` for the known name most like `name`, or "" if none is close.

    Letter case is ignored in the comparison; the answer is spelled as known.
    """
    import difflib  # here, since only a mistake needs it

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    wanted = name[:SHOWN_CHARACTERS].casefold()  # the comparison takes time quadratic in the length
    close = [wanted] if wanted in folded else []
    close = close or [known for known in folded if len(wanted) > 2 and known.startswith(wanted)]  # H200: not B200
    close = close or difflib.get_close_matches(wanted, folded, n=1)
    return f'did you mean "{shown(folded[close[0]])}"?' if close else ""
