"""Rows of cards: placements and hot experts by hand, simulated choices against all of them."""

from itertools import combinations, pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.formulas import experts
from solver.skew import Placement, by_index, one_hot, random_skew, skew

some = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def test_experts_are_dealt_in_order() -> None:
    assert by_index(4, 2).homes == ((0,), (0,), (1,), (1,))
    assert [len(held) for held in by_index(5, 2).rows([1] * 5)] == [3, 2]


def test_a_hot_expert_of_qwen3_on_sixteen_cards() -> None:
    # 512 tokens x 8 = 4096 rows, 128 experts, 8 a card; one gets 320: others (4096 - 320)/127 = 29.732
    rows = one_hot(512, 8, 128, 320)
    loads = by_index(128, 16).loads(rows)
    assert sum(loads) == pytest.approx(4096)
    assert max(loads) == pytest.approx(320 + 7 * 3776 / 127)  # 528.13, against a mean of 256
    assert skew(loads) == pytest.approx(2.0630, rel=1e-4)
    assert experts.idle_share(skew(loads)) == pytest.approx(0.51527, rel=1e-4)


def test_copies_share_the_rows_of_their_expert() -> None:
    placement = by_index(4, 2).with_copies([(0, 1)])
    assert placement.rows([30, 10, 4, 6]) == [[15, 10], [15, 4, 6]]
    assert placement.loads([30, 10, 4, 6]) == [25, 25]
    assert by_index(4, 2).loads([30, 10, 4, 6]) == [40, 10]


def test_a_second_copy_on_a_card_is_refused() -> None:
    with pytest.raises(ValueError, match="card 0 has expert 1 already"):
        by_index(4, 2).with_copies([(1, 0)])


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.lists(st.booleans(), min_size=8, max_size=8))
@some
def test_copies_move_rows_and_lose_none(rows: list[int], copied: list[bool]) -> None:
    places = [(expert, card) for expert, card in product(range(4), range(2)) if card != expert * 2 // 4]
    placement = by_index(4, 2).with_copies([place for place, made in zip(places, copied, strict=False) if made])
    assert sum(placement.loads(rows)) == pytest.approx(sum(rows))


@given(st.integers(0, 400))
@some
def test_skew_of_a_hot_expert_grows_with_the_cards(hot: int) -> None:
    rows = one_hot(100, 4, 64, hot)
    skews = [skew(by_index(64, cards).loads(rows)) for cards in (1, 2, 4, 8, 16, 32, 64)]
    assert skews[0] == pytest.approx(1)
    assert all(few <= many + 1e-9 for few, many in pairwise(skews))


def exact_skew(tokens: int, chosen: int, placement: Placement) -> float:
    """Mean skew over every way in which the tokens can choose."""
    count = len(placement.homes)
    found = []
    for sets in product(combinations(range(count), chosen), repeat=tokens):
        rows = [sum(expert in each for each in sets) for expert in range(count)]
        found.append(skew(placement.loads(rows)))
    return sum(found) / len(found)


@pytest.mark.parametrize(
    ("tokens", "chosen", "placement"),
    [
        (2, 2, by_index(6, 3)),  # drawn anew when an expert comes twice
        (2, 3, by_index(4, 2)),  # drawn as an order of all experts
        (3, 1, by_index(4, 4)),
        (2, 2, by_index(4, 2).with_copies([(0, 1)])),
    ],
)
def test_simulated_choices_are_even(tokens: int, chosen: int, placement: Placement) -> None:
    simulated = random_skew(tokens, chosen, placement, batches=20_000, seed=1)
    assert abs(simulated.mean - exact_skew(tokens, chosen, placement)) <= 4 * simulated.error


def test_the_same_seed_draws_the_same() -> None:
    first, second = (random_skew(64, 8, by_index(128, 8), 50, seed=3) for _ in range(2))
    assert first == second
    assert random_skew(64, 8, by_index(128, 8), 50, seed=4) != first


def test_one_expert_a_card_skews_more_than_many() -> None:
    # Qwen3: 8 of 128, 256 tokens; the standard error says how far the difference is from chance
    few, many = (random_skew(256, 8, by_index(128, cards), 200, seed=0) for cards in (8, 128))
    assert many.mean - few.mean > 20 * (few.error + many.error)


@pytest.mark.parametrize(("count", "redundant", "cards", "each"), [(128, 16, 48, 3), (256, 32, 36, 8), (256, 0, 64, 4)])
def test_physical_experts_of_a_card(count: int, redundant: int, cards: int, each: int) -> None:
    assert experts.experts_per_card(count, redundant, cards) == each
    assert {len(held) for held in by_index(count + redundant, cards).rows([1.0] * (count + redundant))} == {each}


def test_more_cards_do_not_raise_the_rows_of_an_expert() -> None:
    # 1024 tokens x 8 over 256 experts: 32 rows each, whatever holds them; on 32 cards 256 a card, on 128 cards 64
    assert experts.mean_rows(1024, 8, 256) == 32
    for cards, rows in ((32, 256), (128, 64)):
        assert set(by_index(256, cards).loads([experts.mean_rows(1024, 8, 256)] * 256)) == {rows}
