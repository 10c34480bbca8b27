"""What the types of a layer question cannot see: parts that do not go together, and names that lead nowhere."""

from collections.abc import Iterator
from typing import Any

from models.errors import Problem, nearest, shown
from models.layer.asked import MOST_CHOICES, SECTIONS
from models.layer.fields import described
from models.plain import is_whole, mapping, problem

LEFT_OUT = "left out, or both"


def check(data: dict[str, Any]) -> Iterator[Problem]:
    """Every problem of that kind."""
    asked = [name for name in SECTIONS if isinstance(data.get(name), dict)]
    if not asked and not any(name in data for name in SECTIONS):
        yield problem((), "asks nothing", None, f"one or more of {', '.join(SECTIONS)}")
    for name, checked in _CHECKS.items():
        if name in asked:
            yield from checked(name, data[name])


def _experts(name: str, section: dict[str, Any], needed: bool = True) -> Iterator[Problem]:
    """Either a model with experts or a shape."""
    stated = [key for key in ("model", "expert") if section.get(key) is not None]
    if len(stated) == 2 or (needed and not stated):
        message = "stands beside a model" if stated else "missing: whose experts"
        where = (name, "expert") if stated else (name, "model")
        yield problem(where, message, None, "a model of the catalog, or expert: {hidden, width}")
    model = described("models", section["model"]) if stated == ["model"] else None
    if model is not None and not count_of(section):
        yield problem((name, "model"), "is a dense model", model.get("name"), "a mixture of experts")


def count_of(section: dict[str, Any]) -> int | None:
    """Experts of a layer, where they are stated and it is a number."""
    model = described("models", section.get("model")) or {}
    found = mapping(section.get("expert")).get("experts")
    found = found or model.get("n_routed_experts") or model.get("num_experts") or model.get("num_local_experts")
    return found if is_whole(found) else None


def _chosen_of(section: dict[str, Any]) -> int | None:
    model = described("models", section.get("model")) or {}
    found = mapping(section.get("expert")).get("chosen") or model.get("num_experts_per_tok")
    return found if is_whole(found) else None


def _length(value: object) -> int | None:
    return len(value) if isinstance(value, list) else None


def _indices(path: tuple[str, ...], values: object, below: object, what: str) -> Iterator[Problem]:
    for index, value in enumerate(values if isinstance(values, list) else []):
        if is_whole(value) and is_whole(below) and value >= below > 0:
            yield problem((*path, index), f"no such {what}", value, f"0 to {below - 1}")


