"""One YAML document from parser events: plain data and the line of every key, whatever a stranger wrote.

Scalars follow the YAML 1.2 core schema in its decimal part: `on`, `yes`, `1:30`, `012` and `0x10` are
text. Of YAML's features, merge keys and tags outside the core are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, NoReturn

import yaml

from models.blanks import BLANK
from models.errors import BadInput, Problem, path_text, shown

MAX_DEPTH = 64
MAX_NODES = 100_000
"""Mappings, lists and scalars of a document, those repeated by an alias counted each time."""
MAX_PROBLEMS = 100

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"

Keys = tuple[str | int, ...]


@dataclass(frozen=True)
class Document:
    """What a file holds.

    data: dicts with text keys, lists, str, int, float, bool and None; floats may be infinite or NaN.
    lines: line, counted from 1, of each key and list item by its path; () is the document itself.
    source: file name, for messages.
    """

    data: dict[str, Any]
    lines: dict[Keys, int]
    source: str


_ASCII_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@cache
def _any_control() -> re.Pattern[str]:  # a set of this size takes longer to compile than a small file to read
    return re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def control(text: str) -> re.Pattern[str]:
    """What finds control characters in ``text``."""
    return _ASCII_CONTROL if text.isascii() else _any_control()


_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
CORE = "tag:yaml.org,2002:"
_TAGGED: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
    "str": (str,),
}
_LONGEST_INT = 30
"""Digits; longer ones become floats, since Python refuses to read integers of many thousand digits."""


def resolve(text: str) -> str | int | float | bool | None:
    """The value of a plain (unquoted) scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text) if len(text.lstrip("+-")) <= _LONGEST_INT else float(text)
    if _FLOAT.fullmatch(text) and not text.lstrip("+-").isdigit():  # 012 is text
        return float(text)
    return float(text.replace(".", "")) if _SPECIAL.fullmatch(text) else text


@dataclass
class _Open:
    """A mapping or list whose end has not come yet."""

    container: dict[str, Any] | list[Any]
    keys: Keys
    anchor: str | None
    nodes_before: int
    height: int = 1  # levels of containers, itself included
    key: str | None = None  # of the value that comes next
    keep: bool = True  # whether that value is wanted; not under a key that was refused
    first: dict[str, int] = field(default_factory=dict)  # key -> its line


class _Done(NamedTuple):
    """What an anchor names."""

    value: Any
    nodes: int
    height: int


class _StopError(Exception):
    """Reading cannot go on; the reason was reported."""


