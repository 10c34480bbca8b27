"""Dispatch and combine of one layer: what bounds them, the busiest card, micro-batches, and what one change gives."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import networkx as nx

from models.layer.asked import Exchange
from solver import exchange, skew
from solver.exchange import Bound, Card, Stages, Traffic
from solver.expert_work import Engine, gpu
from solver.flips import SPAN, Flip
from solver.formulas import exchange as formulas
from solver.formulas import handoff
from solver.layer.shape import Experts, experts_of
from solver.pipeline import contention_limit
from solver.shapes import BYTES

SAME = 1.0 + 1e-9


@dataclass(frozen=True)
class Way:
    """One exchange, payload only."""

    bytes: float
    """From card to card, all together."""
    send_s: float
    """Of the card that takes longest to send."""
    receive_s: float
    cut_s: float
    """Of the tightest cut of the links."""
    seconds: float
    binds: str
    """`send`, `receive`, both, or `cut` when that takes longer than any card."""
    edges: tuple[str, ...]
    """Links that lead out of that cut."""


@dataclass(frozen=True)
class Computed:
    """The card that takes longest."""

    rows: float
    flops: float
    compute_s: float
    read_s: float | None
    seconds: float


@dataclass(frozen=True)
class MicroBatches:
    """The stages at the same time, on parts of the batch."""

    batches: int
    seconds: float
    saving_s: float
    exchange_limit: float | None
    """Factor on both exchanges at which nothing is saved any more."""
    compute_limit: float | None
    """The same on the experts."""


@dataclass(frozen=True)
class Step:
    """One thing changed, all else as it is."""

    change: str
    staged_s: float
    saving_s: float


@dataclass(frozen=True)
class Messages:
    """Whether bytes or requests are what a NIC runs out of."""

    row_bytes: float
    crossover_bytes: float
    binds: str


@dataclass(frozen=True)
class Exchanged:
    """The answer."""

    rows: tuple[float, ...]
    """Of each card with experts."""
    mean_rows: float
    skew: float
    """The busiest over the mean."""
    row_link_s: float
    """One row over the link of a card."""
    row_compute_s: float
    """One row on a card."""
    dispatch: Way
    compute: Computed
    combine: Way
    staged_s: float
    """All three, each waiting for the whole batch."""
    exchange_share: float
    longest: str
    """The stage that takes longest."""
    most_batches_per_s: float
    """That every card and link bears, in the mean."""
    micro_batches: MicroBatches | None
    messages: Messages | None
    steps: tuple[Step, ...]
    crossovers: tuple[Flip, ...]


@dataclass(frozen=True)
class Case:
    """A batch on its cards."""

    whole: Experts
    engine: Engine
    asked: Exchange

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
        return exchange.two_pools(self.asked.sources or 1, len(self.asked.rows), self.asked.link, self.asked.between)

    def cards(self) -> tuple[list[Card], list[Card]]:
        """Those with tokens and those with experts."""
        group, count = self.asked.group, len(self.asked.rows)
        if group is not None:
            cards: list[Card] = [divmod(card, group.per_server) for card in range(count)]
            return cards, cards
        return [(0, card) for card in range(self.asked.sources or 1)], [(1, card) for card in range(count)]

    def traffic(self) -> tuple[Traffic, Traffic]:
        """Of both exchanges."""
        sources, holders = self.cards()
        rows = dict(zip(holders, self.asked.rows, strict=True))
        there, back = self.row_bytes
        return exchange.dispatch(rows, sources, there), exchange.combine(rows, sources, back)

    def bounds(self) -> tuple[Bound, Bound]:
        """Of both exchanges."""
        graph, (there, back) = self.graph(), self.traffic()
        return exchange.bound(graph, there), exchange.bound(graph, back)

    def computed(self) -> Computed:
        """The busiest card; without a number of experts nothing is read."""
        rows, read = max(self.asked.rows), self.asked.experts_per_card
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
        return Case(self.whole, self.engine, self.asked.model_copy(update=keys))


def exchanged(asked: Exchange) -> Exchanged:
    """The answer to an `exchange` section."""
    case = Case(experts_of(asked), gpu(asked.gpu, asked.efficiency), asked)
    (there, back), computed = case.bounds(), case.computed()
    stages = Stages(there.seconds, computed.seconds, back.seconds)
    traffic = case.traffic()
    row_bytes = case.row_bytes[1]
    longest = max(zip(stages.all, ("dispatch", "compute", "combine"), strict=True), key=lambda one: one[0])[1]
    return Exchanged(
        tuple(asked.rows),
        sum(asked.rows) / len(asked.rows),
        skew.skew(asked.rows),
        handoff.transfer_seconds(row_bytes, asked.link),
        case.whole.expert.flops(1.0) / case.engine.flops,
        _way(traffic[0], there),
        computed,
        _way(traffic[1], back),
        stages.total,
        stages.exchange_share,
        longest,
        formulas.admitted_rate(1.0, max(stages.all)),
        _micro(stages, asked.micro_batches) if asked.micro_batches else None,
        _messages(case, asked.requests) if asked.requests else None,
        tuple(_steps(case, stages.total)),
        tuple(_flips(case, computed.seconds)),
    )


def _way(traffic: Traffic, found: Bound) -> Way:
    least = found.seconds / SAME
    ends = [name for name, taken in (("send", found.send), ("receive", found.receive)) if taken >= least]
    edges = tuple(sorted(f"{_called(before)} -> {_called(after)}" for before, after in found.across))
    return Way(
        sum(size for (before, after), size in traffic.items() if before != after),
        found.send,
        found.receive,
        found.cut,
        found.seconds,
        " and ".join(ends) or "cut",
        edges,
    )


def _called(node: Card) -> str:
    return node if isinstance(node, str) else f"card {node[0]}.{node[1]}"


def _micro(stages: Stages, batches: int) -> MicroBatches:
    taken = stages.pipelined(batches)
    limits = [contention_limit(stages.all, batches, slowed) for slowed in ((0, 2), (1,))]
    exchange_limit, compute_limit = (limit if math.isfinite(limit) else None for limit in limits)
    return MicroBatches(batches, taken, stages.total - taken, exchange_limit, compute_limit)


def _messages(case: Case, requests: float) -> Messages:
    row, least = case.row_bytes[0], formulas.message_crossover(case.asked.link, requests)
    return Messages(row, least, "bytes" if row > least else "requests")


def _steps(case: Case, now: float) -> Iterator[Step]:
    asked = case.asked
    tried = {"twice the link of each card": case.changed(link=2.0 * asked.link)}
    if asked.between is not None:
        tried["twice what the switches carry"] = case.changed(between=2.0 * asked.between)
    if asked.group is not None:
        wider = asked.group.model_copy(update={"inside": 2.0 * asked.group.inside})
        tried["twice the link inside servers"] = case.changed(group=wider)
    if asked.dispatch == "bf16":
        tried["dispatch in FP8"] = case.changed(dispatch="fp8")
    if skew.skew(asked.rows) > SAME:
        tried["rows spread evenly"] = case.changed(rows=[sum(asked.rows) / len(asked.rows)] * len(asked.rows))
    quick = Engine(2.0 * case.engine.flops, 2.0 * case.engine.bandwidth)
    tried["cards twice as quick"] = Case(case.whole, quick, asked)
    for change, other in tried.items():
        total = other.stages().total
        yield Step(change, total, now - total)


def _flips(case: Case, compute: float) -> Iterator[Flip]:
    """The link of a card from which the experts take longer than either exchange."""
    stated, fixed = case.asked.link, _fixed(case)
    link = stated / SPAN
    while link <= stated * SPAN:
        moved = case.changed(link=link)
        slowest = max(moved.bounds(), key=lambda found: found.seconds)
        if slowest.seconds <= compute * SAME:
            if link > stated / SPAN:
                yield Flip("exchange.link", "the layer", link, "B/s", "an exchange", "the experts", stated)
            return
        graph = moved.graph()
        widths = {edge: graph.edges[edge]["capacity"] for edge in slowest.across}
        kept = sum(width for edge, width in widths.items() if edge in fixed)
        scaled = (sum(widths.values()) - kept) / link
        if not scaled:
            return  # what binds does not depend on this link
        # The next link is that at which this cut takes as long as the experts; another cut may then bind.
        link = (slowest.seconds * sum(widths.values()) / compute - kept) / scaled


def _fixed(case: Case) -> set[tuple[Card, Card]]:
    """Edges that another link of the cards leaves as they are."""
    wider = case.changed(link=2.0 * case.asked.link).graph()
    return {
        (before, after)
        for before, after, edge in case.graph().edges(data=True)
        if wider.edges[before, after]["capacity"] == edge["capacity"]
    }
