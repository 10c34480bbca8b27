"""Units: what fits, which batch, what a request takes; latencies of units at load and full."""

from typing import Any

import pytest

from solver import latency, physics, units
from solver.candidate import Candidate
from solver.data import gather
from solver.solve import Options, solve
from solver.verify import verify
from tests.instances import document, eight, from_document


def candidates(*changes: str) -> dict[str, Candidate]:
    return {candidate.name: candidate for candidate in gather(eight(*changes)).candidates}


def test_what_does_not_fit_is_not_made_and_the_reason_kept() -> None:
    data = gather(eight("workloads.reasoning.output=4097", "hardware.groups.a100.usable_memory=0.92"))
    assert "decode@a100" not in {candidate.name for candidate in data.candidates}
    reasons = {(r.stage, r.group): r.reason for r in data.rejected}
    # 12288 tokens a request: 57.98 GB of state, 16.38 of weights and a buffer of 1.21 in 73.6 GB
    assert reasons["decode", "a100"] == "weights take 15.3 and batch 32 takes 55.1 of 68.5 GiB; at most batch 30 fits"


def test_a_model_larger_than_the_card_is_said() -> None:
    instance = eight("models.qwen3-8b={catalog: Llama-3.1-70B, tp: 1, pp: 1}")
    reasons = {r.reason for r in gather(instance).rejected}
    assert reasons == {
        "weights take 131.4 of 74.5 GiB; TP2 would, on 2 such GPUs",
        "weights take 131.4 of 89.4 GiB; TP2 would, on 2 such GPUs",
    }
    plan = solve(instance)
    assert plan.status == "infeasible"
    assert plan.conflicts[0].limits[0].startswith("memory[a100]: reasoning: weights take 131.4 of 74.5 GiB")


def test_memory_is_checked_with_the_longest_request() -> None:
    short = candidates()["decode@a100"]
    long = candidates("workloads.reasoning.longest={input: 10000, output: 1025}")["decode@a100"]
    assert long.demand == short.demand
    assert long.memory is not None
    assert short.memory is not None
    assert long.memory.kv - short.memory.kv == 32 * (10000 - 8192) * 147_456


def test_one_output_token_has_neither_decode_nor_handoff() -> None:
    instance = eight("workloads.reasoning.output=1", "schemes.allow=[pd-direct]")
    data = gather(instance)
    assert {c.stage for c in data.candidates if c.kind.stage != "both"} == {"prefill"}
    assert data.routes == ()
    plan = solve(instance, Options(plan_only=True))
    assert {pool.stage for pool in plan.pools} == {"prefill"}
    assert plan.workloads["reasoning"].tpot_s.at_load is None
    assert plan.handoffs == []


def test_a_chosen_batch_without_a_target_is_the_largest() -> None:
    data = document()
    del data["workloads"]["reasoning"]["batch"]
    made = [c for c in gather(from_document(data)).candidates if c.stage == "decode" and c.group == "h20"]
    assert [c.batches["reasoning"] for c in made] == [57]


def test_prefix_hits_shorten_prefill_and_nothing_else() -> None:
    hit, miss = candidates("workloads.reasoning.cached=6144"), candidates()
    assert hit["prefill@a100"].demand["reasoning"][0] == pytest.approx(0.2379, abs=5e-5)
    assert hit["decode@h20"].demand == miss["decode@h20"].demand
    assert [r.payload for r in gather(eight("workloads.reasoning.cached=6144")).routes] == [
        r.payload for r in gather(eight()).routes
    ]


def test_fp8_halves_layer_weights_and_uses_the_fp8_peak_where_there_is_one() -> None:
    llm = eight("models.qwen3-8b.weights=fp8").models["qwen3-8b"]
    shape = physics.shape_of(llm)
    assert shape.resident == 6_945_767_424 + 2 * (2 * 622_329_856 + 308_224)
    instance = eight("models.qwen3-8b.weights=fp8")
    h20 = units.device(instance, "h20", shape)
    a100 = units.device(instance, "a100", shape)
    assert (h20.matrix_flops, h20.bf16_flops) == (148e12, 74e12)
    assert (a100.matrix_flops, a100.bf16_flops) == (156e12, 156e12)  # no FP8 units: weights are widened


def latency_of(kind: units.Kind, group: str, rate: float | None) -> latency.Latency:
    """At ``rate`` requests/s a unit, or full."""
    instance = eight()
    workloads = dict(instance.workloads)
    shape = physics.shape_of(instance.models["qwen3-8b"])
    gpu = units.device(instance, group, shape)
    batches = {"reasoning": 32}
    if rate is None:
        need = max(units.demand(kind, shape, gpu, workloads["reasoning"], 32))
        return latency.full(kind, shape, gpu, workloads["reasoning"], 32, need)
    return latency.at(kind, shape, gpu, workloads, batches, {"reasoning": rate}, "reasoning")


@pytest.mark.parametrize(
    ("kind", "group", "first", "token"),
    [
        (units.DECODE, "h20", None, 27.447e-3),
        (units.DECODE, "a100", None, 55.137e-3),
        (units.CHUNKED, "a100", 0.93733, 55.601e-3),
        (units.CHUNKED, "h20", 2.6624, 65.182e-3),
        (units.REPLICA, "a100", 0.85637, 81.899e-3),
        (units.PREFILL, "a100", 0.85637, None),
    ],
)
def test_latency_of_full_units(kind: units.Kind, group: str, first: Any, token: Any) -> None:
    found = latency_of(kind, group, None)
    assert found.first_token == (None if first is None else pytest.approx(first, rel=1e-4))
    assert found.per_token == (None if token is None else pytest.approx(token, rel=1e-4))


@pytest.mark.parametrize("kind", [units.DECODE, units.CHUNKED, units.REPLICA])
@pytest.mark.parametrize("group", ["a100", "h20"])
def test_latency_grows_with_load_up_to_that_of_a_full_unit(kind: units.Kind, group: str) -> None:
    full = latency_of(kind, group, None).per_token
    assert full is not None
    times = [latency_of(kind, group, share / full * 32 / 1024).per_token or 0.0 for share in (0.01, 0.3, 0.6, 0.9)]
    assert times == sorted(times)
    assert times[-1] <= full * (1 + 1e-9)


@pytest.mark.parametrize("change", ["allow=[h20]", "deny=[a100]"])
def test_groups_may_be_allowed_or_denied(change: str) -> None:
    instance = eight(f"workloads.reasoning.{change}", "workloads.reasoning.rate=1/s")
    assert {c.group for c in gather(instance).candidates} == {"h20"}
    plan = solve(instance)
    assert {pool.group for pool in plan.pools} == {"h20"}
    assert plan.throughput == pytest.approx(4 / 2.08583, rel=1e-5)  # chunked on four H20


def test_a_plan_that_uses_a_denied_group_does_not_verify() -> None:
    free, bound = eight(), eight("workloads.reasoning.deny=[h20]")
    found = verify(solve(free, Options(plan_only=True)), bound)
    assert any("may not use h20" in text for text in found)
