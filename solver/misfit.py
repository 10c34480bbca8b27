"""Why a unit cannot serve a workload even alone: memory, or a target that it misses; why a model has none at all."""

from models.instance import Instance
from models.units import GIB
from models.workload import Workload
from solver import latency, physics, units
from solver.cut import Cut
from solver.cuts import would_fit
from solver.physics import Shape
from solver.units import Kind


def no_cut(instance: Instance, group: str, model: str, shape: Shape) -> str:
    """Why no cut of a model can be built on a group at all."""
    described = instance.hardware.groups[group]
    room = described.accelerator.memory * described.usable
    if shape.resident <= room:
        return "no degree of parallelism that is allowed here can be built"
    held = f"weights take {shape.resident / GIB:.1f} GiB, a GPU has {room / GIB:.1f}"
    fits = would_fit(instance, group, model, shape)
    joined = "" if described.per_server > 1 and described.scale_up else ", and no link joins GPUs of several servers"
    return held + joined + (f"; {fits}" if fits else "")


def misfit(instance: Instance, kind: Kind, shape: Shape, cut: Cut, group: str, workload: Workload) -> tuple[str, str]:
    """What keeps a unit from serving ``workload`` even alone, and why; "" when nothing does."""
    gpu = cut.device
    held = physics.weights_on_card(shape, gpu)
    where = "" if cut.cards == 1 else f" a GPU at {cut.text}"
    weights, capacity = f"weights take {held / GIB:.1f}", f"of {gpu.memory / GIB:.1f} GiB{where}"
    if held > gpu.memory:
        larger = would_fit(instance, group, workload.model, shape)
        return "memory", f"{weights} {capacity}; " + (larger or "no unit of such GPUs holds them")
    rest = units.buffers(kind, shape, gpu, workload)
    if kind.stage == "prefill":
        if held + rest > gpu.memory:
            return "memory", f"{weights} and two states {rest / GIB:.1f} {capacity}"
        return _late(kind, shape, cut, workload, 1)
    largest, wanted = units.largest_batch(shape, gpu, workload, rest), given_batch(workload) or gpu.pp
    if largest < wanted:
        rest += max(units.resident(kind, shape, gpu, workload, wanted), physics.largest_state(shape, gpu, workload))
        return "memory", f"{weights} and batch {wanted} takes {rest / GIB:.1f} {capacity}" + (
            f"; at most batch {largest} fits" if largest else ""
        )
    given = given_batch(workload)
    if given is not None and given < gpu.pp:
        return "memory", f"batch {given} is less than one request for each of {gpu.pp} stages"
    if given is not None or kind == units.HYBRID:
        return _late(kind, shape, cut, workload, given or largest)
    first, target = units.costs(shape, gpu, workload).first_token, workload.targets.ttft
    whole = kind.stage == "both" and not (kind.overlapped and workload.decodes)  # a prefill that nothing interrupts
    if whole and target is not None and first > target * (1.0 + 1e-9):
        return "targets", f"first token after {first:.3g} s at least, target {target:.4g} s ({cut.text})"
    return "", ""


def _late(kind: Kind, shape: Shape, cut: Cut, workload: Workload, batch: int) -> tuple[str, str]:
    """Which target a unit with this batch misses, and by what."""
    gpu = cut.device
    if kind == units.HYBRID and workload.decodes and workload.targets.tpot is not None:
        return "targets", "hybrid units promise nothing about the time per token"
    first, token = latency.bounds(kind, shape, gpu, workload, batch)
    targets = workload.targets
    beside = f" at batch {batch}" if kind.stage != "prefill" else ""
    if targets.ttft is not None and first is not None and first > targets.ttft * (1.0 + 1e-9):
        return "targets", f"first token after {first:.3g} s at least{beside}, target {targets.ttft:.4g} s ({cut.text})"
    if targets.tpot is not None and token is not None and token > targets.tpot * (1.0 + 1e-9):
        reason = f"{1e3 * token:.3g} ms per token{beside}, target {1e3 * targets.tpot:.4g} ms ({cut.text})"
        return "targets", reason
    return "", ""


def given_batch(workload: Workload) -> int | None:
    """The batch that the instance states, where one matters."""
    return workload.batch if isinstance(workload.batch, int) and workload.decodes else None
