"""What is told beside a plan: other schemes, what runs today, what one more brings, why nothing fits, assumptions."""

from typing import Literal

from pydantic import Field

from models.base import Described

Status = Literal["optimal", "feasible", "infeasible", "stopped"]


Provenance = Literal["roofline", "calibrated", "measured", "given", "catalog", "default"]


class Row(Described):
    """One scheme on its own, without the sustain and drain limits."""

    scheme: str
    status: Status
    throughput: float | None
    compute_capacity: float | None
    channel_capacity: float | None
    payload_bytes_per_request: float | None
    drained_s: float | None
    met: bool | None
    cost_per_1000_requests: float | None
    cost_per_1000_at_capacity: float | None
    split: dict[str, dict[str, int]]
    built: list[str] = Field(default_factory=list)
    """Pools in words, one text for each stage: `P: 4 a100 + 2x8 h100`, `2x8` being two units of eight GPUs."""
    excluded: bool
    reason: str | None


class Today(Described):
    """What runs today, evaluated as it stands."""

    throughput: float
    """Requests/s of the stated mix that it sustains."""
    holds: bool
    """Whether it keeps every promise."""
    reason: str | None
    """The promise that it breaks."""
    binds: list[str]
    """Resources that are full when it gives its most."""
    breaks_at: float | None
    """Arrivals from which a promise breaks, in requests/s; None where one is broken already."""
    drained_s: float | None
    cost_per_hour: float | None
    cards: dict[str, int]
    """GPUs in use, by group."""


class Marginal(Described):
    """What one more of something brings."""

    name: str
    step: float
    unit: str
    gain: float | None
    """What the step brings: requests/s for `cards[..]`, money an hour for `cost[..]`; None for margins."""
    text: str


class Conflict(Described):
    """Limits that cannot hold together."""

    limits: list[str]


class Relaxation(Described):
    """A change of one limit that makes the instance solvable."""

    path: str
    before: str = Field(alias="from")
    after: str = Field(alias="to")
    unit: str
    text: str


class Assumption(Described):
    """A number that the plan rests on, and where it comes from."""

    name: str
    value: str
    provenance: Provenance


class TierRow(Described):
    """The best plan with other tiers: without one, or with one policy alone."""

    name: str
    """`as it is`, `without ssd`, `ssd: second_hit`, `HBM alone`, `nothing kept`."""
    status: Status
    objective: float | None
    cost_per_hour: float | None
    cost_per_1000_requests: float | None
    throughput: float | None
    cards: int | None
    """GPUs in use."""
    tokens_found: float | None
    """Share of all input tokens that need not be computed."""
    pieces: dict[str, int]
    """Steps, drives or nodes of each place."""
    policies: dict[str, str]
    """What is written to each place that is in use."""
    worse: float | None
    """How much worse the objective is than as it is, relative; below 0 where it is better."""
