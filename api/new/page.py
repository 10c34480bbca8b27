"""Lines of a YAML file with comments beside them, which `models.files` reads back."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field

from models import files

_COLUMN = 44
"""Where comments beside values begin."""
_WIDTH = 116
Scalar = str | int | bool


@dataclass
class Page:
    """Lines, written from top to bottom."""

    lines: list[str] = field(default_factory=list)

    def key(self, depth: int, key: str, comment: str = "") -> None:
        """A key whose values stand below it."""
        self._line(depth, _pair(key, 0).removesuffix(" 0"), comment)

    def value(self, depth: int, key: str, value: Scalar | Sequence[Scalar], comment: str = "") -> None:
        """A key and its value; lists stand in brackets."""
        if isinstance(value, str | int):
            self._line(depth, _pair(key, value), comment)
            return
        items = ", ".join(_pair("k", item).removeprefix("k: ") for item in value)
        self._line(depth, _pair(key, 0).removesuffix("0") + f"[{items}]", comment)

    def say(self, depth: int, text: str) -> None:
        """A comment of its own, folded where it is long."""
        indent = "  " * depth + "# "
        self.lines += textwrap.wrap(
            text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
        )

    def gap(self) -> None:
        """An empty line."""
        self.lines.append("")

    def text(self) -> str:
        """The whole page."""
        return "\n".join(self.lines) + "\n"

    def _line(self, depth: int, text: str, comment: str) -> None:
        line = "  " * depth + text
        self.lines.append(f"{line.ljust(_COLUMN - 2)}  # {comment}" if comment else line)


def _pair(key: str, value: Scalar) -> str:
    """`key: value` with quotes where they are needed."""
    return files.dump({key: value}).rstrip("\n")
