"""Placements are valid whatever the input, and better than the rule that engines use."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import BadInput
from models.experts.layout import TOKENS, Layout, TimeModel, spread
from models.experts.loads import loads
from solver.experts import counts
from solver.experts.pack import largest_first
from solver.experts.place import place
from solver.experts.solve import Options, solve
from solver.experts.times import card_times
from tests.experts.synthetic import skewed

some = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, Layout, TimeModel]:
    experts = draw(st.integers(1, 12))
    slots = draw(st.lists(st.integers(0, 6), min_size=1, max_size=9))
    slots[0] = max(slots[0], 1)
    while sum(min(s, experts) for s in slots) < experts:
        slots.append(min(experts, 4))
    seed, layers = draw(st.integers(0, 10**6)), draw(st.integers(1, 3))
    scale = draw(st.sampled_from([0.1, 1.0, 3.0]))
    tokens = np.exp(scale * np.random.default_rng(seed).standard_normal((layers, experts))) * 1000.0
    slot = draw(st.sampled_from([0.0, 0.0, 5.0, 5000.0]))
    return tokens, Layout(tuple(slots)), TimeModel(slot, 1.0)


@some
@given(problems())
def test_every_placement_is_valid_and_its_bound_holds(problem: tuple[np.ndarray, Layout, TimeModel]) -> None:
    tokens, layout, time = problem
    result = solve(loads({"x": tokens}), layout, Options(time=time, tighten=1.0))  # checks itself again
    assert result.placement.faults() == []
    assert 0.0 <= result.gap < 1.0
    assert 0.0 < result.balancedness_min <= result.balancedness <= 1.0 + 1e-12
    used = (result.placement.slots >= 0).sum((1, 2))
    assert (used <= layout.total).all()
    if time.per_slot == 0.0 and layout.even:
        assert (used == min(layout.total, layout.cards * tokens.shape[1])).all()


@some
@given(problems(), st.integers(2, 4))
def test_several_scenarios(problem: tuple[np.ndarray, Layout, TimeModel], scenarios: int) -> None:
    tokens, layout, time = problem
    rng = np.random.default_rng(scenarios)
    arrays = {str(k): tokens * np.exp(rng.standard_normal(tokens.shape)) for k in range(scenarios)}
    result = solve(loads(arrays), layout, Options(time=time, tighten=0.0))
    assert result.placement.faults() == []
    assert 0.0 <= result.gap < 1.0


@pytest.mark.parametrize(
    ("cards", "slots", "experts"), [(8, 9, 64), (32, 3, 80), (32, 2, 56), (16, 8, 128), (12, 1, 5)]
)
def test_never_worse_than_replicate_the_largest_and_pack(cards: int, slots: int, experts: int) -> None:
    tokens, layout = skewed(8, experts), Layout((slots,) * cards)
    start = np.ones(tokens.shape, dtype=np.int64)
    replicas = counts.grow(tokens, start, np.full(8, layout.total), cards, counts.by_load)
    peer = largest_first(tokens, replicas, layout, 0.0).busy().max(1)
    placement, _ = place(tokens, layout)
    ours = card_times(placement, tokens, TOKENS).max(1)
    assert (ours <= peer * (1 + 1e-12)).all()
    assert ours.sum() <= peer.sum()


def test_nearly_even_with_nine_slots() -> None:
    tokens = skewed(10, 256)
    result = solve(loads({"x": tokens}), Layout((9,) * 32))
    assert result.balancedness > 0.999
    assert result.gap < 1e-3


def test_a_slot_that_costs_time_is_left_empty_when_it_does_not_pay() -> None:
    tokens = skewed(4, 32)
    time = TimeModel(float(tokens.sum(1).mean()), 1.0)  # a replica costs as much as all tokens
    result = solve(loads({"x": tokens}), Layout((8,) * 8), Options(time=time))
    assert (result.placement.counts().sum(1) < 64).all()
    full = solve(loads({"x": tokens}), Layout((8,) * 8, engine=True), Options(time=time))
    assert (full.placement.counts().sum(1) == 64).all()
    assert full.value > result.value


def test_more_slots_than_experts_on_every_card() -> None:
    tokens = skewed(2, 4)
    placement, low = place(tokens, Layout((6,) * 3))
    assert (placement.counts() == 3).all()
    assert placement.rows()[0].count(-1) == 6
    assert card_times(placement, tokens, TOKENS).max() == pytest.approx(low.value.max())
    with pytest.raises(BadInput, match="leave slots empty"):
        place(tokens, Layout((6,) * 3, engine=True))


def test_what_cannot_be() -> None:
    with pytest.raises(BadInput, match="cannot hold 10 experts"):
        place(skewed(1, 10), Layout((3,) * 3))
    with pytest.raises(BadInput, match="engines need equal cards"):
        Layout(spread(3, 10), engine=True)
    with pytest.raises(BadInput, match="cannot be divided over"):
        Layout((1,) * 4, nodes=3)
    assert Layout(spread(3, 10)).slots == (4, 3, 3)
