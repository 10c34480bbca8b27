"""Hardware as described: accelerators, groups of identical servers, links, stores, efficiency. No physics."""

from typing import Annotated, Literal

from pydantic import Field

from models.base import Described
from models.quantities import (
    Count,
    MoneyPerSecond,
    PositiveBytes,
    PositiveBytesPerSecond,
    PositiveFlopPerSecond,
    PositiveShare,
    PositiveWatts,
    Seconds,
)

Precision = Literal["bf16", "fp8"]
WeightPrecision = Literal["bf16", "fp8", "int4"]
Duplex = Literal["shared", "per-direction"]
Degrees = Annotated[list[Annotated[int, Field(ge=1, le=4096)]], Field(min_length=1)]
"""Degrees of parallelism; a single number in a file is a list of one."""


class Accelerator(Described):
    """One GPU as its data sheet describes it."""

    name: str
    """Catalog name, or a name of your own."""
    vendor: str | None = None
    """Maker."""
    memory: PositiveBytes
    """Device memory, decimal as vendors print it."""
    usable_memory: PositiveShare = 0.9
    """Share of the memory that an engine may fill."""
    bandwidth: PositiveBytesPerSecond
    """Peak memory bandwidth."""
    compute: Annotated[dict[str, PositiveFlopPerSecond], Field(min_length=1)]
    """Dense peak by precision; `bf16` is needed, `fp8` is used for FP8 weights where it is there."""
    scale_up: str | None = None
    """Catalog name of the link between GPUs of one server."""
    power: PositiveWatts | None = None
    """Board power."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Where each number comes from."""


class Cpu(Described):
    """One socket: its cores, the memory beside them, and what expert kernels reach on it."""

    name: str
    """Catalog name."""
    vendor: str | None = None
    """Maker."""
    cores: Count
    """Cores of the socket."""
    memory: PositiveBytes
    """Memory at the socket."""
    bandwidth: PositiveBytesPerSecond
    """Reached when threads read the memory of their own socket."""
    remote_bandwidth: PositiveBytesPerSecond
    """Reached when they read that of the other socket."""
    kernels: Annotated[dict[str, PositiveFlopPerSecond], Field(min_length=1)]
    """FLOP/s that matrix kernels reach, by instruction set."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Where each number comes from."""


class Efficiency(Described):
    """Share of peak that kernels reach."""

    compute: PositiveShare = 0.5
    """Of peak FLOP/s (MFU)."""
    bandwidth: PositiveShare = 0.5
    """Of peak memory bandwidth (MBU)."""


class ScaleUp(Described):
    """The link between the GPUs of one server, as one GPU sees it."""

    name: str | None = None
    """Catalog name."""
    bandwidth: PositiveBytesPerSecond
    """Of one GPU in one direction."""
    startup: Seconds = 0.0
    """Fixed time of each transfer."""
    link_efficiency: PositiveShare = 1.0
    """Payload share of the bandwidth."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Where each number comes from."""

    @property
    def payload_bandwidth(self) -> float:
        """Payload bandwidth of one GPU, in B/s."""
        return self.bandwidth * self.link_efficiency


class Host(Described):
    """The CPUs of a server, which may keep experts in their memory and compute them."""

    cpu: Cpu
    """A catalog name, a catalog name with changes, or a description of one socket."""
    sockets: Count = 2
    """Sockets of a server."""
    kernel: str
    """Instruction set of the expert kernels: a key of the CPU's `kernels`."""
    link: ScaleUp
    """Link between the host's memory and one GPU: a catalog name or a description."""


class Group(Described):
    """A group of identical servers; its GPUs are counted, never named."""

    accelerator: Accelerator
    """A catalog name, a catalog name with changes (`{catalog: NAME, memory: 40 GB}`), or a description."""
    server: str | None = None
    """Catalog name of the server; gives `accelerator` and `per_server`."""
    servers: Annotated[int, Field(ge=0, le=10**7)] | Literal["unlimited"]
    """Number of servers: those that are there (0 when all come from bundles), or `unlimited`: rented as needed."""
    per_server: Count
    """GPUs in one server."""
    price: MoneyPerSecond | None = None
    """Price of one GPU, in money per time."""
    rent: Literal["gpu", "server"] = "gpu"
    """What is rented at a time where `servers: unlimited`."""
    tp: Degrees | None = None
    """Tensor-parallel degrees of units on this group; default: every power of two up to `per_server`."""
    pp: Degrees | None = None
    """Pipeline-parallel degrees of units on this group; default: what the model needs to fit."""
    ep: Degrees | None = None
    """GPUs over which units on this group spread experts; default: powers of two up to 64. 1: experts stay with TP."""
    dp: Degrees | None = None
    """Groups of GPUs in such a unit that hold requests of their own; default: as many as there can be."""
    host: Host | None = None
    """CPUs of a server, for experts in host memory."""
    scale_up: ScaleUp | None = None
    """Link between the GPUs of one server: a catalog name or a description; default: the server's or accelerator's."""
    usable_memory: PositiveShare | None = None
    """Share of the GPU memory that an engine may fill; default: the accelerator's."""
    efficiency: Efficiency | None = None
    """Efficiency of this group; default: the hardware's."""
    startup: Seconds | None = None
    """From stopped to ready, for units on this group; default: the service's."""
    inside_handoffs: Literal["charged", "free"] = "charged"
    """Whether a handoff between two units of this group crosses the link it is on."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Kubernetes node labels; carried along."""

    @property
    def cards(self) -> int:
        """GPUs that are there, those of bundles and rented ones apart."""
        return 0 if self.servers == "unlimited" else self.servers * self.per_server

    @property
    def usable(self) -> float:
        """Share of the GPU memory that an engine may fill."""
        return self.accelerator.usable_memory if self.usable_memory is None else self.usable_memory


