"""State kept for later, in the words of a plan: places, what is found there, what that moves and fills."""

from collections.abc import Iterator

from models.plan_tiers import AgeShare, Found, Load, Paused, Retained, Reused, TierUse
from models.tiers import HBM
from solver.chosen import Chosen
from solver.regimes import Held, Settled
from solver.tiers.choice import Chose
from solver.tiers.data import Kept
from solver.tiers.parts import Part, cached_tokens
from solver.tiers.places import Place

NEVER = "never"


def _known(chosen: Chosen) -> tuple[Kept, Held, Held, tuple[Chose, ...]] | None:
    """What is kept, at the load and at capacity, and what was chosen; None where nothing is kept."""
    kept, choice, load = chosen.data.kept, chosen.data.choice, chosen.load.held
    if kept is None or choice is None or load is None:
        return None
    return kept, load, chosen.settled.held or load, choice.places


def hits(chosen: Chosen, index: int) -> dict[str, list[Load]]:
    """By workload: requests/s of a pool by how many parts of their prompt they find."""
    return {
        name: [
            Load(
                at_load=chosen.load.hits.get((name, index, state), 0.0),
                at_capacity=chosen.settled.hits.get((name, index, state), 0.0),
            )
            for state in range(1, len(states) + 1)
        ]
        for name, states in (chosen.data.candidates[index].hits.items() if chosen.data.choice else ())
    }


def reused(chosen: Chosen, name: str) -> Reused | None:
    """What of the prompts of a workload is found at the load."""
    known = _known(chosen)
    workload, served = chosen.instance.workloads[name], chosen.served(name)
    if known is None or not workload.reuse or served <= 0.0:
        return None
    kept, load = known[:2]
    shares = [
        sum(rate for (w, k, _, _), rate in load.found.items() if (w, k) == (name, part.number)) / served
        for part in kept.of(name)
    ]
    return Reused(requests=shares[0], tokens=tokens_found(chosen, name), parts=shares)


def tokens_found(chosen: Chosen, name: str) -> float:
    """Share of the input tokens of a workload that need not be computed, beside those that are always cached."""
    workload = chosen.instance.workloads[name]
    states: dict[int, float] = {}
    for (w, _, state), rate in chosen.load.hits.items():
        if w == name:
            states[state] = states.get(state, 0.0) + rate
    total = sum(
        rate
        * one.share
        * (max(one.cached, min(one.cached + cached_tokens(workload)[state - 1], one.input - 1)) - one.cached)
        for state, rate in states.items()
        for one in workload.classes
    )
    return total / (chosen.served(name) * workload.mean_input)


def tiers(chosen: Chosen) -> list[TierUse]:
    """Every place that keeps state, and how."""
    known = _known(chosen)
    if known is None:
        return []
    kept, load, full, chose = known
    return [_use(chosen, kept, number, load, full, chose[number]) for number in range(len(kept.places))]


def _use(chosen: Chosen, kept: Kept, number: int, load: Held, full: Held, chose: Chose) -> TierUse:
    place = kept.places[number]
    way = chose.way if keeps(load, number) else None
    policy = NEVER if way is None else way[0]
    waits = [_paused(kept, key, load, full) for key in load.paused if key[2] == number]
    return TierUse(
        name=place.name,
        tier=place.tier,
        group=place.group,
        model=place.model,
        policy=policy,
        retention_s=None if way is None or place.each_apart else kept.ages[way[1]],
        pieces=chose.pieces,
        capacity=size(chosen, place, chose.pieces),
        alive=alive(kept, number, load),
        headroom=place.said.headroom,
        read=Load(at_load=read(kept, load, number), at_capacity=read(kept, full, number)),
        written=Load(at_load=written(kept, load, number), at_capacity=written(kept, full, number)),
        endurance=None if place.wear is None else place.wear.at(chose.pieces),
        per_hour=3600.0 * place.price * chose.pieces,
        found=[
            _found(chosen, kept, key, load, full)
            for key, rate in load.found.items()
            if key[3] == number and (rate > 1e-12 or full.found.get(key, 0.0) > 1e-12)
        ],
        paused=[one for one in waits if one.rate.at_load > 1e-12 or one.rate.at_capacity > 1e-12],
        retained=[
            Retained(
                workload=key[0],
                part=key[1],
                group=key[2],
                ages=[AgeShare(age_s=kept.ages[age], rate=rate) for (_, age), rate in ages.items()],
            )
            for key, ages in load.ages.items()
            if key[3] == number and ages
        ],
    )


def keeps(held: Held, number: int) -> bool:
    """Whether anything is kept at a place: it may have a policy, and nothing that is worth keeping under it."""
    return any(ages for key, ages in held.ages.items() if key[3] == number)


def _found(chosen: Chosen, kept: Kept, key: tuple[str, int, str, int], load: Held, full: Held) -> Found:
    workload, part, group, number = key
    mine = [
        kept.first(c, workload, kept.places[number], part + 1)
        for i, c in chosen.used
        if c.group == group and workload in c.hits and chosen.load.rates.get((workload, i), 0.0) > 0.0
    ]
    return Found(
        workload=workload,
        part=part,
        group=group,
        bytes_per_hit=kept.of(workload)[part].hit,
        rate=Load(at_load=load.found[key], at_capacity=full.found.get(key, 0.0)),
        first_token_s=max(mine, default=None),
    )


