"""A batch on its cards: rows, links, traffic, and the busiest card."""

from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from models.layer.asked import Exchange
from solver import exchange, skew
from solver.exchange import Bound, Card, Stages, Traffic
from solver.expert_work import Engine
from solver.formulas import exchange as formulas
from solver.formulas import experts
from solver.layer.shape import Experts
from solver.shapes import BYTES


@dataclass(frozen=True)
class Computed:
    """The card that takes longest."""

    rows: float
    flops: float
    compute_s: float
    read_s: float | None
    seconds: float


@dataclass(frozen=True)
class Case:
    """A batch on its cards."""

    whole: Experts
    engine: Engine
    asked: Exchange
    rows: tuple[float, ...]
    """Of each card with experts."""

    @property
    def row_bytes(self) -> tuple[float, float]:
        """Of an input and of a result."""
        back = self.whole.expert.activations(1.0)
        return back * BYTES[self.asked.dispatch] / BYTES["bf16"], back

    def graph(self) -> "nx.DiGraph[Any]":
        """The links."""
        group = self.asked.group
        if group is not None:
            return exchange.one_group(group.servers, group.per_server, group.inside, self.asked.link)
        return exchange.two_pools(self.asked.sources or 1, len(self.rows), self.asked.link, self.asked.between)

    def cards(self) -> tuple[list[Card], list[Card]]:
        """Those with tokens and those with experts."""
        group, count = self.asked.group, len(self.rows)
        if group is not None:
            cards: list[Card] = [divmod(card, group.per_server) for card in range(count)]
            return cards, cards
        return [(0, card) for card in range(self.asked.sources or 1)], [(1, card) for card in range(count)]

    def traffic(self) -> tuple[Traffic, Traffic]:
        """Of both exchanges."""
        sources, holders = self.cards()
        rows = dict(zip(holders, self.rows, strict=True))
        there, back = self.row_bytes
        return exchange.dispatch(rows, sources, there), exchange.combine(rows, sources, back)

    def bounds(self) -> tuple[Bound, Bound]:
        """Of both exchanges."""
        graph, (there, back) = self.graph(), self.traffic()
        return exchange.bound(graph, there), exchange.bound(graph, back)

    def computed(self) -> Computed:
        """The busiest card; without a number of experts nothing is read."""
        rows, read = max(self.rows), self.asked.experts_per_card
        flops, weights = self.whole.expert.flops(rows), self.whole.bytes(read or 0)
        seconds = formulas.card_seconds(flops, weights, self.engine.flops, self.engine.bandwidth)
        read_s = weights / self.engine.bandwidth if read else None
        return Computed(rows, flops, flops / self.engine.flops, read_s, seconds)

    def stages(self) -> Stages:
        """Of the layer."""
        there, back = self.bounds()
        return Stages(there.seconds, self.computed().seconds, back.seconds)

    def changed(self, **keys: Any) -> "Case":
        """The same under another question."""
        return replace(self, asked=self.asked.model_copy(update=keys))


def rows_of(asked: Exchange, whole: Experts) -> list[float]:
    """Rows of each card with experts."""
    if asked.rows is not None:
        return asked.rows
    tokens, cards = asked.tokens or 0, asked.cards or 1  # both are there, as was checked
    if asked.hot is None:
        rows = [experts.mean_rows(tokens, whole.chosen, whole.count)] * whole.count
    else:
        rows = skew.one_hot(tokens, whole.chosen, whole.count, asked.hot)
    return skew.by_index(whole.count, cards).loads(rows)
