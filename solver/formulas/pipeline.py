r"""Micro-batches through stages that work at the same time: attention and experts, or dispatch, compute, combine."""

import math
from collections.abc import Sequence


def serial_seconds(stages: Sequence[float], batches: float) -> float:
    r"""One stage at a time: $q \sum_s t_s$. Units: s. Source: section 9.3.4 (20 ms)."""
    return batches * sum(stages)


def pipelined_seconds(stages: Sequence[float], batches: float) -> float:
    r"""$q$ equal micro-batches: $\sum_s t_s + (q - 1) \max_s t_s$. Units: s. Source: section 9.3.4 (14 ms).

    Stages have resources of their own, and work is always there: fill, then one micro-batch a period.
    """
    return sum(stages) + (batches - 1.0) * max(stages)


def pipeline_saving(stages: Sequence[float], batches: float) -> float:
    r"""Time saved, and extra time that cancels it: $(q - 1)(\sum_s t_s - \max_s t_s)$. Section 9.3.4 (6 ms)."""
    return serial_seconds(stages, batches) - pipelined_seconds(stages, batches)


def slowdown_limit(kept: Sequence[float], slowed: Sequence[float], batches: float) -> float:
    r"""Factor on the stages ``slowed`` at which overlapping saves nothing: $T_{pipe}(f) = T_{serial}$.

    $T_{pipe}(f) = \sum k + f \sum s + (q-1) \max(\max k, f \max s)$, the larger of two lines, so that the smaller of
    their roots is it. Source: section 9.4.3 (1.49 for both exchanges, 3.1 for the experts).
    """
    serial = serial_seconds((*kept, *slowed), batches)
    if not sum(slowed):
        return math.inf
    room = serial - sum(kept)
    paced_by_kept = (room - (batches - 1.0) * max(kept, default=0.0)) / sum(slowed)
    paced_by_slowed = room / (sum(slowed) + (batches - 1.0) * max(slowed))
    return min(paced_by_kept, paced_by_slowed)


def merge_seconds(paths: Sequence[float], merge: float) -> float:
    r"""A token waits for the last of its experts: $T_t = \max_e L_{t,e} + T_{merge}$. Units: s. Section 9.4.3."""
    return max(paths) + merge
