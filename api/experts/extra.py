"""Parts of the result that only some options ask for: moves, the budget, nodes."""

from typing import Any

import numpy as np

from api import words
from api.experts.request import Request
from solver.experts import budget, nodes, transition
from solver.experts.place import clipped
from solver.experts.result import Result, scenario
from solver.experts.split import best_split, split_times


def moves(result: Result, asked: Request) -> tuple[dict[str, Any], list[str]]:
    """From the current placement: ways, the chosen one and its map; and the same as lines of text."""
    assert asked.current is not None
    rate = asked.copy_rate
    terms = transition.Terms(asked.expert_bytes, rate, asked.copy_startup, asked.lifetime, asked.in_flight, asked.timed)
    found = transition.transition(asked.loads, asked.current, result.placement, asked.time, terms)
    layers = asked.loads.layers
    document = {
        "ways": [way.as_json(asked.lifetime, layers) for way in found.ways],
        "chosen": found.chosen.name,
        "layers_in_order": [asked.layer_ids[layer] for layer in found.order],
        "physical_to_logical_map": found.chosen.placement.rows(),
    }
    rows = [["MOVE TO", "balancedness", "copies a layer", "GB", "copies take", "break-even", "verdict"]]
    for way in found.ways:
        back = way.payback
        rows.append(
            [
                way.name + (" not reached" if way.short else "") + (" <-" if way is found.chosen else ""),
                f"{way.balancedness:.4f}",
                f"{way.copies / layers:.1f}",
                "-" if way.bytes is None else f"{way.bytes / 1e9:.1f}",
                "-" if back is None else words.seconds(back.cost),
                "-" if back is None or back.break_even is None else words.plural(back.break_even, "step"),
                "-" if back is None or way.copies == 0 else back.verdict(asked.lifetime),
            ]
        )
    return document, ["", *words.table(rows, frozenset(range(1, 6)))]


def memory(asked: Request) -> tuple[dict[str, Any], list[str]]:
    """The best use of a budget for replicas, layer by layer, and the curve up to it."""
    assert asked.budget is not None
    loads, cards = asked.loads, asked.layout.cards
    replicas = int(min(asked.budget // asked.expert_bytes, loads.layers * loads.experts * (cards - 1)))
    most = min(replicas, max(asked.layout.total - loads.experts, cards))
    found = budget.curves(loads, cards, most, asked.time)
    replicas = min(replicas, loads.layers * most)
    chosen, least = budget.allocate(found, replicas)
    placement = budget.assembled(found, chosen)
    points = sorted({round(replicas * share / 12) for share in range(13)})
    price = budget.price(found, replicas)
    curve: list[dict[str, Any]] = []
    for point in points:
        option, _ = budget.allocate(found, point)
        used = int(found.replicas[option].sum())
        if curve and curve[-1]["replicas"] == used:
            continue
        curve.append({"bytes": used * asked.expert_bytes, "replicas": used, **_balances(found, option, asked)})
    document = {
        "bytes": asked.budget,
        "used_bytes": float(found.replicas[chosen].sum()) * asked.expert_bytes,
        "expert_bytes": asked.expert_bytes,
        "replicas": [int(r) for r in found.replicas[chosen]],
        "value": float(least[replicas]),
        "value_without": float(least[0]),
        "price_per_replica": price,
        "price_per_byte": price / asked.expert_bytes,
        "kv_tokens_per_replica": None if not asked.kv_token_bytes else asked.expert_bytes / asked.kv_token_bytes,
        "curve": curve,
        "physical_to_logical_map": [[e for card in row for e in card if e >= 0] for row in placement.slots.tolist()],
        "experts_of_cards": [[[e for e in card if e >= 0] for card in row] for row in placement.slots.tolist()],
    }
    rows = [["REPLICAS", "GB", "balancedness"]]
    rows += [[f"{p['replicas']:,}", f"{p['bytes'] / 1e9:.2f}", f"{p['balancedness']:.4f}"] for p in curve]
    kv = document["kv_tokens_per_replica"]
    price_line = (
        f" one replica more saves {price:.3g} of the mean card's time" if price else " one replica more saves nothing"
    )
    tail = f", and takes the room of {kv:,.0f} tokens of KV" if kv else ""
    return document, ["", *words.table(rows, frozenset(range(3))), price_line + tail]


def _balances(found: budget.Curves, option: np.ndarray, asked: Request) -> dict[str, Any]:
    """Balancedness of a choice: weighted mean over scenarios, and of each."""
    placement = budget.assembled(found, option)
    each = {
        name: scenario(name, placement, tokens, asked.time).balancedness
        for name, tokens in zip(asked.loads.names, asked.loads.tokens, strict=True)
    }
    mean = float(sum(w * b for w, b in zip(asked.loads.weights, each.values(), strict=True)))
    return {"balancedness": mean, "scenarios": each}


def hierarchy(result: Result, asked: Request) -> tuple[dict[str, Any], list[str]]:
    """Balance against tokens that leave their node; or why there is no strict placement to start from."""
    assert asked.groups is not None
    layout = clipped(asked.layout, asked.loads.experts)
    reason = nodes.obstacle(layout, asked.loads.experts, asked.groups)
    if reason is not None:
        text = f"experts cannot stay on the nodes of their groups: {reason}; placed without regard to groups"
        return {"groups": asked.groups, "possible": False, "reason": reason, "curve": []}, ["", f" note: {text}"]
    tokens = transition.mixed(asked.loads, result.placement, asked.time)
    points, bound = nodes.curve(tokens, layout, asked.groups, asked.time, result.placement)
    document = {
        "groups": asked.groups,
        "possible": True,
        "reason": None,
        "strict_bound": bound,
        "curve": [
            {
                "name": point.name,
                "balancedness": point.balancedness,
                "leaving": point.leaving,
                "physical_to_logical_map": point.placement.rows(),
            }
            for point in points
        ],
    }
    rows = [["GROUPS AT HOME", "balancedness", "tokens that leave their node"]]
    rows += [[p.name, f"{p.balancedness:.4f}", words.percent(p.leaving)] for p in points]
    note = f" strict placements with these homes reach {bound:.4f} at most"
    return document, ["", *words.table(rows, frozenset((1, 2))), note]


def splits(result: Result) -> tuple[dict[str, Any], list[str]]:
    """The best shares of every slot, row by row as in the map, for the weighted mean of the scenarios."""
    placement = result.placement
    tokens = transition.mixed(result.loads, placement, result.time)
    shares = best_split(placement, tokens, result.time)
    times = split_times(placement, tokens, result.time, shares)
    there = (np.arange(placement.layout.widest) < np.asarray(placement.layout.slots)[:, None]).ravel()
    balance = float((times.mean(1) / times.max(1)).mean())
    document = {
        "physical_to_logical_map": placement.rows(),
        "split": shares.reshape(placement.layers, -1)[:, there].tolist(),
        "balancedness": balance,
        "value": float(times.max(1).sum()),
    }
    return document, [f" with the best split of tokens over replicas: balancedness {balance:.4f}"]
