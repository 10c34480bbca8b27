"""Bounds against every placement of tiny cases, and against known placements; certificates can fail."""

from dataclasses import replace

import numpy as np
import pytest

from models.experts.layout import TOKENS, Layout, TimeModel
from models.experts.placement import Placement
from solver.experts.bounds import KINDS, bounds
from solver.experts.certificate import LayerBound, from_json, plain, tightened
from solver.experts.place import place
from solver.experts.thresholds import attempt, case, holds
from solver.experts.times import card_times
from solver.experts.verify import proves, verify
from tests.experts.synthetic import arbitrary, even, every_placement, skewed

TINY = [
    ((2, 2), 3),
    ((2, 2), 4),
    ((2, 2, 2), 4),
    ((2, 2, 2), 5),
    ((3, 3), 4),
    ((3, 3), 5),
    ((3, 2, 1), 4),
    ((1, 1, 1), 2),
]
SLOT = TimeModel(0.3, 1.0)


def tiny(experts: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([seed, experts])
    return np.round(np.exp(rng.normal(0.0, 0.9, experts)) * 100.0, 0) + 1.0


@pytest.mark.parametrize(("slots", "experts"), TINY)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("time", [TOKENS, TimeModel(40.0, 1.0)])
def test_never_above_the_best_of_all_placements(
    slots: tuple[int, ...], experts: int, seed: int, time: TimeModel
) -> None:
    layout, tokens = Layout(slots), tiny(experts, seed)
    everything = every_placement(experts, layout)
    best = min(even(cards, tokens, time) for cards in everything)
    low = bounds(tokens[None], layout, time)
    assert low.value[0] <= best * (1 + 1e-9)
    if time.per_slot == 0.0:
        assert low.value[0] <= min(arbitrary(cards, tokens) for cards in everything) * (1 + 1e-9)
    placement, _ = place(tokens[None], layout, time)
    top = card_times(placement, tokens[None], time).max(1)
    assert top[0] >= best * (1 - 1e-9)
    found, _ = tightened(plain(low), tokens[None], top, layout, time, 10.0)
    assert found[0].value <= best * (1 + 1e-9)
    assert proves(found[0], tokens, layout, time)
    for share in (0.9, 0.99, 0.999, 1.0, 1.01):  # whatever the program calls a proof is below the optimum
        proof, _ = attempt(case(tokens, layout, time), best * share)
        assert proof is None or share < 1.0


def test_most_tiny_cases_are_solved() -> None:
    """The placement is optimal, and the bound tight, in many of them."""
    optimal = tight = cases = 0
    for (slots, experts), seed in ((shape, seed) for shape in TINY for seed in range(6)):
        layout, tokens = Layout(slots), tiny(experts, seed)
        best = min(even(cards, tokens, TOKENS) for cards in every_placement(experts, layout))
        placement, low = place(tokens[None], layout)
        optimal += card_times(placement, tokens[None], TOKENS).max() <= best * (1 + 1e-9)
        tight += low.value[0] >= best * 0.999
        cases += 1
    assert optimal >= 0.75 * cases
    assert tight >= 0.2 * cases


@pytest.mark.parametrize(("cards", "slots", "experts"), [(8, 9, 64), (32, 2, 56), (24, 3, 64), (64, 1, 40), (8, 8, 64)])
def test_certificates_hold_and_are_noticed_when_they_do_not(cards: int, slots: int, experts: int) -> None:
    tokens, layout = skewed(6, experts), Layout((slots,) * cards)
    placement, low = place(tokens, layout)
    top = card_times(placement, tokens, TOKENS).max(1)
    found, _ = tightened(plain(low), tokens, top, layout, TOKENS, 20.0)
    assert verify(placement, tokens, TOKENS, top.tolist(), found) == []
    assert [from_json(bound.as_json()) for bound in found] == found
    better = [replace(bound, value=bound.value * 1.05) for bound in found]
    assert len(verify(placement, tokens, TOKENS, top.tolist(), better)) >= len(found)
    assert all(not proves(bound, layer, layout, TOKENS) for bound, layer in zip(better, tokens, strict=True))
    assert verify(placement, tokens, TOKENS, (top * 0.99).tolist(), found)
    twice = placement.slots.copy()
    twice[0, 0] = twice[0, 0, 0]
    assert slots == 1 or verify(Placement(twice, layout, experts), tokens, TOKENS, top.tolist(), found)


def test_thresholds_close_two_slots_a_card() -> None:
    tokens, layout = skewed(5, 112), Layout((2,) * 64)
    placement, low = place(tokens, layout)
    top = card_times(placement, tokens, TOKENS).max(1)
    found, weights = tightened(plain(low), tokens, top, layout, TOKENS, 30.0)
    before = 1.0 - low.value.sum() / top.sum()
    after = 1.0 - sum(bound.value for bound in found) / top.sum()
    assert after < 0.5 * before
    assert any(bound.kind == "thresholds" for bound in found)
    assert set(weights) <= set(range(5))


def test_a_proof_without_weights_proves_nothing() -> None:
    tokens, layout = skewed(1, 12)[0], Layout((2,) * 8)
    this = case(tokens, layout, TOKENS)
    limit = float(tokens.sum()) / 8 * 1.01
    proof, _ = attempt(this, limit)
    if proof is not None and proof.multipliers:
        assert holds(this, proof)
        assert not holds(this, replace(proof, multipliers=()))
        assert not holds(this, replace(proof, limit=proof.limit * 3))
        assert not holds(this, replace(proof, multipliers=(replace(proof.multipliers[0], weight=-1.0),)))
    assert not proves(LayerBound(limit, "thresholds"), tokens, layout, TOKENS)
    assert not proves(LayerBound(limit, "wishes"), tokens, layout, TOKENS)


def test_kinds_are_those_of_the_verifier() -> None:
    layout = Layout((2,) * 4)
    for kind in KINDS[:4]:
        assert proves(LayerBound(1.0, kind), np.array([50.0, 40.0, 30.0, 20.0, 10.0]), layout, SLOT) in (True, False)
