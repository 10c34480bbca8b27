"""Numbers and tables as people read them. JSON never goes through here."""

from collections.abc import Sequence

from models.units import GIB


def number(value: float | None, digits: int = 3) -> str:
    """A number with ``digits`` significant digits, never in exponent form below 10^15; a dash when unknown."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e+" in text and abs(value) < 1e15 else text


def rate(value: float | None) -> str:
    """Requests/s with two decimals, more when it is small."""
    if value is None:
        return "-"
    return f"{value:,.2f}" if value >= 0.1 or value == 0 else number(value)


def price(value: float | None) -> str:
    """Money with two decimals; three digits when it is small."""
    if value is None:
        return "-"
    return f"{value:,.2f}" if value >= 0.2 or value == 0 else number(value)


def percent(share: float) -> str:
    """A share with one decimal."""
    return f"{100.0 * share:.1f} %"


def seconds(value: float | None) -> str:
    """A time in the unit that suits it."""
    if value is None:
        return "-"
    for unit, size, digits in (("us", 1e-6, 1), ("ms", 1e-3, 1)):
        if 0 < value < 1000.0 * size:
            return f"{value / size:.{digits}f} {unit}"
    return f"{value:.2f} s" if value < 100 else f"{value:,.0f} s"


def gibibytes(value: float) -> str:
    """Bytes in GiB; three decimals below 10."""
    amount = value / GIB
    return f"{amount:.1f} GiB" if amount >= 10 else f"{amount:.3f} GiB"


def gigabytes_per_second(value: float) -> str:
    """A byte rate in GB/s."""
    return number(value / 1e9)


def table(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset(), indent: str = " ") -> list[str]:
    """Rows as aligned columns, two spaces apart; columns in ``right`` are aligned to the right."""
    if not rows:
        return []
    columns = max(len(row) for row in rows)
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(len(row[i]) for row in full) for i in range(columns)]
    return [
        (
            indent
            + "  ".join(
                c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
            )
        ).rstrip()
        for row in full
    ]


def wrap(text: str, indent: str = "  ", width: int = 100) -> list[str]:
    """Text as lines of at most ``width`` characters."""
    import textwrap

    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)


def plural(count: int, noun: str) -> str:
    """`1 GPU`, `2 GPUs`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
