"""The least change of one limit with which every limit holds; each was solved with before it is shown."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from models.instance import Instance
from models.told import Relaxation
from solver import relax_demand
from solver.backend import Session
from solver.changes import UNSURE, Sized, Solvable, relaxation, sure
from solver.data import Data
from solver.limits import Limits
from solver.milp import master
from solver.rounding import down, up
from solver.rounding import text as digits


def relaxations(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> list[Relaxation]:
    """Changes of arrivals, cards, links, batches, pools and the deadline, one at a time; smallest first.

    ``apart`` are the sets of schemes that may stand side by side.
    """
    asked = (relax_demand.shares, relax_demand.targets, relax_demand.batch, relax_demand.deadline)
    steps = (_arrivals, _cards, _bundles, _links, _pools, _each, *asked)
    found = [one for step in steps if not limits.over for one in step(apart, instance, solvable, limits)]
    return [one for _, one in sorted(found, key=lambda one: one[0])]


def _pools(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """Bounds on pools without which everything holds."""
    bounds = instance.limits.pools
    for index in range(len(bounds)):
        fewer = instance.limits.model_copy(update={"pools": [*bounds[:index], *bounds[index + 1 :]]})
        if solvable(instance.model_copy(update={"limits": fewer})):
            yield 1.0, relaxation(f"limits.pools.{index}", "set", "left out", "", f"without limits.pools.{index}")


def _arrivals(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The largest arrivals for which every limit holds."""
    if instance.drops:
        return
    factors, known = [], True
    for data in apart:
        problem = master.build(data)
        session = Session(problem.model)
        session.bound(problem.arrivals, 0.0, float("inf"))
        outcome = session.solve([(problem.arrivals, 1.0)], True, limits)
        known = known and sure(outcome, limits)
        if outcome.found and outcome.value is not None:
            factors.append(outcome.value)
    factor = max(factors, default=0.0)
    after = down(instance.rate * factor)
    if factor <= 1e-9 or after <= 0.0 or not solvable(_scaled(instance, after / instance.rate)):
        return
    one = len(instance.workloads) == 1
    path = f"workloads.{next(iter(instance.workloads))}.rate" if one else "workloads.*.rate"
    text = f"arrivals {digits(instance.rate)} -> {digits(after)} requests/s" + ("" if one else " in all, same mix")
    text += "" if known else UNSURE
    before = f"{instance.rate!r}/s"
    yield 1.0 - factor, relaxation(path, before, f"{after!r}/s", "requests/s", text)


def _scaled(instance: Instance, factor: float) -> Instance:
    workloads = {
        name: workload.model_copy(update={"rate": workload.rate * factor})
        for name, workload in instance.workloads.items()
    }
    return instance.model_copy(update={"workloads": workloads})


