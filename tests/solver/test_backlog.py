"""Work that waits over time: by hand, against the closed forms, and against a simulation request by request."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.formulas import drain
from solver.transition.backlog import Steps, curve, required_rate

RATES = st.floats(0.5, 9.0)


def constant(rate: float) -> Steps:
    return Steps(((0.0, rate),))


def started(rate: float, ready: float) -> Steps:
    return Steps(((0.0, 0.0), (ready, rate)))


@settings(max_examples=100, deadline=None)
@given(RATES, RATES, st.floats(0.5, 50.0), st.floats(0.0, 200.0))
def test_a_startup_is_what_the_closed_forms_say(arrival: float, service: float, ready: float, time: float) -> None:
    found = curve(constant(arrival), [], started(service, ready))
    assert found.at(ready) == pytest.approx(drain.startup_backlog(arrival, ready))
    assert found.at(time) == pytest.approx(drain.backlog_at(time, arrival, service, ready), abs=1e-6)
    gone = drain.drained_at(arrival, service, ready)
    assert found.gone(ready) == (pytest.approx(gone) if math.isfinite(gone) else math.inf)


@settings(max_examples=50, deadline=None)
@given(RATES, st.floats(0.5, 50.0), st.floats(0.5, 50.0))
def test_the_required_rate_is_what_the_closed_form_says(arrival: float, ready: float, more: float) -> None:
    found = required_rate(constant(arrival), [], constant(0.0), ready, ready + more)
    assert found == pytest.approx(drain.required_rate(arrival, ready, ready + more))


def test_the_example_of_the_chapter() -> None:
    found = curve(constant(3.5), [], started(4.554153973176907, 10.0))
    [window] = found.windows
    assert (window.start, window.peak, window.peak_at) == (0.0, 35.0, 10.0)
    assert window.end == pytest.approx(43.2, abs=0.05)  # section 9.6.1: second 43
    assert window.longest_wait == 10.0  # of the first request
    assert curve(constant(3.5), [], started(3.02, 10.0)).gone(10.0) == math.inf


def test_bursts_weigh_what_their_requests_weigh() -> None:
    # 1/s arrive, 3/s are served; in second 10 four requests of weight 4.5: 18, gone after 9 s; another 2 in second 12
    found = curve(constant(1.0), [(10.0, 4 * 4.5), (12.0, 2.0)], constant(3.0))
    [window] = found.windows
    assert (window.start, window.peak, window.peak_at) == (10.0, 18.0, 10.0)
    assert window.end == pytest.approx(10.0 + 9.0 + 1.0)
    assert window.longest_wait == pytest.approx(6.0)
    assert found.at(11.9) == pytest.approx(18.0 - 1.9 * 2.0)
    assert found.at(12.0) == pytest.approx(16.0)


def test_the_window_that_decides_has_the_longest_wait() -> None:
    # two windows: 9 that wait in second 5 (3 s), 8 in second 50 when only 1/s is served (8 s)
    service = Steps(((0.0, 3.0), (40.0, 1.0)))
    found = curve(Steps(()), [(5.0, 9.0), (50.0, 8.0)], service)
    assert [(window.start, window.end) for window in found.windows] == [(5.0, 8.0), (50.0, 58.0)]
    assert found.deciding == found.windows[1]
    assert max(window.peak for window in found.windows) == 9.0


def test_the_longest_wait_may_be_of_work_that_comes_between_corners() -> None:
    # 2/s arrive until second 10; 1/s served until second 8, nothing until 20, then 4/s: what is next in second 8 came
    # in second 4 and waits 16 s; the first and the last to come wait less
    arrivals, service = Steps(((0.0, 2.0), (10.0, 0.0))), Steps(((0.0, 1.0), (8.0, 0.0), (20.0, 4.0)))
    [window] = curve(arrivals, [], service).windows
    assert window.longest_wait == pytest.approx(16.0)
    assert window.end == pytest.approx(20.0 + 12.0 / 4.0)


def test_service_as_slow_as_arrivals_leaves_what_waits() -> None:
    found = curve(constant(2.0), [(1.0, 6.0)], constant(2.0))
    [window] = found.windows
    assert (window.end, window.peak, window.longest_wait) == (math.inf, 6.0, 3.0)
    assert found.at(100.0) == 6.0


def test_nothing_waits_where_more_is_served() -> None:
    found = curve(constant(1.0), [], constant(2.0))
    assert (found.windows, found.deciding, found.gone(3.0), found.at(9.0)) == ((), None, 3.0, 0.0)


def test_a_deadline_before_all_is_ready_needs_an_infinite_rate() -> None:
    assert required_rate(constant(1.0), [], constant(0.0), 10.0, 10.0) == math.inf
    assert required_rate(constant(0.0), [(20.0, 5.0)], constant(0.0), 10.0, 10.5) < 1e-9  # nothing waits in between


PIECES = st.lists(st.tuples(st.integers(1, 20), st.integers(0, 4)), min_size=1, max_size=4)


@settings(max_examples=25, deadline=None)
@given(PIECES, PIECES, st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8)), max_size=3))
def test_the_fluid_is_a_simulation_in_small_steps(
    arriving: list[tuple[int, int]], served: list[tuple[int, int]], bursts: list[tuple[int, int]]
) -> None:
    """Rates change at whole seconds, so that steps of 1/100 s never straddle a change."""
    arrivals, service = _steps(arriving), _steps(served)
    found = curve(arrivals, [(float(time), float(work)) for time, work in bursts], service)
    waiting = 0.0
    for step in range(6000):
        time = step / 100
        if step % 100 == 0:
            waiting += sum(work for at, work in bursts if at == step // 100)
            assert found.at(time) == pytest.approx(waiting, abs=0.05)
        waiting = max(0.0, waiting + (arrivals.at(time + 0.005) - service.at(time + 0.005)) / 100)


@settings(max_examples=25, deadline=None)
@given(PIECES, PIECES)
def test_waits_are_those_of_single_requests(arriving: list[tuple[int, int]], served: list[tuple[int, int]]) -> None:
    """First come first served, each request a small piece of work that is served when all before it are."""
    arrivals, service = _steps(arriving), _steps([*served, (1, 5)], more=0.25)  # no rate as large as another
    found = curve(arrivals, [], service)
    piece, longest, free, time = 0.05, 0.0, 0.0, 0.0
    while time < 60.0:
        rate = arrivals.at(time)
        if rate == 0.0:
            time = min([start for start, _ in arrivals.points if start > time], default=math.inf)
            continue
        begin = max(free, time)
        free = begin + service.seconds_for(piece, begin)
        longest = max(longest, free - time)
        time += piece / rate
    told = max((window.longest_wait for window in found.windows), default=0.0)
    if arrivals.points[-1][1] < 5.0 and all(window.end < 60.0 for window in found.windows):
        assert told == pytest.approx(longest, abs=0.35)


def _steps(pieces: list[tuple[int, int]], more: float = 0.0) -> Steps:
    time, points = 0.0, []
    for seconds, rate in pieces:
        points.append((time, rate + more))
        time += seconds
    return Steps((*points,))
