r"""Handing context state from one place to another: payload, time, link limits, pooled copies."""

import math


def transfer_seconds(payload: float, bandwidth: float, startup: float = 0.0) -> float:
    r"""One handoff: $V/B + \alpha$. Units: B, B/s, s. Source: section 9.2.2 (48.3 ms)."""
    return payload / bandwidth + startup


def startup_share(payload: float, bandwidth: float, startup: float) -> float:
    r"""Share of a handoff spent in startup: $\alpha / (V/B + \alpha)$. Source: section 9.2.2."""
    return startup / transfer_seconds(payload, bandwidth, startup)


def link_rate(bandwidth: float, payload: float, copies: float = 1.0) -> float:
    r"""Handoffs/s that a link carries when each crosses it ``copies`` times: $B/(kV)$. Source: section 9.2.3 (20.7)."""
    return bandwidth / (copies * payload) if payload > 0 else math.inf


def handoff_bandwidth(rate: float, payload: float, copies: float = 1.0) -> float:
    r"""Bandwidth that ``rate`` handoffs/s need: $r k V$. Units: B/s. Source: section 9.2.2 (9.7 GB/s)."""
    return rate * copies * payload


def link_backlog_growth(rate: float, payload: float, bandwidth: float) -> float:
    r"""Bytes that wait more each second when demand exceeds a link: $\max(0, rV - B)$. Source: section 9.2.2."""
    return max(0.0, rate * payload - bandwidth)


def pooled_payload(payload: float, reuses: float = 0.0) -> float:
    r"""Bytes on the channel of a pooled handoff: write, read, one more read a reuse: $(2 + k) V$. Section 9.7.1."""
    return (2.0 + reuses) * payload


def pooled_residence_seconds(write: float, read: float) -> float:
    r"""How long a state with no reuse lives in the pool: written whole, then read whole. Units: s. Section 9.7.1."""
    return write + read


def states_that_fit(capacity: float, state: float) -> float:
    r"""Whole states in a pool: $\lfloor C/V \rfloor$. Source: section 9.7.2 (56)."""
    return float(math.floor(capacity / state))
