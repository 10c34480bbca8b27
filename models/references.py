"""Checks across an instance: names that must exist, numbers that must go together.

They read the plain document, so that they report beside the problems of single values, all at once.
"""

from collections.abc import Iterator
from typing import Any

from models import demands, divided, group_degrees, images, reuse, shapes, startup, tiers
from models.errors import Problem, nearest
from models.plain import Path, entries, is_whole, mapping, problem

SEPARATED = ("pd-direct", "pd-pooled", "attention-ffn", "expert-pool", "encode-pd")
"""Schemes that have prefill or decode units in common."""


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """Every problem between keys; values of the wrong type are passed over here."""
    hardware = mapping(data.get("hardware"))
    groups, links = mapping(hardware.get("groups")), mapping(hardware.get("links"))
    yield from _names(data, groups, links, mapping(hardware.get("stores")))
    yield from _links(groups, links, mapping(hardware.get("stores")), mapping(hardware.get("bundles")))
    for name, store in entries(hardware.get("stores")):
        yield from _known(store, "on", links, ("hardware", "stores", name), "link", "hardware.links")
    for name, workload in entries(data.get("workloads")):
        path: Path = ("workloads", name)
        yield from _known(workload, "model", mapping(data.get("models")), path, "model", "models")
        yield from demands.check(workload, path)
        yield from reuse.check(workload, path)
        yield from _placement(workload, groups, path)
    yield from images.check(data)
    yield from tiers.check(data)
    for name, llm in entries(data.get("models")):
        yield from shapes.check(llm, ("models", name))
    yield from _cards(groups)
    yield from _prices(data, groups)
    yield from _pools(data, groups)
    yield from _bundles(hardware, groups)
    yield from _given(data, groups)
    yield from _dropping(data)
    yield from divided.check(data, groups)
    yield from group_degrees.check(data)
    yield from startup.check(mapping(data.get("service")))
    for name, group in entries(groups):
        yield from shapes.degrees(group, ("hardware", "groups", name))


def _known(
    entry: dict[str, Any], key: str, known: dict[str, Any], path: Path, noun: str, where: str
) -> Iterator[Problem]:
    name = entry.get(key)
    if isinstance(name, str) and name not in known:
        guess = nearest(name, known)
        message = f"no {noun} of this name under {where}" + (f"; {guess}" if guess else "")
        yield problem((*path, key), message, name, "one of " + ", ".join(known) if known else None)


def _names(
    data: dict[str, Any], groups: dict[str, Any], links: dict[str, Any], stores: dict[str, Any]
) -> Iterator[Problem]:
    for kind, known in (("links", links), ("stores", stores)):
        for name in known:
            if name in groups or (kind == "stores" and name in links):
                yield problem(("hardware", kind, name), "the name is taken by another place", name, "a new name")
    named: list[tuple[Path, dict[str, Any]]] = [
        (("hardware", "groups"), groups),
        (("hardware", "links"), links),
        (("hardware", "stores"), stores),
        (("models",), mapping(data.get("models"))),
        (("workloads",), mapping(data.get("workloads"))),
        (("measured",), mapping(data.get("measured"))),
        (("hardware", "bundles"), mapping(mapping(data.get("hardware")).get("bundles"))),
    ]
    for path, known in named:
        for name in known:
            if not name or len(name) > 64 or not all(c.isalnum() or c in "-_." for c in name):
                accepted = "letters, digits, '-', '_' and '.', at most 64"
                yield problem((*path, name), "not a usable name", name, accepted)


def _links(
    groups: dict[str, Any], links: dict[str, Any], stores: dict[str, Any], bundles: dict[str, Any]
) -> Iterator[Problem]:
    for name, link in entries(links):
        connects = link.get("connects")
        if not isinstance(connects, list):
            continue
        yield from _bought(link, connects, groups, bundles, name)
        mine = [store for store, entry in entries(stores) if entry.get("on") == name]
        known = {**groups, **{other: None for other in links if other != name}, **dict.fromkeys(mine)}
        for index, place in enumerate(connects):
            path: Path = ("hardware", "links", name, "connects", index)
            if not isinstance(place, str):
                continue
            if place in connects[:index]:
                yield problem(path, "named twice", place, "each place once")
            elif place not in known:
                guess = nearest(place, known)
                message = "no group, other link, or store on this link has this name" + (f"; {guess}" if guess else "")
                yield problem(path, message, place, "one of " + ", ".join(known))


