"""What comes back, what is left and where it may be kept, written again from docs/reference/tiers.md alone.

Nothing of solver/tiers is used: shares are told by their distributions, integrals are taken by quadrature, bytes come
from the layers of the model.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from models.instance import Instance
from models.reuse import Reuse
from models.tiers import Tier
from models.workload import Workload
from tests.against import contexts
from tests.against.accounting import Weights, batch_of, buffer, seconds, sharing
from tests.against.network import Network

NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
YEAR = 365 * 86_400.0


def quadrature(share: Callable[[float], float], age: float, corners: list[float]) -> float:
    """The integral of a share from 0 to an age: Gauss-Legendre over pieces, corners of curves between pieces."""
    inside = [corner for corner in corners if corner < age]
    grid = [age * 0.5**k for k in range(40)]
    cuts = sorted({0.0, age, *inside, *grid})
    total = 0.0
    for low, high in itertools.pairwise(cuts):
        middle, half = (low + high) / 2.0, (high - low) / 2.0
        total += half * sum(w * share(middle + half * x) for x, w in zip(NODES, WEIGHTS, strict=True))
    return float(total)


@dataclass(frozen=True)
class Part:
    """A part of the prompt of a workload."""

    workload: str
    number: int
    said: Reuse
    rate: float
    hit: float
    left: float
    tokens: int
    """Tokens found when this part and all before it are."""

    @property
    def prompt(self) -> bool:
        return self.said.kind == "system-prompt"

    @property
    def ever(self) -> float:
        """Requests that ever find it, as a share."""
        if self.prompt:
            return self.said.share
        if self.said.curve is not None:
            return self.said.curve[-1].share
        return self.said.returns or 0.0

    @property
    def later(self) -> float:
        """Of the returns, those that are not the first."""
        if self.prompt:
            return 1.0
        if self.said.again is not None:
            return self.said.again
        return min(1.0, self.ever * self.hit / self.left)

    def share(self, age: float, place: "Own") -> float:
        """Requests that find it within an age."""
        if self.prompt:
            if place.hbm:
                return self.said.share  # each unit has all of them
            each = self.said.distinct * place.copies / (self.rate * self.said.share)
            return self.said.share * (1.0 - math.exp(-age / each))
        return self._conversation(age) / place.scattered

    def _conversation(self, age: float) -> float:
        said = self.said.interval
        if said is None:
            points = self.said.curve or []
            return float(np.interp(age, [0.0, *(p.age for p in points)], [0.0, *(p.share for p in points)]))
        if said.mean is not None:
            return self.ever * (1.0 - math.exp(-age / said.mean))
        median, p90 = said.median or 1.0, said.p90 or 1.0
        sigma = math.log(p90 / median) / NormalDist().inv_cdf(0.9)
        return self.ever * NormalDist(math.log(median), sigma).cdf(math.log(age)) if age > 0.0 else 0.0

    def summed(self, age: float, place: "Own") -> float:
        """The integral of that from 0 on."""
        return quadrature(lambda t: self.share(t, place), age, [p.age for p in self.said.curve or []])


def parts(instance: Instance) -> list[Part]:
    found = []
    for name, workload in instance.workloads.items():
        llm, before = instance.models[workload.model], 0
        for number, said in enumerate(workload.reuse or []):
            until = before + said.tokens_per_hit
            hit = contexts.state(llm, until) - contexts.state(llm, before)
            if said.kind == "system-prompt":
                left = said.share * hit
            elif said.tokens_kept is not None:
                left = contexts.state(llm, before + said.tokens_kept) - contexts.state(llm, before)
            else:
                left = max(hit, whole(instance, workload) - contexts.state(llm, before))
            found.append(Part(name, number, said, workload.rate, hit, left, until))
            before = until
    return found


def whole(instance: Instance, workload: Workload) -> float:
    """State of a finished request: the last token that it gives is never fed back."""
    one = workload.classes[0]
    return contexts.state(instance.models[workload.model], one.input + one.output - 1)


@dataclass(frozen=True)
class Own:
    """A place, as the file says it."""

    name: str
    said: Tier
    group: str | None
    hbm: bool = False
    copies: float = 1.0
    apart: float = 1.0
    base: float = 0.0
    each: float = 0.0
    least: int = 0
    most: int = 0
    price: float = 0.0
    pipes: tuple[tuple[str, float, float], ...] = ()
    """(what counts: `both`, `read`, `write` or `wear`; B/s there anyway; B/s with each piece)."""
    store: str | None = None

    @property
    def scattered(self) -> float:
        return self.apart if self.said.routing == "random" else 1.0

    @property
    def ttl(self) -> bool:
        return self.said.eviction == "ttl"

    @property
    def policies(self) -> list[str]:
        return ["all"] if self.hbm else [p for p in self.said.policies if p != "never"]


def places(instance: Instance) -> list[Own]:
    """Every place, fastest first."""
    found = []
    groups = instance.hardware.groups
    for name, group in groups.items():
        said = instance.tiers.get("hbm", Tier())
        mine = [w for w in instance.workloads.values() if (w.reuse or w.tool_wait) and w.may_use(name)]
        if mine and said.on(name):
            found.append(Own(f"hbm@{name}", said, name, hbm=True, apart=float(group.cards)))
    for label, said in instance.tiers.items():
        if label == "hbm":
            continue
        if said.store is not None:
            found.append(_pool(instance, label, said))
            continue
        for name, group in groups.items():
            if said.on(name):
                assert isinstance(group.servers, int)
                found.append(_of_servers(label, said, name, group.servers))
    return found


def _of_servers(label: str, said: Tier, group: str, servers: int) -> Own:
    name, each = f"{label}@{group}", float(servers)
    if said.drives is not None:
        drives, pipes = said.drives, [("read", 0.0, said.drives.read), ("write", 0.0, said.drives.write)]
        if said.endurance is not None:
            e = said.endurance
            day = e.writes_per_day * drives.size / 86_400.0
            pipes.append(("wear", 0.0, day * (e.rated / e.life) / e.amplification))
        fixed = drives.count is not None
        most = servers * int((drives.count if fixed else drives.max) or 0)
        return Own(
            name,
            said,
            group,
            each=drives.size,
            least=most if fixed else 0,
            most=most,
            price=drives.price or 0.0,
            pipes=tuple(pipes),
            copies=each,
            apart=each,
        )
    assert said.capacity is not None
    pipes = [("both", servers * said.bandwidth, 0.0)] if said.bandwidth else []
    if said.capacity.step is None:
        return Own(name, said, group, base=servers * said.capacity.max, pipes=tuple(pipes), copies=each, apart=each)
    most = servers * math.floor(said.capacity.max / said.capacity.step + 1e-9)
    price = said.price_per_step or 0.0
    return Own(
        name, said, group, each=said.capacity.step, most=most, price=price, pipes=tuple(pipes), copies=each, apart=each
    )


def _pool(instance: Instance, label: str, said: Tier) -> Own:
    assert said.store is not None
    store, nodes = instance.hardware.stores[said.store], said.nodes
    pipes = []
    if store.read:
        pipes.append(("read", store.read, (nodes.read or 0.0) if nodes else 0.0))
    if store.write:
        pipes.append(("write", store.write, (nodes.write or 0.0) if nodes else 0.0))
    size, most, price = (nodes.size, nodes.max, nodes.price or 0.0) if nodes else (0.0, 0, 0.0)
    return Own(
        label, said, None, base=store.capacity, each=size, most=most, price=price, pipes=tuple(pipes), store=said.store
    )


@dataclass(frozen=True)
class Way:
    """A policy and an age."""

    policy: str
    age: float


@dataclass
class Sums:
    """What a request a second leaves alive, writes and finds, by part, place and way; computed once."""

    instance: Instance
    known: dict[tuple[str, int, str, Way], tuple[float, float, float]] = field(default_factory=dict)
    remembered: dict[tuple[str, int, str], float] = field(default_factory=dict)

    def admitted(self, part: Part, place: Own) -> float:
        """Of the returns that second_hit may admit, those that it still knows to have seen."""
        memory = place.said.admission
        if memory is None or part.ever <= 0.0:
            return 1.0
        key = part.workload, part.number, place.name
        if key not in self.remembered:
            loads = [w for w in self.instance.workloads.values() if w.reuse]
            tokens = sum(w.rate * (w.mean_input + w.mean_output - 1.0) for w in loads)
            most = part.ever if part.prompt else part.ever / place.scattered
            self.remembered[key] = min(1.0, part.share(memory / tokens, place) / most)
        return self.remembered[key]

    def outlives(self, place: Own, policy: str, age: float) -> bool:
        """Whether what was seen is remembered for at least so long, where that is asked for."""
        if policy != "second_hit" or place.said.admission is None:
            return True
        loads = [w for w in self.instance.workloads.values() if w.reuse]
        return age * sum(w.rate * (w.mean_input + w.mean_output - 1.0) for w in loads) <= place.said.admission

    def of(self, part: Part, place: Own, way: Way) -> tuple[float, float, float]:
        """Bytes alive, bytes/s written, and the share found, for one request a second."""
        key = part.workload, part.number, place.name, way
        if key not in self.known:
            self.known[key] = self._of(part, place, way)
        return self.known[key]

    def _of(self, part: Part, place: Own, way: Way) -> tuple[float, float, float]:
        share = part.share(way.age, place)
        summed = way.age * share if place.hbm and part.prompt else part.summed(way.age, place)
        if way.policy == "second_hit":
            known = self.admitted(part, place)
            ever = part.ever if part.prompt else part.ever / place.scattered
            found = part.later * known * share
            alive = part.hit * known * (ever * way.age - part.later * summed)
            return alive, part.hit * known * (ever - part.later * share), found
        return part.left * way.age - part.hit * summed, part.left - part.hit * share, share


@dataclass(frozen=True)
class Unit:
    """One kind of unit, with what a request takes of it by how many parts of its prompt it finds."""

    kind: str
    group: str
    takes: dict[str, tuple[tuple[float, ...], ...]]
    room: float
    """Bytes that it leaves free for state, beside system prompts."""
    prompts: bool
    """Whether these fit."""

    @property
    def begins(self) -> bool:
        return self.kind != "decode"

    @property
    def ends(self) -> bool:
        return self.kind != "prefill"


def units(instance: Instance, kinds: list[str]) -> list[Unit]:
    """Every kind of unit on every group; here all workloads share units, and one model is served."""
    found, (llm,) = [], instance.models.values()
    for name, group in instance.hardware.groups.items():
        for kind in kinds:
            served = {n: w for n, w in instance.workloads.items() if kind != "decode" or w.output != 1}
            if not served:
                continue
            (batches,) = sharing(instance, group, kind, served)
            assert set(batches) == set(served)
            takes = {}
            for label, batch in batches.items():
                workload = instance.workloads[label]
                behind = [0, *(p.tokens for p in parts(instance) if p.workload == label)]
                states = []
                for tokens in behind:
                    cached = min(workload.cached + tokens, (workload.input or 1) - 1)
                    one = workload.model_copy(update={"cached": cached})
                    states.append(seconds(instance, group, kind, one, batch))
                takes[label] = tuple(states) if kind != "decode" else tuple(states[:1])
            resident = 0.0
            if kind != "prefill":
                each = {n: contexts.state(llm, instance.workloads[n].longest_total - 1) for n in batches}
                resident = max(batch * each[n] for n, batch in batches.items())
            beside = max(buffer(instance, kind, w) for w in served.values())
            free = group.accelerator.memory * group.usable - Weights.of(llm).kept - resident - beside
            prompts = sum(p.said.distinct * p.hit for p in parts(instance) if p.prompt and p.workload in served)
            found.append(Unit(kind, name, takes, max(0.0, free - prompts), free >= prompts))
    return found


def fits(instance: Instance, kinds: list[str]) -> bool:
    """Whether every kind of unit serves all workloads together."""
    for group in instance.hardware.groups.values():
        for kind in kinds:
            sets = sharing(instance, group, kind, dict(instance.workloads))
            if len(sets) != 1 or set(sets[0]) != set(instance.workloads):
                return False
            if not all(batch_of(instance, group, kind, w, 0.0) for w in instance.workloads.values()):
                return False
    return True


def crossing(instance: Instance, place: Own, group: str) -> tuple[dict[tuple[str, ...], float], ...]:
    """Share of channels that a byte/s takes on its way from a pool to a group, and back."""
    network = Network(instance.hardware)
    assert place.store is not None
    found = []
    for ends in ((place.store, group), (group, place.store)):
        way = network.way(*ends, 1e9)
        assert way is not None
        found.append({channel: load / 1e9 for channel, load in way.load.items()})
    return tuple(found)


def reading(instance: Instance, place: Own, group: str, payload: float) -> float:
    """Seconds in which a unit of one GPU has read ``payload`` bytes."""
    if place.hbm:
        return 0.0
    last = payload / place.said.to_gpu if place.said.to_gpu else 0.0
    if place.store is not None:
        network = Network(instance.hardware)
        way, own = network.way(place.store, group, payload), instance.hardware.stores[place.store].read
        assert way is not None
        return max(way.seconds, payload / own if own else 0.0) + last
    rate = place.said.drives.read if place.said.drives else place.said.bandwidth
    return (payload / rate if rate else 0.0) + last


def chains(instance: Instance, group: str) -> Iterator[Own]:
    """Places where requests that begin on a group may find state, fastest first."""
    return (p for p in places(instance) if p.group in (None, group) and p.said.on(group))
