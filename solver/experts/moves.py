"""From where replicas are to where they should be: few copies for most of the gain, and labels that avoid copies."""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout, TimeModel
from models.experts.placement import EMPTY, Placement
from solver.backend import assigned
from solver.experts.improve import membership
from solver.experts.pack import Packing, settled

MOST_STEPS = 2000


def relabelled(current: Placement, planned: Placement) -> Placement:
    """The planned placement with its cards renamed, layer by layer, so that most replicas are there already.

    Only cards with as many slots change places. The best renaming is an assignment problem, solved exactly.
    """
    before, after = current.holds().astype(np.int64), planned.holds().astype(np.int64)
    slots = planned.slots.copy()
    size = np.asarray(planned.layout.slots)
    apart = (size[:, None] != size[None, :]) * 10_000
    for layer in range(planned.layers):
        stays = after[layer].T @ before[layer]  # (planned card, label)
        label = assigned(apart - stays)
        slots[layer, label] = planned.slots[layer]
    return Placement(slots, planned.layout, planned.experts)


@dataclass(frozen=True)
class Migration:
    """A placement reached from the current one. copies: of each layer, (layers,)."""

    placement: Placement
    copies: np.ndarray


def migrate(
    current: Placement, tokens: np.ndarray, time: TimeModel, target: float, shares: np.ndarray | None = None
) -> Migration:
    """A placement with a balancedness of ``target`` in each layer and pattern, or as near as steps lead, few copies.

    tokens: (layers, experts), or (patterns, layers, experts). shares: weights of the patterns, (patterns,). Each step
    takes load off the busiest card of a pattern: a swap (two copies), or a slot of a replicated expert given to one of
    that card (one copy); the one that lowers the time above the target most per copy, summed over patterns.
    """
    layout = current.layout
    patterns = tokens[None] if tokens.ndim == 2 else tokens
    weights = np.ones(len(patterns)) if shares is None else shares
    work, fixed = time.per_token * patterns * weights[:, None, None], time.per_slot * weights
    slots = cleaned(current).slots.copy()
    live = np.arange(len(slots))
    for _ in range(MOST_STEPS):
        parts = [settled(slots[live], work[k][live], float(fixed[k])) for k in range(len(work))]
        busy = np.stack([part.busy() for part in parts])  # (patterns, live, cards)
        limit = busy.mean(2) / target
        open_ = (busy.max(2) > limit).any(0)
        if not open_.any():
            break
        live = live[open_]
        view = _View([part.take(np.flatnonzero(open_)) for part in parts], work[:, live], fixed, layout)
        moved, better = _step(view, busy[:, open_], limit[:, open_])
        slots[live] = moved
        live = live[better]
        if not len(live):
            break
    placement = Placement(slots, layout, current.experts)
    new = placement.holds() & ~current.holds()
    return Migration(placement, new.sum((1, 2)))


@dataclass(frozen=True)
class _View:
    """Some layers. parts: a packing for each pattern, with the same slots. work: (patterns, layers, experts)."""

    parts: list[Packing]
    work: np.ndarray
    fixed: np.ndarray
    layout: Layout


def cleaned(current: Placement) -> Placement:
    """Without second replicas of an expert on a card, which maps of peers may have: their slots become free.

    Empty slots are the last ones of their card.
    """
    slots = np.sort(current.slots, axis=2)
    twice = np.concatenate((np.zeros((*slots.shape[:2], 1), dtype=bool), slots[..., 1:] == slots[..., :-1]), axis=2)
    slots = np.where(twice, EMPTY, slots)
    order = np.argsort(slots == EMPTY, axis=2, kind="stable")
    return Placement(np.take_along_axis(slots, order, axis=2), current.layout, current.experts)


