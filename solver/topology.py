"""The cluster as a graph: groups, stores and links are nodes; a path says what it charges and how long it takes.

Groups and stores do not relay: a path runs from place to place over links only. Among paths the quickest for the
payload is taken, by ``startup + payload / port bandwidth`` summed over its links.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import networkx as nx

from models.hardware import Hardware, Link
from solver.formulas import handoff


@dataclass(frozen=True)
class Channel:
    """A bandwidth that everything crossing it shares: a whole link, or one direction of one of its ports."""

    name: str
    link: str
    capacity: float
    """B/s."""


@dataclass(frozen=True)
class Path:
    """A way from one place to another."""

    links: tuple[str, ...]
    channels: tuple[str, ...]
    """Names of the channels that each byte is charged to, once for every time a name stands here."""
    bandwidth: float
    """Of one transfer alone: the narrowest port, in B/s."""
    startup: float
    """Sum over the links, in s."""

    def seconds(self, payload: float) -> float:
        """Time of one transfer of ``payload`` bytes."""
        return handoff.transfer_seconds(payload, self.bandwidth, self.startup) if self.links else 0.0


class Topology:
    """Groups, stores and links of an instance, with routing over them."""

    def __init__(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self.graph = build(hardware)
        self.channels = {channel.name: channel for channel in _channels(self.graph, hardware)}

    @cache  # noqa: B019 - lives as long as one solve
    def path(self, source: str, target: str, payload: float) -> Path | None:
        """The quickest path for ``payload`` bytes, or None when the places are not connected."""
        if source == target:
            return self._inside(source, payload)

        def seconds(u: str, v: str, _: dict[str, Any]) -> float | None:
            if v == target:
                return 0.0
            return self._seconds(v, payload) if self.graph.nodes[v]["kind"] == "link" else None

        try:
            nodes = nx.dijkstra_path(self.graph, source, target, weight=seconds)
        except nx.NetworkXNoPath:
            return None
        return self._path(nodes)

    def _inside(self, group: str, payload: float) -> Path | None:
        if self.hardware.groups[group].inside_handoffs == "free":
            return Path((), (), float("inf"), 0.0)
        links = sorted(self.graph.successors(group), key=lambda link: (self._seconds(link, payload), link))
        return self._path([group, links[0], group]) if links else None

    def _seconds(self, link: str, payload: float) -> float:
        described = self.hardware.links[link]
        return handoff.transfer_seconds(payload, described.port_bandwidth, described.startup)

    def _path(self, nodes: list[str]) -> Path:
        links = tuple(nodes[1:-1])
        charged: list[str] = []
        for before, link, after in zip(nodes, nodes[1:], nodes[2:], strict=False):
            charged.extend(channel_names(self.graph, self.hardware, link, before, after))
        described = [self.hardware.links[link] for link in links]
        return Path(
            links,
            tuple(charged),
            min(link.port_bandwidth for link in described),
            sum(link.startup for link in described),
        )


def build(hardware: Hardware) -> "nx.DiGraph[str]":
    """The directed graph: an edge each way between a link and every place or link on it."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, group in hardware.groups.items():
        graph.add_node(name, kind="group", cards=group.cards, servers=group.servers)
    for name in hardware.stores:
        graph.add_node(name, kind="store", servers=1)
    for name in hardware.links:
        graph.add_node(name, kind="link", servers=1)
    for name, link in hardware.links.items():
        for place in link.connects:
            graph.add_edge(name, place)
            graph.add_edge(place, name)
    for name, store in hardware.stores.items():
        graph.add_edge(name, store.on)
        graph.add_edge(store.on, name)
    return graph


def _ports(link: Link, graph: "nx.DiGraph[str]", place: str) -> int:
    return link.ports * (int(graph.nodes[place]["servers"]) if link.per == "server" else 1)


def channel_names(graph: "nx.DiGraph[str]", hardware: Hardware, link: str, before: str, after: str) -> list[str]:
    """Channels that a byte is charged to when it crosses ``link`` from ``before`` to ``after``."""
    described = hardware.links[link]
    if described.duplex == "shared" and described.per == "link":
        return [link]
    if described.duplex == "shared":
        return [f"{link}[{before}]", f"{link}[{after}]"]
    ends = list(graph.successors(link))
    if len(ends) == 2 and described.per == "link":  # out of one end is into the other
        there, back = f"{link}[{ends[0]}->{ends[1]}]", f"{link}[{ends[1]}->{ends[0]}]"
        if before == after:  # between two servers of one end
            return [there, back]
        return [there if before == ends[0] else back]
    return [f"{link}[{before}->]", f"{link}[->{after}]"]


def _channels(graph: "nx.DiGraph[str]", hardware: Hardware) -> list[Channel]:
    channels: dict[str, Channel] = {}
    for name, link in hardware.links.items():
        ends = list(graph.successors(name))
        for before in ends:
            for after in ends:
                for channel in channel_names(graph, hardware, name, before, after):
                    place = before if channel in (f"{name}[{before}]", f"{name}[{before}->]") else after
                    ports = _ports(link, graph, place)
                    channels[channel] = Channel(channel, name, ports * link.port_bandwidth)
    return list(channels.values())
