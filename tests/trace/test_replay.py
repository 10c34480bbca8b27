"""The replay of tiers against a plain second one, against hit curves, and by hand."""

from collections import Counter
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from solver.trace.hits import HitCurve
from solver.trace.replay import replay
from solver.trace.retention import TtlCurve
from solver.trace.reuse import hot_blocks, popularity
from solver.trace.tiers import Replayed, Tier
from solver.trace.writes import POLICIES, Drive, table, tiers
from tests.trace import naive
from tests.trace.naive import SIZE

CASES = [(seed, tree) for seed in range(6) for tree in (False, True)]


def plain(requests: naive.Requests, policy: str, room: tuple[int, int], admission: float = inf) -> tuple[int, ...]:
    """Hits above, hits below, writes below, evictions above: two lists, least recently used first."""
    above: list[int] = []
    below: list[int] = []
    seen: list[int] = []  # blocks whose accesses are remembered
    count: Counter[int] = Counter()
    hits = [0, 0]
    writes = evictions = 0

    def down(block: int) -> None:
        nonlocal writes
        if block in below:
            below.remove(block)
        else:
            writes += 1
        below.append(block)
        if len(below) > room[1]:
            del below[0]

    for _, _, ids in requests:
        found = [0 if block in above else 1 if block in below else 2 for block in ids]
        hits[0], hits[1] = hits[0] + found.count(0), hits[1] + found.count(1)
        for block, where in reversed(list(zip(ids, found, strict=True))):
            if policy in ("second-access", "demote-second"):
                count[block] += 1
                if block in seen:
                    seen.remove(block)
                seen.append(block)
                if len(seen) > admission:
                    del count[seen.pop(0)]
            if policy == "exclusive" and block in below:
                below.remove(block)
            elif policy in ("through", "second-access"):
                if block in below or (where != 1 and (policy == "through" or count[block] > 1)):
                    down(block)
            elif where > 0 and block in below:
                down(block)
            if block in above:
                above.remove(block)
            above.append(block)
            if len(above) > room[0]:
                gone = above.pop(0)
                evictions += 1
                if policy in ("demote", "exclusive") or (policy == "demote-second" and count[gone] > 1):
                    down(gone)
    return hits[0], hits[1], writes, evictions


@pytest.mark.parametrize(("seed", "tree"), CASES)
@pytest.mark.parametrize("policy", POLICIES)
def test_two_tiers(seed: int, tree: bool, policy: str) -> None:
    requests = naive.some(seed, tree=tree)
    trace = naive.made(requests, (9, 70))
    for room in ((0, 6), (3, 5), (4, 30), (10, 2), (12, 100)):
        for admission in (None, 1, 7):
            found = replay(trace.chunks(), tiers(policy, *room, admission), SIZE)
            above, below = found.tiers
            wanted = plain(requests, policy, room, inf if admission is None else admission)
            assert (above.hits, below.hits, below.writes, above.evictions) == wanted
            assert above.peak <= room[0]
            assert below.peak <= room[1]


@pytest.mark.parametrize(("seed", "tree"), CASES)
def test_one_tier_is_the_hit_curve(seed: int, tree: bool) -> None:
    trace = naive.made(naive.some(seed, tree=tree), (50,))
    curve = HitCurve(SIZE, 20)
    for chunk in trace.chunks():
        curve.feed(chunk)
    sizes = [0.0, 1.0, 4.0, 9.0, 17.0, inf]
    for size, hits in zip(sizes, curve.at(sizes), strict=True):
        found = replay(trace.chunks(), [Tier("only", size)], SIZE, first=20)
        assert (found.tiers[0].hits, found.tiers[0].hit_tokens) == (hits.blocks, hits.tokens)
        assert (found.accesses, found.tokens) == (curve.accesses, curve.input_tokens)


@pytest.mark.parametrize(("seed", "tree"), CASES)
def test_exclusive_tiers_are_one_lru(seed: int, tree: bool) -> None:
    requests = naive.some(seed, tree=tree)
    trace = naive.made(requests)
    rooms = (3, 5, 9)
    chain = [Tier(str(room), room, holds="exclusive", write="on_eviction") for room in rooms]
    chain[0] = Tier("3", 3)
    found = replay(trace.chunks(), chain, SIZE)
    for place in range(3):
        assert sum(tier.hits for tier in found.tiers[: place + 1]) == naive.lru(requests, sum(rooms[: place + 1]))[0]


@pytest.mark.parametrize(("seed", "tree"), CASES)
def test_retention_is_the_curve_of_retention(seed: int, tree: bool) -> None:
    trace = naive.made(naive.some(seed, tree=tree), (50,))
    times = [0.5, 3.3, 6.6, 30.0, 1e6]
    curve = TtlCurve(trace, times)
    for chunk in trace.chunks():
        curve.feed(chunk)
    for seconds, kept in zip(times, curve.at(), strict=True):
        found = replay(trace.chunks(), [Tier("only", retention=seconds)], SIZE)
        [tier] = found.tiers
        assert (tier.hits, tier.hit_tokens) == (kept.blocks, kept.tokens)
        assert tier.mean == pytest.approx(kept.mean_live)
        assert tier.peak >= kept.peak_live


