r"""Units of several GPUs: what a cut over $t$ GPUs of a server (TP) and $p$ stages (PP) costs and saves.

Matrices, heads and vocabulary are cut into $t$ equal parts; the sums that this needs go over the link inside the
server. Layers are dealt to stages; a unit is as quick as its slowest stage.
"""

import math


def allreduce_seconds(payload: float, degree: int, bandwidth: float, startup: float) -> float:
    r"""Sum of ``payload`` bytes over $t$ GPUs: $\frac{2(t-1)}{t}\frac{V}{B} + 2\alpha$; nothing for one GPU.

    Reduce-scatter, then all-gather; in each, a GPU sends $(t-1)/t$ of the payload. $B$ is one GPU's bandwidth in one
    direction. Units: s. Source: Thakur, Rabenseifner, Gropp 2005 (bandwidth term of ring all-reduce).
    """
    return 0.0 if degree == 1 else 2.0 * (degree - 1) / degree * payload / bandwidth + 2.0 * startup


def activation_bytes(tokens: float, hidden: int, element_bytes: float) -> float:
    r"""Activations of ``tokens`` tokens between two layers: $b\,h\,n$. Units: bytes."""
    return element_bytes * hidden * tokens


def largest_stage_layers(layers: int, stages: int) -> float:
    r"""Layers of the largest of $p$ stages: $\lceil L/p \rceil$."""
    return float(math.ceil(layers / stages))


def last_stage_layers(layers: int, stages: int) -> float:
    r"""Layers of the last of $p$ stages, which has the output head too: $\lfloor L/p \rfloor$."""
    return float(layers // stages)


def state_share(kv_heads: int, degree: int) -> float:
    r"""Share of a layer's state on each of $t$ GPUs: $\lceil h_{kv}/t \rceil / h_{kv}$; heads fewer than GPUs are kept
    several times. An MLA state counts as one head.
    """
    return math.ceil(kv_heads / degree) / kv_heads
