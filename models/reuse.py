"""How prefixes come back: what of a request was computed before, how long ago, and what it leaves for later ones."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from models.base import Described
from models.errors import Problem
from models.plain import Path, is_whole, mapping, problem
from models.quantities import Count, PositiveSeconds, PositiveShare, Seconds, Share, TokenCount
from models.units import SHARE, TIME, QuantityError, parse


def _points(value: object) -> object:
    """`{10 s: 8 %, 1 min: 35 %}` as a list of points."""
    return [{"age": age, "share": share} for age, share in value.items()] if isinstance(value, dict) else value


def listed(value: object) -> object:
    """A single mapping as a list of one."""
    return [value] if isinstance(value, dict) else value


class CurvePoint(Described):
    """A point of a reuse curve."""

    age: PositiveSeconds
    """Time since the state was last used."""
    share: Share
    """Requests that find theirs again within it, over all requests."""


class Interval(Described):
    """Times between two uses of the same state, as a distribution: exponential, or lognormal."""

    mean: PositiveSeconds | None = None
    """Of an exponential distribution."""
    median: PositiveSeconds | None = None
    """Of a lognormal one, with `p90`."""
    p90: PositiveSeconds | None = None


class Reuse(Described):
    """A part of the prompt that may have been computed before; parts stand in the order of the prompt."""

    kind: Literal["conversation", "system-prompt"] = "conversation"
    """`conversation`: what a session has said so far. `system-prompt`: text that many requests begin with."""
    tokens_per_hit: TokenCount
    """Tokens of the part, which need not be computed when its state is found."""
    tokens_kept: TokenCount | None = None
    """Tokens whose state a request leaves for later ones; default: the whole request behind the parts before."""
    curve: Annotated[list[CurvePoint], BeforeValidator(_points), Field(min_length=1)] | None = None
    """Share of the requests that return within an age, `{10 s: 8 %, 10 min: 80 %}`; straight lines between."""
    interval: Interval | None = None
    """Times between two uses in place of a curve, with `returns`."""
    returns: Share | None = None
    """Share of the requests that return at all."""
    again: Share | None = None
    """Of those that return, the share whose state had been used again before; default: as if returns were by chance."""
    share: PositiveShare = 1.0
    """Requests that begin with a system prompt."""
    distinct: Count = 1
    """Different system prompts."""


class ToolWait(Described):
    """Pauses in which a request waits for tools while its state is kept."""

    mean: Seconds
    """Length of a pause."""
    calls: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0
    """Pauses of a request."""


MOST_PARTS = 8
OF_A_PROMPT = ("share", "distinct")
OF_A_CONVERSATION = ("curve", "interval", "returns", "again", "tokens_kept")


def check(workload: dict[str, Any], path: Path) -> Iterator[Problem]:
    """Parts of a prompt whose numbers do not go together."""
    reuse = listed(workload.get("reuse"))
    if not isinstance(reuse, list):
        return
    place: Path = (*path, "reuse")
    if not 1 <= len(reuse) <= MOST_PARTS:
        yield problem(place, f"{len(reuse)} parts of a prompt", len(reuse), f"1 to {MOST_PARTS}")
    tokens = [one.get("tokens_per_hit") for one in reuse if isinstance(one, dict)]
    for index, one in enumerate(reuse):
        if isinstance(one, dict):
            yield from _part(one, (*place, index))
    longest = _longest(workload)
    known = [t for t in tokens if is_whole(t)]
    if longest is not None and sum(known) >= longest:
        message = f"the parts have {sum(known)} tokens, and the longest input has {longest}"
        yield problem(place, message, sum(known), f"fewer than {longest}: at least one input token is computed")


def _part(one: dict[str, Any], path: Path) -> Iterator[Problem]:
    prompt = one.get("kind", "conversation") == "system-prompt"
    for key in OF_A_CONVERSATION if prompt else OF_A_PROMPT:
        if one.get(key) is not None and not _default(key, one[key]):
            kind = "system-prompt" if prompt else "conversation"
            yield problem((*path, key), f"means nothing for a {kind}", one[key], "left out, or the other kind")
    if prompt:
        return
    ways = [key for key in ("curve", "interval") if one.get(key) is not None]
    if len(ways) != 1:
        accepted = "one of curve, and interval with returns"
        yield problem(
            path, "says nothing of when it returns" if not ways else "says twice when it returns", None, accepted
        )
    if ("interval" in ways) != (one.get("returns") is not None):
        key, accepted = ("returns", "interval and returns together, or a curve")
        yield problem((*path, key), "interval and returns go together", one.get("returns"), accepted)
    yield from _interval(mapping(one.get("interval")), (*path, "interval"))
    yield from _curve(one, path)


def _default(key: str, value: object) -> bool:
    """What a resolved document says of a part that has nothing to say."""
    return (key, value) in (("share", 1.0), ("share", 1), ("distinct", 1))


def _interval(interval: dict[str, Any], path: Path) -> Iterator[Problem]:
    if not interval:
        return
    keys = {key for key in ("mean", "median", "p90") if interval.get(key) is not None}
    if keys not in ({"mean"}, {"median", "p90"}):
        yield problem(path, "is no distribution", ", ".join(sorted(keys)) or None, "mean, or median and p90")
        return
    try:
        low, high = (parse(interval[key], TIME) for key in ("median", "p90")) if "median" in keys else (1.0, 2.0)
    except QuantityError:
        return  # said where it stands
    if high <= low:
        yield problem((*path, "p90"), "is not above the median", interval["p90"], f"more than {interval['median']}")


def _curve(one: dict[str, Any], path: Path) -> Iterator[Problem]:
    points = _points(one.get("curve"))
    if not isinstance(points, list):
        return
    before, most = (0.0, 0.0), 0.0
    for index, point in enumerate(points):
        try:
            now = (parse(mapping(point).get("age"), TIME), parse(mapping(point).get("share"), SHARE))
        except QuantityError:
            return  # said where it stands
        place: Path = (*path, "curve", index)
        if now[0] <= before[0]:
            yield problem((*place, "age"), "is not later than the one before", mapping(point)["age"], "rising ages")
        if now[1] < before[1]:
            accepted = f"{100.0 * before[1]:.6g} % or more: what returns within a time returns within a longer one"
            yield problem((*place, "share"), "is less than at an earlier age", mapping(point)["share"], accepted)
        before, most = now, max(most, now[1])
    tokens, kept = one.get("tokens_per_hit"), one.get("tokens_kept")
    if is_whole(tokens) and is_whole(kept) and tokens * most > kept * (1.0 + 1e-9):
        message = f"{100.0 * most:.4g} % of the requests find {tokens} tokens, more than requests leave"
        yield problem((*path, "tokens_kept"), message, kept, f"at least {math.ceil(tokens * most)}")


def _longest(workload: dict[str, Any]) -> int | None:
    lengths = workload.get("lengths")
    found = [workload.get("input")]
    if isinstance(lengths, list):
        found += [one.get("input") for one in lengths if isinstance(one, dict)]
    known = [tokens for tokens in found if is_whole(tokens)]
    return max(known, default=None)
