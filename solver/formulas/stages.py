r"""Roofline stage times, and what one deployment unit completes with them.

A stage time is the larger of compute time and memory time (sections 9.1.1 and 9.2.3). Occupation of a unit is in
unit-seconds per request; a batch of decode requests shares one step, so a step counts once for the batch.
"""

import math


def effective_peak(peak: float, efficiency: float) -> float:
    r"""Peak x efficiency (MFU or MBU). Units: those of ``peak``. Source: section 9.2.3 (50 %)."""
    return peak * efficiency


def efficiency_between(batch: float, low: float, low_share: float, high: float, high_share: float) -> float:
    r"""Efficiency at ``batch`` on the straight line between two measured batches. Source: section 9.2.3 (49 %)."""
    return low_share + (batch - low) / (high - low) * (high_share - low_share)


def compute_seconds(flops: float, effective_flops: float) -> float:
    r"""$F / C$. Units: s."""
    return flops / effective_flops


def memory_seconds(read_bytes: float, effective_bandwidth: float) -> float:
    r"""$W / B$. Units: s."""
    return read_bytes / effective_bandwidth


def roofline_seconds(compute: float, memory: float) -> float:
    r"""A pass takes $\max(F/C, W/B)$. Units: s. Source: section 9.2.3."""
    return max(compute, memory)


def decode_occupation(calls: float, step: float, batch: float) -> float:
    r"""Unit-seconds of a request's decode calls when ``batch`` requests share a step: $(G-1)\,t/B$. Section 9.2.3."""
    return calls * step / batch


def serial_rate(prefill: float, decode: float) -> float:
    r"""Requests/s of a unit that runs both stages in turn: $1/(d_P + d_D)$. Source: section 9.1.1."""
    return 1.0 / (prefill + decode)


def overlapped_rate(
    prefill_compute: float, decode_compute: float, prefill_memory: float, decode_memory: float
) -> float:
    r"""Ideal chunked prefill: $1/\max(c_P + c_D, m_P + m_D)$; both resources can be full at once. Section 9.2.3."""
    return 1.0 / max(prefill_compute + decode_compute, prefill_memory + decode_memory)


def piggyback_tokens(step_compute: float, step_memory: float, flops_per_token: float, effective_flops: float) -> float:
    r"""Prefill tokens that fit in the idle compute of one decode step: $(m - c)\,C / f$; 0 when compute binds.

    ``flops_per_token`` is the prefill's work over its tokens. Source: section 9.2.3 (about 490 on A100).
    """
    return max(0.0, step_memory - step_compute) * effective_flops / flops_per_token


def chunks(tokens: float, per_step: float) -> float:
    r"""Decode steps that carry a prefill of ``tokens`` tokens: $\lceil n/k \rceil$. Source: section 9.2.3 (17)."""
    return float(math.ceil(tokens / per_step)) if per_step > 0 else math.inf


def chunked_first_token_seconds(chunk_count: float, step: float) -> float:
    r"""First token of a piggybacked prefill: chunks x step. Units: s. Source: section 9.2.3 (0.94 s)."""
    return chunk_count * step


def stalled_steps(prefill: float, step: float) -> float:
    r"""Decode steps that one unchunked prefill makes others miss: $t_P / t_{step}$. Source: section 9.2.3 (16)."""
    return prefill / step


def residence_tpot(batch: float, unit_seconds: float, calls: float) -> float:
    r"""Time per token of a full co-located unit by Little's law: $B\,d/(G-1)$, $d$ = unit-seconds per request.

    ``batch`` requests stay for $B d$ seconds and make $G-1$ calls meanwhile.
    """
    return batch * unit_seconds / calls


def pool_rate(units_by_group: dict[str, int], seconds_by_group: dict[str, float]) -> float:
    r"""Rate of a pool of whole units: $\sum_g n_g / d_g$. Units: requests/s. Source: section 9.2.3."""
    return sum(units / seconds_by_group[group] for group, units in units_by_group.items())


def separated_rate(prefill_pool: float, decode_pool: float, link: float) -> float:
    r"""$\mu_{PD} = \min(\mu_P, \mu_D, B/V)$. Units: requests/s. Source: section 9.2.3."""
    return min(prefill_pool, decode_pool, link)


def step_seconds_at_load(fixed: float, load: float, first: float, full: float) -> float:
    r"""Step time of a decode unit whose occupancy follows its load.

    A step of $b$ requests takes $t = t_0 + b\,t_1$ and Little's law gives $b = r (G-1) t$, so
    $t = t_0/(1 - r (G-1) t_1)$ with ``load`` = $r (G-1) t_1$; at least a step of one request, at most a full one.
    Units: s.
    """
    if load >= 1.0:
        return full
    return min(max(fixed / (1.0 - load), first), full)
