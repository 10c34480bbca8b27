"""Experts in host memory, computed by the CPU or moved to the GPU by their rows (sections 9.3.2 and 9.3.3)."""

from solver.schemes.base import Scheme
from solver.units import HOSTED

SCHEME = Scheme("cpu-experts", (HOSTED,), None, "each unit serving whole requests with experts in host memory")
