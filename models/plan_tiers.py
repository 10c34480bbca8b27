"""What a plan says of state that is kept for later: how long, where, and what finds it."""

from models.base import Described


class Load(Described):
    """A rate at the stated arrivals and at the most the plan sustains, in requests/s."""

    at_load: float
    at_capacity: float


class AgeShare(Described):
    """Requests whose state is kept for one time."""

    age_s: float
    rate: float
    """Requests/s at the load."""


class Retained(Described):
    """How long the state of one part of the prompts of a workload on a group is kept."""

    workload: str
    part: int
    group: str
    ages: list[AgeShare]


class Found(Described):
    """Requests that find a part of their prompt."""

    workload: str
    part: int
    group: str
    """Where they begin."""
    bytes_per_hit: float
    rate: Load
    first_token_s: float | None
    """Of the slowest unit in use there, when all they find is read from this tier; handoff apart."""


class Paused(Described):
    """Requests whose state stays here while they wait for tools."""

    workload: str
    group: str
    bytes_each: float
    rate: Load
    """Pauses/s."""


class TierUse(Described):
    """A tier of one group, or a pool that groups share."""

    name: str
    tier: str
    group: str | None
    model: str | None
    """Of HBM, which units of each model have for themselves."""
    policy: str
    """What is written: all, second_hit, on_eviction; `never` where it is not used."""
    retention_s: float | None
    """Time for which everything is kept (the characteristic time of LRU); None where times differ, or nothing is."""
    pieces: int
    """DIMM steps, drives or nodes."""
    capacity: float
    """Bytes, with the pieces."""
    alive: float
    """Mean bytes that are kept."""
    headroom: float
    """Capacity asked for over that."""
    read: Load
    """B/s."""
    written: Load
    """B/s."""
    endurance: float | None
    """B/s that may be written for the stated life."""
    per_hour: float
    """Money for the pieces."""
    found: list[Found]
    paused: list[Paused]
    retained: list[Retained]


class Reused(Described):
    """What of the prompts of a workload is found, at the load."""

    requests: float
    """Share that finds anything."""
    tokens: float
    """Share of the input tokens that need not be computed."""
    parts: list[float]
    """Share of the requests that find each part of the prompt."""
