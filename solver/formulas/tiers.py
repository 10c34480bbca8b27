r"""Places that keep context state beside the GPU: how long it stays there, what reading it takes, when saving pays.

$V$ is the bytes of a state, $r$ the rate at which new state is made, $k$ the number of later uses.
"""

import math
from collections.abc import Sequence

DAY = 86_400.0
"""Seconds over which the rated writes of a drive are spread."""


def memory_after_weights(capacity: float, weights: float) -> float:
    r"""Memory of a GPU left beside its weights: $\max(0, M - W)$. Units: bytes. Source: section 9.5.2 (63.6 GB)."""
    return max(0.0, capacity - weights)


def share_of_card(capacity: float, cards: float) -> float:
    r"""What a place of a server gives each of its GPUs: $C/n$. Units: bytes. Source: section 9.5.2 (256 GiB)."""
    return capacity / cards


def state_production(state: float, prefill: float) -> float:
    r"""State that a GPU makes when it prefills without a break: $r = V/t_P$. Units: B/s. Section 9.5.2 (1.41 GB/s)."""
    return state / prefill


def retention_seconds(capacity: float, production: float) -> float:
    r"""How long a place keeps state that goes in the order it came: $C/r$. Units: s. Source: section 9.5.2 (195 s)."""
    return capacity / production if production > 0 else math.inf


def capacity_for_interval(production: float, interval: float) -> float:
    r"""Capacity that keeps state for a reuse after $T$: $r T$. Units: bytes. Source: section 9.5.2 (846 GB)."""
    return production * interval


def path_seconds(payload: float, bandwidths: Sequence[float], fixed: float = 0.0) -> float:
    r"""Reading over several hops, each whole before the next: $\sum_i V/B_i + \alpha$. Units: s. 9.5.2 (96.6 ms)."""
    return sum(payload / bandwidth for bandwidth in bandwidths) + fixed


def repeated_read_seconds(payload: float, bandwidth: float, reads: float) -> float:
    r"""Time that a link is taken by $k$ reads of the same state: $k V/B$. Units: s. Source: section 9.5.2 (4.83 s)."""
    return reads * payload / bandwidth


def save_and_use_seconds(write: float, read: float, uses: float) -> float:
    r"""Written once and read $k$ times: $T_w + k T_r$. Units: s. Source: section 9.5.2 (96.6 ms for one use)."""
    return write + uses * read


def uses_to_pay(write: float, read: float, recompute: float) -> float:
    r"""Least $k$ with $T_w + k T_r < k T_c$: $\lfloor T_w/(T_c - T_r) \rfloor + 1$; infinite unless $T_r < T_c$."""
    if recompute <= read:
        return math.inf
    return float(math.floor(write / (recompute - read)) + 1)


def break_even_bandwidth(payload: float, recompute: float, uses: float) -> float:
    r"""Bandwidth, of writing and reading alike, at which $k$ uses just pay: $(1 + 1/k) V/T_c$. 9.5.2 (2.82 GB/s)."""
    return (1.0 + 1.0 / uses) * payload / recompute


def sustained_write_rate(capacity: float, writes_per_day: float) -> float:
    r"""Writes that a drive is rated for, as a mean rate: $w C/86400$. Units: B/s. Source: section 9.5.2 (44.4 MB/s)."""
    return writes_per_day * capacity / DAY


def writable_share(allowed: float, production: float) -> float:
    r"""Share of new state that a drive may take: $\min(1, a/r)$. Source: section 9.5.2 (3.2 %)."""
    return min(1.0, allowed / production) if production > 0 else 1.0


def drive_life(rated: float, allowed: float, production: float) -> float:
    r"""Life of a drive that takes it all: $T_{rated}\,a/r$. Units: those of ``rated``. Section 9.5.2 (2 months)."""
    return rated * allowed / production if production > 0 else math.inf
