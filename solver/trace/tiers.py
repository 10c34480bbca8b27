"""Tiers of a cache of context state, as they are asked for and as a replay finds them."""

from dataclasses import dataclass
from math import inf
from typing import Literal

Write = Literal["all", "second_access", "on_eviction", "on_second_eviction", "never"]
WRITES: tuple[Write, ...] = ("all", "second_access", "on_eviction", "on_second_eviction", "never")
Routing = Literal["random", "session"]


@dataclass(frozen=True)
class Tier:
    """One tier; least recently used blocks leave it first."""

    name: str
    capacity: float = inf
    """Blocks that it holds."""
    retention: float = inf
    """Seconds after its last use in which a block stays; one that runs out leaves as if it were evicted."""
    holds: Literal["inclusive", "exclusive"] = "inclusive"
    """exclusive: a block that a faster tier takes leaves this one. inclusive: a copy stays."""
    write: Write = "all"
    """When a block is written here. all: at every access that does not find it here. second_access: the same, of blocks
    that were accessed before. on_eviction: when the tier above evicts it and there is no copy here. on_second_eviction:
    the same, of blocks that were accessed twice. never: the tier stays empty. The fastest tier takes all."""
    admission: int | None = None
    """Blocks whose accesses are remembered, least recently used ones forgotten first, for the policies that count to
    two; None: all of them."""
    shared: bool = False
    """One tier for all copies of the cache, where there are several."""

    @property
    def from_above(self) -> bool:
        """Whether what the tier above evicts comes here."""
        return self.write in ("on_eviction", "on_second_eviction")

    @property
    def counts_to_two(self) -> bool:
        """Whether accesses have to be remembered."""
        return self.write in ("second_access", "on_second_eviction")


@dataclass(frozen=True)
class Found:
    """What one tier did, all copies together, in the requests that count."""

    name: str
    hits: int
    """Accesses that this tier serves: no faster one has the block. Each is a read of the tier."""
    hit_tokens: int
    writes: int
    """Blocks written to it."""
    evictions: int
    """Blocks that left for want of room, or because their time was over."""
    mean: float
    """Blocks held, mean over the time that counts; where that is none, at its end."""
    peak: int
    """Most blocks held after a request; of several copies, the sum of their peaks."""


@dataclass(frozen=True)
class Replayed:
    """A replay: the tiers, and what was asked of them."""

    tiers: tuple[Found, ...]
    requests: int
    accesses: int
    tokens: int
    """Input tokens, those in no block included."""
    seconds: float
    """From the first request that counts to the end."""

    @property
    def hit_rate(self) -> float:
        """Share of accesses that some tier serves; 0 of none."""
        return sum(tier.hits for tier in self.tiers) / self.accesses if self.accesses else 0.0

    @property
    def token_hit_rate(self) -> float:
        """Share of input tokens that some tier serves."""
        return sum(tier.hit_tokens for tier in self.tiers) / self.tokens if self.tokens else 0.0


def check(tiers: tuple[Tier, ...], copies: int) -> None:
    """Raises ValueError for tiers that cannot be."""
    if not tiers or copies < 1:
        raise ValueError("a cache needs a tier and a copy")
    first, *lower = tiers
    if first.write != "all" or first.holds != "inclusive":
        raise ValueError(f"{first.name}: the fastest tier takes every block")
    for tier in tiers:
        if not (tier.capacity >= 0.0 and tier.retention >= 0.0) or (tier.admission is not None and tier.admission < 1):
            raise ValueError(f"{tier.name}: capacity and retention are 0 or more, admission 1 or more")
    for tier in lower:
        if tier.holds == "exclusive" and tier.write in ("all", "second_access"):
            raise ValueError(f"{tier.name}: a tier that is written at accesses holds what faster tiers hold")
    if [tier.shared for tier in tiers] != sorted(tier.shared for tier in tiers):
        raise ValueError("tiers below a shared one are shared")
