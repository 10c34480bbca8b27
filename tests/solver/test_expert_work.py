"""Experts: rows, weights, tiles and memory by hand under other conditions, and against counting every case."""

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.hardware import Accelerator, Efficiency
from solver.expert_work import Engine, Expert, Tiles, expert_of, gpu
from solver.formulas import experts, tiles
from tests.golden.reading import accelerator, llm

some = settings(max_examples=60, deadline=None, derandomize=True, database=None)
QWEN = Expert(4096, 1536)  # 3 x 4096 x 1536 = 18 874 368 parameters
H100 = Engine(494.7e12, 1675e9)


# --- weights and rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expert", "mib"),
    [
        (QWEN, 36.0),
        (Expert(4096, 1536, weight_bytes=1.0), 18.0),
        (Expert(4096, 1536, weight_bytes=0.5), 9.0),
        (Expert(7168, 2048), 84.0),  # 3 x 7168 x 2048 x 2 = 88 080 384 B
        (Expert(6144, 16384, weight_bytes=1.0), 288.0),  # 3 x 6144 x 16384 = 301 989 888 B
    ],
)
def test_weights_of_one_expert(expert: Expert, mib: float) -> None:
    assert expert.weights == mib * 2**20


def test_experts_of_the_catalog() -> None:
    assert expert_of(llm("qwen3-235b-a22b")) == QWEN
    assert expert_of(llm("deepseek-v3"), 1.0) == Expert(7168, 2048, 1.0)


def test_activations_stay_in_bf16_when_weights_are_not() -> None:
    assert Expert(4096, 1536, weight_bytes=0.5).activations(3) == 3 * 8192
    assert Expert(4096, 1536, weight_bytes=0.5).flops(1) == QWEN.flops(1)


def test_a_gpu_computes_in_the_precision_it_is_asked_for() -> None:
    h100, half = accelerator("h100-sxm"), Efficiency(compute=0.5, bandwidth=0.5)
    assert gpu(h100, half) == H100
    assert gpu(h100, half, "fp8").flops == pytest.approx(989.45e12)
    plain = Accelerator.model_validate(
        {"name": "x", "memory": "1 GB", "bandwidth": "1 GB/s", "compute": {"bf16": "1 TFLOP/s"}}
    )
    assert gpu(plain, half, "fp8").flops == 0.5e12  # no such units: BF16


@pytest.mark.parametrize(("count", "chosen", "tokens"), [(4, 2, 2), (4, 1, 3), (5, 3, 2), (3, 3, 2), (6, 2, 1)])
def test_active_experts_are_those_of_all_choices(count: int, chosen: int, tokens: int) -> None:
    sets = list(combinations(range(count), chosen))
    touched = [len(set().union(*choice)) for choice in product(sets, repeat=tokens)]
    assert experts.active_experts(count, chosen, tokens) == pytest.approx(sum(touched) / len(touched))


def test_more_tokens_touch_more_experts_up_to_all() -> None:
    # DeepSeek-V3, 8 of 256: 1 token 8, 32 tokens 256 (1 - 0.96875^32) = 163.3
    assert experts.active_experts(256, 8, 1) == pytest.approx(8)
    assert experts.active_experts(256, 8, 32) == pytest.approx(163.31, abs=0.01)
    assert experts.active_experts(256, 8, 10_000) == pytest.approx(256)


@pytest.mark.parametrize(
    ("memory", "weights", "fit"),
    [
        (80e9, QWEN.weights, 22),  # 3384 MiB for one of each layer: 80e9 / 3 548 381 184 = 22.5
        (40e9, QWEN.weights, 11),  # 11.3
        (80e9, QWEN.weights / 2, 45),  # FP8
        (1e12, QWEN.weights, 128),  # all there are
        (3e9, QWEN.weights, 0),
    ],
)
def test_experts_that_stay_on_a_gpu(memory: float, weights: float, fit: int) -> None:
    assert experts.resident_experts(memory, weights, 94, 128) == fit


def test_what_fits_is_within_memory_and_one_more_is_not() -> None:
    fit = experts.resident_experts(80e9, QWEN.weights, 94, 128)
    assert experts.weight_bytes(QWEN.params, 2, fit, 94) <= 80e9 < experts.weight_bytes(QWEN.params, 2, fit + 1, 94)


