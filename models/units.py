"""Quantities with units: the text `25 GB/s` becomes the float 25e9, bytes per second.

`parse` is the whole of the reading; models.quantities makes field types of it.

pint was considered and not used: in its default registry byte is dimensionless, Gb is gilbert, and
there is no money.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from models.errors import nearest, shown

# --- unit table -------------------------------------------------------------------------------------

GIB = 2.0**30
"""Bytes; for messages."""
BASES = ("second", "byte", "FLOP", "token", "request", "watt", "money")
Powers = tuple[int, ...]
"""Exponents of BASES, in that order."""


def _powers(**exponents: int) -> Powers:
    return tuple(exponents.get(base, 0) for base in BASES)


class Unit(NamedTuple):
    """One unit: its exact size in base units and the exponents of those."""

    factor: Fraction
    powers: Powers


def _table() -> dict[str, Unit]:
    """Every unit by its exact, case-sensitive spelling. One money is one unit of the user's currency."""
    second, joule, byte = _powers(second=1), _powers(watt=1, second=1), _powers(byte=1)
    table: dict[str, tuple[float | Fraction, Powers]] = {
        **dict.fromkeys(("token", "tokens"), (1, _powers(token=1))),
        **dict.fromkeys(("request", "requests"), (1, _powers(request=1))),
        **dict.fromkeys(CURRENCIES, (1, _powers(money=1))),
        **dict.fromkeys(("year", "years"), (365 * 86400, second)),  # 8760 h, as costs are reckoned
        **dict.fromkeys(("week", "weeks"), (7 * 86400, second)),
        **dict.fromkeys(("day", "days"), (86400, second)),
        **dict.fromkeys(("h", "hour", "hours"), (3600, second)),
        "min": (60, second),
        "s": (1, second),
        "ms": (Fraction(1, 10**3), second),
        **dict.fromkeys(("us", "\u00b5s", "\u03bcs"), (Fraction(1, 10**6), second)),  # micro sign, mu
        "ns": (Fraction(1, 10**9), second),
        "%": (Fraction(1, 100), _powers()),
    }
    for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E")):
        table[prefix + "B"] = (1000**power, byte)
        table[prefix + "bit"] = (Fraction(1000**power, 8), byte)  # in rates only, see _value
        table[prefix + "FLOP"] = (1000**power, _powers(FLOP=1))
        table[prefix + "W"] = (1000**power, _powers(watt=1))
        table[prefix + "Wh"] = (3600 * 1000**power, joule)
        table[prefix + "J"] = (1000**power, joule)
        if prefix:
            table[prefix.upper() + "iB"] = (1024**power, byte)
    return {name: Unit(Fraction(factor), powers) for name, (factor, powers) in table.items()}


CURRENCIES = ("USD", "EUR", "CNY", "GBP", "JPY", "credit", "credits", "$", "\u20ac")
UNITS = _table()

# --- dimensions -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dimension:
    """What a field measures.

    name: with its article, for messages: "a byte rate".
    powers: exponents of BASES.
    base: the unit with factor 1 in which values are held, "B/s".
    examples: texts that fit; messages and the JSON schema name them.
    written: the unit for serialised text where that is exact, else `base` serves.
    implied: the unit that may be left out before the slash.
    """

    name: str
    powers: Powers
    base: str
    examples: tuple[str, ...]
    written: str = ""
    implied: str = ""

    @property
    def such_as(self) -> str:
        """The examples as they end a message: "e.g. 25 GB/s, 900 MB/s or 200 Gbit/s"."""
        *most, last = self.examples
        return f"e.g. {', '.join(most)} or {last}"


