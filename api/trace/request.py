"""What the options of `inferplan trace` ask for, every mistake told at once."""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from api import planfile
from models.errors import BadInput, Problem, tried
from models.trace.chunks import Trace
from models.trace.reading import Options
from models.units import BYTES, TIME, QuantityError, parse
from solver.trace.analysis import Asked, WarmUp
from solver.trace.planned import Planned, planned
from solver.trace.reuse import HOT_SHARE
from solver.trace.writes import Drive

T = TypeVar("T")
MOST_BLOCKS = 10**15
_CAPACITY = "blocks, or with their unit tokens or bytes, e.g. 5859, 3000000 tokens or 64 GB"


@dataclass(frozen=True)
class Request:
    """The options, read and checked; capacities are texts still, since the trace tells how large a block is."""

    reading: Options
    warm_up: WarmUp
    weight: str
    capacities: tuple[str, ...]
    retentions: tuple[float, ...]
    token_bytes: float | None
    hot_share: float
    tiers: tuple[str, str] | None
    admission: int | None
    drive: Drive | None
    snippet: bool
    """Whether the workload is told as an instance has it, in place of all else."""
    steady: bool
    plan: Planned | None
    """Whose tiers are replayed."""
    scaled: bool


def request(given: argparse.Namespace) -> Request:
    """Everything that the options say. Raises BadInput with every problem found."""
    problems: list[Problem] = []

    def option(name: str, text: str | None, read: Callable[[str], T]) -> T | None:
        return None if text is None else tried(lambda: _reading(name, text, read), problems)

    block = option("--block-tokens", given.block_tokens, lambda text: _whole(text, 1, 10**6))
    columns = option("--columns", given.columns, _columns) or {}
    warm_up = option("--warm-up", given.warm_up, _warm_up) or WarmUp()
    retentions = option("--ttl", given.ttl, lambda text: tuple(_time(part) for part in _parts(text))) or ()
    token_bytes = option("--kv-bytes-per-token", given.kv_bytes_per_token, _bytes)
    hot = option("--hot", given.hot, _share)
    admission = option("--admission", given.admission, lambda text: _whole(text, 1, MOST_BLOCKS))
    drive = option("--drive", given.drive, _drive)
    capacities = option("--capacities", given.capacities, lambda text: tuple(_parts(text))) or ()
    problems.extend(_combined(given))
    plan = (
        None
        if given.plan is None
        else tried(lambda: planned(planfile.read(given.plan, "--plan"), given.workload), problems)
    )
    if problems:
        raise BadInput(problems)
    reading = Options(
        format=given.format,
        block_tokens=block,
        columns=columns,
        time_unit=given.time_unit,
        partial=given.partial_blocks,
        skip_bad=given.skip_bad,
        sort=given.sort,
        spread=given.spread,
        sessions=given.sessions,
    )
    tiers = None if given.dram is None else (given.dram, given.ssd)
    share = HOT_SHARE if hot is None else hot
    how = (given.reuse, not given.as_counted, plan, given.scale != "no")
    return Request(
        reading, warm_up, given.weight, capacities, retentions, token_bytes, share, tiers, admission, drive, *how
    )


def of_trace(asked: Request, trace: Trace) -> Asked:
    """The question with its capacities in blocks of the trace. Raises BadInput."""
    problems: list[Problem] = []
    if trace.block_tokens is None:
        asked_of_blocks = (
            ("--capacities", asked.capacities),
            ("--dram", asked.tiers),
            ("--ttl", asked.retentions),
            ("--reuse", asked.snippet),
            ("--plan", asked.plan),
        )
        for name, stated in asked_of_blocks:
            if stated:
                said = "needs blocks, and the trace tells of none"
                problems.append(Problem(name, said, None, "a trace with hash_ids, or --sessions --block-tokens N"))
        if problems:
            raise BadInput(problems)
        return Asked(asked.warm_up)

    size = trace.block_tokens

    def blocks(name: str, text: str) -> float:
        read = tried(lambda: _reading(name, text, lambda text: _capacity(text, size, asked.token_bytes)), problems)
        return read or 0.0

    capacities = tuple(blocks("--capacities", text) for text in asked.capacities)
    dram, ssd = (blocks("--dram", asked.tiers[0]), blocks("--ssd", asked.tiers[1])) if asked.tiers else (None, None)
    if problems:
        raise BadInput(problems)
    return Asked(asked.warm_up, capacities, asked.retentions, asked.hot_share, dram, ssd, asked.admission)


