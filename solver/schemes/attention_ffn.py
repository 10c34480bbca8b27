"""Attention and feed-forward networks on GPUs of their own, of whole requests or of decode alone (section 9.3.1)."""

from solver.schemes.base import Scheme
from solver.schemes.pd_direct import legs
from solver.units import APART, APART_DECODE, PREFILL

SCHEME = Scheme(
    "attention-ffn",
    (APART, PREFILL, APART_DECODE),
    legs,
    "attention handing every layer to GPUs with the feed-forward networks",
)
