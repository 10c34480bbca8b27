"""What `inferplan transition` is asked: the steps from one deployment to the next, and what arrives meanwhile."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from models import catalog, demands
from models.base import Described
from models.errors import Problem, nearest, shown
from models.plain import entries, is_whole, mapping, problem
from models.quantities import (
    Bytes,
    BytesPerSecond,
    Count,
    PositiveBytesPerSecond,
    PositiveRequestsPerSecond,
    PositiveSeconds,
    RequestsPerSecond,
    Seconds,
    Share,
    TokenCount,
)
from models.workload import RatePoint

WORK = ("takes", "bytes", "reshard", "loads")
"""Keys of which a step has one: what there is to do."""
MOST_BURSTS = 10_000
Positive = Annotated[float, Field(gt=0, le=1e6)]
Tokens = Annotated[int, Field(ge=0, le=10**9)]


class MoveLink(Described):
    """What carries bytes, one move at a time."""

    bandwidth: PositiveBytesPerSecond
    """Of one port, in one direction."""
    per: Literal["port", "card"] = "port"
    """One port carries all bytes, or each GPU has its own and the busiest one decides."""


class Resharding(Described):
    """Other degrees of tensor parallelism for a unit whose requests move with it."""

    model: str
    """Of the catalog; weights and state in BF16."""
    before: Annotated[int, Field(ge=1, le=4096, alias="from")]
    """GPUs of the unit today; numbered from 0."""
    after: Annotated[int, Field(ge=1, le=4096, alias="to")]
    """GPUs afterwards."""
    tokens: Tokens = 0
    """Tokens of state that move along, over all requests."""
    apart: bool = False
    """The new unit stands on other GPUs; else it begins with the same ones."""


class TransitionStep(Described):
    """One step. It has one of `takes`, `bytes`, `reshard` and `loads`."""

    takes: Seconds | None = None
    """Time that no link makes shorter."""
    saves: PositiveSeconds | None = None
    """What preparing this, a captured graph for example, saves of every batch executed later."""
    bytes: Bytes | None = None
    """To be moved over `link`."""
    reshard: Resharding | None = None
    """Bytes that follow from other degrees of parallelism."""
    loads: Literal["new-units"] | None = None
    """Weights of the units that the second of two plans adds."""
    link: str | None = None
    grows: BytesPerSecond = 0.0
    """State that is added while `bytes` are copied: the source keeps serving."""
    pause: Seconds = 0.0
    """With `grows`: how long the source may stop at the end of the copy."""
    after: Annotated[list[str], Field(max_length=1000)] = Field(default_factory=list)
    """Steps that must have ended."""
    within: str | None = None
    """A step that includes this one: its time is not added again."""


class Burst(Described):
    """Requests that arrive at once."""

    at: Seconds
    requests: Count
    weight: Positive = 1.0
    """Work of one of them, where that of a usual request is 1."""
    every: PositiveSeconds | None = None
    """Arrives again after this time."""
    times: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often in all."""


class Arriving(Described):
    """Arrivals from the start of the transition on."""

    rate: RequestsPerSecond | None = None
    """Constant; or `points`."""
    points: Annotated[list[RatePoint], Field(max_length=10_000)] = Field(default_factory=list)
    """Rates that change, in the order of time."""
    bursts: Annotated[list[Burst], Field(max_length=1000)] = Field(default_factory=list)
    """On top of the rate."""


class Serving(Described):
    """Requests/s that are served."""

    before: RequestsPerSecond | None = None
    """Until the old units stop."""
    stops: str | None = None
    """The step with whose start they stop, or with whose pause, if it has one; left out: at once."""
    during: RequestsPerSecond | None = None
    """From then until all is ready."""
    after: RequestsPerSecond | None = None
    """From then on."""


class RolloutVersion(Described):
    """A version of the model: weights are fixed to its GPUs."""

    unit_rate: PositiveRequestsPerSecond
    """Requests/s of one unit."""
    cards: Count = 1
    """GPUs of one unit."""


class Rollout(Described):
    """Two versions side by side, with a growing share of requests on the new one."""

    old: RolloutVersion
    new: RolloutVersion
    shares: Annotated[list[Share], Field(min_length=1, max_length=100)]
    """Of requests on the new version, stage by stage."""
    cards: Count
    """GPUs there are."""


class Failure(Described):
    """A request that was interrupted."""

    input: TokenCount
    """Tokens of its prompt."""
    returned: Tokens
    """Outputs that the user has seen."""
    logged: Tokens | None = None
    """Outputs on record; left out: all that were returned."""
    saved: Tokens = 0
    """Tokens with saved state."""
    compatible: bool = True
    """Whether that state is of the weights and format that run now."""


