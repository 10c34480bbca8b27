"""The sections of a layer question."""

from typing import Annotated, Literal

from pydantic import Field

from models.base import Described
from models.hardware import Efficiency
from models.layer.fields import MOST_EXPERTS, CatalogCpu, CatalogGpu, CatalogLlm, Index, OneOrMore, RowList, Rows
from models.llm import Dimension
from models.quantities import (
    Bytes,
    Count,
    PositiveBytes,
    PositiveBytesPerSecond,
    PositiveRequestsPerSecond,
    RequestsPerSecond,
    Seconds,
    TokenCount,
)

Precision = Literal["bf16", "fp8", "int8", "int4"]
Cards = Annotated[int, Field(ge=1, le=MOST_EXPERTS)]
Stage = Annotated[str, Field(min_length=1)]
MOST_IN_A_GRAPH = 32
"""Cards of a side: for more of them it takes a minute to look for cuts."""
MOST_CHOICES = 10**9
"""Choices that a simulation draws in all."""


class ExpertShape(Described):
    """A gated expert of your own: two matrices from `hidden` to `width`, one back."""

    hidden: Dimension
    width: Dimension
    experts: Count | None = None
    """Routed experts of a layer."""
    chosen: Count | None = None
    """Experts that a token chooses."""
    layers: Count | None = None
    """Layers with experts."""


class OfExperts(Described):
    """A section about experts: those of a model, or of a shape."""

    model: CatalogLlm | None = None
    """Of the catalog."""
    expert: ExpertShape | None = None
    """In place of a model."""
    weights: Precision | None = None
    """Of the experts; left out: the model's, or BF16. INT4 without its scales."""


class Offloading(OfExperts):
    """Experts whose weights are in host memory: computed by the CPU there, or moved to a GPU (section 9.3.2)."""

    cpu: CatalogCpu
    kernel: str
    """One of the kernels of the CPU."""
    gpu: CatalogGpu
    efficiency: Efficiency = Field(default_factory=Efficiency)
    """Of the GPU."""
    link: PositiveBytesPerSecond
    """Between both, in one direction."""
    startup: Seconds = 0.0
    """Of each transfer."""
    rows: Annotated[RowList, OneOrMore] | None = None
    """Of each expert; a single number is that of each of `over` experts."""
    tokens: TokenCount | None = None
    """In place of `rows`: a batch whose choices are spread evenly over `over` experts."""
    over: Count | None = None
    """Experts that get rows; left out: one with `rows`, all with `tokens`."""
    sockets: Annotated[int, Field(ge=1, le=64)] = 1
    """CPU sockets that compute at the same time."""
    homes: Annotated[list[Index], Field(min_length=1)] | None = None
    """Socket in whose memory the weights of each expert are; left out: in turn."""
    read: Literal["local", "remote"] = "local"
    """Whether a socket reads its own memory, or that of the other one."""
    gpu_memory: PositiveBytes | None = None
    """For experts that stay on the GPU, over all layers."""
    keep: Count | None = None
    """Experts of each layer that stay on the GPU; left out: as many as fit in `gpu_memory`."""
    demand: RequestsPerSecond | None = None
    """Tokens that arrive a second, for what the CPU can compute."""


class ExchangeGroup(Described):
    """One group of servers whose cards all have tokens and experts."""

    servers: Cards
    per_server: Cards
    inside: PositiveBytesPerSecond
    """Of a card to the others of its server, in one direction."""


class Exchange(OfExperts):
    """Inputs to the cards of their experts, and results back (section 9.4.1)."""

    gpu: CatalogGpu
    efficiency: Efficiency = Field(default_factory=Efficiency)
    rows: Annotated[list[Rows], Field(min_length=1, max_length=MOST_IN_A_GRAPH)] | None = None
    """Of each card with experts, from all sources together; every source sends as many."""
    tokens: TokenCount | None = None
    """In place of `rows`: a batch, its choices spread evenly, experts dealt to `cards` in order."""
    cards: Annotated[int, Field(ge=1, le=MOST_IN_A_GRAPH)] | None = None
    """Cards with experts."""
    hot: Rows | None = None
    """Rows of the first expert; the others share the rest."""
    sources: Annotated[int, Field(ge=1, le=MOST_IN_A_GRAPH)] | None = None
    """Cards of another pool that have the tokens; or `group`."""
    group: ExchangeGroup | None = None
    """In place of `sources`: the cards have the tokens themselves."""
    link: PositiveBytesPerSecond
    """Of each card to the other pool, or to other servers, in one direction."""
    between: PositiveBytesPerSecond | None = None
    """What the switches of two pools carry; left out: all that the cards can."""
    dispatch: Literal["bf16", "fp8"] = "bf16"
    """Precision of inputs on their way; results come back in BF16."""
    experts_per_card: Count | None = None
    """Experts whose weights a card reads for the batch; left out: reading is not counted."""
    micro_batches: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Equal parts of the batch, whose stages run at the same time."""
    requests: PositiveRequestsPerSecond | None = None
    """Messages a second that a card's NIC can start."""


