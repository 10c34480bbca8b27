"""Writes, reads and hits of a second tier under an upper one, policy by policy."""

from dataclasses import dataclass

from models.trace.chunks import Trace
from solver.trace.replay import replay
from solver.trace.tiers import Replayed, Tier, Write

POLICIES: dict[str, tuple[Write, str]] = {
    "through": ("all", "every block that the tier does not have is written when it is accessed"),
    "demote": ("on_eviction", "a block is written when the upper tier evicts it; a copy stays when it is read"),
    "exclusive": ("on_eviction", "as demote, but a block that is read moves up, and is written again"),
    "second-access": ("second_access", "a block is written when it is accessed for the second time"),
    "demote-second": ("on_second_eviction", "as demote, of blocks that were accessed twice"),
}
"""Name -> how the tier is written, and what that means."""


def tiers(policy: str, upper: float, lower: float, admission: int | None = None) -> tuple[Tier, Tier]:
    """The two tiers of a policy; capacities in blocks."""
    write = POLICIES[policy][0]
    below = Tier("ssd", lower, holds="exclusive" if policy == "exclusive" else "inclusive", write=write)
    if below.counts_to_two:
        below = Tier("ssd", lower, write=write, admission=admission)
    return Tier("dram", upper), below


def table(
    trace: Trace, upper: float, lower: float, first: int = 0, admission: int | None = None
) -> dict[str, Replayed]:
    """Every policy on a trace: its name -> the replay."""
    size = trace.block_tokens or 0
    return {
        policy: replay(trace.chunks(), tiers(policy, upper, lower, admission), size, first=first) for policy in POLICIES
    }


@dataclass(frozen=True)
class Drive:
    """A drive, and how often its whole capacity may be written in a day over its life."""

    capacity: float
    """Bytes."""
    writes_per_day: float
    years: float
    """Its life, for which that is promised."""

    @property
    def endurance(self) -> float:
        """Bytes that may be written to it over its life."""
        return self.capacity * self.writes_per_day * 365.0 * self.years

    @property
    def rate(self) -> float:
        """Bytes/s that it endures all its life."""
        return self.endurance / (86400.0 * 365.0 * self.years)
