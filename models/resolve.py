"""Catalog names replaced by what they name, so that an instance needs nothing but itself.

``catalog: NAME`` beside other keys is an entry with changes: the keys in the file win.
"""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path as Folder
from typing import Any

from models import catalog
from models.errors import BadInput, Problem, nearest, path_text
from models.llm import published

Path = tuple[str | int, ...]


def resolve(data: dict[str, Any], base: Folder | None = None) -> tuple[dict[str, Any], list[Problem]]:
    """The document with catalog entries, rates and lengths filled in, and a problem for every name that is not there.

    Files that the document names are looked for in ``base``; without it none is read.
    """
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
        if llm.get("expert_loads") is not None:
            problems.extend(_loads(llm, ("models", name, "expert_loads"), base))
    for name, workload in _mappings(resolved.get("workloads")):
        problems.extend(_workload(workload, ("workloads", name), base))
    return resolved, problems


def _loads(llm: dict[str, Any], path: Path, base: Folder | None) -> list[Problem]:
    from models.experts import named  # here, since few instances have some

    try:
        llm["expert_loads"] = named.rows(llm["expert_loads"], path, base)
    except BadInput as error:
        llm.pop("expert_loads")
        return list(error.problems)
    return []


def _workload(workload: dict[str, Any], path: Path, base: Folder | None) -> list[Problem]:
    problems: list[Problem] = []
    if any(key in workload for key in _SETTLED):  # a plain rate needs nothing
        from models import traffic  # here, since few instances need it

        problems.extend(traffic.settle(workload, path, base))
    if "histogram" in workload:
        from models import tabular

        try:
            workload.setdefault("lengths", tabular.histogram(workload.pop("histogram"), (*path, "histogram"), base))
        except BadInput as error:
            workload["lengths"] = [{"share": 1.0, "input": 1, "output": 1}]  # stands in
            problems.extend(error.problems)
    if isinstance(workload.get("pin"), str):
        if "allow" in workload or "deny" in workload:
            accepted = "pin alone: it is the one group that may serve"
            problems.append(
                Problem(path_text((*path, "pin")), "stands beside allow or deny", workload["pin"], accepted)
            )
        workload["allow"] = [workload.pop("pin")]
    return problems


_SETTLED = ("users", "think_time", "per_day", "arrivals", "plan_for", "dispersion")
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
    wired = None
    if isinstance(group.get("server"), str):
        server, problems = _find("servers", group["server"], (*path, "server"))
        for key in _OF_A_GROUP:
            if key in server:
                group.setdefault(key, server[key])
        wired = server.get("scale_up")
    accelerator = group.get("accelerator")
    if isinstance(accelerator, str):
        found, missing = _find("accelerators", accelerator, (*path, "accelerator"))
        problems.extend(missing)
        if found:
            group["accelerator"] = found
    elif isinstance(accelerator, dict):
        problems.extend(_merge(accelerator, "accelerators", (*path, "accelerator")))
    if isinstance(group.get("accelerator"), dict):
        wired = wired or group["accelerator"].get("scale_up")
    if "scale_up" not in group and wired is not None:
        group["scale_up"] = wired
    _degrees(group)
    if isinstance(group.get("host"), dict):
        problems.extend(_host(group["host"], (*path, "host")))
    return [*problems, *_wired(group, "scale_up", path)]


def _wired(entry: dict[str, Any], key: str, path: Path) -> list[Problem]:
    """A link as one GPU sees it, by its catalog name or with changes."""
    link = entry.get(key)
    if isinstance(link, str):
        found, problems = _find("links", link, (*path, key))
        entry[key] = {word: found[word] for word in _OF_A_SCALE_UP if word in found} if found else None
        return problems
    return _merge(link, "links", (*path, key), drop=("kind", "duplex")) if isinstance(link, dict) else []


def _host(host: dict[str, Any], path: Path) -> list[Problem]:
    problems: list[Problem] = []
    if isinstance(host.get("cpu"), str):
        found, problems = _find("cpus", host["cpu"], (*path, "cpu"))
        if found:
            host["cpu"] = found
    elif isinstance(host.get("cpu"), dict):
        problems = _merge(host["cpu"], "cpus", (*path, "cpu"))
    return [*problems, *_wired(host, "link", path)]


def _degrees(entry: dict[str, Any]) -> None:
    """A single degree of parallelism becomes a list of one."""
    for key in ("tp", "pp", "ep", "dp"):
        if isinstance(entry.get(key), int) and not isinstance(entry[key], bool):
            entry[key] = [entry[key]]


_OF_A_SCALE_UP = ("name", "bandwidth", "startup", "link_efficiency", "sources")


def _llm(llm: dict[str, Any], path: Path) -> list[Problem]:
    problems = _merge(llm, "models", path)
    _degrees(llm)
    llm.setdefault("weights", published(llm.get("quantization_config")))
    llm.setdefault("kv", "bf16")
    state = llm.get("handoff_state")
    if isinstance(state, str):
        found, missing = _find("models", state, (*path, "handoff_state"))
        problems.extend(missing)
        state = llm["handoff_state"] = found if found else None
    if isinstance(state, dict):
        problems.extend(_llm(state, (*path, "handoff_state")))
    return problems
