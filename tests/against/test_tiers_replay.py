"""Rates and means of docs/reference/tiers.md against sessions that are replayed, and where they are off."""

import itertools
import math

import pytest

from solver.formulas import retention
from tests.against.tiers_replay import ALL, SECOND, Sessions, Turns, admitted, growing, one, scattered, two

S = Sessions()
LONG = 4000.0
NEAR = 0.03
"""Statistical: about 40,000 requests."""
again = S.returns
"""Every use is followed by another with the same chance."""


def share(age: float) -> float:
    return S.returns * (1.0 - math.exp(-age / S.mean))


def summed(age: float) -> float:
    return S.returns * (age - S.mean * (1.0 - math.exp(-age / S.mean)))


def alive(age: float) -> float:
    return retention.live_bytes(S.rate, S.kept, S.hit, age, summed(age))


@pytest.mark.parametrize("age", [20.0, 60.0, 150.0])
def test_everything_is_kept(age: float) -> None:
    by_age, by_size = one(S, ALL, age, None, LONG, 1), one(S, ALL, None, alive(age), LONG, 1)
    for counted in (by_age, by_size):  # LRU in so many bytes keeps for one time
        assert counted.found == pytest.approx(S.rate * share(age), rel=NEAR)
        assert counted.written == pytest.approx(retention.written_bytes(S.rate, S.kept, S.hit, share(age)), rel=NEAR)
        assert counted.alive == pytest.approx(alive(age), rel=NEAR)


@pytest.mark.parametrize("age", [20.0, 60.0, 150.0])
def test_the_second_use_admits(age: float) -> None:
    size = retention.live_again_bytes(S.rate, S.hit, S.returns, age, again * summed(age))
    for counted in (one(S, SECOND, age, None, LONG, 1), one(S, SECOND, None, size, LONG, 1)):
        assert counted.found == pytest.approx(S.rate * again * share(age), rel=NEAR)
        written = retention.written_again_bytes(S.rate, S.hit, S.returns, again * share(age))
        assert counted.written == pytest.approx(written, rel=NEAR)
        assert counted.alive == pytest.approx(size, rel=NEAR)


@pytest.mark.parametrize("ages", [(20.0, 60.0), (20.0, 150.0), (60.0, 150.0)])
def test_an_exclusive_tier(ages: tuple[float, float]) -> None:
    _, lower = two(S, ages, True, LONG, 1)
    assert lower.found == pytest.approx(S.rate * (share(ages[1]) - share(ages[0])), rel=2 * NEAR)
    assert lower.written == pytest.approx(S.rate * (S.kept - S.hit * share(ages[0])), rel=NEAR)
    assert lower.alive == pytest.approx(alive(ages[1]) - alive(ages[0]), rel=NEAR)


@pytest.mark.parametrize(("ages", "part"), [((20.0, 60.0), 0.70), ((20.0, 150.0), 0.88), ((60.0, 150.0), 0.62)])
def test_a_copy_that_is_kept_on_eviction(ages: tuple[float, float], part: float) -> None:
    """Found and written are as stated; alive is less, since new state is not there before the faster tier evicts it."""
    _, lower = two(S, ages, False, LONG, 1)
    assert lower.found == pytest.approx(S.rate * (share(ages[1]) - share(ages[0])), rel=2 * NEAR)
    assert lower.written == pytest.approx(retention.written_bytes(S.rate, S.kept, S.hit, share(ages[1])), rel=NEAR)
    assert lower.alive / alive(ages[1]) == pytest.approx(part, rel=NEAR)


@pytest.mark.parametrize("age", [20.0, 60.0, 1e9])
def test_returns_by_chance(age: float) -> None:
    """Contexts that grow with every request: the default of `again`, by bytes."""
    found, used, left = growing(S, age, 1.0, LONG, 1)
    hit = used / S.returns
    default = min(1.0, S.returns * hit / left)
    assert found == pytest.approx(hit * default * share(age), rel=NEAR)


CURVE = ((20.0, 0.3), (80.0, 0.5), (400.0, 0.7))
TURNS = Turns(20.0, CURVE)


def of_curve(age: float) -> tuple[float, float]:
    """The share that returned, and its integral."""
    total, points = 0.0, ((0.0, 0.0), *CURVE, (1e12, CURVE[-1][1]))
    for (low, before), (high, after) in itertools.pairwise(points):
        end = min(age, high)
        there = before + (after - before) * (end - low) / (high - low)
        total += (end - low) * (before + there) / 2.0
        if age <= high:
            return there, total
    raise AssertionError


@pytest.mark.parametrize("age", [15.0, 60.0, 200.0])
def test_admission_remembers(age: float) -> None:
    """Exact where uses are remembered for longer than state is kept."""
    found, written, alive_ = admitted(TURNS, age, 300.0, LONG, 2)
    again, (there, summed_), known = 0.7, of_curve(age), of_curve(300.0)[0] / 0.7
    assert found == pytest.approx(20.0 * again * known * there, rel=2 * NEAR)
    admitted_ = retention.written_again_bytes(20.0, 1.0, known * 0.7, known * again * there)
    assert written == pytest.approx(admitted_, rel=2 * NEAR)
    size = retention.live_again_bytes(20.0, 1.0, known * 0.7, age, known * again * summed_)
    assert alive_ == pytest.approx(size, rel=2 * NEAR)


@pytest.mark.parametrize("places", [2, 4])
def test_random_routing_finds_no_less_than_said(places: int) -> None:
    """Also what was left by uses before the last may be there: up to so much more is found than the share says."""
    found, said = scattered(TURNS, places, 60.0, LONG, 3), 20.0 * of_curve(60.0)[0] / places
    assert found / said == pytest.approx({2: 1.23, 4: 1.36}[places], rel=NEAR)


def test_admission_that_forgets_before_state_goes() -> None:
    """Found, written and alive are more than said, since what is there needs no second use soon after the first."""
    counted, (there, summed_) = admitted(TURNS, 200.0, 60.0, LONG, 4), of_curve(200.0)
    known = of_curve(60.0)[0] / 0.7
    said = 20.0 * known * 0.7 * there, 20.0 * known * 0.7 * (1.0 - there), 20.0 * known * 0.7 * (200.0 - summed_)
    for one_, other in zip(counted, said, strict=True):
        assert one_ / other == pytest.approx(1.16, rel=2 * NEAR)
