"""What the tests need to know of a Markdown page: headings, links, tables."""

import re
from collections.abc import Iterator

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CELL = re.compile(r"(?<!\\)\|")
_MARKER = re.compile(r"<!-- model: (\w+) -->")


def prose(text: str) -> str:
    """The page without its fenced blocks."""
    return _FENCED.sub("", text)


def links(text: str) -> list[str]:
    """Targets of the links and pictures of a page."""
    return [match[1] for match in _LINK.finditer(prose(text))]


def anchors(text: str) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def rows(text: str) -> Iterator[list[str]]:
    """Cells of the table rows of a text, heads and rules left out."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith("|") and not line.startswith("|--") and not following.startswith("|--"):
            yield [cell.strip() for cell in _CELL.split(line.strip())[1:-1]]


def code(cell: str) -> str:
    """The text of a cell that is code and nothing else, else empty."""
    match = re.fullmatch(r"`([^`]+)`", cell)
    return match[1] if match else ""


def described_models(text: str) -> dict[str, list[list[str]]]:
    """Table rows by the model that the comment above the table names."""
    parts = _MARKER.split(text)
    return {
        name: list(rows(re.split(r"^#", body, maxsplit=1, flags=re.MULTILINE)[0]))
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }
