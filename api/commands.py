"""The commands, one function each: they load, run and print; what they need is imported when they run."""

import argparse
import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from api.exits import INFEASIBLE, SOLVED, STOPPED
from models.errors import BadInput, Problem

if TYPE_CHECKING:
    from solver.sweep import Axis


def later(options: argparse.Namespace) -> int:
    """A command of the contract that is not built yet. Raises BadInput."""
    raise BadInput([Problem("command line", f"`inferplan {options.command}` is not supported yet")])


def _print(document: Any) -> None:
    print(json.dumps(document, indent=2, allow_nan=False))


def solve(options: argparse.Namespace) -> int:
    """Solve, print or write the plan; 0, 3 or 4 by its status."""
    from api.run import interruptible
    from api.screen import render
    from models.load import load
    from solver.limits import Limits
    from solver.solve import Options
    from solver.solve import solve as best

    if options.file is None:
        return _examples(options)
    instance = load(options.file, options.changes)
    limits = Limits(options.time_limit, options.gap, options.seed)
    plan = interruptible(lambda: best(instance, Options(limits, options.plan_only)), limits)
    document = plan.as_json()
    if options.out is not None:
        save(options.out, json.dumps(document, indent=2, allow_nan=False) + "\n", "--out")
    if options.html is not None:
        from api.report import render as report

        save(options.html, report(plan, instance), "--html")
    if options.json:
        _print(document)
    else:
        print(render(plan, instance))
    return {"infeasible": INFEASIBLE, "stopped": STOPPED}.get(plan.status, SOLVED)


def _examples(options: argparse.Namespace) -> int:
    """The instances that come with the program, each with what it asks."""
    from models import catalog, files

    paths = [path for folder in ("examples", "chapter") for path in sorted(catalog.INSTANCES.glob(f"{folder}/*.yaml"))]
    found = [(path, files.read(path).data) for path in paths]
    if options.json:
        _print({"examples": [{"file": str(path), "about": data.get("about", "")} for path, data in found]})
    else:
        print("inferplan solve FILE; examples:")
        for path, data in found:
            print(f"  {path}\n    {data.get('about', '')}")
    return SOLVED


