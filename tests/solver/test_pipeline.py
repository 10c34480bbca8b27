"""Micro-batches: the recurrence by hand, against the closed form, and where contention takes the gain away."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.formulas import pipeline as formulas
from solver.pipeline import contention_limit, finished, split, token_seconds, total

some = settings(max_examples=80, deadline=None, derandomize=True, database=None)
SECTION_9_4_3 = (0.33554432, 0.1562753412734991, 0.33554432)  # ms of dispatch, experts, combine
times = st.floats(0.01, 100.0)


def test_uneven_micro_batches() -> None:
    # first: 1, 3, 4; second waits for the second stage: 3, 4, 5; third: 4, 7, 8
    assert finished([[1, 2, 1], [2, 1, 1], [1, 3, 1]]) == [[1, 3, 4], [3, 4, 5], [4, 7, 8]]


def test_a_late_micro_batch_starts_late() -> None:
    assert finished([[1, 1], [1, 1]], ready=[0, 5]) == [[1, 2], [6, 7]]


def test_eight_micro_batches_of_unequal_stages() -> None:
    # 4 + 1.5 + 2 + 7 x 4 = 35.5 ms; in turn 60
    assert total([[4, 1.5, 2]] * 8) == 35.5 == formulas.pipelined_seconds([4, 1.5, 2], 8)
    assert formulas.pipeline_saving([4, 1.5, 2], 8) == 24.5


@given(st.lists(times, min_size=1, max_size=4), st.integers(1, 8))
@some
def test_equal_micro_batches_follow_the_closed_form(stages: list[float], batches: int) -> None:
    assert total([stages] * batches) == pytest.approx(formulas.pipelined_seconds(stages, batches))


@given(st.lists(st.tuples(times, times, times), min_size=1, max_size=5))
@some
def test_between_the_busiest_stage_and_one_at_a_time(batches: list[tuple[float, float, float]]) -> None:
    taken = total(batches)
    assert max(sum(stage) for stage in zip(*batches, strict=True)) <= taken * (1 + 1e-12)
    assert max(sum(batch) for batch in batches) <= taken * (1 + 1e-12)
    assert taken <= sum(map(sum, batches)) * (1 + 1e-12)


def test_exchanges_may_slow_down_by_49_percent() -> None:
    # halves of 0.1678, 0.0781, 0.1678: 0.0781 + 3 x 0.1678 f = 0.8274 at f = 1.4886
    limit = contention_limit(SECTION_9_4_3, 2, [0, 2])
    assert limit == pytest.approx(1.488579, rel=1e-6)
    slowed = total(split(SECTION_9_4_3, 2, [limit, 1.0, limit]))
    assert slowed == pytest.approx(sum(SECTION_9_4_3))  # 0.827 ms again


def test_experts_may_take_three_times_as_long() -> None:
    # 0.3355 + 2 x 0.0781 f = 0.8274 at f = 3.1471: they are the longest stage by then
    limit = contention_limit(SECTION_9_4_3, 2, [1])
    assert limit == pytest.approx(3.147135, rel=1e-6)
    assert total(split(SECTION_9_4_3, 2, [1.0, limit, 1.0])) == pytest.approx(sum(SECTION_9_4_3))


def test_more_micro_batches_bear_more_contention() -> None:
    # quarters: 0.0391 + 5 x 0.0839 f = 0.8274 at f = 1.8794
    assert contention_limit(SECTION_9_4_3, 4, [0, 2]) == pytest.approx(1.879442, rel=1e-6)


@given(st.lists(times, min_size=2, max_size=4), st.integers(2, 6), st.lists(st.integers(0, 3), unique=True, min_size=1))
@some
def test_at_the_limit_nothing_is_gained(stages: list[float], batches: int, named: list[int]) -> None:
    slowed = [stage for stage in named if stage < len(stages)] or [0]
    limit = contention_limit(stages, batches, slowed)
    factors = [limit if stage in slowed else 1.0 for stage in range(len(stages))]
    assert total(split(stages, batches, factors)) == pytest.approx(sum(stages))


def test_tokens_wait_for_their_own_experts_or_for_all() -> None:
    paths = [[0.5, 1.4], [0.3, 0.6]]
    assert token_seconds(paths, merge=0.1) == pytest.approx([1.5, 0.7])
    assert token_seconds(paths, merge=0.1, barrier=True) == pytest.approx([1.5, 1.5])