def _bought(
    link: dict[str, Any], connects: list[Any], groups: dict[str, Any], bundles: dict[str, Any], name: str
) -> Iterator[Problem]:
    """A link whose ports come with servers that a plan may buy: how many there will be is not known."""
    sold = {place for _, bundle in entries(bundles) for place in mapping(bundle.get("cards"))}
    endless = {place for place, group in entries(groups) if group.get("servers") == "unlimited"}
    mine = [place for place in connects if isinstance(place, str) and place in sold | endless]
    if link.get("per") == "server" and mine:
        message = f"ports of servers that are bought are not supported yet: {', '.join(mine)}"
        yield problem(
            ("hardware", "links", name, "per"), message, "server", "link, with ports for all of them together"
        )


def _placement(workload: dict[str, Any], groups: dict[str, Any], path: Path) -> Iterator[Problem]:
    named: dict[str, list[str]] = {}
    for key in ("allow", "deny"):
        names = workload.get(key)
        for index, name in enumerate(names if isinstance(names, list) else []):
            if not isinstance(name, str):
                continue
            named.setdefault(key, []).append(name)
            if name not in groups:
                guess = nearest(name, groups)
                message = "no group of this name" + (f"; {guess}" if guess else "")
                yield problem((*path, key, index), message, name, "one of " + ", ".join(groups))
    allowed = set(named.get("allow", groups)) - set(named.get("deny", []))
    if named and groups and not allowed & set(groups):
        yield problem((*path, "deny" if "deny" in named else "allow"), "leaves no group to serve it")


MOST_CARDS = 10**8
"""GPUs of a group up to which counts are exact in every step of a solve."""


def _cards(groups: dict[str, Any]) -> Iterator[Problem]:
    for name, group in entries(groups):
        servers, each = group.get("servers"), group.get("per_server")
        if is_whole(servers) and is_whole(each) and max(servers, each) <= 10**7 and servers * each > MOST_CARDS:
            accepted = f"at most {MOST_CARDS:,} GPUs in a group"
            yield problem(("hardware", "groups", name, "servers"), f"{servers * each:,} GPUs", servers, accepted)


