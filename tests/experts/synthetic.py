"""Loads like measured ones, made from a seed: lognormal, with one or two very hot experts in each layer."""

from itertools import combinations, product

import numpy as np

from models.experts.layout import Layout, TimeModel


def skewed(layers: int, experts: int, seed: int = 0, sigma: float = 0.7, hot: float = 6.0) -> np.ndarray:
    rng = np.random.default_rng([seed, layers, experts])
    tokens = np.exp(sigma * rng.standard_normal((layers, experts)))
    tokens[np.arange(layers), rng.integers(0, experts, layers)] = hot * tokens.mean(1)
    return np.asarray(np.maximum(np.round(tokens / tokens.sum(1, keepdims=True) * 1e6), 1.0))


def drifted(tokens: np.ndarray, seed: int, amount: float = 0.5) -> np.ndarray:
    """The same service at another time: every load times a random factor."""
    rng = np.random.default_rng(seed)
    return np.maximum(np.round(tokens * np.exp(amount * rng.standard_normal(tokens.shape))), 1.0)


def every_placement(experts: int, layout: Layout) -> list[tuple[tuple[int, ...], ...]]:
    """All ways to fill the cards so that every expert is somewhere; cards hold sets of experts."""
    sets = [[c for n in range(s + 1) for c in combinations(range(experts), n)] for s in layout.slots]
    found = [cards for cards in product(*sets) if len({e for card in cards for e in card}) == experts]
    return [cards for cards in found if sum(map(len, cards)) <= layout.total]


def even(cards: tuple[tuple[int, ...], ...], tokens: np.ndarray, time: TimeModel) -> float:
    """Time of the busiest card with even splits."""
    count = [sum(e in card for card in cards) for e in range(len(tokens))]
    return max(sum(float(time.per_slot + time.per_token * tokens[e] / count[e]) for e in card) for card in cards)


def arbitrary(cards: tuple[tuple[int, ...], ...], tokens: np.ndarray) -> float:
    """Time of the busiest card with the best split: the most crowded set of experts (max-flow, min-cut)."""
    experts = range(len(tokens))
    return max(
        sum(float(tokens[e]) for e in some) / sum(bool(set(some) & set(card)) for card in cards)
        for n in range(1, len(tokens) + 1)
        for some in combinations(experts, n)
    )
