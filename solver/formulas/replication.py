r"""Copies of hot experts: what they cost once, what they save a batch, and when that is paid back (section 9.4.2)."""

import math


def copy_seconds(copies: float, weights: float, link: float, startup: float) -> float:
    r"""Copies sent one after the other: $c (W_e/B + \alpha)$. Units: s. Source: section 9.4.2 (0.622 ms, 5.32 ms)."""
    return copies * (weights / link + startup)


def payback_batches(copying: float, saving: float) -> float:
    r"""First batch after which more is saved than the copies took: $\lfloor T_{copy}/\Delta t \rfloor + 1$, strictly.

    Infinite when nothing is saved. Source: section 9.4.2 (3 in one server, 23 across).
    """
    return float(math.floor(copying / saving) + 1) if saving > 0 else math.inf


def net_saving(batches: float, saving: float, copying: float) -> float:
    r"""Time won by a hotspot of so many batches: $N \Delta t - T_{copy}$; negative is lost. Units: s. Section 9.4.2."""
    return batches * saving - copying


def copies_fit(spare: float, weights: float, copies: float = 1.0) -> bool:
    r"""Whether a card has room for its copies: $c W_e \le M$. No saving outweighs that it does not. Section 9.4.2."""
    return copies * weights <= spare
