"""The queue of stages over time: by hand, against a simulation in small steps, against the solver's own throughput."""

import itertools
import math
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import BadInput
from models.instance import Instance
from models.load import load
from models.plan import Pool
from solver.queueing import queues as timed
from solver.queueing.fluid import Queue, Windows
from solver.queueing.systems import Members, systems
from solver.solve import Options, solve
from solver.transition.backlog import Steps
from tests.instances import EIGHT, ROOT, eight

PIECES = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 5)), min_size=1, max_size=4)
STEP = 100
"""Of the simulation, in a second: rates change at whole seconds, so that no step straddles a change."""


def steps(pieces: list[tuple[int, int]]) -> Steps:
    """Rates of stretches; after the last one, the rate 0.5 stays."""
    ends = list(itertools.accumulate((seconds for seconds, _ in pieces), initial=0))
    points = zip(ends, [*(rate for _, rate in pieces), 0.5], strict=True)
    return Steps(tuple((float(at), float(rate)) for at, rate in points))


def of(arrivals: dict[str, Steps], capacity: float, weights: dict[str, float]) -> Queue:
    return Queue(arrivals, weights, capacity)


# --- one queue after the other ----------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(PIECES, PIECES, st.integers(3, 9), st.integers(3, 9), st.integers(1, 5))
def test_two_stages_are_a_simulation_in_small_steps(
    short: list[tuple[int, int]], long: list[tuple[int, int]], first: int, second: int, heavy: int
) -> None:
    """Parcels of each step keep their mix, and are served in their order, whole or in part."""
    arrivals = {"short": steps(short), "long": steps(long)}
    one = of(arrivals, float(first), {"short": 1.0, "long": 1.0})
    two = of(dict(one.departures), float(second), {"short": 1.0, "long": float(heavy)})
    queued: list[deque[dict[str, float]]] = [deque(), deque()]
    for step in range(60 * STEP):
        time = step / STEP
        if step % STEP == 0:
            for queue, parcels in zip((one, two), queued, strict=True):
                waiting = {name: sum(parcel[name] for parcel in parcels) for name in arrivals}
                work = sum(queue.weights[name] * count for name, count in waiting.items())
                room = 0.1 + 0.04 * heavy  # what comes within a step or two
                assert queue.curve.at(time) == pytest.approx(work, abs=room)
                assert queue.requests(time) == pytest.approx(waiting, abs=room)
        middle = time + 0.5 / STEP
        queued[0].append({name: flow.at(middle) / STEP for name, flow in arrivals.items()})
        queued[1].append(served(queued[0], one, 1.0 / STEP))
        served(queued[1], two, 1.0 / STEP)


def served(parcels: deque[dict[str, float]], queue: Queue, seconds: float) -> dict[str, float]:
    """What a stage takes out of its parcels in a step."""
    room, gone = queue.capacity * seconds, {"short": 0.0, "long": 0.0}
    while parcels and room > 1e-12:
        parcel = parcels.popleft()
        work = sum(queue.weights[name] * count for name, count in parcel.items())
        share = 1.0 if work <= room else room / work
        room -= share * work
        for name, count in parcel.items():
            gone[name] += share * count
        if share < 1.0:
            parcels.appendleft({name: (1.0 - share) * count for name, count in parcel.items()})
    return gone