def save(path: Path, text: str, option: str) -> None:
    """The whole file or none of it: written beside its place and moved there; devices and pipes are written to."""
    import tempfile

    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            if path.is_dir():
                raise IsADirectoryError(0, "is a directory")
            path.write_text(text, encoding="utf-8")
            return
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".inferplan-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(beside, (path.stat().st_mode if path.exists() else 0o666 & ~_umask()) & 0o777)
            os.replace(beside, path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput([Problem(option, f"cannot be written: {reason}", str(path))]) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def new(options: argparse.Namespace) -> int:
    """Write an instance file from a list of nodes, a model and what arrives."""
    from api.new.command import new as write

    return write(options)


def experts(options: argparse.Namespace) -> int:
    """Replicas of experts onto cards, from measured loads."""
    from api.experts.command import experts as place

    return place(options)


def check(options: argparse.Namespace) -> int:
    """What was understood of an instance; 0 for a valid file."""
    from api import tables
    from models.load import load
    from solver.check import check as look

    found = look(load(options.file, options.changes))
    _print(found) if options.json else print(tables.check(found))
    return SOLVED


def compare(options: argparse.Namespace) -> int:
    """Every scheme alone; 4 when one of them was stopped."""
    from api import tables
    from api.run import interruptible
    from models.load import load
    from solver.compare import compare as rows_of
    from solver.limits import Limits
    from solver.tiers.without import rows as tiers_of

    instance = load(options.file, options.changes)
    limits = Limits()
    rows, tiers = interruptible(lambda: (rows_of(instance, limits), tiers_of(instance, limits)), limits)
    if options.json:
        document = {"instance": instance.name, "rows": [row.model_dump(mode="json") for row in rows]}
        _print(document | ({"tiers": [row.model_dump(mode="json") for row in tiers]} if tiers else {}))
    else:
        print(tables.compare(instance.name, rows, tiers))
    statuses = [*(row.status for row in rows), *(row.status for row in tiers)]
    return STOPPED if "stopped" in statuses else SOLVED


def explain(options: argparse.Namespace) -> int:
    """The plan with its reasons, or why there is none; 0 whenever that can be said."""
    from api.explain import render
    from api.run import interruptible
    from models.load import load
    from solver.limits import Limits
    from solver.solve import Options
    from solver.solve import solve as best

    instance = load(options.file, options.changes)
    limits = Limits()
    plan = interruptible(lambda: best(instance, Options(limits)), limits)
    _print(plan.as_json()) if options.json else print(render(plan, instance))
    return STOPPED if plan.status == "stopped" else SOLVED


def sweep(options: argparse.Namespace) -> int:
    """A grid of solves as a table; 4 when one of them was stopped."""
    from api import tables
    from api.run import interruptible
    from models import files
    from models.load import build
    from solver.limits import Limits
    from solver.sweep import rows

    axes = _axes(options.vary)
    document = files.read(options.file)
    limits = Limits(options.time_limit)

    def instance(values: dict[str, str]) -> Any:
        return build(document, [*options.changes, *(f"{path}={value}" for path, value in values.items())])

    instance({axis.path: axis.values[0] for axis in axes})  # problems of the file itself come once, and at once
    found = interruptible(lambda: rows(axes, instance, limits, limits.stop), limits)
    if options.json:
        _print({"rows": [row.as_json() for row in found]})
    else:
        print(tables.sweep([axis.path for axis in axes], [row.as_json() for row in found]))
    complete = len(found) == math.prod(len(axis.values) for axis in axes)
    return SOLVED if complete and all(row.plan.status != "stopped" for row in found) else STOPPED


_SEPARATE = re.compile(r"""(?:\[[^\]]*\]|\{[^}]*\}|"[^"]*"|'[^']*'|[^,\[{"'])+""")
"""Values between commas; commas inside brackets, braces and quotes belong to the value."""


def _axes(texts: list[str]) -> "list[Axis]":
    """Raises BadInput where an axis is not PATH=V1,V2 or the grid is too large."""
    from solver.sweep import MOST_ROWS, Axis

    axes: list[Axis] = []
    size = 1
    for text in texts:
        path, equals, values = text.partition("=")
        listed = tuple(value.strip() for value in _SEPARATE.findall(values))
        whole = _SEPARATE.sub("", values).count(",") == len(listed) - 1
        if not equals or not path.strip() or not whole or not all(listed) or len(set(listed)) < len(listed):
            accepted = "PATH=V1,V2,... with different values, e.g. workloads.chat.rate=2/s,4/s,8/s"
            raise BadInput([Problem("--vary", "not an axis", text, accepted)])
        if path.strip() in [axis.path for axis in axes]:
            raise BadInput([Problem("--vary", "the place is varied twice", path.strip(), "each place once")])
        axes.append(Axis(path.strip(), listed))
        size *= len(listed)
    if size > MOST_ROWS:
        raise BadInput([Problem("--vary", f"{size:,} points", None, f"at most {MOST_ROWS:,}")])
    return axes


def verify(options: argparse.Namespace) -> int:
    """A plan against an instance, or a placement of experts against loads; 3 when it does not hold.

    Raises BadInput where they do not match.
    """
    from api.experts import recheck
    from api.planfile import of_instance, read
    from models.load import load
    from solver.verify import verify as violations_of

    if recheck.is_placement(options.plan):
        return recheck.verify(options)
    instance = load(options.file, options.changes)
    plan = of_instance(read(options.plan), instance)
    violations = violations_of(plan, instance)
    if options.json:
        _print({"ok": not violations, "violations": violations})
    elif violations:
        print("\n".join(["the plan does not hold:", *(f"  {text}" for text in violations)]))
    else:
        print(f"{plan.instance}: the plan holds. Limits, rates, times and cost were computed again from the formulas;")
        print("  that nothing better exists, alternatives and next steps were not: solve again for those")
    return INFEASIBLE if violations else SOLVED


def catalog(options: argparse.Namespace) -> int:
    """Entries of the catalog. Raises BadInput for names that are not there."""
    from api import tables
    from models import catalog as entries_of
    from models.errors import nearest

    kinds = list(entries_of.KINDS)
    if options.kind is not None and options.kind not in kinds:
        guess = nearest(options.kind, kinds)
        raise BadInput([Problem("KIND", f"no such kind; {guess}".rstrip("; "), options.kind, ", ".join(kinds))])
    entries = [
        {"kind_of_entry": kind, **(entries_of.entry(kind, name) or {})}
        for kind in (kinds if options.kind is None else [options.kind])
        for name in entries_of.names(kind)
    ]
    if options.name is not None:
        known = [entry["name"] for entry in entries]
        entries = [entry for entry in entries if entry["name"] == options.name]
        if not entries:
            guess = nearest(options.name, known)
            message = f"not in the catalog of {options.kind}" + (f"; {guess}" if guess else "")
            raise BadInput([Problem("NAME", message, options.name, ", ".join(known))])
    if options.json:
        _print({"entries": entries})
    else:
        print(tables.catalog(options.kind, entries, options.name is not None))
    return SOLVED


def schema(options: argparse.Namespace) -> int:
    """The JSON Schema of instances or plans."""
    from api.schema import document

    _print(document(options.what))
    return SOLVED


def glossary(options: argparse.Namespace) -> int:
    """Terms and what they mean. Raises BadInput for a word that is not there."""
    from api import words
    from api.glossary import TERMS
    from models.errors import nearest

    folded = {term.casefold(): term for term in TERMS}
    if options.word is not None and options.word.casefold() not in folded:
        guess = nearest(options.word, TERMS)
        message = "not in the glossary" + (f"; {guess}" if guess else "")
        raise BadInput([Problem("WORD", message, options.word, ", ".join(TERMS))])
    found = dict(TERMS) if options.word is None else {(t := folded[options.word.casefold()]): TERMS[t]}
    if options.json:
        _print({"terms": found})
    else:
        print("\n".join(words.table([[term, text] for term, text in found.items()], indent="")))
    return SOLVED
