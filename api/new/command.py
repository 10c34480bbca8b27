"""`inferplan new`: reads the options, writes the file, and says what is left to fill in."""

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.exits import SOLVED
from api.new import request
from api.new.cluster import Cluster
from api.new.text import WORKLOAD, Demand, Model, percentile_note, write
from models import blanks, files
from models.errors import BadInput, Problem, shown, tried
from models.load import build


@dataclass(frozen=True)
class Draft:
    """A file that was written, and what is to be said about it."""

    text: str
    document: dict[str, Any]
    blanks: list[Problem]
    notes: list[str]


def new(options: argparse.Namespace) -> int:
    """Write an instance file, or print it. Raises BadInput with every problem of the options and files."""
    from api.commands import save

    draft = compose(options)
    if options.file is not None:
        if options.file.is_file() and not options.force:
            accepted = "another name, or --force to write over it"
            raise BadInput([Problem("-o", "the file exists", str(options.file), accepted)])
        save(options.file, draft.text, "-o")
    if options.json:
        print(json.dumps(_as_json(options, draft), indent=2, allow_nan=False))
    elif options.file is None:
        sys.stdout.write(draft.text)
    else:
        print("\n".join(_said(options.file, draft)))
    for note in draft.notes:
        print(f"note: {note}", file=sys.stderr)
    return SOLVED


def compose(options: argparse.Namespace) -> Draft:
    """The file that the options ask for. Raises BadInput."""
    problems = request.unreadable(options)
    if problems:  # nothing can be made of them
        raise BadInput([*problems, *request.combinations(options)])
    problems = request.combinations(options)
    said = {problem.path for problem in problems}
    cluster = tried(lambda: request.groups(options.nodes), problems) if options.nodes is not None else None
    model = tried(lambda: request.model(options.model), problems) if "--model" not in said else None
    demand = request.demand(options)
    draft = _draft(options, cluster, model or Model("model"), demand)
    for problem in draft.blanks:
        if problem.message == blanks.MESSAGE or (model is None and problem.path.startswith("models.")):
            continue
        problem = _at_its_option(problem, options, demand)
        if problem.path not in said:
            problems.append(problem)
    if problems:
        raise BadInput(problems)
    return draft


def _draft(options: argparse.Namespace, cluster: Cluster | None, model: Model, demand: Demand) -> Draft:
    """The file, read back; blanks hold whatever is wrong with it."""
    name = options.name or (shown(options.file.stem) if options.file else "my-cluster")
    notes = [percentile_note(key) for key in demand.targets if key in demand.percentiles]
    for group in cluster.groups if cluster else ():
        notes += [f"{group.name}: {remark}" for remark in group.remarks]
    notes += cluster.remarks[1:] if cluster else ()
    notes += model.shape.remarks if model.shape else ()
    text = write(name, cluster, model, demand)
    document = files.parse(text)
    try:
        build(document)
    except BadInput as error:
        return Draft(text, document.data, list(error.problems), notes)
    return Draft(text, document.data, [], notes)


def _at_its_option(problem: Problem, options: argparse.Namespace, demand: Demand) -> Problem:
    """A problem of the file as one of what the file was made from."""
    path = problem.path
    for key in demand.targets:
        if path in (f"workloads.{WORKLOAD}.targets.{key}", f"workloads.{WORKLOAD}.targets"):
            path = request.option(f"{key}_p95" if key in demand.percentiles else key)
    path = request.PLACES.get(path, path)
    for part, source in (("hardware.", options.nodes), ("models.", options.model)):
        if path.startswith(part):
            path = f"{source} ({path})"
    return Problem(path, problem.message, problem.value, problem.accepted)


def _as_json(options: argparse.Namespace, draft: Draft) -> dict[str, Any]:
    return {
        "file": None if options.file is None else str(options.file),
        "instance": draft.document,
        "blanks": [{"path": p.path, "line": p.line, "accepted": p.accepted} for p in draft.blanks],
        "notes": draft.notes,
    }


def _said(path: Path, draft: Draft) -> list[str]:
    """What was written, and what comes next."""
    count = len(draft.blanks)
    lines = [f"{path}: written" + (f", {count} place{'' if count == 1 else 's'} left blank" if count else "")]
    lines += [f"  line {p.line}  {p.path}: {p.accepted}" for p in draft.blanks]
    then = f"inferplan check {path}, inferplan solve {path}"
    return [*lines, f"next: fill in each {blanks.BLANK}, then {then}" if count else f"next: {then}"]
