"""The best plan with units that divide a layer: every vector of counts, each priced by a linear program."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from models.instance import Instance
from models.workload import Workload
from solver.candidate import Candidate
from solver.data import gather
from tests.against.layout_sizes import Sizes, means
from tests.against.layout_units import Degrees, LayoutUnit
from tests.against.network import Channel, Network, trips
from tests.against.programs import Array, Case, Largest, Recipe
from tests.against.wide_case import packs
from tests.against.wide_units import Wide

MOST = 60_000
"""Vectors of counts that a search should go through at most."""


def own(instance: Instance, network: Network, candidate: Candidate) -> LayoutUnit:
    """The unit of a candidate, from its degrees alone."""
    cut = candidate.cut
    assert cut is not None
    apart = candidate.kind.layout in ("ffn", "experts")
    beside = (cut.parts[0].group, cut.parts[0].cards, cut.parts[0].block) if apart else None
    plain = cut.device.layout is None
    layout = "plain" if plain else candidate.kind.layout
    degrees = Degrees(layout, cut.tp, cut.ep, cut.dp, cut.micro, cut.resident, beside)
    return LayoutUnit(instance, network, candidate.group, candidate.model, degrees)


def plain_seconds(unit: LayoutUnit, w: Workload, stage: str, batch: int, largest: int) -> tuple[float, ...]:
    """Unit-seconds of a request on a unit of TP, whose passes read the experts that their tokens touch."""
    size, t = unit.size, unit.cut.tp
    work = size.attention + size.dense + size.sparse * size.chosen * size.each

    def read(tokens: float) -> float:
        touched = size.sparse * size.touched(tokens) * size.each
        return (unit.bytes * (size.attention + size.dense + touched) + 2.0 * (size.head + size.norms)) / t / unit.read

    def sums(tokens: float) -> float:
        return 2.0 * unit.layers * unit.sums(t, unit.row * tokens, unit.group)

    prefill = 0.0
    for one in w.classes:
        n, c = one.input - one.cached, one.cached
        other = (n * c + n * (n + 1.0) / 2.0) * size.pair + 2.0 * size.head
        compute = (2.0 * n * work / unit.matrix + other / unit.other) / t
        prefill += one.share * (max(compute, read(n) + unit.row * n / t / unit.read) + sums(n))
    if stage == "prefill":
        return (prefill,)
    calls, context = means(w)
    beside = calls * sums(batch) / batch if calls else 0.0
    other = (context + 1.0) * size.decode_pair + 2.0 * size.head
    compute = calls * (2.0 * work / unit.matrix + other / unit.other) / t + beside
    seen = (context + 1.0) * size.per_token * -(-size.heads // t) / size.heads
    kept = 1.0 - size.chosen / size.experts if size.experts else 1.0
    more = -size.experts * math.log(kept) * kept**largest if size.experts > size.chosen else 0.0  # of one request more
    tangent = unit.bytes * size.sparse * more * size.each / t / unit.read
    memory = (
        calls * ((read(largest) + tangent * (batch - largest)) / batch + (unit.row / t + seen) / unit.read) + beside
    )
    return (compute, memory) if stage == "decode" else (prefill + max(compute, memory),)


def plain_step(unit: LayoutUnit, context: float, batch: float) -> float:
    """Seconds of a decode step of a unit of TP."""
    size, t = unit.size, unit.cut.tp
    touched = size.sparse * size.touched(batch) * size.each
    held = unit.bytes * (size.attention + size.dense + touched) + 2.0 * (size.head + size.norms) + unit.row * batch
    state = batch * (context + 1.0) * size.per_token * -(-size.heads // t) / size.heads
    work = size.attention + size.dense + size.sparse * size.chosen * size.each
    other = (context + 1.0) * size.decode_pair + 2.0 * size.head
    compute = batch * (2.0 * work / unit.matrix + other / unit.other) / t
    return max(compute, (held / t + state) / unit.read) + 2.0 * unit.layers * unit.sums(t, unit.row * batch, unit.group)


@dataclass(frozen=True)
class Counted:
    """A unit, and where its GPUs are."""

    unit: Wide
    blocks: dict[str, tuple[int, ...]]
    """By group: GPUs that have to be in one server."""

    def cards(self, group: str) -> int:
        return sum(self.blocks.get(group, ()))


def counted(instance: Instance) -> list[Counted]:
    """Every unit that may be made, with numbers of our own."""
    network, found = Network(instance.hardware), []
    for c in gather(instance).candidates:
        if c.face or c.cut is None or not set(c.schemes) & set(instance.schemes.allow):
            continue
        unit, largest = own(instance, network, c), max(c.batches.values())
        seconds: dict[str, tuple[float, ...]] = {}
        loads = {name: instance.workloads[name] for name in c.batches}
        load: dict[str, dict[Channel, float]] = {}
        for name, batch in c.batches.items():
            w = instance.workloads[name]
            plain = unit.cut.layout == "plain"
            seconds[name] = plain_seconds(unit, w, c.stage, batch, largest) if plain else ()
            new = sum(one.share * (one.input - one.cached) for one in w.classes) if c.stage != "decode" else 0.0
            tokens = new + (means(w)[0] if c.stage != "prefill" else 0.0)
            load[name] = {} if plain else {at: share * tokens for at, share in unit.charges().items()}
        if unit.cut.layout != "plain":
            seconds = {name: (need,) for name, need in unit.requests(loads, c.stage, dict(c.batches)).items()}
        blocks: dict[str, tuple[int, ...]] = {c.group: (c.block,) * (c.cards // c.block)}
        for part in c.cut.parts:
            if part.block:
                blocks[part.group] = blocks.get(part.group, ()) + (part.block,) * (part.cards // part.block)
        wide = Wide(c.kind.stage, c.group, c.model, seconds, c.all_cards, c.block, 0.0, 0.0, 0.0, load=load)
        found.append(Counted(wide, blocks))
    return [a for i, a in enumerate(found) if not any(_worse(a, b, i > j) for j, b in enumerate(found) if a is not b)]


def _worse(a: Counted, b: Counted, later: bool) -> bool:
    """Whether a unit of ``b`` on the same GPUs does all that one of ``a`` does."""
    x, y = a.unit, b.unit
    if (x.stage, x.group, x.model, a.blocks) != (y.stage, y.group, y.model, b.blocks) or x.resources != y.resources:
        return False
    if not set(x.seconds) <= set(y.seconds):
        return False
    pairs = [(s, t) for name in x.seconds for s, t in zip(x.seconds[name], y.seconds[name], strict=True)]
    for name in x.seconds:
        channels = set(x.load[name]) | set(y.load[name])
        pairs += [(x.load[name].get(at, 0.0), y.load[name].get(at, 0.0)) for at in channels]
    return all(t <= s for s, t in pairs) and (later or any(t < s for s, t in pairs))


def recipes(instance: Instance, units: list[Counted]) -> Iterator[Recipe]:
    """Every way to serve a request from first token to last."""
    network = Network(instance.hardware)
    for i, first in enumerate(u.unit for u in units):
        for name, needs in first.seconds.items():
            w, begin = instance.workloads[name], tuple((i, k, s) for k, s in enumerate(first.seconds[name]))
            del needs
            if first.stage == "both" or (first.stage == "prefill" and not w.decodes):
                yield Recipe(name, begin, first.load[name], 0.0, 0.0)
            if first.stage != "prefill" or not w.decodes:
                continue
            token = Sizes.of(instance.models[w.model]).kept_per_token
            sizes = [(one.share, one.input * token) for one in w.classes if one.output > 1]
            for j, second in enumerate(u.unit for u in units):
                if second.stage != "decode" or name not in second.seconds:
                    continue
                finish = tuple((j, k, s) for k, s in enumerate(second.seconds[name]))
                for trip in trips(network, ["pd-direct"], first.group, second.group, sizes):
                    load = dict(trip.load)
                    for part in (first.load[name], second.load[name]):
                        for at, share in part.items():
                            load[at] = load.get(at, 0.0) + share
                    yield Recipe(name, (*begin, *finish), load, trip.crossing, 0.0)


class LayoutSearch:
    """The search over one instance."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.units = instance, counted(instance)
        case = Case(instance, (), tuple(u.unit for u in self.units), tuple(recipes(instance, self.units)))
        self.largest = Largest(case)
        self.every = np.array(list(self._vectors()), float)
        self.cards = self.every @ np.array([u.unit.cards for u in self.units], float)

    def _vectors(self) -> Iterator[tuple[int, ...]]:
        groups = self.instance.hardware.groups

        def grow(at: int, left: dict[str, int]) -> Iterator[tuple[int, ...]]:
            if at == len(self.units):
                yield ()
                return
            unit, count = self.units[at], 0
            while all(unit.cards(name) * count <= room for name, room in left.items()):
                rest = {name: room - unit.cards(name) * count for name, room in left.items()}
                for tail in grow(at + 1, rest):
                    yield (count, *tail)
                count += 1

        for made, row in enumerate(grow(0, {name: group.cards for name, group in groups.items()})):
            assert made < MOST, "too many vectors for a test"
            if all(self._packs(row, name) for name in groups):
                yield row

    def _packs(self, row: tuple[int, ...], name: str) -> bool:
        group = self.instance.hardware.groups[name]
        blocks = [b for n, u in zip(row, self.units, strict=True) for b in u.blocks.get(name, ()) * n]
        assert group.servers != "unlimited"
        return packs(tuple(sorted(blocks, reverse=True)), (group.per_server,) * group.servers)

    def throughput(self, chosen: Array | None = None) -> float:
        """The most of any vector, or of those that are chosen."""
        every = self.every if chosen is None else self.every[chosen]
        upper, best = np.full(len(every), np.inf), 0.0
        while len(every):
            index = int(np.argmax(upper))
            if upper[index] <= best * (1.0 + 1e-9):
                break
            answer = self.largest.at([int(n) for n in every[index]])
            best = max(best, answer.value)
            np.minimum(upper, every @ answer.slope + answer.offset * (1 + 1e-9), out=upper)
            upper[index] = answer.value
        return best

    def fewest(self, rate: float) -> float | None:
        """The fewest GPUs that serve ``rate``."""
        for cards in np.unique(self.cards):
            if self.throughput(self.cards == cards) >= rate * (1 - 1e-9):
                return float(cards)
        return None
