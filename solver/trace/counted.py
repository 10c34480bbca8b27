"""How often values occur, so that their percentiles need no list of all of them."""

from collections.abc import Sequence

import numpy as np

MOST_VALUES = 2**20
"""Different values that are kept apart; beyond that they are rounded to DIGITS significant digits."""
DIGITS = 5


class Counted:
    """Values and their weights, added in any order. Exact up to MOST_VALUES different ones."""

    def __init__(self) -> None:
        self.values: np.ndarray = np.empty(0)
        """Sorted and different, float64 (k,)."""
        self.weights: np.ndarray = np.empty(0)
        """Of each value, float64 (k,)."""

    def add(self, values: np.ndarray, weights: np.ndarray | None = None) -> None:
        """Add values (n,), each with a weight, or 1."""
        together = np.concatenate([self.values, np.asarray(values, dtype=np.float64)])
        added = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
        self._keep(together, np.concatenate([self.weights, added]))
        if len(self.values) > MOST_VALUES:
            self._keep(_rounded(self.values), self.weights)

    def _keep(self, values: np.ndarray, weights: np.ndarray) -> None:
        self.values, inverse = np.unique(values, return_inverse=True)
        self.weights = np.bincount(inverse, weights, len(self.values)).astype(np.float64)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @property
    def mean(self) -> float:
        """Weighted mean; NaN of nothing."""
        return float(self.values @ self.weights / self.total) if len(self.values) else float("nan")

    def percentiles(self, wanted: Sequence[float]) -> list[float]:
        """Percentiles of whole weights, straight between neighbours, as numpy's default: at (n - 1) p / 100."""
        if not len(self.values):
            return [float("nan")] * len(wanted)
        ends = np.cumsum(self.weights)
        place = np.asarray(wanted, dtype=np.float64) / 100.0 * max(float(ends[-1]) - 1.0, 0.0)
        low = np.floor(place)
        lower, upper = (
            self.values[np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)]
            for at in (low, np.ceil(place))
        )
        return [float(one) for one in lower + (upper - lower) * (place - low)]

    def below(self, limits: np.ndarray) -> np.ndarray:
        """Weight of the values up to each limit, float64 (k,)."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights)])
        return np.asarray(sums[np.searchsorted(self.values, limits, side="right")])


def _rounded(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        size = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(values))))
    size[values == 0.0] = 1.0
    return np.asarray(np.rint(values * size) / size)