@settings(max_examples=60, deadline=None)
@given(PIECES, PIECES, st.floats(0.6, 9.0), st.floats(0.1, 6.0), st.floats(0.0, 90.0))
def test_nothing_is_lost(
    short: list[tuple[int, int]], long: list[tuple[int, int]], capacity: float, heavy: float, time: float
) -> None:
    queue = of({"short": steps(short), "long": steps(long)}, capacity, {"short": 1.0, "long": heavy})
    waiting = queue.requests(time)
    for name, flow in queue.arrivals.items():
        assert flow.amount(time) == pytest.approx(queue.departures[name].amount(time) + waiting[name], abs=1e-6)
    work = sum(queue.weights[name] * count for name, count in waiting.items())
    assert work == pytest.approx(queue.curve.at(time), abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(PIECES, st.floats(0.6, 9.0), st.floats(0.01, 100.0), st.floats(0.0, 90.0))
def test_time_and_work_may_be_told_in_other_units(
    pieces: list[tuple[int, int]], capacity: float, factor: float, time: float
) -> None:
    one = of({"only": steps(pieces)}, capacity, {"only": 1.0})
    longer = Steps(tuple((factor * at, rate / factor) for at, rate in steps(pieces).points))
    slow = of({"only": longer}, capacity / factor, {"only": 1.0})
    assert slow.curve.at(factor * time) == pytest.approx(one.curve.at(time), abs=1e-6)
    heavy = of({"only": steps(pieces)}, capacity * factor, {"only": factor})
    assert heavy.curve.at(time) == pytest.approx(factor * one.curve.at(time), abs=1e-6 * max(1.0, factor))


@given(st.floats(0.01, 1e4), st.floats(0.0, 0.999))
def test_even_arrivals_below_the_capacity_never_wait(capacity: float, load: float) -> None:
    queue = of({"only": Steps(((0.0, load * capacity),))}, capacity, {"only": 1.0})
    assert queue.curve.windows == ()
    assert queue.departures["only"].at(5.0) == load * capacity


# --- windows ----------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(PIECES, st.floats(0.1, 30.0))
def test_the_capacity_that_a_wait_needs_keeps_it_just_so(pieces: list[tuple[int, int]], wait: float) -> None:
    work = steps(pieces)
    until = work.points[-1][0]
    needed = Windows(work, until).needed(wait)

    def longest(capacity: float) -> float:
        windows = of({"only": work}, capacity, {"only": 1.0}).curve.windows
        return max((window.longest_wait for window in windows), default=0.0)

    assert longest(needed.capacity * (1.0 + 1e-6)) <= wait * (1.0 + 1e-3)
    if math.isfinite(needed.seconds):
        assert longest(needed.capacity * 0.99) > wait
        came = work.amount(needed.start + needed.seconds) - work.amount(needed.start)
        assert needed.capacity == pytest.approx(came / (needed.seconds + wait))
    else:
        assert needed.capacity == 0.5  # the rate that stays


@settings(max_examples=60, deadline=None)
@given(PIECES, st.integers(1, 60))
def test_the_busiest_window_is_the_busiest_of_all(pieces: list[tuple[int, int]], length: int) -> None:
    work = steps(pieces)
    until = max(work.points[-1][0], float(length))
    found = Windows(work, until).busiest(float(length))
    starts = [index / 4 for index in range(int(4 * (until - length)) + 1)]
    most = max(work.amount(start + length) - work.amount(start) for start in starts)
    assert found.rate * length == pytest.approx(most)
    assert work.amount(found.start + length) - work.amount(found.start) == pytest.approx(most)


@settings(max_examples=60, deadline=None)
@given(PIECES, st.sampled_from([0.75, 1.25, 2.5, 3.5]))
def test_no_shorter_window_fits(pieces: list[tuple[int, int]], capacity: float) -> None:
    work = steps(pieces)
    stretches = of({"only": work}, capacity, {"only": 1.0}).curve.windows
    if not stretches:
        return
    until = 2.0 * max(work.points[-1][0], stretches[-1].end)
    windows = Windows(work, until)
    found = windows.shortest(capacity, max(one.end - one.start for one in stretches))
    assert found is not None
    assert windows.busiest(found).rate <= capacity * (1.0 + 1e-6)
    shorter = [found * share / 100.0 for share in range(1, 100)]
    assert all(windows.busiest(length).rate > capacity for length in shorter)


# --- stages of a plan -------------------------------------------------------------------------------


def stages_of(instance: Instance, periods: int = 2) -> list[timed.Stage]:
    return timed.queues(solve(instance, Options(plan_only=True)), instance, periods)


@pytest.mark.parametrize(
    "name",
    ["eight-cards", "mixed-outputs", "mixed-outputs-bursts", "output-4097-mixed", "prefix-hit-mixed", "eight-a100"],
)
def test_the_fullest_stage_is_as_full_as_the_plan_says(name: str) -> None:
    instance = load(ROOT / "instances" / "chapter" / f"{name}.yaml")
    plan = solve(instance, Options(plan_only=True))
    assert plan.throughput is not None
    fullest = max(stage.load for stage in timed.queues(plan, instance))
    assert fullest == pytest.approx(instance.rate / plan.throughput, rel=1e-6)


def test_workloads_of_pools_apart_are_queues_apart() -> None:
    instance = load(ROOT / "instances" / "examples" / "three-node-types.yaml")
    stages = stages_of(instance)
    served = [name for stage in stages if stage.system.stage != "decode" for name in stage.system.weights]
    assert sorted(served) == sorted(set(served))
    assert set(served) == set(instance.workloads)
    pools = [pool for stage in stages for pool in stage.system.pools]
    assert sorted(pools) == sorted(set(pools))


def members(*pools: tuple[str, int, dict[str, float]]) -> list[Members]:
    """Pools with units, and the unit-seconds of a request of each workload that they serve."""
    return [
        Members(Pool.model_construct(name=name, units=units), {served: (need,) for served, need in seconds.items()})
        for name, units, seconds in pools
    ]


def test_unlike_pools_of_one_queue() -> None:
    """B helps with heavy requests only, and does one in ten seconds, A in one: a second of B is worth 0.1 of A's."""
    pools = members(("a", 2, {"light": 1.0, "heavy": 1.0}), ("b", 1, {"heavy": 10.0}))
    [found] = systems("both", pools, {"light": 1.0, "heavy": 1.0})
    assert (found.pools, found.units) == (("a", "b"), 3)
    assert found.weights == pytest.approx(dict.fromkeys(("light", "heavy"), 3.0 / 2.1))
    assert found.work / found.units == pytest.approx(2.0 / 2.1)


def test_what_is_not_full_is_a_queue_of_its_own() -> None:
    """A is kept for x by its share of the mix, though it could serve y: B does all of y, and has room left."""
    pools = members(("a", 1, {"x": 1.0, "y": 1.0}), ("b", 1, {"y": 1.0}), ("c", 4, {"z": 2.0}))
    found = systems("both", pools, {"x": 0.9, "y": 0.1, "z": 1.5})
    assert [one.pools for one in found] == [("a",), ("c",), ("b",)]
    for one, weights in zip(found, ({"x": 1.0}, {"z": 2.0}, {"y": 1.0}), strict=True):
        assert one.weights == pytest.approx(weights)
    assert [one.work / one.units for one in found] == pytest.approx([0.9, 0.75, 0.1])


def test_a_queue_of_one_pool_counts_its_own_unit_seconds() -> None:
    [prefill, decode] = stages_of(eight())
    assert prefill.system.weights["reasoning"] == pytest.approx(4 / 4.670857, rel=1e-6)  # four units at 4.67 requests/s
    assert decode.system.weights["reasoning"] == pytest.approx(0.878319008)  # exercise 9-10, an H20


def test_bursts_keep_their_mean_and_stay_in_their_part() -> None:
    workload = eight("workloads.reasoning.bursts={every: 30 s, first: 5 s}").workloads["reasoning"]
    flow = timed.arriving(workload, 60.0)
    assert flow.amount(60.0) == pytest.approx(3.5 * 60.0)
    assert (flow.at(0.0), flow.at(4.9), flow.at(5.0), flow.at(30.0)) == (21.0, 21.0, 0.0, 21.0)
    assert flow.at(1000.0) == 3.5
    many = timed.arriving(workload, 1e6)
    assert len(many.points) == 2 * timed.MOST_BURSTS + 1
    assert many.amount(1e6) == pytest.approx(3.5e6)


def test_a_burst_by_hand() -> None:
    # 21/s for 5 s: prefill does 4.67/s, so 81.6 wait in second 5; all 105 are done after 22.5 s: a wait of 17.5 s
    [prefill, decode] = stages_of(eight("workloads.reasoning.bursts={every: 30 s, first: 5 s}"))
    assert prefill.peak is not None
    assert sum(prefill.queue.requests(5.0).values()) == pytest.approx(5.0 * (21.0 - 4.670857), rel=1e-6)
    assert prefill.peak.end == pytest.approx(105.0 / 4.670857, rel=1e-6)
    assert prefill.wait == pytest.approx(105.0 / 4.670857 - 5.0, rel=1e-6)
    # decode does 4.554/s of the 4.671 that it gets: the last of them is done after 105 / 4.554 s
    assert decode.peak is not None
    assert decode.peak.end == pytest.approx(105.0 / 4.554154, rel=1e-6)
    waits = timed.longest_waits([prefill, decode], eight())
    assert waits["reasoning"] == pytest.approx(105.0 / 4.554154 - 5.0, rel=1e-6)


def test_a_plan_says_what_bursts_do_to_it() -> None:
    bursts = "workloads.reasoning.bursts={every: 30 s, first: 5 s}"
    said = [text for text in solve(eight(bursts), Options(plan_only=True)).warnings if text.startswith("bursts")]
    assert len(said) == 2
    assert "up to 81.6 requests wait, up to 17.5 s" in said[0]
    calm = eight("workloads.reasoning.bursts={every: 30 s, first: 29 s}")
    assert not [text for text in solve(calm, Options(plan_only=True)).warnings if text.startswith("bursts")]


def test_requests_that_are_turned_away_do_not_wait() -> None:
    instance = eight("workloads.reasoning.rate=9/s", "workloads.reasoning.minimum_share=0.1", "service={}")
    stages = stages_of(instance)
    assert all(not stage.queue.curve.windows for stage in stages)
    assert max(stage.load for stage in stages) == pytest.approx(1.0, rel=1e-6)


def test_units_of_all_stages_have_no_queue_of_one(tmp_path: Path) -> None:
    instance = load(EIGHT, ["schemes.allow=[hybrid]", "service={}", "workloads.reasoning.rate=2/s"])
    with pytest.raises(BadInput, match="hybrid"):
        stages_of(instance)
