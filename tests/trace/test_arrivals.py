"""Lengths and arrivals against numpy, in one chunk and in many."""

import math

import numpy as np
import pytest

from models.trace.chunks import Trace
from solver.trace.analysis import Asked, WarmUp, analyse, first_counted
from solver.trace.arrivals import Windows, arrivals
from tests.trace import naive


def trace_of(times: list[float], cuts: tuple[int, ...] = ()) -> Trace:
    return naive.made([(time, 1 + i % 7, [i % 5]) for i, time in enumerate(times)], cuts)


@pytest.mark.parametrize("cuts", [(), (1,), (3, 50, 51, 900)])
def test_against_numpy(cuts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    gaps = np.round(rng.exponential(1.0, 999) * rng.choice([0.1, 1.0, 40.0], 999), 3)
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    found = arrivals(trace_of(times.tolist(), cuts).chunks())
    told = found.arrivals()
    assert told["rate"] == pytest.approx(1000 / times[-1])
    assert told["interarrival_cv"] == pytest.approx(gaps.std() / gaps.mean())
    for width, name in ((60.0, "1min"), (10.0, "10s")):
        counts = np.bincount((times // width).astype(int))[: int(times[-1] // width)]
        assert told[f"peak_to_mean_{name}"] == pytest.approx(counts.max() / counts.mean())
        if name == "1min":
            assert told["index_of_dispersion_1min"] == pytest.approx(counts.var() / counts.mean())
    lengths = np.array([1 + i % 7 for i in range(1000)])
    said = found.lengths()["input"]
    assert [said[f"p{p}"] for p in (10, 50, 90, 99)] == pytest.approx(np.percentile(lengths, [10, 50, 90, 99]))
    assert [said["mean"], said["max"]] == pytest.approx([lengths.mean(), 7.0])


@pytest.mark.parametrize("times", [[0.0], [0.0, 0.0], [0.0, 3.0]])
def test_short_traces_tell_what_they_can(times: list[float]) -> None:
    told = arrivals(trace_of(times).chunks()).arrivals()
    assert told["peak_to_mean_1min"] is None
    assert (told["rate"] is None) is (times[-1] == 0.0)
    assert told["interarrival_cv"] == (0.0 if times[-1] else None)


def test_windows_that_stay_empty() -> None:
    windows = Windows(10.0)
    windows.add(np.array([0.0, 1.0, 35.0]))
    windows.add(np.array([36.0, 1e9]))
    assert windows.full == 10**8
    assert windows.peak == 2
    assert windows.peak_to_mean == pytest.approx(2 / (4 / 1e8))


def test_warm_up() -> None:
    trace = trace_of([0.0, 1.0, 2.0, 2.0, 5.0], (2,))
    for warm_up, first, since in (
        (WarmUp(), 0, 0.0),
        (WarmUp(share=0.5), 2, 2.0),
        (WarmUp(seconds=2.0), 2, 2.0),
        (WarmUp(seconds=2.5), 4, 5.0),
        (WarmUp(requests=3), 3, 2.0),
        (WarmUp(requests=99), 4, 5.0),
        (WarmUp(seconds=99.0), 4, 5.0),
    ):
        assert first_counted(trace, warm_up) == (first, since)


def test_all_of_it_agrees() -> None:
    trace = naive.made(naive.some(4, 200), (80,))
    found = analyse(trace, Asked(WarmUp(requests=50), (3.0,), (4.0,), dram=3.0, ssd=6.0))
    assert found.blocks is not None
    blocks = found.blocks
    again = blocks.reuse.all.again
    assert (blocks.hits[-1].blocks, blocks.hits[-1].tokens) == again
    assert (blocks.kept[-1].blocks, blocks.kept[-1].tokens) == again
    three = next(one for one in blocks.hits if one.capacity == 3.0)
    assert {one.tiers[0].hits for one in blocks.writes.values()} == {three.blocks}
    assert {one.accesses for one in blocks.writes.values()} == {blocks.accesses} == {blocks.reuse.all.accesses}
    assert blocks.kept[-1].peak_live == trace.distinct
    assert math.isinf(blocks.kept[-1].seconds)
