"""The cluster as a picture: a row for each group, link and store, and a vertical line for each link.

A dot is where a place joins a link; arrows say which way KV goes. Rows keep the picture readable for many groups and
for links that join more than two places.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from api import answer, words
from api.report.markup import Html, tag
from models.errors import shown
from models.instance import Instance
from models.plan import Plan, Pool, Traffic

BOX, LEFT, STEP = 404.0, 8.0, 34.0
"""Width of a box and its place; distance between the lines of two links."""
SQUARE, MOST_SQUARES, ALL_SQUARES = 17.0, 64, 1024
"""Size of a GPU with its gap, and how many are drawn one by one: in a group, and in all."""
MOST_PLACES = 40
"""Groups, links and stores, of each kind, that are drawn."""
BUSY, IDLE, FULL = "busy", "idle", "full"


@dataclass
class Place:
    """A row of the picture: a group, a link or a store."""

    name: str
    inside: list[Html]
    """Drawn from its upper left corner."""
    height: float
    kind: str
    links: list[str] = field(default_factory=list)
    """Links that it joins, from top to bottom."""
    y: float = 0.0

    def joint(self, link: str) -> float:
        """Height at which its wire to ``link`` leaves it."""
        return self.y + self.height * (self.links.index(link) + 1) / (len(self.links) + 1)


def picture(plan: Plan, instance: Instance) -> Html:
    """The cluster, what runs on it, and what crosses its links."""
    kinds = _groups(plan, instance), _links(plan, instance), _stores(plan, instance)
    places = [place for kind in kinds for place in islice(kind, MOST_PLACES)]
    y = 10.0
    for place in places:
        place.y, y = y, y + place.height + 14.0
    links = list(instance.hardware.links)[:MOST_PLACES]
    width = LEFT + BOX + (30.0 + STEP * len(links) if links else 8.0)
    words_of = tag("title", "The cluster"), tag("desc", _described(plan, instance))
    drawn = [*_wires(places, plan, instance), *(_box(place) for place in places)]
    view = f"0 0 {width:.0f} {y:.0f}"
    return tag(
        "svg",
        *words_of,
        *drawn,
        viewBox=view,
        role="img",
        class_="cluster",
        style=f"max-width:{1.25 * width:.0f}px;min-width:{0.72 * width:.0f}px",
    )


def _described(plan: Plan, instance: Instance) -> str:
    """The picture for those who do not see it."""
    parts = [f"{name}: {count} GPUs" for name, count in answer.there(plan, instance).items()]
    parts += [f"{pool.name}: {words.plural(pool.cards, 'GPU')}" for pool in plan.pools]
    parts += [f"link {name} joins {', '.join(link.connects)}" for name, link in instance.hardware.links.items()]
    parts += [f"{handoff.name} over {', '.join(handoff.links) or 'no link'}" for handoff in plan.handoffs]
    return "; ".join(parts[: 4 * MOST_PLACES])


def _groups(plan: Plan, instance: Instance) -> Iterator[Place]:
    there = answer.there(plan, instance)
    few = sum(there.values()) <= ALL_SQUARES
    for name, group in instance.hardware.groups.items():
        pools = [pool for pool in plan.pools if pool.group == name]
        if not pools and plan.pools:
            text = f"{there[name]:,} x {_short(group.accelerator.name, 24)}, no work"
            inside = [_word(14, 21, _short(name, 18), "name"), _word(BOX - 14, 21, text, "end small")]
            yield Place(name, inside, 32.0, "unused", _joined(name, instance))
            continue
        count = -(-there[name] // group.per_server)
        servers = f"{words.plural(count, 'server')} x {group.per_server} {group.accelerator.name}"
        inside = [_word(14, 24, _short(name, 18), "name"), _word(BOX - 14, 24, _short(servers, 38), "end small")]
        y = 36.0
        if few and there[name] <= MOST_SQUARES:
            squares, height = _squares(pools, count, group.per_server, y)
        else:
            squares, height = _share(pools, max(1, there[name]), y), 22.0
        inside += squares
        y += height + 14.0
        for pool in pools:
            inside += [
                _swatch(pool.stage, y),
                _word(32, y, _short(pool.name, 23)),
                _word(BOX - 14, y, _does(pool), "end"),
            ]
            y += 20.0
        idle = there[name] - sum(pool.cards for pool in pools)
        if idle:
            inside += [_swatch("none", y), _word(32, y, f"{words.plural(idle, 'GPU')} without work")]
            y += 20.0
        yield Place(name, inside, y - 6.0, "group", _joined(name, instance))


def _does(pool: Pool) -> str:
    rate = words.rate(pool.capacity)
    return f"{words.plural(pool.cards, 'GPU')}, {100.0 * pool.utilisation:.0f} % of {rate} req/s"


def _squares(pools: list[Pool], servers: int, per_server: int, top: float) -> tuple[list[Html], float]:
    """GPUs one by one, framed by server; which of them a pool has is not said: they are counted, never named."""
    stages = [pool.stage for pool in pools for _ in range(pool.cards)]
    stages += ["none"] * (servers * per_server - len(stages))
    per_line = min(per_server, int((BOX - 40.0) / SQUARE))
    lines = -(-per_server // per_line)
    frame_width, frame_height = per_line * SQUARE + 7.0, lines * SQUARE + 7.0
    across = max(1, int((BOX - 20.0) // (frame_width + 6.0)))
    drawn = []
    for server in range(servers):
        x, y = 12.0 + server % across * (frame_width + 6.0), top + server // across * (frame_height + 6.0)
        drawn.append(_rect(x, y, frame_width, frame_height, "server"))
        for card in range(per_server):
            place = x + 5.0 + card % per_line * SQUARE, y + 5.0 + card // per_line * SQUARE
            drawn.append(_rect(*place, SQUARE - 3.0, SQUARE - 3.0, f"gpu {stages[server * per_server + card]}"))
    return drawn, -(-servers // across) * (frame_height + 6.0)


def _share(pools: list[Pool], cards: int, top: float) -> list[Html]:
    """So many GPUs that one bar stands for all of them, cut by pool."""
    drawn, x, scale = [_rect(14.0, top, BOX - 28.0, 18.0, "gpu none")], 14.0, (BOX - 28.0) / cards
    for pool in pools:
        drawn.append(_rect(x, top, pool.cards * scale, 18.0, f"gpu {pool.stage}"))
        x += pool.cards * scale
    return drawn


def _links(plan: Plan, instance: Instance) -> Iterator[Place]:
    for name, link in instance.hardware.links.items():
        ports = "" if link.ports == 1 else f"{link.ports} x "
        per = " for each server" if link.per == "server" else ""
        what = f"{ports}{words.gigabytes_per_second(link.port_bandwidth)} GB/s{per}, {link.duplex}"
        inside = [_word(14, 20, f"link {_short(name, 17)}", "name"), _word(BOX - 14, 20, what, "end small")]
        inside.append(_rect(14.0, 30.0, BOX - 28.0, 6.0, "gpu none"))
        busiest = max(_crossing(plan, name), key=lambda row: row.utilisation, default=None)
        text = "nothing crosses it"
        if busiest is not None and busiest.bytes_per_s > 0:
            inside.append(
                _rect(14.0, 30.0, (BOX - 28.0) * min(1.0, busiest.utilisation), 6.0, f"load {_state(plan, name)}")
            )
            amount = f"{words.gigabytes_per_second(busiest.bytes_per_s)} of "
            amount += f"{words.gigabytes_per_second(busiest.capacity)} GB/s used, {words.percent(busiest.utilisation)}"
            text = amount if busiest.link == name else f"busiest {_short(busiest.link, 24)}: {amount}"
        inside.append(_word(14, 53, text, "small"))
        others = [other for other in instance.hardware.links if other != name and _meet(name, other, instance)]
        yield Place(name, inside, 62.0, "link", [name, *others])


def _stores(plan: Plan, instance: Instance) -> Iterator[Place]:
    for name, store in instance.hardware.stores.items():
        held = next((row.demand for row in plan.resources if row.name == f"store[{name}]"), 0.0)
        text = f"{words.gibibytes(held) if held else 'nothing'} held of {words.gibibytes(store.capacity)}"
        text = f"features of images, {words.gibibytes(store.capacity)}" if store.holds == "features" else text
        inside = [_word(14, 22, f"store {_short(name, 17)}", "name"), _word(BOX - 14, 22, text, "end small")]
        yield Place(name, inside, 34.0, "store", [store.on])


def _wires(places: list[Place], plan: Plan, instance: Instance) -> Iterator[Html]:
    """Lines of the links, and from each place to the links that it joins."""
    sends, takes = _ways(plan)
    for index, link in enumerate(islice(instance.hardware.links, MOST_PLACES)):
        x = LEFT + BOX + 30.0 + STEP * index
        state = _state(plan, link)
        joints = {place.name: place.joint(link) for place in places if link in place.links}
        yield _path(f"M{x:.1f} {min(joints.values()):.1f}V{max(joints.values()):.1f}", f"bus {state}")
        for name, y in joints.items():
            yield _path(f"M{LEFT + BOX:.1f} {y:.1f}H{x:.1f}", f"wire {state}")
            yield tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="4.5", class_=f"dot {state}")
            yield from _arrows(y, (name, link) in sends, (name, link) in takes, state)


def _arrows(y: float, sends: bool, takes: bool, state: str) -> Iterator[Html]:
    x = LEFT + BOX
    if sends:
        yield _path(f"M{x + 14:.1f} {y - 6:.1f}L{x + 24:.1f} {y:.1f}L{x + 14:.1f} {y + 6:.1f}Z", f"head {state}")
    if takes:
        yield _path(f"M{x + 11:.1f} {y - 6:.1f}L{x + 1:.1f} {y:.1f}L{x + 11:.1f} {y + 6:.1f}Z", f"head {state}")


def _ways(plan: Plan) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Places that put KV on a link, and places that take it off, each with the link."""
    sends: set[tuple[str, str]] = set()
    takes: set[tuple[str, str]] = set()
    for handoff in plan.handoffs:
        if handoff.links and handoff.rate.at_load > 0:
            sends.add((handoff.source, handoff.links[0]))
            takes.add((handoff.target, handoff.links[-1]))
            if handoff.store:
                both = {(handoff.store, link) for link in handoff.links}
                sends, takes = sends | both, takes | both
        features = handoff.features
        if features is not None and features.links and handoff.rate.at_load > 0:
            sends.add((features.encoder or features.cache or "", features.links[0]))
            takes.add((handoff.source, features.links[-1]))
    return sends, takes


