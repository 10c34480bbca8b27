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


def migrate(current: Placement, tokens: np.ndarray, time: TimeModel, target: float) -> Migration:
    """A placement with a balancedness of ``target`` in each layer, or as near as steps lead, with few copies.

    tokens: (layers, experts). Each step takes load off the busiest card: a swap (two copies), or a slot of a replicated
    expert given to one of the busiest card (one copy); the one that lowers the time above the target most per copy.
    """
    layout, a = current.layout, time.per_slot
    work = time.per_token * tokens
    packing = settled(cleaned(current).slots.copy(), work, a)
    live = np.arange(len(work))
    for _ in range(MOST_STEPS):
        busy = packing.busy()[live]
        limit = busy.mean(1) / target
        live, limit = live[busy.max(1) > limit], limit[busy.max(1) > limit]
        if not len(live):
            break
        live = live[_step(packing, work, layout, a, live, limit)]
    placement = Placement(packing.slots, layout, current.experts)
    new = placement.holds() & ~current.holds()
    return Migration(placement, new.sum((1, 2)))


def cleaned(current: Placement) -> Placement:
    """Without second replicas of an expert on a card, which maps of peers may have: their slots become free.

    Empty slots are the last ones of their card.
    """
    slots = np.sort(current.slots, axis=2)
    twice = np.concatenate((np.zeros((*slots.shape[:2], 1), dtype=bool), slots[..., 1:] == slots[..., :-1]), axis=2)
    slots = np.where(twice, EMPTY, slots)
    order = np.argsort(slots == EMPTY, axis=2, kind="stable")
    return Placement(np.take_along_axis(slots, order, axis=2), current.layout, current.experts)


def _step(
    packing: Packing, work: np.ndarray, layout: Layout, a: float, live: np.ndarray, limit: np.ndarray
) -> np.ndarray:
    """One step for each live layer; which of them gained. limit: time above which a card is too busy, (live,)."""
    _cards, widest = packing.slots.shape[1:]
    part = packing.take(live)
    busy, value = part.busy(), part.values()
    hot = busy.argmax(1)
    has = membership(part.slots, work.shape[1])
    over = np.maximum(busy - limit[:, None], 0.0)
    swap_gain, swap_at = _best_swap(part, value, busy, has, hot, over, limit, layout)
    give_gain, give_at = _best_gift(part, work[live], a, busy, has, hot, over, limit, layout)
    gain = np.maximum(swap_gain / 2.0, give_gain)
    better = gain > 1e-12 * limit
    for i in np.flatnonzero(better).tolist():
        slots = packing.slots[live[i]]
        if give_gain[i] >= swap_gain[i] / 2.0:
            mine, place = give_at[i]
            slots[place // widest, place % widest] = part.slots[i, hot[i], mine]
        else:
            mine, card, at = swap_at[i]
            slots[hot[i], mine], slots[card, at] = slots[card, at], slots[hot[i], mine]
    packing.put(live, settled(packing.slots[live], work[live], a))
    return np.asarray(better)


def _best_swap(
    part: Packing,
    value: np.ndarray,
    busy: np.ndarray,
    has: np.ndarray,
    hot: np.ndarray,
    over: np.ndarray,
    limit: np.ndarray,
    layout: Layout,
) -> tuple[np.ndarray, np.ndarray]:
    """By how much the best swap lowers the time above the limit, and its slot, card and slot there."""
    layers, cards, widest = part.slots.shape
    b = np.arange(layers)
    mine = part.slots[b, hot]
    gap = value[b, hot][:, :, None, None] - value[:, None]
    top, rest = busy[b, hot][:, None, None, None], busy[:, None, :, None]
    edge = limit[:, None, None, None]
    after = np.maximum(top - gap - edge, 0.0) + np.maximum(rest + gap - edge, 0.0)
    gain = over[b, hot][:, None, None, None] + over[:, None, :, None] - after
    there = has[b[:, None], mine]
    taken = has[b[:, None, None], part.slots, hot[:, None, None]]
    taken = taken | (np.arange(widest) >= np.asarray(layout.slots)[:, None])
    gain = np.where(there[..., None] | taken[:, None] | (mine < 0)[:, :, None, None], -1.0, gain).reshape(layers, -1)
    best = gain.argmax(1)
    return gain[b, best], np.stack(np.unravel_index(best, (widest, cards, widest)), axis=1)


def _best_gift(
    part: Packing,
    work: np.ndarray,
    a: float,
    busy: np.ndarray,
    has: np.ndarray,
    hot: np.ndarray,
    over: np.ndarray,
    limit: np.ndarray,
    layout: Layout,
) -> tuple[np.ndarray, np.ndarray]:
    """The same for a slot elsewhere, empty or of a replicated expert, given to an expert of the busiest card."""
    layers, cards, widest = part.slots.shape
    b = np.arange(layers)[:, None]
    load = np.concatenate((work, np.zeros((layers, 1))), axis=1)
    count = np.concatenate((part.counts, np.ones((layers, 1), dtype=np.int64)), axis=1).astype(np.float64)
    flat = part.slots.reshape(layers, -1)
    there = (np.arange(widest) < np.asarray(layout.slots)[:, None]).ravel()
    may = there & ((flat < 0) | (count[b, flat] > 1)) & (np.arange(cards * widest) // widest != hot[:, None])
    most = int(may.sum(1).max(initial=0))
    if most == 0:
        return np.full(layers, -1.0), np.zeros((layers, 2), dtype=np.int64)
    place = np.argsort(~may, axis=1, kind="stable")[:, :most]
    usable, card = np.take_along_axis(may, place, axis=1), place // widest
    out, mine = np.take_along_axis(flat, place, axis=1), part.slots[b[:, 0], hot]
    rest = np.maximum(count[b, out] - 1.0, 1.0)
    leaves = np.where(out >= 0, a + load[b, out] / rest, 0.0)
    loses = np.where(out >= 0, load[b, out] / rest - load[b, out] / count[b, out], 0.0)
    gains = load[b, mine] / (count[b, mine] + 1.0)
    falls = load[b, mine] / count[b, mine] - gains
    after = busy[:, None, :] + has[b, out] * loses[..., None]  # (layers, most, cards): the slot's expert leaves
    np.put_along_axis(after, card[..., None], np.take_along_axis(after, card[..., None], 2) - leaves[..., None], 2)
    best, at = np.full(layers, -1.0), np.zeros((layers, 2), dtype=np.int64)
    for i in range(widest):  # one expert of the busiest card at a time: less memory
        total = after - (has[b[:, 0], mine[:, i]] * falls[:, i, None])[:, None]
        grown = np.take_along_axis(after, card[..., None], 2) + (a + gains[:, i, None])[..., None]
        np.put_along_axis(total, card[..., None], grown, 2)
        gain = over.sum(1)[:, None] - np.maximum(total - limit[:, None, None], 0.0).sum(2)
        wrong = ~usable | (mine[:, i, None] < 0) | (mine[:, i, None] == out) | has[b, mine[:, i, None], card]
        gain = np.where(wrong, -1.0, gain)
        which = gain.argmax(1)
        won = gain[b[:, 0], which]
        better = won > best
        best = np.where(better, won, best)
        at[better] = np.stack((np.full(layers, i), place[b[:, 0], which]), axis=1)[better]
    return best, at
