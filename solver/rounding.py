"""Limits as people read them: four digits, rounded to the side on which they still hold."""

import math
from collections.abc import Callable


def text(value: float) -> str:
    """Four significant digits, never in exponent form."""
    return f"{float(f'{value:.4g}'):,.10g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.4g}"


def up(value: float) -> float:
    """The least number of four digits that is not below ``value``."""
    return _rounded(value, math.ceil)


def down(value: float) -> float:
    """The largest number of four digits that is not above ``value``."""
    return _rounded(value, math.floor)


def _rounded(value: float, whole: Callable[[float], int]) -> float:
    if not 0.0 < value < math.inf:
        return value
    exponent = math.floor(math.log10(value)) - 3
    # a value that has four digits but for rounding noise is itself
    digits = value / 10.0**exponent
    near = round(digits)
    return float(f"{near if abs(digits - near) < 1e-6 else whole(digits)}e{exponent}")
