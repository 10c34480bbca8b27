"""Demand as described: workloads, service targets, schemes allowed, billing, limits."""

from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from models.base import Described
from models.quantities import (
    PositiveBytesPerSecond,
    PositiveRequestsPerSecond,
    PositiveSeconds,
    PositiveShare,
    RequestsPerSecond,
    Seconds,
    Share,
    TinyShare,
    TokenCount,
)
from models.reuse import Reuse, ToolWait, listed

Scheme = Literal[
    "replicas",
    "chunked",
    "pd-direct",
    "pd-pooled",
    "hybrid",
    "attention-ffn",
    "expert-pool",
    "cpu-experts",
    "encode-pd",
]
SCHEMES: tuple[Scheme, ...] = ("replicas", "chunked", "pd-direct", "pd-pooled")
"""Schemes that are allowed when an instance names none; the others have to be named."""
Stage = Literal["prefill", "decode", "both"]
PoolStage = Literal["prefill", "decode", "both", "attention", "ffn", "expert", "encode"]
Objective = Literal["effective_cost", "cost", "throughput", "headroom", "power", "gpus"]
Batch = Annotated[int, Field(ge=1, le=10**6)]
Cached = Annotated[int, Field(ge=0, le=10**9)]
Units = Annotated[int, Field(ge=0, le=10**7)]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


class Request(Described):
    """The length of one request."""

    input: TokenCount
    output: TokenCount


class Length(Described):
    """A class of requests of one workload."""

    share: TinyShare
    """Share of the workload's requests; all shares add up to 1."""
    input: TokenCount
    """Input tokens of a request, cached ones included."""
    output: TokenCount
    """Output tokens of a request, the first one included."""
    cached: Cached = 0
    """Input tokens whose state prefill already holds (prefix hit)."""


class LengthClass(NamedTuple):
    """A class of requests, as it is worked with."""

    share: float
    input: int
    output: int
    cached: int


class Targets(Described):
    """Times that every request has to keep: hard limits, without queueing."""

    ttft: PositiveSeconds | None = None
    """First token, handoff included."""
    tpot: PositiveSeconds | None = None
    """Time per output token after the first."""


class RatePoint(Described):
    """Arrivals from a moment on."""

    at: Seconds
    rate: RequestsPerSecond


class Bursts(Described):
    """Arrivals that come in part of the time, evenly there; `rate` is their mean."""

    every: PositiveSeconds
    """Length of a period; the first begins in second 0."""
    first: PositiveSeconds
    """All requests of a period come in its first seconds, so many."""


READ_AS: dict[str, str] = {
    "users": "People who send requests one after the other; the rate is users over `think_time`.",
    "think_time": "Time between an answer and the next request of the same user, e.g. `45 s`.",
    "per_day": "Requests a day.",
    "arrivals": "CSV file with a column of times, beside the instance; the rate is its mean, or what `plan_for` says.",
    "plan_for": "Percentile of windows to plan for, e.g. `p95 of 5-minute windows`; default: the mean.",
    "dispersion": "Variance over mean of the requests in a window, where no file of arrivals is given; default: 1.",
    "histogram": "CSV file with the columns input, output, and share or count, in place of `lengths`.",
    "pin": "The one group that may serve it.",
}
"""Keys of a workload in a file that are read as others: `rate`, `lengths`, `allow`."""