BYTES = Dimension("a size in bytes", _powers(byte=1), "B", ("80 GB", "1.125 GiB", "7.68 TB"))
BYTE_RATE = Dimension("a byte rate", _powers(byte=1, second=-1), "B/s", ("25 GB/s", "900 MB/s", "200 Gbit/s"))
FLOP_RATE = Dimension("a compute rate", _powers(FLOP=1, second=-1), "FLOP/s", ("312 TFLOP/s", "2 PFLOP/s"))
TIME = Dimension("a time", _powers(second=1), "s", ("8 ms", "5 us", "15 min", "26 weeks"))
REQUEST_RATE = Dimension(
    "a request rate", _powers(request=1, second=-1), "/s", ("3.5/s", "100/min"), implied="requests"
)
MONEY_RATE = Dimension("a price per time", _powers(money=1, second=-1), "/s", ("2.5 USD/h", "1.40/h"), "/h", "credits")
MONEY = Dimension("an amount of money", _powers(money=1), "credits", ("250000 USD", "40 EUR", "5 credits"))
POWER = Dimension("a power", _powers(watt=1), "W", ("700 W", "800 kW"))
ENERGY_PRICE = Dimension(
    "a price per energy",
    _powers(money=1, watt=-1, second=-1),
    "/J",
    ("0.11/kWh", "0.11 USD/kWh"),
    "/kWh",
    "credits",
)
SHARE = Dimension("a share", _powers(), "", ("0.5", "50 %"))
# Only to name what the user wrote; no field is measured in these.
_OTHER = (
    Dimension("a number of tokens", _powers(token=1), "tokens", ()),
    Dimension("a token rate", _powers(token=1, second=-1), "tokens/s", ()),
    Dimension("a compute amount", _powers(FLOP=1), "FLOP", ()),
    Dimension("an energy", _powers(watt=1, second=1), "J", ()),
    Dimension("a number of requests", _powers(request=1), "requests", ()),
    Dimension("a plain rate", _powers(second=-1), "/s", ()),
    Dimension("a rate per energy", _powers(watt=-1, second=-1), "/J", ()),
)
_FIELDS = (BYTES, BYTE_RATE, FLOP_RATE, TIME, REQUEST_RATE, MONEY_RATE, MONEY, POWER, ENERGY_PRICE, SHARE)
_NAMES = {dimension.powers: dimension.name for dimension in (*_FIELDS, *_OTHER)}

# --- reading ----------------------------------------------------------------------------------------

