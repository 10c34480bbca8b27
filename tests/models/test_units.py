import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from models import quantities, units
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
)

RATE = "a byte rate is needed, e.g. 25 GB/s, 900 MB/s or 200 Gbit/s"
WITH_UNIT = (BYTES, BYTE_RATE, FLOP_RATE, TIME, REQUEST_RATE, MONEY_RATE, MONEY, POWER, ENERGY_PRICE)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("25 GB/s", BYTE_RATE, 25e9),
        ("25GB/s", BYTE_RATE, 25e9),
        (" 25 GB / s ", BYTE_RATE, 25e9),
        ("200 Gbit/s", BYTE_RATE, 25e9),
        ("1 bit/s", BYTE_RATE, 0.125),
        ("1.125 GiB", BYTES, 1207959552.0),
        ("1 KiB", BYTES, 1024.0),
        ("1 GB", BYTES, 1e9),
        ("7.68 TB", BYTES, 7.68e12),
        ("0 B", BYTES, 0.0),
        ("5 us", TIME, 5e-6),
        ("5 \u00b5s", TIME, 5e-6),
        ("5 \u03bcs", TIME, 5e-6),
        ("8 ms", TIME, 0.008),
        ("15 min", TIME, 900.0),
        ("8 weeks", TIME, 4838400.0),
        ("26 weeks", TIME, 15724800.0),
        ("1 year", TIME, 31536000.0),
        ("4 years", TIME, 126144000.0),
        ("+1.5e3 s", TIME, 1500.0),
        (".5 s", TIME, 0.5),
        ("1. s", TIME, 1.0),
        ("-3 s", TIME, -3.0),
        ("0e99 s", TIME, 0.0),
        ("3.5/s", REQUEST_RATE, 3.5),
        ("3.5 /s", REQUEST_RATE, 3.5),
        ("3.5 requests/s", REQUEST_RATE, 3.5),
        ("1 request/s", REQUEST_RATE, 1.0),
        ("12/s", REQUEST_RATE, 12.0),
        ("100/min", REQUEST_RATE, 100 / 60),
        ("5000/day", REQUEST_RATE, 5000 / 86400),
        ("1/h", REQUEST_RATE, 1 / 3600),
        ("1/h", MONEY_RATE, 1 / 3600),
        ("2.5 USD/h", MONEY_RATE, 2.5 / 3600),
        ("2 $/h", MONEY_RATE, 2 / 3600),
        ("2 €/h", MONEY_RATE, 2 / 3600),
        ("1 credit/h", MONEY_RATE, 1 / 3600),
        ("1.40/h", MONEY_RATE, 1.4 / 3600),
        ("8760 EUR/year", MONEY_RATE, 1 / 3600),
        ("100 JPY", MONEY, 100.0),
        ("0.11/kWh", ENERGY_PRICE, 0.11 / 3.6e6),
        ("0.11 USD/kWh", ENERGY_PRICE, 0.11 / 3.6e6),
        ("800 kW", POWER, 8e5),
        ("1 kWh/h", POWER, 1000.0),
        ("312 TFLOP/s", FLOP_RATE, 312e12),
        ("50 %", SHARE, 0.5),
        ("50%", SHARE, 0.5),
        ("0.5", SHARE, 0.5),
        (0.5, SHARE, 0.5),
        (1, SHARE, 1.0),
        (-0.0, SHARE, 0.0),
    ],
)
def test_parse(text: object, dimension: Dimension, value: float) -> None:
    result = parse(text, dimension)
    assert type(result) is float
    assert result == value
    assert math.copysign(1, result) == math.copysign(1, value)


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        (
            "25 GB/s",
            REQUEST_RATE,
            '"25 GB/s" is a byte rate; a request rate is needed, e.g. 3.5/s or 100/min',
        ),
        ("3.5/s", BYTE_RATE, f'"3.5/s" is a plain rate; {RATE}'),
        (
            "200 Gb/s",
            BYTE_RATE,
            f'"200 Gb/s" has the ambiguous unit "Gb": write Gbit/s or GB/s; {RATE}',
        ),
        ("25 gb/s", BYTE_RATE, f'"25 gb/s" has the ambiguous unit "gb": write Gbit/s or GB/s; {RATE}'),
        ("25 kb/s", BYTE_RATE, "write kbit/s or kB/s"),
        ("80 Gb", BYTES, 'has the ambiguous unit "Gb": write GB;'),
        ("200 Gbit", BYTES, "counts bits, which are for rates only; a size in bytes is needed"),
        ("25 GBps", BYTE_RATE, f'"25 GBps" has the unknown unit "GBps" (did you mean "GB/s"?); {RATE}'),
        ("200 Gbps", BYTE_RATE, '(did you mean "Gbit/s"?)'),
        ("25 gB/s", BYTE_RATE, '(did you mean "GB"?)'),
        ("80 gib", BYTES, '(did you mean "GiB"?)'),
        ("5 TFLOPS", FLOP_RATE, '(did you mean "TFLOP/s"?)'),
        ("5 FLOPS", FLOP_RATE, '(did you mean "FLOP/s"?)'),
        ("5 m", TIME, '"5 m" has the unknown unit "m" (did you mean "min" or "ms"?); a time is needed'),
        ("5 sec", TIME, '(did you mean "s"?)'),
        ("5 S", TIME, '(did you mean "s"?)'),
        ("3.5 rps", REQUEST_RATE, '(did you mean "/s"?)'),
        ("5 furlongs", TIME, 'has the unknown unit "furlongs"; a time is needed'),
        ("5 GB/furlong", BYTE_RATE, 'has the unknown unit "furlong"'),
        (25, BYTE_RATE, f'"25" has no unit; {RATE}'),
        (2.5, MONEY, '"2.5" has no unit; an amount of money is needed, e.g. 250000 USD, 40 EUR or 5 credits'),
        ("25", BYTE_RATE, f'"25" has no unit; {RATE}'),
        pytest.param(10**5000, BYTE_RATE, "has no unit", id="huge"),
        ("nan", TIME, "is not a finite number"),
        ("NaN GB/s", BYTE_RATE, "is not a finite number"),
        ("-.inf s", TIME, "is not a finite number"),
        ("1e400 s", TIME, "is not a finite number"),
        ("1e300 TB", BYTES, "is too large to represent"),
        ("1e999999999 s", TIME, "is not a finite number"),
        (math.nan, SHARE, "is not a finite number"),
        (math.inf, SHARE, "is not a finite number"),
        pytest.param(10**5000, SHARE, "is too large to represent", id="huge share"),
        ("1e-999999999 s", TIME, "is too small to represent"),
        (True, TIME, '"true" is not a quantity'),
        (True, SHARE, '"true" is not a quantity'),
        (None, TIME, '"null" is not a quantity'),
        ([1], TIME, "is not a quantity"),
        ("0x10 s", TIME, "is not a decimal number"),
        ("", TIME, '"" is empty'),
        ("  ", TIME, "is empty"),
        ("3 4 s", TIME, "holds more than one number"),
        ("3 s 4 s", TIME, "holds more than one number"),
        ("3-4 s", TIME, "holds more than one number"),
        ("1,000 GB", BYTES, 'has "," in its number: write the digits without separators'),
        ("1_000 GB", BYTES, 'has "_" in its number'),
        ("$2/h", MONEY_RATE, "does not start with a number"),
        ("GB", BYTES, "does not start with a number"),
        ("\u0663 s", TIME, "does not start with a number"),
        ("5/", REQUEST_RATE, "has nothing after the slash"),
        ("5 GB/s/s", BYTE_RATE, "has more than one slash"),
        ("5 GB/token", BYTES, 'is measured in "GB/token"'),
        ("5 tokens/s", REQUEST_RATE, "is a token rate"),
        ("5 %/s", REQUEST_RATE, "has a percentage in a rate"),
        ("5 GB/%", BYTES, "has a percentage in a rate"),
        ("5 h/h", SHARE, 'is measured in "h/h"'),
        ("5 USD/h", ENERGY_PRICE, "is a price per time; a price per energy is needed"),
        ("9" * 81, TIME, f'"{"9" * 79}…" is longer than 80 characters'),
    ],
)
def test_refused(text: object, dimension: Dimension, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is compared below
        parse(text, dimension)
    assert message in str(caught.value)
    assert str(caught.value).endswith(dimension.such_as)


def test_error_has_its_parts() -> None:
    with pytest.raises(QuantityError) as caught:
        parse("5 s", REQUEST_RATE)
    assert caught.value.reason == "is a time"
    assert caught.value.accepted == "a request rate, e.g. 3.5/s or 100/min"


@given(st.text(), st.sampled_from((*WITH_UNIT, SHARE)))
def test_any_text_gives_a_finite_number_or_a_quantity_error(text: str, dimension: Dimension) -> None:
    with contextlib.suppress(QuantityError):
        assert math.isfinite(parse(text, dimension))


@given(st.floats(0, 1e300, allow_subnormal=False), st.sampled_from(WITH_UNIT))
def test_written_text_parses_to_the_identical_float(value: float, dimension: Dimension) -> None:
    assert parse(units.write(value, dimension), dimension) == value


@given(st.decimals(0, 10**6, places=3), st.sampled_from(WITH_UNIT))
def test_decimal_text_is_rounded_correctly(number: object, dimension: Dimension) -> None:
    assert parse(f"{number} {dimension.base}", dimension) == float(str(number))


@pytest.mark.parametrize("dimension", [*WITH_UNIT, SHARE])
def test_examples_in_messages_are_right(dimension: Dimension) -> None:
    for example in dimension.examples:
        parse(example, dimension)


# --- field types ------------------------------------------------------------------------------------


class Everything(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, frozen=True)
    size: quantities.Bytes
    rate: quantities.BytesPerSecond
    compute: quantities.FlopPerSecond
    latency: quantities.Seconds
    arrivals: quantities.RequestsPerSecond
    price: quantities.MoneyPerSecond
    budget: quantities.Money
    power: quantities.Watts
    energy: quantities.MoneyPerJoule
    share: quantities.Share
    tokens: quantities.TokenCount
    count: quantities.Count
    limit: quantities.Seconds | None = None


TEXTS: dict[str, Any] = {
    "size": "1.125 GiB",
    "rate": "25 GB/s",
    "compute": "312 TFLOP/s",
    "latency": "8 ms",
    "arrivals": "3.5 requests/s",
    "price": "1.40 USD/h",
    "budget": "250000 USD",
    "power": "800 kW",
    "energy": "0.11/kWh",
    "share": "50 %",
    "tokens": "8192 tokens",
    "count": 4,
}
WRITTEN = {
    "size": "1207959552 B",
    "rate": "25000000000 B/s",
    "compute": "312000000000000 FLOP/s",
    "latency": "0.008 s",
    "arrivals": "3.5/s",
    "price": "1.4/h",
    "budget": "250000 credits",
    "power": "800000 W",
    "energy": "0.11/kWh",
    "share": 0.5,
    "tokens": 8192,
    "count": 4,
    "limit": None,
}


def test_model_reads_and_writes() -> None:
    model = Everything.model_validate(TEXTS)
    assert (model.rate, model.price, model.share, model.tokens) == (25e9, 1.4 / 3600, 0.5, 8192)
    assert model.model_dump() == WRITTEN
    assert Everything.model_validate(model.model_dump()) == model
    assert Everything.model_validate_json(model.model_dump_json()) == model


def test_json_schema_names_units() -> None:
    fields = Everything.model_json_schema()["properties"]
    assert fields["rate"] == {
        "type": "string",
        "title": "Rate",
        "description": "A byte rate: a number and its unit; at least 0 and at most 1e+18 B/s.",
        "examples": ["25 GB/s", "900 MB/s", "200 Gbit/s"],
    }
    assert fields["share"]["anyOf"][0] == {"type": "number", "minimum": 0.0, "maximum": 1.0}
    assert fields["tokens"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 10**9}
    assert fields["count"] == {"type": "integer", "minimum": 1, "maximum": 10**7, "title": "Count"}
    positive = TypeAdapter(quantities.PositiveSeconds).json_schema()
    assert positive["description"] == "A time: a number and its unit; above 0 and at most 1e+09 s."
    share = TypeAdapter(quantities.PositiveShare).json_schema()
    assert share["anyOf"][0] == {"type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0}


@pytest.mark.parametrize(
    ("kind", "value", "reason", "accepted"),
    [
        (quantities.Bytes, "25 GB/s", "is a byte rate", "a size in bytes, e.g. 80 GB, 1.125 GiB or 7.68 TB"),
        (quantities.Bytes, 5, "has no unit", "a size in bytes, e.g. 80 GB, 1.125 GiB or 7.68 TB"),
        (
            quantities.Watts,
            "1e300 W",
            "is too large",
            "a power of at most 1e+12 W, e.g. 700 W or 800 kW",
        ),
        (quantities.Watts, "-1 W", "is too small", "a power of at least 0 W, e.g. 700 W or 800 kW"),
        (quantities.Watts, "1e-30 W", "is too small", "a power of at least 1e-24 W, e.g. 700 W or 800 kW"),
        (quantities.PositiveWatts, "0 W", "is too small", "a power above 0 W, e.g. 700 W or 800 kW"),
        (quantities.Share, 50, "is too large", "a share of at most 1, e.g. 0.5 or 50 %"),
        (quantities.Share, "101%", "is too large", "a share of at most 1, e.g. 0.5 or 50 %"),
        (quantities.Share, -0.1, "is too small", "a share of at least 0, e.g. 0.5 or 50 %"),
        (quantities.PositiveShare, 0, "is too small", "a share above 0, e.g. 0.5 or 50 %"),
        (quantities.Share, False, "is not a quantity", "a share, e.g. 0.5 or 50 %"),
        (quantities.Count, 0, "is too small", "a whole number from 1 to 10000000, e.g. 8"),
        (quantities.Count, 10**7 + 1, "is too large", "a whole number from 1 to 10000000, e.g. 8"),
        pytest.param(
            quantities.Count,
            10**5000,
            "is too large",
            "a whole number from 1 to 10000000, e.g. 8",
            id="huge count",
        ),
        (quantities.Count, True, "is not a whole number", "a whole number from 1 to 10000000, e.g. 8"),
        (quantities.Count, 8.0, "is not a whole number", "a whole number from 1 to 10000000, e.g. 8"),
        (quantities.Count, "8", "is not a whole number", "a whole number from 1 to 10000000, e.g. 8"),
        (quantities.Count, "8 tokens", "is not a whole number", "a whole number from 1 to 10000000, e.g. 8"),
        (
            quantities.TokenCount,
            "1_000",
            "is not a whole number",
            "a whole number from 1 to 1000000000, e.g. 8192 or 8192 tokens",
        ),
        (
            quantities.TokenCount,
            "0 tokens",
            "is too small",
            "a whole number from 1 to 1000000000, e.g. 8192 or 8192 tokens",
        ),
    ],
)
def test_field_errors(kind: Any, value: object, reason: str, accepted: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    (detail,) = caught.value.errors()
    assert detail["type"] == "quantity"
    assert (detail["ctx"]["reason"], detail["ctx"]["accepted"]) == (reason, accepted)
    assert reason in detail["msg"]
    assert not detail["msg"].startswith("Value error")


def test_bound_message_is_complete() -> None:
    with pytest.raises(ValidationError, match='"1e300 GB/s" is too large to represent; a byte rate'):
        TypeAdapter(quantities.BytesPerSecond).validate_python("1e300 GB/s")
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(quantities.BytesPerSecond).validate_python("1e30 GB/s")
    assert caught.value.errors()[0]["msg"] == (
        '"1e30 GB/s" is too large; a byte rate of at most 1e+18 B/s is needed, e.g. 25 GB/s, 900 MB/s or 200 Gbit/s'
    )


@pytest.mark.parametrize(("value", "count"), [(1, 1), (8192, 8192), ("8192 tokens", 8192), ("1 token", 1)])
def test_token_count(value: object, count: int) -> None:
    assert TypeAdapter(quantities.TokenCount).validate_python(value, strict=True) == count


def test_writing_what_is_not_finite_is_refused() -> None:
    with pytest.raises((ValueError, OverflowError)):
        units.write(math.inf, TIME)
