"""Hit curves, retention and reuse against counting them one by one."""

from math import inf

import numpy as np
import pytest

from solver.trace.counted import MOST_VALUES, Counted
from solver.trace.distances import NEVER, Distances, previous, smaller_before
from solver.trace.hits import HitCurve, grid
from solver.trace.retention import TtlCurve
from solver.trace.reuse import Reuse, hot_blocks, of_trace, percentiles, popularity
from tests.trace import naive

CASES = [(seed, tree) for seed in range(8) for tree in (False, True)]
CUTS = ((), (1, 2, 3, 50), (7, 60, 119))


@pytest.mark.parametrize(("seed", "tree"), CASES)
@pytest.mark.parametrize("cuts", CUTS)
def test_hits_at_every_size(seed: int, tree: bool, cuts: tuple[int, ...]) -> None:
    requests = naive.some(seed, tree=tree)
    trace = naive.made(requests, cuts)
    for first in (0, 31):
        curve = HitCurve(naive.SIZE, first)
        for chunk in trace.chunks():
            curve.feed(chunk)
        sizes = [0.0, 1.0, 2.0, 3.0, 5.0, 8.0, 20.0, 39.0, 40.0, 1e9, inf]
        assert [(one.blocks, one.tokens) for one in curve.at(sizes)] == [
            naive.lru(requests, size, first) for size in sizes
        ]
        assert curve.input_tokens == sum(length for _, length, _ in requests[first:])
        full, less = curve.at([inf, curve.deepest - 1])
        assert curve.at([curve.deepest])[0].blocks == full.blocks > less.blocks


@pytest.mark.parametrize(("seed", "tree"), CASES)
@pytest.mark.parametrize("cuts", CUTS)
def test_retention(seed: int, tree: bool, cuts: tuple[int, ...]) -> None:
    requests = naive.some(seed, 60, tree=tree)
    trace = naive.made(requests, cuts)
    times = [0.0, 0.5, 1.0, 3.3, 6.6, 30.0, 1e6, inf]
    curve = TtlCurve(trace, times)
    for chunk in trace.chunks():
        curve.feed(chunk)
    for found, seconds in zip(curve.at(), times, strict=True):
        blocks, tokens, mean, peak = naive.kept(requests, seconds)
        assert (found.seconds, found.blocks, found.tokens, found.peak_live) == (seconds, blocks, tokens, peak)
        assert found.mean_live == pytest.approx(mean, abs=1e-9)
    every = [size for _, length, ids in requests for _, size in naive.tokens(length, ids)]
    assert curve.counted == (len(every), sum(every))


def test_retention_by_hand() -> None:
    requests = [(0.0, 8, [0, 1]), (10.0, 4, [0]), (40.0, 8, [0, 1])]
    trace = naive.made(requests)
    curve = TtlCurve(trace, [10.0, 30.0])
    late = TtlCurve(trace, [10.0, 30.0], first=1, since=10.0)
    for chunk in trace.chunks():
        curve.feed(chunk)
        late.feed(chunk)
    ten, thirty = curve.at()
    assert (ten.blocks, thirty.blocks) == (1, 2)
    assert ten.mean_live == pytest.approx((10 + 10 + 10) / 40)  # block 0 for 20 s, block 1 for 10 s
    assert thirty.mean_live == pytest.approx((40 + 30) / 40)
    assert [one.peak_live for one in (ten, thirty)] == [2, 2]
    ten, thirty = late.at()
    assert (ten.blocks, thirty.blocks) == (1, 2)
    assert ten.mean_live == pytest.approx(10 / 30)
    assert thirty.mean_live == pytest.approx((30 + 20) / 30)


def test_reuse_intervals_and_hot_blocks() -> None:
    requests = [(float(t), 8, [0, 1 + t % 3]) for t in range(30)]
    trace = naive.made(requests, (4, 11))
    counts = popularity(trace)
    assert counts.tolist() == [30, 10, 10, 10]
    assert hot_blocks(trace, counts, 0.5).tolist() == [True, False, False, False]
    found = of_trace(trace, share=0.5)
    assert percentiles(found.hot, [50])["p50"] == 1.0
    assert percentiles(found.other, [10, 90]) == {"p10": 3.0, "p90": 3.0}
    assert found.other.again == (27, 108)
    assert found.other.requests == 27
    assert found.curve("block", "other") == [(3.0, 0.9)]
    assert found.curve("token", "all")[-1] == pytest.approx((3.0, 56 / 60))
    assert found.curve("block")[0] == pytest.approx((1.0, 29 / 60))


def test_few_requests_make_nothing_hot() -> None:
    trace = naive.made([(float(t), 4, [0]) for t in range(9)])
    assert not hot_blocks(trace, popularity(trace)).any()


@pytest.mark.parametrize("seed", range(5))
def test_the_curve_is_the_hit_rate_of_retention(seed: int) -> None:
    trace = naive.made(naive.some(seed), (40,))
    reuse = Reuse(trace, np.zeros(trace.distinct, dtype=bool))
    for chunk in trace.chunks():
        reuse.feed(chunk)
    points = reuse.curve("block")
    ages, shares = zip(*points, strict=True)
    assert list(ages) == sorted(set(ages))
    assert list(shares) == sorted(shares)
    curve = TtlCurve(trace, ages)
    for chunk in trace.chunks():
        curve.feed(chunk)
    assert [one.blocks / trace.accesses for one in curve.at()] == pytest.approx(shares)


def test_parts_of_the_counting() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 3, 7, 8, 9, 100):
        ranks = rng.permutation(size)
        assert smaller_before(ranks).tolist() == [int((ranks[:i] < ranks[i]).sum()) for i in range(size)]
    for codes in (np.array([3, 1, 3, 3, 1, 2]), np.array([3, 1, 3, 3, 1, 2]) + 2**62):
        before, last = previous(codes)
        assert before.tolist() == [-1, -1, 0, 2, 1, -1]
        assert last.tolist() == [False, False, False, True, True, True]
    first = Distances().of(next(naive.made([(0.0, 8, [4, 2])]).chunks()))
    assert first.tolist() == [NEVER, NEVER]


def test_grid() -> None:
    assert grid(7) == [1.0, 2.0, 5.0, 7.0, inf]
    assert grid(0) == [inf]


def test_percentiles_are_numpys() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 50, 997).astype(float)
    counted = Counted()
    for part in np.array_split(values, 7):
        counted.add(part)
    wanted = [0, 1, 10, 33, 50, 90, 99, 100]
    assert counted.percentiles(wanted) == pytest.approx(np.percentile(values, wanted).tolist())
    assert counted.mean == pytest.approx(values.mean())
    assert counted.below(np.array([-1.0, 10.0, 99.0])).tolist() == [0.0, float((values <= 10).sum()), 997.0]
    assert all(np.isnan(Counted().percentiles([50])))


def test_many_values_are_rounded() -> None:
    counted = Counted()
    counted.add(np.linspace(0.0, 10.0, MOST_VALUES + 10))
    assert len(counted.values) <= 1e5 * 7
    assert counted.total == MOST_VALUES + 10
    assert counted.percentiles([50.0])[0] == pytest.approx(5.0, rel=1e-4)
