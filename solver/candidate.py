"""A candidate: one way to build a unit, checked against memory and targets; and why there is none.

It knows nothing of the master problem, and the master problem knows nothing of schemes.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from solver.cut import Cut, Part
from solver.device import Device
from solver.units import AFTER_ENCODE, Kind, MemoryUse


@dataclass(frozen=True)
class Beside:
    """GPUs of a unit on another group, or in another server of the same."""

    group: str
    cards: int
    block: int
    price: float
    """Money per second."""


@dataclass(frozen=True)
class Candidate:
    """One way to build a unit; how many of them is for the solver to choose."""

    name: str
    """Unique among the candidates at hand; see :func:`solver.dominance.named`."""
    label: str
    """Stage or scheme, group, model where there are several, and the cut where it is of several GPUs."""
    schemes: tuple[str, ...]
    """Schemes it can be part of."""
    kind: Kind
    group: str
    model: str
    cards: int
    """GPUs of `group`, those of parts that are in the same block included."""
    batches: Mapping[str, int]
    """Requests that it holds at once, by workload."""
    demand: Mapping[str, tuple[float, ...]]
    """By workload: unit-seconds of each resource per request."""
    memory: MemoryUse | None
    """None where it was measured, not computed."""
    startup: float
    """Seconds from stopped to ready."""
    price: float
    """Money per second of its GPUs on `group`; 0 where that has no price."""
    resources: tuple[str, ...] = ("time",)
    tp: int = 1
    pp: int = 1
    block: int = 1
    """GPUs that have to be in one server; a unit has ``cards / block`` such blocks."""
    cut: Cut | None = None
    """None where it was measured."""
    beside: tuple[Beside, ...] = ()
    """Its parts on GPUs outside of that."""
    tau: float | None = None
    """Step time that paces it, in s."""
    first: Mapping[str, float] = field(default_factory=dict)
    """Seconds to the first token without handoff, for workloads with a target for it that prefill here."""
    charges: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By workload: share of a channel that one request a second takes between its stages."""
    measured: str | None = None
    """Name of the measured unit that it is."""
    device: Device | None = None
    power: float = 0.0
    """Board power of one unit, in W; 0 where it is not known."""
    shared: str | None = None
    """What the candidates have in common that are one and the same unit, seen from its several uses."""
    hits: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    """By workload and number of parts of its prompt that were found: the same as `demand` for such a request."""
    room: float = 0.0
    """Bytes of whole states that fit in what is left of its memory; known where state is kept for later."""
    face: bool = False
    """Whether it is another use of a unit that is counted elsewhere: it has no GPUs of its own."""

    @property
    def stage(self) -> str:
        """prefill, decode, both or encode."""
        return self.kind.stage

    @property
    def begins(self) -> bool:
        """Whether each request that it serves begins there, its images apart."""
        return self.stage in ("prefill", "both")

    @property
    def after_encode(self) -> bool:
        """Whether it prefills requests whose images were encoded elsewhere."""
        return self.kind == AFTER_ENCODE

    @property
    def needs(self) -> dict[str, tuple[float, ...]]:
        """Demand of requests of each workload, and of those that find parts of their prompt."""
        found = {f"{name}#{k}": need for name, states in self.hits.items() for k, need in enumerate(states, 1)}
        return {**self.demand, **found}

    @property
    def all_cards(self) -> int:
        """GPUs of a unit, wherever they are."""
        return self.cards + sum(part.cards for part in self.beside)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts that do not hold context state."""
        return () if self.cut is None or self.face else self.cut.parts

    @property
    def pools(self) -> tuple[tuple[str, str], ...]:
        """Stage and group of each pool that its units make."""
        first = "attention" if self.parts else self.stage
        return (first, self.group), *((part.stage, part.group) for part in self.parts)

    def on(self, group: str) -> int:
        """GPUs of a unit on a group."""
        there = sum(part.cards for part in self.beside if part.group == group)
        return there + (self.cards if self.group == group else 0)

    def price_on(self, group: str) -> float:
        """Money per second of those."""
        there = sum(part.price for part in self.beside if part.group == group)
        return there + (self.price if self.group == group else 0.0)

    def blocks_on(self, group: str) -> Counter[int]:
        """Blocks of a unit on a group, by size."""
        sizes = Counter[int]()
        if self.group == group and self.block:
            sizes[self.block] += self.cards // self.block
        for part in self.beside:
            if part.group == group:
                sizes[part.block] += part.cards // part.block
        return sizes


@dataclass(frozen=True)
class Rejected:
    """A unit that cannot be built."""

    schemes: tuple[str, ...]
    stage: str
    group: str
    workload: str
    reason: str
    limit: str = "memory"
    """What it breaks: memory, or targets."""


Made = list[Candidate | Rejected]
