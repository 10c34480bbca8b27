"""Units that run prefill and decode in turn: a request may stay, or be handed over between any two of them."""

from solver.schemes.base import Scheme
from solver.schemes.pd_direct import legs
from solver.units import HYBRID

SCHEME = Scheme("hybrid", (HYBRID,), legs, "each GPU running prefill and decode in turn and handing over what helps")
