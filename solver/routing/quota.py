"""A quota on prefetching, and who starts first under it: what gets no room computes anew, and may overtake (9.6.1)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Wanted:
    """A request that arrives, whose state could be fetched."""

    name: str
    tokens: float
    """Tokens that its fetch registers."""
    fetch: float
    """Seconds until its state is there, once registered."""
    hit: float
    """Seconds of work with the state."""
    recompute: float
    """Seconds of work without."""


@dataclass(frozen=True)
class Started:
    """When a request starts and ends, in s, and whether it fetches."""

    name: str
    fetches: bool
    start: float
    end: float


def admitted(tokens: Sequence[float], quota: float) -> list[bool]:
    """Which of several arrivals register: the quota is tested before one is added, so the last may exceed it."""
    held, told = 0.0, []
    for wanted in tokens:
        told.append(held < quota)
        held += wanted if told[-1] else 0.0
    return told


def order(requests: Sequence[Wanted], quota: float) -> list[Started]:
    """Requests that arrive together on one GPU, in the order in which they run: as they become ready, then as given.

    What fetches is ready when its state is there; what found no room is ready at once and computes everything.
    """
    fetching = admitted([request.tokens for request in requests], quota)
    ready = sorted(
        ((request.fetch if fetches else 0.0), index, request, fetches)
        for index, (request, fetches) in enumerate(zip(requests, fetching, strict=True))
    )
    clock, started = 0.0, []
    for at, _, request, fetches in ready:
        begin = max(clock, at)
        clock = begin + (request.hit if fetches else request.recompute)
        started.append(Started(request.name, fetches, begin, clock))
    return started