def test_what_is_too_old_goes_down() -> None:
    requests = [(0.0, 4, [0]), (10.0, 4, [1]), (25.0, 4, [0]), (60.0, 4, [0])]
    chain = [Tier("fast", retention=8.0), Tier("slow", retention=20.0, write="on_eviction")]
    fast, slow = replay(naive.made(requests).chunks(), chain, SIZE).tiers
    assert (fast.hits, slow.hits, fast.writes) == (0, 1, 4)  # 25 s: 8 s above, then below until second 28
    # Below: block 0 from second 8, used again at 25 and refreshed at 33, gone at 53; block 1 from 18 to 38.
    assert (slow.writes, slow.evictions, fast.evictions) == (2, 2, 3)
    assert slow.mean == pytest.approx((45 + 20) / 60)
    assert fast.mean == pytest.approx(3 * 8 / 60)


def test_counting_from_the_middle() -> None:
    requests = naive.some(3)
    trace = naive.made(requests, (40,))
    whole, rest = (table(trace, 5, 9, first) for first in (0, 60))
    for policy in POLICIES:
        assert rest[policy].requests == 60
        assert rest[policy].accesses == sum(len(ids) for _, _, ids in requests[60:])
        assert rest[policy].seconds == pytest.approx(trace.span - requests[60][0])
        for late, all_of_it in zip(rest[policy].tiers, whole[policy].tiers, strict=True):
            assert 0 < late.hits < all_of_it.hits
            assert 0 <= late.writes < all_of_it.writes
    nothing = replay(trace.chunks(), [Tier("a", 3)], SIZE, first=10**6)
    assert (nothing.requests, nothing.accesses, nothing.hit_rate, nothing.tiers[0].hits) == (0, 0, 0.0, 0)


def test_contiguous_hits() -> None:
    requests = [(0.0, 12, [0, 1, 2]), (1.0, 4, [3]), (2.0, 12, [0, 5, 2])]
    for contiguous, hits in ((False, 2), (True, 1)):
        found = replay(naive.made(requests).chunks(), [Tier("a")], SIZE, contiguous=contiguous)
        assert found.tiers[0].hits == hits
    tree = naive.made(naive.some(1, tree=True))
    plainly, strictly = (
        replay(tree.chunks(), tiers("demote", 4, 9), SIZE, contiguous=contiguous) for contiguous in (False, True)
    )
    assert plainly.tiers[0] == strictly.tiers[0]


def test_a_last_block_that_is_not_full() -> None:
    requests = [(0.0, 7, [0, 1]), (1.0, 7, [0, 1]), (2.0, 4, [0])]
    found = replay(naive.made(requests).chunks(), [Tier("a")], SIZE)
    assert found.tiers[0].hit_tokens == 7 + 4
    assert found.token_hit_rate == pytest.approx(11 / 18)
    assert found.hit_rate == pytest.approx(3 / 5)


def test_private_copies() -> None:
    sessions = [(float(i), 8, [0, 1 + i % 6]) for i in range(60)]
    trace = naive.made(sessions)
    hot = hot_blocks(trace, popularity(trace), 0.5)

    def run(copies: int, routing: str, seed: int = 0, *, shared: bool = False) -> Replayed:
        chain = [Tier("own"), Tier("all", write="on_eviction", shared=True)] if shared else [Tier("own")]
        chain[0] = replace(chain[0], capacity=2 if shared else inf)
        return replay(trace.chunks(), chain, SIZE, copies=copies, routing=routing, seed=seed, hot=hot)  # type: ignore[arg-type]

    alone, affine, scattered = run(1, "random"), run(4, "session"), run(4, "random")
    assert alone.tiers[0].hits == 120 - 7
    assert affine.tiers[0].hits == 120 - 6 - len({_copy(block) for block in range(1, 7)})
    assert scattered.tiers[0].hits < affine.tiers[0].hits
    assert run(4, "random").tiers == scattered.tiers
    assert run(4, "random", 1).tiers != scattered.tiers
    assert run(4, "random", shared=True).tiers[1].hits > 0


def _copy(block: int) -> int:
    return ((block * 0x9E3779B97F4A7C15 & (2**64 - 1)) >> 32) * 4 >> 32


@pytest.mark.parametrize(
    "chain",
    [
        [],
        [Tier("a", write="never")],
        [Tier("a", -1)],
        [Tier("a", np.nan)],
        [Tier("a"), Tier("b", holds="exclusive")],
        [Tier("a"), Tier("b", write="second_access", admission=0)],
        [Tier("a", shared=True), Tier("b")],
    ],
)
def test_tiers_that_cannot_be(chain: list[Tier]) -> None:
    with pytest.raises(ValueError, match=r"."):
        replay([], chain, SIZE)


def test_a_tier_that_is_never_written() -> None:
    trace = naive.made(naive.some(2))
    above, below = replay(trace.chunks(), [Tier("a", 4), Tier("b", write="never")], SIZE).tiers
    assert (below.hits, below.writes, below.peak) == (0, 0, 0)
    assert above.hits == naive.lru(naive.some(2), 4)[0]


def test_drives() -> None:
    drive = Drive(7.68e12, 1.0, 5.0)
    assert drive.endurance == pytest.approx(7.68e12 * 365 * 5)
    assert drive.rate == pytest.approx(7.68e12 / 86400)
