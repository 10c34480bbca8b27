r"""Where to send a request: queue, state and work until its first token, and what not knowing the place costs.

$Q$ is the wait for the GPU, $R$ the time until the state is there, $C$ the work that remains then.
"""

import math
from collections.abc import Sequence


def first_token_overlapped(queue: float, ready: float, work: float) -> float:
    r"""State is fetched while the request waits: $\max(Q, R) + C$. Units: s. Source: section 9.5.4 (90 ms)."""
    return max(queue, ready) + work


def first_token_serial(queue: float, ready: float, work: float) -> float:
    r"""State is fetched only after the wait: $Q + R + C$. Units: s. Source: section 9.5.4 (150 ms)."""
    return queue + ready + work


def first_token_layerwise(queue: float, start: float, layers: float, read: float, compute: float) -> float:
    r"""A layer computes once it is there: $\max(Q + n c,\ S + r + n c,\ S + n r + c)$. Units: s. Section 9.5.2.

    Layers of $r$ to read and $c$ to compute; reading begins at $S$, while the request still waits.
    """
    whole = layers * compute
    return max(queue + whole, start + read + whole, start + layers * read + compute)


def overlap_saving(queue: float, ready: float) -> float:
    r"""What fetching during the wait saves: $\min(Q, R)$. Units: s. Source: section 9.5.4 (60 ms)."""
    return min(queue, ready)


def preparation_seconds(steps: Sequence[float]) -> float:
    r"""State made ready in steps, one after the other: $R = \sum_i t_i$. Units: s. Section 9.5.4 (12.666 ms)."""
    return sum(steps)


def read_budget(target: float, work: float, fixed: float) -> float:
    r"""Time left for a read that shall end in time for ``target``: $T - C - \alpha$. Units: s. 9.5.4 (191.7 ms)."""
    return target - work - fixed


def crossover_bandwidth(payload: float, budget: float) -> float:
    r"""Bandwidth at which a read takes its budget: $V/t$; infinite without one. Units: B/s. 9.5.4 (6.30 GB/s)."""
    return payload / budget if budget > 0 else math.inf


def two_point_mean(hit: float, miss: float, probability: float) -> float:
    r"""Mean of a time that is either: $p\,t_{hit} + (1-p)\,t_{miss}$. Source: section 9.5.4 (196.5 ms at 0.9)."""
    return probability * hit + (1.0 - probability) * miss


def two_point_quantile(hit: float, miss: float, probability: float, share: float) -> float:
    r"""Its quantile by the inverse of its distribution: the least time within which a share $q$ falls. Section 9.5.4.

    $t_{hit}$ where $p \ge q$, else $t_{miss}$ (for $t_{hit} \le t_{miss}$); $p = q$ is enough.
    """
    quick, slow, share_quick = (hit, miss, probability) if hit <= miss else (miss, hit, 1.0 - probability)
    return quick if share_quick >= share else slow


def hit_probability_for_mean(target: float, hit: float, miss: float) -> float:
    r"""Probability at which the mean is ``target``: $(t_{miss} - T)/(t_{miss} - t_{hit})$. Section 9.5.4 (7.0 %).

    0 where even the miss is in time, infinite where not even the hit is.
    """
    if miss <= target:
        return 0.0
    return (miss - target) / (miss - hit) if hit <= target else math.inf


def hit_probability_for_quantile(target: float, hit: float, miss: float, share: float) -> float:
    r"""Least probability with the quantile $q$ within ``target``: $q$; 0 or infinite as for the mean. 9.5.4 (99 %)."""
    if miss <= target:
        return 0.0
    return share if hit <= target else math.inf
