r"""State kept for later: how much of it is found again, how much is alive, how much is written.

A request leaves $s$ bytes, of which the share $F(T)$ of the requests find $h$ bytes again within the age $T$; what was
not used for longer than $T$ is gone (the characteristic time of LRU, or a time to live). $\lambda$ is requests/s and
$I(T) = \int_0^T F$. Source: section 9.5.2 for $C \ge rT$, of which these are the form with reuse.
"""

import math


def live_bytes(rate: float, kept: float, hit: float, age: float, integral: float) -> float:
    r"""Bytes alive: each request leaves $s$ for $T$, less what is used again before: $\lambda (s T - h I(T))$.

    Without reuse this is $r T$ of section 9.5.2, with $r = \lambda s$.
    """
    return max(0.0, rate * (kept * age - hit * integral))


def written_bytes(rate: float, kept: float, hit: float, found: float) -> float:
    r"""Bytes/s written where everything new is: $\lambda (s - h F(T))$; what is still there is not written again.

    Written when it leaves a faster tier, with the copy kept, it is the same: each stay in the tier begins with a write.
    """
    return max(0.0, rate * (kept - hit * found))


def live_again_bytes(rate: float, hit: float, most: float, age: float, integral: float) -> float:
    r"""Bytes alive of what was used before: $\lambda h (F_m T - I_2(T))$, $F_m$ of the requests being such uses."""
    return max(0.0, rate * hit * (most * age - integral))


def written_again_bytes(rate: float, hit: float, most: float, found: float) -> float:
    r"""Bytes/s written where only the second use admits: $\lambda h (F_m - F_2(T))$."""
    return max(0.0, rate * hit * (most - found))


def exponential_share(age: float, mean: float) -> float:
    r"""Uses that return within an age: $1 - e^{-T/m}$."""
    return -math.expm1(-age / mean)


def exponential_integral(age: float, mean: float) -> float:
    r"""$\int_0^T (1 - e^{-t/m})\,dt = T - m (1 - e^{-T/m})$. Units: s."""
    return age - mean * exponential_share(age, mean)


def normal_share(value: float) -> float:
    r"""Standard normal distribution $\Phi(x)$."""
    return 0.5 * math.erfc(-value / math.sqrt(2.0))


P90 = 1.2815515655446004
"""$\\Phi^{-1}(0.9)$."""


def lognormal_share(age: float, median: float, p90: float) -> float:
    r"""Uses that return within an age: $\Phi(\ln(T/m)/\sigma)$ with $\sigma = \ln(p_{90}/m)/1.2816$."""
    if age <= 0.0:
        return 0.0
    return normal_share(math.log(age / median) * P90 / math.log(p90 / median))


def lognormal_integral(age: float, median: float, p90: float) -> float:
    r"""$\int_0^T F = T F(T) - m e^{\sigma^2/2}\,\Phi(\ln(T/m)/\sigma - \sigma)$. Units: s."""
    if age <= 0.0:
        return 0.0
    sigma = math.log(p90 / median) / P90
    z = math.log(age / median) / sigma
    return age * normal_share(z) - median * math.exp(sigma * sigma / 2.0) * normal_share(z - sigma)


def sustained_writes(size: float, writes_per_day: float, rated: float, life: float, amplification: float) -> float:
    r"""Bytes/s that a drive takes over its life: $w C/86400 \cdot T_{rated}/T_{life}/a$. Section 9.5.2 (44.4 MB/s)."""
    return writes_per_day * size / 86_400.0 * rated / life / amplification
