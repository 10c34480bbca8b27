"""Formulas that no golden value covers, by hand; and the formulas at their edges."""

import math

import pytest

from solver.formulas import cost, drain, handoff, memory, parameters, stages, state, work


def test_pooled_payload_counts_every_trip() -> None:
    assert handoff.pooled_payload(1.125) == 2.25  # write and read, section 9.7.1
    assert handoff.pooled_payload(1.125, reuses=1) == 3.375  # section 9.7.3


def test_pooled_state_stays_for_its_write_and_its_read() -> None:
    assert handoff.pooled_residence_seconds(0.05, 0.04) == pytest.approx(0.09)


@pytest.mark.parametrize(("usable", "batch"), [(80e9, 45), (96e9, 57), (16e9, 0), (17.6e9 + 1.36e9, 1)])
def test_largest_batch_of_the_base_workload(usable: float, batch: int) -> None:
    # weights 16.38 GB, a receive buffer of 1.208 GB, 1.359 GB a finished request (section 9.7.2)
    assert memory.largest_batch(usable, 16_381_470_720, 9216 * 147_456, 8192 * 147_456) == batch


@pytest.mark.parametrize(("seconds", "per_token"), [(1.77924, 55.6e-3), (2.08583, 65.2e-3)])
def test_time_per_token_of_full_chunked_units(seconds: float, per_token: float) -> None:
    assert stages.residence_tpot(32, seconds, 1024) == pytest.approx(per_token, abs=5e-5)


def test_step_at_load_is_littles_law() -> None:
    # 3.5 requests/s on four H20: 0.875 each, 7.391 ms of weights, 0.6268 ms a request: 15.1 in flight at 16.9 ms
    fixed, one, rate, calls = 7.3909e-3, 0.62677e-3, 0.875, 1024
    step = stages.step_seconds_at_load(fixed, rate * calls * one, fixed + one, fixed + 32 * one)
    assert step == pytest.approx(16.86e-3, rel=1e-3)
    assert fixed + rate * calls * step * one == pytest.approx(step)
    assert stages.step_seconds_at_load(fixed, 0.0, fixed + one, fixed + 32 * one) == fixed + one
    assert stages.step_seconds_at_load(fixed, 2.0, fixed + one, fixed + 32 * one) == fixed + 32 * one


def test_piggyback_without_idle_compute_takes_for_ever() -> None:
    assert stages.piggyback_tokens(2.0, 1.0, 1e9, 1e12) == 0.0
    assert stages.chunks(8192, 0.0) == math.inf


def test_one_output_token_needs_no_decode() -> None:
    assert state.decode_calls(1) == 0
    assert state.covered_tokens(8192, 1) == 8192


def test_tied_embeddings_are_kept_once() -> None:
    untied = parameters.resident_weight_bytes(10, 3, 1, 2, 2, tied=False)
    assert untied - parameters.resident_weight_bytes(10, 3, 1, 2, 2, tied=True) == 6


def test_fp8_layers_keep_head_and_norms_in_bf16() -> None:
    assert parameters.read_weight_bytes(10, 3, 1, 1, 2) == 10 + 2 * 4


def test_cached_tokens_cost_attention_only() -> None:
    full = work.prefill_flops(2048, 6144, 36, 4096, 6_945_767_424, 622_329_856)
    alone = work.prefill_flops(2048, 0, 36, 4096, 6_945_767_424, 622_329_856)
    assert full - alone == pytest.approx(4 * 36 * 4096 * 2048 * 6144)


@pytest.mark.parametrize(
    ("arrival", "service", "startup", "second"),
    [
        (3.5, 3.5, 10, math.inf),
        (3.5, 3.0, 10, math.inf),
        (3.5, 7.0, 10, 20.0),
        (3.5, 3.5, 0, 0.0),
        (3.5, 3.0, 0, math.inf),
    ],
)
def test_drained_at(arrival: float, service: float, startup: float, second: float) -> None:
    assert drain.drained_at(arrival, service, startup) == second


def test_a_deadline_before_startup_needs_an_infinite_rate() -> None:
    assert drain.required_rate(3.5, 60, 60) == math.inf


def test_nothing_that_qualifies_has_no_price() -> None:
    assert cost.cost_per_request(8.0, 0.0) == math.inf
