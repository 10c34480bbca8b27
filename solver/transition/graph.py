"""Steps that depend on each other: when each begins and ends, and the longest path, which decides when all is ready.

A step that happens within another is part of its time and not added again (section 9.6.1). A link carries one move at a
time of those side by side; what is within a step is part of its time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import networkx as nx

from models.errors import Problem
from models.plain import entries, problem


@dataclass(frozen=True)
class Step:
    """One step, in s."""

    name: str
    seconds: float
    after: tuple[str, ...] = ()
    within: str | None = None
    """A step that is not within another one."""
    link: str | None = None
    """What it keeps busy alone."""


@dataclass(frozen=True)
class Timed:
    """When a step runs, and why not before."""

    step: Step
    start: float
    end: float
    waits_for: str | None
    """The step whose end it waits for, or that it is within; None for the start of all."""
    critical: bool
    """Whether it is on the longest path."""


def schedule(steps: Iterable[Step]) -> list[Timed]:
    """Every step in the order in which they begin, those within others after them. The steps must hold no cycle."""
    listed = list(steps)
    outer = {step.name: step for step in listed if step.within is None}
    times = _times(outer, dict.fromkeys(outer, 0.0))
    path = set(_longest(times))
    inner: dict[str, Timed] = {}
    for parent in outer:
        part = {step.name: step for step in listed if step.within == parent}
        starts = dict.fromkeys(part, times[parent].start)
        for name, timed in _times(part, starts, parent).items():
            inner[name] = timed
    placed = {name: _marked(timed, name in path) for name, timed in times.items()}
    order = {step.name: index for index, step in enumerate(listed)}
    rows = [*placed.values(), *inner.values()]
    return sorted(rows, key=lambda row: (row.start, row.step.within is not None, order[row.step.name]))


def ready(timed: Iterable[Timed]) -> float:
    """When the last step ends."""
    return max((row.end for row in timed), default=0.0)


def critical_path(timed: Iterable[Timed]) -> list[str]:
    """The steps of the longest path, in order."""
    return [row.step.name for row in timed if row.critical]


def problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Cycles of plain data: steps that wait for each other, directly, around, or by being within one another."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    names = [name for name, _ in entries(data.get("steps"))]
    for name, step in entries(data.get("steps")):
        after = step.get("after")
        for other in [after] if isinstance(after, str) else after if isinstance(after, list) else []:
            if isinstance(other, str) and other in names:
                graph.add_edge(other, name)
        if isinstance(step.get("within"), str) and step["within"] in names:
            graph.add_edge(step["within"], name)
    for component in nx.strongly_connected_components(graph):
        if len(component) > 1 or any(graph.has_edge(name, name) for name in component):
            cycle = [edge[0] for edge in nx.find_cycle(graph.subgraph(component))]
            first = min(range(len(cycle)), key=lambda index: names.index(cycle[index]))
            ring = [*cycle[first:], *cycle[:first]]
            yield problem(("steps", ring[0]), f"the steps wait for each other: {' -> '.join([*ring, ring[0]])}")


def _times(steps: dict[str, Step], starts: Mapping[str, float], parent: str | None = None) -> dict[str, Timed]:
    """Earliest start and end of each step; moves over one link in the order in which they can begin."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(steps)
    graph.add_edges_from((before, step.name) for step in steps.values() for before in step.after if before in steps)
    order = {name: index for index, name in enumerate(steps)}
    free: dict[str, tuple[float, str]] = {}
    timed: dict[str, Timed] = {}
    waiting = list(nx.lexicographical_topological_sort(graph, key=lambda name: order[name]))
    while waiting:
        open_now = [name for name in waiting if all(before in timed for before in graph.predecessors(name))]
        begun = {name: _begin(steps[name], graph, timed, free, starts) for name in open_now}
        name = min(open_now, key=lambda one: (begun[one][0], order[one]))
        start, cause = begun[name]
        step = steps[name]
        timed[name] = Timed(step, start, start + step.seconds, cause or parent, False)
        if step.link is not None:
            free[step.link] = (timed[name].end, name)
        waiting.remove(name)
    return timed


def _begin(
    step: Step,
    graph: "nx.DiGraph[str]",
    timed: Mapping[str, Timed],
    free: Mapping[str, tuple[float, str]],
    starts: Mapping[str, float],
) -> tuple[float, str | None]:
    """When a step can begin, and the step that it waits for."""
    causes: list[tuple[float, str | None]] = [(starts[step.name], None)]
    causes.extend((timed[before].end, before) for before in graph.predecessors(step.name))
    if step.link is not None and step.link in free:
        causes.append(free[step.link])
    return max(causes, key=lambda cause: cause[0])


def _longest(timed: Mapping[str, Timed]) -> list[str]:
    """The path to the step that ends last, back along what each step waited for."""
    name: str | None = max(timed, key=lambda one: timed[one].end, default=None)
    path = []
    while name is not None:
        path.append(name)
        name = timed[name].waits_for
    return path[::-1]


def _marked(timed: Timed, critical: bool) -> Timed:
    return Timed(timed.step, timed.start, timed.end, timed.waits_for, critical)
