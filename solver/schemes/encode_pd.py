"""Images encoded on units of their own, then prefill and decode apart: E -> P -> D (sections 9.1.3 and 9.7.1)."""

from solver.schemes.base import Scheme
from solver.schemes.pd_direct import legs
from solver.units import AFTER_ENCODE, DECODE, ENCODE

SCHEME = Scheme(
    "encode-pd", (ENCODE, AFTER_ENCODE, DECODE), legs, "handing features of images, then the KV over directly"
)
