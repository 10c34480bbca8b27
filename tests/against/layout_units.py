"""Units that divide a layer, from the described hardware and models alone: seconds, and bytes on links.

Written from docs/reference/layouts.md; nothing of `solver` is used but the simulation of random choices.
"""

import math

from models.hardware import Group
from models.workload import Workload
from tests.against.layout_parts import Degrees, LayoutParts
from tests.against.layout_sizes import busiest_touched, excess, held_tokens, means
from tests.against.network import Channel

__all__ = ["Degrees", "LayoutUnit"]


class LayoutUnit(LayoutParts):
    """One unit of a model on a group."""

    def sums(self, cards: int, payload: float, group: Group) -> float:
        if cards == 1:
            return 0.0
        wired = group.scale_up
        assert wired is not None
        share = 2.0 * (cards - 1) / cards
        return share * payload / (wired.bandwidth * wired.link_efficiency) + 2.0 * wired.startup

    def attention(self, tokens: float, other: float, state: float) -> float:
        t, size = self.cut.tp, self.size
        compute = (2.0 * tokens * self.stays / self.matrix + other / self.other) / t
        held = self.bytes * self.stays + 2.0 * (size.head + size.norms) + self.row * tokens
        read = (held / t + state) / self.read
        count = (1 if self.cut.layout == "ffn" else 2) * self.layers
        return max(compute, read) + count * self.sums(t, self.row * tokens, self.group)

    def rest(self, tokens: float) -> float:
        """What is not attention."""
        size, cut = self.size, self.cut
        if cut.layout == "host":
            return self._hosted(tokens)
        if cut.layout == "ffn":
            assert cut.beside is not None
            described, f = self.instance.hardware.groups[cut.beside[0]], cut.beside[1]
            matrix, _, read = self.speeds(described)
            work = 2.0 * tokens * (size.dense + size.sparse * size.chosen * size.each)
            held = self.bytes * (size.dense + size.sparse * size.touched(tokens) * size.each)
            return max(work / (f * matrix), held / (f * read)) + self.layers * self.sums(
                f, self.row * tokens, described
            )
        return self._placed(tokens)

    def _placed(self, tokens: float) -> float:
        size, cut = self.size, self.cut
        if not size.sparse:
            return 0.0
        group = self.group if cut.beside is None else self.instance.hardware.groups[cut.beside[0]]
        matrix, _, read = self.speeds(group)
        shared = cut.tp if cut.layout == "spread" and cut.dp == 1 else 1
        work = 2.0 * size.sparse * size.each * self.rows(tokens) / (shared * matrix)
        touched = busiest_touched(size, self.places, tokens)
        return max(work, size.sparse * size.each * self.bytes * touched / (shared * read))

    def rows(self, tokens: float) -> float:
        """Rows of the busiest place in a layer."""
        more = excess(self.size.experts, self.size.chosen, self.places, tokens)
        return (1.0 + more) * tokens * self.size.chosen / self.places

    def _hosted(self, tokens: float) -> float:
        size, t, host = self.size, self.cut.tp, self.group.host
        assert host is not None
        assert self.cut.resident is not None
        touched = size.touched(tokens)
        if not touched:
            return 0.0
        rows = tokens * size.chosen / touched
        here = self.cut.resident / size.experts
        work, held = 2.0 * rows * size.each, self.bytes * size.each
        near = max(work / (t * self.matrix), held / (t * self.read))
        mine = host.sockets * t / self.group.per_server
        link = host.link.bandwidth * host.link.link_efficiency * t
        cpu = max(work / (host.cpu.kernels[host.kernel] * mine), held / (host.cpu.bandwidth * mine))
        on_cpu = 2.0 * host.link.startup + 2.0 * rows * self.row / link + cpu
        on_gpu = host.link.startup + held / link + near
        computed = 1.0 if on_gpu < on_cpu else here  # what is moved is computed on the GPU too
        return size.sparse * max(touched * computed * near, touched * (1.0 - here) * min(on_cpu, on_gpu))

    def one_way(self, tokens: float) -> float:
        """Seconds of one direction between parts, or between places."""
        size, cut = self.size, self.cut
        if cut.layout == "host":
            return 0.0
        if cut.beside is not None:
            return self._between(tokens)
        if cut.dp == 1:
            return size.sparse * self.sums(cut.tp * cut.ep, self.row * tokens, self.group) / 2.0
        wired = self.group.scale_up
        near = min(self.places, self.group.per_server)
        inside, startup = 0.0, 0.0
        sent = self.rows(tokens) * self.row
        if near > 1:
            assert wired is not None
            inside = sent * (near - 1) / self.places / (wired.bandwidth * wired.link_efficiency)
            startup = wired.startup
        outside = 0.0
        if near < self.places:
            links, port, begin = self._way(self.name, self.name)
            crossing = sent * (1.0 - near / self.places)
            servers = self.places // near
            for link in links:
                ports = link.ports * (servers if link.per == "server" else 1)
                twice = (
                    2.0 if link.duplex == "shared" and link.per == "server" else 1.0
                )  # it sends and receives at once
                outside = max(outside, twice * crossing * self.places / (port * min(self.places, ports)))
            startup = max(startup, begin)
        return size.sparse * (max(inside, outside) + startup)

    def _between(self, tokens: float) -> float:
        size, cut = self.size, self.cut
        assert cut.beside is not None
        group, f, block = cut.beside
        dense = cut.layout == "ffn"
        payload = tokens * self.row * (self.layers if dense else size.sparse * size.chosen)
        messages = self.layers if dense else size.sparse
        more = 0.0 if dense else excess(size.experts, size.chosen, f, tokens)
        if block == 0:
            wired = self.group.scale_up
            assert wired is not None
            wide = wired.bandwidth * wired.link_efficiency
            first, second, startup = wide * self.cards, wide * f, wired.startup
        else:
            links, port, startup = self._way(self.name, group)
            first, second = (
                port * min(count, *(self._ports(link, place, count) for link in links))
                for place, count in ((self.name, self.cards), (group, f))
            )
        return max(payload / first, (1.0 + more) * payload / second) + messages * startup

    def prefill(self, new: float, cached: float) -> float:
        """Seconds of one request on each of the groups at once."""
        pairs = new * cached + new * (new + 1.0) / 2.0
        first = self.attention(new, pairs * self.size.pair + 2.0 * self.size.head, 0.0)
        together = self.cut.dp * new
        return first + self.rest(together) + 2.0 * self.one_way(together)

    def _attention(self, context: float, own: float) -> float:
        size = self.size
        other = own * ((context + 1.0) * size.decode_pair + 2.0 * size.head + size.query)
        share = math.ceil(size.heads / self.cut.tp) / size.heads
        return self.attention(own, other, own * (context + 1.0) * size.per_token * share)

    def step(self, context: float, batch: float) -> float:
        """Seconds of a decode step of all requests."""
        count = max(1.0, min(float(self.cut.micro), batch))
        part = batch / count
        f, x = self.rest(part), self.one_way(part)
        alone = self._attention(context, max(part / self.cut.dp, min(part, 1.0))) + f + 2.0 * x
        if count == 1.0:
            return alone
        a = self._attention(context, part / self.cut.dp)
        way = 2.0 * x if self.meets else x
        return max(alone, count * max((a, f, way) if self.cut.beside is not None else (a + f, way)))

    def line(self, context: float, batch: float) -> tuple[float, float]:
        """A line above the step of every smaller batch: seconds whatever the batch, and of each request."""
        most = self.step(context, batch)
        sizes = [k * batch / 32 for k in range(32)] + [batch * (1.0 - 2.0**-k) for k in range(6, 12)]
        sizes += [2.0**k for k in range(20) if 2.0**k < batch]
        steps = [(size, self.step(context, size)) for size in sizes]
        slope = max(0.0, min((most - seconds) / (batch - size) for size, seconds in steps))
        return max(most - slope * batch, *(seconds - slope * size for size, seconds in steps)), slope

    # whole requests

    def requests(self, loads: dict[str, Workload], kind: str, batches: dict[str, int]) -> dict[str, float]:
        """Unit-seconds of a request of each workload, in steps that all of them may share."""
        if len(loads) == 1 or kind == "prefill":
            return {name: self.request(w, kind, batches[name]) for name, w in loads.items()}
        most = max(batches[n] for n in loads)
        lines = {n: self.line(means(w)[1], most) for n, w in loads.items() if w.decodes}
        slowest = max((fixed for fixed, _ in lines.values()), default=0.0)
        found = {n: self.request(w, "prefill", 1) if kind == "both" else 0.0 for n, w in loads.items()}
        for name, (_, each) in lines.items():
            found[name] += means(loads[name])[0] * (slowest / batches[name] + each)
        return found

    def request(self, workload: Workload, kind: str, batch: int) -> float:
        """Unit-seconds of a request of a workload that has the unit to itself."""
        total = 0.0
        if kind != "decode":
            total += sum(c.share * self.prefill(c.input - c.cached, c.cached) for c in workload.classes) / self.cut.dp
        if kind != "prefill" and workload.decodes:
            calls, context = means(workload)
            total += calls * self.step(context, batch) / batch
        return total

    def first(self, workload: Workload) -> float:
        return max(self.prefill(c.input - c.cached, c.cached) for c in workload.classes)

    def batch(self, workload: Workload, kind: str, buffer: float) -> int:
        """Most requests at once; 0 where the longest does not fit."""
        room = self.memory - self.weights - self.experts - buffer
        longest = self.kept * (workload.longest_total - 1)
        if longest > room:
            return 0
        return math.floor(room / held_tokens(workload) / self.kept) * self.streams

    def buffer(self, workload: Workload, kind: str) -> float:
        states = {"prefill": 2, "decode": 1, "both": 0}[kind]
        return states * self.kept * workload.longest_input

    def charges(self) -> dict[Channel, float]:
        """Share of each channel that one token a second takes."""
        size, cut = self.size, self.cut
        found: dict[Channel, float] = {}
        if cut.beside is None and cut.dp > 1 and self.group.per_server < self.places:
            crossing = 2.0 * size.sparse * size.chosen * (1.0 - self.group.per_server / self.places) * self.row
            trips: list[tuple[str, str, float]] = [(self.name, self.name, crossing)]
        elif cut.beside is not None and cut.beside[2]:
            each = self.row * (self.layers if cut.layout == "ffn" else size.sparse * size.chosen)
            trips = [(self.name, cut.beside[0], each), (cut.beside[0], self.name, each)]
        else:
            return {}
        for source, target, amount in trips:
            places = (source, *self._links(source, target), target)
            for before, link, after in zip(places, places[1:], places[2:], strict=False):
                for channel, bandwidth in self.network.channels(link, before, after):
                    found[channel] = found.get(channel, 0.0) + amount / bandwidth
        return found
