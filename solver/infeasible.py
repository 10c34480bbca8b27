"""Why nothing fits: the limits that cannot hold together, and the least changes that help."""

from collections.abc import Sequence

from models.told import Conflict, Relaxation
from models.workload import PoolLimit
from solver.backend import Session
from solver.changes import Solvable
from solver.compare import cannot
from solver.data import Data, gather
from solver.limits import Limits
from solver.milp import master, warm
from solver.milp.model import Model
from solver.relax import relaxations
from solver.rounding import text as digits


def reasons(data: Data, solvable: Solvable, limits: Limits) -> tuple[list[Conflict], list[Relaxation]]:
    """Conflicts and relaxations, smallest first; ``data`` holds the allowed schemes."""
    apart = data.apart()
    found = relaxations(apart, data.instance, solvable, limits)
    if causes := cannot(data):
        return [Conflict(limits=causes)], found
    left = _conflict(apart, limits)
    named = [_worded(name, data) for name in left]
    return [Conflict(limits=[*named, *_targets(data, left, limits)])], found


def _targets(data: Data, left: Sequence[str], limits: Limits) -> list[str]:
    """Targets without which the limits that are left would hold together: they leave fewer units to choose from."""
    instance, found = data.instance, []
    for name, workload in instance.workloads.items():
        for word in ("ttft", "tpot"):
            target = getattr(workload.targets, word)
            if target is None or limits.over:
                continue
            free = workload.model_copy(update={"targets": workload.targets.model_copy(update={word: None})})
            changed = instance.model_copy(update={"workloads": {**instance.workloads, name: free}})
            apart = gather(changed).only(data.schemes).apart()
            if any(_fits(one, left, limits) for one in apart):
                found.append(f"targets[{name},{word}] ({digits(1e3 * target)} ms)")
    return found


def _conflict(apart: Sequence[Data], limits: Limits) -> list[str]:
    """Limits that cannot hold together, none of which can be left out: each is dropped in turn and stays dropped when
    nothing fits without it either.
    """
    data = apart[0]
    channels = [f"link[{name}]" for name in data.topology.channels]
    stores = [f"store[{name}]" for name in data.instance.hardware.stores]
    pools = [f"pools[{index}]" for index in range(len(data.instance.limits.pools))]
    cards = [f"cards[{name}]" for name in data.instance.hardware.groups]
    drain = ["drain"] if data.instance.service.drain is not None else []
    each = [word for word in ("units", "spare") if getattr(data.instance.limits, word) is not None]
    shares = [f"served[{name}]" for name in data.instance.workloads] if data.instance.drops else []
    tiers = [f"tier[{place.name}]" for place in data.kept.places] if data.kept else []
    left = ["sustain", *shares, *drain, *each, *pools, *cards, *channels, *stores, *tiers]
    for name in reversed(left):
        fewer = [other for other in left if other != name]
        if fewer and not any(_fits(one, fewer, limits) for one in apart):
            left = fewer
    return left


def _fits(data: Data, kept: Sequence[str], limits: Limits) -> bool:
    """Whether there is a plan when only the limits in ``kept`` count; granted when there is no time to see."""
    if limits.over:
        return True
    problem = master.build(data)
    families = (
        "sustain",
        "served[",
        "drain",
        "arrived",
        "pools[",
        "cards[",
        "servers[",
        "units[",
        "link[",
        "store[",
        "tier[",
    )
    spared = "[spare]" if "spare" not in kept else "nothing"
    loaded = warm.LOAD if data.kept and not data.instance.drops and "sustain" not in kept else "nothing"
    rows = [
        row
        for row in problem.model.rows
        if not (row.name.startswith("serve[") and row.name.endswith((spared, loaded)))
        and (not row.name.startswith(families) or _counts(row.name, kept))
    ]
    free = {c.group for c in data.candidates if f"cards[{c.group}]" not in kept}
    upper = list(problem.model.upper)
    for column, candidate in zip(problem.units, data.candidates, strict=True):
        if candidate.group in free:
            upper[column] += master.MOST_BOUGHT
    relaxed = Model(problem.model.lower, upper, problem.model.integer, rows)
    anything = [(problem.throughput, 0.0)]
    return Session(relaxed).solve(anything, False, limits).status != "infeasible"


def _counts(row: str, kept: Sequence[str]) -> bool:
    """Whether a row belongs to one of the limits that are kept; rows of a phase carry its name behind their own."""
    if row.startswith(("drain", "arrived")):
        return "drain" in kept
    if row.startswith("servers["):
        return f"cards[{row[8:-1].rpartition(',')[0] or row[8:-1]}]" in kept
    if row.startswith("units["):
        return "units" in kept
    return any(row == name or row.startswith((f"{name}[", f"{name[:-1]},")) for name in kept)


def _worded(name: str, data: Data) -> str:
    """A limit as the user wrote it."""
    if name.startswith("pools["):
        return f"{name} ({_named(data.instance.limits.pools[int(name[6:-1])])})"
    return _late(data) if name == "drain" else name


def _late(data: Data) -> str:
    """The drain limit, with what is odd about it when it ends before anything is ready."""
    deadline = data.instance.service.drain
    ready = min((c.startup for c in data.candidates), default=0.0)
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