class Transition(Described):
    """One transition."""

    schema_version: Literal[1] = Field(alias="schema")
    """Version of the format: 1."""
    name: str
    about: str = ""
    links: dict[str, MoveLink] = Field(default_factory=dict)
    steps: Annotated[dict[str, TransitionStep], Field(min_length=1, max_length=1000)]
    service: Serving = Field(default_factory=Serving)
    arrivals: Arriving = Field(default_factory=Arriving)
    deadline: Seconds | None = None
    """Second by which nothing may wait any more."""
    rollout: Rollout | None = None
    failures: dict[str, Failure] = Field(default_factory=dict)


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """Names that lead nowhere, steps without work or with too much of it, times out of order."""
    steps, links = mapping(data.get("steps")), mapping(data.get("links"))
    for name, step in entries(steps):
        yield from _step(name, step, steps, links)
    stops = mapping(data.get("service")).get("stops")
    if isinstance(stops, str) and stops not in steps:
        yield _unknown(("service", "stops"), "step", stops, steps)
    arrivals = mapping(data.get("arrivals"))
    if "rate" in arrivals and arrivals.get("points"):
        yield problem(("arrivals", "points"), "stands beside a constant rate", None, "one of both")
    bursts = arrivals.get("bursts")
    times = [one.get("times", 1) for one in bursts if isinstance(one, dict)] if isinstance(bursts, list) else []
    if sum(one for one in times if is_whole(one)) > MOST_BURSTS:
        yield problem(("arrivals", "bursts"), "too many bursts", None, f"at most {MOST_BURSTS:,} in all")
    yield from demands.in_order(arrivals.get("points"), ("arrivals", "points"))
    for name, failure in entries(data.get("failures")):
        returned, logged = failure.get("returned"), failure.get("logged")
        if isinstance(returned, int) and isinstance(logged, int) and logged > returned + 1:
            accepted = "at most one more than was returned: an output is recorded, then returned"
            yield problem(("failures", name, "logged"), "is more than can be on record", logged, accepted)


def _step(name: str, step: dict[str, Any], steps: dict[str, Any], links: dict[str, Any]) -> Iterator[Problem]:
    place = ("steps", name)
    work = [key for key in WORK if step.get(key) is not None]
    if len(work) != 1:
        message = "has nothing to do" if not work else f"has {' and '.join(work)}"
        yield problem(place, message, None, f"one of {', '.join(WORK)}")
    if work and work != ["takes"] and step.get("link") is None:
        yield problem((*place, "link"), f"missing: {work[-1]} go over a link", None, ", ".join(links) or "a link")
    if isinstance(step.get("link"), str) and step["link"] not in links:
        yield _unknown((*place, "link"), "link", step["link"], links)
    for key in ("grows", "pause"):
        if key in step and ("bytes" not in step or (key == "pause" and "grows" not in step)):
            yield problem(
                (*place, key), "is for state that is copied while it grows", None, "bytes and grows beside it"
            )
    if isinstance(step.get("reshard"), dict):
        yield from _reshard((*place, "reshard"), step["reshard"])
    if "saves" in step and "takes" not in step:
        yield problem((*place, "saves"), "is for a step that takes a stated time", None, "takes beside it")
    after = step.get("after")
    listed = [((*place, "after", i), other) for i, other in enumerate(after)] if isinstance(after, list) else []
    for where, other in listed:
        if isinstance(other, str) and other not in steps:
            yield _unknown(where, "step", other, steps)
        elif isinstance(other, str) and mapping(steps[other]).get("within") != step.get("within"):
            yield problem(where, "is within another step, or this one is", other, "steps side by side")
    outer = step.get("within")
    if isinstance(outer, str) and outer not in steps:
        yield _unknown((*place, "within"), "step", outer, steps)
    elif isinstance(outer, str) and mapping(steps[outer]).get("within") is not None:
        yield problem((*place, "within"), "is within another step itself", outer, "a step that is in no other")


def _reshard(place: tuple[str | int, ...], asked: dict[str, Any]) -> Iterator[Problem]:
    """A model of the catalog, and degrees that its KV heads can be cut by."""
    name = asked.get("model")
    found = catalog.entry("models", name) if isinstance(name, str) else None
    if found is None:
        if isinstance(name, str):
            yield _unknown((*place, "model"), "model in the catalog", name, catalog.names("models"))
        return
    heads = 1 if found.get("kv_lora_rank") else found.get("num_key_value_heads")
    for key in ("from", "to"):
        degree = asked.get(key)
        if is_whole(degree) and is_whole(heads) and degree > 0 and heads % degree and degree % heads:
            accepted = f"a divisor or a multiple of its {heads} KV heads"
            yield problem((*place, key), f"does not cut the state of {shown(name)}", degree, accepted)


def _unknown(path: tuple[str | int, ...], kind: str, name: str, known: Any) -> Problem:
    guess = nearest(name, known)
    return problem(
        path, f"no such {kind}" + (f"; {guess}" if guess else ""), name, ", ".join(map(shown, known)) or None
    )