class Workload(Described):
    """Requests of one kind that arrive at one rate."""

    model: str
    """Name of an entry under `models`."""
    rate: PositiveRequestsPerSecond
    """Arrivals; or `users` with `think_time`, `per_day`, or `arrivals`, from which it follows."""
    rate_from: str | None = None
    """How the rate followed from what the file says."""
    mean_rate: PositiveRequestsPerSecond | None = None
    """Arrivals on average, where `rate` is that of a busy window; costs of a request are told by it."""
    bursts: Bursts | None = None
    """When its requests come, where not evenly. Plans are made for `rate`; `inferplan queue` follows the bursts."""
    profile: Annotated[list[RatePoint], Field(min_length=1, max_length=10_000)] | None = None
    """Arrivals over time, in its order; the last rate stays. An `arrivals` file becomes one. Followed like `bursts`."""
    input: TokenCount | None = None
    """Input tokens of a request, cached ones included; or `lengths`."""
    output: TokenCount | None = None
    """Output tokens of a request, the first one included."""
    cached: Cached = 0
    """Input tokens whose state prefill already holds (prefix hit)."""
    reuse: Annotated[list[Reuse], BeforeValidator(listed)] | None = None
    """Parts of the prompt that may have been computed before, in the order of the prompt; one may stand alone."""
    tool_wait: ToolWait | None = None
    """Pauses in which the state of a request is kept."""
    lengths: Annotated[list[Length], Field(min_length=1)] | None = None
    """Classes with shares in place of `input` and `output`; every unit that serves the workload gets the same mix."""
    images: Annotated[float, Field(ge=0.0, le=10_000.0)] = 0.0
    """Images of a request, on average; their features are part of the input."""
    image_hits: Share = 0.0
    """Share of the images whose features are in the encoder cache already."""
    batch: Batch | Literal["max"] | None = None
    """Requests that a decode unit holds at once: a number, `max` (what memory holds), or left out (chosen)."""
    qualifying: PositiveShare = 1.0
    """Share of finished requests that are good enough."""
    targets: Targets = Field(default_factory=Targets)
    """Times that every request has to keep."""
    value: Annotated[float, Field(gt=0.0, le=1e9)] = 1.0
    """What a qualifying request is worth beside those of other workloads."""
    minimum_share: PositiveShare = 1.0
    """Share of the arrivals that must be served; below 1 the rest may be turned away."""
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
    def classes(self) -> tuple[LengthClass, ...]:
        """Lengths with their shares; one class where there is a single length."""
        if self.lengths is not None:
            return tuple(LengthClass(one.share, one.input, one.output, one.cached) for one in self.lengths)
        return (LengthClass(1.0, self.input or 1, self.output or 1, self.cached),)

    @property
    def average(self) -> float:
        """Arrivals on average, in requests/s."""
        return self.rate if self.mean_rate is None else self.mean_rate

    @property
    def decodes(self) -> bool:
        """Whether any request has more than the one output token that prefill gives."""
        return any(one.output > 1 for one in self.classes)

    @property
    def mean_input(self) -> float:
        """Mean input tokens."""
        return sum(one.share * one.input for one in self.classes)

    @property
    def mean_output(self) -> float:
        """Mean output tokens."""
        return sum(one.share * one.output for one in self.classes)

    @property
    def longest_input(self) -> int:
        """Longest input that memory is checked with."""
        return self.longest.input if self.longest else max(one.input for one in self.classes)

    @property
    def longest_total(self) -> int:
        """Most tokens of a request, input and output, that memory is checked with."""
        if self.longest:
            return self.longest.input + self.longest.output
        return max(one.input + one.output for one in self.classes)


class StartupStep(Described):
    """A step in which a unit starts."""

    takes: Seconds | None = None
    """Its time; or `weights_at`."""
    weights_at: PositiveBytesPerSecond | None = None
    """Rate at which each GPU gets its weights; the time follows from the unit."""
    after: Annotated[list[str], BeforeValidator(_listed)] = Field(default_factory=list)
    """Steps that have to be over; a single one may stand alone."""
    within: str | None = None
    """Step that it is a part of: its time is in that of the other."""


class Service(Described):
    """What the service promises while and after it starts."""

    startup: Seconds = 0.0
    """From stopped to ready; or `steps`."""
    steps: dict[str, StartupStep] | None = None
    """Steps in which units start; a unit is ready when the last one is over, in whole seconds, rounded up."""
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
    """`reserved`: every GPU listed is paid. `used`: only those in the plan. What is bought or rented is paid too."""


class PoolLimit(Described):
    """A bound on the units of the pools that it names; what it leaves out matches every pool."""

    stage: PoolStage | None = None
    group: str | None = None
    scheme: Scheme | None = None
    model: str | None = None
    exactly: Units | None = None
    at_least: Units | None = None
    at_most: Units | None = None


class UnitLimit(Described):
    """A bound that holds for each pool that is there."""

    at_least: Annotated[int, Field(ge=1, le=10**6)]
    """Units of a pool, if it has any."""


class Spare(Described):
    """Units that may fail."""

    units: Annotated[int, Field(ge=1, le=10**6)]
    """Units of every pool without which the arrivals are still served."""


class Limits(Described):
    """Limits beside the cards that exist."""

    pools: list[PoolLimit] = Field(default_factory=list)
    units: UnitLimit | None = None
    """Least units of each pool."""
    spare: Spare | None = None
    """Arrivals are served with so many units fewer in every pool (N+1)."""
