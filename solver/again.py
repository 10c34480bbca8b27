"""The same units under other conditions: rebuilt from what they are, and asked whether every promise still holds."""

from dataclasses import replace

from models.hardware import Efficiency
from models.instance import Instance
from solver import candidates, encoding, latency, paced, physics, settle, units
from solver.candidate import Candidate
from solver.chosen import Chosen
from solver.data import Data
from solver.layouts.tried import again
from solver.routes import find
from solver.tiers import states
from solver.topology import Topology


def slower(instance: Instance, share: float) -> Instance:
    """The instance with ``share`` of the efficiency that it states, everywhere."""

    def less(one: Efficiency) -> Efficiency:
        return one.model_copy(update={"compute": one.compute * share, "bandwidth": one.bandwidth * share})

    hardware = instance.hardware
    groups = {
        name: group.model_copy(update={"efficiency": less(group.efficiency or hardware.efficiency)})
        for name, group in hardware.groups.items()
    }
    return instance.model_copy(update={"hardware": hardware.model_copy(update={"groups": groups})})


def holds(chosen: Chosen, instance: Instance) -> bool:
    """Whether the units chosen keep every promise and target of ``instance``: their GPUs, cuts, batches and step times
    stay, what a request takes on them is reckoned anew.
    """
    topology = Topology(instance.hardware)
    rebuilt = []
    for index, candidate in enumerate(chosen.data.candidates):
        again = _rebuilt(instance, topology, candidate) if chosen.counts[index] else candidate
        if again is None:
            return False
        rebuilt.append(again)
    data = Data(
        instance,
        topology,
        chosen.data.schemes,
        tuple(rebuilt),
        tuple(find(instance, topology, chosen.data.schemes)),
        (),
        None if chosen.data.kept is None else chosen.data.kept.elsewhere(instance, topology),
        chosen.data.choice,
    ).widened(chosen.steps)
    most = settle.margin(data, chosen.counts, "arrivals")
    return most is not None and most >= 1.0 - 1e-9


def _rebuilt(instance: Instance, topology: Topology, unit: Candidate) -> Candidate | None:
    """The unit with what a request takes now; None where it cannot serve one of its workloads any more."""
    if unit.measured is not None:
        return unit
    shape = units.shape_of(unit.kind, instance.models[unit.model])
    if unit.stage == "encode":
        made = encoding.make(instance, topology, unit.schemes, unit.group, unit.model)
        return next((replace(new, name=unit.name) for new in made if isinstance(new, Candidate)), None)
    cut = unit.cut and again(instance, topology, unit.group, unit.model, shape, unit.cut)
    if cut is None:
        return None
    cut = candidates.with_cache(instance, topology, unit.group, cut)
    served = {name: instance.workloads[name] for name in unit.demand}
    if unit.shared is not None:
        return _use(unit, replace(unit, device=cut.device, cut=cut), instance)
    kind, gpu = unit.kind, cut.device
    scale: tuple[float, ...] = (1.0, 1.0)
    if unit.tau is not None:
        built = paced.at(kind, shape, gpu, served, unit.tau)
        if built is None or set(built.demand) != set(served):
            return None
        demand, resources, scale = built.demand, built.resources, built.scale
    else:
        lines = units.lines_of(kind, shape, gpu, served, unit.batches)
        demand = {n: units.demand(kind, shape, gpu, w, unit.batches[n], lines.get(n)) for n, w in served.items()}
        resources = unit.resources
        for name, workload in served.items():
            first, token = latency.bounds(kind, shape, gpu, workload, unit.batches[name])
            for time, target in ((first, workload.targets.ttft), (token, workload.targets.tpot)):
                if time is not None and target is not None and time > target * (1.0 + 1e-9):
                    return None
    first_tokens = {name: units.costs(shape, gpu, served[name]).first_token for name in unit.first}
    charges = candidates.charges(instance, kind, shape, topology, unit.group, cut, served)
    hits = states.hits(kind, shape, gpu, served, demand, scale)
    slower_one = replace(unit, demand=demand, resources=resources, first=first_tokens, charges=charges, hits=hits)
    return replace(slower_one, device=gpu, cut=cut)


def _use(unit: Candidate, new: Candidate, instance: Instance) -> Candidate | None:
    """One of the uses of a unit of several, reckoned anew."""
    shape, gpu = physics.shape_of(instance.models[unit.model]), new.device
    if gpu is None:
        return None
    demand: dict[str, tuple[float, ...]] = {}
    together = {name: instance.workloads[name] for name in unit.batches}
    lines = units.lines_of(units.REPLICA, shape, gpu, together, unit.batches)
    for name in unit.demand:
        workload = instance.workloads[name]
        cost = units.costs(shape, gpu, workload)
        whole = max(units.demand(units.REPLICA, shape, gpu, workload, unit.batches[name], lines.get(name)))
        decode = whole - cost.prefill_seconds
        demand[name] = ({"prefill": cost.prefill_seconds, "decode": decode}.get(unit.stage, whole),)
        target = workload.targets.ttft
        if target is not None and unit.stage != "decode" and cost.first_token > target * (1.0 + 1e-9):
            return None
    first = {n: units.costs(shape, gpu, instance.workloads[n]).first_token for n in unit.first}
    return replace(new, demand=demand, first=first)
