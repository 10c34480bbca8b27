"""One cache of several tiers, request by request; the rules are those of `solver.trace.replay`."""

from collections import OrderedDict
from math import inf

from solver.trace.tiers import Tier

HALF = 0.5e-6
"""Times are kept to the microsecond: an age counts as equal to a retention within half of one."""


class Level:
    """A tier of one copy."""

    __slots__ = ("area", "clock", "evictions", "held", "hit_tokens", "hits", "memory", "peak", "tier", "writes")

    def __init__(self, tier: Tier) -> None:
        self.tier = tier
        self.held: OrderedDict[int, float] = OrderedDict()
        """Block -> time of its last use, least recently used first."""
        self.memory: Memory | EveryBlock | None = None
        if tier.counts_to_two:
            self.memory = EveryBlock() if tier.admission is None else Memory(tier.admission)
        self.clock = 0.0
        self.begin(0.0)

    def begin(self, now: float) -> None:
        """Count from now on."""
        self.advance(now) if self.clock else None
        self.hits = self.hit_tokens = self.writes = self.evictions = 0
        self.area, self.clock, self.peak = 0.0, now, len(self.held)

    def advance(self, now: float) -> None:
        """Time goes on with what is held."""
        self.area += len(self.held) * (now - self.clock)
        self.clock = now


class Memory:
    """Which blocks were accessed once, and which twice, of the ``limit`` blocks used last."""

    __slots__ = ("limit", "times")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.times: OrderedDict[int, bool] = OrderedDict()
        """Block -> whether it was accessed twice."""

    def again(self, block: int) -> bool:
        """Note an access; whether it is the second at least."""
        times = self.times
        if block in times:
            times[block] = True
            times.move_to_end(block)
            return True
        times[block] = False
        if len(times) > self.limit:
            times.popitem(last=False)
        return False

    def twice(self, block: int) -> bool:
        """Whether two accesses are remembered."""
        return self.times.get(block, False)


class EveryBlock:
    """The same of all blocks, a byte for each."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = bytearray()

    def again(self, block: int) -> bool:
        """Note an access; whether it is the second at least."""
        counts = self.counts
        if block >= len(counts):
            counts.extend(bytes(block + len(counts) + 1024))
        if counts[block]:
            counts[block] = 2
            return True
        counts[block] = 1
        return False

    def twice(self, block: int) -> bool:
        """Whether it was accessed twice."""
        return block < len(self.counts) and self.counts[block] > 1


class Cache:
    """One copy of all tiers."""

    def __init__(self, levels: list[Level], contiguous: bool) -> None:
        self.levels = levels
        self.top = levels[0]
        self.lower = list(enumerate(levels))[1:]
        self.contiguous = contiguous
        self.timed = any(level.tier.retention < inf for level in levels)

    def begin(self, now: float) -> None:
        """Count from now on."""
        self.until(now)
        for level in self.levels:
            level.begin(now)

    def until(self, now: float) -> None:
        """Let time pass, and let go what is too old."""
        if self.timed:
            for place in range(len(self.levels)):
                self._expire(place, now)
        for level in self.levels:
            level.advance(now)

    def request(self, ids: list[int], now: float, block_tokens: int, lacking: int) -> None:
        """One request: what it finds, then what it uses."""
        self.until(now)
        where = self._where(ids)
        for place, level in enumerate(self.levels):
            found = where.count(place)
            if found:
                level.hits += found
                level.hit_tokens += found * block_tokens - (lacking if where[-1] == place else 0)
        if self.lower:
            self._use(ids, where, now)
        else:
            self._use_alone(ids, now)
        for level in self.levels:
            if len(level.held) > level.peak:
                level.peak = len(level.held)

    def _where(self, ids: list[int]) -> list[int]:
        """The place of the fastest tier that has each block; one more than there are for none."""
        held = [level.held for level in self.levels]
        if len(held) == 2:
            fast, slow = held
            where = [0 if block in fast else 1 if block in slow else 2 for block in ids]
        else:
            where = [next((i for i, one in enumerate(held) if block in one), len(held)) for block in ids]
        if self.contiguous and len(held) in where:
            gap = where.index(len(held))
            where[gap:] = [len(held)] * (len(where) - gap)
        return where

    def _use_alone(self, ids: list[int], now: float) -> None:
        """The only tier uses blocks."""
        level, held, room = self.top, self.top.held, self.top.tier.capacity
        for block in reversed(ids):
            if block in held:
                held.move_to_end(block)
                held[block] = now
            else:
                held[block] = now
                level.writes += 1
                if len(held) > room:
                    held.popitem(last=False)
                    level.evictions += 1

    def _use(self, ids: list[int], where: list[int], now: float) -> None:
        top, held, room = self.top, self.top.held, self.top.tier.capacity
        for block, found in zip(reversed(ids), reversed(where), strict=True):
            for place, level in self.lower:
                self._use_below(level, place, block, found, now)
            if block in held:
                held.move_to_end(block)
                held[block] = now
            else:
                held[block] = now
                top.writes += 1
                if len(held) > room:
                    self._evict(0, now)

    def _use_below(self, level: Level, place: int, block: int, found: int, now: float) -> None:
        """A block is used, and a slower tier hears of it."""
        tier, held = level.tier, level.held
        again = level.memory.again(block) if level.memory is not None else True
        if block in held:
            if tier.holds == "exclusive":
                del held[block]
            elif found >= place or not tier.from_above:  # a copy of what a faster tier serves is not used
                held.move_to_end(block)
                held[block] = now
        elif again and found != place and tier.write in ("all", "second_access"):  # what was read here is not rewritten
            self._write(place, block, now)

    def _write(self, place: int, block: int, now: float) -> None:
        level = self.levels[place]
        level.held[block] = now
        level.writes += 1
        if place + 1 < len(self.levels) and self.levels[place + 1].tier.holds == "exclusive":
            self.levels[place + 1].held.pop(block, None)
        if len(level.held) > level.tier.capacity:
            self._evict(place, now)

    def _evict(self, place: int, now: float) -> None:
        """The block used longest ago leaves a tier, and may go on to the next."""
        level = self.levels[place]
        block, _ = level.held.popitem(last=False)
        level.evictions += 1
        if place + 1 < len(self.levels):
            self._offer(place + 1, block, now)

    def _offer(self, place: int, block: int, now: float) -> None:
        level = self.levels[place]
        tier = level.tier
        if not tier.from_above:
            return
        if tier.write == "on_second_eviction" and level.memory is not None and not level.memory.twice(block):
            return
        if self.timed:
            self._expire(place, now)
        if block in level.held:
            level.held.move_to_end(block)
            level.held[block] = now
        else:
            self._write(place, block, now)

    def _expire(self, place: int, now: float) -> None:
        """What is older than the retention leaves at its time."""
        level = self.levels[place]
        retention, held = level.tier.retention, level.held
        if retention == inf:
            return
        while held:
            block = next(iter(held))
            used = held[block]
            if now - used <= retention + HALF:
                return
            level.advance(max(level.clock, used + retention))
            held.popitem(last=False)
            level.evictions += 1
            if place + 1 < len(self.levels):
                self.levels[place + 1].advance(max(self.levels[place + 1].clock, used + retention))
                self._offer(place + 1, block, used + retention)
