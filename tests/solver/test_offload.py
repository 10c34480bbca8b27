"""Experts on the CPU or on a GPU: times and the crossover by hand under other conditions, and against a scan."""

import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.expert_work import Engine, Expert
from solver.formulas import offload as formulas
from solver.offload import Offload, keep, socket_seconds

some = settings(max_examples=150, deadline=None, derandomize=True, database=None)
AVX, AMX = Engine(1.8e12, 220e9), Engine(21.3e12, 220e9)
A100 = Engine(156e12, 777.5e9)
BF16, FP8, INT4 = (Expert(4096, 1536, weight_bytes=size) for size in (2.0, 1.0, 0.5))


def test_fp8_weights_on_both_paths() -> None:
    # 18 MiB: 85.79 us from host memory, 754.97 us over the link, 24.28 us from HBM; a row there and back 0.655 us
    both = Offload(FP8, AVX, A100, 25e9, 5e-6)
    assert both.on_cpu(1) == pytest.approx(96.448e-6, rel=1e-5)  # 10 + 0.65536 + 85.79258
    assert both.on_gpu(1) == pytest.approx(784.25043e-6, rel=1e-6)  # 5 + 754.97472 + 24.27571
    # from 5 rows on the CPU takes 10 + 21.62688 m us: 784.25 at 35.8
    assert both.last_cpu_rows() == 35
    assert both.first_gpu_rows() == 36


def test_int4_weights_move_the_crossover_further() -> None:
    # 9 MiB: 377.48736 + 12.13786 + 5 = 394.62522 us; (394.62522 - 10) / 21.62688 = 17.8
    assert Offload(INT4, AVX, A100, 25e9, 5e-6).first_gpu_rows() == 18


def test_a_link_twice_as_wide_with_amx() -> None:
    # past 200.6 rows the GPU computes: 759.97472 + 0.2419791 m; the CPU takes 10 + 2.0999213 m: equal at 403.66
    both = Offload(BF16, AMX, A100, 50e9, 5e-6)
    assert both.first_gpu_rows() == 404
    assert both.on_cpu(403) < both.on_gpu(403)
    assert both.on_gpu(404) < both.on_cpu(404)


def test_memory_of_the_other_socket_moves_the_crossover_only_where_reading_binds() -> None:
    near, far = (Offload(BF16, Engine(AMX.flops, speed), A100, 25e9, 5e-6) for speed in (220e9, 125e9))
    assert far.on_cpu(1) - near.on_cpu(1) == pytest.approx(301.989888e-6 - 171.585164e-6, rel=1e-6)
    assert far.first_gpu_rows() == near.first_gpu_rows() == 689  # past both knees, computing binds


def test_where_the_gpu_is_never_or_always_quicker() -> None:
    assert Offload(BF16, Engine(200e12, 1e12), A100, 1e15, 0.0).first_gpu_rows() == math.inf
    assert Offload(BF16, AMX, A100, 25e15, 1e-9).first_gpu_rows() == 1
    assert Offload(BF16, A100, A100, 25e9, 0.0).first_gpu_rows() == 2305  # 16 384 m > 37 748 736 B


def test_each_expert_of_a_batch_on_its_quicker_side() -> None:
    both = Offload(BF16, AVX, A100, 25e9, 5e-6)
    seconds, sides = both.batch([1, 72, 0, 71])
    assert sides == ("cpu", "gpu", "", "cpu")
    assert seconds == pytest.approx(both.on_cpu(1) + both.on_gpu(72) + both.on_cpu(71))


def test_the_busiest_socket() -> None:
    # AMX: 128 rows compute 226.85 us, one row reads 171.59 us; the third expert has no rows
    local = {0: AMX, 1: AMX}
    taken = socket_seconds(BF16, [128, 1, 0], [0, 1, 1], local)
    assert taken[0] == pytest.approx(226.84686e-6, rel=1e-6)
    assert taken[1] == pytest.approx(171.58516e-6, rel=1e-6)
    # both in the memory of socket 0: it takes as long as both did
    assert socket_seconds(BF16, [128, 1, 0], [0, 0, 0], local) == {0: pytest.approx(sum(taken.values())), 1: 0.0}


def test_experts_that_stay_on_the_gpu() -> None:
    # one row takes 182.24 us on an AMX socket, 128 rows 320.73; a GPU that has the weights takes 48.55 us for either
    both = Offload(BF16, AMX, A100, 25e9, 5e-6)
    layer = keep(both, [1, 128, 0, 1], 1)
    assert layer.kept == {1}
    assert layer.here == pytest.approx(48.551429e-6, rel=1e-6)
    assert layer.away == pytest.approx(2 * 182.240524e-6, rel=1e-6)
    assert layer.in_turn == pytest.approx(413.032476e-6, rel=1e-6)
    assert layer.overlapped == layer.away
    assert keep(both, [1, 128, 0, 1], 0).in_turn == pytest.approx(both.batch([1, 128, 0, 1])[0])


@given(st.lists(st.sampled_from([0, 1, 5, 64, 200, 900]), min_size=1, max_size=5), st.integers(0, 5))
@some
def test_no_other_experts_are_better_on_the_gpu(rows: list[int], count: int) -> None:
    both = Offload(BF16, AVX, A100, 25e9, 5e-6)
    home = [both.gpu.seconds(BF16.flops(each), BF16.weights) if each else 0.0 for each in rows]
    best = min(
        sum(home[index] if index in kept else both.batch([each])[0] for index, each in enumerate(rows))
        for kept in combinations(range(len(rows)), min(count, len(rows)))
    )
    assert keep(both, rows, count).in_turn == pytest.approx(best)


def test_knee_with_int4_weights() -> None:
    assert formulas.knee_rows(21.3e12, 220e9, 0.5) == pytest.approx(24.2045, rel=1e-5)  # a quarter of 96.8


speeds = st.floats(0.1, 200.0)


@given(speeds, speeds, speeds, speeds, st.floats(0.5, 500.0), st.floats(0.0, 50.0), st.sampled_from([BF16, FP8, INT4]))
@some
def test_the_crossover_is_that_of_a_scan(
    cpu: float, dram: float, card: float, hbm: float, link: float, startup: float, expert: Expert
) -> None:
    both = Offload(expert, Engine(cpu * 1e12, dram * 1e10), Engine(card * 1e12, hbm * 1e10), link * 1e9, startup * 1e-6)
    first = both.first_gpu_rows()
    scanned = next((rows for rows in range(1, 3000) if both.on_gpu(rows) < both.on_cpu(rows)), math.inf)
    assert first == scanned or (first >= 3000 and scanned == math.inf)
    if first < math.inf:
        assert both.on_gpu(first) < both.on_cpu(first)
        assert first == 1 or both.on_gpu(both.last_cpu_rows()) >= both.on_cpu(both.last_cpu_rows())