def _bundles(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The fewest bundles of each kind with which every limit holds, more than may be bought."""
    for name, bundle in instance.hardware.bundles.items():
        if bundle.at_most is None:
            continue
        endless = {**instance.hardware.bundles, name: bundle.model_copy(update={"at_most": None})}
        hardware = instance.hardware.model_copy(update={"bundles": endless})
        changed = instance.model_copy(update={"hardware": hardware})
        fewest = []
        for data in apart:
            problem = master.build(replace(data, instance=changed))
            outcome = Session(problem.model).solve([(problem.purchases.bundles[name], 1.0)], False, limits)
            if outcome.status == "optimal" and outcome.value is not None:
                fewest.append(round(outcome.value))
        if fewest:
            path, text = f"hardware.bundles.{name}.at_most", f"{name} at most {bundle.at_most} -> {min(fewest)}"
            size = (min(fewest) - bundle.at_most) / max(1, bundle.at_most)
            yield size, relaxation(path, f"{bundle.at_most}", f"{min(fewest)}", "bundles", text)


def _each(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """Fewer units to spare, or fewer units at least in each pool."""
    for word, key in (("units", "at_least"), ("spare", "units")):
        limit = getattr(instance.limits, word)
        stated = getattr(limit, key) if limit is not None else 0
        below, above = 0, stated  # the largest smaller number that helps
        if not stated or not solvable(_with_limit(instance, word, key, 0)):
            continue
        while above - below > 1 and not limits.over:
            middle = (below + above) // 2
            helps = solvable(_with_limit(instance, word, key, middle))
            below, above = (middle, above) if helps else (below, middle)
        path = f"limits.{word}.{key}" if below else f"limits.{word}"
        text = f"{path} {stated} -> {below}" if below else f"without limits.{word}"
        text += UNSURE if limits.over else ""
        yield 1.0 - below / stated, relaxation(path, str(stated), str(below), "units", text)


def _with_limit(instance: Instance, word: str, key: str, number: int) -> Instance:
    """The instance with another number of units in a limit; without it for 0."""
    limit = getattr(instance.limits, word)
    changed = limit.model_copy(update={key: number}) if number else None
    return instance.model_copy(update={"limits": instance.limits.model_copy(update={word: changed})})


def _cards(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The fewest cards more of each group with which every limit holds.

    Where servers bring ports of a link with them, that is for solving to find: so many whole servers.
    """
    for name, group in instance.hardware.groups.items():
        if group.servers == "unlimited":
            continue
        fewest = []
        for data in apart:
            problem = master.build(data, buy=name)
            outcome = Session(problem.model).solve([(problem.bought[name], 1.0)], False, limits)
            if outcome.status == "optimal" and outcome.value is not None:
                fewest.append(round(outcome.value))
        ported = any(link.per == "server" and name in link.connects for link in instance.hardware.links.values())
        if ported and group.servers and (not fewest or min(fewest) > group.per_server):
            yield from _servers(name, instance, min(fewest, default=None), solvable, limits)
        elif fewest:
            more = min(fewest)
            path, text = f"hardware.groups.{name}", f"+{more} {name}"
            yield more / max(1, group.cards), relaxation(path, f"{group.cards}", f"{group.cards + more}", "GPUs", text)


MOST_SERVERS = 64
"""Times as many servers as there are that are tried at most."""


def _servers(name: str, instance: Instance, cards: int | None, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The fewest servers of a group with which every limit holds, their ports included; ``cards`` more would do."""
    group = instance.hardware.groups[name]
    assert isinstance(group.servers, int)
    below, above = group.servers, group.servers * 2
    if cards is not None:
        above = group.servers - (-cards // group.per_server)
    while cards is None and not solvable(_with_servers(instance, name, above)):
        below, above = above, above * 2
        if above > group.servers * MOST_SERVERS or limits.over:
            return
    while above - below > 1 and not limits.over:
        middle = (below + above) // 2
        helps = solvable(_with_servers(instance, name, middle))
        below, above = (below, middle) if helps else (middle, above)
    more = (above - group.servers) * group.per_server
    text = f"+{more} {name} ({above - group.servers} servers)" + (UNSURE if limits.over else "")
    path, size = f"hardware.groups.{name}.servers", more / max(1, group.cards)
    yield size, relaxation(path, f"{group.servers}", f"{above}", "servers", text)


def _with_servers(instance: Instance, name: str, servers: int) -> Instance:
    group = instance.hardware.groups[name].model_copy(update={"servers": servers})
    hardware = instance.hardware.model_copy(update={"groups": {**instance.hardware.groups, name: group}})
    return instance.model_copy(update={"hardware": hardware})


def _links(apart: Sequence[Data], instance: Instance, solvable: Solvable, limits: Limits) -> Iterator[Sized]:
    """The least bandwidth of each link with which every limit holds."""
    for name, link in instance.hardware.links.items():
        least, known = [], True
        for data in apart:
            problem = master.build(data, widen=name)
            outcome = Session(problem.model).solve([(problem.wider, 1.0)], False, limits)
            known = known and sure(outcome, limits)
            if outcome.found and outcome.value is not None:
                least.append(outcome.value)
        if not least or min(least) <= 1.0 + 1e-9:
            continue
        after = up(link.bandwidth * min(least))
        wider = link.model_copy(update={"bandwidth": after})
        hardware = instance.hardware.model_copy(update={"links": {**instance.hardware.links, name: wider}})
        if solvable(instance.model_copy(update={"hardware": hardware})):
            path, text = f"hardware.links.{name}.bandwidth", f"link {name} {digits(link.bandwidth / 1e9)} -> "
            text += f"{digits(after / 1e9)} GB/s" + ("" if known else UNSURE)
            yield min(least) - 1.0, relaxation(path, f"{link.bandwidth!r} B/s", f"{after!r} B/s", "B/s", text)
