"""Budgets over layers: exact against every choice; groups at home against balance."""

from itertools import product

import numpy as np
import pytest

from models.experts.layout import TOKENS, Layout
from models.experts.loads import loads
from solver.experts import budget, nodes
from solver.experts.place import place
from solver.experts.times import card_times
from tests.experts.synthetic import drifted, skewed


def made(seed: int) -> budget.Curves:
    rng = np.random.default_rng(seed)
    replicas = np.array([0, 1, 2, 4, 7])
    time = -np.sort(-rng.random((4, 5)), axis=1)
    return budget.Curves(replicas, time, (), np.tile(np.arange(5), (4, 1)))


@pytest.mark.parametrize("seed", range(10))
def test_exact_for_every_budget(seed: int) -> None:
    found = made(seed)
    for limit in (0, 1, 3, 6, 11, 30):
        chosen, least = budget.allocate(found, limit)
        every = product(range(5), repeat=4)
        best = min(
            sum(found.time[i, o] for i, o in enumerate(choice))
            for choice in every
            if sum(found.replicas[list(choice)]) <= limit
        )
        assert found.time[np.arange(4), chosen].sum() == pytest.approx(best)
        assert least[limit] == pytest.approx(best)
        assert found.replicas[chosen].sum() <= limit
    assert budget.price(found, 1) >= budget.price(found, 6) >= budget.price(found, 30) == 0.0


def test_replicas_go_where_they_help() -> None:
    flat, steep = np.full((3, 32), 100.0), skewed(3, 32, hot=14.0)
    tokens = np.concatenate((flat, steep * flat.sum() / steep.sum()))
    found = budget.curves(loads({"x": tokens}), 8, 8, TOKENS)
    chosen, least = budget.allocate(found, 6)
    assert (found.replicas[chosen[:3]] == 0).all()
    assert found.replicas[chosen[3:]].sum() > 0
    placement = budget.assembled(found, chosen)
    assert placement.faults() == []
    assert (
        placement.counts().sum(1) == 32 + found.replicas[np.take_along_axis(found.chosen, chosen[:, None], 1)][:, 0]
    ).all()
    assert card_times(placement, tokens, TOKENS).max(1).sum() == pytest.approx(least[6] * tokens.sum() / 8)
    held = (placement.slots >= 0).sum((0, 2))
    assert held.max() - held.min() <= 6


def test_scenarios_need_more_replicas_than_one_pattern() -> None:
    first = skewed(4, 48)
    one = budget.curves(loads({"a": first}), 8, 16, TOKENS)
    both = budget.curves(loads({"a": first, "b": drifted(first, 5, 0.8)}), 8, 16, TOKENS)
    at = int(np.flatnonzero(one.replicas == 1)[0])
    assert both.time[:, at].sum() > one.time[:, at].sum()


def test_from_strict_to_free() -> None:
    tokens, layout = skewed(5, 64), Layout((10,) * 8, nodes=4)
    free, _ = place(tokens, layout)
    points, bound = nodes.curve(tokens, layout, 8, TOKENS, free)
    assert points[0].name == "strict"
    assert points[0].leaving == 0.0
    assert points[0].balancedness <= bound + 1e-9
    assert [p.balancedness for p in points] == sorted(p.balancedness for p in points)
    assert all(p.placement.faults() == [] for p in points)
    soft = next(p for p in points if p.balancedness >= 0.95)
    assert soft.leaving < 0.5 * points[-1].leaving


def test_groups_that_fit_no_node() -> None:
    assert nodes.obstacle(Layout((4,) * 9, nodes=3), 32, 8) == "8 groups cannot be divided over 3 nodes"
    assert nodes.obstacle(Layout((4, 5), nodes=2), 8, 2) == "cards have different numbers of slots"
    assert nodes.obstacle(Layout((4,) * 8, nodes=4), 32, 8) is None
