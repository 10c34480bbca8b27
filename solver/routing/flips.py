"""Where a choice flips as one number moves: bandwidths, queues and probabilities."""

from collections.abc import Iterator
from functools import partial

from models.routing import Routing
from solver.crossovers import POINTS, Flip, around, changes
from solver.formulas import routing as formulas
from solver.routing.choose import TAIL, Candidate, best, candidates, located, option_of


def flips(asked: Routing) -> list[Flip]:
    """All flips: of links first, then of queues, then of probabilities."""
    return [*_of_links(asked), *_of_queues(asked), *_of_probabilities(asked)]


def _of_links(asked: Routing) -> Iterator[Flip]:
    for link, stated in asked.links.items():
        values = around(stated)
        using = {
            name: [at for at in located(place) if at in asked.paths and link in asked.paths[at].over]
            for name, place in asked.places.items()
        }
        known = _untouched(asked, {name for name, locations in using.items() if locations})
        for value, below, above in changes(partial(_chosen_with_link, asked, known, link), values):
            yield Flip(f"links.{link}", "all places", value, "B/s", below, above, stated)
        for name, locations in using.items():
            for location in locations:
                for value, below, above in changes(partial(_own_with_link, asked, link, name, location), values):
                    yield Flip(f"links.{link}", name, value, "B/s", below, above, stated)


def _of_queues(asked: Routing) -> Iterator[Flip]:
    slowest = max(candidate.value(asked.choose) for candidate in candidates(asked).values())
    for name, place in asked.places.items():
        high = 2.0 * max(slowest, place.queue)
        values = [high * i / POINTS for i in range(POINTS + 1)]
        for value, below, above in changes(partial(_chosen_with_queue, asked, _untouched(asked, {name}), name), values):
            yield Flip(f"places.{name}.queue", "all places", value, "s", below, above, place.queue)


def _untouched(asked: Routing, touched: set[str]) -> dict[str, Candidate]:
    """Places that stay as they are; none where the end of all tasks counts, which depends on every place."""
    if asked.choose == "all-tasks":
        return {}
    return {name: candidate for name, candidate in candidates(asked).items() if name not in touched}


def _with_link(asked: Routing, link: str, value: float) -> Routing:
    return asked.model_copy(update={"links": {**asked.links, link: value}})


def _chosen_with_link(asked: Routing, known: dict[str, Candidate], link: str, value: float) -> str:
    return _said(best(candidates(_with_link(asked, link, value), known), asked.choose))


def _own_with_link(asked: Routing, link: str, name: str, location: str, value: float) -> str:
    return option_of(_with_link(asked, link, value), asked.places[name], location, 1.0).action


def _chosen_with_queue(asked: Routing, known: dict[str, Candidate], name: str, value: float) -> str:
    moved = asked.places[name].model_copy(update={"queue": value})
    there = asked.model_copy(update={"places": {**asked.places, name: moved}})
    return _said(best(candidates(there, known), asked.choose))


def _of_probabilities(asked: Routing) -> Iterator[Flip]:
    """How sure the quickest location of a place must be, the others keeping their proportions.

    For the mean to tie with the best other place, and for the p99 to keep its target.
    """
    found = candidates(asked)
    for name, candidate in found.items():
        points = [option for option in candidate.options if option.probability > 0]
        if len(points) < 2:
            continue
        first = min(points, key=lambda option: option.seconds)
        if asked.places[name].chances == "in-turn" and first is not candidate.options[0]:
            continue  # what stands in the file for it is not how often the state is there
        rest = [option for option in points if option is not first]
        weight = sum(option.probability for option in rest)
        slow = sum(option.seconds * option.probability for option in rest) / weight
        what = f"places.{name}.state.{first.location}"
        others = [other for other in found.values() if other is not candidate]
        if others:
            rival = min(others, key=lambda other: other.law.mean)
            tie = formulas.hit_probability_for_mean(rival.law.mean, first.seconds, slow)
            if 0.0 < tie <= 1.0:
                yield Flip(what, "all places", tie, "", _said(rival), _said(candidate), first.probability)
        if asked.targets.p99 is not None:
            late = sum(option.probability for option in rest if option.seconds > asked.targets.p99) / weight
            if late > 0 and first.seconds <= asked.targets.p99:
                needed = max(0.0, 1.0 - (1.0 - TAIL) / late)
                yield Flip(what, name, needed, "", "p99 misses its target", "p99 keeps it", first.probability)


def _said(candidate: Candidate) -> str:
    return f"{candidate.name}, {candidate.does}"
