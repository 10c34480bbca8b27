"""Checks across an instance: names that must exist, numbers that must go together.

They read the plain document, so that they report beside the problems of single values, all at once.
"""

from collections.abc import Iterator
from typing import Any, TypeGuard

from models.errors import Problem, nearest, path_text, shown

Path = tuple[str | int, ...]


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """Every problem between keys; values of the wrong type are passed over here."""
    hardware = _map(data.get("hardware"))
    groups, links = _map(hardware.get("groups")), _map(hardware.get("links"))
    yield from _names(data, groups, links, _map(hardware.get("stores")))
    yield from _links(groups, links, _map(hardware.get("stores")))
    for name, store in _entries(hardware.get("stores")):
        yield from _known(store, "on", links, ("hardware", "stores", name), "link", "hardware.links")
    for name, workload in _entries(data.get("workloads")):
        path: Path = ("workloads", name)
        yield from _known(workload, "model", _map(data.get("models")), path, "model", "models")
        yield from _lengths(workload, path)
        yield from _placement(workload, groups, path)
    for name, llm in _entries(data.get("models")):
        yield from _shape(llm, ("models", name))
    yield from _cards(groups)
    yield from _prices(data, groups)
    yield from _pools(data, groups)


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _entries(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, entry in _map(value).items():
        if isinstance(entry, dict):
            yield name, entry


def _problem(path: Path, message: str, value: object = None, accepted: str | None = None) -> Problem:
    return Problem(path_text(path), message, None if value is None else shown(value), accepted)


def _known(
    entry: dict[str, Any], key: str, known: dict[str, Any], path: Path, noun: str, where: str
) -> Iterator[Problem]:
    name = entry.get(key)
    if isinstance(name, str) and name not in known:
        guess = nearest(name, known)
        message = f"no {noun} of this name under {where}" + (f"; {guess}" if guess else "")
        yield _problem((*path, key), message, name, "one of " + ", ".join(known) if known else None)


def _names(
    data: dict[str, Any], groups: dict[str, Any], links: dict[str, Any], stores: dict[str, Any]
) -> Iterator[Problem]:
    for kind, known in (("links", links), ("stores", stores)):
        for name in known:
            if name in groups or (kind == "stores" and name in links):
                yield _problem(("hardware", kind, name), "the name is taken by another place", name, "a new name")
    named: list[tuple[Path, dict[str, Any]]] = [
        (("hardware", "groups"), groups),
        (("hardware", "links"), links),
        (("hardware", "stores"), stores),
        (("models",), _map(data.get("models"))),
        (("workloads",), _map(data.get("workloads"))),
    ]
    for path, known in named:
        for name in known:
            if not name or len(name) > 64 or not all(c.isalnum() or c in "-_." for c in name):
                accepted = "letters, digits, '-', '_' and '.', at most 64"
                yield _problem((*path, name), "not a usable name", name, accepted)


def _links(groups: dict[str, Any], links: dict[str, Any], stores: dict[str, Any]) -> Iterator[Problem]:
    for name, link in _entries(links):
        connects = link.get("connects")
        if not isinstance(connects, list):
            continue
        mine = [store for store, entry in _entries(stores) if entry.get("on") == name]
        known = {**groups, **{other: None for other in links if other != name}, **dict.fromkeys(mine)}
        for index, place in enumerate(connects):
            path: Path = ("hardware", "links", name, "connects", index)
            if not isinstance(place, str):
                continue
            if place in connects[:index]:
                yield _problem(path, "named twice", place, "each place once")
            elif place not in known:
                guess = nearest(place, known)
                message = "no group, other link, or store on this link has this name" + (f"; {guess}" if guess else "")
                yield _problem(path, message, place, "one of " + ", ".join(known))


def _lengths(workload: dict[str, Any], path: Path) -> Iterator[Problem]:
    tokens, cached = workload.get("input"), workload.get("cached", 0)
    if _whole(tokens) and _whole(cached) and 0 < tokens <= cached:
        accepted = f"0 to {tokens - 1}: at least one input token is computed"
        yield _problem((*path, "cached"), "not less than the input", cached, accepted)
    longest = _map(workload.get("longest"))
    for key in ("input", "output"):
        own, most = workload.get(key), longest.get(key)
        if _whole(own) and _whole(most) and most < own:
            yield _problem((*path, "longest", key), f"shorter than the {key} itself", most, f"{own} or more")


def _placement(workload: dict[str, Any], groups: dict[str, Any], path: Path) -> Iterator[Problem]:
    named: dict[str, list[str]] = {}
    for key in ("allow", "deny"):
        names = workload.get(key)
        for index, name in enumerate(names if isinstance(names, list) else []):
            if not isinstance(name, str):
                continue
            named.setdefault(key, []).append(name)
            if name not in groups:
                guess = nearest(name, groups)
                message = "no group of this name" + (f"; {guess}" if guess else "")
                yield _problem((*path, key, index), message, name, "one of " + ", ".join(groups))
    allowed = set(named.get("allow", groups)) - set(named.get("deny", []))
    if named and groups and not allowed & set(groups):
        yield _problem((*path, "deny" if "deny" in named else "allow"), "leaves no group to serve it")


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _shape(llm: dict[str, Any], path: Path) -> Iterator[Problem]:
    experts = [key for key in ("num_experts", "num_local_experts", "n_routed_experts") if llm.get(key)]
    if experts:
        yield _problem(
            (*path, experts[0]), "mixture-of-experts models are not supported yet", llm[experts[0]], "a dense model"
        )
    if llm.get("query_work") == "added" and not _map(llm.get("handoff_state")).get("kv_lora_rank"):
        accepted = "a compact MLA state, e.g. handoff_state: DeepSeek-V3"
        yield _problem((*path, "query_work"), "needs a handoff_state that has such work", "added", accepted)
    heads, kv_heads = llm.get("num_attention_heads"), llm.get("num_key_value_heads")
    if _whole(heads) and _whole(kv_heads) and kv_heads > 0 and heads % kv_heads:
        accepted = f"a divisor of num_attention_heads = {heads}"
        yield _problem((*path, "num_key_value_heads"), "does not divide the query heads", kv_heads, accepted)
    if llm.get("sliding_window"):
        yield _problem(
            (*path, "sliding_window"), "sliding windows are not supported yet", llm["sliding_window"], "full attention"
        )
    if llm.get("kv_lora_rank") and not experts:
        yield _problem(
            (*path, "kv_lora_rank"), "MLA models are not supported yet", llm["kv_lora_rank"], "MHA or GQA attention"
        )


MOST_CARDS = 10**8
"""GPUs of a group up to which counts are exact in every step of a solve."""


def _cards(groups: dict[str, Any]) -> Iterator[Problem]:
    for name, group in _entries(groups):
        servers, each = group.get("servers"), group.get("per_server")
        if _whole(servers) and _whole(each) and max(servers, each) <= 10**7 and servers * each > MOST_CARDS:
            accepted = f"at most {MOST_CARDS:,} GPUs in a group"
            yield _problem(("hardware", "groups", name, "servers"), f"{servers * each:,} GPUs", servers, accepted)


def _prices(data: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    if data.get("objective", "effective_cost") in ("effective_cost", "cost"):
        for name, group in _entries(groups):
            if "price" not in group:
                message = "missing: the objective is a cost"
                yield _problem(("hardware", "groups", name, "price"), message, None, "a price of one GPU, e.g. 2.50/h")


def _pools(data: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    limits = _map(data.get("limits")).get("pools")
    for index, limit in enumerate(limits if isinstance(limits, list) else []):
        if not isinstance(limit, dict):
            continue
        path: Path = ("limits", "pools", index)
        yield from _known(limit, "group", groups, path, "group", "hardware.groups")
        yield from _known(limit, "model", _map(data.get("models")), path, "model", "models")
        pair = {"pd-direct", "pd-pooled"}
        schemes = _map(data.get("schemes"))
        allowed = schemes.get("allow", sorted(pair))
        both = isinstance(allowed, list) and pair <= {name for name in allowed if isinstance(name, str)}
        if limit.get("scheme") in pair and both and schemes.get("mix", True) is not False:
            message = "prefill and decode units serve both pd-direct and pd-pooled here"
            accepted = "a bound by stage, one of the two schemes allowed, or `mix: false`"
            yield _problem((*path, "scheme"), message, limit["scheme"], accepted)
        bounds = {key: limit[key] for key in ("exactly", "at_least", "at_most") if limit.get(key) is not None}
        if not bounds:
            yield _problem(path, "bounds nothing", None, "one of exactly, at_least, at_most")
        if "exactly" in bounds and len(bounds) > 1:
            yield _problem((*path, "exactly"), "stands beside another bound", bounds["exactly"], "exactly alone")
        low, high = bounds.get("at_least"), bounds.get("at_most")
        if _whole(low) and _whole(high) and low > high:
            yield _problem((*path, "at_least"), f"more than at_most = {high}", low, f"at most {high}")