class Builder:
    """Builds one document from parser events with a stack of its own, so that depth is no danger."""

    def __init__(self) -> None:
        self.root: Any = None
        self.documents = self.nodes = 0
        self.lines: dict[Keys, int] = {}
        self.problems: list[Problem] = []
        self.stack: list[_Open] = []
        self.anchors: dict[str, _Done | None] = {}  # None while the anchored container is open

    def build(self, text: str, source: str) -> Document:
        """The document in ``text``. Raises BadInput."""
        try:
            for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                self._take(event)
        except _StopError:
            pass
        except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter two: \UFFFFFFFF
            mark = getattr(error, "problem_mark", None)
            parts = (getattr(error, "context", None), getattr(error, "problem", None))
            reason = ", ".join(part for part in parts if part) or shown(error)
            line = mark.line + 1 if mark is not None else None
            # libyaml, reading ahead, may come to a limit of its own before the one here.
            too_deep = "nesting depth" in reason
            message = _TOO_DEEP if too_deep else f"not valid YAML: {reason}"
            blank = line is not None and BLANK in "".join(text.splitlines()[line - 1 : line])
            accepted = f'"{BLANK}" in quotes: inside braces and brackets a blank needs them' if blank else None
            self.problems.append(Problem("", message, None, accepted, line))
        if not self.problems and self.root is None:
            self.problems.append(Problem("", "the file is empty"))
        if not self.problems and not isinstance(self.root, dict):
            what = "a list" if isinstance(self.root, list) else "a single value"
            self.problems.append(Problem("", f"the top level is {what}", None, "a mapping, e.g. name: chat", 1))
        if self.problems:
            raise BadInput(self.problems)
        return Document(self.root, self.lines, source)

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                self._stop("a second document starts here", line, accepted="one document a file")
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()
        elif isinstance(event, yaml.NodeEvent):
            top = self.stack[-1] if self.stack else None
            if top is not None and isinstance(top.container, dict) and top.key is None:
                self._key(top, event, line)
            else:
                self._node(event, self._place(line), line)

    def _place(self, line: int) -> Keys:
        """Path of the node that comes next; notes its line unless its key did."""
        if not self.stack:
            keys: Keys = ()
        elif isinstance((top := self.stack[-1]).container, list):
            keys = (*top.keys, len(top.container))
        else:
            keys = (*top.keys, top.key or "")
        self.lines.setdefault(keys, line)
        return keys

    def _key(self, top: _Open, event: Any, line: int) -> None:
        key, plain, refusal = getattr(event, "value", "?"), False, ""
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, top.keys, line)
            plain = event.tag is None and event.implicit[0]
            if value is None or isinstance(value, bool):
                refusal = "a key must be text; quote it"
            if event.anchor:
                self.anchors[event.anchor] = _Done(value, 1, 0)
        else:
            refusal = "a key must be text, not an alias, a list or a mapping"
        if key == "<<" and plain:
            refusal = "merge keys are not supported; write it out"
        if refusal:
            self._report(refusal, line, top.keys, key)
        elif key in top.first:
            self._report(f"the key is there twice, first on line {top.first[key]}", line, (*top.keys, key))
        top.keep = not refusal and key not in top.first
        if isinstance(event, yaml.CollectionStartEvent):
            self._open(event, top.keys, line)  # its end makes it the key, see _add
            return
        top.key = key
        if top.keep:
            top.first[key] = line
            self.lines[(*top.keys, key)] = line

    def _node(self, event: Any, keys: Keys, line: int) -> None:
        if isinstance(event, yaml.CollectionStartEvent):
            self._open(event, keys, line)
        elif isinstance(event, yaml.ScalarEvent):
            self._count(1, line)
            value = self._scalar(event, keys, line)
            if event.anchor:
                self.anchors[event.anchor] = _Done(value, 1, 0)
            self._add(value, 0)
        elif (done := self.anchors.get(event.anchor)) is not None:
            self._count(done.nodes, line)
            self._check_depth(done.height, line)
            self._add(_copy(done.value), done.height)
        else:
            inside = event.anchor in self.anchors
            message = "the alias is inside its own anchor" if inside else "the alias has no anchor before it"
            self._report(message, line, keys, f"*{event.anchor}")
            self._add(None, 0)

    def _scalar(self, event: Any, keys: Keys, line: int) -> Any:
        text, tag = event.value, event.tag
        if control(text).search(text):
            self._report("a control character is in the text", line, keys, text)
        if tag is None:
            return resolve(text) if event.implicit[0] else text
        name = tag.removeprefix(CORE)
        if tag == name or name not in _TAGGED:
            self._report("tags are not supported", line, keys, tag, "the value without a tag")
            return text
        value: Any = text if name == "str" else resolve(text)
        if type(value) not in _TAGGED[name]:
            self._report(f"the value does not fit its tag !!{name}", line, keys, text)
        elif name == "float":
            return float(value)
        return value

    def _open(self, event: Any, keys: Keys, line: int) -> None:
        is_list = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in (None, CORE + ("seq" if is_list else "map")):
            self._report("tags are not supported", line, keys, event.tag, "the value without a tag")
        self._check_depth(1, line)
        self._count(1, line)
        if event.anchor:
            self.anchors[event.anchor] = None
        self.stack.append(_Open([] if is_list else {}, keys, event.anchor, self.nodes - 1))

    def _close(self) -> None:
        done = self.stack.pop()
        if done.anchor:
            self.anchors[done.anchor] = _Done(done.container, self.nodes - done.nodes_before, done.height)
        self._add(done.container, done.height)

    def _add(self, value: Any, height: int) -> None:
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        top.height = max(top.height, height + 1)
        if isinstance(top.container, list):
            top.container.append(value)
        elif top.key is None:
            top.key = "?"  # a container as a key, reported when it began
        else:
            if top.keep:
                top.container[top.key] = value
            top.key = None

    def _check_depth(self, more: int, line: int) -> None:
        if len(self.stack) + more > MAX_DEPTH:
            self._stop(_TOO_DEEP, line)

    def _count(self, more: int, line: int) -> None:
        self.nodes += more
        if self.nodes > MAX_NODES:
            self._stop(f"more than {MAX_NODES:,} values, counting repeats by aliases", line)

    def _report(
        self, message: str, line: int, keys: Keys, value: str | None = None, accepted: str | None = None
    ) -> None:
        self.problems.append(Problem(path_text(keys), message, value, accepted, line))
        if len(self.problems) >= MAX_PROBLEMS:
            self._stop("too many problems; the rest of the file was not read", line)

    def _stop(self, message: str, line: int, accepted: str | None = None) -> NoReturn:
        self.problems.append(Problem("", message, None, accepted, line))
        raise _StopError


def _copy(value: Any) -> Any:
    """An independent copy, so that a later change of one repeat leaves the others; depth is limited."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
