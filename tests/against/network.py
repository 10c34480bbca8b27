"""Ways between places, found by walking every simple path, and what a handoff takes of each channel and store."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from models.hardware import Hardware, Store

Channel = tuple[str, ...]


@dataclass(frozen=True)
class Way:
    """How one payload gets from place to place."""

    links: tuple[str, ...]
    seconds: float
    load: dict[Channel, float]
    """Channel -> seconds of its bandwidth that one transfer takes."""


class Network:
    """Places joined by links."""

    def __init__(self, hardware: Hardware) -> None:
        self.hardware = hardware
        self.ends: dict[str, set[str]] = {name: set() for name in hardware.links}
        for name, link in hardware.links.items():
            for place in link.connects:
                self.ends[name].add(place)
                if place in self.ends:
                    self.ends[place].add(name)
        for name, store in hardware.stores.items():
            self.ends[store.on].add(name)

    def _at(self, place: str) -> list[str]:
        return [link for link, ends in self.ends.items() if place in ends]

    def _walks(self, at: str, target: str, passed: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """Every chain of distinct links from the link ``at`` to a link on which ``target`` is."""
        if target in self.ends[at]:
            yield passed
        for place in self.ends[at]:
            if place in self.ends and place not in passed:
                yield from self._walks(place, target, (*passed, place))

    def transfer(self, links: tuple[str, ...], payload: float) -> float:
        described = [self.hardware.links[link] for link in links]
        narrowest = min(link.bandwidth * link.link_efficiency for link in described)
        return payload / narrowest + sum(link.startup for link in described)

    def way(self, source: str, target: str, payload: float, mean: float | None = None) -> Way | None:
        """The quickest way for ``payload`` bytes, by its narrowest link and its startups; None when there is none.

        Channels are charged with ``mean`` bytes where it is stated.
        """
        mean = payload if mean is None else mean
        if source == target and self.hardware.groups[source].inside_handoffs == "free":
            return Way((), 0.0, {})
        chains: list[tuple[str, ...]]
        if source == target:
            chains = [(link,) for link in self._at(source)]
        else:
            chains = [chain for first in self._at(source) for chain in self._walks(first, target, (first,))]
        if not chains:
            return None
        chain = min(chains, key=lambda links: (self.transfer(links, payload), len(links), links))
        load: dict[Channel, float] = {}
        places = (source, *chain, target)
        for before, link, after in zip(places, places[1:], places[2:], strict=False):
            for channel, bandwidth in self.channels(link, before, after):
                load[channel] = load.get(channel, 0.0) + mean / bandwidth
        return Way(chain, self.transfer(chain, payload), load)

    def channels(self, name: str, before: str, after: str) -> list[tuple[Channel, float]]:
        """What a byte takes when it goes through a link, with the bandwidth of each."""
        link = self.hardware.links[name]
        one = link.bandwidth * link.link_efficiency * link.ports
        if link.per == "server":
            out, into = one * self._servers(before), one * self._servers(after)
            if link.duplex == "shared":
                return [((name, before), out), ((name, after), into)]
            return [((name, before, ">"), out), ((name, ">", after), into)]
        if link.duplex == "shared":
            return [((name,), one)]
        return [((name, before, ">"), one), ((name, ">", after), one)]

    def _servers(self, place: str) -> int:
        group = self.hardware.groups.get(place)
        return group.servers if group and group.servers != "unlimited" else 1


@dataclass(frozen=True)
class Trip:
    """A handoff from one group to another: what it takes, bytes put on links, and how long the longest takes."""

    scheme: str
    load: dict[Channel, float]
    """Channel, store or port of a store -> share that one request a second takes."""
    crossing: float
    seconds: float


Sizes = list[tuple[float, float]]
"""Share of the requests, and bytes that each of them hands over; what is missing hands nothing over."""


def trips(network: Network, schemes: list[str], source: str, target: str, sizes: Sizes) -> list[Trip]:
    """Every handoff that the schemes offer for requests of these sizes."""
    found = []
    mean, longest = sum(share * size for share, size in sizes), max(size for _, size in sizes)
    direct = network.way(source, target, longest, mean) if "pd-direct" in schemes else None
    if direct is not None:
        found.append(Trip("pd-direct", direct.load, mean * len(direct.links), direct.seconds))
    for name, store in network.hardware.stores.items() if "pd-pooled" in schemes else ():
        there, back = network.way(source, name, longest, mean), network.way(name, target, longest, mean)
        if there is None or back is None or store.capacity < longest:
            continue
        load = dict(there.load)
        for channel, share in back.load.items():
            load[channel] = load.get(channel, 0.0) + share

        def stay(size: float, ways: tuple[Way, Way], store: Store = store) -> float:
            write = max(network.transfer(ways[0].links, size), size / (store.write or math.inf))
            return write + max(network.transfer(ways[1].links, size), size / (store.read or math.inf))

        load[(name, "bytes")] = sum(share * size * stay(size, (there, back)) for share, size in sizes) / store.capacity
        if store.write:
            load[(name, "write")] = mean / store.write
        if store.read:
            load[(name, "read")] = mean / store.read
        crossing = mean * (len(there.links) + len(back.links))
        found.append(Trip("pd-pooled", load, crossing, stay(longest, (there, back))))
    return found
