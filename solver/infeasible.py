"""Why nothing fits: the limits that cannot hold together, and the least changes that help."""

from models.plan import Conflict, Relaxation
from models.workload import PoolLimit
from solver import assemble, settle
from solver.assemble import Chosen
from solver.backend import Limits
from solver.compare import cannot
from solver.data import Data
from solver.milp import master
from solver.optimise import rank
from solver.relax import Solvable, relaxations
from solver.rounding import text as digits


def reasons(data: Data, solvable: Solvable, limits: Limits) -> tuple[list[Conflict], list[Relaxation]]:
    """Conflicts and relaxations, smallest first; ``data`` holds the allowed schemes."""
    instance = data.instance
    apart = [data.pruned()] if instance.schemes.mix else [data.only([name]).pruned() for name in data.schemes]
    best = max(
        filter(None, (_best(one, limits) for one in apart)), key=lambda one: one.settled.throughput, default=None
    )
    pools = [f"pools[{index}] ({_named(limit)})" for index, limit in enumerate(instance.limits.pools)]
    if best is None:
        conflict = [*pools, *(f"cards[{name}]" for name in instance.hardware.groups)]
        return [Conflict(limits=conflict)], relaxations(apart, instance, False, solvable, limits)
    if best.settled.throughput <= 0.0 and cannot(data):
        return [Conflict(limits=[*cannot(data), *pools])], []
    short = best.settled.throughput < instance.rate * (1.0 - 1e-9)
    conflict = ["sustain" if short else _late(data), *pools, *_full(best)]
    return [Conflict(limits=conflict)], relaxations(apart, instance, not short, solvable, limits)


def _full(best: Chosen) -> list[str]:
    """Cards, links and stores of which nothing is left when the plan with the most requests/s gives its most."""
    groups = best.instance.hardware.groups
    cards = [f"cards[{name}]" for name, taken in best.cards.items() if taken >= groups[name].cards]
    return [*cards, *(name for name, share in assemble.charges(best).items() if share >= assemble.FULL)]


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


def _best(data: Data, limits: Limits) -> Chosen | None:
    """The plan with the most requests/s, then the fewest cards, without promises; None when pools cannot be met."""
    problem = master.build(data, promises=False)
    ranked = rank(problem, [problem.by_throughput, problem.by_cards], limits)
    return Chosen(data, ranked.counts, settle.capacity(data, ranked.counts)) if ranked.found else None
