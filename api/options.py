"""Values of options of the command line, in SI units; what is refused says what would be accepted."""

import argparse


def _number(text: str, accepted: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:  # also refuses nan
        raise argparse.ArgumentTypeError(f"{text!r} is not {accepted}")
    return value


def _whole(text: str, low: int, high: int) -> int:
    accepted = f"a whole number from {low} to {high}"
    value = _number(text, accepted, low, high)
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not {accepted}")
    return int(value)


def seconds(text: str) -> float:
    """A limit of time, in s."""
    return _number(text.removesuffix("s").strip(), "a number of seconds from 0.01 to 1e6", 0.01, 1e6)


def pause(text: str) -> float:
    """A time that may be none, in s."""
    return _number(text.removesuffix("s").strip(), "a number of seconds from 0 to 1e6", 0.0, 1e6)


def periods(text: str) -> int:
    """A count of periods."""
    return _whole(text, 1, 100)


def wait(text: str) -> float:
    """A time with its unit, in s."""
    from models.units import TIME, QuantityError, parse

    try:
        value = parse(text, TIME)
    except QuantityError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0.0 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 0 s to 1e9 s, e.g. 10 s")
    return value


def share(text: str) -> float:
    """A part of a whole."""
    return _number(text, "a share from 0 to 1", 0.0, 1.0)


def seed(text: str) -> int:
    """The seed of random draws."""
    return _whole(text, 0, 2**31 - 1)
