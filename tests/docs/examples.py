"""Examples in the documentation: found, run, and compared with what the page shows.

The convention, page by page, in the order of the page and in one directory a page:

- A ``yaml`` block whose first line is ``# NAME.yaml`` is written to that file; ``# NAME.yaml, continued`` appends.
- A ``json`` block, which can hold no comment, is written to the file that ``<!-- file: NAME.json -->`` above it names.
- A ``csv`` block begins with ``# NAME.csv`` too, a line that is not part of the file.
- A ``python`` block whose first line is ``# NAME.py`` is written to that file.
- A ``console`` block holds commands after ``$ `` and their output, standard error included. Known commands:
  ``inferplan ...``, ``make demo`` (its recipe is run) and ``echo $?``. A backslash at the end continues a line. What
  a command prints may go to a file of the page, ``inferplan ... | python NAME.py``.
- A line ``...`` in the output stands for any number of lines. Times of the solve may differ.
"""

import contextlib
import difflib
import gc
import io
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from api import cli

ROOT = Path(__file__).resolve().parents[2]
ELISION = "..."
_BLOCK = re.compile(
    r"^(?:<!-- file: ([\w.-]+) -->\n)?```(yaml|json|console|csv|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"# ([\w.-]+\.(?:yaml|json|csv|py))(, continued)?")
_TIME = re.compile(r"(?<=  )\d+\.\d\d s$|(?<=\"solve_seconds\": )[\d.e-]+")


def pages() -> list[Path]:
    """Every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Command:
    """A command as the page shows it, and the output that follows there."""

    shown: str
    words: tuple[str, ...]
    output: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """A fenced block: the place of its inside in the page's text, and what it holds."""

    start: int
    end: int
    language: str
    text: str
    file: str = ""
    """File that the comment above the block names."""


def blocks(text: str) -> Iterator[Block]:
    """The yaml, json, csv, python and console blocks of a page."""
    for match in _BLOCK.finditer(text):
        yield Block(match.start(3), match.end(3), match[2], match[3], match[1] or "")


def commands(text: str) -> Iterator[Command]:
    """The commands of a console block. Raises ValueError when output comes before a command."""
    lines = text.splitlines()
    while lines:
        shown = [lines.pop(0)]
        if not shown[0].startswith("$ "):
            raise ValueError(f"not a command: {shown[0]!r}")
        while shown[-1].endswith("\\"):
            shown.append(lines.pop(0))
        output = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        joined = " ".join(line.removesuffix("\\").strip() for line in shown).removeprefix("$ ")
        yield Command("\n".join(shown), tuple(shlex.split(joined)), tuple(output))


class Shell:
    """Runs the commands of one page in one directory, without starting a process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.last = 0
        (directory / "instances").symlink_to(ROOT / "instances")

    def write(self, block: Block) -> None:
        """Write a yaml, json, csv or python block to the file that is named for it, if one is."""
        if block.file:
            (self.directory / block.file).write_text(block.text)
            return
        match = _FILE.fullmatch(block.text.partition("\n")[0])
        if match:
            path = self.directory / match[1]
            before = path.read_text() if match[2] else ""
            text = block.text.partition("\n")[2] if block.language == "csv" else block.text
            path.write_text(before + text)

    def run(self, words: Sequence[str]) -> list[str]:
        """The lines that a command prints."""
        if list(words) == ["make", "demo"]:
            return [line for recipe in _recipe("demo") for line in self._line_of_make(recipe)]
        if list(words) == ["echo", "$?"]:
            return [str(self.last)]
        if words[0] != "inferplan":
            raise ValueError(f"an example may not run {words[0]!r}")
        printed = io.StringIO()
        before = Path.cwd()
        os.chdir(self.directory)
        read_by = words[words.index("|") + 1 :] if "|" in words else []
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                self.last = cli.main(words[1 : words.index("|")] if read_by else words[1:])
            if read_by:
                printed = self._piped(read_by, printed.getvalue())
        finally:
            os.chdir(before)
            gc.unfreeze()  # the command line switches collection off, which a long test run would feel
            gc.enable()
        return printed.getvalue().splitlines()

    def _piped(self, words: Sequence[str], text: str) -> io.StringIO:
        """What a Python file of the page prints when it reads a text."""
        python, file = words
        if python != "python":
            raise ValueError(f"an example may not run {python!r}")
        printed, before = io.StringIO(), sys.stdin
        sys.stdin = io.StringIO(text)
        try:
            with contextlib.redirect_stdout(printed):
                runpy.run_path(str(self.directory / file), run_name="__main__")
        finally:
            sys.stdin = before
        return printed

    def _line_of_make(self, recipe: str) -> Iterator[str]:
        line = recipe.removeprefix("@").replace("$(BIN)", ".venv/bin")
        if not recipe.startswith("@"):
            yield line
        yield from self.run(shlex.split(line.removeprefix(".venv/bin/")))


def _recipe(target: str) -> list[str]:
    text = (ROOT / "Makefile").read_text()
    match = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"the Makefile has no target {target}")
    return [line.removeprefix("\t") for line in match[1].splitlines()]


def normal(line: str) -> str:
    """A line with the times of the solve blotted out."""
    return _TIME.sub("#", line.rstrip())


def _pieces(shown: Sequence[str]) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == ELISION:
            pieces.append([])
        else:
            pieces[-1].append(line)
    return pieces


def matches(shown: Sequence[str], real: Sequence[str]) -> bool:
    """Whether the output on the page is the real one, times and elisions aside."""
    return [normal(line) for line in shown] == [normal(line) for line in renewed(shown, real)]


def renewed(shown: Sequence[str], real: Sequence[str]) -> list[str]:
    """The output as the page should show it: real lines where it shows lines, elisions where it has them."""
    pieces = _pieces(shown)
    if len(pieces) == 1:
        return list(real)
    lines: list[str] = []
    at = 0
    for number, piece in enumerate(pieces):
        if number:
            lines.append(ELISION)
        size = len(piece)
        last = len(real) - size
        if number == 0:
            start = 0
        elif number == len(pieces) - 1:
            start = last
        else:
            start = max(range(at, max(at, last) + 1), key=lambda i: (_alike(piece, real[i : i + size]), -i))
        lines.extend(real[start : start + size])
        at = start + size
    return lines


def _alike(one: Sequence[str], other: Sequence[str]) -> float:
    return difflib.SequenceMatcher(None, "\n".join(one), "\n".join(other), autojunk=False).ratio()
