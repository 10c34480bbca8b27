"""Context state by length: by hand, token by token and layer by layer, and against models with full attention alone.

Gemma 3 27B: a token takes 2 x 16 heads x 128 x 2 B = 8192 B in a layer; 10 of 62 layers see all, 52 the last 1024.
gpt-oss 120B: 2 x 8 x 64 x 2 B = 2048 B, 18 of 36 layers slide over 128. Qwen3-Next: 12 of 48 layers keep 2 x 2 x 256 x
2 B = 2048 B a token; 36 keep 2 B x (32 x 128 x 128 elements, and 3 inputs of a convolution over 2 x 2048 + 4096) =
1 097 728 B whatever the length.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import files
from models.instance import Instance
from models.llm import Llm
from models.load import build
from models.resolve import resolve
from models.workload import LengthClass, Workload
from solver import physics, units
from solver.attention import Tokens
from solver.formulas import parameters, state, work
from solver.separation import handoffs
from solver.solve import Options, solve
from solver.verify import verify

some = settings(max_examples=150, deadline=None, derandomize=True, database=None)
COUNTS = st.integers(1, 400)
PLAIN: dict[str, Any] = {
    **{"num_hidden_layers": 13, "hidden_size": 1024, "num_attention_heads": 8, "num_key_value_heads": 2},
    **{"head_dim": 128, "intermediate_size": 4096, "vocab_size": 32000, "weights": "bf16", "kv": "bf16"},
}
LINEAR = {
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 8,
    "linear_key_head_dim": 64,
    "linear_value_head_dim": 32,
}
LINEAR["linear_conv_kernel_dim"] = 4
CARD = physics.Device(80e9, 400e12, 400e12, 2e12)


def model(name: str, **changes: Any) -> Llm:
    resolved, problems = resolve({"models": {"m": {"catalog": name, **changes}}})
    assert not problems
    return Llm.model_validate(resolved["models"]["m"])


def own(**changes: Any) -> physics.Shape:
    return physics.shape_of(Llm.model_validate({**PLAIN, **changes}))


GEMMA = physics.shape_of(model("gemma-3-27b-it"))
GPT_OSS = physics.shape_of(model("gpt-oss-120b"))
QWEN_NEXT = physics.shape_of(model("Qwen3-Next-80B-A3B-Instruct"))


# --- formulas -----------------------------------------------------------------------------------------


@given(COUNTS, st.integers(0, 400), COUNTS)
@some
def test_pairs_and_contexts_token_by_token(new: int, cached: int, window: int) -> None:
    assert work.windowed_pairs(new, cached, window) == sum(min(cached + i, window) for i in range(1, new + 1))
    calls = [min(cached + t + 1, window) for t in range(new)]
    assert state.windowed_context(cached, new, window) + 1 == pytest.approx(sum(calls) / new, rel=1e-12)


@given(COUNTS, COUNTS)
@some
def test_a_window_as_long_as_the_request_hides_nothing(tokens: int, output: int) -> None:
    window = tokens + output
    assert work.windowed_pairs(tokens, output, window) == work.causal_pairs(tokens, output)
    found = state.windowed_context(tokens, output, window)
    assert found == pytest.approx(state.mean_context(tokens, output), rel=1e-12)
    assert state.windowed_tokens(state.covered_tokens(tokens, output), window) == tokens + output - 1


def test_pairs_by_hand() -> None:
    # 500 tokens are cached: 524 queries see all, 524 x 500 + 524 x 525 / 2; the other 2476 see 1024 each
    assert work.windowed_pairs(3000, 500, 1024) == 399_550 + 2_535_424
    assert work.windowed_pairs(3000, 2000, 1024) == 3000 * 1024


# --- models of the catalog -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "billions"), [(GEMMA, 27.01), (GPT_OSS, 116.8), (QWEN_NEXT, 79.67)], ids=["gemma", "gpt-oss", "qwen"]
)
def test_parameters_are_those_that_are_published(shape: physics.Shape, billions: float) -> None:
    whole = replace(shape, element_bytes=2.0)
    assert whole.resident / 2e9 == pytest.approx(billions, rel=1e-3)


def test_states_by_hand() -> None:
    assert GEMMA.kept.at(1000) == 62 * 8192 * 1000
    assert GEMMA.kept.at(32_768) == 10 * 8192 * 32_768 + 52 * 8192 * 1024 == 3_120_562_176
    assert GPT_OSS.kept.at(8192) == 18 * 2048 * (8192 + 128) == 306_708_480
    assert QWEN_NEXT.kept.at(1) == 36 * 1_097_728 + 12 * 2048
    assert QWEN_NEXT.kept.at(8192) == 39_518_208 + 24_576 * 8192


def test_what_a_decode_step_reads_by_hand() -> None:
    # contexts of 257 outputs behind 4096 tokens: 4224 on average, and the token itself
    shares = GEMMA.kv.layers.shares()
    context = GEMMA.kv.layers.context(4096, 257)
    assert context == Tokens(4224, 1023)
    assert GEMMA.kv.read(2, context, shares, 1) == pytest.approx(2 * 8192 * (10 * 4225 + 52 * 1024), rel=1e-12)
    pair = 4 * 32 * 128  # FLOPs of a pair in a layer
    assert GEMMA.decode_flops(context, shares) == pytest.approx(pair * (10 * 4225 + 52 * 1024), rel=1e-12)
    # a state of constant size is read and written, and worked on with 6 FLOPs an element
    shares, context = QWEN_NEXT.kv.layers.shares(), QWEN_NEXT.kv.layers.context(1000, 1)
    assert QWEN_NEXT.kv.read(1, context, shares, 1) == pytest.approx(24_576 * 1001 + 2 * 39_518_208, rel=1e-12)
    flops = 4 * 12 * 16 * 256 * 1001 + 6 * 36 * 32 * 128 * 128
    assert QWEN_NEXT.decode_flops(context, shares) == pytest.approx(flops, rel=1e-12)


def test_prefill_by_hand() -> None:
    found = GEMMA.prefill_flops(3000, 500, GEMMA.kv.layers.shares())
    full = 3000 * 500 + 3000 * 3001 / 2
    assert found == pytest.approx(4 * 32 * 128 * (10 * full + 52 * 2_934_974), rel=1e-12)
    found = QWEN_NEXT.prefill_flops(3000, 500, QWEN_NEXT.kv.layers.shares())
    assert found == pytest.approx(4 * 12 * 16 * 256 * full + 6 * 36 * 32 * 128 * 128 * 3000, rel=1e-12)


def test_matrices_of_linear_layers_by_hand() -> None:
    # 2048 x (2 x 2048 + 2 x 4096 + 2 x 32) + 4096 x 2048; full layers have a gate as wide as the queries
    assert parameters.linear_attention_parameters(2048, 16, 32, 128, 128) == 25_296_896 + 8_388_608
    full = 2048 * (3 * 4096 + 2 * 512)
    assert QWEN_NEXT.attention_params == 12 * full + 36 * 33_685_504
    stated = own(full_attention_interval=4, recurrent_state="1 MB")
    assert stated.attention_params == own().attention_params  # widths are not known: as those of the others
    assert stated.kept.constant == 10e6  # layers 4, 8 and 12 of 13 see all
    assert own(full_attention_interval=4, **LINEAR, recurrent_state="1 MB").kept.constant == 10e6


# --- GPUs and stages -------------------------------------------------------------------------------------


def test_heads_are_cut_as_ever_and_constant_states_evenly() -> None:
    card = replace(CARD, tp=4)
    tokens = QWEN_NEXT.kept.layers.kept(1000)
    assert physics.state_on_card(QWEN_NEXT, card, tokens) == 12 * 1024 * 1000 + 39_518_208 / 4  # 2 heads on 4 GPUs
    tokens = GEMMA.kept.layers.kept(5000)
    assert physics.state_on_card(GEMMA, card, tokens) == (10 * 5000 + 52 * 1024) * 8192 / 4


KINDS = st.lists(st.sampled_from(["full_attention", "sliding_attention", "linear_attention"]), min_size=13, max_size=13)


def keys_of(kinds: list[str], window: int) -> dict[str, Any]:
    linear = LINEAR if "linear_attention" in kinds else {}
    return {"layer_types": kinds, "sliding_window": window, **linear}


@given(KINDS, st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 13), st.sampled_from([1, 2, 4]))
@some
def test_the_fullest_stage_layer_by_layer(kinds: list[str], window: int, tokens: int, pp: int, tp: int) -> None:
    shape = own(**keys_of(kinds, window))
    constant = 2 * (8 * 64 * 32 + (2 * 4 * 64 + 8 * 32) * 3) / tp
    each = 2 * max(1, 2 // tp) * 128 * 2
    layer: dict[str, float] = {"full_attention": each * tokens, "sliding_attention": each * min(tokens, window)}
    layer["linear_attention"] = constant
    starts = [sum(13 // pp + (i < 13 % pp) for i in range(stage)) for stage in range(pp + 1)]
    most = max(sum(layer[kind] for kind in kinds[starts[i] : starts[i + 1]]) for i in range(pp))
    found = physics.state_on_card(shape, replace(CARD, tp=tp, pp=pp), shape.kept.layers.kept(tokens))
    assert found == pytest.approx(most, rel=1e-12)


def test_stages_with_more_full_layers_hold_more() -> None:
    # layers 16 to 31 of 62 have three of full attention (17, 23 and 29), 0 to 15 only two
    card = replace(CARD, pp=4)
    found = physics.state_on_card(GEMMA, card, GEMMA.kept.layers.kept(20_000))
    assert found == pytest.approx(8192 * (3 * 20_000 + 13 * 1024), rel=1e-12)


# --- requests ---------------------------------------------------------------------------------------------

LENGTHS = st.tuples(st.integers(1, 5000), st.integers(1, 600), st.floats(0.0, 0.9))


def workload(lengths: list[tuple[int, int, float]]) -> Workload:
    share = 1.0 / len(lengths)
    made = [
        {"share": share, "input": size, "output": output, "cached": int(size * cached)}
        for size, output, cached in lengths
    ]
    return Workload.model_validate({"model": "m", "rate": "1/s", "lengths": made})


def near(one: units.Costs, other: units.Costs, rel: float) -> None:
    for key in ("prefill_seconds", "first_token", "calls", "held", "longest_compute"):
        assert getattr(one, key) == pytest.approx(getattr(other, key), rel=rel)
    for key in ("fixed", "memory", "compute", "beside", "beside_each"):
        assert getattr(one.step, key) == pytest.approx(getattr(other.step, key), rel=rel)


@given(st.lists(LENGTHS, min_size=1, max_size=3), st.integers(1, 5), st.sampled_from([1, 2]))
@some
def test_windows_longer_than_requests_change_nothing(lengths: list[tuple[int, int, float]], pp: int, tp: int) -> None:
    asked, card = workload(lengths), replace(CARD, tp=tp, pp=pp)
    window = max(size + output for size, output, _ in lengths)
    plain = own()
    near(units.costs(own(sliding_window=window), card, asked), units.costs(plain, card, asked), 1e-9)
    for shape in (own(sliding_window=10, sliding_window_pattern=1), own(**keys_of(["full_attention"] * 13, 10))):
        assert shape == plain  # no layer slides


@given(st.lists(LENGTHS, min_size=1, max_size=3), st.integers(1, 6000))
@some
def test_a_shorter_window_never_costs_more(lengths: list[tuple[int, int, float]], window: int) -> None:
    asked = workload(lengths)
    one, other = (
        units.costs(own(sliding_window=w, sliding_window_pattern=4), CARD, asked) for w in (window, window + 300)
    )
    assert one.held <= other.held
    assert one.prefill.compute <= other.prefill.compute
    assert one.step.memory <= other.step.memory
    assert one.step.compute <= other.step.compute


def test_means_over_lengths_are_of_states_not_of_lengths() -> None:
    # half of the requests keep 100 tokens, half 2000: a window of 1000 keeps 100 and 1000, not the 1050 of their mean
    shape = own(sliding_window=1000)
    asked = workload([(99, 2, 0.0), (1999, 2, 0.0)])
    assert physics.held_state(shape, CARD, asked) == pytest.approx(13 * 1024 * (100 + 1000) / 2, rel=1e-12)
    assert physics.handoff_payload(shape, asked) == pytest.approx(13 * 1024 * (99 + 1000) / 2, rel=1e-12)
    assert physics.longest_payload(shape, asked) == 13 * 1024 * 1000
    assert physics.input_state(shape, CARD, asked) == 13 * 1024 * 1000
    assert physics.largest_state(shape, CARD, asked) == 13 * 1024 * 1000


def test_a_state_of_another_model_keeps_its_own_window() -> None:
    short = {**PLAIN, "num_hidden_layers": 4, "sliding_window": 100, "sliding_window_pattern": 2}
    shape = own(handoff_state=short)
    assert shape.kept.at(1000) == 1024 * 2 * (1000 + 100)
    assert shape.kv.at(1000) == 1024 * 13 * 1000
    card = replace(CARD, pp=13)
    assert physics.state_on_card(shape, card, shape.kept.layers.kept(1000)) == pytest.approx(2_252_800 / 13, rel=1e-12)
    one = LengthClass(1.0, 1000, 2, 0)
    plain = physics.class_decode(own(), card, one)
    assert physics.class_decode(shape, card, one).memory == pytest.approx(plain.memory, rel=1e-12)


def test_one_handoff_of_a_windowed_state() -> None:
    there = handoffs(model("gemma-3-27b-it"), 25e9, 0.0)
    assert there.pd_seconds(32_768, 2) == pytest.approx(3_120_562_176 / 25e9, rel=1e-12)


# --- plans ------------------------------------------------------------------------------------------------


def instance(llm: Any, schemes: list[str], **group: Any) -> Instance:
    data = {
        "schema": 1,
        "name": "kinds",
        "hardware": {
            "groups": {
                name: {"accelerator": "H200-SXM-141GB", "servers": 1, "per_server": 8, "price": "3/h", **group}
                for name in ("a", "b")
            },
            "links": {"l": {"connects": ["a", "b"], "bandwidth": "50 GB/s"}},
            "stores": {"s": {"on": "l", "capacity": "1 TB"}},
        },
        "models": {"m": llm},
        "workloads": {"w": {"model": "m", "rate": "2/s", "input": 16_000, "output": 500}},
        "schemes": {"allow": schemes},
        "objective": "throughput",
    }
    return build(files.parse(files.dump(data)))


@pytest.mark.parametrize("scheme", ["pd-direct", "pd-pooled", "chunked", "replicas"])
@pytest.mark.parametrize("name", ["gemma-3-27b-it", "Qwen3-Next-80B-A3B-Instruct"])
def test_plans_are_verified(name: str, scheme: str) -> None:
    made = instance({"catalog": name}, [scheme], tp=[2], pp=[1, 2])
    plan = solve(made, Options(plan_only=True))
    assert plan.status == "optimal"
    assert verify(plan, made) == []
    for handoff in plan.handoffs:
        assert handoff.bytes_per_request == physics.shape_of(made.models["m"]).kept.at(16_000)


def test_experts_spread_over_a_unit_with_sliding_layers() -> None:
    made = instance({"catalog": "gpt-oss-120b", "tp": 1}, ["replicas"], ep=[4], dp=[4])
    plan = solve(made, Options(plan_only=True))
    assert plan.status == "optimal"
    assert verify(plan, made) == []
    assert {(pool.parallelism.dp, pool.parallelism.ep) for pool in plan.pools} == {(4, 4)}
    window = solve(
        instance({"catalog": "gpt-oss-120b", "tp": 1, "sliding_window": 20_000}, ["replicas"], ep=[4], dp=[4])
    )
    assert (plan.throughput or 0.0) > 1.1 * (window.throughput or 1e9)


def test_an_entry_of_the_catalog_may_lose_its_window() -> None:
    plain = model("gemma-3-27b-it", sliding_window=None, sliding_window_pattern=None)
    assert physics.shape_of(plain).kept.at(32_768) == 62 * 8192 * 32_768
