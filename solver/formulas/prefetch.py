r"""Reading state layer by layer while the layers before it compute, with the first layers read beforehand.

Layer $i$ computes once its own state is there and layer $i-1$ is done. $n$ layers take $r$ each to read and $c$ each to
compute; the first $e$ are read before the request begins.
"""

import math
from collections.abc import Sequence


def layer_bytes(state: float, layers: float, of: float = 1.0) -> float:
    r"""State of ``of`` layers: $k V/n$. Units: bytes. Source: section 9.5.2 (32 MiB of one layer)."""
    return of * state / layers


def read_then_compute_seconds(read: float, compute: float) -> float:
    r"""All read before anything computes: $T_{read} + T_{new}$. Units: s. Source: section 9.5.2 (79.2 ms)."""
    return read + compute


def pipeline_seconds(reads: Sequence[float], computes: Sequence[float], early: int = 0) -> float:
    r"""Layers of any times: $f_i = \max(f_{i-1}, \sum_{e < j \le i} r_j) + c_i$, exactly. Units: s. Section 9.5.2."""
    there = done = 0.0
    for layer, (read, compute) in enumerate(zip(reads, computes, strict=True)):
        there += read if layer >= early else 0.0
        done = max(done, there) + compute
    return done


def layerwise_seconds(layers: int, read: float, compute: float, early: int = 0) -> float:
    r"""Layers all alike: $\max(n c,\ r + (n-e) c,\ (n-e) r + c)$; $n c$ when all are early. Section 9.5.2 (49.2 ms).

    The closed form of :func:`pipeline_seconds`; without early layers the first read is never hidden.
    """
    late = layers - early
    if late <= 0:
        return layers * compute
    return max(layers * compute, read + late * compute, late * read + compute)


def buffer_bytes(bandwidth: float, read: float, compute: float) -> float:
    r"""Bytes to have before the request begins: $\max(0, B (T_{read} - T_{new}))$. Source: section 9.5.2 (437 MB).

    Of a continuous flow: it says nothing is needed where the layers of :func:`layers_early` still say one.
    """
    return max(0.0, bandwidth * (read - compute))


def buffer_layers(buffer: float, layer: float) -> float:
    r"""Whole layers that hold a buffer: $\lceil S/V_l \rceil$. Source: section 9.5.2 (14)."""
    return float(math.ceil(buffer / layer))


def layers_early(layers: int, read: float, compute: float) -> float:
    r"""Least $e$ that hides all reading: $\max(\lceil r/c \rceil, \lceil n - (n-1)c/r \rceil)$, at most $n$.

    Exact for layers, where :func:`buffer_bytes` is of a continuous flow. Source: from the recurrence, section 9.5.2.
    """
    if read <= 0:
        return 0.0
    if compute <= 0:
        return float(layers)
    first, last = read / compute, layers - (layers - 1) * compute / read
    return float(min(layers, max(math.ceil(round(first, 9)), math.ceil(round(last, 9)))))
