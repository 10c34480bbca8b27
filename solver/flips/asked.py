"""Which numbers are asked about, how far they move, and the values that are tried on the way."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from models.errors import BadInput, Problem
from models.instance import Instance
from models.number import Number, find, moved
from solver.data import gather

SPAN = 32.0
"""Numbers move so many times either way where nothing is stated."""
FROM_ZERO, PARTS = 1e-3, 1024.0
"""How far a time of zero moves, in s; and the part of a range with which a search from zero begins."""
NEAR = 1e-3
"""How near to each other the two values around a flip are, over the larger."""
LITTLE = 1e-6
"""Share of the present value below which a value is as good as zero."""


@dataclass(frozen=True)
class Asked:
    """A number and the range in which it moves."""

    number: Number
    low: float
    high: float


def numbers(instance: Instance) -> list[str]:
    """What is asked about where nothing is stated: links in use, lengths, batches and arrivals, prices."""
    data = gather(instance).only(instance.schemes.allow)
    groups, paths = instance.hardware.groups, list[str]()
    links = [f"hardware.links.{name}" for name in instance.hardware.links]
    if not data.routes and not any(candidate.charges for candidate in data.candidates):
        links = []
    for name in groups:
        if groups[name].scale_up and any(size > 1 for c in data.candidates for size in c.blocks_on(name)):
            links.append(f"hardware.groups.{name}.scale_up")
    paths.extend(f"{link}.{key}" for link in links for key in ("startup", "bandwidth"))
    for name, workload in instance.workloads.items():
        lengths = [key for key in ("output", "input") if getattr(workload, key) is not None]
        keys = [*lengths, *(["batch"] if isinstance(workload.batch, int) else []), "rate"]
        paths.extend(f"workloads.{name}.{key}" for key in keys)
    paths.extend(f"hardware.groups.{name}.price" for name, group in groups.items() if group.price)
    for name, tier in instance.tiers.items():
        paths.extend([f"tiers.{name}.price_per_step"] if tier.price_per_step else [])
        paths.extend([f"tiers.{name}.drives.price"] if tier.drives and tier.drives.price else [])
        paths.extend([f"tiers.{name}.nodes.price"] if tier.nodes and tier.nodes.price else [])
    return paths


def asked(instance: Instance, path: str, stated: tuple[str, str] | None = None) -> Asked:
    """The number at ``path`` with its range. Raises BadInput where that is none, or does not hold the present value."""
    number = find(instance, path)
    moved(instance, number, number.now)  # an instance that stays what it is can be written and read
    if stated is not None:
        low, high = number.read(stated[0]), number.read(stated[1])
        if low > high:
            raise BadInput([Problem(path, "LOW is above HIGH", "..".join(stated), "LOW..HIGH")])
        if not low <= number.now <= high:
            accepted = f"a range that holds the present value, {number.text(number.now)}"
            raise BadInput([Problem(path, "the present value is outside of the range", "..".join(stated), accepted)])
        for value in (low, high):
            moved(instance, number, value)
        return Asked(number, low, high)
    if number.now == 0.0:
        if number.unit != "s":
            raise BadInput([Problem(path, "is zero, and needs a range", None, f"{path}=LOW..HIGH")])
        return Asked(number, 0.0, FROM_ZERO)
    low, high = max(number.least, number.now / SPAN), min(number.most, number.now * SPAN)
    low = math.ceil(low) if number.whole else low
    return Asked(number, _legal(instance, number, low), _legal(instance, number, high))


def _legal(instance: Instance, number: Number, end: float) -> float:
    """``end``, or the value nearest to it that the rest of the instance allows."""
    good, bad = number.now, end
    try:
        moved(instance, number, end)
        return end
    except BadInput:
        pass
    while (middle := between(number, good, bad)) is not None:
        try:
            moved(instance, number, middle)
            good = middle
        except BadInput:
            bad = middle
    return good


def outward(number: Number, end: float) -> Iterator[float]:
    """Values on the way to ``end``, each twice or half the one before."""
    value, up = number.now, end > number.now
    while value != end:
        step = end / PARTS if value == 0.0 else 2.0 * value if up else value / 2.0
        step = float(math.floor(step)) if number.whole else step
        step = max(step, 1.0) if number.whole and up else step
        value = min(step, end) if up else max(step, end)
        if not up and end == 0.0 and value < number.now / PARTS:
            value = end
        yield value


def between(number: Number, a: float, b: float) -> float | None:
    """A value between two, of few digits; None where they are near enough to each other."""
    low, high = min(a, b), max(a, b)
    if number.whole:
        return float((low + high) // 2.0) if high - low > 1.0 else None
    if high - low <= NEAR * high or (low == 0.0 and high <= LITTLE * number.now):
        return None
    middle = float(f"{(low + high) / 2.0:.5g}")
    return middle if low < middle < high else None
