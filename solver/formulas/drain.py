r"""Startup backlog in the fluid model: what waits, when it is gone, and the rate that a deadline needs.

Seconds count from the start of startup (section 9.6.1).
"""

import math


def startup_backlog(arrival: float, startup: float) -> float:
    r"""Requests waiting when a stopped service becomes ready: $\lambda T_s$. Source: section 9.6.1 (35)."""
    return arrival * startup


def drained_at(arrival: float, service: float, startup: float) -> float:
    r"""Second at which the backlog is gone: $T_s + \lambda T_s/(\mu - \lambda)$; infinite unless $\mu > \lambda$."""
    if service < arrival or (service == arrival and startup > 0):
        return math.inf
    if startup == 0:
        return 0.0
    return startup + startup_backlog(arrival, startup) / (service - arrival)


def backlog_at(time: float, arrival: float, service: float, startup: float) -> float:
    r"""Requests waiting at ``time``: $\max(0, \lambda t - \mu (t - T_s)^+)$. Source: section 9.7.2 (59 at 60 s)."""
    return max(0.0, arrival * time - service * max(0.0, time - startup))


def required_rate(arrival: float, startup: float, deadline: float) -> float:
    r"""Service rate that clears the backlog by ``deadline``: $\lambda + \lambda T_s/(T - T_s)$. Section 9.7.2 (4.2)."""
    if deadline <= startup:
        return math.inf
    return arrival + startup_backlog(arrival, startup) / (deadline - startup)
