"""Sessions that come back, replayed against caches: what docs/reference/tiers.md says of rates and means is counted."""

import heapq
import itertools
import random
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

ALL, SECOND = "all", "second_hit"


@dataclass(frozen=True)
class Sessions:
    """Requests of sessions: each is followed by another with a chance, after an exponential time.

    A request uses what its session shares (``hit`` bytes), and leaves ``kept - hit`` bytes that nobody uses again.
    """

    rate: float = 20.0
    returns: float = 0.7
    mean: float = 50.0
    hit: float = 3.0
    kept: float = 5.0

    def events(self, until: float, seed: int) -> list[tuple[float, int]]:
        """Times of requests with the number of their session."""
        draw, waiting, found = random.Random(seed), list[tuple[float, int]](), list[tuple[float, int]]()
        start, number = 0.0, 0
        while start < until:
            start += draw.expovariate(self.rate * (1.0 - self.returns))
            heapq.heappush(waiting, (start, number))
            number += 1
            while waiting and waiting[0][0] <= start:
                now, session = heapq.heappop(waiting)
                found.append((now, session))
                if draw.random() < self.returns:
                    heapq.heappush(waiting, (now + draw.expovariate(1.0 / self.mean), session))
        return found


@dataclass
class Cache:
    """Keeps objects for a time after their last use, or as many bytes as fit, the least recently used going first."""

    age: float | None = None
    size: float | None = None
    there: "OrderedDict[object, tuple[float, float]]" = field(default_factory=OrderedDict)
    """Object -> last use, bytes; in the order of uses."""
    uses: list[tuple[float, int, object]] = field(default_factory=list)
    number: "Iterator[int]" = field(default_factory=itertools.count)
    bytes: float = 0.0
    area: float = 0.0
    """Byte-seconds."""
    now: float = 0.0

    def expire(self, now: float) -> list[tuple[object, float, float]]:
        """What goes until ``now``: the object, when, and its bytes."""
        gone = []
        while self.uses and self.age is not None and self.uses[0][0] + self.age <= now:
            used, _, name = heapq.heappop(self.uses)
            last, size = self.there.get(name, (None, 0.0))
            if last != used:
                continue  # used again since, or dropped
            self._until(used + self.age)
            del self.there[name]
            self.bytes -= size
            gone.append((name, used + self.age, size))
        self._until(now)
        return gone

    def _until(self, now: float) -> None:
        self.area += self.bytes * (now - self.now)
        self.now = now

    def use(self, name: object, now: float, size: float) -> bool:
        """Whether it was there; now it is."""
        had = self.there.pop(name, None)
        self.bytes += size - (had[1] if had else 0.0)
        self.there[name] = (now, size)
        if self.age is not None:
            heapq.heappush(self.uses, (now, next(self.number), name))
        while self.size is not None and self.bytes > self.size:
            _, (_, gone) = self.there.popitem(last=False)
            self.bytes -= gone
        return had is not None

    def drop(self, name: object) -> None:
        had = self.there.pop(name, None)
        self.bytes -= had[1] if had else 0.0


@dataclass(frozen=True)
class Counted:
    """Per second, in the second half of the time; mean bytes alive."""

    found: float
    written: float
    alive: float


def one(sessions: Sessions, policy: str, age: float | None, size: float | None, until: float, seed: int) -> Counted:
    """A single cache, by time or by size."""
    cache, seen = Cache(age, size), set[int]()
    found = written = start = 0.0
    for now, session in sessions.events(until, seed):
        cache.expire(now)
        if now < until / 2.0:
            found = written = 0.0
            start = cache.area
        if policy == ALL or session in seen:
            had = cache.use(session, now, sessions.hit)
            found += had
            written += 0.0 if had else sessions.hit
        seen.add(session)
        if policy == ALL:
            cache.use((session, now), now, sessions.kept - sessions.hit)
            written += sessions.kept - sessions.hit
    span = until / 2.0
    return Counted(found / span, written / span, (cache.area - start) / span)


