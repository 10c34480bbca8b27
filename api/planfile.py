"""Plans read back from JSON files, with problems told as for instances."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from models.errors import BadInput, Problem, path_text, shown
from models.instance import Instance
from models.plan import Plan

LARGEST = 64 * 2**20
"""Bytes of a plan file that are read at most."""


ACCEPTED = "a plan written by --out or --json"


def read(path: Path, place: str = "PLAN.json") -> Plan:
    """The plan in ``path``, which ``place`` of the command line names. Raises BadInput."""
    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise BadInput([Problem(place, "larger than 64 MiB", str(path), ACCEPTED)])
        document: Any = json.loads(text.decode("utf-8"))
    except OSError as error:
        raise BadInput([Problem(place, f"cannot be read: {error.strerror}", str(path), ACCEPTED)]) from None
    except (ValueError, RecursionError) as error:
        raise BadInput([Problem(place, f"is not JSON: {error}", str(path), ACCEPTED)]) from None
    if not isinstance(document, dict) or document.get("schema") != 1:
        schema = document.get("schema") if isinstance(document, dict) else document
        raise BadInput([Problem("schema", f"{path}: not a plan of this version", shown(schema), "1")])
    try:
        return Plan.model_validate_json(json.dumps(document))
    except ValidationError as error:
        problems = [
            Problem(path_text(detail["loc"]), f"{path}: {detail['msg']}", _shown(detail), ACCEPTED)
            for detail in error.errors(include_url=False)
        ]
        raise BadInput(problems) from None


def _shown(detail: ErrorDetails) -> str | None:
    return None if detail["type"] == "missing" else shown(detail["input"])


def of_instance(plan: Plan, instance: Instance) -> Plan:
    """The plan, if it is one and was made for this instance. Raises BadInput."""
    if plan.status not in ("optimal", "feasible"):
        raise BadInput([Problem("status", "there is no plan in it", plan.status, "optimal or feasible")])
    if plan.instance_sha256 != instance.sha256():
        message = (
            f"the plan was made for another instance, or the file has changed since ({plan.instance_sha256[:12]}...)"
        )
        accepted = f"a plan of {instance.name} as it stands: solve again"
        changed = list(islice(differences(plan.instance_document, instance.document()), 5))
        message += f"; differs in {', '.join(changed)}" if changed else ""
        raise BadInput([Problem("instance_sha256", message, None, accepted)])
    return plan


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Places in which two documents differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            yield from differences(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif before != after:
        yield path
