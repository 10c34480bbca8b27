r"""Moving what runs: state that grows while it is copied, and weights that change their places.

$V$ is the state at the start, $g$ its growth, $B$ the bandwidth of the copy.
"""

import math


def state_growth(calls: float, per_token: float) -> float:
    r"""State that decoding adds: calls/s $\cdot kv$. Units: B/s. Source: section 9.6.2 (0.172 GB/s)."""
    return calls * per_token


def catch_up_rate(bandwidth: float, growth: float) -> float:
    r"""Rate at which a copy comes nearer: $B - g$, negative when it falls behind. Units: B/s. 9.6.2 (24.8 GB/s)."""
    return bandwidth - growth


def catch_up_seconds(state: float, bandwidth: float, growth: float) -> float:
    r"""Time until a copy has all: $V/(B - g)$; infinite unless $B > g$. Units: s. Source: section 9.6.2 (1.65 s)."""
    if state <= 0:
        return 0.0
    return state / (bandwidth - growth) if bandwidth > growth else math.inf


def grown_bytes(growth: float, seconds: float) -> float:
    r"""State added meanwhile: $g\,t$. Units: bytes. Source: section 9.6.2 (0.28 GB)."""
    return growth * seconds


def copy_rounds(state: float, bandwidth: float, growth: float, left: float) -> float:
    r"""Rounds of copying what the last one missed until at most ``left`` is missing: least $k$ with $V (g/B)^k \le l$.

    Infinite unless $B > g$. Source: section 9.6.2, in rounds; the sum of all rounds is $V/(B - g)$.
    """
    if state <= left:
        return 0.0
    if bandwidth <= growth:
        return math.inf
    if growth <= 0:
        return 1.0
    if left <= 0:
        return math.inf
    return float(math.ceil(round(math.log(state / left) / math.log(bandwidth / growth), 9)))


def switch_seconds(payload: float, bandwidth: float, serial: float) -> float:
    r"""Move, then steps that no link makes shorter: $V/B + T_s$. Units: s. Source: section 9.6.2 (11.6 s)."""
    return payload / bandwidth + serial
