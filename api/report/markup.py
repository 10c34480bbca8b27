"""HTML as text that cannot forget to escape: whatever is not Html already is escaped where it goes in."""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

MOST_ROWS = 150
"""Rows of a table; the plan as JSON has them all."""

LONGEST = 2000
"""Characters of one text; a name or a note that is longer is cut."""
WHOLE = 30
"""Characters of a cell that stay on one line; longer text gets a wide cell."""


class Html(str):
    """Text that is HTML already; only this module and constants make it."""

    __slots__ = ()


NOTHING = Html("")


def escape(text: str, most: int = LONGEST) -> Html:
    """Text as HTML. Characters that a browser would act on, or that UTF-8 has not, are written as escapes."""
    if isinstance(text, Html):
        return text
    if len(text) > most:
        text = text[: most - 1] + "…"
    if not text.isprintable():
        text = "".join(
            character
            if character.isprintable() or character in "\n\t"
            else character.encode("unicode_escape").decode("ascii")
            for character in text
        )
    return Html(html.escape(text))


def join(parts: Iterable[str]) -> Html:
    """Parts one after the other."""
    return Html("".join(escape(part) for part in parts))


def tag(name: str, *inside: str, **attributes: str) -> Html:
    """An element; `class_` is `class`, and underscores in other names of attributes are hyphens."""
    shown = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{shown}>{join(inside)}</{name}>")


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[int] = ()) -> Html:
    """A table whose first column names its rows; columns in ``numbers`` are aligned to the right."""
    if not rows:
        return NOTHING
    right = frozenset(numbers)

    def cell(index: int, text: str) -> Html:
        whole = isinstance(text, Html) or len(text) <= WHOLE
        kind = "number" if index in right else "whole" if whole else "text"
        return tag("td", text, class_=kind) if index else tag("th", text, scope="row", class_=kind)

    titles = join(
        tag("th", title, scope="col", **({"class_": "number"} if index in right else {}))
        for index, title in enumerate(head)
    )
    shown = [tag("tr", *(cell(index, text) for index, text in enumerate(row))) for row in rows[:MOST_ROWS]]
    note = NOTHING
    if len(rows) > MOST_ROWS:
        note = tag("p", f"{len(rows) - MOST_ROWS:,} more rows are in the plan as JSON (--out).", class_="note")
    inside = tag("table", tag("caption", caption), tag("thead", tag("tr", titles)), tag("tbody", *shown))
    # A wide table scrolls inside its own frame; the frame takes the focus so that keys can scroll it.
    return join([tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption), note])


def bullets(items: Iterable[str]) -> Html:
    """A list."""
    listed = [tag("li", item) for item in items]
    return tag("ul", *listed) if listed else NOTHING


def details(summary: str, *inside: str) -> Html:
    """A part that opens on demand; empty when there is nothing inside."""
    return tag("details", tag("summary", summary), *inside) if any(inside) else NOTHING


def data(value: Any) -> Html:
    """JSON for a script element: no text in it can end the element."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Html(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
