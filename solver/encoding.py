"""Units that encode images for others, as candidates beside those of the language model."""

from collections.abc import Iterator

from models.instance import Instance
from solver import features, physics, startup, units
from solver.candidate import Candidate, Rejected
from solver.topology import Topology
from solver.units import MemoryUse


def make(
    instance: Instance, topology: Topology, schemes: tuple[str, ...], group: str, model: str
) -> Iterator[Candidate | Rejected]:
    """The unit on ``group`` that encodes images for ``model``; why there is none, for each workload with images."""
    workloads = features.encoded(instance, group, model)
    if not workloads:
        return
    cut, reason = features.narrowest(instance, topology, group, model)
    if cut is None:
        for name in workloads:
            yield Rejected(schemes, "encode", group, name, reason)
        return
    described, shape = instance.hardware.groups[group], units.shape_of(units.ENCODE, instance.models[model])
    seconds = physics.encode(shape, cut.device).seconds
    label = f"encode@{group}" + (f"/{model}" if len(instance.models) > 1 else "")
    yield Candidate(
        name="",
        label=label + (f"/{cut.label}" if cut.label else ""),
        schemes=schemes,
        kind=units.ENCODE,
        group=group,
        model=model,
        cards=cut.cards,
        batches=dict.fromkeys(workloads, 1),
        demand={name: (physics.missed_images(workload) * seconds,) for name, workload in workloads.items()},
        memory=MemoryUse(
            weights=features.own_weights(shape, cut.device),
            experts=0.0,
            kv=0.0,
            buffers=max(features.own_buffer(shape, workload) for workload in workloads.values()),
            capacity=cut.device.memory,
        ),
        startup=startup.seconds(instance, group, features.own_weights(shape, cut.device)),
        price=cut.cards * (described.price or 0.0),
        tp=cut.tp,
        block=cut.block,
        cut=cut,
        device=cut.device,
        power=cut.cards * (described.accelerator.power or 0.0),
    )
