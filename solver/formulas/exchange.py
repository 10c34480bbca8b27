r"""Both exchanges of a layer with experts on other cards: dispatch of inputs, combine of outputs (section 9.4.1)."""


def card_seconds(flops: float, weights: float, compute: float, bandwidth: float) -> float:
    r"""Least time of a card's experts: $\max(F_r/C_r, W_r/B_r)$. Units: s. Source: section 9.4.1 (39.1 µs)."""
    return max(flops / compute, weights / bandwidth)


def staged_seconds(dispatch: float, compute: float, combine: float) -> float:
    r"""A layer whose stages wait for the whole batch: $T_D + T_E + T_C$. Units: s. Source: section 9.4.1 (0.827 ms)."""
    return dispatch + compute + combine


def exchange_share(dispatch: float, compute: float, combine: float) -> float:
    r"""Share of both exchanges in that: $(T_D + T_C)/(T_D + T_E + T_C)$. Source: section 9.4.1 (81.1 %)."""
    return (dispatch + combine) / staged_seconds(dispatch, compute, combine)


def message_crossover(bandwidth: float, messages: float) -> float:
    r"""Message size above which bytes bind a NIC, not requests: $B/r$. Units: B. Source: section 9.4.2 (0.93 KB)."""
    return bandwidth / messages


def admitted_rate(capacity: float, each: float) -> float:
    r"""Batches/s that a card or a link of a shared pool must stay below: $\lambda E[F] < C$, $\lambda E[V] < B$.

    ``each`` is the mean work, or the mean bytes, of a batch there. Source: section 9.4.2.
    """
    return capacity / each
