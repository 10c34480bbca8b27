"""Heat maps of layers x cards, before and after, as one HTML file with an SVG inside."""

import numpy as np

from api.report.markup import Html, escape, join, tag
from models.experts.placement import Placement
from solver.experts.result import Result
from solver.experts.times import card_times

CELL, GAP, LEFT, TOP = 8, 40, 48, 56
COLOURS = ((33, 102, 172), (247, 247, 247), (178, 24, 43))
"""Of a card without load, of the mean card, and of one with twice its load or more."""


def in_order(result: Result) -> Placement:
    """Where engines put experts unasked: slot after slot, beginning again when all are placed."""
    layout, experts = result.placement.layout, result.placement.experts
    slots = np.full_like(result.placement.slots, -1)
    at = 0
    for card, size in enumerate(layout.slots):
        slots[:, card, : min(size, experts)] = (at + np.arange(min(size, experts))) % experts
        at += size
    return Placement(slots, layout, experts)


def picture(result: Result, current: Placement | None) -> str:
    """A page with a row of maps for each scenario: before (the current placement, or experts in order) and after."""
    before = current if current is not None else in_order(result)
    title = "now" if current is not None else "experts in order"
    parts = []
    for name, tokens in zip(result.loads.names, result.loads.tokens, strict=True):
        pair = [card_times(placement, tokens, result.time) for placement in (before, result.placement)]
        parts.append(_row(name, [(title, pair[0]), ("placed", pair[1])]))
    head = '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Expert placement</title>'
    style = "<style>body{font:14px sans-serif;margin:24px}svg{max-width:100%}</style></head><body>"
    text = "Time of each card (column) in each layer (row) over the mean of the layer: white is the mean, red twice it."
    return f"{head}{style}{tag('h1', 'Expert placement')}{tag('p', text)}{join(parts)}</body></html>\n"


def _row(name: str, maps: list[tuple[str, np.ndarray]]) -> Html:
    layers, cards = maps[0][1].shape
    width = LEFT + len(maps) * (cards * CELL + GAP)
    height = TOP + layers * CELL + 24
    inside = []
    for index, (title, times) in enumerate(maps):
        left = LEFT + index * (cards * CELL + GAP)
        balance = float((times.mean(1) / times.max(1)).mean())
        inside.append(_text(left, 20, f"{name}: {title}"))
        inside.append(_text(left, 38, f"balancedness {balance:.4f}"))
        inside.append(_cells(times / times.mean(1, keepdims=True), left))
    inside.append(_text(4, TOP + 8, "layer 0"))
    box = f"0 0 {width} {height}"
    return tag("svg", *inside, viewBox=box, width=str(width), height=str(height), role="img", aria_label=name)


def _text(x: float, y: float, text: str) -> Html:
    return tag("text", escape(text), x=f"{x:g}", y=f"{y:g}", style="font:12px sans-serif")


def _cells(relative: np.ndarray, left: int) -> Html:
    """Cells of one map; neighbours of the same colour in a row are one rectangle."""
    found = []
    for layer, row in enumerate(relative):
        colours = [_colour(float(value)) for value in row]
        start = 0
        for card in range(1, len(colours) + 1):
            if card == len(colours) or colours[card] != colours[start]:
                x, y, width = left + start * CELL, TOP + layer * CELL, (card - start) * CELL
                found.append(f'<rect x="{x}" y="{y}" width="{width}" height="{CELL}" fill="{colours[start]}"/>')
                start = card
    return Html("".join(found))


def _colour(value: float) -> str:
    """The colour of a load relative to the mean, in 40 steps."""
    share = round(min(max(value, 0.0), 2.0) * 20) / 20
    low, high, at = (COLOURS[0], COLOURS[1], share) if share <= 1 else (COLOURS[1], COLOURS[2], share - 1)
    return "#" + "".join(f"{round(a + (b - a) * at):02x}" for a, b in zip(low, high, strict=True))
