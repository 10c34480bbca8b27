"""Candidates: every sensible way to build one deployment unit, checked against memory and pruned.

A candidate knows nothing of the master problem; the master problem knows nothing of schemes. What cannot be built is
not made, and the reason is kept.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from models.instance import Instance
from models.units import GIB
from models.workload import Workload
from solver import physics, units
from solver.units import Kind, MemoryUse


@dataclass(frozen=True)
class Candidate:
    """One way to build a unit; how many of them is for the solver to choose."""

    name: str
    """Unique among the candidates at hand; see :func:`named`."""
    label: str
    """Stage or scheme, group, and model where there are several."""
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
    for name, workload in units.served(instance, kind, group, model).items():
        reason = _misfit(kind, shape, gpu, workload)
        if reason:
            made.append(Rejected(schemes, kind.stage, group, name, reason))
        else:
            fitting[name] = workload
    described = instance.hardware.groups[group]
    several = len(instance.models) > 1
    for together in _together(kind, shape, gpu, fitting):
        for batches in _batches(kind, shape, gpu, together):
            made.append(
                Candidate(
                    name="",
                    label=f"{_label(kind, schemes)}@{group}" + (f"/{model}" if several else ""),
                    schemes=schemes,
                    kind=kind,
                    group=group,
                    model=model,
                    cards=1,
                    batches=batches,
                    demand={n: units.demand(kind, shape, gpu, w, batches[n]) for n, w in together.items()},
                    memory=units.memory_use(kind, shape, gpu, together, batches),
                    startup=instance.startup(group),
                    price=described.price or 0.0,
                )
            )
    return made


def _label(kind: Kind, schemes: tuple[str, ...]) -> str:
    return schemes[0] if kind.stage == "both" else kind.stage


def _misfit(kind: Kind, shape: physics.Shape, gpu: physics.Device, workload: Workload) -> str:
    """Why a unit cannot serve ``workload`` even alone; "" when it can."""
    weights, capacity = f"weights take {shape.resident / GIB:.1f}", f"of {gpu.memory / GIB:.1f} GiB"
    if shape.resident > gpu.memory:
        return f"{weights} {capacity} of one GPU; units of several GPUs are not supported yet"
    rest = units.buffers(kind, shape, workload)
    if kind.stage == "prefill":
        fits = shape.resident + rest <= gpu.memory
        return "" if fits else f"{weights} and two states {rest / GIB:.1f} {capacity}"
    largest, wanted = units.largest_batch(shape, gpu, workload, rest), _given(workload) or 1
    if largest >= wanted:
        return ""
    rest += units.resident(kind, shape, workload, wanted)
    return f"{weights} and batch {wanted} takes {rest / GIB:.1f} {capacity}" + (
        f"; at most batch {largest} fits" if largest else ""
    )


def _given(workload: Workload) -> int | None:
    """The batch that the instance states, where one matters."""
    return workload.batch if isinstance(workload.batch, int) and workload.output > 1 else None


def _buffer(kind: Kind, shape: physics.Shape, workloads: Mapping[str, Workload]) -> float:
    """A unit keeps one buffer, as large as the largest that it may need."""
    return max(units.buffers(kind, shape, workload) for workload in workloads.values())


def _together(
    kind: Kind, shape: physics.Shape, gpu: physics.Device, workloads: Mapping[str, Workload]
) -> Iterator[dict[str, Workload]]:
    """Sets of workloads that one unit can serve: all of them, unless the buffer of one leaves no room for another."""
    left = dict(workloads)
    while left:
        chosen = dict(left)
        while kind.stage != "prefill" and not _all_fit(kind, shape, gpu, chosen):
            del chosen[max(chosen, key=lambda name: units.buffers(kind, shape, chosen[name]))]
        yield chosen
        left = {name: workload for name, workload in left.items() if name not in chosen}


def _all_fit(kind: Kind, shape: physics.Shape, gpu: physics.Device, workloads: Mapping[str, Workload]) -> bool:
    buffer = _buffer(kind, shape, workloads)
    return all(
        units.largest_batch(shape, gpu, workload, buffer) >= (_given(workload) or 1) for workload in workloads.values()
    )


def _batches(
    kind: Kind, shape: physics.Shape, gpu: physics.Device, workloads: Mapping[str, Workload]
) -> Iterator[dict[str, int]]:
    """Batches by workload: as given, the largest, or, where chosen, each power of two up to the largest."""
    if kind.stage == "prefill":
        yield dict.fromkeys(workloads, 1)
        return
    buffer = _buffer(kind, shape, workloads)
    most = {
        n: 1 if w.output == 1 else _given(w) or units.largest_batch(shape, gpu, w, buffer) for n, w in workloads.items()
    }
    chosen = [n for n, w in workloads.items() if w.batch is None and w.output > 1]
    caps = {2**power for n in chosen for power in range(most[n].bit_length())} | {most[n] for n in chosen}
    for cap in sorted(caps) or [0]:
        yield {n: min(cap, batch) if n in chosen else batch for n, batch in most.items()}


def named(candidates: Iterable[Candidate]) -> list[Candidate]:
    """``candidates`` with names: the label, and what sets it apart where several share one."""
    listed = list(candidates)
    shared: dict[str, list[int]] = {}
    for index, candidate in enumerate(listed):
        shared.setdefault(candidate.label, []).append(index)
    for label, indices in shared.items():
        for number, index in enumerate(indices, 1):
            name = label if len(indices) == 1 else f"{label}/{number}"
            listed[index] = replace(listed[index], name=name)
    return listed


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
    return named(kept)


def _dominates(a: Candidate, b: Candidate, keep_schemes: bool) -> bool:
    if (a.stage, a.group, a.model, a.cards) != (b.stage, b.group, b.model, b.cards):
        return False
    if a.schemes != b.schemes and (keep_schemes or a.stage != "both"):
        return False
    if a.startup > b.startup or a.price > b.price or not set(b.demand) <= set(a.demand):
        return False
    return all(_covered(a, k, b) for k in range(len(a.kind.resources)))


def _covered(a: Candidate, k: int, b: Candidate) -> bool:
    """Whether some resource of ``b`` is at least as busy as resource ``k`` of ``a``, whatever the mix of requests.

    Up to the last digits: dividing by a batch and multiplying again does not always give the same number.
    """
    return any(
        all(a.demand[name][k] <= need[other] * (1.0 + 1e-12) for name, need in b.demand.items())
        for other in range(len(b.kind.resources))
    )
