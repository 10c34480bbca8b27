"""Changes that a plan tells, put into the document they are told of; each also a little too small to help."""

import copy
import re
from itertools import pairwise
from typing import Any

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build
from models.plan import Plan
from models.told import Relaxation
from solver.solve import Options, solve

Document = dict[str, Any]
LESS = 0.003
"""Share by which a change is made too small: more than four digits, and what a search by halves leaves open."""


def built(document: Document) -> Instance:
    return build(files.parse(files.dump(document)))


def solved(document: Document) -> Plan:
    return solve(built(document), Options(plan_only=True, reasons=False))


def number(text: str) -> float:
    """The number at the start of a quantity."""
    found = re.match(r"[0-9.e+-]+", text)
    assert found is not None, text
    return float(found[0])


def applied(document: Document, told: Relaxation, less: bool = False) -> Document | None:
    """The document with the change; with ``less`` a smaller one, None where there is none or it cannot be written."""
    changed = copy.deepcopy(document)
    path = told.path.split(".")
    if path[0] == "workloads":
        return _workload(changed, path, told, less)
    if path[:2] == ["hardware", "groups"] and path[3:] == ["servers"]:
        changed["hardware"]["groups"][path[2]]["servers"] = round(number(told.after)) - (1 if less else 0)
        return changed
    if path[:2] == ["hardware", "groups"]:
        return with_cards(changed, path[2], round(number(told.after)) - (1 if less else 0))
    if path[:2] == ["hardware", "bundles"]:
        changed["hardware"]["bundles"][path[2]]["at_most"] = round(number(told.after)) - (1 if less else 0)
        return changed
    if path[:2] == ["hardware", "links"]:
        before, after = number(told.before), number(told.after)
        changed["hardware"]["links"][path[2]]["bandwidth"] = (
            f"{max(before, after * (1 - LESS)) if less else after!r} B/s"
        )
        return changed
    if path == ["service", "drain"]:
        changed["service"]["drain"] = f"{number(told.after) * (1 - LESS if less else 1)!r} s"
        return changed
    assert path[0] == "limits", told.path
    if path[1] == "pools":
        del changed["limits"]["pools"][int(path[2])]
        return None if less else changed
    to = round(number(told.after)) + (1 if less else 0)
    key = "at_least" if path[1] == "units" else "units"
    changed["limits"][path[1]] = {key: to}
    if not to:
        del changed["limits"][path[1]]
    return changed


def _workload(changed: Document, path: list[str], told: Relaxation, less: bool) -> Document | None:
    loads = changed["workloads"]
    if path[2] == "rate":
        factor = number(told.after) / number(told.before) * (1 + LESS if less else 1)
        for name in loads if path[1] == "*" else [path[1]]:
            loads[name]["rate"] = f"{built(changed).workloads[name].rate * factor!r}/s"
    elif path[2] == "minimum_share":
        factor = number(told.after) / number(told.before) * (1 + LESS if less else 1)
        for load in loads.values():
            load["minimum_share"] = load.get("minimum_share", 1.0) * factor
    elif path[2] == "batch":
        before, after = round(number(told.before)), round(number(told.after))
        if less and after in (1, before - 1, before + 1):
            return None
        loads[path[1]]["batch"] = after + (0 if not less else 1 if after < before else -1)
    else:
        loads[path[1]]["targets"][path[3]] = f"{number(told.after) * (1 - LESS if less else 1)!r} s"
    return changed


def with_cards(document: Document, name: str, cards: int) -> Document | None:
    """The document with so many GPUs in a group; None where no number of servers says that."""
    group = document["hardware"]["groups"][name]
    each, made = group["per_server"], built(document).hardware.groups[name]
    widest = max([*(made.tp or [each]), *(one.get("tp", 1) for one in document.get("measured", {}).values())])
    for size in range(each, widest - 1, -1):
        same = size == each or (each % size == 0 and made.pp == [1] and _nests(made.tp or [], each))
        if cards % size == 0 and same:
            group.update(servers=cards // size, per_server=size)
            return document
    return None


def _nests(degrees: list[int], each: int) -> bool:
    ordered = sorted({*degrees, each})
    return bool(degrees) and all(b % a == 0 for a, b in pairwise(ordered))


__all__ = ["BadInput", "applied", "built", "solved", "with_cards"]
