"""Full replicas: a unit runs prefill and decode of its own requests in turn (section 9.1.1)."""

from solver.schemes.base import Scheme
from solver.units import REPLICA

SCHEME = Scheme("replicas", (REPLICA,), None, "each GPU serving whole requests, prefill and decode in turn")
