"""Chunked prefill: prompt chunks ride on the idle compute of decode steps, ideally overlapped (section 9.2.3)."""

from solver.schemes.base import Scheme
from solver.units import CHUNKED

SCHEME = Scheme("chunked", (CHUNKED,), None, "each GPU serving whole requests, prompt chunks riding on decode steps")
