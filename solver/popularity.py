"""How unevenly tokens choose experts, and what replicas make of it: the busiest place over the mean (section 9.4.2).

Placements are those of :mod:`solver.experts`; here they are only searched for quickly.
"""

from functools import lru_cache

import numpy as np

from models.experts.layout import TOKENS, Layout


class Popularity:
    """Loads of experts, with the skew of every number of places and slots that was asked for."""

    def __init__(self, rows: tuple[tuple[float, ...], ...]) -> None:
        self._tokens = np.array(rows)
        self._known: dict[tuple[int, int], tuple[float, float]] = {}

    def skew(self, places: int, slots: int) -> float:
        """Rows of the busiest of so many places over the mean, all layers together; ``slots`` are those of a place."""
        return self._placed(places, slots)[0]

    def balancedness(self, places: int, slots: int) -> float:
        """Mean rows over those of the busiest place, mean over the layers."""
        return self._placed(places, slots)[1]

    def _placed(self, places: int, slots: int) -> tuple[float, float]:
        from solver.experts.place import Effort, place  # here, since few instances need them
        from solver.experts.times import card_times

        key = (places, slots)
        if key not in self._known:
            placement, _ = place(self._tokens, Layout((slots,) * places), TOKENS, Effort(rounds=0, tries=0))
            rows = card_times(placement, self._tokens, TOKENS)
            skew = float(rows.max(1).sum() / rows.mean(1).sum())
            self._known[key] = skew, float((rows.mean(1) / rows.max(1)).mean())
        return self._known[key]


@lru_cache(maxsize=32)
def popularity(rows: tuple[tuple[float, ...], ...]) -> Popularity:
    """The one object for these loads, so that what was placed once is known."""
    return Popularity(rows)