def test_an_amx_socket_computes_more_tokens() -> None:
    # 94 layers x 8 experts x 37 748 736 FLOP = 28.387 GFLOP a token: 21.3 TFLOP/s make 750.3 tokens/s
    assert experts.token_ceiling(21.3e12, 94, 8, QWEN.params) == pytest.approx(750.34, abs=0.01)
    assert experts.token_backlog_growth(700.0, 750.34) == 0.0


# --- tiles --------------------------------------------------------------------------------------------


def test_traffic_of_one_expert() -> None:
    # gate, up: 12 tiles x 4096 x (64 + 128) x 2 B = 18 874 368, + 64 x 1536 x 2 = 196 608 each;
    # down: 32 tiles x 1536 x (64 + 128) x 2 B = 18 874 368, + 64 x 4096 x 2 = 524 288
    assert Tiles().traffic(QWEN, [64]) == 2 * (18_874_368 + 196_608) + 18_874_368 + 524_288 == 57_540_608
    assert Tiles().traffic(QWEN, [128]) == 2 * 57_540_608  # each tile of rows reads all weights again


def test_traffic_of_a_card() -> None:
    assert Tiles().traffic(QWEN, [128] * 8) == 920_649_728  # section 9.4.2: about 921 MB
    assert Tiles().traffic(QWEN, [128] + [64] * 7) == 517_865_472
    assert Tiles().traffic(QWEN, [0, 0]) == 0


def test_traffic_of_a_row_more_than_a_tile() -> None:
    # 65 rows, two tiles of rows: 2 x 18 874 368 for each product, outputs of 65 rows:
    # 2 x (37 748 736 + 65 x 3072) + 37 748 736 + 65 x 8192
    assert Tiles().traffic(QWEN, [65]) == 114_178_048
    assert Tiles(rows=128).traffic(QWEN, [65]) < 114_178_048  # one taller tile reads the weights once


def test_traffic_with_fp8_weights() -> None:
    # gate, up: 12 x 4096 x (64 x 2 + 128 x 1) = 12 582 912, + 196 608 each; down: 12 582 912 + 524 288
    assert Tiles().traffic(Expert(4096, 1536, weight_bytes=1.0), [64]) == 38_666_240


def test_time_of_a_card_is_the_longer_of_work_and_traffic() -> None:
    # 128 rows x 8: 38.65 GFLOP take 78.1 us, 920.6 MB take 549.6 us
    assert Tiles().seconds(QWEN, [128] * 8, H100) == pytest.approx(549.64163e-6, rel=1e-6)
    # with 50 times the bandwidth: 1 row runs as 64, 2.416 GFLOP take 4.884 us, more than the traffic
    assert Tiles().seconds(QWEN, [1], Engine(494.7e12, 83.75e12)) == pytest.approx(4.8836044e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("rows", "tile", "empty", "padded"),
    [([32, 16, 8, 4, 2, 1, 1, 0], 16, False, 128), ([32, 16, 8, 4, 2, 1, 1, 0], 64, True, 512), ([0, 0], 8, False, 0)],
)
def test_rows_that_run(rows: list[float], tile: int, empty: bool, padded: float) -> None:
    assert tiles.padded_rows(rows, tile, empty) == padded  # 32 + 16 x 6; 8 x 64; nothing


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.sampled_from([1, 8, 16, 64]))
@some
def test_padding_is_less_than_a_tile_an_expert(rows: list[int], tile: int) -> None:
    run = tiles.padded_rows(rows, tile)
    assert sum(rows) <= run <= sum(rows) + (tile - 1) * sum(each > 0 for each in rows)
    assert run % tile == 0
    assert tiles.padded_rows(rows, 1) == sum(rows)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 9))
@some
def test_traffic_is_that_of_every_tile(rows: int, inner: int, columns: int, tall: int, wide: int) -> None:
    read = 0.0
    for _ in range(0, rows, tall):
        for _ in range(0, columns, wide):
            read += tall * inner * 2 + inner * wide * 1
    assert tiles.gemm_bytes(rows, inner, columns, tall, wide, 1, 2) == read + rows * columns * 2
