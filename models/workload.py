"""Demand as described: workloads, service targets, schemes allowed, billing, limits."""

from typing import Annotated, Literal

from pydantic import Field

from models.base import Described
from models.quantities import PositiveRequestsPerSecond, PositiveSeconds, PositiveShare, Seconds, TokenCount

Scheme = Literal["replicas", "chunked", "pd-direct", "pd-pooled"]
SCHEMES: tuple[Scheme, ...] = ("replicas", "chunked", "pd-direct", "pd-pooled")
Stage = Literal["prefill", "decode", "both"]
Objective = Literal["effective_cost", "cost", "throughput", "gpus"]
Batch = Annotated[int, Field(ge=1, le=10**6)]


class Request(Described):
    """The length of one request."""

    input: TokenCount
    output: TokenCount


class Workload(Described):
    """Requests of one kind that arrive at one rate."""

    model: str
    """Name of an entry under `models`."""
    rate: PositiveRequestsPerSecond
    """Arrivals."""
    input: TokenCount
    """Input tokens of a request, cached ones included."""
    output: TokenCount
    """Output tokens of a request, the first one included."""
    cached: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Input tokens whose state prefill already holds (prefix hit)."""
    batch: Batch | Literal["max"] | None = None
    """Requests that share a decode step: a number, `max` (what memory holds), or left out (chosen)."""
    qualifying: PositiveShare = 1.0
    """Share of finished requests that are good enough."""
    allow: Annotated[list[str], Field(min_length=1)] | None = None
    """Groups that may serve it; default: every group."""
    deny: list[str] = Field(default_factory=list)
    """Groups that may not serve it."""
    longest: Request | None = None
    """Longest request admitted; memory is checked with it. Default: the request itself."""

    def may_use(self, group: str) -> bool:
        """Whether units on ``group`` may serve it."""
        return group not in self.deny and (self.allow is None or group in self.allow)

    @property
    def admitted(self) -> Request:
        """The request that memory is checked with."""
        return self.longest or Request(input=self.input, output=self.output)


class Service(Described):
    """What the service promises while and after it starts."""

    startup: Seconds = 0.0
    """From stopped to ready."""
    drain: PositiveSeconds | None = None
    """Deadline by which the startup backlog is gone, counted from the start of startup."""


class Schemes(Described):
    """Ways to deploy that a plan may use."""

    allow: Annotated[list[Scheme], Field(min_length=1)] = Field(default_factory=lambda: list(SCHEMES))
    """Allowed schemes; their order is the last tie-break."""
    mix: bool = True
    """Whether several schemes may stand side by side in one plan."""


class Billing(Described):
    """How GPUs are paid for."""

    currency: str = "USD"
    pay: Literal["reserved", "used"] = "reserved"
    """`reserved`: every GPU listed is paid. `used`: only those in the plan."""


class PoolLimit(Described):
    """A bound on the units of the pools that it names; what it leaves out matches every pool."""

    stage: Stage | None = None
    group: str | None = None
    scheme: Scheme | None = None
    model: str | None = None
    exactly: Annotated[int, Field(ge=0, le=10**7)] | None = None
    at_least: Annotated[int, Field(ge=0, le=10**7)] | None = None
    at_most: Annotated[int, Field(ge=0, le=10**7)] | None = None


class Limits(Described):
    """Limits beside the cards that exist."""

    pools: list[PoolLimit] = Field(default_factory=list)
