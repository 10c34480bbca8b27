"""Groups of experts and nodes: balance against the share of tokens that leave their node.

Models that route by groups send a token to few groups, so a group whose replicas are all on one node, its home, costs
one message. Strict placements keep every replica at home (EPLB's hierarchical policy); here they are only the start of
a curve: from there, replicas move out while that lowers the busiest card.
"""

from dataclasses import dataclass

import numpy as np

from models.experts.layout import Layout, TimeModel
from models.experts.placement import Placement
from solver.backend import assigned
from solver.experts.bounds import bounds
from solver.experts.moves import migrate
from solver.experts.place import USUAL, Effort, packed
from solver.experts.times import card_times

TARGETS = (0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99)


@dataclass(frozen=True)
class Point:
    """A placement on the curve. leaving: share of tokens computed outside the home of their expert's group."""

    name: str
    placement: Placement
    balancedness: float
    leaving: float


def obstacle(layout: Layout, experts: int, groups: int) -> str | None:
    """Why no strict placement exists, in words; None where one does."""
    if groups % layout.nodes:
        return f"{groups} groups cannot be divided over {layout.nodes} nodes"
    if not layout.even:
        return "cards have different numbers of slots"
    if layout.total // layout.nodes < experts // layout.nodes:
        return f"{layout.total // layout.nodes} slots of a node for {experts // layout.nodes} experts"
    return None


def homes(tokens: np.ndarray, groups: int, nodes: int) -> np.ndarray:
    """The home of each group, (layers, groups): whole groups on nodes, equally many, largest first, then swaps."""
    layers = len(tokens)
    load = tokens.reshape(layers, groups, -1).sum(2)
    home = np.zeros((layers, groups), dtype=np.int64)
    for layer in range(layers):
        busy, held = np.zeros(nodes), np.zeros(nodes, dtype=np.int64)
        for group in np.argsort(-load[layer], kind="stable").tolist():
            node = int(np.where(held < groups // nodes, busy, np.inf).argmin())
            home[layer, group], busy[node], held[node] = node, busy[node] + load[layer, group], held[node] + 1
        for _ in range(4 * groups):
            high = int(busy.argmax())
            mine, others = np.flatnonzero(home[layer] == high), np.flatnonzero(home[layer] != high)
            if not len(others):
                break
            gap = load[layer, mine][:, None] - load[layer, others]
            after = np.maximum(busy[high] - gap, busy[home[layer, others]] + gap)
            i, j = np.unravel_index(int(after.argmin()), after.shape)
            if after[i, j] >= busy[high] * (1.0 - 1e-12):
                break
            node = int(home[layer, others[j]])
            busy[high], busy[node] = busy[high] - gap[i, j], busy[node] + gap[i, j]
            home[layer, mine[i]], home[layer, others[j]] = node, high
    return home


def strict(
    tokens: np.ndarray, layout: Layout, groups: int, time: TimeModel, effort: Effort = USUAL
) -> tuple[Placement, np.ndarray, np.ndarray]:
    """Every replica at home: the placement, the homes (layers, groups), and a bound for these homes (layers,)."""
    layers, experts = tokens.shape
    nodes, home = layout.nodes, homes(tokens, groups, layout.nodes)
    at = np.repeat(home, experts // groups, axis=1)  # (layers, experts)
    members = np.argsort(at, axis=1, kind="stable").reshape(layers, nodes, -1)  # experts of each node
    part = np.take_along_axis(tokens, members.reshape(layers, -1), axis=1).reshape(layers * nodes, -1)
    inside = Layout(layout.slots[: layout.cards // nodes])
    low = bounds(part, inside, time)
    found = packed(time.per_token * part, inside, time.per_slot, low.value, effort, layout.engine)
    slots = found.slots.reshape(layers, nodes, -1)
    names = np.take_along_axis(members, np.maximum(slots, 0), axis=2)
    whole = np.where(slots >= 0, names, -1).reshape(layers, layout.cards, -1)
    return Placement(whole, layout, experts), home, low.value.reshape(layers, nodes).max(1)


def leaving(placement: Placement, tokens: np.ndarray, home: np.ndarray) -> np.ndarray:
    """Share of the tokens of each layer that replicas outside the home of their group compute, (layers,)."""
    has = placement.holds()
    group = np.repeat(home, placement.experts // home.shape[1], axis=1)
    outside = (has & (placement.layout.node_of[None, None] != group[..., None])).sum(2)
    share = outside / np.maximum(has.sum(2), 1)
    return np.asarray((share * tokens).sum(1) / tokens.sum(1))


def best_homes(placement: Placement, tokens: np.ndarray, groups: int) -> np.ndarray:
    """Homes (layers, groups), equally many groups a node, with which fewest tokens leave; an assignment problem."""
    has, nodes = placement.holds(), placement.layout.nodes
    on_node = np.stack([has[:, :, placement.layout.node_of == n].sum(2) for n in range(nodes)], axis=2)
    share = on_node / np.maximum(has.sum(2), 1)[..., None] * tokens[..., None]
    inside = share.reshape(len(tokens), groups, -1, nodes).sum(2)  # tokens of each group at each node
    copies = groups // nodes
    home = np.zeros((len(tokens), groups), dtype=np.int64)
    for layer, table in enumerate(inside):
        cost = np.rint(-table / max(float(table.max()), 1e-300) * 1e6)
        home[layer] = assigned(np.repeat(cost, copies, axis=1)) // copies
    return home


def curve(
    tokens: np.ndarray, layout: Layout, groups: int, time: TimeModel, free: Placement, effort: Effort = USUAL
) -> tuple[list[Point], float]:
    """Points from strict to free, and the balancedness that no strict placement with the same homes can beat."""
    start, home, low = strict(tokens, layout, groups, time, effort)

    def point(name: str, placement: Placement, where: np.ndarray) -> Point:
        times = card_times(placement, tokens, time)
        balance = float((times.mean(1) / times.max(1)).mean())
        return Point(name, placement, balance, float(leaving(placement, tokens, where).mean()))

    first = point("strict", start, home)
    points = [first]
    for target in TARGETS:
        if target > first.balancedness:
            points.append(point(f"{target:g}", migrate(start, tokens, time, target).placement, home))
    points.append(point("free", free, best_homes(free, tokens, groups)))
    points = [p for p in points if not any(_better(other, p) for other in points)]
    mean = (time.per_token * tokens.sum(1) + time.per_slot * layout.total) / layout.cards  # every slot may be filled
    return points, float((mean / low).mean())


def _better(one: Point, other: Point) -> bool:
    """Whether ``one`` is as good in both respects and better in one."""
    fine = one.balancedness >= other.balancedness and one.leaving <= other.leaving
    return fine and (one.balancedness > other.balancedness or one.leaving < other.leaving)
