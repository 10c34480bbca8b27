"""Quantities of requests that arrive in a mix, and of whole groups of cards, each cut alike (exercise 9-10)."""

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

from models import files
from models.told import Row
from models.units import REQUEST_RATE, write
from tests.golden.by_roofline import stage_value
from tests.golden.by_solving import known, solved, splits
from tests.golden.reading import CONSTANTS, Cards, Quantity, document, per_second


def mixed_row(
    workloads: Sequence[str],
    shares: Sequence[float],
    prefill: Cards | None = None,
    decode: Cards | None = None,
    groups: int = 1,
    arrival: str = "3.5/s",
    **asked: Any,
) -> Row:
    """The row of separation for a mix, on ``groups`` copies of the cards and of the split that is fixed.

    Each copy brings its servers and its port on the link.
    """
    written: dict[str, Any] = files.parse(
        document(workloads[0], prefill=prefill, decode=decode, arrival=arrival, **asked)
    ).data
    written["workloads"] = {
        name: {**CONSTANTS["workloads"][name], "rate": write(share * per_second(arrival), REQUEST_RATE)}
        for name, share in zip(workloads, shares, strict=True)
    }
    for group in written["hardware"]["groups"].values():
        group["servers"] *= groups
    written["hardware"]["links"]["rdma"]["ports"] = groups
    for pool in written["limits"]["pools"]:
        pool["exactly"] *= groups
    return solved(files.dump(written), "pd-direct").row


def best_pools(cluster: Cards, **mix: Any) -> tuple[Cards, Cards]:
    """The best split of one group, as its pools."""
    prefill = dict(zip(cluster, mixed_split(cluster, **mix), strict=True))
    return prefill, {card: cards - prefill[card] for card, cards in cluster.items()}


def mixed_decode_demand(card: str, workloads: Iterable[str], shares: Iterable[float]) -> float:
    pairs = zip(workloads, shares, strict=True)
    return sum(share * stage_value(workload, card, "decode") for workload, share in pairs)


def mixed_grid(cluster: Cards, **mix: Any) -> list[float]:
    return [known(mixed_row(prefill=prefill, decode=decode, **mix).throughput) for prefill, decode in splits(cluster)]


def mixed_rate(cluster: Cards, **mix: Any) -> float:
    return known(mixed_row(cluster=cluster, **mix).throughput)


def mixed_split(cluster: Cards, **mix: Any) -> list[int]:
    split = mixed_row(cluster=cluster, **mix).split
    assert all(split["prefill"][card] + split["decode"][card] == cards for card, cards in cluster.items())
    return [split["prefill"][card] for card in cluster]


def mixed_groups(cluster: Cards, target: str, **mix: Any) -> float:
    prefill, decode = best_pools(cluster, **mix)
    for groups in count(1):
        rate = known(mixed_row(prefill=prefill, decode=decode, groups=groups, **mix).throughput)
        if rate >= per_second(target):
            return groups
    raise AssertionError


def mixed_drain_end(cluster: Cards, groups: int, arrival: str, startup: str, **mix: Any) -> float:
    prefill, decode = best_pools(cluster, **mix)
    asked: dict[str, Any] = {"groups": groups, "arrival": arrival, "startup": startup}
    return known(mixed_row(prefill=prefill, decode=decode, **asked, **mix).drained_s)


QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (mixed_decode_demand, mixed_grid, mixed_rate, mixed_split, mixed_groups, mixed_drain_end)
}
"""Quantity -> how it follows from its inputs."""
