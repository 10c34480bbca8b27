"""The table of mechanisms: every name in it exists where it says, and says rightly whether anything calls it."""

import importlib
import inspect
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.docs.examples import ROOT
from tests.docs.markdown import code, rows

PAGE = ROOT / "docs" / "reference" / "mechanisms.md"
HEADINGS = {"Deployment and placement": 22, "State, tiers, routing": 20, "Life cycle": 11}
"""Rows below each heading."""
WITHOUT = "not modelled:"
_NAME = re.compile(r"`([^`]+)`(\*?)")


def sections() -> dict[str, list[list[str]]]:
    parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {heading: list(rows(body)) for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for top in ("solver", "api") for path in (ROOT / top).rglob("*.py")}


@cache
def rows_of_the_model() -> frozenset[str]:
    pages = [
        (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8") for name in ("formulation.md", "tiers.md")
    ]
    return frozenset(code(row[1]) for page in pages for row in rows(page) if len(row) == 3 and code(row[1]))


@cache
def refused() -> frozenset[str]:
    return frozenset(re.findall(r'"([^"\n]*)"', (ROOT / "models" / "later.py").read_text(encoding="utf-8")))


def wrong(row: Sequence[str]) -> Iterator[str]:
    """What a row of the table says that is not so."""
    if len(row) != 5 or not all(row):
        yield "a row has five cells, none of them empty"
        return
    said, _, left_out = row[2].partition(WITHOUT)
    names = [(match[1], bool(match[2])) for match in _NAME.finditer(said)]
    files = [match[1] for match in _NAME.finditer(row[3])]
    if not names and not left_out.strip():
        yield f"no name, and no {WITHOUT!r} either"
    yield from (
        f"{match[1]}: no key or word that is refused" for match in _NAME.finditer(left_out) if match[1] not in refused()
    )
    if names and len(files) not in (1, len(names)):
        yield "one file for all names, or one for each"
        return
    for (name, alone), file in zip(names, files * len(names) if len(files) == 1 else files, strict=True):
        yield from _missing(name, alone, file)


def _missing(name: str, alone: bool, file: str) -> Iterator[str]:
    path = ROOT / file
    if not path.is_file():
        yield f"{file}: no such file"
    elif name in rows_of_the_model():
        word = re.escape(name.partition("[")[0])
        if not re.search(rf'"{word}[\["]', path.read_text(encoding="utf-8")):
            yield f"{file} makes no row {name}"
    else:
        thing: object = importlib.import_module(file.removesuffix(".py").replace("/", "."))
        for part in name.split("."):
            if not hasattr(thing, part) and part not in getattr(thing, "__annotations__", {}):
                yield f"{file} has no {name}"
                return
            thing = getattr(thing, part, None)
        if not inspect.isfunction(thing) and not inspect.isclass(thing):
            return
        if inspect.getsourcefile(thing) != str(path):
            yield f"{name} is not written in {file}"
        elif (
            inspect.isfunction(thing)
            and alone is _called(name, path)
            and (alone or file.startswith("solver/formulas/"))
        ):
            yield f"{name} is called by {'something, yet has' if alone else 'nothing, yet has no'} a *"


def _called(name: str, path: Path) -> bool:
    """Whether a file that is not of the formulas, and not its own, calls a function.

    A function that stands alone is called where its file is named too: others may have a function of the same name.
    """
    apart = ROOT / "solver" / "formulas"
    call = re.compile(rf"(?<!def )\b{re.escape(name.rpartition('.')[2])}\(")
    named = re.compile(r"" if "." in name else rf"\b{path.stem}\b")
    others = (text for file, text in sources().items() if file != path and file.parent != apart)
    return any(call.search(text) and named.search(text) for text in others)


def test_every_mechanism_has_a_row_below_its_heading() -> None:
    found = sections()
    assert {heading: len(table) for heading, table in found.items()} == HEADINGS
    assert sum(map(len, found.values())) >= 50


@pytest.mark.parametrize("row", [row for table in sections().values() for row in table], ids=lambda row: row[0][:40])
def test_what_a_row_names_exists(row: list[str]) -> None:
    assert list(wrong(row)) == []


def _row(names: str, files: str) -> list[str]:
    return ["a mechanism", "$x$", names, files, "9.1"]


FLOWS, STAGES = "`solver/milp/flows.py`", "`solver/formulas/stages.py`"


@pytest.mark.parametrize(
    ("names", "files", "said"),
    [
        ("`roofline_second`", STAGES, "has no roofline_second"),
        ("`roofline_seconds`", "`solver/formulas/stage.py`", "no such file"),
        ("`roofline_seconds`", "`solver/latency.py`", "has no roofline_seconds"),
        ("`Law`", "`solver/routing/choose.py`", "is not written in"),
        ("`TailLaw.mean`", "`solver/routing/law.py`", "has no TailLaw.mean"),
        ("`Law.median`", "`solver/routing/law.py`", "has no Law.median"),
        ("`RoutePath.step`", "`models/routing.py`", "has no RoutePath.step"),
        ("`handof[workload,stage@group]`", FLOWS, "has no handof[workload,stage@group]"),
        ("`handoff[workload]`", FLOWS, "has no handoff[workload]"),
        ("`cards[group]`", FLOWS, "makes no row cards[group]"),
        ("`Law`, `behind`*, `in_turn`", "`solver/routing/law.py`, `solver/routing/law.py`", "one file for all names"),
        ("`roofline_seconds`*", STAGES, "called by something"),
        ("`stalled_steps`", STAGES, "called by nothing"),
        ("somehow", STAGES, "no name"),
        ("not modelled: ", "-", "no name"),
        ("not modelled: `targets`", "-", "targets: no key or word that is refused"),
        ("", STAGES, "five cells"),
    ],
)
def test_a_wrong_row_is_noticed(names: str, files: str, said: str) -> None:
    [problem] = wrong(_row(names, files))
    assert said in problem


@pytest.mark.parametrize(
    ("names", "files"),
    [
        ("`roofline_seconds`, `handoff[workload,stage@group]`", f"{STAGES}, {FLOWS}"),
        ("`Law.quantile`, `in_turn`", "`solver/routing/law.py`"),
        ("`RoutePath.steps`; not modelled: `adapters`", "`models/routing.py`"),
        ("`behind`*", "`solver/routing/law.py`"),  # another file has a function of this name, which is called
        ("not modelled: anything", "-"),
    ],
)
def test_a_right_row_is_accepted(names: str, files: str) -> None:
    assert list(wrong(_row(names, files))) == []
