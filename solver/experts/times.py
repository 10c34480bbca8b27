"""Times of cards under a placement."""

import numpy as np

from models.experts.layout import TimeModel
from models.experts.placement import Placement


def card_times(placement: Placement, tokens: np.ndarray, time: TimeModel) -> np.ndarray:
    """Time of each card, tokens (layers, experts) split evenly over replicas: (layers, cards)."""
    counts = np.maximum(placement.counts(), 1)
    size = time.per_slot + time.per_token * tokens / counts
    layers = np.arange(placement.layers)[:, None, None]
    return np.asarray(np.where(placement.slots >= 0, size[layers, placement.slots], 0.0).sum(2))