def _joined(place: str, instance: Instance) -> list[str]:
    return [name for name, link in instance.hardware.links.items() if place in link.connects]


def _meet(one: str, other: str, instance: Instance) -> bool:
    """Whether the row of ``one`` is where it meets the link ``other``: that of the link that names the other."""
    return other in instance.hardware.links[one].connects


def _crossing(plan: Plan, link: str) -> list[Traffic]:
    """Channels of a link: the link itself, or `link[place]` and its like."""
    return [row for row in plan.traffic if row.link.partition("[")[0] == link]


def _state(plan: Plan, link: str) -> str:
    rows = _crossing(plan, link)
    full = {row.name for row in plan.resources if row.binding}
    if any(f"link[{row.link}]" in full for row in rows):
        return FULL
    return BUSY if any(row.bytes_per_s > 0 for row in rows) else IDLE


def _box(place: Place) -> Html:
    frame = _rect(0.0, 0.0, BOX, place.height, f"box {place.kind}")
    return tag("g", frame, *place.inside, transform=f"translate({LEFT:.0f} {place.y:.1f})")


def _swatch(stage: str, y: float) -> Html:
    return _rect(14.0, y - 10.0, 11.0, 11.0, f"gpu {stage}")


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Html:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{max(0.0, width):.1f}", "height": f"{height:.1f}"}
    return tag("rect", **place, rx=f"{min(8.0, height / 6.0):.1f}", class_=kind)


def _path(way: str, kind: str) -> Html:
    return tag("path", d=way, class_=kind)


def _word(x: float, y: float, text: str, kind: str = "") -> Html:
    return tag("text", text, x=f"{x:.0f}", y=f"{y:.0f}", class_=kind)


def _short(text: str, most: int) -> str:
    return shown(text, most)
