"""Formulas of places, pages, routing and moving, by hand and under changed conditions."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.formulas import migration, pages, prefetch, recovery, routing, startup, tiers

# --- places for state ---------------------------------------------------------------------------------


def test_memory_after_weights_is_never_negative() -> None:
    assert tiers.memory_after_weights(80.0, 16.4) == pytest.approx(63.6)
    assert tiers.memory_after_weights(10.0, 16.4) == 0.0


def test_what_a_place_keeps_for_an_interval_it_needs_for_it() -> None:
    made = tiers.state_production(1.2e9, 0.8)  # 1.5 GB/s
    assert made == 1.5e9
    assert tiers.retention_seconds(tiers.share_of_card(2.4e12, 8), made) == 200.0
    assert tiers.retention_seconds(tiers.capacity_for_interval(made, 7.0), made) == 7.0
    assert tiers.retention_seconds(1.0, 0.0) == math.inf  # nothing new pushes the old out


def test_hops_are_crossed_one_after_the_other() -> None:
    assert tiers.path_seconds(1e9, [10e9, 25e9, 5e9], 0.01) == pytest.approx(0.1 + 0.04 + 0.2 + 0.01)
    assert tiers.path_seconds(1e9, []) == 0.0
    assert tiers.repeated_read_seconds(1e9, 10e9, 7) == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("write", "read", "recompute", "uses"),
    [(1.0, 1.0, 4.0, 1), (3.0, 1.0, 4.0, 2), (2.9, 1.0, 4.0, 1), (9.0, 3.0, 4.0, 10), (0.0, 1.0, 4.0, 1)],
)
def test_uses_to_pay_are_the_first_that_save_time(write: float, read: float, recompute: float, uses: float) -> None:
    assert tiers.uses_to_pay(write, read, recompute) == uses
    assert tiers.save_and_use_seconds(write, read, uses) < uses * recompute
    assert uses == 1 or tiers.save_and_use_seconds(write, read, uses - 1) >= (uses - 1) * recompute


def test_saving_never_pays_where_reading_takes_longer() -> None:
    assert tiers.uses_to_pay(1.0, 4.0, 4.0) == math.inf


@pytest.mark.parametrize("uses", [1, 2, 10])
def test_at_the_break_even_bandwidth_both_take_the_same(uses: int) -> None:
    once = 1.2e9 / tiers.break_even_bandwidth(1.2e9, 0.9, uses)
    assert tiers.save_and_use_seconds(once, once, uses) == pytest.approx(uses * 0.9)


def test_a_drive_rated_for_all_new_state_takes_it() -> None:
    allowed = tiers.sustained_write_rate(8.64e12, 3)  # 300 MB/s
    assert allowed == pytest.approx(300e6)
    assert tiers.writable_share(allowed, 600e6) == pytest.approx(0.5)
    assert tiers.writable_share(allowed, 100e6) == 1.0
    assert tiers.writable_share(allowed, 0.0) == 1.0
    assert tiers.drive_life(5.0, allowed, 600e6) == pytest.approx(2.5)
    assert tiers.drive_life(5.0, allowed, 0.0) == math.inf


# --- reading layer by layer ---------------------------------------------------------------------------

TIMES = st.floats(0.001, 10.0)


def simulated(reads: list[float], computes: list[float], early: int) -> float:
    """The same as events: a reader and a GPU, each doing one thing at a time; the GPU waits for the layer's state."""
    there = [0.0] * early
    clock = 0.0
    for read in reads[early:]:
        clock += read
        there.append(clock)
    clock = 0.0
    waiting = list(range(len(computes)))
    while waiting:
        layer = waiting.pop(0)
        if clock < there[layer]:
            clock = there[layer]  # idle until the event
        clock += computes[layer]
    return clock


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=12), st.integers(0, 12))
def test_the_recurrence_is_what_a_simulation_gives(layers: list[tuple[float, float]], early: int) -> None:
    reads, computes = [read for read, _ in layers], [compute for _, compute in layers]
    early = min(early, len(layers))
    assert prefetch.pipeline_seconds(reads, computes, early) == pytest.approx(simulated(reads, computes, early))


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 40), TIMES, TIMES, st.integers(0, 40))
def test_like_layers_have_a_closed_form(layers: int, read: float, compute: float, early: int) -> None:
    early = min(early, layers)
    exact = prefetch.pipeline_seconds([read] * layers, [compute] * layers, early)
    assert prefetch.layerwise_seconds(layers, read, compute, early) == pytest.approx(exact)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 40), TIMES, TIMES)
