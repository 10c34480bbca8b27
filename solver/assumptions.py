"""The numbers that a plan rests on, each with where it comes from, and warnings about them."""

from collections.abc import Iterator, Sequence

from models import catalog
from models.instance import Instance
from models.plan import Assumption, Plan, Pool, Row


def assumptions(instance: Instance) -> list[Assumption]:
    """Stage times, device numbers, links, startup."""
    return [*_efficiency(instance), *_devices(instance), *_links(instance), *_service(instance)]


def _efficiency(instance: Instance) -> Iterator[Assumption]:
    stated = instance.hardware.efficiency
    yield Assumption(
        name="stage times",
        value=f"roofline at {stated.compute:.4g} of peak compute and {stated.bandwidth:.4g} of peak bandwidth",
        provenance="roofline",
    )
    given = "efficiency" in instance.hardware.model_fields_set
    yield Assumption(
        name="hardware.efficiency",
        value=f"compute {stated.compute:.4g}, bandwidth {stated.bandwidth:.4g}",
        provenance="given" if given else "default",
    )
    for name, group in instance.hardware.groups.items():
        if group.efficiency is not None:
            own = group.efficiency
            value = f"compute {own.compute:.4g}, bandwidth {own.bandwidth:.4g}"
            yield Assumption(name=f"hardware.groups.{name}.efficiency", value=value, provenance="given")


def _devices(instance: Instance) -> Iterator[Assumption]:
    for name, group in instance.hardware.groups.items():
        card = group.accelerator
        source = card.sources.get("memory")
        entry = catalog.entry("accelerators", card.name)
        known = entry is not None and source is not None and source == entry.get("sources", {}).get("memory")
        peak = ", ".join(f"{value / 1e12:.4g} TFLOP/s {key}" for key, value in card.compute.items())
        yield Assumption(
            name=f"hardware.groups.{name}.accelerator",
            value=f"{card.name}: {card.memory / 1e9:.4g} GB, {card.bandwidth / 1e9:.5g} GB/s, {peak}",
            provenance="catalog" if known else "given",
        )
        given = group.usable_memory is not None
        yield Assumption(
            name=f"hardware.groups.{name}.usable_memory",
            value=f"{group.usable:.4g}",
            provenance="given" if given else "catalog" if known else "default",
        )


def _links(instance: Instance) -> Iterator[Assumption]:
    for name, link in instance.hardware.links.items():
        given = "link_efficiency" in link.model_fields_set
        value = (
            f"{link.port_bandwidth / 1e9:.4g} GB/s payload a port ({link.link_efficiency:.3g} of the bandwidth stated)"
        )
        yield Assumption(name=f"hardware.links.{name}", value=value, provenance="given" if given else "default")


def _service(instance: Instance) -> Iterator[Assumption]:
    given = "startup" in instance.service.model_fields_set
    yield Assumption(
        name="service.startup",
        value=f"{instance.service.startup:.4g} s for every unit unless its group says otherwise",
        provenance="given" if given else "default",
    )


def warnings(instance: Instance, plan: Plan) -> list[str]:
    """What a planner should know before acting on the plan."""
    said = []
    for row in plan.alternatives:
        if row.excluded and _wins(row, plan):
            said.append(
                f"{row.scheme} is not allowed here; alone it would sustain {row.throughput:.4g} requests/s "
                f"instead of {plan.throughput:.4g}"
            )
    said.extend(_tight(instance, plan.pools))
    if plan.pools:
        said.append("stage times are roofline estimates, not measured on your cluster; no queueing is counted")
    return said


def _wins(row: Row, plan: Plan) -> bool:
    return row.throughput is not None and row.throughput > (plan.throughput or 0.0) * (1.0 + 1e-6)


def _tight(instance: Instance, pools: Sequence[Pool]) -> Iterator[str]:
    for pool in pools:
        card = instance.hardware.groups[pool.group].accelerator
        used = (pool.memory.capacity - pool.memory.free) / card.memory
        if used > card.usable_memory:
            yield (
                f"pool {pool.name} fills {used:.1%} of the memory of a {card.name}; "
                f"engines commonly stop at {card.usable_memory:.0%}"
            )
