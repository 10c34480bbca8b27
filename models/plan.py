"""The plan: what runs where, why, how good it is, and what it rests on. JSON is this object; the rest renders it.

Numbers are SI floats (s, B, B/s, requests/s, 1/s); money is in the instance's currency; unknown is None.
"""

from typing import Any, Literal

from pydantic import Field

from models.base import Described
from models.plan_tiers import Load, Reused, TierUse
from models.told import Assumption, Conflict, Marginal, Relaxation, Row, Status, Today


class ObjectiveValue(Described):
    """The first goal of the solve, with its proven bound."""

    name: str
    value: float | None
    """In `unit`."""
    bound: float | None
    """No plan can be better than this."""
    gap: float | None
    """|value - bound| / |value|."""
    unit: str


class Parallelism(Described):
    """How one unit is cut over cards."""

    tp: int = 1
    """GPUs that share matrices and heads."""
    ep: int = 1
    """Places that experts are spread over."""
    pp: int = 1
    """Stages of layers."""
    dp: int = 1
    """Groups of GPUs that hold requests of their own."""

    @property
    def text(self) -> str:
        """TP4, TP8 x PP2, DP8 x EP8, or TP2 x EP4."""
        words = (("TP", self.tp), ("PP", self.pp), ("DP", self.dp), ("EP", self.ep))
        return " x ".join(f"{word}{degree}" for word, degree in words if degree > 1) or "TP1"


class Memory(Described):
    """Memory of one card of a unit, in bytes."""

    weights: float
    """Without those of experts that tokens choose."""
    kv: float
    buffers: float
    experts: float
    free: float
    capacity: float


class Pool(Described):
    """The set of identical units of a stage."""

    name: str
    scheme: str
    stage: str
    group: str
    model: str
    units: int
    cards_per_unit: int
    cards: int
    parallelism: Parallelism
    batch: int | None
    """Requests in one decode step (the largest over the workloads); None where nothing is decoded."""
    batches: dict[str, int]
    """By workload."""
    serves: str
    """What it does for requests: encode, prefill, decode, or both; of a part, what its units do."""
    part_of: str | None = None
    """Pool whose units it is a part of, on GPUs of its own; its requests and times are told there."""
    micro_batches: int = 1
    """Parts of a batch that pass through the parts of a unit one behind the other."""
    resident_experts: int | None = None
    """Experts of each layer that stay on the GPU, where the others are in host memory."""
    redundant_experts: int = 0
    """Replicas of experts of each layer, over all GPUs of a unit that hold experts."""
    shares: str | None
    """Pool whose units it uses for another stage; it has no GPUs of its own."""
    step_s: float | None
    """Step time that paces decoding, where targets ask for one."""
    measured: str | None
    """Name of the measured unit that it is made of."""
    memory: Memory | None
    """None where units were measured, not computed."""
    utilisation: float
    """Busy share at the stated arrivals."""
    capacity: float
    """Requests/s of its present mix that the pool alone completes."""
    rates: dict[str, Load]
    """By workload."""
    hits: dict[str, list[Load]] = Field(default_factory=dict)
    """By workload: requests/s of those that find the first part of their prompt alone, the first two, and so on."""

    @property
    def begins(self) -> bool:
        """Whether each request that it serves begins there, its images apart."""
        return self.serves in ("prefill", "both")


class Servers(Described):
    """Servers that are filled alike, where units of several sizes do not nest in a server."""

    group: str
    count: int
    blocks: dict[str, int]
    """GPUs of a block (a unit, or a stage of one) -> blocks of that size that one server has room for."""


class FeatureHandoff(Described):
    """Features of images on their way to units that hold no encoder."""

    encoder: str | None
    """Group of the units that encode; None where every image is in the cache."""
    cache: str | None
    """Store that hits are read from and others written to; None where there are no hits."""
    links: list[str]
    """From the encode units, or from the cache where every image is in it."""
    bytes_per_request: float
    """Mean, hits included."""
    seconds: float
    """Until the last feature is there, of the request with most images: all encoded and handed over, or all read."""


class Handoff(Described):
    """Context state handed from one group to another."""

    name: str
    workload: str
    scheme: str
    source: str
    target: str
    store: str | None
    links: list[str]
    bytes_per_request: float
    """Payload of one crossing; a pooled handoff crosses twice."""
    seconds: float
    rate: Load
    features: FeatureHandoff | None = None
    """Of images that are encoded on units of their own: what comes to `source` before prefill."""


class Seconds(Described):
    """A time at the stated arrivals and at capacity, in s; None where there is none."""

    at_load: float | None
    at_capacity: float | None


class WorkloadResult(Described):
    """What one workload gets."""

    rate: float
    served: float
    capacity: float
    ttft_s: Seconds
    tpot_s: Seconds
    qualifying_rate: float
    reuse: Reused | None = None
    """What of its prompts is found; None where none comes back."""


class Resource(Described):
    """One row of the model that a user would name."""

    name: str
    demand: float
    """At the stated arrivals."""
    capacity: float
    utilisation: float
    binding: bool
    """Whether it is full when the plan gives its most."""
    unit: str


class Phase(Described):
    """A stretch of the drain in which the same pools are ready; rates in requests/s."""

    start_s: float
    end_s: float
    pools: dict[str, dict[str, float]]
    """Pool -> workload -> rate."""
    handoffs: dict[str, float]
    """Name of a handoff -> rate."""


class Drain(Described):
    """The startup backlog, in seconds from the start of startup."""

    ready_s: float
    backlog: float
    """Requests waiting when the last pool is ready."""
    drained_s: float | None
    """None: never."""
    deadline_s: float | None
    required_rate: float | None
    met: bool | None
    """None: no deadline."""
    phases: list[Phase]


class Cost(Described):
    """Money, in `currency`; requests are those that qualify."""

    per_hour: float | None
    per_1000_requests: float | None
    per_1000_at_capacity: float | None
    per_million_output_tokens: float | None
    per_million_total_tokens: float | None
    currency: str


class Purchase(Described):
    """What the plan buys or rents besides what is there."""

    name: str
    kind: Literal["bundle", "rented", "link step", "tier"]
    count: int
    cards: dict[str, int]
    """GPUs that come with it, by group."""
    per_hour: float | None
    """Money an hour for all of them."""


class Traffic(Described):
    """What crosses a link at the stated arrivals."""

    link: str
    bytes_per_s: float
    capacity: float
    utilisation: float


class Plan(Described):
    """The answer to an instance."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    instance: str
    instance_sha256: str
    instance_document: dict[str, Any]
    status: Status
    objective: ObjectiveValue
    solve_seconds: float
    scheme: str | None
    throughput: float | None
    pools: list[Pool]
    servers: list[Servers] = Field(default_factory=list)
    """How servers are filled, of groups where that is no matter of course."""
    handoffs: list[Handoff]
    workloads: dict[str, WorkloadResult]
    resources: list[Resource]
    drain: Drain | None
    cost: Cost
    purchases: list[Purchase]
    tiers: list[TierUse] = Field(default_factory=list)
    """State kept for later."""
    experts: list[dict[str, Any]] = Field(default_factory=list)
    traffic: list[Traffic]
    current: Today | None
    alternatives: list[Row]
    marginal: list[Marginal]
    conflicts: list[Conflict]
    relaxations: list[Relaxation]
    assumptions: list[Assumption]
    warnings: list[str]
    verified: bool

    def as_json(self) -> dict[str, Any]:
        """Plain data with the names of the public contract."""
        return self.model_dump(mode="json", by_alias=True)
