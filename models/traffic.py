"""How much arrives: from users, requests a day, or a file of arrivals to one rate; percentiles of windows.

A file of arrivals leaves its profile too: rates of stretches of equal length, in which many arrivals fall.

A window's rate is its requests over its length. The percentile is the smallest rate that so many of the windows do not
exceed (inverse distribution function). Without a file, counts of a window are taken to be Poisson, or, with a
`dispersion` above 1 (variance over mean of the counts), negative binomial.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from models import tabular
from models.errors import BadInput, Problem, path_text, shown
from models.quantities import Quantity
from models.units import REQUEST_RATE, TIME, QuantityError, parse, write

Place = tuple[str | int, ...]
SOURCES = ("rate", "users", "per_day", "arrivals")
DAY = 86400.0
PIECE, MOST_COUNT = 2**18, 2**27
MOST_WINDOWS = 10**7
MOST_STRETCHES, IN_A_STRETCH = 240, 20
"""Of a profile at most, and arrivals that fall in one on average at least."""
LONGEST = 1e9
"""Seconds that arrivals of a file may take."""
_WINDOWS = re.compile(r"p(\d{1,2}(?:\.\d+)?) of (\d+(?:\.\d+)?)[- ]?(s|second|min|minute|h|hour)s? windows?")
_SPAN = {"s": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}
_EXAMPLE = "e.g. p95 of 5-minute windows"


class Arrivals(NamedTuple):
    """Requests/s, how they follow, and the mean where they are those of a busy window."""

    rate: float
    text: str
    mean: float | None = None
    profile: list[dict[str, str]] | None = None


def settle(workload: dict[str, Any], path: Place, base: Path | None) -> list[Problem]:
    """Replace what ``workload`` says about its arrivals by ``rate``, ``rate_from`` and ``profile``, in place."""
    said = [key for key in SOURCES if key in workload]
    beside = [key for key in ("think_time", "plan_for", "dispersion") if key in workload]
    if said == ["rate"] and not beside:
        return []
    taken = {key: workload.pop(key) for key in (*said, *beside)}
    workload["rate"] = "1/s"  # stands in where something is wrong, so that nothing more is reported about it
    if len(said) != 1:
        message = "several of these stand side by side" if said else "missing"
        value = ", ".join(said) if said else None
        return [_problem((*path, "rate"), message, value, "one of rate, users with think_time, per_day, arrivals")]
    timed = [key for key in ("bursts", "profile") if key in workload]
    if "arrivals" in taken and timed:
        message = "stands beside a file of arrivals, which says when they come"
        return [_problem((*path, timed[0]), message, None, "one of the two")]
    try:
        found = _rate(taken, path, base)
    except BadInput as error:
        return list(error.problems)
    workload["rate"] = write(found.rate, REQUEST_RATE)
    workload["rate_from"] = found.text
    if found.mean is not None:
        workload["mean_rate"] = write(found.mean, REQUEST_RATE)
    if found.profile is not None:
        workload["profile"] = found.profile
    return []


def _rate(taken: dict[str, Any], path: Place, base: Path | None) -> Arrivals:
    """How much arrives. Raises BadInput."""
    if "think_time" in taken and "users" not in taken:
        raise _bad((*path, "think_time"), "stands without users", taken["think_time"], "users beside it")
    if "dispersion" in taken and ("plan_for" not in taken or "arrivals" in taken):
        message = "needs plan_for, and no arrivals file beside it"
        raise _bad((*path, "dispersion"), message, taken["dispersion"], _EXAMPLE)
    if "arrivals" in taken:
        return _from_file(taken, path, base)
    mean, text = _mean(taken, path)
    if "plan_for" not in taken:
        return Arrivals(mean, text)
    share, span, said = _window(taken["plan_for"], path)
    dispersion = taken.get("dispersion", 1.0)
    if isinstance(dispersion, bool) or not isinstance(dispersion, int | float) or not 1.0 <= dispersion <= 1e4:
        raise _bad((*path, "dispersion"), "is not a dispersion", dispersion, "a number from 1 (Poisson) to 1e4")
    count = _some(_count(mean * span, float(dispersion), share), taken, path)
    law = "Poisson" if dispersion == 1 else f"variance {dispersion:g} times the mean"
    return Arrivals(count / span, f"{said} at a mean of {text}: {count:,} requests in a window ({law})", mean)


def _mean(taken: dict[str, Any], path: Place) -> tuple[float, str]:
    if "rate" in taken:
        rate = _quantity(taken["rate"], REQUEST_RATE, (*path, "rate"), 1e-9)
        return rate, f"{rate:.6g} requests/s"
    if "per_day" in taken:
        return _number(taken["per_day"], (*path, "per_day"), "requests a day") / DAY, f"{taken['per_day']:,} a day"
    users = _number(taken["users"], (*path, "users"), "users")
    if "think_time" not in taken:
        raise _bad((*path, "think_time"), "missing: users need it", None, "time between answer and next request: 45 s")
    think = _quantity(taken["think_time"], TIME, (*path, "think_time"), 1e-6)
    return users / think, f"{users:,.10g} users, each with a request every {think:.6g} s at most (answers take no time)"


def _number(value: object, path: Place, noun: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value <= 1e13:
        raise _bad(path, f"is not a number of {noun}", value, f"a number of {noun} above 0")
    return float(value)


def _quantity(value: object, dimension: Any, path: Place, smallest: float) -> float:
    try:
        return Quantity(dimension, gt=0.0, le=1e9, smallest=smallest).read(value)
    except QuantityError as error:
        raise _bad(path, error.reason, value, error.accepted) from None


def _window(text: object, path: Place) -> tuple[float, float, str]:
    """Share of the windows, length of one in seconds, and the text itself."""
    match = _WINDOWS.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None or not float(match[1]) > 0.0 or not 0.0 < float(match[2]) * _SPAN[match[3]] <= 1e9:
        raise _bad((*path, "plan_for"), "is not a percentile of windows", text, _EXAMPLE)
    return float(match[1]) / 100.0, float(match[2]) * _SPAN[match[3]], str(text).strip()


def _count(mean: float, dispersion: float, share: float) -> int:
    """Smallest count that ``share`` of the windows do not exceed."""
    if mean > 1e6:  # the normal law is as good there as any figure shown
        from statistics import NormalDist

        return math.ceil(mean + NormalDist().inv_cdf(share) * math.sqrt(mean * dispersion) - 1e-9)
    import numpy as np

    poisson = dispersion < 1.0 + 1e-6
    size = math.inf if poisson else mean / (dispersion - 1.0)
    log = -mean if poisson else -size * math.log(dispersion)  # of the chance of no request
    done, start = 0.0, 0
    while start < MOST_COUNT:  # each chance from the one before: a piece at a time
        counts = np.arange(start, start + PIECE, dtype=float)
        ratios = mean / (counts + 1.0) if poisson else (counts + size) / (counts + 1.0) * (1.0 - 1.0 / dispersion)
        logs = np.concatenate(([log], log + np.cumsum(np.log(ratios))))
        total = done + np.cumsum(np.exp(logs[:-1]))
        if total[-1] >= share - 1e-12:
            return start + int(np.argmax(total >= share - 1e-12))
        done, log, start = float(total[-1]), float(logs[-1]), start + PIECE
    return MOST_COUNT


def _from_file(taken: dict[str, Any], path: Place, base: Path | None) -> Arrivals:
    place = (*path, "arrivals")
    times = tabular.times(taken["arrivals"], place, base)
    name = Path(str(taken["arrivals"])).name
    first, span = times[0], times[-1] - times[0]
    if not span > 1e-6:
        raise _bad(place, "all arrivals are in the same second", name, "arrivals over some time")
    if span > LONGEST:
        raise _bad(place, f"holds arrivals of {span:.3g} s", name, f"at most {LONGEST:.0e} s: numbers are seconds")
    since = [time - first for time in times]
    over_time = profile(since)
    mean = (len(times) - 1) / span
    if "plan_for" not in taken:
        return Arrivals(mean, f"mean of {len(times):,} arrivals in {name}", None, over_time)
    share, length, said = _window(taken["plan_for"], path)
    if span / length > MOST_WINDOWS:
        raise _bad((*path, "plan_for"), f"{span / length:.3g} windows", taken["plan_for"], f"at most {MOST_WINDOWS:,}")
    counts = windows(since, length)
    if not counts:
        raise _bad((*path, "plan_for"), f"{name} holds {span:.6g} s, less than a window", taken["plan_for"], _EXAMPLE)
    count = _some(percentile(counts, share), taken, path)
    text = f"{said} of {name}: {count:,} requests in a window, mean {mean:.4g} requests/s"
    return Arrivals(count / length, text, mean, over_time)


def _some(count: int, taken: dict[str, Any], path: Place) -> int:
    """``count``, if it is any. Raises BadInput: a plan for nothing is no plan."""
    if not count:
        accepted = "a longer window, or a higher percentile"
        raise _bad((*path, "plan_for"), "so many windows hold no request at all", taken["plan_for"], accepted)
    return count


def profile(times: Sequence[float]) -> list[dict[str, str]]:
    """Rates from moments on, at last the mean; ``times`` are sorted and begin at 0. The last arrival ends it."""
    span, number = times[-1], len(times) - 1
    stretches = max(1, min(MOST_STRETCHES, number // IN_A_STRETCH))
    length = span / stretches
    counts = [0] * stretches
    for time in times[:-1]:
        counts[min(int(time / length), stretches - 1)] += 1
    rates = [*(count / length for count in counts), number / span]
    return [
        {"at": write(index * length, TIME), "rate": write(rate, REQUEST_RATE)}
        for index, rate in enumerate(rates)
        if index in (0, stretches) or rate != rates[index - 1]
    ]


def windows(times: Sequence[float], length: float) -> list[int]:
    """Arrivals in each whole window of ``length`` seconds; ``times`` are sorted and begin at 0."""
    whole = int(times[-1] / length + 1e-9) if times else 0
    counts = [0] * whole
    for time in times:
        index = int(time / length)
        if index < whole:
            counts[index] += 1
    return counts


def percentile(counts: Sequence[int], share: float) -> int:
    """The smallest count that ``share`` of the windows do not exceed."""
    ordered = sorted(counts)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered) - 1e-9) - 1))]


def _problem(path: Place, message: str, value: object, accepted: str | None) -> Problem:
    return Problem(path_text(path), message, None if value is None else shown(value), accepted)


def _bad(path: Place, message: str, value: object, accepted: str | None) -> BadInput:
    return BadInput([_problem(path, message, value, accepted)])


__all__ = ["parse", "percentile", "profile", "settle", "windows"]