def _offload(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    yield from _experts(name, section)
    cpu, kernel = described("cpus", section.get("cpu")), section.get("kernel")
    kernels = mapping((cpu or {}).get("kernels"))
    if isinstance(kernel, str) and kernels and kernel not in kernels:
        guess = nearest(kernel, kernels)
        message = f"the CPU has no such kernel{'; ' if guess else ''}{guess}"
        yield problem((name, "kernel"), message, kernel, ", ".join(kernels))
    rows, tokens = section.get("rows"), section.get("tokens")
    if (rows is None) == (tokens is None):
        message = "stands beside rows" if rows is not None else "missing, and so are rows"
        yield problem((name, "tokens"), message, tokens, "one of rows and tokens")
    if isinstance(rows, list) and section.get("over") is not None:
        yield problem((name, "over"), "stands beside a list of rows", section["over"], "left out")
    yield from _some(name, rows if isinstance(rows, list) else [rows])
    yield from _numbers(name, section)
    yield from _indices((name, "homes"), section.get("homes"), section.get("sockets", 1), "socket")
    if section.get("read") == "remote" and section.get("sockets", 1) not in (1, 2):
        yield problem((name, "read"), "each socket reads that of the other one", "remote", "one or two sockets")


def _numbers(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    """Numbers of experts that a layer does not have, or that nothing states."""
    count, rows, over = count_of(section), section.get("rows"), section.get("over")
    wanted = {"over": over, "keep": section.get("keep"), "rows": _length(rows)}
    for key, value in wanted.items():
        if is_whole(value) and count is not None and value > count:
            yield problem((name, key), f"the layer has {count} experts", value, f"at most {count}")
    shape = mapping(section.get("expert"))
    needs = {
        "experts": [key for key in ("tokens", "keep", "gpu_memory", "demand") if section.get(key) is not None],
        "chosen": [key for key in ("tokens", "demand") if section.get(key) is not None],
        "layers": [key for key in ("keep", "gpu_memory", "demand") if section.get(key) is not None],
    }
    for key, users in needs.items():
        if shape and shape.get(key) is None and users:
            yield problem((name, "expert", key), f"missing: {' and '.join(users)} need it", None, "a whole number")
    chosen = _chosen_of(section)
    if chosen is not None and count is not None and chosen > count:
        yield problem((name, "expert", "chosen"), "is more than there are", chosen, f"at most {count}")
    elif chosen is not None and section.get("tokens") is not None and is_whole(over) and over < chosen:
        yield problem((name, "over"), f"each token chooses {chosen} experts", over, f"at least {chosen}")
    homes = section.get("homes")
    used = _length(rows) or over or (1 if rows is not None else count)
    if isinstance(homes, list) and is_whole(used) and len(homes) != used:
        yield problem((name, "homes"), f"{len(homes)} for {used} experts", None, "a socket for each expert with rows")


def _exchange(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    yield from _experts(name, section)
    sources, group, rows = section.get("sources"), section.get("group"), section.get("rows")
    if (sources is None) == (group is None):
        message = "stands beside sources" if group is not None else "missing, and so is group"
        yield problem((name, "group" if group is not None else "sources"), message, None, "one of sources and group")
    if group is not None and section.get("between") is not None:
        yield problem((name, "between"), "is for two pools", section["between"], "sources in place of group")
    yield from _batch(name, section)
    cards = _length(rows) if rows is not None else section.get("cards")
    servers, each = mapping(group).get("servers"), mapping(group).get("per_server")
    if is_whole(servers) and is_whole(each) and is_whole(cards) and servers * each != cards:
        message = f"{cards} cards have experts, the servers have {servers * each}"
        where = (name, "cards" if rows is None else "rows")
        yield problem(where, message, None, f"{servers * each} cards")
    yield from _some(name, rows)


def _batch(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    """Rows of each card, or a batch and cards that experts are dealt to."""
    rows, tokens, cards, hot = (section.get(key) for key in ("rows", "tokens", "cards", "hot"))
    if (rows is None) == (tokens is None):
        message = "stands beside rows" if rows is not None else "missing, and so are rows"
        yield problem((name, "tokens"), message, tokens, "one of rows and tokens")
    for key, value in (("cards", cards), ("hot", hot)):
        if rows is not None and value is not None:
            yield problem((name, key), "stands beside rows", value, "left out, or tokens in place of rows")
    if rows is not None or tokens is None:
        return
    if cards is None:
        yield problem((name, "cards"), "missing: experts are dealt to cards", None, "a number of cards")
    count = count_of(section)
    for key, known in (("experts", count), ("chosen", _chosen_of(section))):
        if known is None and section.get("expert") is not None:
            yield problem((name, "expert", key), "missing: tokens need it", None, "a whole number")
    if is_whole(cards) and count is not None and cards > count:
        yield problem((name, "cards"), "some cards would have no expert", cards, f"at most {count}")
    if is_whole(tokens) and isinstance(hot, int | float) and hot > tokens:
        yield problem((name, "hot"), "is more than one row of each token", hot, f"at most {tokens}")
    if hot is not None and count == 1:
        yield problem((name, "hot"), "the layer has no other expert", hot, "left out")


def _some(name: str, rows: object) -> Iterator[Problem]:
    if isinstance(rows, list) and rows and all(value == 0 for value in rows):
        yield problem((name, "rows"), "no expert has any", None, "at least one row")


def _skew(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    experts, chosen, more = section.get("experts"), section.get("chosen"), section.get("redundant", 0)
    tokens, hot, cards = section.get("tokens"), section.get("hot"), section.get("cards")
    if is_whole(experts) and is_whole(more) and more > experts:
        yield problem((name, "redundant"), "is more than a second copy of each", more, f"at most {experts}")
    if is_whole(experts) and is_whole(more):
        for index, value in enumerate(cards if isinstance(cards, list) else [cards]):
            place = (name, "cards", index) if isinstance(cards, list) else (name, "cards")
            if is_whole(value) and value > experts + more:
                yield problem(place, "some cards would have no expert", value, f"at most {experts + more}")
    if is_whole(experts) and is_whole(chosen) and chosen > experts:
        yield problem((name, "chosen"), "is more than there are", chosen, f"at most {experts}")
    if is_whole(tokens) and isinstance(hot, int | float) and hot > tokens:
        yield problem((name, "hot"), "is more than one row of each token", hot, f"at most {tokens}")
    batches = mapping(section.get("random")).get("batches", 1000)
    each = tokens * chosen if is_whole(tokens) and is_whole(chosen) else 0
    if section.get("random") is not None and is_whole(batches) and each * batches > MOST_CHOICES:
        most = MOST_CHOICES // each
        accepted = f"at most {most} of batches as large" if most > 1 else "fewer tokens"
        yield problem((name, "random", "batches"), "too many choices to draw", batches, accepted)
    if (section.get("row") is None) != (section.get("link") is None):
        missing = "row" if section.get("row") is None else "link"
        yield problem((name, missing), "missing: a time needs bytes and a link", None, LEFT_OUT)


def _copies(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    yield from _experts(name, section)
    rows, homes, cards = section.get("rows"), section.get("homes"), section.get("cards")
    count = _length(rows)
    if isinstance(homes, list) and count is not None and len(homes) != count:
        yield problem((name, "homes"), f"{len(homes)} for {count} experts", None, "a card for each expert")
    yield from _indices((name, "homes"), homes, cards, "card")
    yield from _some(name, rows)
    listed = section.get("copies")
    held: set[tuple[int, int]] = set()
    for index, copy in enumerate(listed if isinstance(listed, list) else []):
        expert, to = mapping(copy).get("expert"), mapping(copy).get("to")
        if is_whole(expert) and count is not None and expert >= count:
            yield problem((name, "copies", index, "expert"), "no such expert", expert, f"0 to {count - 1}")
        elif is_whole(to) and is_whole(cards) and to >= cards:
            yield problem((name, "copies", index, "to"), "no such card", to, f"0 to {cards - 1}")
        elif is_whole(expert) and is_whole(to):
            home = homes[expert] if isinstance(homes, list) and expert < len(homes) else 0
            if to == home or (expert, to) in held:
                where = (name, "copies", index, "to")
                yield problem(where, f"the card has expert {shown(expert)} already", to, "another card")
            held.add((expert, to))


def _tiles(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    yield from _experts(name, section, needed=False)
    yield from _some(name, section.get("rows"))


def _pipeline(name: str, section: dict[str, Any]) -> Iterator[Problem]:
    stages, batches, ready = mapping(section.get("stages")), section.get("batches"), section.get("ready")
    for stage in mapping(section.get("slower")):
        if stages and stage not in stages:
            yield problem((name, "slower", stage), "no such stage", None, ", ".join(map(shown, stages)))
    if isinstance(ready, list) and is_whole(batches) and len(ready) != batches:
        yield problem((name, "ready"), f"{len(ready)} times for {batches} micro-batches", None, "a time for each")


_CHECKS = {
    "offload": _offload,
    "exchange": _exchange,
    "skew": _skew,
    "copies": _copies,
    "tiles": _tiles,
    "pipeline": _pipeline,
}
