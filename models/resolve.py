"""Catalog names replaced by what they name, so that an instance needs nothing but itself.

``catalog: NAME`` beside other keys is an entry with changes: the keys in the file win.
"""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from models import catalog
from models.errors import Problem, nearest, path_text

Path = tuple[str | int, ...]


def resolve(data: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """The document with catalog entries filled in, and a problem for every name that is not there."""
    resolved = deepcopy(data)
    problems: list[Problem] = []
    hardware = resolved.get("hardware")
    if isinstance(hardware, dict):
        for name, group in _mappings(hardware.get("groups")):
            problems.extend(_group(group, ("hardware", "groups", name)))
        for name, link in _mappings(hardware.get("links")):
            problems.extend(_merge(link, "links", ("hardware", "links", name), drop=_NOT_OF_A_LINK))
            if link.get("duplex") == "full":  # the word network people use for per-direction
                link["duplex"] = "per-direction"
    for name, llm in _mappings(resolved.get("models")):
        problems.extend(_llm(llm, ("models", name)))
    return resolved, problems


_NOT_OF_A_LINK = ("name", "kind")
_OF_A_GROUP = ("accelerator", "per_server")


def _mappings(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        for name, entry in value.items():
            if isinstance(entry, dict):
                yield name, entry


def _find(kind: str, name: object, path: Path) -> tuple[dict[str, Any], list[Problem]]:
    found = catalog.entry(kind, name) if isinstance(name, str) else None
    if found is not None:
        return found, []
    known = catalog.names(kind)
    guess = nearest(str(name), known)
    message = f"not in the catalog of {kind}" + (f"; {guess}" if guess else "")
    value = None if name is None else str(name)
    return {}, [Problem(path_text(path), message, value, "one of " + ", ".join(known))]


def _merge(target: dict[str, Any], kind: str, path: Path, drop: tuple[str, ...] = ()) -> list[Problem]:
    """Fill ``target`` in place from its ``catalog`` key; its own keys win."""
    if "catalog" not in target:
        return []
    found, problems = _find(kind, target.pop("catalog"), (*path, "catalog"))
    own = dict(target)
    target.clear()
    target.update({key: value for key, value in found.items() if key not in drop})
    target.update(own)
    if "sources" in found and "sources" not in own:  # what the file says is no longer the catalog's
        target["sources"] = {key: text for key, text in found["sources"].items() if key not in own}
    return problems


def _group(group: dict[str, Any], path: Path) -> list[Problem]:
    problems: list[Problem] = []
    if isinstance(group.get("server"), str):
        server, problems = _find("servers", group["server"], (*path, "server"))
        for key in _OF_A_GROUP:
            if key in server:
                group.setdefault(key, server[key])
    accelerator = group.get("accelerator")
    if isinstance(accelerator, str):
        found, missing = _find("accelerators", accelerator, (*path, "accelerator"))
        problems.extend(missing)
        if found:
            group["accelerator"] = found
    elif isinstance(accelerator, dict):
        problems.extend(_merge(accelerator, "accelerators", (*path, "accelerator")))
    return problems


def _llm(llm: dict[str, Any], path: Path) -> list[Problem]:
    problems = _merge(llm, "models", path)
    quantised = llm.get("quantization_config")
    native = "fp8" if isinstance(quantised, dict) and quantised.get("quant_method") == "fp8" else "bf16"
    llm.setdefault("weights", native)
    llm.setdefault("kv", "bf16")
    state = llm.get("handoff_state")
    if isinstance(state, str):
        found, missing = _find("models", state, (*path, "handoff_state"))
        problems.extend(missing)
        state = llm["handoff_state"] = found if found else None
    if isinstance(state, dict):
        problems.extend(_llm(state, (*path, "handoff_state")))
    return problems
