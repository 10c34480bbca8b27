"""The cluster as a graph: groups, stores and links are nodes; a path says what it charges and how long it takes.

Groups and stores do not relay: a path runs from place to place over links only. Among paths the quickest for the
payload is taken, by its narrowest port and the startup times of its links.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
        self._known: dict[tuple[str, str], tuple[Path, ...]] = {}

    def widened(self, steps: Mapping[str, int]) -> tuple["Topology", dict[str, float]]:
        """The same with so many steps added to links, and how many times as wide each resource became.

        More ports carry more transfers; a single one takes as long as before.
        """
        wide = Topology(self.hardware)
        factor = {}
        for name, channel in self.channels.items():
            link = self.hardware.links[channel.link]
            if link.step is not None and steps.get(channel.link):
                factor[f"link[{name}]"] = 1.0 + steps[channel.link] * step_ratio(link)
                wide.channels[name] = replace(channel, capacity=channel.capacity * factor[f"link[{name}]"])
        return wide, factor

    def path(self, source: str, target: str, payload: float) -> Path | None:
        """The quickest path for ``payload`` bytes, or None when the places are not connected."""
        if (source, target) not in self._known:
            self._known[source, target] = self._paths(source, target)
        paths = self._known[source, target]
        return min(paths, key=lambda path: (path.seconds(payload), len(path.links), path.links), default=None)

    def hop(self, group: str) -> Path | None:
        """The way from one server of a group to another, charged even where handoffs inside are free."""
        if (group, "") not in self._known:
            widths = sorted({link.port_bandwidth for link in self.hardware.links.values()}, reverse=True)
            found = [path for width in widths if (path := self._over(group, group, width)) is not None]
            self._known[group, ""] = tuple(found[:1])  # the widest: activations are many and small
        return next(iter(self._known[group, ""]), None)

    def _paths(self, source: str, target: str) -> tuple[Path, ...]:
        """Paths of which one is the quickest, whatever the payload.

        A transfer takes as long as its narrowest link lets it, so for each bandwidth the path of least startup is found
        over links that are at least as wide; the quickest of these is the quickest of all.
        """
        if source == target and self.hardware.groups[source].inside_handoffs == "free":
            return (Path((), (), float("inf"), 0.0),)
        widths = sorted({link.port_bandwidth for link in self.hardware.links.values()}, reverse=True)
        paths = [self._over(source, target, width) for width in widths]
        return tuple(dict.fromkeys(path for path in paths if path is not None))

    def _over(self, source: str, target: str, width: float) -> Path | None:
        """The path of least startup, then fewest links, over links of at least ``width`` B/s."""
        links = self.hardware.links

        def cost(_: str, v: str, __: dict[str, Any]) -> float | None:
            if v == target:
                return 0.0
            return links[v].startup + 1e-15 if v in links and links[v].port_bandwidth >= width else None

        if source == target:  # out to a link and back
            near = [link for link in self.graph.successors(source) if links[link].port_bandwidth >= width]
            best = min(near, key=lambda link: (links[link].startup, link), default=None)
            return None if best is None else self._path([source, best, target])
        try:
            return self._path(nx.dijkstra_path(self.graph, source, target, weight=cost))
        except nx.NetworkXNoPath:
            return None

    def _path(self, nodes: list[str]) -> Path:
        links = tuple(nodes[1:-1])
        charged: list[str] = []
        for before, link, after in zip(nodes, nodes[1:], nodes[2:], strict=False):
            charged.extend(channel_names(self.hardware, link, before, after))
        described = [self.hardware.links[link] for link in links]
        return Path(
            links,
            tuple(charged),
            min(link.port_bandwidth for link in described),
            sum(link.startup for link in described),
        )


def step_ratio(link: Link) -> float:
    """What one step adds to a link, over what it has."""
    return link.step.ports / link.ports if link.step is not None else 0.0


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


def channel_names(hardware: Hardware, link: str, before: str, after: str) -> list[str]:
    """Channels that a byte is charged to when it crosses ``link`` from ``before`` to ``after``.

    A shared link is one channel, or one a place where every server has ports of its own; otherwise each place on the
    link has a channel in and a channel out.
    """
    described = hardware.links[link]
    if described.duplex == "per-direction":
        return [f"{link}[{before}->]", f"{link}[->{after}]"]
    return [link] if described.per == "link" else [f"{link}[{before}]", f"{link}[{after}]"]


def _channels(graph: "nx.DiGraph[str]", hardware: Hardware) -> list[Channel]:
    channels: dict[str, Channel] = {}
    for name, link in hardware.links.items():
        ends = list(graph.successors(name))
        for before in ends:
            for after in ends:
                for channel in channel_names(hardware, name, before, after):
                    place = before if channel in (f"{name}[{before}]", f"{name}[{before}->]") else after
                    ports = _ports(link, graph, place)
                    channels[channel] = Channel(channel, name, ports * link.port_bandwidth)
    return list(channels.values())
