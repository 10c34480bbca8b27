"""Checks of the steps in which a unit starts: names, times, and steps that wait for each other."""

from collections.abc import Iterator, Mapping
from typing import Any

from models.errors import Problem, nearest
from models.plain import Path, entries, mapping, problem
from models.units import TIME, QuantityError, parse

NOTHING = "0 s"
"""A startup that was not stated, in a document that was resolved."""


def check(service: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with the steps of a service."""
    steps = mapping(service.get("steps"))
    if steps and service.get("startup") not in (None, NOTHING):
        yield problem(("service", "startup"), "stands beside service.steps", service["startup"], "one of the two")
    for name, step in entries(steps):
        path: Path = ("service", "steps", name)
        stated = [key for key in ("takes", "weights_at") if step.get(key) is not None]
        if len(stated) != 1:
            said = "states no time" if not stated else "states two times"
            yield problem(path, said, None, "one of takes, and weights_at: the rate at which a GPU gets its weights")
        named = [*_names(step.get("after")), *_names(step.get("within"))]
        for other in named:
            if other not in steps:
                guess = nearest(other, steps)
                message = "no step of this name" + (f"; {guess}" if guess else "")
                yield problem(path, message, other, "one of " + ", ".join(steps))
        outer = step.get("within")
        aside = [name for name in _names(step.get("after")) if name in steps and name != outer]
        aside = [name for name in aside if mapping(steps[name]).get("within") != outer]
        if aside:
            accepted = f"steps within {outer}" if outer else "steps that are not within another"
            yield problem((*path, "after"), "waits for a step of another level", ", ".join(aside), accepted)
        yield from _longer(step, mapping(steps.get(outer)) if isinstance(outer, str) else {}, path)
        if isinstance(outer, str) and mapping(steps.get(outer)).get("within") is not None:
            yield problem((*path, "within"), "is itself within another step", outer, "a step that is not within one")
    if ring := _ring(steps):
        text = " -> ".join([*ring, ring[0]])
        yield problem(("service", "steps", ring[0]), f"the steps wait for each other: {text}", None, "an order")


def _longer(step: Mapping[str, Any], outer: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """A part that takes longer than the whole."""
    try:
        part, whole = (parse(one.get("takes"), TIME) for one in (step, outer))
    except QuantityError:
        return  # said where it stands, or not known
    if part > whole:
        yield problem(
            (*path, "takes"), "longer than the step that it is within", step["takes"], f"at most {outer['takes']}"
        )


def _names(value: object) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return [name for name in listed if isinstance(name, str)]


def _ring(steps: Mapping[str, Any]) -> list[str]:
    """Steps that wait for each other in a ring; empty where there are none."""
    waits = {name: [*_names(step.get("after")), *_names(step.get("within"))] for name, step in entries(steps)}
    done: set[str] = set()
    for first in waits:
        path: list[str] = []
        stack = [(first, iter(waits[first]))] if first not in done else []
        while stack:
            name, rest = stack[-1]
            if name not in path:
                path.append(name)
            following = next((one for one in rest if one in waits and one not in done), None)
            if following is None:
                done.add(name)
                path.remove(name)
                stack.pop()
            elif following in path:
                return path[path.index(following) :]
            else:
                stack.append((following, iter(waits[following])))
    return []
