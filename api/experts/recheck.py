"""`inferplan verify LOADS EXPERTS.json`: a placement and the proofs of its bounds, checked again."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

from api.exits import INFEASIBLE, SOLVED
from models.errors import BadInput, Problem
from models.experts import maps, reading
from models.experts.layout import Layout, TimeModel
from models.experts.loads import Loads, check_fit, loads
from solver.experts import certificate, result
from solver.experts.verify import NEAR
from solver.experts.verify import verify as holds

PLACE = "PLAN.json"
ACCEPTED = "what inferplan experts --json wrote"


def is_placement(path: Path) -> bool:
    """Whether a file holds what `inferplan experts --json` writes."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "physical_to_logical_map" in document


def verify(options: argparse.Namespace) -> int:
    """Every claim of a placement that loads and proofs decide; 3 when one does not hold. Raises BadInput."""
    if options.changes:
        raise BadInput([Problem("--set", "is for instances", None, "loads as they are")])
    document = json.loads(options.plan.read_text(encoding="utf-8"))
    given = loads(reading.read(options.file).arrays)
    separate = document["physical_to_logical_map"] is None
    try:
        wrong = _claims(document, given, options.plan, separate)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        message = f"a figure is missing or is of another kind: {type(error).__name__}: {error}"
        raise BadInput([Problem(PLACE, message, str(options.plan), ACCEPTED)]) from None
    if options.json:
        print(json.dumps({"ok": not wrong, "violations": wrong}, indent=2))
    elif wrong:
        print("\n".join(["the placement does not hold:", *(f"  {text}" for text in wrong)]))
    else:
        print(
            f"{options.plan.name}: the placement holds. Balance, times and bounds of every layer were computed again;"
        )
        print("  bounds of several scenarios together, moves and budgets were not: place again for those")
    return INFEASIBLE if wrong else SOLVED


def _claims(document: dict[str, Any], given: Loads, path: Path, separate: bool) -> list[str]:
    """What does not hold of a document, scenario by scenario."""
    layout = Layout(tuple(int(size) for size in document["slots_per_card"]))
    check_fit(given.experts, layout)
    time = TimeModel(float(document["time"]["per_slot"]), float(document["time"]["per_token"]))
    missing = [name for name in given.names if name not in document["scenarios"]]
    if missing or len(document["scenarios"]) != given.scenarios:
        named, accepted = ", ".join(map(str, document["scenarios"])), f"those of LOADS: {', '.join(given.names)}"
        raise BadInput([Problem(PLACE, f"is of scenarios {named}", str(path), accepted)])
    wrong: list[str] = []
    figures: list[result.Scenario] = []
    for name, tokens in zip(given.names, given.tokens, strict=True):
        claimed = document["scenarios"][name]
        whole = claimed if separate else document
        placement = maps.placed(whole["physical_to_logical_map"], path, layout, given.layers, given.experts, PLACE)
        rows = [row["scenarios"][name] if "scenarios" in row else row for row in whole["layers"]]
        bounds = tuple(certificate.from_json(row) for row in rows)
        found = holds(placement, tokens, time, [float(row["busiest"]) for row in rows], bounds)
        wrong.extend(f"{name}: {text}" for text in found)
        if found:
            continue
        figures.append(result.scenario(name, placement, tokens, time, bounds))
        wrong.extend(f"{name}: {text}" for text in _differ(claimed, figures[-1].as_json()))
    if wrong:
        return wrong
    least = {"balancedness_min": min(float(one.balance.min()) for one in figures)}
    return _differ(document, figures[0].as_json() if len(figures) == 1 else least)


def _differ(claimed: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Figures that are not what they are said to be."""
    keys = [key for key, value in found.items() if value is not None and key != "bound_any_split"]
    near = {key: math.isclose(float(claimed[key]), found[key], rel_tol=NEAR, abs_tol=NEAR) for key in keys}
    return [f"{key} is {found[key]:.9g}, not {float(claimed[key]):.9g}" for key in keys if not near[key]]
