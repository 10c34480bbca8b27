r"""Flows of requests in one regime: at capacity, or in one phase of the drain.

A regime has its own rates $x_{w,c}$ (requests/s of workload w on units of candidate c) and $f_r$ (handoffs/s on route
r). Inside, both are told per tick and over the share of their workload in the mix (:class:`solver.data.Data`). All
right-hand sides are multiples of a column ``time`` that is 1 for rates; when ``time`` is a length in ticks the same
rows speak of amounts.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from solver.data import Data
from solver.milp.model import Model, Row, Term, at_most, equal

AFTER_ENCODE = "prefill after encode"
"""In names of rows: prefill on units that hold no encoder, of requests with images."""


@dataclass(frozen=True)
class Flows:
    """Columns of one regime."""

    name: str
    units: Sequence[tuple[Term, ...]]
    """By candidate: terms that add up to its ready units (times ``time``); empty when it is not ready."""
    time: int
    links: Mapping[str, int]
    """Resources whose capacity is scaled by a column of their own instead of ``time``."""
    rates: Mapping[tuple[str, int], int]
    """(workload, candidate) -> column."""
    routes: Mapping[int, int]
    """Route -> column."""
    hits: Mapping[tuple[str, int, int], int] = field(default_factory=dict)
    """(workload, candidate, number of parts of the prompt that are found) -> column; none where nothing is kept."""
    extra: Mapping[str, Sequence[Term]] = field(default_factory=dict)
    """What else a channel carries, as a share of it."""


def add(
    model: Model,
    data: Data,
    name: str,
    units: Sequence[tuple[Term, ...]],
    time: int,
    links: Mapping[str, int] | None = None,
    warm: bool = False,
) -> Flows:
    """New columns for a regime in which candidates with ``units`` are ready; a ``warm`` one finds what was kept."""
    rates = {
        (workload, index): model.column()
        for index, candidate in enumerate(data.candidates)
        if units[index]
        for workload in candidate.demand
    }
    routes = {index: model.column() for index in range(len(data.routes))}
    hits = {
        (workload, index, state): model.column()
        for workload, index in (rates if warm else ())
        for state in range(1, len(data.candidates[index].hits.get(workload, ())) + 1)
    }
    return Flows(name, units, time, links or {}, rates, routes, hits)


def rows(data: Data, flows: Flows, served: Mapping[str, tuple[Term, ...]]) -> Iterator[Row]:
    """Every row of a regime; ``served`` gives the terms of each workload's completions."""
    yield from serve(data, flows, served)
    yield from handoff(data, flows)
    yield from first_token(data, flows)
    yield from capacity(data, flows)
    yield from shared(data, flows)


def serve(data: Data, flows: Flows, served: Mapping[str, tuple[Term, ...]]) -> Iterator[Row]:
    r"""Each request begins once: $\sum_{c\,whole} x_{w,c} + \sum_{c\,prefill} x_{w,c} = served_w$."""
    begins: dict[str, list[Term]] = {workload: [] for workload in served}
    for (workload, index), column in flows.rates.items():
        if data.candidates[index].begins:
            begins[workload].append((column, 1.0))
    for workload, terms in served.items():
        yield equal(f"serve[{workload}]{flows.name}", [*begins[workload], *((c, -k) for c, k in terms)])


def handoff(data: Data, flows: Flows) -> Iterator[Row]:
    r"""What leaves prefill at a place crosses a route, and what arrives is decoded there.

    $\sum_{c \in prefill(p)} x_{w,c} = \sum_{r: p \to q} f_r = \sum_{c \in decode(q)} x_{w,c}$, for each p and each q.
    Workloads of one output token end with prefill and have no routes. Where images are encoded elsewhere, a route comes
    from there, and prefill units that hold no encoder get nothing but by such a route.
    """
    balance: dict[tuple[str, str, str], list[Term]] = {}
    for (workload, index), column in flows.rates.items():
        candidate, described = data.candidates[index], data.instance.workloads[workload]
        after = candidate.after_encode and described.images > 0.0
        if candidate.stage == "encode" or after or (candidate.stage != "both" and described.decodes):
            stage = AFTER_ENCODE if after else candidate.stage
            balance.setdefault((workload, stage, candidate.group), []).append((column, 1.0))
    for index, column in flows.routes.items():
        route = data.routes[index]
        stage = AFTER_ENCODE if route.features else "prefill"
        balance.setdefault((route.workload, stage, route.source), []).append((column, -1.0))
        if route.features and route.features.encoder:
            balance.setdefault((route.workload, "encode", route.features.encoder), []).append((column, -1.0))
        if data.instance.workloads[route.workload].decodes:
            balance.setdefault((route.workload, "decode", route.target), []).append((column, -1.0))
    for (workload, stage, group), terms in balance.items():
        yield equal(f"handoff[{workload},{stage}@{group}]{flows.name}", terms)


