"""GPUs of a unit that divides a layer: their bytes, and the links between them."""

import math
from dataclasses import dataclass

from models.hardware import Group, Link
from models.instance import Instance
from tests.against.layout_sizes import BYTES, Sizes
from tests.against.network import Network


@dataclass(frozen=True)
class Degrees:
    """What is known of a unit: its degrees and its parts."""

    layout: str
    """spread, ffn, experts or host."""
    tp: int
    ep: int
    dp: int
    micro: int
    resident: int | None
    beside: tuple[str, int, int] | None
    """Group, GPUs, and block of the other part; a block of 0 is that of the others."""


class LayoutParts:
    """GPUs of one unit of a model on a group."""

    def __init__(self, instance: Instance, network: Network, group: str, model: str, degrees: Degrees) -> None:
        self.instance, self.network, self.name, self.cut = instance, network, group, degrees
        self.group = instance.hardware.groups[group]
        self.llm = instance.models[model]
        self.size, self.bytes = Sizes.of(self.llm), BYTES[self.llm.weights]
        self.matrix, self.other, self.read = self.speeds(self.group)
        self.row = 2.0 * self.llm.hidden_size
        self.layers = self.llm.num_hidden_layers
        self.memory = self.group.accelerator.memory * self.group.usable
        self.places = degrees.ep if degrees.layout == "spread" else degrees.beside[1] if degrees.beside else 1

    def speeds(self, group: Group) -> tuple[float, float, float]:
        """FLOP/s of layer matrices and of the rest, and B/s."""
        share, card = group.efficiency or self.instance.hardware.efficiency, group.accelerator
        plain = card.compute["bf16"]
        matrix = card.compute.get(self.llm.weights, plain)
        return matrix * share.compute, plain * share.compute, card.bandwidth * share.bandwidth

    @property
    def cards(self) -> int:
        """GPUs that hold state."""
        spread = self.cut.ep if self.cut.layout == "spread" and self.cut.dp == 1 else self.cut.dp
        return self.cut.tp * spread

    @property
    def streams(self) -> int:
        return self.cut.dp

    # bytes

    @property
    def stays(self) -> float:
        """Parameters of layers on the GPUs with attention, chosen experts apart."""
        return self.size.attention + (0.0 if self.cut.layout == "ffn" else self.size.dense)

    @property
    def weights(self) -> float:
        """Bytes of a GPU with state, chosen experts apart."""
        rest = 2.0 * (self.size.tables * self.size.head + self.size.norms)
        return (self.bytes * self.stays + rest) / self.cut.tp

    @property
    def experts(self) -> float:
        """Bytes of chosen experts on a GPU with state."""
        whole = self.bytes * self.size.sparse * self.size.each
        if self.cut.layout == "spread":
            shared = self.cut.tp if self.cut.dp == 1 else 1
            return whole * math.ceil(self.size.experts / self.cut.ep) / shared
        if self.cut.layout == "host":
            return whole * (self.cut.resident or 0) / self.cut.tp
        return 0.0

    @property
    def part(self) -> tuple[float, float]:
        """Bytes of a GPU of the other part: weights, and experts."""
        assert self.cut.beside is not None
        whole, count = self.bytes * self.size.sparse * self.size.each, self.cut.beside[1]
        if self.cut.layout == "ffn":
            return self.bytes * self.size.dense / count, whole * self.size.experts / count
        return 0.0, whole * math.ceil(self.size.experts / count)

    def part_inputs(self, tokens: float) -> float:
        """Bytes of the inputs that a GPU of the other part keeps, for groups with so many tokens each."""
        each = self.row * tokens * 2 * self.cut.dp
        return each if self.cut.layout == "ffn" else each * self.size.chosen / self.places

    @property
    def kept(self) -> float:
        """Bytes of state of a token on one GPU."""
        return self.size.kept_per_token * math.ceil(self.size.heads / self.cut.tp) / self.size.heads

    # links

    def _way(self, source: str, target: str) -> tuple[list[Link], float, float]:
        """Links between places, the bandwidth of a port on the narrowest, and the startups of all."""
        names = self._links(source, target)
        links = [self.instance.hardware.links[name] for name in names]
        return links, min(li.bandwidth * li.link_efficiency for li in links), sum(li.startup for li in links)

    def _links(self, source: str, target: str) -> tuple[str, ...]:
        links = self.instance.hardware.links
        if source == target:  # the widest, as activations are many
            near = [name for name, ends in self.network.ends.items() if source in ends]
            return (min(near, key=lambda n: (-links[n].bandwidth * links[n].link_efficiency, links[n].startup, n)),)
        way = self.network.way(source, target, self.row)
        assert way is not None
        return way.links

    def _ports(self, link: Link, place: str, cards: int) -> int:
        each = self.instance.hardware.groups[place].per_server
        return link.ports * (math.ceil(cards / each) if link.per == "server" else 1)

    @property
    def meets(self) -> bool:
        """Whether what goes there and what comes back draw on one bandwidth."""
        if self.cut.beside is None:
            return self.cut.layout == "spread"  # every GPU sends both on its port
        group, f, block = self.cut.beside
        if not block:
            return False
        links, *_ = self._way(self.name, group)
        one = self.name == group
        return any(
            link.duplex == "shared" or (one and link.per == "link" and link.ports < self.cards + f) for link in links
        )
