"""Places experts, proves how good that is, and checks both again."""

import time as clock
from dataclasses import dataclass

import numpy as np

from models.errors import BadInput, Problem
from models.experts.layout import TOKENS, Layout, TimeModel
from models.experts.loads import Loads, check_fit
from models.experts.placement import Placement
from solver.experts.bounds import bounds
from solver.experts.certificate import WIDEST, LayerBound, plain, tightened
from solver.experts.nodes import obstacle, strict
from solver.experts.place import USUAL, Effort, clipped, place, widened
from solver.experts.result import Result, Scenario, scenario
from solver.experts.robust import place_for_all, scales
from solver.experts.rounded import rounded
from solver.experts.times import card_times
from solver.experts.verify import verify


@dataclass(frozen=True)
class Options:
    """How to place.

    tighten: seconds for tighter bounds where cards have few slots; 0 for none.
    worst: whether the worst scenario counts in place of the weighted sum.
    home: groups of experts whose replicas all stay on one node, whole groups on nodes; None for no such rule.
    """

    time: TimeModel = TOKENS
    effort: Effort = USUAL
    tighten: float = 30.0
    worst: bool = False
    home: int | None = None


DEFAULT = Options()


def solve(loads: Loads, layout: Layout, options: Options = DEFAULT) -> Result:
    """A placement good for all scenarios of ``loads``, with bounds that were checked again.

    Raises BadInput when experts do not fit, and AssertionError when what was found does not hold.
    """
    check_fit(loads.experts, layout)
    started = clock.process_time()
    used = clipped(layout, loads.experts)
    if options.home is not None:
        placement = _at_home(loads, used, layout, options)
        found = [plain(bounds(tokens, used, options.time)) for tokens in loads.tokens]
    elif loads.scenarios == 1:
        placement, low = place(loads.tokens[0], layout, options.time, options.effort)
        found = [plain(low)]
    else:
        placement = place_for_all(loads, layout, options.time, options.effort, options.worst)
        found = [plain(bounds(tokens, used, options.time)) for tokens in loads.tokens]
    placed = clock.process_time()
    known = [np.array([bound.value for bound in one]) for one in found]
    placement, found = _tighter(loads, placement, used, found, options)
    return assembled(loads, placement, found, known, options, placed - started, clock.process_time() - placed)


def _at_home(loads: Loads, used: Layout, layout: Layout, options: Options) -> Placement:
    """Every replica on the node of its expert's group. Raises BadInput where that cannot be."""
    assert options.home is not None
    reason = obstacle(used, loads.experts, options.home)
    if reason is not None:
        raise BadInput([Problem("--keep-groups", f"experts cannot stay on the nodes of their groups: {reason}")])
    scale = scales(loads, layout, options.time) * loads.weights
    tokens = (scale[:, None, None] * loads.tokens).sum(0) / scale.sum()
    found, _, _ = strict(tokens, used, options.home, options.time, options.effort)
    return Placement(widened(found.slots, layout), layout, loads.experts)


def _tighter(
    loads: Loads, placement: Placement, used: Layout, found: list[list[LayerBound]], options: Options
) -> tuple[Placement, list[list[LayerBound]]]:
    """Bounds by programs where cards have few slots; with one scenario their replica counts are tried too."""
    if options.tighten <= 0.0 or not 2 <= used.widest <= WIDEST:
        return placement, found
    better = []
    for k, tokens in enumerate(loads.tokens):
        top = card_times(placement, tokens, options.time).max(1)
        seconds = options.tighten / loads.scenarios
        known, weights = tightened(found[k], tokens, top, used, options.time, seconds)
        if loads.scenarios == 1 and weights and options.home is None:
            placement = rounded(placement, tokens, options.time, weights, options.effort)
        better.append(known)
    return placement, better


def assembled(
    loads: Loads,
    placement: Placement,
    found: list[list[LayerBound]],
    any_split: list[np.ndarray],
    options: Options,
    seconds: float = 0.0,
    bound_seconds: float = 0.0,
) -> Result:
    """The result of a placement, checked. found: bounds of each scenario and layer; any_split: for any split."""
    scenarios = tuple(
        scenario(name, placement, tokens, options.time, tuple(known), low)
        for name, tokens, known, low in zip(loads.names, loads.tokens, found, any_split, strict=True)
    )
    for one, tokens in zip(scenarios, loads.tokens, strict=True):
        wrong = verify(placement, tokens, options.time, one.busiest.tolist(), one.bounds)
        assert not wrong, "; ".join(wrong[:3])
    if loads.scenarios == 1:
        value, bound = scenarios[0].value, scenarios[0].bound or 0.0
    else:
        value, bound = _of_all(loads, placement, scenarios, options)
    return Result(placement, loads, options.time, scenarios, value, bound, seconds, bound_seconds)


def _of_all(
    loads: Loads, placement: Placement, scenarios: tuple[Scenario, ...], options: Options
) -> tuple[float, float]:
    """Value and bound of several scenarios: the weighted sum of relative times, or their largest.

    Each scenario alone bounds its own time, and so their sum. The weighted sum of the loads is a load pattern too: the
    sum of its busiest card is at most the sum of theirs, so what bounds that pattern bounds the sum (and the largest,
    which is at least any weighted mean). The larger of both is used.
    """
    scale = scales(loads, placement.layout, options.time)
    values = scale * np.array([s.value for s in scenarios])
    lows = scale * np.array([s.bound for s in scenarios])
    share = scale * loads.weights
    mixed = (share[:, None, None] * loads.tokens).sum(0)
    model = TimeModel(options.time.per_slot * float(share.sum()), options.time.per_token)
    together = float(bounds(mixed, clipped(placement.layout, loads.experts), model).value.sum())
    if options.worst:
        return float(values.max()), max(float(lows.max()), together)
    return float(loads.weights @ values), max(float(loads.weights @ lows), together)
