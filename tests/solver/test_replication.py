"""Copies of hot experts: saving, payback and veto by hand under other conditions; layers against every choice."""

import math
from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from solver.expert_work import Engine, Expert, Tiles
from solver.formulas import replication as formulas
from solver.replication import Layer, Replication, best_layers, weigh
from solver.skew import Placement, by_index

some = settings(max_examples=80, deadline=None, derandomize=True, database=None)
H100 = Engine(494.7e12, 1675e9)
BF16, FP8 = Expert(4096, 1536), Expert(4096, 1536, weight_bytes=1.0)
HOT = [128] * 8
COPIES = [(index, index) for index in range(1, 8)]


def weighed(expert: Expert, link: float, space: float = 64 * 2**20) -> Replication:
    """Eight hot experts on the first of eight cards, seven copied, one to each other card (section 9.4.2)."""
    layer = Layer(expert, Tiles(), H100, Placement(8, ((0,),) * 8))
    return weigh(layer, HOT, COPIES, link, 5e-6, dict.fromkeys(range(1, 8), space))


@pytest.mark.parametrize(
    ("link", "batches", "net"),
    # 0.2404682 ms a batch, less 0.6222 ms inside the server, or 5.3198 ms across
    [(450e9, 16, 3.2253e-3), (450e9, 64, 14.7678e-3), (50e9, 16, -1.4723e-3), (50e9, 64, 10.0701e-3)],
)
def test_hotspots_of_section_9_4_2(link: float, batches: int, net: float) -> None:
    assert weighed(BF16, link).net(batches) == pytest.approx(net, abs=1e-7)


def test_fp8_weights() -> None:
    # before: 8 experts x 2 tiles x 38 666 240 B / 1675 GB/s = 369.35 us; after: (2 + 7) tiles, 207.76 us
    # copies: 7 x (18 874 368 / 450e9 + 5 us) = 328.60 us: 2.03 batches, so the third; across: 2677.4 / 161.59 = 16.6
    inside, across = weighed(FP8, 450e9), weighed(FP8, 50e9)
    assert inside.saving == pytest.approx(161.590e-6, rel=1e-5)
    assert inside.copying == pytest.approx(328.601e-6, rel=1e-5)
    assert (inside.payback, across.payback) == (3, 17)
    assert weighed(FP8, 450e9, space=32 * 2**20).fits  # 18 MiB


def test_without_room_no_hotspot_is_long_enough() -> None:
    vetoed = weighed(BF16, 450e9, space=32 * 2**20)
    assert not vetoed.fits
    assert vetoed.payback == math.inf
    assert vetoed.net(10**9) == 0.0
    assert vetoed.saving > 0  # it would have helped


def test_two_copies_on_one_card_need_twice_the_room() -> None:
    layer = Layer(BF16, Tiles(), H100, Placement(8, ((0,),) * 8))
    for space, fits in ((72, True), (71, False)):
        assert weigh(layer, HOT, [(1, 1), (2, 1)], 450e9, 5e-6, {1: space * 2**20}).fits is fits
    assert not weigh(layer, HOT, [(1, 1)], 450e9, 5e-6, {}).fits  # a card that is not named has none to spare


def test_a_copy_elsewhere_does_not_help_the_busiest_card() -> None:
    layer = Layer(BF16, Tiles(), H100, by_index(4, 2))
    none = weigh(layer, [512, 512, 64, 64], [(2, 0)], 450e9, 5e-6, {0: 1e9})
    assert none.saving < 0  # the busiest card gets more
    assert none.payback == math.inf


@pytest.mark.parametrize(("copying", "saving", "batches"), [(1.0, 0.5, 3), (1.0, 0.4, 3), (0.0, 0.1, 1), (1.0, 2.0, 1)])
def test_payback_is_strict(copying: float, saving: float, batches: int) -> None:
    assert formulas.payback_batches(copying, saving) == batches  # 2 x 0.5 only equals the cost


@given(st.integers(0, 500), st.integers(1, 50))
@some
def test_payback_is_the_first_batch_with_a_gain(copying: int, saving: int) -> None:
    batches = formulas.payback_batches(copying, saving)
    assert formulas.net_saving(batches, saving, copying) > 0
    assert formulas.net_saving(batches - 1, saving, copying) <= 0


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=6), st.integers(0, 40))
@some
def test_layers_chosen_save_most_within_a_budget(savings: list[int], budget: int) -> None:
    chosen = best_layers(savings, 10, budget)
    assert len(chosen) * 10 <= budget
    every = [
        sum(savings[layer] for layer in layers)
        for size in range(len(savings) + 1)
        for layers in combinations(range(len(savings)), size)
        if size * 10 <= budget
    ]
    assert sum(savings[layer] for layer in chosen) == max(every)


@given(st.lists(st.integers(0, 200), min_size=4, max_size=4), st.integers(0, 3))
@some
def test_copies_of_all_experts_everywhere_leave_no_card_busier_than_another(rows: list[int], home: int) -> None:
    assume(sum(rows))
    layer = Layer(BF16, Tiles(), H100, Placement(4, ((home,),) * 4))
    copies = [(expert, card) for expert in range(4) for card in range(4) if card != home]
    spread = layer.placement.with_copies(copies)
    assert len({round(load, 9) for load in spread.loads(rows)}) == 1
    assert weigh(layer, rows, copies, 450e9, 5e-6, dict.fromkeys(range(4), 1e9)).saving >= 0