def _prices(data: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    if data.get("objective", "effective_cost") in ("effective_cost", "cost"):
        for name, group in entries(groups):
            if group.get("price") is None and group.get("servers") != 0:  # those of bundles are paid with them
                message = "missing: the objective is a cost"
                yield problem(("hardware", "groups", name, "price"), message, None, "a price of one GPU, e.g. 2.50/h")
        for name, bundle in entries(mapping(data.get("hardware")).get("bundles")):
            if bundle.get("price") is None:
                message = "missing: the objective is a cost"
                yield problem(("hardware", "bundles", name, "price"), message, None, "a price of one bundle, e.g. 20/h")
    if data.get("objective") == "power":
        for name, group in entries(groups):
            if mapping(group.get("accelerator")).get("power") is None:
                message = "missing: the objective is power"
                path: Path = ("hardware", "groups", name, "accelerator", "power")
                yield problem(path, message, None, "board power of one GPU, e.g. 700 W")


def _bundles(hardware: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    brought = {group for _, bundle in entries(hardware.get("bundles")) for group in mapping(bundle.get("cards"))}
    for name, described in entries(groups):
        if is_whole(described.get("servers")) and described["servers"] == 0 and name not in brought:
            accepted = "a number of servers, `unlimited`, or a bundle that brings its GPUs"
            yield problem(("hardware", "groups", name, "servers"), "no server, and no bundle brings any", 0, accepted)
    for name, bundle in entries(hardware.get("bundles")):
        path: Path = ("hardware", "bundles", name, "cards")
        if name in groups:
            yield problem(("hardware", "bundles", name), "the name is taken by a group", name, "a new name")
        for group in mapping(bundle.get("cards")):
            if group not in groups:
                guess = nearest(group, groups)
                message = "no group of this name" + (f"; {guess}" if guess else "")
                yield problem((*path, group), message, group, "one of " + ", ".join(groups))
            elif mapping(groups[group]).get("servers") == "unlimited":
                accepted = "a group with a number of servers, 0 where all come from bundles"
                yield problem((*path, group), "is rented as needed already", group, accepted)
            else:
                each, cards = mapping(groups[group]).get("per_server"), bundle["cards"][group]
                if is_whole(each) and is_whole(cards) and each > 0 and cards % each:
                    accepted = f"a multiple of per_server = {each}"
                    yield problem((*path, group), "are not whole servers", cards, accepted)


def _given(data: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    """Measured units and what runs today: names, and sizes that fit in servers."""
    models, workloads = mapping(data.get("models")), mapping(data.get("workloads"))
    for name, unit in entries(data.get("measured")):
        path: Path = ("measured", name)
        yield from _known(unit, "group", groups, path, "group", "hardware.groups")
        yield from _known(unit, "model", models, path, "model", "models")
        if not unit.get("rates") and not unit.get("table"):
            yield problem(path, "states no rate", None, "rates by workload, or a table of input, output and rate")
        for key in mapping(unit.get("rates")):
            if key not in workloads:
                guess = nearest(key, workloads)
                message = "no workload of this name" + (f"; {guess}" if guess else "")
                yield problem((*path, "rates", key), message, key, "one of " + ", ".join(workloads))
            elif mapping(workloads[key]).get("model") != unit.get("model"):
                yield problem((*path, "rates", key), "a workload of another model", key, "a workload of its model")
        if unit.get("scheme") is not None and unit.get("stage", "both") != "both":
            yield problem((*path, "scheme"), "only for units that serve whole requests", unit["scheme"], "stage: both")
        yield from _fits(unit, groups, path, mapping(unit).get("cards"))
    for index, pool in enumerate(data["current"] if isinstance(data.get("current"), list) else []):
        path = ("current", index)
        if not isinstance(pool, dict):
            continue
        yield from _known(pool, "group", groups, path, "group", "hardware.groups")
        yield from _known(pool, "model", models, path, "model", "models")
        if len(models) > 1 and "model" not in pool:
            yield problem((*path, "model"), "missing: there are several", None, "one of " + ", ".join(models))
        yield from _fits(pool, groups, path, None)


def _fits(unit: dict[str, Any], groups: dict[str, Any], path: Path, cards: object) -> Iterator[Problem]:
    each = mapping(groups.get(str(unit.get("group")))).get("per_server")
    tp, pp = unit.get("tp", 1), unit.get("pp", 1)
    if is_whole(each) and is_whole(tp) and tp > each:
        yield problem((*path, "tp"), f"more than the {each} GPUs of a server", tp, f"at most {each}")
    if is_whole(cards) and is_whole(tp) and is_whole(pp) and cards < tp * pp:
        yield problem((*path, "cards"), f"fewer than tp x pp = {tp * pp}", cards, f"{tp * pp} or more")


def _dropping(data: dict[str, Any]) -> Iterator[Problem]:
    """What cannot stand beside arrivals that may be turned away, or GPUs without number."""
    objective = data.get("objective", "effective_cost")
    hardware = mapping(data.get("hardware"))
    endless = [f"hardware.groups.{n}" for n, g in entries(hardware.get("groups")) if g.get("servers") == "unlimited"]
    endless += [f"hardware.bundles.{n}" for n, b in entries(hardware.get("bundles")) if b.get("at_most") is None]
    if objective in ("throughput", "headroom") and endless:
        accepted = "at_most for every bundle, a number of servers, or an objective that costs count in"
        yield problem(("objective",), f"has no limit with {', '.join(endless)}", objective, accepted)
    for name, workload in entries(data.get("workloads")):
        share = workload.get("minimum_share", 1)
        if share in (1, 1.0, "100 %", "100%"):
            continue
        path: Path = ("workloads", name, "minimum_share")
        if mapping(data.get("service")).get("drain") is not None:
            yield problem(path, "not supported yet beside service.drain", share, "one of the two")
        if objective in ("throughput", "headroom"):
            yield problem(
                path, f"means nothing to the objective {objective}", share, "effective_cost, cost, power or gpus"
            )


def _pools(data: dict[str, Any], groups: dict[str, Any]) -> Iterator[Problem]:
    limits = mapping(data.get("limits")).get("pools")
    for index, limit in enumerate(limits if isinstance(limits, list) else []):
        if not isinstance(limit, dict):
            continue
        path: Path = ("limits", "pools", index)
        yield from _known(limit, "group", groups, path, "group", "hardware.groups")
        yield from _known(limit, "model", mapping(data.get("models")), path, "model", "models")
        schemes = mapping(data.get("schemes"))
        allowed = schemes.get("allow", list(SEPARATED[:2]))
        pair = [name for name in SEPARATED if isinstance(allowed, list) and name in allowed]
        if limit.get("scheme") in pair and len(pair) > 1 and schemes.get("mix", True) is not False:
            message = f"units for one stage serve {' and '.join(pair)} here"
            accepted = "a bound by stage, one of these schemes allowed, or `mix: false`"
            yield problem((*path, "scheme"), message, limit["scheme"], accepted)
        bounds = {key: limit[key] for key in ("exactly", "at_least", "at_most") if limit.get(key) is not None}
        if not bounds:
            yield problem(path, "bounds nothing", None, "one of exactly, at_least, at_most")
        if "exactly" in bounds and len(bounds) > 1:
            yield problem((*path, "exactly"), "stands beside another bound", bounds["exactly"], "exactly alone")
        low, high = bounds.get("at_least"), bounds.get("at_most")
        if is_whole(low) and is_whole(high) and low > high:
            yield problem((*path, "at_least"), f"more than at_most = {high}", low, f"at most {high}")
