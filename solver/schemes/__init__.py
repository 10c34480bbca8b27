"""Deployment schemes: one file each. A scheme says which units it is made of and how they hand state over."""

from solver.schemes import (
    attention_ffn,
    chunked,
    cpu_experts,
    encode_pd,
    expert_pool,
    hybrid,
    pd_direct,
    pd_pooled,
    replicas,
)
from solver.schemes.base import Scheme

SCHEMES: tuple[Scheme, ...] = (replicas.SCHEME, chunked.SCHEME, pd_direct.SCHEME, pd_pooled.SCHEME)
"""Schemes that are looked at whether or not an instance names them, in the order in which tables show them."""

NAMED: tuple[Scheme, ...] = (
    hybrid.SCHEME,
    attention_ffn.SCHEME,
    expert_pool.SCHEME,
    cpu_experts.SCHEME,
    encode_pd.SCHEME,
)
"""Schemes that are looked at only where an instance names them."""

BY_NAME = {scheme.name: scheme for scheme in (*SCHEMES, *NAMED)}
"""Every scheme that can be solved."""

__all__ = ["BY_NAME", "SCHEMES", "Scheme"]
