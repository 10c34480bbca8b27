"""Checks of one workload: lengths and shares that go together, targets that are times, arrivals over time."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from models.errors import Problem
from models.plain import Path, is_whole, mapping, problem
from models.units import SHARE, TIME, QuantityError, parse


def check(workload: dict[str, Any], path: Path) -> Iterator[Problem]:
    """Numbers of one workload that do not go together."""
    lengths = workload.get("lengths")
    if lengths is None:
        for key in ("input", "output"):
            if key not in workload:
                yield problem((*path, key), "missing", None, "tokens of a request, or lengths")
        yield from _length(workload, path, mapping(workload.get("longest")), path)
    else:
        for key in ("input", "output", "cached"):
            if key in workload and not (key == "cached" and workload[key] == 0):  # 0 is what a resolved document says
                yield problem((*path, key), "stands beside lengths", workload[key], "one of the two")
        yield from _classes(lengths, workload, path)
    for key, value in mapping(workload.get("targets")).items():
        if key in ("ttft", "tpot") and isinstance(value, dict):
            message = "percentiles are not supported yet, and not read as anything else"
            accepted = "a time: a hard limit for every request, without queueing"
            yield problem((*path, "targets", key), message, ", ".join(f"{k}: {v}" for k, v in value.items()), accepted)
    yield from _bursts(mapping(workload.get("bursts")), (*path, "bursts"), "profile" in workload)
    yield from in_order(workload.get("profile"), (*path, "profile"))


def in_order(points: object, path: Path) -> Iterator[Problem]:
    """Moments of a profile that are not later than the one before."""
    times = [point.get("at") for point in points if isinstance(point, dict)] if isinstance(points, list) else []
    try:
        read = [parse(time, TIME) for time in times]
    except QuantityError:
        return  # said where it stands
    for index, (earlier, later) in enumerate(itertools.pairwise(read)):
        if later <= earlier:
            accepted = f"later than {times[index]}"
            yield problem((*path, index + 1, "at"), "is not later than the one before", times[index + 1], accepted)


def _bursts(bursts: dict[str, Any], path: Path, profile: bool) -> Iterator[Problem]:
    if bursts and profile:
        yield problem(path, "stands beside a profile", None, "one of the two")
    try:
        every, first = (parse(bursts.get(key), TIME) for key in ("every", "first"))
    except QuantityError:
        return  # said where it stands
    if first > every:
        accepted = f"at most every, {bursts['every']}"
        yield problem((*path, "first"), "is longer than the period", bursts["first"], accepted)


def _classes(lengths: object, workload: dict[str, Any], path: Path) -> Iterator[Problem]:
    shares: list[float] = []
    for index, one in enumerate(lengths if isinstance(lengths, list) else []):
        if not isinstance(one, dict):
            continue
        yield from _length(one, (*path, "lengths", index), mapping(workload.get("longest")), path)
        try:
            shares.append(parse(one.get("share"), SHARE))
        except QuantityError:
            shares.append(math.nan)  # said where it stands
    total = math.fsum(shares) if shares and all(math.isfinite(share) for share in shares) else 1.0
    if abs(total - 1.0) > 1e-6:
        yield problem(
            (*path, "lengths"), "the shares do not add up to 100 %", f"{100.0 * total:.9g} %", "shares that do"
        )


def _length(one: dict[str, Any], path: Path, longest: dict[str, Any], whole: Path) -> Iterator[Problem]:
    tokens, cached = one.get("input"), one.get("cached", 0)
    if is_whole(tokens) and is_whole(cached) and 0 < tokens <= cached:
        accepted = f"0 to {tokens - 1}: at least one input token is computed"
        yield problem((*path, "cached"), "not less than the input", cached, accepted)
    for key in ("input", "output"):
        own, most = one.get(key), longest.get(key)
        if is_whole(own) and is_whole(most) and most < own:
            yield problem((*whole, "longest", key), f"shorter than the {key} itself", most, f"{own} or more")
