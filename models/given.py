"""Units that are stated instead of computed: measured rates, and what runs today."""

from typing import Annotated, Literal

from pydantic import Field

from models.base import Described
from models.quantities import Count, MoneyPerSecond, PositiveRequestsPerSecond, PositiveSeconds, Seconds, TokenCount
from models.workload import Batch, Scheme, Stage

Degree = Annotated[int, Field(ge=1, le=4096)]


class Point(Described):
    """What one unit was measured to do at one length."""

    input: TokenCount
    output: TokenCount
    rate: PositiveRequestsPerSecond
    """Requests that one unit completes when it gets nothing else."""
    ttft: PositiveSeconds | None = None
    tpot: PositiveSeconds | None = None


class Measured(Described):
    """A unit with measured rates; it stands in place of computed ones of the same model on the same group."""

    group: str
    model: str
    stage: Stage = "both"
    """`both`: a unit that serves whole requests."""
    scheme: Literal["replicas", "chunked"] | None = None
    """Of a unit that serves whole requests; default: whichever of the two is allowed first."""
    tp: Degree = 1
    pp: Degree = 1
    cards: Count | None = None
    """GPUs of one unit; default: tp x pp."""
    batch: Batch | None = None
    """Requests that it holds at once, where known."""
    rates: dict[str, PositiveRequestsPerSecond] = Field(default_factory=dict)
    """Requests/s of a workload that one unit completes when it gets nothing else."""
    table: list[Point] = Field(default_factory=list)
    """The same by length; a request counts as the nearest point that is at least as long in both."""
    ttft: PositiveSeconds | None = None
    """First token of a full unit."""
    tpot: PositiveSeconds | None = None
    """Time per output token of a full unit."""
    price: MoneyPerSecond | None = None
    """Price of one unit; default: that of its GPUs."""
    startup: Seconds | None = None
    """From stopped to ready; default: the group's."""
    beside_computed: bool = False
    """Whether computed units of the same model stay on this group."""
    source: str | None = None
    """Where the numbers come from."""

    @property
    def size(self) -> int:
        """GPUs of one unit."""
        return self.cards or self.tp * self.pp


class CurrentPool(Described):
    """Identical units that run today."""

    group: str
    units: Count
    stage: Stage = "both"
    scheme: Scheme | None = None
    """Default: the first allowed one that has such units."""
    model: str | None = None
    """May be left out where there is one."""
    tp: Degree = 1
    pp: Degree = 1
    ep: Degree = 1
    dp: Degree = 1
    batch: Batch | None = None
    """Requests that a unit holds at once; default: the workload's, or what memory holds."""
