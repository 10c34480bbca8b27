"""The time to first token at each place, and the place that is best for the request, its p99 and all tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

from models.routing import LOCAL, NOWHERE, RoutePlace, Routing
from solver.formulas import routing as formulas
from solver.formulas import tiers
from solver.routing.law import Law, in_turn
from solver.routing.objectives import Outcome, best_for_all

TAIL = 0.99


@dataclass(frozen=True)
class Option:
    """What happens at a place when the state is in one location; times to first token in s, None: not possible."""

    location: str
    probability: float
    ready: float | None
    """Until the state is there, from the start of its fetch."""
    overlapped: float | None
    serial: float | None
    layerwise: float | None
    recompute: float
    action: str
    """What is quickest, by the rule of the place: `local hit`, `fetch` or `recompute`."""
    seconds: float
    """Its time."""


@dataclass(frozen=True)
class Candidate:
    """A place, with everything that can happen there."""

    name: str
    options: tuple[Option, ...]
    law: Law
    """Time to first token, by the place's own rule of fetching."""
    serial: Law
    """The same if nothing is fetched before the GPUs are free."""
    outcome: Outcome
    """The request's mean, and when the other tasks end."""

    @property
    def does(self) -> str:
        """What it does most likely: `fetch over remote`, `local hit`, `recompute`."""
        likely = max(self.options, key=lambda option: option.probability)
        return f"fetch over {likely.location}" if likely.action == "fetch" else likely.action

    def value(self, measure: str) -> float:
        """What a choice by ``measure`` makes small."""
        if measure == "all-tasks":
            return self.outcome.all_tasks
        return self.law.mean if measure == "request" else self.law.quantile(TAIL)


def candidates(asked: Routing, known: Mapping[str, Candidate] | None = None) -> dict[str, Candidate]:
    """Every place of the question; those that are ``known`` already are taken as they are."""
    found: dict[str, Candidate] = {}
    for name, place in asked.places.items():
        if known and name in known:
            found[name] = known[name]
            continue
        options = tuple(option_of(asked, place, *at) for at in located(place).items())
        law = Law.of((option.seconds, option.probability) for option in options)
        serial = Law.of((_quickest(option.serial, option.recompute), option.probability) for option in options)
        found[name] = Candidate(name, options, law, serial, Outcome(law.mean, _others(asked, name, law.mean)))
    return found


def located(place: RoutePlace) -> dict[str, float]:
    """Where the state is, with probabilities that add up to 1."""
    if place.chances == "each":
        return place.state
    return dict(zip([*place.state, NOWHERE], in_turn(place.state.values()), strict=True))


def best(found: Mapping[str, Candidate], measure: str) -> Candidate:
    """The place that is best by a measure; among equals the one with the smaller mean, then the first."""
    if measure == "all-tasks":
        return found[best_for_all({name: candidate.outcome for name, candidate in found.items()})]
    return min(found.values(), key=lambda candidate: (candidate.value(measure), candidate.law.mean))


def ready_seconds(asked: Routing, location: str) -> float | None:
    """Until state in ``location`` is in the memory of the GPU; None where there is none."""
    if location in (LOCAL, NOWHERE):
        return 0.0 if location == LOCAL else None
    return _over(asked, location, len(asked.paths[location].over))


def _over(asked: Routing, location: str, hops: int) -> float:
    """The steps of a path and its first ``hops`` links."""
    path = asked.paths[location]
    fixed = formulas.preparation_seconds(list(path.steps.values()))
    return tiers.path_seconds(asked.request.state, [asked.links[link] for link in path.over[:hops]], fixed)


def _layerwise(asked: Routing, place: RoutePlace, location: str, hit: float) -> float | None:
    """The last link of the path is read layer by layer, those before it whole; None where there is none to read."""
    layers, hops = asked.request.layers, len(asked.paths[location].over) if location in asked.paths else 0
    if layers is None or not hops:
        return None
    start = _over(asked, location, hops - 1)
    read = (_over(asked, location, hops) - start) / layers
    return formulas.first_token_layerwise(place.queue, start, layers, read, hit / layers)


def option_of(asked: Routing, place: RoutePlace, location: str, probability: float) -> Option:
    """What a place does with state in one location."""
    hit = asked.request.hit if place.hit is None else place.hit
    whole = asked.request.recompute if place.recompute is None else place.recompute
    recompute = formulas.first_token_overlapped(place.queue, 0.0, whole)
    ready = ready_seconds(asked, location)
    if ready is None:
        return Option(location, probability, None, None, None, None, recompute, "recompute", recompute)
    overlapped = formulas.first_token_overlapped(place.queue, ready, hit)
    serial = formulas.first_token_serial(place.queue, ready, hit)
    layerwise = _layerwise(asked, place, location, hit)
    fetched = serial if place.fetch == "serial" else overlapped
    if place.fetch == "layer-wise" and layerwise is not None:
        fetched = layerwise
    action = "recompute" if recompute < fetched else "local hit" if location == LOCAL else "fetch"
    return Option(
        location, probability, ready, overlapped, serial, layerwise, recompute, action, _quickest(fetched, recompute)
    )


def _quickest(fetched: float | None, recompute: float) -> float:
    return recompute if fetched is None else min(fetched, recompute)


def _others(asked: Routing, chosen: str, mean: float) -> tuple[float, ...]:
    """When the other tasks end if the request goes to ``chosen``: there they wait for it, elsewhere for the queue."""
    given = asked.places[chosen].others_end
    if given is not None:
        return (given,)
    return tuple(
        (mean if name == chosen else place.queue) + sum(place.behind)
        for name, place in asked.places.items()
        if place.behind
    )
