"""Copies, labels, migration and payback; the worked cases of Example 9.6."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.experts.layout import TOKENS, Layout, TimeModel
from models.experts.loads import loads
from models.experts.placement import EMPTY, Placement
from solver.experts.moves import migrate, relabelled
from solver.experts.payback import Payback, copies, copy_time, fitting
from solver.experts.place import place
from solver.experts.robust import place_for_all
from solver.experts.times import card_times
from solver.experts.transition import Terms, transition
from tests.experts.synthetic import drifted, skewed

MIB = 2**20
BEFORE = skewed(6, 64)
AFTER = drifted(BEFORE, 3)
LAYOUT = Layout((10,) * 8)


def example() -> tuple[Placement, Placement, np.ndarray, TimeModel]:
    """Eight cards with eight experts each; the eight hot ones on card 0, then seven of them copied, one to a card.

    Card 0 reads and writes 921 MB for 1024 rows at 1675 GB/s; tiles are full, so time follows rows.
    """
    layout = Layout((8, *(9,) * 7))
    slots = np.full((1, 8, 9), EMPTY)
    slots[0, :, :8] = np.arange(64).reshape(8, 8)
    after = slots.copy()
    after[0, 1:, 8] = np.arange(1, 8)
    tokens = np.full((1, 64), 1e-9)
    tokens[0, :8] = 128.0
    return Placement(slots, layout, 64), Placement(after, layout, 64), tokens, TimeModel(0.0, 921e6 / 1675e9 / 1024)


def payback(rate: float) -> Payback:
    current, planned, tokens, time = example()
    found = copies(current, planned)
    assert found.number == found.busiest == 7  # all from card 0, one after the other
    old, new = (float(card_times(p, tokens, time).max()) for p in (current, planned))
    assert old == pytest.approx(0.550e-3, rel=1e-3)
    assert new == pytest.approx(0.309e-3, rel=2e-3)
    return Payback(copy_time(found, 36 * MIB, rate, 5e-6), old - new)


def test_example_9_6_inside_a_server() -> None:
    found = payback(450e9)
    assert found.copy == pytest.approx(0.622e-3, rel=1e-3)
    assert found.saved_each_step == pytest.approx(0.240e-3, rel=3e-3)
    assert found.break_even == 3
    assert found.net(16) == pytest.approx(3.2e-3, abs=0.05e-3)
    assert found.net(64) == pytest.approx(14.8e-3, abs=0.05e-3)
    assert [found.verdict(steps) for steps in (2, 3, None)] == ["stay", "move", "unknown"]


def test_example_9_6_between_servers() -> None:
    found = payback(50e9)
    assert found.copy == pytest.approx(5.32e-3, rel=1e-3)
    assert found.break_even == 23
    assert found.net(16) == pytest.approx(-1.5e-3, abs=0.05e-3)
    assert found.net(64) == pytest.approx(10.1e-3, abs=0.05e-3)
    assert [found.verdict(steps) for steps in (16, 64)] == ["stay", "move"]


def test_example_9_6_without_room() -> None:
    assert fitting(64 * MIB, 36 * MIB) == 1
    assert fitting(32 * MIB, 36 * MIB) == 0  # however long the hotspot lasts


def test_waiting_for_batches_counts() -> None:
    assert Payback(1.0, 0.5, drain=2.0).break_even == 7
    assert Payback(1.0, 0.0).break_even is None
    assert Payback(1.0, -0.1).verdict(1e9) == "stay"


def test_relabelling_saves_copies_and_changes_no_time() -> None:
    current, _ = place(BEFORE, LAYOUT)
    fresh, _ = place(AFTER, LAYOUT)
    renamed = relabelled(current, fresh)
    assert copies(current, renamed).number < copies(current, fresh).number
    one, two = (np.sort(card_times(p, AFTER, TOKENS), axis=1) for p in (fresh, renamed))
    assert np.allclose(one, two)
    assert renamed.faults() == []
    again = relabelled(current, current)
    assert copies(current, again).number == 0


def test_labels_keep_the_slots_of_ragged_cards() -> None:
    layout = Layout((12, 12, 10, 10, 10, 8, 8, 8))
    current, _ = place(BEFORE, layout)
    fresh, _ = place(AFTER, layout)
    assert relabelled(current, fresh).faults() == []


def test_few_copies_for_most_of_the_gain() -> None:
    current, _ = place(BEFORE, LAYOUT)
    fresh, _ = place(AFTER, LAYOUT)
    found = migrate(current, AFTER, TOKENS, 0.98)
    times = card_times(found.placement, AFTER, TOKENS)
    assert (times.mean(1) / times.max(1)).mean() >= 0.98
    assert found.placement.faults() == []
    assert found.copies.sum() == copies(current, found.placement).number
    assert found.copies.sum() < 0.4 * copies(current, relabelled(current, fresh)).number


def test_the_verdict_follows_the_lifetime() -> None:
    current, _ = place(BEFORE, LAYOUT)
    fresh, _ = place(AFTER, LAYOUT)
    time = TimeModel(0.0, 1e-9)
    chosen = {}
    for lifetime in (1.0, 1e3, 1e9):
        terms = Terms(44e6, 40e9, 0.0, lifetime, in_flight=2, timed=True)
        found = transition(loads({"x": AFTER}), current, fresh, time, terms)
        chosen[lifetime] = found.chosen
        nets = [way.payback.net(lifetime) for way in found.ways if way.payback]
        assert found.chosen.payback is not None
        assert found.chosen.payback.net(lifetime) == max(nets)
        assert all(way.placement.faults() == [] for way in found.ways)
    assert chosen[1.0].copies == 0
    assert chosen[1e3].copies <= chosen[1e9].copies
    unknown = transition(loads({"x": AFTER}), current, fresh, time, Terms())
    assert unknown.chosen.balancedness >= 0.98
    assert unknown.chosen.payback is None


def test_one_move_for_several_scenarios() -> None:
    both = loads({"a": AFTER, "b": drifted(AFTER, 11)})
    current, _ = place(BEFORE, LAYOUT)
    fresh = place_for_all(both, LAYOUT)
    ways = {way.name: way for way in transition(both, current, fresh, TOKENS, Terms()).ways}
    assert ways["0.97"].balancedness >= 0.965
    assert ways["0.97"].copies < 0.8 * ways["fresh"].copies
    for tokens in both.tokens:
        times = [card_times(ways[name].placement, tokens, TOKENS) for name in ("stay", "0.97")]
        stay, moved = (float((t.mean(1) / t.max(1)).mean()) for t in times)
        assert moved > stay


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=7), st.integers(0, 10**6), st.sampled_from([0.0, 200.0]))
def test_every_way_is_valid(slots: list[int], seed: int, fixed: float) -> None:
    """Also from maps with empty slots, and with an expert twice on a card, as peers make them."""
    rng = np.random.default_rng(seed)
    layout, time = Layout(tuple(slots)), TimeModel(fixed, 1.0)
    experts = int(rng.integers(1, min(layout.total, 12) + 1))
    if sum(min(s, experts) for s in slots) < experts:
        return
    tokens = np.exp(rng.standard_normal((2, experts))) * 1000.0
    held = np.full((2, layout.cards, layout.widest), EMPTY)
    there = np.argwhere(np.arange(layout.widest) < np.asarray(slots)[:, None])
    for layer in range(2):
        order = rng.permutation(len(there))
        for number, (card, at) in enumerate(there[order]):
            held[layer, card, at] = number if number < experts else rng.integers(-1, experts)
    current = Placement(held, layout, experts)
    fresh, _ = place(tokens, layout, time)
    found = transition(loads({"x": tokens}), current, fresh, time, Terms(1e6, 1e9, 0.0, 100.0, 1, timed=True))
    for way in found.ways[1:]:
        assert way.placement.faults() == []
    assert relabelled(current, fresh).faults() == []
