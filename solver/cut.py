"""One way to build a unit: how it is cut over GPUs, what else it takes, and what passes between its parts."""

from dataclasses import dataclass

from models.plan import Parallelism
from solver.device import Device
from solver.topology import Path, Topology


@dataclass(frozen=True)
class Part:
    """GPUs of a unit beside those that hold context state."""

    stage: str
    """ffn or expert."""
    group: str
    cards: int
    block: int
    """GPUs that have to be in one server; 0 where they are in the block of the others."""
    memory: float
    """Bytes that one GPU may fill."""
    weights: float
    """Bytes on one GPU, without those of experts that tokens choose."""
    experts: float
    """Bytes of experts on one GPU."""
    buffers: float
    """Bytes of activations on one GPU."""
    tp: int = 1
    ep: int = 1

    @property
    def used(self) -> float:
        """Bytes on one GPU."""
        return self.weights + self.experts + self.buffers


@dataclass(frozen=True)
class Leg:
    """What passes between parts of a unit."""

    path: Path
    per_token: float
    """Bytes."""


@dataclass(frozen=True)
class Cut:
    """One way to build a unit, with the GPU that it is made of."""

    device: Device
    block: int
    """GPUs that have to be in one server."""
    tp: int
    pp: int = 1
    ep: int = 1
    dp: int = 1
    micro: int = 1
    """Micro-batches that pass through its parts one behind the other."""
    resident: int | None = None
    """Experts of each layer on the GPU, where the others are in host memory."""
    redundant: int = 0
    """Replicas of experts of each layer, over all GPUs that hold experts."""
    legs: tuple[Leg, ...] = ()
    """What crosses links of the cluster."""
    parts: tuple[Part, ...] = ()

    @property
    def cards(self) -> int:
        """GPUs that hold context state."""
        spread = self.ep if self.dp == 1 else self.dp
        return self.tp * self.pp * spread

    @property
    def inside(self) -> int:
        """GPUs of parts that are in the same block."""
        return sum(part.cards for part in self.parts if not part.block)

    @property
    def parallelism(self) -> Parallelism:
        """Its degrees."""
        return Parallelism(tp=self.tp, pp=self.pp, ep=self.ep, dp=self.dp)

    @property
    def text(self) -> str:
        """The same in words."""
        return self.parallelism.text

    @property
    def label(self) -> str:
        """The same with its parts, for names."""
        words = [] if self.text == "TP1" else [self.text.lower().replace(" x ", "-")]
        words += [f"{part.stage}{part.cards}@{part.group}" for part in self.parts]
        words += [f"{self.micro}mb"] if self.micro > 1 else []
        words += [f"{self.redundant}red"] if self.redundant else []
        words += [f"{self.resident}res"] if self.resident is not None else []
        return "-".join(words)

    def charges(self, topology: Topology, tokens: float) -> dict[str, float]:
        """Share of each channel that ``tokens`` tokens a second take between the parts of a unit."""
        shares: dict[str, float] = {}
        for leg in self.legs:
            for channel in leg.path.channels:
                key = f"link[{channel}]"
                capacity = topology.channels[channel].capacity
                shares[key] = shares.get(key, 0.0) + tokens * leg.per_token / capacity
        return shares
