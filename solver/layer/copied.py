"""Copies of hot experts, asked for one layer: room, saving, payback, which layers first."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from models.layer.asked import Copies, LayerBudget
from solver.crossovers import Flip, around, changes
from solver.expert_work import Tiles, gpu
from solver.formulas import replication
from solver.layer.shape import Experts, experts_of
from solver.replication import Layer, Replication, best_layers, weigh
from solver.skew import Placement


@dataclass(frozen=True)
class Lasting:
    """A hotspot of so many batches."""

    batches: int
    seconds: float
    """Won in all; negative is lost."""
    worth: bool


@dataclass(frozen=True)
class Layers:
    """Layers that get one more expert on a card."""

    each_bytes: float
    chosen: tuple[int, ...]
    bytes: float
    """Of those."""
    all_bytes: float
    """Of all layers."""
    saving_s: float


@dataclass(frozen=True)
class Copied:
    """The answer."""

    before_s: float
    """The busiest card, of one batch."""
    after_s: float
    saving_s: float
    busiest_rows_before: float
    busiest_rows_after: float
    first_traffic_bytes: float
    """Read and written on the busiest card before."""
    copied_bytes: float
    copy_s: float
    fits: bool
    short_cards: tuple[int, ...]
    """Cards without room for what they receive."""
    payback_batches: float
    """First batch after which more is saved than copying took; infinite: never."""
    lasting: tuple[Lasting, ...]
    layers: Layers | None
    crossovers: tuple[Flip, ...]


def copied(asked: Copies) -> Copied:
    """The answer to a `copies` section."""
    whole, layer = experts_of(asked), layer_of(asked)
    found, rows = weighed(asked), asked.rows
    before = layer.seconds(rows)
    after = layer.placement.with_copies([(copy.expert, copy.to) for copy in asked.copies])
    busiest = max(layer.placement.rows(rows), key=lambda each: layer.tiles.seconds(layer.expert, each, layer.engine))
    received = {card: sum(copy.to == card for copy in asked.copies) for card in sorted({c.to for c in asked.copies})}
    return Copied(
        before,
        before - found.saving,
        found.saving,
        max(layer.placement.loads(rows)),
        max(after.loads(rows)),
        layer.tiles.traffic(layer.expert, busiest),
        whole.bytes(len(asked.copies)),
        found.copying,
        found.fits,
        tuple(card for card, count in received.items() if whole.bytes(count) > asked.spare),
        found.payback,
        tuple(_lasting(found, batches) for batches in asked.batches),
        _layers(whole, asked.layers) if asked.layers else None,
        tuple(_flips(asked, found, whole.expert.weights, max(received.values()))),
    )


def layer_of(asked: Copies) -> Layer:
    """The experts on their cards, before."""
    homes = asked.homes or [0] * len(asked.rows)
    placement = Placement(asked.cards, tuple((card,) for card in homes))
    tiles = Tiles(asked.tile.rows, asked.tile.columns)
    return Layer(experts_of(asked).expert, tiles, gpu(asked.gpu, asked.efficiency), placement)


def weighed(asked: Copies) -> Replication:
    """The copies weighed."""
    copies = [(copy.expert, copy.to) for copy in asked.copies]
    spare = dict.fromkeys(range(asked.cards), asked.spare)
    return weigh(layer_of(asked), asked.rows, copies, asked.link, asked.startup, spare)


def _lasting(found: Replication, batches: int) -> Lasting:
    won = found.net(batches)
    return Lasting(batches, won, found.fits and won > 0)


def _layers(whole: Experts, asked: LayerBudget) -> Layers:
    each = whole.bytes(1)
    chosen = best_layers(asked.savings, each, asked.memory)
    saving = sum(asked.savings[layer] for layer in chosen)
    return Layers(each, chosen, each * len(chosen), each * len(asked.savings), saving)


def _flips(asked: Copies, found: Replication, weights: float, most: int) -> Iterator[Flip]:
    """The room that is needed, then the length of a hotspot, then the link, for each length that is asked for."""
    yield Flip("copies.spare", "a card", most * weights, "B", "does not fit", "fits", asked.spare)
    if not found.fits or not math.isfinite(found.payback):
        return
    for batches in asked.batches:
        who = f"{batches} batches"
        yield Flip("copies.batches", who, found.payback, "batches", "a loss", "a gain", batches)
        for value, below, above in changes(partial(_worth, asked, found, weights, batches), around(asked.link)):
            yield Flip("copies.link", who, value, "B/s", below, above, asked.link)


def _worth(asked: Copies, found: Replication, weights: float, batches: int, link: float) -> str:
    copying = replication.copy_seconds(len(asked.copies), weights, link, asked.startup)
    return "a gain" if replace(found, copying=copying).net(batches) > 0 else "a loss"
