"""Why nothing fits: the limits that cannot hold together, and the least changes that help."""

from models.plan import Conflict, Relaxation
from models.workload import PoolLimit
from solver.backend import Limits, Session
from solver.compare import cannot
from solver.data import Data
from solver.milp import master
from solver.relax import Solvable, relaxations
from solver.rounding import text as digits


def reasons(data: Data, solvable: Solvable, limits: Limits) -> tuple[list[Conflict], list[Relaxation]]:
    """Conflicts and relaxations, smallest first; ``data`` holds the allowed schemes."""
    instance = data.instance
    apart = [data.pruned()] if instance.schemes.mix else [data.only([name]).pruned() for name in data.schemes]
    most = [rate for rate in (_throughput(one, limits) for one in apart) if rate is not None]
    cards = [f"cards[{name}]" for name in instance.hardware.groups]
    pools = [f"pools[{index}] ({_named(limit)})" for index, limit in enumerate(instance.limits.pools)]
    if most and max(most) <= 0.0 and cannot(data):
        return [Conflict(limits=[*cannot(data), *pools])], []
    short = not most or max(most) < instance.rate * (1.0 - 1e-9)
    limit = "sustain" if short else _late(data)
    conflict = [*pools, *cards] if not most else [limit, *pools, *cards]
    return [Conflict(limits=conflict)], relaxations(apart, instance, not short, solvable, limits)


def _late(data: Data) -> str:
    """The drain limit, with what is odd about it when it ends before anything is ready."""
    instance, deadline = data.instance, data.instance.service.drain
    ready = min(instance.startup(name) for name in instance.hardware.groups)
    if deadline is None or deadline > ready:
        return "drain"
    return f"drain (over after {digits(deadline)} s, before any unit is ready at {digits(ready)} s)"


def _named(limit: PoolLimit) -> str:
    """A bound on pools in words."""
    what = [word for word in (limit.stage, limit.scheme, limit.model) if word] or ["units"]
    where = f" on {limit.group}" if limit.group else ""
    bounds = [
        f"{key.replace('_', ' ')} {getattr(limit, key)}"
        for key in ("exactly", "at_least", "at_most")
        if getattr(limit, key) is not None
    ]
    return f"{' '.join(what)}{where}: {', '.join(bounds)}"


def _throughput(data: Data, limits: Limits) -> float | None:
    """The most that the cards sustain without promises; None when limits on pools cannot be met."""
    problem = master.build(data, promises=False)
    outcome = Session(problem.model).solve(problem.by_throughput.terms, True, limits)
    return outcome.value * problem.by_throughput.unit if outcome.found and outcome.value is not None else None
