"""Checks of units that divide layers: degrees of expert parallelism, hosts, and schemes that need either."""

from collections.abc import Iterator
from typing import Any

from models.errors import Problem
from models.llm import Llm
from models.plain import Path, entries, is_whole, mapping, problem
from models.shapes import EXPERTS

NEEDS_EXPERTS = ("expert-pool", "cpu-experts")


def check(data: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    """Degrees that no unit can have, and schemes that no unit can be of."""
    models = mapping(data.get("models"))
    counts = {name: experts for name, llm in entries(models) if (experts := expert_count(llm)) is not None}
    most = max((cards for _, group in entries(groups) if (cards := _cards(group)) is not None), default=None)
    endless = any(group.get("servers") == "unlimited" for _, group in entries(groups)) or bool(
        mapping(mapping(data.get("hardware")).get("bundles"))
    )
    allowed = mapping(data.get("schemes")).get("allow")
    apart = isinstance(allowed, list) and "attention-ffn" in allowed
    for name, llm in entries(models):
        yield from _degrees(llm, ("models", name), counts.get(name), None if endless else most, apart)
    for name, group in entries(groups):
        path: Path = ("hardware", "groups", name)
        bought = endless or not is_whole(group.get("servers"))
        wide = None if bought else _cards(group)
        yield from _wider(group, "ep", path, wide, "GPUs of the group")
        yield from _wider(group, "dp", path, wide, "GPUs of the group")
        yield from _host(mapping(group.get("host")), (*path, "host"))
    yield from _schemes(data, groups, bool(counts))
    yield from _disjoint(models, groups)


def expert_count(llm: dict[str, Any]) -> int | None:
    """Experts that tokens choose from; None where the model says none."""
    return next((llm[key] for key in EXPERTS if is_whole(llm.get(key)) and llm[key] > 0), None)


def _counts(llm: dict[str, Any], path: Path) -> Iterator[Problem]:
    """Numbers of experts and of layers that contradict each other."""
    said = {key: llm[key] for key in EXPERTS if is_whole(llm.get(key))}
    if len(set(said.values())) > 1:
        listed = ", ".join(f"{key} {value}" for key, value in said.items())
        yield problem((*path, next(iter(said))), "stands beside another number of experts", listed, "one of them")
    layers, first = llm.get("num_hidden_layers"), llm.get("first_k_dense_replace")
    if said and is_whole(layers) and is_whole(first) and first >= layers:
        accepted = f"less than the {layers} layers"
        yield problem((*path, "first_k_dense_replace"), "leaves no layer with experts", first, accepted)
    only = llm.get("mlp_only_layers")
    for index, layer in enumerate(only if isinstance(only, list) else []):
        if is_whole(layers) and is_whole(layer) and not 0 <= layer < layers:
            yield problem((*path, "mlp_only_layers", index), "there is no such layer", layer, f"0 to {layers - 1}")


def _misfit(table: list[list[float]], experts: int, layers: int) -> tuple[str, str]:
    """Why loads are not those of a model, and what would be; "" when they are."""
    if len(table[0]) != experts:
        return f"{len(table[0])} experts, the model has {experts}", f"rows of {experts} numbers"
    if len(table) not in (1, layers):
        return f"{len(table)} layers, the model has {layers} with experts", f"1 or {layers} rows"
    return "", ""


def _sparse(llm: dict[str, Any]) -> int | None:
    """Layers with experts, where the keys that say it are whole numbers."""
    keys = ("num_hidden_layers", "first_k_dense_replace", "moe_layer_freq", "decoder_sparse_step")
    said = {key: llm.get(key) for key in keys}
    only = llm.get("mlp_only_layers")
    if not is_whole(said["num_hidden_layers"]) or not all(value is None or is_whole(value) for value in said.values()):
        return None
    return Llm.model_construct(**said, mlp_only_layers=only if isinstance(only, list) else None).sparse_layers


def _cards(group: dict[str, Any]) -> int | None:
    servers, each = group.get("servers"), group.get("per_server")
    return servers * each if is_whole(servers) and is_whole(each) else None


def _degrees(llm: dict[str, Any], path: Path, experts: int | None, most: int | None, apart: bool) -> Iterator[Problem]:
    even = llm.get("expert_loads") is None  # else replicas fill up what is left over
    for index, degree in _listed(llm, "ep"):
        if degree > 1 and experts is None:
            yield problem((*path, "ep", index), "the model has no experts to spread", degree, "1, or no ep")
        elif degree > 1 and experts is not None and (degree > experts or (even and experts % degree)):
            fitting = ", ".join(str(d) for d in range(1, min(experts, 512) + 1) if experts % d == 0)
            yield problem((*path, "ep", index), f"does not divide the {experts} experts", degree, f"one of {fitting}")
    table = llm.get("expert_loads")
    if isinstance(table, list) and experts is None:
        accepted = "a mixture of experts"
        yield problem((*path, "expert_loads"), "the model has no experts that tokens choose", None, accepted)
    elif isinstance(table, list) and experts is not None and (layers := _sparse(llm)) is not None:
        reason, accepted = _misfit(table, experts, layers)
        if reason:
            yield problem((*path, "expert_loads"), reason, None, accepted)
    for index, degree in _listed(llm, "dp"):
        if degree > 1 and experts is None and not apart:
            yield problem((*path, "dp", index), "means nothing without experts or attention-ffn", degree, "1, or no dp")
    yield from _counts(llm, path)
    yield from _wider(llm, "ep", path, most, "GPUs of the largest group")
    yield from _wider(llm, "dp", path, most, "GPUs of the largest group")


def _wider(entry: dict[str, Any], key: str, path: Path, most: int | None, what: str) -> Iterator[Problem]:
    for index, degree in _listed(entry, key):
        if degree in entry[key][:index]:
            yield problem((*path, key, index), "named twice", degree, "each degree once")
        elif most is not None and degree > max(most, 1):
            yield problem((*path, key, index), f"wider than the {most} {what}", degree, f"at most {max(most, 1)}")


def _listed(entry: dict[str, Any], key: str) -> Iterator[tuple[int, int]]:
    listed = entry.get(key)
    for index, degree in enumerate(listed if isinstance(listed, list) else []):
        if is_whole(degree) and degree > 0:
            yield index, degree


def _disjoint(models: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    """Degrees of a group and of a model that have none in common, though units must have both."""
    for key in ("ep", "dp"):
        for name, llm in entries(models):
            mine = [degree for _, degree in _listed(llm, key)]
            for group, described in entries(groups):
                theirs = [degree for _, degree in _listed(described, key)]
                if mine and theirs and not set(mine) & set(theirs):
                    accepted = f"one of {', '.join(map(str, theirs))}, or other degrees there"
                    message = f"none of them is allowed on {group}"
                    yield problem(("models", name, key), message, ", ".join(map(str, mine)), accepted)


def _host(host: dict[str, Any], path: Path) -> Iterator[Problem]:
    kernels = mapping(mapping(host.get("cpu")).get("kernels"))
    kernel = host.get("kernel")
    if kernels and isinstance(kernel, str) and kernel not in kernels:
        accepted = "one of " + ", ".join(kernels)
        yield problem((*path, "kernel"), "the CPU states no such kernel", kernel, accepted)


def _schemes(data: dict[str, Any], groups: dict[str, Any], experts: bool) -> Iterator[Problem]:
    allowed = mapping(data.get("schemes")).get("allow")
    for index, name in enumerate(allowed if isinstance(allowed, list) else []):
        path: Path = ("schemes", "allow", index)
        if isinstance(allowed, list) and name in allowed[:index]:
            yield problem(path, "named twice", name, "each scheme once")
        if name in NEEDS_EXPERTS and not experts:
            yield problem(
                path, "no model has experts that tokens choose", name, "a mixture of experts, or other schemes"
            )
        elif name == "cpu-experts" and not any(group.get("host") for _, group in entries(groups)):
            accepted = "hardware.groups.NAME.host: {cpu: Xeon-Platinum-8452Y, kernel: amx, link: PCIe-4}"
            yield problem(path, "no group states the CPUs of its servers", name, accepted)
