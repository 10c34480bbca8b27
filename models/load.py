"""From a file to an instance: read, change, resolve, check. Every problem of a file is reported at once."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from models import blanks, files, later, references
from models.base import Described
from models.errors import BadInput, Problem, nearest, path_text, shown
from models.instance import Instance
from models.resolve import resolve
from models.workload import READ_AS, Workload

Keys = tuple[str | int, ...]
Asked = TypeVar("Asked", bound=Described)


def load(path: Path, changes: Iterable[str] = ()) -> Instance:
    """The instance in the file ``path``, after ``PATH=VALUE`` changes. Raises BadInput with every problem."""
    document = files.read(path)
    return build(document, changes, path.parent)


def build(document: files.Document, changes: Iterable[str] = (), base: Path | None = None) -> Instance:
    """The instance in a document that was read. Raises BadInput with every problem, each with its line.

    Files that it names are looked for in ``base``; without it none is read.
    """
    data = dict(document.data)
    changes = list(changes)
    for change in changes:
        data = changed(data, change)
    resolved, problems = resolve(data, base)
    unfilled = tuple(problem.path.rpartition(".")[0] + "." for problem in problems)
    problems.extend(references.check(resolved))
    instance: Instance | None = None
    try:
        instance = Instance.model_validate(resolved)
    except ValidationError as error:
        known = {problem.path for problem in problems}
        found = _joined([_problem(detail) for detail in error.errors(include_url=False)])
        for problem in found:  # what an unknown catalog name would have filled in is not missing too
            echo = problem.message == "missing" and problem.path.startswith(unfilled)
            if problem.path not in known and not echo:
                problems.append(problem)
    problems = _without_echoes(problems)
    if blank := list(blanks.places(data)):
        problems = blanks.explained(problems, blank)
    if len(problems) > files.MAX_PROBLEMS:
        more = f"{len(problems) - files.MAX_PROBLEMS:,} more problems are not shown"
        problems = [*problems[: files.MAX_PROBLEMS], Problem("", more)]
    if problems or instance is None:
        raise BadInput(_placed(problems, document, [change.partition("=")[0].strip() for change in changes]))
    return instance


def question(
    path: Path, top: type[Asked], check: Callable[[dict[str, Any]], Iterable[Problem]], changes: Iterable[str] = ()
) -> Asked:
    """A file that asks something else than an instance does, after changes. Raises BadInput with every problem.

    ``check`` looks at plain data, of which nothing is known yet, for what the types of ``top`` cannot see.
    """
    document, changes = files.read(path), list(changes)
    data = dict(document.data)
    for change in changes:
        data = changed(data, change)
    problems, asked = list(check(data)), None
    try:
        asked = top.model_validate(data)
    except ValidationError as error:
        known = {problem.path for problem in problems}
        found = _joined([_problem(detail, top) for detail in error.errors(include_url=False)])
        problems.extend(problem for problem in found if problem.path not in known)
    if problems or asked is None:
        names = [change.partition("=")[0].strip() for change in changes]
        raise BadInput(_placed(_without_echoes(problems)[: files.MAX_PROBLEMS], document, names))
    return asked


def _without_echoes(problems: list[Problem]) -> list[Problem]:
    """Drops "missing" where an unknown key was taken for a mistyped one."""
    meant = set()
    for problem in problems:
        guess = re.search(r'^unknown key; did you mean "(.*)"\?$', problem.message)
        if guess:
            meant.add(".".join(part for part in (problem.path.rpartition(".")[0], guess[1]) if part))
    return [problem for problem in problems if not (problem.message == "missing" and problem.path in meant)]


def _joined(problems: list[Problem]) -> list[Problem]:
    """One problem a place: where a value may be of several kinds, pydantic reports one for each."""
    joined: dict[str, Problem] = {}
    for problem in problems:
        first = joined.setdefault(problem.path, problem)
        if first is not problem and first.accepted and problem.accepted:
            joined[problem.path] = replace(first, accepted=f"{first.accepted}, or {problem.accepted}")
    return list(joined.values())


def _placed(problems: list[Problem], document: files.Document, changed_paths: list[str]) -> list[Problem]:
    """The problems with their lines, in the order of the file, each place and message once.

    What came by a change has no line.
    """
    lines = {path_text(keys): line for keys, line in document.lines.items()}
    placed = []
    for problem in dict.fromkeys(problems):
        path = problem.path
        while path and path not in lines:  # a missing key stands at the line of what should hold it
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        foreign = any((problem.path + ".").startswith((p + ".", p + "[")) for p in changed_paths)
        line = None if foreign else lines.get(path)
        placed.append(Problem(problem.path, problem.message, problem.value, problem.accepted, line))
    return sorted(placed, key=lambda problem: problem.line or 0)


def changed(data: dict[str, Any], change: str) -> dict[str, Any]:
    """``data`` with ``PATH=VALUE`` applied; the value is read as YAML. Raises BadInput."""
    path, equals, text = change.partition("=")
    path = path.strip()
    accepted = "PATH=VALUE, e.g. workloads.chat.rate=5/s"
    if not equals or not path or path.count(".") > 16:
        raise BadInput([Problem("--set", "not a change", change, accepted)])
    try:
        read = files.parse(f"value: {text}", "--set").data
    except BadInput as error:
        raise BadInput([Problem("--set", p.message, change, p.accepted) for p in error.problems]) from None
    if set(read) != {"value"}:
        raise BadInput([Problem("--set", "more than one value", change, accepted)])
    return _put(data, path.split("."), read["value"], path)


def _put(data: dict[str, Any], parts: list[str], value: object, path: str) -> dict[str, Any]:
    key, rest = parts[0], parts[1:]
    for length in range(len(parts), 0, -1):  # names may hold dots: the longest existing key wins
        if ".".join(parts[:length]) in data:
            key, rest = ".".join(parts[:length]), parts[length:]
            break
    if not rest:
        return {**data, key: value}
    below = data.get(key, [] if rest[0] == "0" else {})
    if below == [] and rest[0] == "0":
        return {**data, key: [_put({}, rest[1:], value, path) if rest[1:] else value]}
    if isinstance(below, list) and rest[0].isascii() and rest[0].isdigit() and int(rest[0]) < len(below):
        index = int(rest[0])
        item = below[index]
        if len(rest) > 1 and isinstance(item, dict):
            value = _put(item, rest[1:], value, path)
        elif len(rest) > 1:
            raise BadInput([Problem(path, "--set goes below a value that has no keys", shown(item))])
        return {**data, key: [*below[:index], value, *below[index + 1 :]]}
    if not isinstance(below, dict):
        raise BadInput([Problem(path, "--set goes below a value that has no keys", shown(below))])
    return {**data, key: _put(below, rest, value, path)}


def _problem(detail: ErrorDetails, top: Any = Instance) -> Problem:
    keys: Keys = tuple(key for key in detail["loc"] if key not in _UNION_TAGS)
    path, kind, value = path_text(keys), detail["type"], detail.get("input")
    context = detail.get("ctx", {})
    if kind == "missing":
        return Problem(path, "missing")
    if kind == "extra_forbidden":
        if top is Instance and later.key_is_later(keys[:-1], str(keys[-1])):
            return Problem(path, "not supported yet")
        known = _fields(keys[:-1], top)
        guess = nearest(str(keys[-1]), known)
        return Problem(path, "unknown key" + (f"; {guess}" if guess else ""), None, ", ".join(known) or None)
    if kind == "model_type":
        return Problem(path, "is not a mapping of keys", shown(value), ", ".join(_fields(keys, top)) or None)
    if top is Instance and later.word_is_later(keys, value):
        return Problem(path, "not supported yet", shown(value), context.get("expected"))
    reason, right = _IN_WORDS.get(kind, (context.get("reason"), context.get("accepted")))
    accepted = right or context.get("expected")
    if kind in _BOUNDS:
        accepted = f"{context[_BOUNDS[kind][0]]} {_BOUNDS[kind][1]}"
    message = str(reason or detail["msg"])
    message = message[0].lower() + message[1:] if message[:1].isupper() and message[1:2].islower() else message
    shown_value = None if kind in ("too_short", "missing") else shown(value)
    return Problem(path, message, shown_value, str(accepted) if accepted else None)


_IN_WORDS: dict[str, tuple[str, str | None]] = {
    "literal_error": ("is none of the words that can stand here", None),
    "too_short": ("is empty", "at least 1 item"),
    "too_long": ("has too many items", None),
    "string_type": ("is not text", "a string, in quotes where it reads as something else"),
    "bool_type": ("is not a boolean", "true or false"),
    "int_type": ("is not a whole number", "a whole number"),
    "list_type": ("is not a list", "a list, e.g. [one, two]"),
    "dict_type": ("is not a mapping of keys", "keys, each with a value"),
}
"""What pydantic finds -> what is wrong and what would be right, for people who do not know Python."""
_BOUNDS = {
    "greater_than_equal": ("ge", "or more"),
    "less_than_equal": ("le", "or less"),
    "too_long": ("max_length", "items or fewer"),
}
_UNION_TAGS = frozenset({"literal['unlimited']", "constrained-int", "literal['max']", "int"})


def _fields(keys: Keys, top: Any) -> list[str]:
    """Keys that the schema knows at a place, following its types from ``top`` on."""
    model = top
    for key in keys:
        model = _plain(model)
        if hasattr(model, "model_fields"):
            found = [f.annotation for n, f in model.model_fields.items() if key in (n, f.alias)]
            model = found[0] if found else None
        else:
            model = (getattr(model, "__args__", None) or (None,))[-1]
    model = _plain(model)
    fields = getattr(model, "model_fields", {})
    also = READ_AS if model is Workload else ()
    return [*(field.alias or name for name, field in fields.items()), *also]


def _plain(annotation: Any) -> Any:
    """The type inside `X | None` and `Annotated[X, ...]`."""
    if hasattr(annotation, "__metadata__"):
        return _plain(annotation.__origin__)
    inner = [arg for arg in getattr(annotation, "__args__", ()) if arg is not type(None)]
    optional = type(None) in getattr(annotation, "__args__", ())
    return _plain(inner[0]) if optional and inner else annotation