def test_layers_early_are_the_fewest_that_hide_all_reading(layers: int, read: float, compute: float) -> None:
    early = int(prefetch.layers_early(layers, read, compute))
    hidden = layers * compute * (1 + 1e-6)
    assert prefetch.layerwise_seconds(layers, read, compute, early) <= hidden
    fewer = prefetch.layerwise_seconds(layers, read, compute, early - 1)
    assert early == 0 or fewer > layers * compute * (1 - 1e-6)


def test_the_first_layer_is_needed_even_where_the_buffer_formula_asks_for_nothing() -> None:
    # 36 layers, 2 ms of reading under 3 ms of computing each
    assert prefetch.buffer_bytes(25e9, 36 * 2e-3, 36 * 3e-3) == 0.0
    assert prefetch.layers_early(36, 2e-3, 3e-3) == 1
    assert prefetch.layerwise_seconds(36, 2e-3, 3e-3) == pytest.approx(2e-3 + 36 * 3e-3)
    assert prefetch.layerwise_seconds(36, 2e-3, 3e-3, early=1) == pytest.approx(36 * 3e-3)


def test_reading_at_no_cost_or_computing_at_none() -> None:
    assert prefetch.layers_early(36, 0.0, 1.0) == 0
    assert prefetch.layers_early(36, 1.0, 0.0) == 36
    assert prefetch.buffer_bytes(10.0, 5.0, 3.0) == 20.0
    assert prefetch.buffer_layers(20.0, 7.0) == 3
    assert prefetch.layer_bytes(72.0, 36, 3) == 6.0
    assert prefetch.read_then_compute_seconds(5.0, 3.0) == 8.0


# --- pages --------------------------------------------------------------------------------------------


def test_a_page_that_is_not_full_is_not_used() -> None:
    assert pages.whole_pages(1023, 32) == 31
    page = pages.page_bytes(100.0, 32)
    assert (page, pages.segment_bytes(page, pages.page_segments(4))) == (3200.0, 400.0)
    assert pages.unused_bytes(32, 31, page) == 3200.0


def test_patience_of_one_recompute_costs_at_most_twice_the_better_choice() -> None:
    for arrives in (0.0, 0.5, 0.99, 1.0, 1.01, 60.0, math.inf):
        assert pages.patient_seconds(arrives, 1.0, 1.0) <= 2.0 * min(arrives, 1.0) + (arrives == 0.0)
    assert pages.patient_seconds(math.inf, 1.0, 0.856) == pytest.approx(1.856)


# --- routing ------------------------------------------------------------------------------------------


def test_fetching_while_waiting_saves_the_shorter_of_both() -> None:
    for queue, ready in ((80.0, 60.0), (20.0, 60.0), (0.0, 5.0)):
        serial = routing.first_token_serial(queue, ready, 10.0)
        assert serial - routing.first_token_overlapped(queue, ready, 10.0) == routing.overlap_saving(queue, ready)


def test_a_budget_that_is_spent_needs_an_infinite_bandwidth() -> None:
    assert routing.read_budget(250.0, 30.0, 58.0) == 162.0
    assert routing.crossover_bandwidth(324.0, 162.0) == 2.0
    assert routing.crossover_bandwidth(324.0, 0.0) == math.inf
    assert routing.preparation_seconds([1.5, 2.5]) == 4.0


def test_the_quantile_of_two_points_is_the_inverse_of_their_distribution() -> None:
    assert routing.two_point_quantile(1.0, 9.0, 0.99, 0.99) == 1.0  # p = q is enough
    assert routing.two_point_quantile(1.0, 9.0, 0.9899, 0.99) == 9.0
    assert routing.two_point_quantile(9.0, 1.0, 0.5, 0.6) == 9.0  # a hit may be the slower one
    assert routing.two_point_mean(1.0, 9.0, 0.75) == 3.0


