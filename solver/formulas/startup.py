r"""What preparing longer before serving brings: once for each executed batch, not for each token."""

import math


def capture_benefit(steps: float, saved: float, spent: float) -> float:
    r"""Net seconds after $N$ executed batches: $N\delta - T_s$. Units: s. Source: section 9.6.1."""
    return steps * saved - spent


def capture_payback(saved: float, spent: float) -> float:
    r"""First batch after which it has paid: $\lfloor T_s/\delta \rfloor + 1$. Source: section 9.6.1 (50001)."""
    return float(math.floor(round(spent / saved, 9)) + 1) if saved > 0 else math.inf


def units_for_rate(rate: float, unit_rate: float) -> float:
    r"""Whole units for a rate: $\lceil \lambda/\mu_1 \rceil$. Source: section 9.7.3 (groups for a target)."""
    return float(math.ceil(round(rate / unit_rate, 9)))
