"""Deployment schemes: one file each. A scheme says which units it is made of and how they hand state over."""

from solver.schemes import chunked, pd_direct, pd_pooled, replicas
from solver.schemes.base import Scheme

SCHEMES: tuple[Scheme, ...] = (replicas.SCHEME, chunked.SCHEME, pd_direct.SCHEME, pd_pooled.SCHEME)
"""Every scheme that can be solved, in the order in which tables show them."""

BY_NAME = {scheme.name: scheme for scheme in SCHEMES}

__all__ = ["BY_NAME", "SCHEMES", "Scheme"]
