"""Checks of images: a model that has an encoder, features that are part of the input, and a cache for those found."""

import math
from collections.abc import Iterator
from typing import Any

from models.errors import Problem
from models.plain import Path, entries, is_whole, mapping, problem
from models.quantities import Whole
from models.units import BYTES, SHARE, QuantityError, parse


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """What does not go together about images, over the whole document."""
    models, stores = mapping(data.get("models")), mapping(mapping(data.get("hardware")).get("stores"))
    caches = [name for name, store in entries(stores) if store.get("for") == "features"]
    for name in caches[1:]:
        message = "one encoder cache is supported, and there is one already"
        yield problem(("hardware", "stores", name, "for"), message, "features", "state")
    for name, llm in entries(models):
        yield from _heads(mapping(llm.get("encoder")), ("models", name, "encoder"))
    for name, workload in entries(data.get("workloads")):
        llm = mapping(models.get(str(workload.get("model"))))
        yield from _workload(workload, llm, caches, stores, ("workloads", name))
    allowed = mapping(data.get("schemes")).get("allow")
    if (
        isinstance(allowed, list)
        and "encode-pd" in allowed
        and not any("encoder" in mapping(m) for m in models.values())
    ):
        path: Path = ("schemes", "allow", allowed.index("encode-pd"))
        yield problem(path, "no model has an encoder", "encode-pd", "models.NAME.encoder, or pd-direct")


def _heads(encoder: dict[str, Any], path: Path) -> Iterator[Problem]:
    hidden, heads = encoder.get("hidden_size"), encoder.get("num_attention_heads")
    if is_whole(hidden) and is_whole(heads) and heads > 0 and hidden % heads:
        accepted = f"a divisor of hidden_size = {hidden}"
        yield problem((*path, "num_attention_heads"), "does not divide the hidden size", heads, accepted)


def _workload(
    workload: dict[str, Any], llm: dict[str, Any], caches: list[str], stores: dict[str, Any], path: Path
) -> Iterator[Problem]:
    images, hits, encoder = workload.get("images", 0), workload.get("image_hits", 0), mapping(llm.get("encoder"))
    if not _is_number(images):
        return
    if images > 0 and llm and not encoder:
        yield problem((*path, "images"), "the model has no encoder", images, "0, or models.NAME.encoder")
    if images > 0 and encoder:
        yield from _within(workload, images, encoder.get("tokens"), path)
    try:
        found = parse(hits, SHARE)
    except QuantityError:
        return  # said where it stands
    if found > 0 and not images > 0:
        yield problem((*path, "image_hits"), "stands without images", hits, "images above 0")
    elif found > 0 and not caches:
        message = "no store keeps features of images"
        yield problem((*path, "image_hits"), message, hits, "0, or a store with `for: features`")
    elif found > 0:
        yield from _room(images, encoder.get("tokens"), llm.get("hidden_size"), caches[0], stores[caches[0]])


def _room(images: float, tokens: object, hidden: object, name: str, cache: dict[str, Any]) -> Iterator[Problem]:
    """A cache that cannot hold the features of one request."""
    try:
        each, room = Whole(10**9, "token").read(tokens), parse(cache.get("capacity"), BYTES)
    except QuantityError:
        return  # said where it stands
    needed = math.ceil(images) * each * (hidden if is_whole(hidden) else 0) * 2  # bytes of a BF16 number
    if needed > room:
        message = "too small for the features of one request"
        accepted = f"{needed / 1e6:,.4g} MB or more"
        yield problem(("hardware", "stores", name, "capacity"), message, cache["capacity"], accepted)


def _within(workload: dict[str, Any], images: float, tokens: object, path: Path) -> Iterator[Problem]:
    """Features that are more than the input that they are part of; means, where there are classes of lengths."""
    lengths = workload.get("lengths")
    classes = lengths if isinstance(lengths, list) else [{**workload, "share": 1}]
    try:
        each = Whole(10**9, "token").read(tokens)
        shares = [(parse(one["share"], SHARE), Whole(10**9, "token").read(one["input"])) for one in classes]
    except (QuantityError, KeyError, TypeError):
        return  # said where it stands
    features, most = images * each, math.fsum(share * length for share, length in shares)
    if features > most * (1.0 + 1e-9):
        message = f"their {features:,.6g} features are more than the {most:,.6g} tokens of the input"
        yield problem((*path, "images"), message, images, f"at most {most / each:.6g}, or a longer input")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
