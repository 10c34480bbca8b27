"""Field types of pydantic models made of quantities: floats in SI units with bounds, text with units at the door.

They serialise to text that parses back to the identical float.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from models.units import (
    BYTE_RATE,
    BYTES,
    ENERGY_PRICE,
    FLOP_RATE,
    MONEY,
    MONEY_RATE,
    POWER,
    REQUEST_RATE,
    SHARE,
    TIME,
    Dimension,
    QuantityError,
    parse,
    write,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Quantity:
    """Marks a float field as a quantity: `Annotated[float, Quantity(BYTE_RATE, gt=0)]`.

    Input is text as `parse` reads it; the field holds SI units, in which the bounds are given. Output
    (model_dump and JSON) is text again. Errors have the type "quantity" and the context keys reason
    and accepted, as in QuantityError.
    """

    dimension: Dimension
    ge: float = 0.0
    gt: float | None = None
    le: float = 1e24
    """Beyond any machine; keeps products and sums of a few such values finite."""
    smallest: float = 1e-24
    """Nearer to zero than this only zero itself is accepted; keeps quotients finite."""

    def read(self, value: object) -> float:
        """`value` in SI units. Raises QuantityError if it is unreadable or out of bounds."""
        number, unit = parse(value, self.dimension), f" {self.dimension.base}".rstrip()
        if number > self.le:
            reason, bound = "is too large", f"of at most {self.le:g}"
        elif self.gt is not None and number <= self.gt:
            reason, bound = "is too small", f"above {self.gt:g}"
        elif number < self.ge:
            reason, bound = "is too small", f"of at least {self.ge:g}"
        elif 0 < abs(number) < self.smallest:
            reason, bound = "is too small", f"of at least {self.smallest:g}"
        else:
            return number
        needed = f"{self.dimension.name} {bound}{unit}"
        raise QuantityError(value, reason, needed, self.dimension.such_as)

    def write(self, value: float) -> str | float:
        """What a model's output shows for the field's `value`."""
        return write(value, self.dimension) if self.dimension.base else value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            _reporting(self.read),
            handler(source),
            serialization=core_schema.plain_serializer_function_ser_schema(self.write),
        )

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        name, examples = self.dimension.name, list(self.dimension.examples)
        if self.dimension.base:
            low = f"above {self.gt:g}" if self.gt is not None else f"at least {self.ge:g}"
            limits = f"{low} and at most {self.le:g} {self.dimension.base}"
            description = f"{name[0].upper()}{name[1:]}: a number and its unit; {limits}."
            return {"type": "string", "description": description, "examples": examples}
        low_key, low_value = ("exclusiveMinimum", self.gt) if self.gt is not None else ("minimum", self.ge)
        number = {"type": "number", low_key: low_value, "maximum": self.le}
        return _number_or_text(number, "%", f"{name[0].upper()}{name[1:]}: a number, or a percentage.")


@dataclass(frozen=True)
class Whole:
    """Marks an int field as a count from 1 to `le`: `Annotated[int, Whole(10**7)]`.

    unit: a word the count may carry, in text such as "8192 tokens" or "1 token"; empty for none.
    """

    le: int
    unit: str = ""

    def read(self, value: object) -> int:
        """`value` as an int. Raises QuantityError if it is none, or out of bounds."""
        needed = f"a whole number from 1 to {self.le}"
        such_as = f"e.g. 8192 or 8192 {self.unit}s" if self.unit else "e.g. 8"
        match = re.fullmatch(rf"([0-9]{{1,80}}) ?{self.unit}s?", value) if isinstance(value, str) else None
        if self.unit and match:
            number = int(match[1])
        elif isinstance(value, bool) or not isinstance(value, int):
            raise QuantityError(value, "is not a whole number", needed, such_as)
        else:
            number = value
        if not 1 <= number <= self.le:
            raise QuantityError(value, f"is too {'small' if number < 1 else 'large'}", needed, such_as)
        return number

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_reporting(self.read), handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        number = {"type": "integer", "minimum": 1, "maximum": self.le}
        if not self.unit:
            return number
        return _number_or_text(number, f"{self.unit}s?", f"A number of {self.unit}s.")


def _number_or_text(number: dict[str, Any], unit: str, description: str) -> JsonSchemaValue:
    text = {"type": "string", "pattern": f"^[0-9.eE+-]+ ?{unit}$"}
    return {"anyOf": [number, text], "description": description}


def _reporting(read: Callable[[object], T]) -> Callable[[object], T]:
    """`read` with its errors as pydantic's own, which keep the message free of a "Value error" prefix."""

    def reporting(value: object) -> T:
        try:
            return read(value)
        except QuantityError as error:
            context = {"message": str(error), "reason": error.reason, "accepted": error.accepted}
            raise PydanticCustomError("quantity", "{message}", context) from None

    return reporting


# The bounds are far beyond any machine on both sides; within them no solve loses digits.
Bytes = Annotated[float, Quantity(BYTES, le=1e18)]
BytesPerSecond = Annotated[float, Quantity(BYTE_RATE, le=1e18)]
FlopPerSecond = Annotated[float, Quantity(FLOP_RATE, le=1e21)]
Seconds = Annotated[float, Quantity(TIME, le=1e9, smallest=1e-12)]
RequestsPerSecond = Annotated[float, Quantity(REQUEST_RATE, le=1e9, smallest=1e-9)]
MoneyPerSecond = Annotated[float, Quantity(MONEY_RATE, le=1e9, smallest=1e-12)]
Money = Annotated[float, Quantity(MONEY, le=1e18)]
Watts = Annotated[float, Quantity(POWER, le=1e12)]
MoneyPerJoule = Annotated[float, Quantity(ENERGY_PRICE, le=1e9)]
Share = Annotated[float, Quantity(SHARE, le=1.0)]

PositiveBytes = Annotated[float, Quantity(BYTES, gt=0.0, le=1e18, smallest=1.0)]
PositiveBytesPerSecond = Annotated[float, Quantity(BYTE_RATE, gt=0.0, le=1e18, smallest=1e3)]
PositiveFlopPerSecond = Annotated[float, Quantity(FLOP_RATE, gt=0.0, le=1e21, smallest=1e6)]
PositiveSeconds = Annotated[float, Quantity(TIME, gt=0.0, le=1e9, smallest=1e-6)]
PositiveRequestsPerSecond = Annotated[float, Quantity(REQUEST_RATE, gt=0.0, le=1e9, smallest=1e-9)]
PositiveWatts = Annotated[float, Quantity(POWER, gt=0.0, le=1e12)]
PositiveShare = Annotated[float, Quantity(SHARE, gt=0.0, le=1.0, smallest=1e-6)]
TinyShare = Annotated[float, Quantity(SHARE, gt=0.0, le=1.0, smallest=1e-15)]

TokenCount = Annotated[int, Whole(10**9, "token")]
Count = Annotated[int, Whole(10**7)]
