"""Moving a unit that keeps serving: a copy in the background, then a short pause for what was added (section 9.6.2)."""

import math
from dataclasses import dataclass

from solver.formulas import migration


@dataclass(frozen=True)
class Migration:
    """A live migration; infinite times where the copy never has enough."""

    background: float
    """Seconds of copying while the source serves."""
    pause: float
    """Seconds in which nobody serves: the rest is copied, and state and ownership change hands together."""
    copied: float
    """Bytes that cross the link."""
    grown: float
    """Bytes of state added during the copy."""

    @property
    def seconds(self) -> float:
        """From the start of the copy to the handover."""
        return self.background + self.pause

    @property
    def ends(self) -> bool:
        """Whether the copy ever has enough."""
        return math.isfinite(self.background)


def migrate(state: float, bandwidth: float, growth: float, pause: float = 0.0) -> Migration:
    """The quickest migration with a pause of at most ``pause`` seconds; without one the copy has to catch up fully.

    A copy no faster than the growth never comes nearer: only a pause that is long enough for all of it helps.
    """
    rest = min(state, bandwidth * pause)
    background = migration.catch_up_seconds(state - rest, bandwidth, growth)
    if not math.isfinite(background):
        return Migration(math.inf, rest / bandwidth, math.inf, math.inf)
    grown = migration.grown_bytes(growth, background)
    return Migration(background, rest / bandwidth, state + grown, grown)