class Step(Described):
    """What may be added to a link, as often as `at_most` says."""

    ports: Count = 1
    """Ports of one step, of the kind that the link has."""
    price: MoneyPerSecond
    """Price of one step, on the whole link."""
    at_most: Annotated[int, Field(ge=1, le=10**4)]
    """Steps at most."""


class Bundle(Described):
    """GPUs that are bought together, whole."""

    cards: Annotated[dict[str, Count], Field(min_length=1)]
    """GPUs of each group in one bundle."""
    price: MoneyPerSecond | None = None
    """Price of one bundle, in money per time."""
    at_most: Annotated[int, Field(ge=0, le=10**7)] | None = None
    """Bundles at most; default: as many as needed."""


class Link(Described):
    """Anything that carries bytes between places; everything that shares it adds up."""

    connects: Annotated[list[str], Field(min_length=1)]
    """Groups and other links it joins; a store on it may be named too."""
    bandwidth: PositiveBytesPerSecond
    """Of one port in one direction; of the whole channel when `duplex: shared`."""
    duplex: Duplex = "per-direction"
    """`shared`: both directions draw on one bandwidth. `per-direction` (or `full`): each has its own."""
    startup: Seconds = 0.0
    """Fixed time of each transfer."""
    ports: Count = 1
    """Ports side by side."""
    per: Literal["link", "server"] = "link"
    """Whether the ports belong to the link as a whole or to every server on it."""
    link_efficiency: PositiveShare = 1.0
    """Payload share of the bandwidth; 1 when the bandwidth stated is the payload rate."""
    step: Step | None = None
    """Ports that may be added at a price."""
    sources: dict[str, str] = Field(default_factory=dict)
    """Where each number comes from."""

    @property
    def port_bandwidth(self) -> float:
        """Payload bandwidth of one port, in B/s."""
        return self.bandwidth * self.link_efficiency


class Store(Described):
    """A shared place that keeps context state, or features of images, on a link."""

    on: str
    """The link it is on."""
    holds: Literal["state", "features"] = Field(default="state", alias="for")
    """What it keeps: context state on its way to decode units, or features of images (the encoder cache)."""
    capacity: PositiveBytes
    """Bytes that it holds."""
    read: PositiveBytesPerSecond | None = None
    """Read bandwidth of the store itself; default: the link's."""
    write: PositiveBytesPerSecond | None = None
    """Write bandwidth of the store itself; default: the link's."""


class Hardware(Described):
    """The cluster."""

    groups: Annotated[dict[str, Group], Field(min_length=1)]
    links: dict[str, Link] = Field(default_factory=dict)
    stores: dict[str, Store] = Field(default_factory=dict)
    bundles: dict[str, Bundle] = Field(default_factory=dict)
    """GPUs that a plan may buy."""
    efficiency: Efficiency = Field(default_factory=Efficiency)

    @property
    def purchases(self) -> dict[str, Bundle]:
        """Everything that may be bought: bundles, and what is rented of an unlimited group, under the group's name."""
        return {**self.bundles, **{n: _rented(n, g) for n, g in self.groups.items() if g.servers == "unlimited"}}

    @property
    def endless(self) -> bool:
        """Whether more of something may be bought without a limit."""
        return any(bundle.at_most is None for bundle in self.purchases.values())


def _rented(name: str, group: Group) -> Bundle:
    """One rented GPU or server of an unlimited group; made of parts that were checked when they were read."""
    cards = group.per_server if group.rent == "server" else 1
    price = None if group.price is None else group.price * cards
    return Bundle.model_construct(cards={name: cards}, price=price, at_most=None)