def _paused(kept: Kept, key: tuple[str, str, int], load: Held, full: Held) -> Paused:
    workload, group, _ = key
    rate = Load(at_load=load.paused[key], at_capacity=full.paused.get(key, 0.0))
    return Paused(workload=workload, group=group, bytes_each=kept.paused(workload), rate=rate)


def size(chosen: Chosen, place: Place, pieces: int) -> float:
    """Bytes that a place has; of HBM what its units leave free."""
    if place.tier != HBM:
        return place.size.at(pieces)
    mine = [(i, c) for i, c in chosen.used if (c.group, c.model) == (place.group, place.model) and not c.face]
    return sum(chosen.counts[i] * c.room for i, c in mine)


def alive(kept: Kept, number: int, held: Held) -> float:
    """Mean bytes at a place: prefixes, and states of requests that wait."""
    return held.alive.get(number, 0.0) / kept.places[number].said.headroom + _waiting(kept, held, number)


def _waiting(kept: Kept, held: Held, number: int) -> float:
    total = 0.0
    for (workload, _, n), rate in held.paused.items():
        wait = kept.instance.workloads[workload].tool_wait
        if n == number and wait is not None:
            total += rate * wait.mean * kept.paused(workload)
    return total


def _resumed(kept: Kept, held: Held, number: int, group: str | None = None) -> float:
    """Bytes/s of states that are put away, or taken up again."""
    return sum(
        rate * kept.paused(workload)
        for (workload, where, n), rate in held.paused.items()
        if n == number and group in (None, where)
    )


def read(kept: Kept, held: Held, number: int, group: str | None = None) -> float:
    """Bytes/s read from a place."""
    parts: dict[tuple[str, int], Part] = {(part.workload, part.number): part for part in kept.parts}
    found = sum(
        rate * parts[workload, part].hit
        for (workload, part, where, n), rate in held.found.items()
        if n == number and group in (None, where)
    )
    return found + _resumed(kept, held, number, group)


def written(kept: Kept, held: Held, number: int, group: str | None = None) -> float:
    """Bytes/s written to a place."""
    new = sum(rate for (_, where, n), rate in held.written.items() if n == number and group in (None, where))
    return new + _resumed(kept, held, number, group)


def charges(chosen: Chosen, flows: Settled) -> dict[str, float]:
    """Share of channels that kept state takes on its way."""
    found: dict[str, float] = {}
    kept, held = chosen.data.kept, flows.held
    if kept is None or held is None:
        return found
    for number, place in enumerate(kept.places):
        for ways, moved in ((place.reading, read), (place.writing, written)):
            for group, shares in (ways or {}).items():
                rate = moved(kept, held, number, group)
                for channel, share in shares.items():
                    found[channel] = found.get(channel, 0.0) + rate * share
    return found


def resources(chosen: Chosen) -> Iterator[tuple[str, float, float, float, str]]:
    """Name, demand at load and at capacity, capacity, and unit of everything that keeping state fills."""
    known = _known(chosen)
    if known is None:
        return
    kept, load, full, chose = known
    for number, place in enumerate(kept.places):
        head, pieces = place.said.headroom, chose[number].pieces
        have = size(chosen, place, pieces)
        if have <= 0.0 and not keeps(load, number):
            continue
        (held, moved), (more, most) = (_handed(chosen, place, flows) for flows in (chosen.load, chosen.settled))
        needed = (alive(kept, number, load) * head + held, alive(kept, number, full) * head + more)
        yield f"tier[{place.name}]", *needed, have, "B"
        got = read(kept, load, number) + moved, read(kept, full, number) + most
        put = written(kept, load, number) + moved, written(kept, full, number) + most
        for word, amount, pipe in (
            ("bandwidth", (got[0] + put[0], got[1] + put[1]), place.both),
            ("read", got, place.read),
            ("write", put, place.write),
            ("endurance", put, place.wear),
        ):
            if pipe is not None:
                yield f"tier[{place.name},{word}]", *amount, pipe.at(pieces), "B/s"


def _handed(chosen: Chosen, place: Place, flows: Settled) -> tuple[float, float]:
    """What handoffs through the store of a pool hold of it, in bytes, and move, in B/s each way."""
    store, held, moved = place.said.store, 0.0, 0.0
    for route, rate in zip(chosen.data.routes, flows.routes, strict=True):
        if store is not None and route.store == store:
            held += rate * route.charges[f"store[{store}]"] * chosen.instance.hardware.stores[store].capacity
            moved += rate * route.payload
    return held, moved


def pieces(chosen: Chosen) -> Iterator[tuple[str, int, float]]:
    """Name, number and price in money/s of pieces that are paid for."""
    kept, choice = chosen.data.kept, chosen.data.choice
    for place, chose in zip(kept.places, choice.places, strict=True) if kept and choice else ():
        if place.price and chose.pieces:
            yield place.name, chose.pieces, place.price
