r"""Memory of a unit: weights, the state of its resident batch at the longest admitted request, and buffers."""

import math


def usable_bytes(capacity: float, usable: float) -> float:
    r"""Memory that an engine may fill: capacity x usable share. Units: bytes."""
    return capacity * usable


def double_buffer_bytes(state: float) -> float:
    r"""Prefill side of a full-state handoff: one state computed, one sent: $2V$. Source: section 9.7.2 (2.25 GiB)."""
    return 2.0 * state


def resident_bytes(weights: float, final_state: float, batch: float, buffer: float) -> float:
    r"""Weights + $B$ final states + buffers. Units: bytes. Source: section 9.7.2 (56.9 GiB on H20)."""
    return weights + batch * final_state + buffer


def largest_batch(usable: float, weights: float, final_state: float, buffer: float) -> float:
    r"""Largest batch whose final states fit beside weights and buffers: $\lfloor (M - W - S)/V \rfloor$, at least 0."""
    room = usable - weights - buffer
    return float(max(0, math.floor(room / final_state)))