def _combined(given: argparse.Namespace) -> list[Problem]:
    problems = []
    if (given.dram is None) is not (given.ssd is None):
        alone = "--dram" if given.ssd is None else "--ssd"
        problems.append(Problem(alone, "stands alone", None, "--dram and --ssd, or neither"))
    for name, value in (("--admission", given.admission), ("--drive", given.drive)):
        if value is not None and given.dram is None and given.ssd is None:
            problems.append(Problem(name, "is about writes to a second tier", value, "--dram and --ssd beside it"))
    for name, value in (("--workload", given.workload), ("--scale", given.scale)):
        if value is not None and given.plan is None:
            problems.append(Problem(name, "is about a plan that is replayed", value, "--plan beside it"))
    if given.as_counted and not given.reuse and not given.json:
        problems.append(Problem("--as-counted", "is about the workload of an instance", None, "--reuse beside it"))
    if given.drive is not None and given.kv_bytes_per_token is None:
        problems.append(Problem("--drive", "needs bytes of a token", given.drive, "--kv-bytes-per-token beside it"))
    return problems


# --- values -------------------------------------------------------------------------------------------


class _Unfit(Exception):  # noqa: N818
    """A value that does not fit; what would."""


def _reading(name: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text.strip())
    except QuantityError as error:
        raise BadInput([Problem(name, error.reason, text, error.accepted)]) from None
    except _Unfit as unfit:
        raise BadInput([Problem(name, "does not fit", text, str(unfit))]) from None


def _number(text: str, accepted: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _Unfit(accepted) from None


def _whole(text: str, low: int, high: int) -> int:
    accepted = f"a whole number from {low:,} to {high:,}"
    value = _number(text, accepted)
    if not (low <= value <= high and value == int(value)):
        raise _Unfit(accepted)
    return int(value)


def _share(text: str) -> float:
    percent = text.endswith("%")
    value = _number(text.removesuffix("%"), "a share, e.g. 0.05 or 5 %") * (0.01 if percent else 1.0)
    if not 0.0 < value <= 1.0:
        raise _Unfit("a share above 0, at most 1")
    return value


def _time(text: str) -> float:
    value = parse(text, TIME)
    if not 0.0 <= value <= 1e9:
        raise _Unfit("a time from 0 s to 1e9 s")
    return value


def _bytes(text: str) -> float:
    """Bytes of a token: a size, or a plain number."""
    value = float(text) if text.replace(".", "", 1).isdecimal() else parse(text, BYTES)
    if not 1.0 <= value <= 1e12:
        raise _Unfit("1 B to 1 TB")
    return value


def _parts(text: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise _Unfit("values between commas")
    return parts


def _columns(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in _parts(text):
        field, equals, name = (piece.strip() for piece in part.partition("="))
        if not equals or not field or not name or field in found:
            raise _Unfit("FIELD=NAME,... with each of time, input, output, blocks, session once at most")
        found[field] = name
    return found


def _warm_up(text: str) -> WarmUp:
    accepted = "a share (50 %), a time (10 min) or a number of requests (1000)"
    if text.endswith("%"):
        value = _number(text.removesuffix("%"), accepted) / 100.0
        if 0.0 <= value < 1.0:
            return WarmUp(share=value)
        raise _Unfit("a share from 0 % to below 100 %")
    digits = text.removesuffix("requests").strip()
    if digits.isdecimal() and len(digits) <= 15:
        return WarmUp(requests=int(digits))
    if not text[:1].isdigit():
        raise _Unfit(accepted)
    return WarmUp(seconds=_time(text))


def _capacity(text: str, block_tokens: int, token_bytes: float | None) -> float:
    """Whole blocks that fit."""
    number = text
    size = 1.0
    for ending, each in (("blocks", 1.0), ("block", 1.0), ("tokens", float(block_tokens))):
        if text.endswith(ending):
            number, size = text.removesuffix(ending).strip(), each
            break
    if number.isdecimal() and len(number) <= 18:
        blocks = int(number) / size
    elif number != text or not text[:1].isdigit():
        raise _Unfit(_CAPACITY)
    else:
        value = parse(text, BYTES)
        if token_bytes is None:
            raise _Unfit("bytes only with --kv-bytes-per-token; else blocks or tokens")
        blocks = value / (token_bytes * block_tokens)
    if not 0.0 <= blocks <= MOST_BLOCKS:
        raise _Unfit(f"at most {MOST_BLOCKS:,} blocks")
    return float(math.floor(blocks * (1.0 + 1e-12)))


def _drive(text: str) -> Drive:
    accepted = "capacity, whole writes a day, years, e.g. 7.68 TB,1/day,5 years"
    parts = _parts(text)
    if len(parts) != 3 or not parts[1].endswith("/day"):
        raise _Unfit(accepted)
    capacity, years = parse(parts[0], BYTES), parse(parts[2], TIME) / (365.0 * 86400.0)
    often = _number(parts[1].removesuffix("/day"), accepted)
    if not (capacity >= 1e9 and 0.0 < often <= 1e3 and 0.0 < years <= 100.0):
        raise _Unfit(accepted)
    return Drive(capacity, often, years)
