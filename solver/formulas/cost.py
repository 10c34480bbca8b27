r"""Cost of completed requests: reserved money over requests that meet quality and deadline (section 9.7.2)."""

import math


def qualifying_rate(completed: float, share: float) -> float:
    r"""Completions/s that meet quality and deadline: completed x share. Source: section 9.7.2 (1.14)."""
    return completed * share


def cost_per_request(money_per_second: float, qualifying: float) -> float:
    r"""$C_{effective}$ = total cost / qualifying requests, per request, from money/s and requests/s."""
    return money_per_second / qualifying if qualifying > 0 else math.inf


def cost_per_thousand(money_per_second: float, qualifying: float) -> float:
    r"""The same for a thousand requests. Source: section 9.7.2 (0.63 at 3.5 requests/s and 8 per hour)."""
    return 1000.0 * cost_per_request(money_per_second, qualifying)
