r"""One expert whose weights are in host memory: computed there, or moved to a GPU and computed there (section 9.3.2).

What crosses the link is the activations, there and back, or the weights, one way. Compute and read times are
$2 m P_e/C$ and $W_e/B$ (:mod:`solver.formulas.stages`); a matrix takes the longer of the two.
"""


def on_cpu_seconds(compute: float, read: float, activations: float, link: float, startup: float) -> float:
    r"""$T_C = 2\alpha + 2 V_a/B_L + \max(F/C_C, W_e/B_D)$; $V_a = m h b$ are the ``activations`` of one direction.

    Units: s. Source: section 9.3.2 (1.46 ms for eight experts of one row).
    """
    return 2.0 * startup + 2.0 * activations / link + max(compute, read)


def on_gpu_seconds(compute: float, read: float, weights: float, link: float, startup: float) -> float:
    r"""$T_G = \alpha + W_e/B_L + \max(F/C_G, W_e/B_H)$: weights first, then the work.

    Units: s. Source: section 9.3.2 (12.5 ms for eight experts).
    """
    return startup + weights / link + max(compute, read)


def knee_rows(flops: float, bandwidth: float, element_bytes: float) -> float:
    r"""Rows at which reading and computing take equally long: $m = b C/(2 B)$. Section "worked example" (8.2, 97).

    Not the rows at which a GPU becomes quicker: that also depends on the link. Bytes of a parameter are $b$.
    """
    return element_bytes * flops / (2.0 * bandwidth)
