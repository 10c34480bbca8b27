"""What `inferplan route` is asked: a request with its state, and the places that could take it."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from models.base import Described
from models.errors import Problem, nearest, shown
from models.plain import entries, mapping, problem
from models.quantities import Count, PositiveBytes, PositiveBytesPerSecond, RequestsPerSecond, Seconds, Share
from models.units import SHARE, QuantityError, parse

LOCAL, NOWHERE = "local", "nowhere"
"""Locations that need no path: in the memory of the place's GPUs, and in no place at all."""
Measure = Literal["request", "p99", "all-tasks"]


class RouteRequest(Described):
    """The request to be routed."""

    state: PositiveBytes
    """Bytes of the context state that it can use again."""
    hit: Seconds
    """Work until the first token once the state is there."""
    recompute: Seconds
    """Work until the first token without the state."""
    rate: RequestsPerSecond | None = None
    """Requests like this a second, for the load on links."""
    layers: Count | None = None
    """Layers of the model, where a place fetches layer by layer."""


class RoutePath(Described):
    """A way by which state comes to a place: over links, each crossed whole before the next, and steps."""

    over: list[str] = Field(default_factory=list)
    """Links, in order."""
    steps: dict[str, Seconds] = Field(default_factory=dict)
    """What takes time whatever the bytes: a lookup, a state restored."""


class RoutePlace(Described):
    """An instance that could take the request."""

    queue: Seconds = 0.0
    """Until its GPUs are free."""
    state: Annotated[dict[str, Share], Field(min_length=1)] = Field(default_factory=lambda: {NOWHERE: 1.0})
    """Where the state is: probability of `local`, `nowhere` or the name of a path."""
    chances: Literal["each", "in-turn"] = "each"
    """`each` adds up to 1; `in-turn`: a location is asked when those before it missed, and then has it so often."""
    fetch: Literal["overlapped", "serial", "layer-wise"] = "overlapped"
    """While the request waits, only afterwards, or while it waits and while earlier layers compute."""
    hit: Seconds | None = None
    """In place of the request's."""
    recompute: Seconds | None = None
    """In place of the request's."""
    behind: list[Seconds] = Field(default_factory=list)
    """Work of tasks that wait there and would come after the request."""
    others_end: Seconds | None = None
    """When all other tasks end if the request comes here, where that was measured; else it is computed."""


class RouteTargets(Described):
    """What the first token shall keep; left out: none."""

    mean: Seconds | None = None
    p99: Seconds | None = None


class Routing(Described):
    """One routing question."""

    schema_version: Literal[1] = Field(alias="schema")
    """Version of the format: 1."""
    name: str
    about: str = ""
    request: RouteRequest
    links: dict[str, PositiveBytesPerSecond] = Field(default_factory=dict)
    """Bandwidths by name."""
    paths: dict[str, RoutePath] = Field(default_factory=dict)
    places: Annotated[dict[str, RoutePlace], Field(min_length=1)]
    targets: RouteTargets = Field(default_factory=RouteTargets)
    choose: Measure = "request"
    """What the choice is to make small: the request's mean, its p99, or the end of all tasks."""


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """Names that lead nowhere, and probabilities that do not add up to 1."""
    links, paths = mapping(data.get("links")), mapping(data.get("paths"))
    for name, path in entries(data.get("paths")):
        if name in (LOCAL, NOWHERE):
            yield problem(("paths", name), f"the name is taken: state that is {name} needs no path")
        over = path.get("over")
        for index, link in enumerate(over if isinstance(over, list) else []):
            if isinstance(link, str) and link not in links:
                yield _unknown(("paths", name, "over", index), "link", link, links)
    for name, place in entries(data.get("places")):
        state = mapping(place.get("state"))
        for location in state:
            if location not in (LOCAL, NOWHERE, *paths):
                yield _unknown(("places", name, "state", location), "location", location, (LOCAL, NOWHERE, *paths))
        if place.get("chances") != "in-turn":
            yield from _sum(("places", name, "state"), state)
        elif NOWHERE in state:
            accepted = "left out: the state is nowhere once all have missed"
            yield problem(("places", name, "state", NOWHERE), "cannot be asked in turn", None, accepted)
        if place.get("fetch") == "layer-wise" and mapping(data.get("request")).get("layers") is None:
            yield problem(
                ("request", "layers"), f"missing: {shown(name)} fetches layer-wise", None, "a number of layers"
            )


def _unknown(path: tuple[str | int, ...], kind: str, name: str, known: Any) -> Problem:
    guess = nearest(name, known)
    return problem(
        path, f"no such {kind}" + (f"; {guess}" if guess else ""), name, ", ".join(map(shown, known)) or None
    )


def _sum(path: tuple[str | int, ...], state: dict[str, Any]) -> Iterator[Problem]:
    try:
        total = sum(parse(value, SHARE) for value in state.values())
    except QuantityError:
        return  # told where it stands
    if state and abs(total - 1.0) > 1e-9:
        yield problem(path, f"the probabilities add up to {total:.6g}", None, "1 (100 %)")
