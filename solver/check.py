"""What was understood of an instance: places, paths, and the stage rates that a plan would rest on."""

from typing import Any

from models.attention import SLIDING
from models.instance import Instance
from models.llm import Llm
from models.plan import Parallelism
from solver import physics, units
from solver.assumptions import assumptions
from solver.candidate import Candidate
from solver.data import Data, gather
from solver.physics import Work
from solver.reachable import require_paths


def check(instance: Instance) -> dict[str, Any]:
    """Topology, stages and assumptions as plain data, SI units. Raises BadInput as solve does."""
    data = gather(instance)
    require_paths(data)
    return {
        "instance": instance.name,
        "topology": _topology(data),
        "models": _models(instance),
        "stages": [*_stages(data), *_rejected(data)],
        "assumptions": [assumption.model_dump() for assumption in assumptions(instance)],
        "problems": [],
    }


def _topology(data: Data) -> dict[str, Any]:
    hardware = data.instance.hardware
    return {
        "groups": [
            {
                "name": name,
                "accelerator": group.accelerator.name,
                "servers": group.servers,
                "per_server": group.per_server,
                "cards": group.cards,
                "usable_bytes": group.accelerator.memory * group.usable,
                "startup_s": _startup(data, name),
                "links": sorted(link for link in data.topology.graph.successors(name)),
            }
            for name, group in hardware.groups.items()
        ],
        "links": [
            {"name": channel.name, "link": channel.link, "capacity": channel.capacity}
            for channel in data.topology.channels.values()
        ],
        "stores": [
            {"name": name, "on": store.on, "for": store.holds, "capacity": store.capacity}
            for name, store in hardware.stores.items()
        ],
        "paths": [
            {
                "workload": route.workload,
                "scheme": route.scheme,
                "source": route.source,
                "target": route.target,
                "store": route.store,
                "encoder": route.features.encoder if route.features else None,
                "links": list(route.links),
                "bytes": route.payload,
                "seconds": route.seconds,
            }
            for route in data.routes
        ],
    }


def _startup(data: Data, group: str) -> float | None:
    """When units of a group are ready; None where that differs from unit to unit."""
    times = {c.startup for c in data.candidates if c.group == group}
    return next(iter(times)) if len(times) == 1 else data.instance.startup(group) if not times else None


def _models(instance: Instance) -> list[dict[str, Any]]:
    shapes = {name: physics.shape_of(llm) for name, llm in instance.models.items()}
    return [
        {
            "name": name,
            "parameters": parameters(instance.models[name]),
            "weight_bytes": shape.resident,
            "kv_bytes_per_token": shape.kv.per_token,
            "sliding_window": int(shape.kv.layers.window) or None,
            "sliding_layers": shape.kv.layers.kinds.count(SLIDING),
            "linear_layers": shape.kv.layers.linear,
            "recurrent_bytes": shape.kv.constant,
            "encoder_bytes": shape.encoder_resident,
            "feature_bytes_per_image": shape.features,
            "weights": instance.models[name].weights,
            "kv": instance.models[name].kv,
        }
        for name, shape in shapes.items()
    ]


def parameters(llm: Llm) -> float:
    """Parameters of a model, embeddings included."""
    shape = physics.shape_of(llm.model_copy(update={"weights": "bf16"}))
    return shape.resident / physics.BYTES["bf16"]


def _stages(data: Data) -> list[dict[str, Any]]:
    return [
        _stage(data.instance, candidate, name)
        for candidate in data.pruned_by_batch().candidates
        for name in candidate.demand
    ]


def _stage(instance: Instance, candidate: Candidate, name: str) -> dict[str, Any]:
    workload = instance.workloads[name]
    shape, gpu = units.shape_of(candidate.kind, instance.models[candidate.model]), candidate.device
    batch = candidate.batches[name]
    work: Work | None = None
    if gpu is not None and candidate.stage == "encode":
        one, missed = physics.encode(shape, gpu), physics.missed_images(workload)
        work = Work(missed * one.compute, missed * one.memory)
    elif gpu is not None and gpu.layout is None:
        cost = units.costs(shape, gpu, workload)
        work = cost.step.at(units.in_step(gpu, batch)) if candidate.stage == "decode" else cost.prefill
    need = max(candidate.demand[name])
    return {
        "workload": name,
        "stage": candidate.stage,
        "schemes": list(candidate.schemes),
        "group": candidate.group,
        "cards": candidate.all_cards,
        "tp": candidate.tp,
        "pp": candidate.pp,
        "cut": _cut(candidate),
        "step_s": candidate.tau,
        "batch": batch if candidate.stage not in ("prefill", "encode") and _known(instance, candidate) else None,
        "compute_s": None if work is None else work.compute,
        "memory_s": None if work is None else work.memory,
        "unit_seconds": need,
        "rate": 1.0 / need if need > 0.0 else None,
        "memory_bytes": None if candidate.memory is None else candidate.memory.used,
        "provenance": "roofline" if candidate.measured is None else "measured",
        "reason": None,
    }


def _cut(candidate: Candidate) -> str:
    """How a unit is cut, and what else it takes."""
    if candidate.cut is None:
        return Parallelism(tp=candidate.tp, pp=candidate.pp).text
    parts = [f"{part.cards} {part.group} for {part.stage}" for part in candidate.parts]
    parts += [f"{candidate.cut.micro} micro-batches"] if candidate.cut.micro > 1 else []
    parts += [f"{candidate.cut.redundant} redundant experts"] if candidate.cut.redundant else []
    parts += [] if candidate.cut.resident is None else [f"{candidate.cut.resident} experts a layer on the GPU"]
    return ", ".join([candidate.cut.text, *parts])


def _known(instance: Instance, candidate: Candidate) -> bool:
    """Whether the batch is known: not where a measured unit says none."""
    return candidate.measured is None or instance.measured[candidate.measured].batch is not None


def _rejected(data: Data) -> list[dict[str, Any]]:
    return [
        {
            "workload": rejected.workload,
            "stage": rejected.stage,
            "schemes": list(rejected.schemes),
            "group": rejected.group,
            "cards": None,
            "tp": None,
            "pp": None,
            "cut": None,
            "step_s": None,
            "batch": None,
            "compute_s": None,
            "memory_s": None,
            "unit_seconds": None,
            "rate": None,
            "memory_bytes": None,
            "provenance": None,
            "reason": rejected.reason,
        }
        for rejected in data.rejected
    ]