LONGEST = 80
"""Characters in the longest text read as a quantity; keeps exact arithmetic on its digits cheap."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BIT_OR_BYTE = re.compile(r"[kKmMgGtTpPeE]b")
_NEAR_MISSES = {
    **{"m": '"min" or "ms"', "d": '"day"', "y": '"year"', "yr": '"year"', "hr": '"h"', "hrs": '"h"'},
    **dict.fromkeys(("sec", "secs", "second", "seconds"), '"s"'),
    **dict.fromkeys(("mins", "minute", "minutes"), '"min"'),
    **dict.fromkeys(("rps", "qps"), '"/s"'),
}


class QuantityError(ValueError):
    """A value is not the quantity needed.

    str() is the whole message, `"25 GB/s" is a byte rate; a request rate is needed, e.g. 3.5/s`.
    reason: its first part, "is a byte rate".
    accepted: what would have been right, "a request rate, e.g. 3.5/s".
    """

    def __init__(self, value: object, reason: str, needed: str, such_as: str) -> None:
        super().__init__(f'"{shown(value)}" {reason}; {needed} is needed, {such_as}')
        self.reason = reason
        self.accepted = f"{needed}, {such_as}"


def parse(text: object, dimension: Dimension) -> float:
    """The quantity written in `text`, in SI units (s, B, FLOP, W, J, money), correctly rounded.

    `text` is a number and a unit, "25 GB/s"; a share may also be a plain number. No bounds are applied.
    Raises QuantityError, a ValueError, where `text` is anything else; it says what would fit.
    """
    try:
        return _value(text, dimension)
    except _UnreadableError as unreadable:
        raise QuantityError(text, str(unreadable), dimension.name, dimension.such_as) from None


class _UnreadableError(Exception):
    """Why a text is no quantity, as a verb phrase."""


def _value(text: object, dimension: Dimension) -> float:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise _UnreadableError("is not a quantity")
    if not isinstance(text, str):
        if dimension.base:
            raise _UnreadableError("has no unit")
        return _finite(text)
    number, unit = _split(text.strip())
    factor, powers, implied = _factor(unit)
    if implied and dimension.implied:
        powers = tuple(a + b for a, b in zip(powers, UNITS[dimension.implied].powers, strict=True))
    if not unit and dimension.base:
        raise _UnreadableError("has no unit")
    if powers != dimension.powers or ("/" in unit and not dimension.base):
        # Named without the implied unit: a bare "3.5/s" is a plain rate, whatever was needed.
        name = _NAMES.get(_factor(unit)[1]) if dimension.base else None
        raise _UnreadableError(f"is {name}" if name else f'is measured in "{unit}"')
    if unit.endswith("bit"):
        raise _UnreadableError("counts bits, which are for rates only")
    return _finite(number * factor)


def _finite(number: float | Fraction) -> float:
    try:
        value = float(number)
    except OverflowError:
        raise _UnreadableError("is too large to represent") from None
    if value - value != 0:  # infinite or not a number
        raise _UnreadableError("is not a finite number")
    return value + 0.0  # turns -0.0 into 0.0


def _split(text: str) -> tuple[Fraction, str]:
    if not text:
        raise _UnreadableError("is empty")
    if len(text) > LONGEST:
        raise _UnreadableError(f"is longer than {LONGEST} characters")
    match = _NUMBER.match(text)
    if match is None:
        is_word = re.match(r"[+-]?\.?(nan|inf)", text, re.IGNORECASE)
        raise _UnreadableError("is not a finite number" if is_word else "does not start with a number")
    digits, unit = match.group(), text[match.end() :].strip()
    if unit[:1] in (",", "_"):
        raise _UnreadableError(f'has "{unit[0]}" in its number: write the digits without separators')
    if re.match("[xX]", unit):
        raise _UnreadableError("is not a decimal number")
    if any(character.isdigit() for character in unit):
        raise _UnreadableError("holds more than one number")
    # Through float first: a Fraction of 1e999999999 would fill the memory.
    if _finite(float(digits)) == 0:
        if re.match("[+-]?[0.]*[1-9]", digits):
            raise _UnreadableError("is too small to represent")
        return Fraction(0), unit
    return Fraction(digits), unit


def _factor(unit: str) -> tuple[Fraction, Powers, bool]:
    """Factor and powers of "GB/s", and whether the unit before the slash was left out."""
    top, slash, bottom = (part.strip() for part in unit.partition("/"))
    upper = _unit(top, slash) if top else Unit(Fraction(1), _powers())
    if not slash:
        return *upper, False
    if not bottom or "/" in bottom:
        raise _UnreadableError("has more than one slash" if bottom else "has nothing after the slash")
    lower = _unit(bottom, "")
    if "%" in (top, bottom):
        raise _UnreadableError("has a percentage in a rate")
    powers = tuple(a - b for a, b in zip(upper.powers, lower.powers, strict=True))
    return upper.factor / lower.factor, powers, not top


def _unit(symbol: str, slash: str) -> Unit:
    if symbol in UNITS:
        return UNITS[symbol]
    prefix = symbol[:1].upper().replace("K", "k")
    if _BIT_OR_BYTE.fullmatch(symbol):
        instead = f"{prefix}bit/s or {prefix}B/s" if slash else f"{prefix}B"
        raise _UnreadableError(f'has the ambiguous unit "{symbol}": write {instead}')
    per_second = re.fullmatch(r"(?i:(.*[^p])ps|(.?flop)s)", symbol)
    if symbol in _NEAR_MISSES:
        hint = f"did you mean {_NEAR_MISSES[symbol]}?"
    elif _BIT_OR_BYTE.fullmatch(symbol[:-2]) and per_second:
        hint = f'did you mean "{prefix}bit/s"?'
    elif per_second:
        hint = nearest(per_second[1] or per_second[2], UNITS).replace('"?', '/s"?')
    else:
        hint = nearest(symbol, UNITS)
    raise _UnreadableError(f'has the unknown unit "{symbol}"' + (f" ({hint})" if hint else ""))


# --- writing ----------------------------------------------------------------------------------------


def write(value: float, dimension: Dimension) -> str:
    """Text that `parse` turns back into exactly `value` (SI units), in a readable unit if one serves."""
    for unit in (dimension.written, dimension.base):
        number = float(Fraction(value) / _factor(unit)[0])
        for digits in (f"{number:.15g}", repr(number).removesuffix(".0")):
            text = digits + ("" if unit.startswith("/") else " ") + unit
            if unit and parse(text, dimension) == value:
                return text
    raise ValueError(f"{value!r} cannot be written as {dimension.name}")