def two(sessions: Sessions, ages: tuple[float, float], exclusive: bool, until: float, seed: int) -> tuple[Counted, ...]:
    """A faster cache, and a slower one that gets what it evicts; both count ages from the last use."""
    upper, lower = Cache(ages[0]), Cache(ages[1])
    counts = [[0.0, 0.0], [0.0, 0.0]]
    starts = [0.0, 0.0]

    def until_now(now: float) -> None:
        for name, when, size in upper.expire(now):
            for other, _, _ in lower.expire(when):
                entered.discard(other)
            if name not in entered:
                counts[1][1] += size
                entered.add(name)
                lower.use(name, when - ages[0], size)
        for name, _, _ in lower.expire(now):
            entered.discard(name)

    entered = set[object]()
    for now, session in sessions.events(until, seed):
        until_now(now)
        if now < until / 2.0:
            counts = [[0.0, 0.0], [0.0, 0.0]]
            starts = [upper.area, lower.area]
        near, far = session in upper.there, session in lower.there
        counts[0][0] += near
        counts[1][0] += far and not near
        counts[0][1] += 0.0 if near else sessions.hit
        counts[0][1] += sessions.kept - sessions.hit
        if far and exclusive:
            lower.drop(session)
            entered.discard(session)
        elif far:
            lower.use(session, now, sessions.hit)
        upper.use(session, now, sessions.hit)
        upper.use((session, now), now, sessions.kept - sessions.hit)
    span = until / 2.0
    areas = upper.area - starts[0], lower.area - starts[1]
    return tuple(Counted(c[0] / span, c[1] / span, a / span) for c, a in zip(counts, areas, strict=True))


def growing(sessions: Sessions, age: float, turn: float, until: float, seed: int) -> tuple[float, float, float]:
    """`second_hit` by blocks where every request makes ``turn`` bytes more: bytes found, used at most, and left, a
    request; each block of a session is admitted with its second use.
    """
    turns: dict[int, tuple[int, float]] = {}
    found = most = left = 0.0
    number = 0
    for now, session in sessions.events(until, seed):
        before, last = turns.get(session, (0, -1e18))
        turns[session] = (before + 1, now)
        if now < until / 2.0:
            continue
        number += 1
        most += turn * before
        left += turn * (before + 1)
        found += turn * max(0, before - 1) if now - last <= age else 0.0
    return found / number, most / number, left / number


@dataclass(frozen=True)
class Turns:
    """Sessions whose uses follow at times of a curve: shares of all uses that are followed within an age."""

    rate: float
    curve: tuple[tuple[float, float], ...]

    def events(self, until: float, seed: int) -> list[tuple[float, int]]:
        """Times of uses with the number of their session."""
        draw, found, number, start = random.Random(seed), list[tuple[float, int]](), 0, 0.0
        points = ((0.0, 0.0), *self.curve)
        while start < until:
            start += draw.expovariate(self.rate * (1.0 - self.curve[-1][1]))
            now, number = start, number + 1
            while now < until:
                found.append((now, number))
                share = draw.random()
                if share >= self.curve[-1][1]:
                    break
                low, high = next(two for two in itertools.pairwise(points) if share < two[1][1])
                now += low[0] + (high[0] - low[0]) * (share - low[1]) / (high[1] - low[1])
        return sorted(found)


def admitted(turns: Turns, age: float, memory: float, until: float, seed: int) -> tuple[float, float, float]:
    """`second_hit` that remembers uses for a time: uses/s that find state, that write it, and objects alive."""
    last, there = dict[int, float](), dict[int, float]()
    found = written = alive = 0.0
    for now, session in turns.events(until, seed):
        before = last.get(session, -1e18)
        last[session] = now
        had = session in there and now - there[session] <= age
        count = now > until / 2.0
        if session in there and count:
            alive += min(age, now - there[session])
        found += had and count
        if had or now - before <= memory:
            written += (not had) and count
            there[session] = now
        else:
            there.pop(session, None)
    alive += sum(min(age, until - when) for when in there.values() if when > until / 2.0)
    return 2.0 * found / until, 2.0 * written / until, 2.0 * alive / until


def scattered(turns: Turns, places: int, age: float, until: float, seed: int) -> float:
    """Uses/s that find state where each goes to one of so many places by chance."""
    draw, last, found = random.Random(seed + 1), dict[tuple[int, int], float](), 0
    for now, session in turns.events(until, seed):
        key = session, draw.randrange(places)
        found += now > until / 2.0 and now - last.get(key, -1e18) <= age
        last[key] = now
    return 2.0 * found / until
