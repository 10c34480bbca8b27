"""Candidates: every sensible way to build one deployment unit, checked against memory and pruned.

A candidate knows nothing of the master problem; the master problem knows nothing of schemes. What cannot be built is
not made, and the reason is kept.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from models.instance import Instance
from models.workload import Workload
from solver import physics, units
from solver.units import Kind, MemoryUse


@dataclass(frozen=True)
class Candidate:
    """One way to build a unit; how many of them is for the solver to choose."""

    name: str
    schemes: tuple[str, ...]
    """Schemes it can be part of."""
    kind: Kind
    group: str
    model: str
    cards: int
    batches: Mapping[str, int]
    """Requests that share a decode step, by workload."""
    demand: Mapping[str, tuple[float, ...]]
    """By workload: unit-seconds of each resource per request."""
    memory: MemoryUse
    startup: float
    """Seconds from stopped to ready."""
    price: float
    """Money per second of one unit; 0 where the group has no price."""

    @property
    def stage(self) -> str:
        """prefill, decode or both."""
        return self.kind.stage


@dataclass(frozen=True)
class Rejected:
    """A unit that cannot be built."""

    schemes: tuple[str, ...]
    stage: str
    group: str
    workload: str
    reason: str


def make(
    instance: Instance, kind: Kind, schemes: tuple[str, ...], group: str, model: str
) -> list[Candidate | Rejected]:
    """Units of ``kind`` for ``model`` on one GPU of ``group``, one for each choice of batch."""
    shape = physics.shape_of(instance.models[model])
    gpu = units.device(instance, group, shape)
    made: list[Candidate | Rejected] = []
    fitting: dict[str, Workload] = {}
    largest: dict[str, int] = {}
    for name, workload in units.served(instance, kind, model).items():
        reason, most = _fits(kind, shape, gpu, workload)
        if reason:
            made.append(Rejected(schemes, kind.stage, group, name, reason))
        else:
            fitting[name], largest[name] = workload, most
    if not fitting:
        return made
    described = instance.hardware.groups[group]
    several = len(instance.models) > 1
    for batches in _batches(kind, fitting, largest):
        name = f"{_label(kind, schemes)}@{group}" + (f"/{model}" if several else "")
        made.append(
            Candidate(
                name=name,
                schemes=schemes,
                kind=kind,
                group=group,
                model=model,
                cards=1,
                batches=batches,
                demand={n: units.demand(kind, shape, gpu, w, batches[n]) for n, w in fitting.items()},
                memory=units.memory_use(kind, shape, gpu, fitting, batches),
                startup=instance.startup(group),
                price=described.price or 0.0,
            )
        )
    return made


def _label(kind: Kind, schemes: tuple[str, ...]) -> str:
    return schemes[0] if kind.stage == "both" else kind.stage


GIB = 2.0**30


def _fits(kind: Kind, shape: physics.Shape, gpu: physics.Device, workload: Workload) -> tuple[str, int]:
    """Why a unit cannot serve ``workload`` ("" when it can), and the batch it takes at most."""
    weights, capacity = f"weights take {shape.resident / GIB:.1f}", f"of {gpu.memory / GIB:.1f} GiB"
    if shape.resident > gpu.memory:
        return f"{weights} {capacity} of one GPU; units of several GPUs are not supported yet", 0
    rest = units.buffers(kind, shape, workload)
    if kind.stage == "prefill":
        if shape.resident + rest > gpu.memory:
            return f"{weights} and two states {rest / GIB:.1f} {capacity}", 0
        return "", 1
    largest = units.largest_batch(kind, shape, gpu, workload)
    given = isinstance(workload.batch, int) and workload.output > 1
    wanted = workload.batch if given and isinstance(workload.batch, int) else 1
    if largest >= wanted:
        return "", wanted if given or workload.output == 1 else largest
    rest += units.resident(kind, shape, workload, wanted)
    fits = f"; at most batch {largest} fits" if largest else ""
    return f"{weights} and batch {wanted} takes {rest / GIB:.1f} {capacity}{fits}", 0


def _batches(kind: Kind, workloads: Mapping[str, Workload], largest: Mapping[str, int]) -> Iterable[dict[str, int]]:
    """Batches by workload: as given, the largest, or, where chosen, each power of two up to the largest."""
    chosen = [n for n, w in workloads.items() if w.batch is None and w.output > 1 and kind.stage != "prefill"]
    caps = {2**power for n in chosen for power in range(largest[n].bit_length())}
    caps |= {largest[n] for n in chosen}
    for cap in sorted(caps) or [0]:
        yield {n: min(cap, most) if n in chosen else most for n, most in largest.items()}


def prune(candidates: Iterable[Candidate], keep_schemes: bool) -> list[Candidate]:
    """``candidates`` without those that another is at least as good as in every respect.

    The first of equals stays. With ``keep_schemes`` only units of the same schemes are compared, since a limit may
    name a scheme. Dropping a dominated unit never changes the optimum: each use of it can be replaced one for one.
    """
    kept: list[Candidate] = []
    for new in candidates:
        if any(_dominates(old, new, keep_schemes) for old in kept):
            continue
        kept = [old for old in kept if not _dominates(new, old, keep_schemes)]
        kept.append(new)
    return [replace(candidate, name=name) for candidate, name in zip(kept, _unique(kept), strict=True)]


def _dominates(a: Candidate, b: Candidate, keep_schemes: bool) -> bool:
    if (a.stage, a.group, a.model, a.cards) != (b.stage, b.group, b.model, b.cards):
        return False
    if a.schemes != b.schemes and (keep_schemes or a.stage != "both"):
        return False
    if a.startup > b.startup or a.price > b.price or not set(b.demand) <= set(a.demand):
        return False
    return all(_no_more(a.demand[name], need) for name, need in b.demand.items())


def _no_more(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether a request takes no more of ``a`` than of ``b``; a serial unit is busy on all its resources at once."""
    if len(b) == 1:
        return max(a) <= b[0]
    return len(a) == len(b) and all(x <= y for x, y in zip(a, b, strict=True))


def _unique(candidates: list[Candidate]) -> list[str]:
    """Names, with the batch added where two units would share one."""
    names = [candidate.name for candidate in candidates]
    return [
        name if names.count(name) == 1 else f"{name}/batch {max(candidate.batches.values())}"
        for name, candidate in zip(names, candidates, strict=True)
    ]
