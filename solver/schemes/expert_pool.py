"""Experts in a pool of their own, for GPUs with attention, of whole requests or of decode alone (section 9.3.4)."""

from solver.schemes.base import Scheme
from solver.schemes.pd_direct import legs
from solver.units import POOLED, POOLED_DECODE, PREFILL

SCHEME = Scheme(
    "expert-pool", (POOLED, PREFILL, POOLED_DECODE), legs, "attention sending rows to a pool of experts in every layer"
)
