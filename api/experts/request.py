"""What the options of `inferplan experts` ask for: loads, cards, times, every mistake told at once."""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from models import units
from models.errors import BadInput, Problem, shown, tried
from models.experts import maps, reading
from models.experts.layout import MOST_CARDS, MOST_SLOTS, TOKENS, Layout, TimeModel, spread
from models.experts.loads import Loads, check_fit, loads
from models.experts.placement import Placement


@dataclass(frozen=True)
class Request:
    """The options, read and checked."""

    loads: Loads
    holdout: Loads | None
    layout: Layout
    layer_ids: tuple[int, ...]
    model_layers: int
    time: TimeModel
    timed: bool
    current: Placement | None
    budget: float | None
    expert_bytes: float
    groups: int | None
    copy_rate: float | None
    copy_startup: float
    steps: float | None
    lifetime: float | None
    in_flight: int
    kv_token_bytes: float | None


def request(options: argparse.Namespace) -> Request:
    """Everything that the options say. Raises BadInput with every problem found."""
    problems: list[Problem] = []
    found = tried(lambda: reading.read(options.loads), problems)
    checked = tried(lambda: loads(found.arrays, _weights(options.weights)), problems) if found else None
    layout = tried(lambda: _layout(options), problems)
    held = tried(lambda: _held_out(options.holdout, checked), problems) if options.holdout else None
    sizes = {name: tried(_quantity(options, name), problems) for name in QUANTITIES}
    counts = {
        name: tried(_count(options, name), problems) for name in ("steps", "lifetime", "in_flight", "expert_groups")
    }
    time = tried(lambda: _time(options, counts["steps"] or 1.0), problems)
    problems += _combinations(options)
    if problems or checked is None or found is None or layout is None or time is None:
        raise BadInput(problems)
    check_fit(checked.experts, layout)
    ids, model_layers = _layer_ids(options, checked, found.layer_ids)
    current = maps.read(options.current, layout, ids, checked.experts) if options.current else None
    groups = None if counts["expert_groups"] is None else int(counts["expert_groups"])
    if groups is not None and (groups < 1 or checked.experts % groups):
        message = f"{checked.experts} experts cannot be divided into {groups} groups"
        raise BadInput([Problem("--expert-groups", message, str(groups), "a divisor of the experts")])
    return Request(
        checked,
        held,
        layout,
        ids,
        model_layers,
        time,
        options.token_time is not None,
        current,
        sizes["budget"],
        sizes["expert_bytes"] or EXPERT_BYTES,
        groups,
        sizes["copy_rate"],
        sizes["copy_startup"] or 0.0,
        counts["steps"],
        counts["lifetime"],
        int(counts["in_flight"] or 0),
        sizes["kv_token_bytes"],
    )


EXPERT_BYTES = 3.0 * 7168 * 2048
"""Of one expert where it is not stated: DeepSeek-V3 in FP8, three matrices of 7168 x 2048."""
QUANTITIES = {
    "budget": units.BYTES,
    "expert_bytes": units.BYTES,
    "copy_rate": units.BYTE_RATE,
    "copy_startup": units.TIME,
    "kv_token_bytes": units.BYTES,
}
"""Options with a unit."""


def option(name: str) -> str:
    """The option of an attribute."""
    return "--" + name.replace("_", "-")


def _combinations(options: argparse.Namespace) -> list[Problem]:
    found = []
    if options.lifetime is not None:
        for name, meaning in (
            ("token_time", "of a token"),
            ("copy_rate", "of copies"),
            ("expert_bytes", "of an expert"),
        ):
            if getattr(options, name) is None:
                found.append(Problem(option(name), "is missing", None, f"--lifetime needs that {meaning}"))
    if options.keep_groups and options.expert_groups is None:
        found.append(Problem("--expert-groups", "is missing", None, "how many groups, which --keep-groups needs"))
    if options.separate:
        found += [
            Problem(option(name), "is for one placement, --separate makes several")
            for name in ("current", "budget", "expert_groups", "html", "splits")
            if getattr(options, name) is not None
        ]
    if (options.write is None) != (options.out is None):
        missing, other = ("--out", "--write") if options.out is None else ("--write", "--out")
        found.append(Problem(missing, f"is missing beside {other}"))
    if options.separate and options.write is not None:
        found.append(Problem("--write", "is for one placement, --separate makes several"))
    for name in ("lifetime", "in_flight"):
        if getattr(options, name) is not None and options.current is None:
            accepted = f"where replicas are now, which {option(name)} needs"
            found.append(Problem("--current", "is missing", None, accepted))
    return found


