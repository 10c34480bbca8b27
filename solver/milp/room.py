r"""Room for kept state: bytes that are alive, bandwidth for reading and writing, writes that drives endure.

Rows of a place are over what it is told in (its size, or its bandwidth, with every piece), so that they are near one.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from models.tiers import HBM
from solver.data import Data
from solver.milp.ages import Way
from solver.milp.flows import Flows
from solver.milp.keep import Keeping, ending, line_of, pairs, scale
from solver.milp.model import Model, Row, Term, at_most
from solver.tiers.parts import Part
from solver.tiers.places import Pieces, Place


def written(model: Model, data: Data, keeping: Keeping, load: Flows) -> None:
    r"""Columns of what is written: $W_{w,g,P} \ge \sum_{p,j} y\,W_p(T_j)$; handoffs through the same store are written
    already, $- \sum_r V_r f_r$.
    """
    kept = keeping.kept
    for workload, group in pairs(data, load):
        for number in kept.chain(workload, group):
            place, unit = kept.places[number], size(keeping, number)
            if place.tier == HBM:
                continue
            column = keeping.written[workload, group, number] = model.column()
            keeping.slack[column] = []  # before those that it needs
            terms: list[Term] = []
            for part in kept.of(workload):
                terms.extend(_writes(model, data, keeping, part, group, number))
            if place.said.store is not None:
                terms.extend(
                    (c, -data.routes[r].payload * scale(data, workload))
                    for r, c in load.routes.items()
                    if (data.routes[r].workload, data.routes[r].source) == (workload, group)
                    and data.routes[r].store == place.said.store
                )
            over = keeping.slack[column] = [(c, k / unit) for c, k in terms]
            model.rows.append(at_most(f"writes[{workload},{group},{place.name}]", [*over, (column, -1.0)], 0.0))


def _writes(model: Model, data: Data, keeping: Keeping, part: Part, group: str, number: int) -> list[Term]:
    """Bytes/s written of a part of a prompt."""
    kept, unit = keeping.kept, scale(data, part.workload)
    place, line = kept.places[number], line_of(keeping, part, group, number)
    if place.said.holds != "exclusive":
        return [(c, unit * kept.written(part, place, w[0], kept.ages[w[1]])) for w, c in line.items()]
    above = _above(keeping, part, group, number)
    column = model.column()
    # what leaves the place above, if this one is in use: all that is not used again there
    terms: list[Term] = [(c, part.kept) for c in line.values()]
    terms += [(c, -part.hit * kept.found_at(part, n, kept.ages[w[1]])) for n, w, c in above]
    name = f"evicted[{part.workload},{part.number},{group},{place.name}]"
    over = keeping.slack[column] = [(c, k / part.kept) for c, k in terms]
    model.rows.append(at_most(name, [*over, (column, -1.0)], 0.0))
    return [(column, unit * part.kept)]


def _above(keeping: Keeping, part: Part, group: str, number: int) -> list[tuple[int, Way, int]]:
    """Place, way and column of the load that the next faster place keeps."""
    chain = keeping.kept.chain(part.workload, group)
    before = chain.index(number) - 1
    if before < 0:
        return []
    line = line_of(keeping, part, group, chain[before])
    return [(chain[before], way, column) for way, column in line.items()]


def alive(model: Model, data: Data, keeping: Keeping, number: int, load: Flows) -> list[Term]:
    r"""Bytes alive at a place, with headroom: $\sum y\,L_p(T_j)$; of an exclusive one less what is above."""
    kept, terms = keeping.kept, list[Term]()
    place = kept.places[number]
    for workload, group in pairs(data, load):
        if number not in kept.chain(workload, group):
            continue
        unit = scale(data, workload) * place.said.headroom
        for part in kept.of(workload):
            line = line_of(keeping, part, group, number)
            own = [(c, unit * kept.live(part, place, w[0], kept.ages[w[1]])) for w, c in line.items()]
            if place.said.holds == "exclusive":
                column, whole = model.column(), unit * part.kept * kept.ages[-1]
                less = [
                    (c, -unit * kept.live(part, kept.places[n], w[0], kept.ages[w[1]]))
                    for n, w, c in _above(keeping, part, group, number)
                ]
                over = keeping.slack[column] = [(c, k / whole) for c, k in (*own, *less)]
                name = f"below[{workload},{part.number},{group},{place.name}]"
                model.rows.append(at_most(name, [*over, (column, -1.0)], 0.0))
                own = [(column, whole)]
            terms.extend(own)
    return terms


def size(keeping: Keeping, number: int) -> float:
    """What a place is told in: its bytes with every piece; of HBM a GiB."""
    place = keeping.kept.places[number]
    return place.size.at(place.most) or 2.0**30


def rows(data: Data, keeping: Keeping, flows: Flows, kept_bytes: Mapping[int, Sequence[Term]]) -> Iterator[Row]:
    """Every row about room in a regime; what is alive and written is that of the load."""
    for number, place in enumerate(keeping.kept.places):
        waiting = _waiting(data, keeping, flows, number)
        if place.tier == HBM:
            yield from _hbm(data, keeping, flows, number, kept_bytes[number], waiting)
            continue
        unit, label = size(keeping, number), f"tier[{place.name}]{flows.name}"
        pieces = keeping.pieces[number]
        waits = [term for terms in waiting.values() for term in terms]
        passing, moved = _handed(data, flows, place)
        held = [(c, k / unit) for c, k in (*kept_bytes[number], *waits, *passing)]
        yield from _fits(label, held, place.size, pieces, unit, flows.time)
        read = [*_read(data, keeping, flows, number), *moved]
        wrote = [*_written(data, keeping, flows, number), *moved]
        for word, amount, pipe in (
            ("bandwidth", [*read, *wrote], place.both),
            ("read", read, place.read),
            ("write", wrote, place.write),
            ("endurance", wrote, place.wear),
        ):
            if pipe is not None:
                most = pipe.at(place.most) or 1.0
                name = f"tier[{place.name},{word}]{flows.name}"
                yield from _fits(name, [(c, k / most) for c, k in amount], pipe, pieces, most, flows.time)


def _handed(data: Data, flows: Flows, place: Place) -> tuple[list[Term], list[Term]]:
    """What handoffs through the same store hold of it, in bytes, and move, in B/s each way."""
    held: list[Term] = []
    moved: list[Term] = []
    store = place.said.store
    for r, column in flows.routes.items():
        route = data.routes[r]
        if store is not None and route.store == store:
            unit = scale(data, route.workload)
            stays = route.charges[f"store[{store}]"] * data.instance.hardware.stores[store].capacity
            held.append((column, stays * unit))
            moved.append((column, route.payload * unit))
    return held, moved


def _fits(name: str, terms: list[Term], have: Pieces, pieces: int, unit: float, one: int) -> Iterator[Row]:
    if terms:
        yield at_most(name, [*terms, (pieces, -have.each / unit), (one, -have.there / unit)], 0.0)


def _waiting(data: Data, keeping: Keeping, flows: Flows, number: int) -> dict[str, list[Term]]:
    r"""Bytes of requests that wait for tools, by workload: $V \tau q$ (byte-seconds, section 9.5.2)."""
    place, found = keeping.kept.places[number], dict[str, list[Term]]()
    for (workload, _, n), column in keeping.paused[flows.name].items():
        wait = data.instance.workloads[workload].tool_wait
        if n == number and wait is not None:
            each = keeping.kept.paused(workload) * wait.mean * place.said.headroom
            found.setdefault(workload, []).append((column, each * scale(data, workload)))
    return found


def _hbm(
    data: Data,
    keeping: Keeping,
    flows: Flows,
    number: int,
    alive_: Sequence[Term],
    waiting: Mapping[str, Sequence[Term]],
) -> Iterator[Row]:
    r"""State fits in what units leave free: $\le \sum_c n_c\,room_c$; prefixes where requests begin, those that wait
    where requests of their workload stay. One row for every set of units of which each has some of it.
    """
    place = keeping.kept.places[number]
    mine = [i for i, c in enumerate(data.candidates) if (c.group, c.model) == (place.group, place.model) and not c.face]
    sorts: dict[frozenset[int], list[Term]] = {}
    words: dict[frozenset[int], list[str]] = {}
    begin = frozenset(i for i in mine if data.candidates[i].begins and data.candidates[i].hits)
    stays = {w: frozenset(i for i in mine if ending(data, i, w) and w in data.candidates[i].demand) for w in waiting}
    stated = [("prefixes", begin, alive_), *((f"waits {w}", stays[w], terms) for w, terms in waiting.items())]
    for word, units, terms in stated:
        if terms:
            sorts.setdefault(units, []).extend(terms)
            words.setdefault(units, []).append(word)
    gib = 2.0**30
    for count in range(1, len(sorts) + 1):
        for some in itertools.combinations(sorts, count):
            units = frozenset[int]().union(*some)
            room = [(c, -k * data.candidates[i].room / gib) for i in sorted(units) for c, k in flows.units[i]]
            held = [(c, k / gib) for one in some for c, k in sorts[one]]
            label = "" if count == len(sorts) else "," + "+".join(word for one in some for word in words[one])
            yield at_most(f"tier[{place.name}{label}]{flows.name}", [*held, *room], 0.0)


def _read(data: Data, keeping: Keeping, flows: Flows, number: int, group: str | None = None) -> list[Term]:
    """Bytes/s read from a place, by requests and by those that go on after a pause."""
    kept, terms = keeping.kept, list[Term]()
    each = {(part.workload, part.number): part.hit for part in kept.parts}
    for (workload, part, _, where, n), column in keeping.found[flows.name].items():
        if n == number and group in (None, where):
            terms.append((column, each[workload, part] * scale(data, workload)))
    for (workload, where, n), column in keeping.paused[flows.name].items():
        if n == number and group in (None, where):
            terms.append((column, kept.paused(workload) * scale(data, workload)))
    return terms


def _written(data: Data, keeping: Keeping, flows: Flows, number: int, group: str | None = None) -> list[Term]:
    """Bytes/s written to a place."""
    kept, unit = keeping.kept, size(keeping, number)
    terms: list[Term] = [
        (c, unit) for (_, where, n), c in keeping.written.items() if n == number and group in (None, where)
    ]
    for (workload, where, n), column in keeping.paused[flows.name].items():
        if n == number and group in (None, where):
            terms.append((column, kept.paused(workload) * scale(data, workload)))
    return terms


def charged(data: Data, keeping: Keeping, flows: Flows) -> Flows:
    """A regime whose channels carry kept state too."""
    extra: dict[str, list[Term]] = {}
    for number, place in enumerate(keeping.kept.places):
        for ways, moved in ((place.reading, _read), (place.writing, _written)):
            for group, shares in (ways or {}).items():
                terms = moved(data, keeping, flows, number, group)
                for channel, share in shares.items():
                    extra.setdefault(f"link[{channel}]", []).extend((c, k * share) for c, k in terms)
    return replace(flows, extra=extra)
