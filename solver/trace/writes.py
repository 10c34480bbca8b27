"""Writes, reads and hits of a second tier under an upper one, policy by policy."""

from dataclasses import dataclass
from typing import Any

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
    """A drive and how long it has to last."""

    capacity: float
    """Bytes."""
    writes_per_day: float
    """Of its whole capacity, that it endures over its life."""
    life: float
    """Years, for which the endurance is stated; it cancels out of drives needed."""

    @property
    def endurance(self) -> float:
        """Bytes/s that one drive may be written for all its life."""
        return self.capacity * self.writes_per_day / 86400.0


def drives(found: Replayed, capacity: float, block_bytes: float, drive: Drive) -> dict[str, float | None]:
    """Drives that the writes need, and that the capacity needs; write amplification 1."""
    rate = found.tiers[1].writes * block_bytes / found.seconds if found.seconds > 0.0 else None
    return {
        "by_endurance": None if rate is None else rate / drive.endurance,
        "by_capacity": capacity * block_bytes / drive.capacity,
    }


def as_json(policy: str, found: Replayed, block_tokens: int, block_bytes: float | None) -> dict[str, Any]:
    """One row of the table."""
    upper, lower = found.tiers
    seconds = found.seconds if found.seconds > 0.0 else None

    def rate(blocks: int, each: float | None) -> float | None:
        return None if seconds is None or each is None else blocks * each / seconds

    return {
        "policy": policy,
        "hit_dram": upper.hits / found.accesses if found.accesses else None,
        "hit_ssd": lower.hits / found.accesses if found.accesses else None,
        "hit_block": found.hit_rate,
        "hit_token": found.token_hit_rate,
        "writes_blocks": lower.writes,
        "reads_blocks": lower.hits,
        "write_tokens_per_s": rate(lower.writes, block_tokens),
        "read_tokens_per_s": rate(lower.hits, block_tokens),
        "write_bytes_per_s": rate(lower.writes, block_bytes),
        "read_bytes_per_s": rate(lower.hits, block_bytes),
        "ssd_blocks_mean": lower.mean,
        "ssd_blocks_peak": lower.peak,
    }
