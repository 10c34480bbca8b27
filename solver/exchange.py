"""How long an exchange between cards takes at least: what each sends, what each receives, what crosses a cut.

The cluster is a directed graph whose edges carry `capacity` in B/s. All that crosses an edge shares it; a channel that
both directions share is one edge between two nodes of its own. Traffic is bytes by pair of cards. Cards send and
receive; those that take part do not relay.

Any set of nodes gives a bound: bytes from inside to outside over the capacity of the edges that lead out. The sets come
from minimum cuts. A time is tried: when a flow fills every need of that time, no cut asks for more; otherwise the
minimum cut does, and its own time is tried next. This is done for all the traffic, and for what leaves or enters each
region of the graph, which all of it together may hide: a flow may feed a card from the wrong one (section 9.4.1).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import networkx as nx

from solver.formulas import exchange, pipeline

Card = Any
"""Any name of a node; it must be hashable."""
Traffic = Mapping[tuple[Card, Card], float]
"""Bytes from one card to another."""
Needs = Mapping[tuple[Card, Card], int]
"""The same, in whole numbers."""


@dataclass(frozen=True)
class Bound:
    """Least seconds of an exchange, payload only: no startup, no queue, no late data."""

    send: float
    """Of the card that takes longest to send."""
    receive: float
    """Of the card that takes longest to receive."""
    cut: float
    """Of the tightest cut found."""
    across: frozenset[tuple[Card, Card]]
    """Edges of the graph that lead out of that cut."""

    @property
    def seconds(self) -> float:
        """The largest of the three."""
        return max(self.send, self.receive, self.cut)


def bound(graph: "nx.DiGraph[Any]", traffic: Traffic) -> Bound:
    """The bound for an exchange over a graph. Raises ValueError for traffic that no path carries.

    Seconds for tens of cards; a graph of hundreds, each with several ways out, takes a minute.
    """
    moving = {pair: size for pair, size in traffic.items() if pair[0] != pair[1] and size > 0}
    widths = {(before, after): edge["capacity"] for before, after, edge in graph.edges(data=True)}
    scale = math.lcm(*(Fraction(value).denominator for value in (*moving.values(), *widths.values())))
    needs = {pair: int(Fraction(size) * scale) for pair, size in moving.items()}
    cards = {card for pair in needs for card in pair}
    network = _split({edge: int(Fraction(width) * scale) for edge, width in widths.items()}, cards)
    send = max((_time(needs, network, {(card, "out")}) for card in cards), default=Fraction(0))
    receive = max((_time(needs, network, set(network) - {(card, "in")}) for card in cards), default=Fraction(0))
    best, across = Fraction(0), frozenset[tuple[Card, Card]]()
    for part in _parts(graph, needs):
        cut = _tightest(network, part, needs, best)
        if cut is not None:
            best, side = cut
            across = frozenset((before, after) for (before, _), (after, _) in nx.edge_boundary(network, side))
    return Bound(float(send), float(receive), float(best), across)


def _split(widths: Mapping[tuple[Card, Card], int], cards: set[Card]) -> "nx.DiGraph[Any]":
    """The graph with each card as two nodes, one that sends and one that receives."""
    network: nx.DiGraph[Any] = nx.DiGraph()
    for card in cards:
        network.add_nodes_from([(card, "out"), (card, "in")])
    for (before, after), width in widths.items():
        sends = (before, "out" if before in cards else "relay")
        receives = (after, "in" if after in cards else "relay")
        network.add_edge(sends, receives, width=width)
    return network


def _time(needs: Needs, network: "nx.DiGraph[Any]", inside: set[Any]) -> Fraction:
    """Bytes that must leave a set of nodes over the capacity that leads out of it."""
    crossing = sum(
        size for (before, after), size in needs.items() if (before, "out") in inside and (after, "in") not in inside
    )
    width = sum(network.edges[edge]["width"] for edge in nx.edge_boundary(network, inside))
    if crossing and not width:
        raise ValueError("no path for some of the traffic")
    return Fraction(crossing, width) if crossing else Fraction(0)


def _parts(graph: "nx.DiGraph[Any]", needs: Needs) -> Iterator[Needs]:
    """All the traffic, then what leaves and what enters each region, each region once."""
    yield needs
    cards = {card for pair in needs for card in pair}
    seen = {frozenset(cards), frozenset[Card]()}
    for region in _regions(graph):
        around = frozenset(cards & region)
        if around not in seen:
            seen.add(around)
            yield {pair: size for pair, size in needs.items() if pair[0] in around and pair[1] not in around}
            yield {pair: size for pair, size in needs.items() if pair[0] not in around and pair[1] in around}


def _regions(graph: "nx.DiGraph[Any]") -> Iterator[set[Any]]:
    """One side of each edge that holds two halves together, and the neighbourhood of each node, ever wider.

    A tree has no tighter cuts than its edges, so there the bound is that of the best cut of all.
    """
    plain: nx.Graph[Any] = nx.Graph(graph)
    for one, other in list(nx.bridges(plain)):
        plain.remove_edge(one, other)
        yield set(nx.node_connected_component(plain, one))
        plain.add_edge(one, other)
    for node in plain:
        near: set[Any] = set()
        for ring in nx.bfs_layers(plain, node):
            near = near.union(ring)
            yield near


def _tightest(
    network: "nx.DiGraph[Any]", part: Needs, needs: Needs, least: Fraction
) -> tuple[Fraction, set[Any]] | None:
    """The time of the tightest cut for part of the traffic, and its inner nodes; None when none exceeds ``least``.

    Exact, since all numbers are whole; each round finds another cut, so it ends.
    """
    found = None
    while part:
        side = _overfull(network, part, least)
        if side is None:
            return found
        least = _time(needs, network, side)
        found = least, side
    return found


def _overfull(network: "nx.DiGraph[Any]", part: Needs, seconds: Fraction) -> set[Any] | None:
    """Inner nodes of a cut that the traffic cannot cross in ``seconds``, or None when a flow carries all of it."""
    flow: nx.DiGraph[Any] = nx.DiGraph()
    for before, after, edge in network.edges(data=True):
        flow.add_edge(before, after, capacity=edge["width"] * seconds.numerator)
    sent: Counter[Any] = Counter()
    received: Counter[Any] = Counter()
    for (before, after), size in part.items():
        sent[before] += size * seconds.denominator
        received[after] += size * seconds.denominator
    flow.add_edges_from(("from", (card, "out"), {"capacity": size}) for card, size in sent.items())
    flow.add_edges_from(((card, "in"), "to", {"capacity": size}) for card, size in received.items())
    carried, (side, _) = nx.minimum_cut(flow, "from", "to")
    return None if carried >= sent.total() else side - {"from"}


# --- clusters and traffic -----------------------------------------------------------------------------


def two_pools(senders: int, receivers: int, card: float, between: float | None = None) -> "nx.DiGraph[Any]":
    """Cards ``(0, i)`` and ``(1, j)``, each pool at a switch of its own; capacities in B/s and one direction.

    ``card`` is what a card sends or receives; ``between`` what the switches carry, all that the cards can when None.
    """
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for pool, cards in enumerate((senders, receivers)):
        for index in range(cards):
            _both_ways(graph, (pool, index), f"switch {pool}", card)
    _both_ways(graph, "switch 0", "switch 1", min(senders, receivers) * card if between is None else between)
    return graph


def one_group(servers: int, per_server: int, inside: float, port: float) -> "nx.DiGraph[Any]":
    """Cards ``(server, i)`` on the link inside their server, each with a port on a fabric that never binds."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for server in range(servers):
        for index in range(per_server):
            _both_ways(graph, (server, index), f"server {server}", inside)
            _both_ways(graph, (server, index), "fabric", port)
    return graph


