"""What a step moves, how long it takes and why: stated times, bytes over links, live copies, re-sharding, new units."""

import math
from dataclasses import dataclass

from models import catalog
from models.errors import BadInput, Problem
from models.llm import Llm
from models.transition import MoveLink, Resharding, Transition, TransitionStep
from solver.formulas import handoff
from solver.formulas.startup import capture_payback
from solver.shapes import BYTES, Shape, shape_of
from solver.transition import migrate, reshard
from solver.transition.pools import Difference

GB = 1e9


@dataclass(frozen=True)
class Move:
    """The work of a step; infinite seconds where it never ends."""

    seconds: float
    bytes: float | None
    """That cross its link; None where it moves nothing, or nobody knows."""
    reason: str
    pause: float = 0.0
    """Seconds at its end in which the source may not serve."""


def move(asked: Transition, name: str, difference: Difference | None) -> Move:
    """The work of the step ``name``."""
    step = asked.steps[name]
    if step.takes is not None:
        pays = "" if step.saves is None else f"; pays from batch {capture_payback(step.saves, step.takes):,.0f} on"
        return Move(step.takes, None, f"as stated{pays}")
    assert step.link is not None
    link = asked.links[step.link]
    if step.reshard is not None:
        return _resharded(step.reshard, step.link, link)
    if step.loads is not None:
        return _loaded(name, difference, step.link, link)
    return _copied(step, step.link, link)


def _copied(step: TransitionStep, name: str, link: MoveLink) -> Move:
    assert step.bytes is not None
    over = f"over {name} at {_gb(link.bandwidth)}/s"
    if step.grows == 0:
        return Move(handoff.transfer_seconds(step.bytes, link.bandwidth), step.bytes, f"{_gb(step.bytes)} {over}")
    found = migrate.migrate(step.bytes, link.bandwidth, step.grows, step.pause)
    if not found.ends:
        return Move(math.inf, None, f"never: {_gb(step.grows)}/s grow, the copy runs {over}")
    reason = f"{_gb(step.bytes)} {over} less {_gb(step.grows)}/s that grow; {_gb(found.grown)} were added"
    return Move(found.seconds, found.copied, reason, found.pause)


def resharded(asked: Resharding) -> reshard.Moved:
    """Bytes of other degrees of parallelism: matrices and state are cut, norms are on every card."""
    found = catalog.entry("models", asked.model)
    described = Llm.model_validate({**(found or {}), "weights": "bf16", "kv": "bf16"})
    shape: Shape = shape_of(described)
    whole = BYTES["bf16"] * shape.norm_params
    constant = shape.kept.constant  # of linear attention: cut by heads that every degree divides, as matrices are
    return reshard.reshard(
        matrices=shape.resident - whole + constant,
        whole=whole,
        state=shape.kept.at(asked.tokens) - constant,
        before=asked.before,
        after=asked.after,
        kv_heads=shape.kept.heads,
        targets=range(asked.before, asked.before + asked.after) if asked.apart else None,
    )


def _resharded(asked: Resharding, name: str, link: MoveLink) -> Move:
    moved = resharded(asked)
    seconds = reshard.seconds(moved, link.bandwidth, link.per == "card")
    crossing = f"{_gb(moved.network)} cross over {name} at {_gb(link.bandwidth)}/s"
    if link.per == "card":
        crossing += f", {_gb(moved.busiest)} at the busiest GPU"
    reason = f"TP{asked.before} to TP{asked.after}: {crossing}; {_gb(moved.local)} read and written in place"
    return Move(seconds, moved.network, reason)


def _loaded(step: str, difference: Difference | None, name: str, link: MoveLink) -> Move:
    assert difference is not None
    if difference.weights is None or difference.busiest is None:
        message = "the plan does not say what the weights of measured units take"
        raise BadInput([Problem(f"steps.{step}.loads", message, None, "bytes in place of loads")])
    carried = difference.busiest if link.per == "card" else difference.weights
    new = sum(change.new for change in difference.changes)
    reason = (
        f"weights of {new} new unit{'' if new == 1 else 's'}, {_gb(carried)} over {name} at {_gb(link.bandwidth)}/s"
    )
    return Move(carried / link.bandwidth, difference.weights, reason if new else "no new units")


def _gb(count: float) -> str:
    return f"{count / GB:.3g} GB"