def _layout(options: argparse.Namespace) -> Layout:
    cards = _whole(options.cards, "--cards", 1, MOST_CARDS)
    nodes = _whole(options.nodes, "--nodes", 1, MOST_CARDS)
    if (options.slots is None) == (options.slots_per_card is None):
        message = "is missing" if options.slots is None else "stands beside --slots-per-card"
        accepted = "slots of one layer over all cards; or --slots-per-card"
        raise BadInput([Problem("--slots", message, options.slots, accepted)])
    engine = options.write is not None or options.engine
    if options.slots is not None:
        return Layout(spread(cards, _whole(options.slots, "--slots", 1, MOST_SLOTS)), nodes, engine)
    each = [_whole(part, "--slots-per-card", 0, MOST_SLOTS) for part in options.slots_per_card.split(",")]
    if len(each) not in (1, cards):
        message = f"{len(each)} numbers for {cards} cards"
        raise BadInput([Problem("--slots-per-card", message, options.slots_per_card, "one number, or one a card")])
    return Layout(tuple(each * cards if len(each) == 1 else each), nodes, engine)


def _whole(text: str, place: str, low: int, high: int) -> int:
    cleaned = str(text).strip()
    if not cleaned.isdecimal() or len(cleaned) > 9 or not low <= int(cleaned) <= high:
        raise BadInput(
            [Problem(place, "not a number that is accepted", str(text), f"a whole number, {low} to {high:,}")]
        )
    return int(cleaned)


def _weights(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadInput([Problem("--weights", "not numbers", text, "W1,W2,... one a scenario")]) from None


def _held_out(path: Path, trained: Loads | None) -> Loads:
    found = loads(reading.read(path, "--holdout").arrays, None, "--holdout")
    if trained is not None and found.tokens.shape[1:] != trained.tokens.shape[1:]:
        shapes = [f"{one.layers} layers x {one.experts} experts" for one in (found, trained)]
        raise BadInput([Problem("--holdout", f"{shapes[0]}, but LOADS are {shapes[1]}", str(path))])
    return found


def _time(options: argparse.Namespace, steps: float) -> TimeModel:
    if options.token_time is None:
        if options.slot_time is not None:
            accepted = "the time of one token, e.g. 76 ns; --slot-time is in addition to it"
            raise BadInput([Problem("--token-time", "is missing", None, accepted)])
        return TOKENS
    token = _parsed(options.token_time, "--token-time", units.TIME)
    slot = 0.0 if options.slot_time is None else _parsed(options.slot_time, "--slot-time", units.TIME)
    return TimeModel(slot, token / steps)


def _quantity(options: argparse.Namespace, name: str) -> Callable[[], float | None]:
    text = getattr(options, name)
    return lambda: None if text is None else _parsed(text, option(name), QUANTITIES[name])


def _parsed(text: str, place: str, dimension: units.Dimension) -> float:
    try:
        plain = dimension is units.BYTES and text.strip().isdecimal()
        value = float(text) if plain else units.parse(text, dimension)
    except units.QuantityError as error:
        raise BadInput([Problem(place, str(error), text, dimension.name)]) from None
    if not math.isfinite(value):
        raise BadInput([Problem(place, "is not a finite number", shown(text), dimension.name)])
    above = place in ("--copy-rate", "--expert-bytes", "--kv-token-bytes")
    if value < 0 or (above and value == 0):
        raise BadInput([Problem(place, "is too small", text, "more than 0" if above else "0 or more")])
    return value


def _count(options: argparse.Namespace, name: str) -> Callable[[], float | None]:
    text = getattr(options, name)
    return lambda: None if text is None else float(_whole(text, option(name), int(name != "in_flight"), 10**9 - 1))


def _layer_ids(
    options: argparse.Namespace, checked: Loads, told: tuple[int, ...] | None
) -> tuple[tuple[int, ...], int]:
    """The model's ids of the layers, and how many layers the model has."""
    first = 0 if options.first_layer is None else _whole(options.first_layer, "--first-layer", 0, 100_000)
    ids = tuple(range(first, first + checked.layers)) if told is None or options.first_layer is not None else told
    if options.model_layers is None:
        return ids, max(ids) + 1
    count = _whole(options.model_layers, "--model-layers", 1, 100_000)
    if count <= max(ids):
        message = f"{count} layers in the model, but the loads go up to layer {max(ids)}"
        raise BadInput([Problem("--model-layers", message, str(count), f"{max(ids) + 1} or more")])
    return ids, count