def _both_ways(graph: "nx.DiGraph[Any]", one: Card, other: Card, capacity: float) -> None:
    graph.add_edge(one, other, capacity=capacity)
    graph.add_edge(other, one, capacity=capacity)


def dispatch(rows: Mapping[Card, float], sources: Sequence[Card], row_bytes: float) -> dict[tuple[Card, Card], float]:
    """Traffic when each source sends as much: ``rows`` of each receiving card, all of them dispatched."""
    return {(source, card): each * row_bytes / len(sources) for card, each in rows.items() for source in sources}


def combine(rows: Mapping[Card, float], sources: Sequence[Card], row_bytes: float) -> dict[tuple[Card, Card], float]:
    """Traffic of the results, back to where the inputs came from."""
    return {(card, source): size for (source, card), size in dispatch(rows, sources, row_bytes).items()}


# --- a layer ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stages:
    """Least seconds of the three stages of a layer with experts on other cards."""

    dispatch: float
    compute: float
    combine: float

    @property
    def all(self) -> tuple[float, float, float]:
        """In their order."""
        return self.dispatch, self.compute, self.combine

    @property
    def total(self) -> float:
        """With the whole batch waiting after each."""
        return exchange.staged_seconds(*self.all)

    @property
    def exchange_share(self) -> float:
        """Share of dispatch and combine in that."""
        return exchange.exchange_share(*self.all)

    def pipelined(self, batches: int) -> float:
        """In so many equal micro-batches, the stages at the same time."""
        return pipeline.pipelined_seconds([taken / batches for taken in self.all], batches)
