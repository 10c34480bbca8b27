r"""Experts of a layer: the rows that reach them, the weights that a batch touches, and how unevenly places are loaded.

A batch of $n$ tokens that choose $k$ experts each makes $nk$ dispatches; a dispatch is one row of one expert's input.
"""

import math


def dispatches(tokens: float, chosen: float) -> float:
    r"""Rows of a batch over all experts: $n k$. Source: section 9.3.3 (512 for 64 tokens)."""
    return tokens * chosen


def mean_rows(tokens: float, chosen: float, places: float) -> float:
    r"""Mean rows of an expert, or of a card: $n k / R$ with $R$ of them. Source: section 9.3.4 (32).

    More cards do not raise the rows of an expert: those depend on the number of experts only.
    """
    return dispatches(tokens, chosen) / places


def other_expert_rows(tokens: float, chosen: float, experts: float, hot: float) -> float:
    r"""Rows of each other expert when one gets ``hot``: $(n k - m_{hot})/(E - 1)$. Source: section 9.4.1 (31.6)."""
    return (dispatches(tokens, chosen) - hot) / (experts - 1.0)


def weight_bytes(params: float, element_bytes: float, experts: float = 1.0, layers: float = 1.0) -> float:
    r"""Weights of ``experts`` experts in each of ``layers`` layers: $b P_e E L$. Units: bytes. Section 9.3.2 (36 MiB).

    ``params`` are those of one expert, :func:`solver.formulas.parameters.expert_parameters`.
    """
    return element_bytes * params * experts * layers


def expert_flops(rows: float, params: float) -> float:
    r"""Matrix work of ``rows`` rows: $F_e = 2 m P_e$. Units: FLOP. Source: section 9.3.2."""
    return 2.0 * rows * params


def active_experts(experts: float, chosen: float, tokens: float) -> float:
    r"""Experts that a batch touches on average: $E (1 - (1 - k/E)^n)$. Source: section 9.3.3 (126 of 128).

    Each token chooses $k$ different experts, evenly and whatever the others choose.
    """
    untouched: float = (1.0 - chosen / experts) ** tokens
    return experts * (1.0 - untouched)


def active_experts_slope(experts: float, chosen: float, tokens: float) -> float:
    r"""What one token more adds to them: $-E \ln(1 - k/E) (1 - k/E)^n$; 0 where all are chosen. Section 9.3.3."""
    if chosen >= experts:
        return 0.0
    untouched: float = (1.0 - chosen / experts) ** tokens
    return -experts * math.log1p(-chosen / experts) * untouched


def resident_experts(memory: float, weights: float, layers: float, experts: float) -> float:
    r"""Experts of each layer that fit in ``memory``: $\min(E, \lfloor M/(L W_e) \rfloor)$. Source: section 9.3.3.

    ``weights`` are the bytes of one expert; each layer keeps as many. Units: experts a layer.
    """
    return min(experts, float(math.floor(memory / (layers * weights))))


def experts_per_card(experts: float, redundant: float, cards: float) -> float:
    r"""Physical experts of a card: $(E + E_r)/R$. Source: section 9.4.1 (2 on each of 144 cards)."""
    return (experts + redundant) / cards


def expert_skew(busiest: float, mean: float) -> float:
    r"""Rows of the busiest place over the mean: $s = \max_j m_j/(n k/R)$. Source: section 9.4.1 (2.5)."""
    return busiest / mean


def idle_share(skew: float) -> float:
    r"""Share of the time that a place with mean rows waits for the busiest: $1 - 1/s$. Section 9.4.1 (75 %)."""
    return 1.0 - 1.0 / skew


def token_ceiling(flops: float, layers: float, chosen: float, params: float) -> float:
    r"""Tokens/s whose experts can be computed: $C/(2 P_e k L)$. Source: exercise 9-5."""
    return flops / expert_flops(layers * chosen, params)


def token_backlog_growth(demand: float, ceiling: float) -> float:
    r"""Tokens that wait more each second: $\max(0, \lambda - \mu)$. Source: exercise 9-5."""
    return max(0.0, demand - ceiling)