class CopyTo(Described):
    """One more copy of an expert."""

    expert: Index
    to: Index
    """Card."""


class Tile(Described):
    """An output tile of a grouped GEMM."""

    rows: Annotated[int, Field(ge=1, le=10**6)] = 64
    columns: Annotated[int, Field(ge=1, le=10**6)] = 128


class LayerBudget(Described):
    """Which layers get copies."""

    savings: Annotated[list[Seconds], Field(min_length=1, max_length=10_000)]
    """Of each layer, if it got one more expert on the card."""
    memory: Bytes
    """For all of them, on one card."""


class Copies(OfExperts):
    """Copies of hot experts on other cards (section 9.4.2)."""

    gpu: CatalogGpu
    efficiency: Efficiency = Field(default_factory=Efficiency)
    cards: Cards
    rows: RowList
    """Of each expert, in one batch."""
    homes: Annotated[list[Index], Field(min_length=1)] | None = None
    """Card of each expert; left out: all on card 0."""
    copies: Annotated[list[CopyTo], Field(min_length=1, max_length=MOST_EXPERTS)]
    link: PositiveBytesPerSecond
    """Copies are sent over it one after the other."""
    startup: Seconds = 0.0
    """Of each copy."""
    spare: Bytes
    """Free on each card that receives."""
    tile: Tile = Field(default_factory=Tile)
    batches: Annotated[list[Count], Field(max_length=1000), OneOrMore] = Field(default_factory=list)
    """How long a hotspot lasts."""
    layers: LayerBudget | None = None


class Separation(Described):
    """Attention and feed-forward networks apart (AF), or prefill and decode (PD): handoffs (section 9.3.4)."""

    model: CatalogLlm
    state_of: CatalogLlm | None = None
    """Model whose context state is handed over in place of this one's."""
    link: PositiveBytesPerSecond
    startup: Seconds = 0.0
    """Of each transfer."""
    input: TokenCount
    output: Annotated[list[TokenCount], Field(min_length=1, max_length=1000), OneOrMore]
    rate: PositiveRequestsPerSecond | None = None
    """Requests a second, for the bandwidth that PD needs."""


class RandomChoices(Described):
    """Batches in which each token chooses evenly and whatever the others choose."""

    batches: Annotated[int, Field(ge=2, le=100_000)] = 1000
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class Skewed(Described):
    """Rows of cards under expert parallelism, experts dealt to them in order (section 9.4.1)."""

    tokens: TokenCount
    chosen: Count
    """Experts that a token chooses."""
    experts: Annotated[int, Field(ge=2, le=MOST_EXPERTS)]
    """Of the layer."""
    redundant: Annotated[int, Field(ge=0, le=MOST_EXPERTS)] = 0
    """Second copies, of the first so many experts."""
    cards: Annotated[list[Cards], Field(min_length=1, max_length=100), OneOrMore]
    """Degrees of expert parallelism."""
    hot: Rows | None = None
    """Rows of the first expert; the others share the rest. Left out: as many as any other."""
    random: RandomChoices | None = None
    row: PositiveBytes | None = None
    """Bytes of an input."""
    link: PositiveBytesPerSecond | None = None
    """Of a card, in one direction."""


class Padding(OfExperts):
    """Rows that a grouped GEMM runs (section 9.4.3)."""

    rows: RowList
    """Of each expert."""
    tile: Annotated[int, Field(ge=1, le=10**6)]
    """Rows are padded to a multiple of it."""


class Pipeline(Described):
    """Micro-batches through stages, each with resources of its own (sections 9.3.4 and 9.4.3)."""

    stages: Annotated[dict[Stage, Seconds], Field(min_length=1, max_length=100)]
    """Time of one micro-batch in each, in their order."""
    batches: Annotated[int, Field(ge=1, le=10_000)]
    ready: Annotated[list[Seconds], Field(min_length=1)] | None = None
    """When each micro-batch is there; left out: all at once."""
    slower: dict[Stage, Annotated[float, Field(ge=1, le=1e6)]] = Field(default_factory=dict)
    """Stages that contend for something when they overlap, each with its factor."""
    tokens: dict[str, Annotated[list[Seconds], Field(min_length=1, max_length=MOST_EXPERTS)]] = Field(
        default_factory=dict
    )
    """When the result of each of its experts is back, token by token."""
    merge: Seconds = 0.0
    """Of a token's results, once all are there."""


class LayerQuestion(Described):
    """One file: any of the sections."""

    schema_version: Literal[1] = Field(alias="schema")
    """Version of the format: 1."""
    name: str
    about: str = ""
    offload: Offloading | None = None
    exchange: Exchange | None = None
    skew: Skewed | None = None
    copies: Copies | None = None
    separate: Separation | None = None
    tiles: Padding | None = None
    pipeline: Pipeline | None = None


SECTIONS = ("offload", "exchange", "skew", "copies", "separate", "tiles", "pipeline")