def first_token(data: Data, flows: Flows) -> Iterator[Row]:
    r"""Prefill and handoffs together keep the target: slow routes carry no more than quick units give.

    For each time h of a route from a place p: $\sum_{r: p, T_r \ge h} f_r \le \sum_{c: T - T_c \ge h} x_{w,c}$. What a
    unit may use grows with the time that it leaves, so these rows are all that a matching of units to routes needs.
    """
    for name, workload in data.instance.workloads.items():
        target = workload.targets.ttft
        if target is None:
            continue
        for group, after in itertools.product(data.instance.hardware.groups, (False, True)):
            mine = [(r, c) for r, c in flows.routes.items() if data.routes[r].workload == name]
            mine = [(r, c) for r, c in mine if data.routes[r].source == group and _after(data, r) == after]
            units = [(i, column) for (w, i), column in flows.rates.items() if w == name]
            units = [(i, c) for i, c in units if data.candidates[i].stage == "prefill"]
            units = [
                (i, c)
                for i, c in units
                if data.candidates[i].group == group
                and (data.candidates[i].after_encode and workload.images > 0.0) == after
            ]
            left = {i: target * (1.0 + 1e-9) - data.candidates[i].first.get(name, 0.0) for i, _ in units}
            place = f"{group} after encode" if after else group
            for number, seconds in enumerate(sorted({data.routes[r].waits for r, _ in mine})):
                if min(left.values(), default=seconds) >= seconds:
                    continue  # every unit may use every such route
                slow = [(c, 1.0) for r, c in mine if data.routes[r].waits >= seconds]
                quick = [(c, -1.0) for i, c in units if left[i] >= seconds]
                yield at_most(f"ttft[{name},{place},{number}]{flows.name}", [*slow, *quick], 0.0)


def _after(data: Data, route: int) -> bool:
    return data.routes[route].features is not None


def capacity(data: Data, flows: Flows) -> Iterator[Row]:
    r"""Units have one second a second of each resource: $\sum_w d_{w,c,k} x_{w,c} \le n_c$.

    A request that finds parts of its prompt takes less: $- \sum_s (d_{w,c,k} - d_{w,c,s,k}) h_{w,c,s}$.
    """
    unit = {name: data.share(name) / data.tick for name in data.instance.workloads}
    uses: dict[int, list[int]] = {}
    for index, owner in enumerate(data.owners):
        uses.setdefault(owner, []).append(index)
    for index, candidate in enumerate(data.candidates):
        if not flows.units[index] or candidate.face:
            continue
        for k, resource in enumerate(candidate.resources):
            needs = [
                (flows.rates[name, use], need[k] * unit[name])
                for use in uses[index]
                for name, need in data.candidates[use].demand.items()
            ]
            saved = [
                (flows.hits[name, index, s], (need[k] - candidate.demand[name][k]) * unit[name])
                for name, states in (candidate.hits.items() if flows.hits else ())
                for s, need in enumerate(states, 1)
            ]
            ready = [(column, -count) for column, count in flows.units[index]]
            yield at_most(f"capacity[{candidate.name},{resource}]{flows.name}", [*needs, *saved, *ready], 0.0)


def shared(data: Data, flows: Flows) -> Iterator[Row]:
    r"""What crosses a channel or stays in a store shares it: $\sum_r V_r f_r + \sum_c V_c x_c \le B$, over $B$."""
    charged: dict[str, list[Term]] = {}
    unit = {name: data.share(name) / data.tick for name in data.instance.workloads}
    for index, column in flows.routes.items():
        for resource, share in data.routes[index].charges.items():
            charged.setdefault(resource, []).append((column, share * unit[data.routes[index].workload]))
    for (name, index), column in flows.rates.items():  # between the stages of a unit
        for resource, share in data.candidates[index].charges.get(name, {}).items():
            charged.setdefault(resource, []).append((column, share * unit[name]))
    for resource, more in flows.extra.items():
        charged.setdefault(resource, []).extend(more)
    for resource, terms in charged.items():
        scale = flows.links.get(resource, flows.time)
        yield at_most(f"{resource}{flows.name}", [*terms, (scale, -1.0)], 0.0)