def test_probabilities_that_are_not_needed_or_not_enough() -> None:
    assert routing.hit_probability_for_mean(3.0, 1.0, 9.0) == 0.75
    assert routing.hit_probability_for_mean(9.5, 1.0, 9.0) == 0.0
    assert routing.hit_probability_for_mean(0.5, 1.0, 9.0) == math.inf
    assert routing.hit_probability_for_quantile(2.0, 1.0, 9.0, 0.95) == 0.95
    assert routing.hit_probability_for_quantile(9.5, 1.0, 9.0, 0.95) == 0.0
    assert routing.hit_probability_for_quantile(0.5, 1.0, 9.0, 0.95) == math.inf


# --- moving, starting, recovering ---------------------------------------------------------------------


def test_a_copy_as_slow_as_the_growth_never_has_all() -> None:
    assert migration.state_growth(1000.0, 2e5) == 2e8
    assert migration.catch_up_seconds(40e9, 2e8, 2e8) == math.inf
    assert migration.catch_up_rate(2e8, 2e8) == 0.0
    assert migration.catch_up_seconds(0.0, 1.0, 2.0) == 0.0
    seconds = migration.catch_up_seconds(40e9, 4.2e9, 2e8)
    assert seconds == pytest.approx(10.0)
    assert migration.grown_bytes(2e8, seconds) == pytest.approx(2e9)


def test_rounds_of_copying_shrink_by_the_same_factor() -> None:
    # 40 GB, a tenth of the bandwidth grows: 40, 4, 0.4, 0.04 GB missing after 0, 1, 2, 3 rounds
    for left, rounds in ((50e9, 0), (4e9, 1), (3.9e9, 2), (0.4e9, 2), (0.04e9, 3)):
        assert migration.copy_rounds(40e9, 10e9, 1e9, left) == rounds
    assert migration.copy_rounds(40e9, 10e9, 0.0, 0.0) == 1
    assert migration.copy_rounds(40e9, 1e9, 1e9, 1.0) == math.inf
    assert migration.copy_rounds(40e9, 10e9, 1e9, 0.0) == math.inf
    assert sum(40e9 * 0.1**k / 10e9 for k in range(60)) == pytest.approx(migration.catch_up_seconds(40e9, 10e9, 1e9))


def test_a_faster_link_cannot_shorten_serial_steps() -> None:
    payload = 16_449_642_496.0  # from four cards to eight, section 9.6.2
    assert migration.switch_seconds(payload, 6.25e9, 9.0) == pytest.approx(11.6, abs=0.05)
    assert migration.switch_seconds(payload, 25e9, 9.0) == pytest.approx(9.7, abs=0.05)
    assert migration.switch_seconds(payload, math.inf, 9.0) == 9.0


def test_capture_pays_from_the_step_after_the_even_one() -> None:
    steps = startup.capture_payback(0.2e-3, 10.0)
    assert steps == 50_001  # section 9.6.1
    assert startup.capture_benefit(steps - 1, 0.2e-3, 10.0) == pytest.approx(0.0)
    assert startup.capture_benefit(steps, 0.2e-3, 10.0) > 0
    assert startup.capture_payback(0.3e-3, 10.0) == 33_334
    assert startup.capture_payback(0.0, 10.0) == math.inf
    assert startup.units_for_rate(4.2, 1.4) == 3  # not 4 through rounding
    assert startup.units_for_rate(4.3, 1.4) == 4


def test_only_what_is_not_saved_is_replayed() -> None:
    assert recovery.replayed_tokens(8192, 1025, 8192) == 1024  # section 9.6.3
    assert recovery.replayed_tokens(8192, 1025, 9216) == 0
    assert recovery.replayed_tokens(8192, 1025, 0) == 9216
    assert recovery.replayed_tokens(8192, 1, 8192) == 0  # one output has no state to rebuild
    assert recovery.recovery_seconds(5.0, 60.0, 0.125) == 65.125