def _step(view: _View, busy: np.ndarray, limit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One step for each layer: its slots after it, and which layers gained.

    busy: (patterns, layers, cards). limit: time above which a card is too busy, (patterns, layers).
    """
    slots = view.parts[0].slots.copy()
    layers, _, widest = slots.shape
    b = np.arange(layers)
    worst = (busy.max(2) / limit).argmax(0)
    hot = busy[worst, b].argmax(1)
    has = membership(slots, view.work.shape[2])
    over = np.maximum(busy - limit[..., None], 0.0)
    swap_gain, swap_at = _best_swap(view, busy, has, hot, over, limit)
    give_gain, give_at = _best_gift(view, busy, has, hot, over, limit)
    better = np.maximum(swap_gain / 2.0, give_gain) > 1e-12 * limit.sum(0)
    for i in np.flatnonzero(better).tolist():
        if give_gain[i] >= swap_gain[i] / 2.0:
            mine, place = give_at[i]
            slots[i, place // widest, place % widest] = slots[i, hot[i], mine]
        else:
            mine, card, at = swap_at[i]
            slots[i, hot[i], mine], slots[i, card, at] = slots[i, card, at], slots[i, hot[i], mine]
    return slots, np.asarray(better)


def _best_swap(
    view: _View, busy: np.ndarray, has: np.ndarray, hot: np.ndarray, over: np.ndarray, limit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """By how much the best swap lowers the time above the limit, and its slot, card and slot there."""
    slots = view.parts[0].slots
    layers, cards, widest = slots.shape
    b = np.arange(layers)
    mine = slots[b, hot]
    gain = np.zeros((layers, widest, cards, widest))
    for part, load, above, most in zip(view.parts, busy, over, limit, strict=True):
        value = part.values()
        gap = value[b, hot][:, :, None, None] - value[:, None]
        edge = most[:, None, None, None]
        after = np.maximum(load[b, hot][:, None, None, None] - gap - edge, 0.0)
        after += np.maximum(load[:, None, :, None] + gap - edge, 0.0)
        gain += above[b, hot][:, None, None, None] + above[:, None, :, None] - after
    there = has[b[:, None], mine]
    taken = has[b[:, None, None], slots, hot[:, None, None]]
    taken = taken | (np.arange(widest) >= np.asarray(view.layout.slots)[:, None])
    flat = np.where(there[..., None] | taken[:, None] | (mine < 0)[:, :, None, None], -1.0, gain).reshape(layers, -1)
    best = flat.argmax(1)
    return flat[b, best], np.stack(np.unravel_index(best, (widest, cards, widest)), axis=1)


def _best_gift(
    view: _View, busy: np.ndarray, has: np.ndarray, hot: np.ndarray, over: np.ndarray, limit: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same for a slot elsewhere, empty or of a replicated expert, given to an expert of the busiest card."""
    slots = view.parts[0].slots
    layers, cards, widest = slots.shape
    b = np.arange(layers)[:, None]
    count = np.concatenate((np.maximum(view.parts[0].counts, 1), np.ones((layers, 1))), axis=1)
    flat = slots.reshape(layers, -1)
    there = (np.arange(widest) < np.asarray(view.layout.slots)[:, None]).ravel()
    may = there & ((flat < 0) | (count[b, flat] > 1)) & (np.arange(cards * widest) // widest != hot[:, None])
    most = int(may.sum(1).max(initial=0))
    if most == 0:
        return np.full(layers, -1.0), np.zeros((layers, 2), dtype=np.int64)
    place = np.argsort(~may, axis=1, kind="stable")[:, :most]
    usable, card = np.take_along_axis(may, place, axis=1), place // widest
    out, mine = np.take_along_axis(flat, place, axis=1), slots[b[:, 0], hot]
    left = [_without(view, k, busy[k], has, count, out, card) for k in range(len(view.parts))]
    best, at = np.full(layers, -1.0), np.zeros((layers, 2), dtype=np.int64)
    for i in range(widest):  # one expert of the busiest card at a time: less memory
        expert = mine[:, i]
        gain = np.zeros((layers, most))
        for k, after in enumerate(left):
            load = np.where(expert >= 0, view.work[k][b[:, 0], np.maximum(expert, 0)], 0.0)
            each = load / (count[b[:, 0], expert] + 1.0)
            falls = load / count[b[:, 0], expert] - each
            total = after - (has[b[:, 0], expert] * falls[:, None])[:, None]
            grown = np.take_along_axis(after, card[..., None], 2) + (view.fixed[k] + each)[:, None, None]
            np.put_along_axis(total, card[..., None], grown, 2)
            gain += over[k].sum(1)[:, None] - np.maximum(total - limit[k][:, None, None], 0.0).sum(2)
        wrong = ~usable | (expert[:, None] < 0) | (expert[:, None] == out) | has[b, expert[:, None], card]
        gain = np.where(wrong, -1.0, gain)
        which = gain.argmax(1)
        won = gain[b[:, 0], which]
        better = won > best
        best = np.where(better, won, best)
        at[better] = np.stack((np.full(layers, i), place[b[:, 0], which]), axis=1)[better]
    return best, at


def _without(
    view: _View, k: int, busy: np.ndarray, has: np.ndarray, count: np.ndarray, out: np.ndarray, card: np.ndarray
) -> np.ndarray:
    """Time of each card when the expert of each slot in question has left it, (layers, slots in question, cards)."""
    b = np.arange(len(busy))[:, None]
    load = np.where(out >= 0, view.work[k][b, np.maximum(out, 0)], 0.0)
    rest = np.maximum(count[b, out] - 1.0, 1.0)
    leaves = np.where(out >= 0, view.fixed[k] + load / rest, 0.0)
    after = busy[:, None, :] + has[b, out] * (load / rest - load / count[b, out])[..., None]
    np.put_along_axis(after, card[..., None], np.take_along_axis(after, card[..., None], 2) - leaves[..., None], 2)
    return np.asarray(after)
