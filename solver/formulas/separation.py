r"""Attention and feed-forward network on different places (AF): a round trip in every layer of every step.

Prefill and decode on different places (PD) hand over once a request; the two are compared over a step and over a
whole request (section 9.3.4, exercises 9-4 and 9-11).
"""


def layer_messages(layers: float) -> float:
    r"""Transfers of a step: $2 n_{layers}$, there and back. Source: section 9.3.4 (72)."""
    return 2.0 * layers


def layer_bytes(layers: float, hidden: float, element_bytes: float, tokens: float = 1.0) -> float:
    r"""Activations of a step of ``tokens`` tokens: $2 n_{layers} h b\, n$. Units: bytes. Section 9.3.4 (576 KiB).

    Neither the heads nor the form of the context state matter.
    """
    return layer_messages(layers) * hidden * element_bytes * tokens


def messages_seconds(payload: float, messages: float, bandwidth: float, startup: float) -> float:
    r"""``payload`` bytes in $k$ transfers, one after the other: $V/B + k\alpha$. Units: s. Section 9.3.4 (0.384 ms)."""
    return payload / bandwidth + messages * startup


def critical_startup(state: float, activations: float, messages: float, bandwidth: float) -> float:
    r"""Startup at which one AF step takes as long as one PD handoff: $\alpha^* = (V_{KV} - V_{AF})/((k - 1) B)$.

    Below it, the step is quicker. Units: s. Source: section 9.3.4 (680 µs), exercise 9-11 (324 µs).
    """
    return (state - activations) / ((messages - 1.0) * bandwidth)
