"""The numbers that a plan rests on, each with where it comes from, and warnings about them."""

from collections.abc import Iterator, Sequence

from models.hardware import Efficiency
from models.instance import Instance
from models.llm import published
from models.plan import Plan, Pool
from models.told import Assumption, Provenance, Row


def assumptions(instance: Instance) -> list[Assumption]:
    """Stage times, device numbers, links, startup."""
    parts = (_efficiency, _devices, _links, _models, _experts, _demand, _measured, _service)
    return [assumption for part in parts for assumption in part(instance)]


def _efficiency(instance: Instance) -> Iterator[Assumption]:
    stated = instance.hardware.efficiency
    groups = instance.hardware.groups
    shares = {name: group.efficiency or stated for name, group in groups.items()}
    if len({(e.compute, e.bandwidth) for e in shares.values()}) == 1:
        value = f"roofline at {_of_peak(next(iter(shares.values())))}"
    else:
        value = "roofline at " + "; ".join(f"{_of_peak(e)} on {name}" for name, e in shares.items())
    yield Assumption(name="stage times", value=value, provenance="roofline")
    given = "efficiency" in instance.hardware.model_fields_set
    if not all(group.efficiency for group in groups.values()):
        provenance: Provenance = "given" if given else "default"
        yield Assumption(name="hardware.efficiency", value=_of_peak(stated), provenance=provenance)
    for name, group in groups.items():
        if group.efficiency is not None:
            value = _of_peak(group.efficiency)
            yield Assumption(name=f"hardware.groups.{name}.efficiency", value=value, provenance="given")


def _of_peak(efficiency: Efficiency) -> str:
    if efficiency.compute == efficiency.bandwidth:
        return f"{100.0 * efficiency.compute:.4g} % of peak"
    return (
        f"{100.0 * efficiency.compute:.4g} % of peak compute and {100.0 * efficiency.bandwidth:.4g} % of peak bandwidth"
    )


def _devices(instance: Instance) -> Iterator[Assumption]:
    for name, group in instance.hardware.groups.items():
        card = group.accelerator
        peak = ", ".join(f"{value / 1e12:.4g} TFLOP/s {key}" for key, value in card.compute.items())
        own = [key for key in ("memory", "bandwidth", "compute") if key not in card.sources]
        yield Assumption(
            name=f"hardware.groups.{name}.accelerator",
            value=f"{card.name}: {card.memory / 1e9:.4g} GB, {card.bandwidth / 1e9:.5g} GB/s, {peak}",
            provenance="given" if own else "catalog",
        )
        usable: Provenance = "catalog" if "usable_memory" in card.sources else "default"
        if group.usable_memory is not None or ("usable_memory" in card.model_fields_set and usable == "default"):
            usable = "given"
        yield Assumption(
            name=f"hardware.groups.{name}.usable_memory", value=f"{100.0 * group.usable:.4g} %", provenance=usable
        )


def _links(instance: Instance) -> Iterator[Assumption]:
    for name, link in instance.hardware.links.items():
        share = (
            "as stated" if link.link_efficiency == 1.0 else f"{100.0 * link.link_efficiency:.3g} % of the nominal rate"
        )
        source: Provenance = "given" if "link_efficiency" in link.model_fields_set else "default"
        if "link_efficiency" in link.sources:
            source = "catalog"
        value = f"{link.port_bandwidth / 1e9:.4g} GB/s payload a port, {share}"
        yield Assumption(name=f"hardware.links.{name}", value=value, provenance=source)


def _models(instance: Instance) -> Iterator[Assumption]:
    for name, llm in instance.models.items():
        native = published(llm.quantization_config)
        own: Provenance = "catalog" if (llm.weights, llm.kv) == (native, "bf16") else "given"
        value = f"{llm.name or llm.repository or 'own shape'}: weights {llm.weights}, KV {llm.kv}"
        yield Assumption(name=f"models.{name}", value=value, provenance=own)


def _experts(instance: Instance) -> Iterator[Assumption]:
    for name, llm in instance.models.items():
        if llm.experts:
            often = "each as often as the others" if llm.expert_loads is None else "each as often as expert_loads say"
            value = (
                f"{llm.num_experts_per_tok} of {llm.experts} experts a token, {often}; a pass reads those that it "
                "touches, and the busiest GPU has more rows by as much as chance makes"
            )
            stated: Provenance = "default" if llm.expert_loads is None else "given"
            yield Assumption(name=f"models.{name}.experts", value=value, provenance=stated)
    for name, group in instance.hardware.groups.items():
        if group.host is not None:
            cpu, host = group.host.cpu, group.host
            value = (
                f"{host.sockets} x {cpu.name}: {cpu.bandwidth / 1e9:.4g} GB/s and "
                f"{cpu.kernels[host.kernel] / 1e12:.4g} TFLOP/s ({host.kernel}) each, "
                f"{host.link.payload_bandwidth / 1e9:.4g} GB/s to a GPU"
            )
            own: Provenance = "catalog" if "kernels" in cpu.sources else "given"
            yield Assumption(name=f"hardware.groups.{name}.host", value=value, provenance=own)


def _demand(instance: Instance) -> Iterator[Assumption]:
    for name, workload in instance.workloads.items():
        if workload.rate_from is not None:
            value = f"{workload.rate:.6g} requests/s: {workload.rate_from}"
            yield Assumption(name=f"workloads.{name}.rate", value=value, provenance="given")
        if workload.mean_rate is not None:
            value = f"{workload.mean_rate:.6g} requests/s on average: costs of a request are told by it"
            yield Assumption(name=f"workloads.{name}.mean_rate", value=value, provenance="given")
        if workload.lengths is not None:
            value = (
                f"{len(workload.lengths)} classes, mean {workload.mean_input:.6g} in, {workload.mean_output:.6g} out; "
                "every unit gets the same mix"
            )
            yield Assumption(name=f"workloads.{name}.lengths", value=value, provenance="given")
        said = [f"{k} {v:.4g} s" for k, v in (("ttft", workload.targets.ttft), ("tpot", workload.targets.tpot)) if v]
        if said:
            value = ", ".join(said) + ": hard limits for every request, without queueing"
            yield Assumption(name=f"workloads.{name}.targets", value=value, provenance="given")


def _measured(instance: Instance) -> Iterator[Assumption]:
    for name, unit in instance.measured.items():
        value = f"{unit.stage} of {unit.model} on {unit.size} {unit.group}" + (
            f", {unit.source}" if unit.source else ""
        )
        yield Assumption(name=f"measured.{name}", value=value, provenance="measured")


def _service(instance: Instance) -> Iterator[Assumption]:
    if instance.service.steps:
        value = f"{len(instance.service.steps)} steps of each unit, in whole seconds; the weights by its GPUs"
        yield Assumption(name="service.steps", value=value, provenance="given")
        return
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
        if row.excluded and _cheaper(row, plan):
            said.append(
                f"{row.scheme} is not allowed here; alone it would keep every promise at "
                f"{row.cost_per_1000_requests:.4g} {plan.cost.currency} per 1000 requests "
                f"instead of {plan.cost.per_1000_requests:.4g}"
            )
        elif row.excluded and _wins(row, plan):
            said.append(
                f"{row.scheme} is not allowed here; alone it would sustain {row.throughput:.4g} requests/s "
                f"instead of {plan.throughput:.4g}"
            )
    said.extend(_tight(instance, plan.pools))
    longest = max((handoff.seconds for handoff in plan.handoffs), default=0.0)
    drained = plan.drain.drained_s if plan.drain else None
    if drained is not None and longest > 0.1 * drained:
        said.append(
            f"a handoff takes {longest:.3g} s; the backlog counts requests as they begin, not as their handoffs end"
        )
    if any(workload.bursts for workload in instance.workloads.values()):
        from solver.queueing.queues import told  # here, since few instances have bursts

        said.extend(told(instance, plan))
    if any(pool.cards_per_unit > 1 and pool.measured is None for pool in plan.pools):
        said.append("optimal is among the ways to cut units that were tried; state tp, pp, ep or dp for others")
    if any(workload.targets.ttft or workload.targets.tpot for workload in instance.workloads.values()):
        said.append("targets are hard limits for every request without queueing, not percentiles")
    if plan.pools and all(pool.measured for pool in plan.pools):
        said.append("rates are measured, as stated in the file; no queueing is counted")
    elif plan.pools:
        said.append("stage times are roofline estimates, not measured on your cluster; no queueing is counted")
    return said


def _cheaper(row: Row, plan: Plan) -> bool:
    """Whether a scheme would win where the objective is a cost; with all GPUs reserved the cost is the same for all."""
    own, mine = row.cost_per_1000_requests, plan.cost.per_1000_requests
    cost = plan.objective.name in ("cost", "effective_cost")
    return bool(cost and row.met and own and mine and own < mine * (1.0 - 1e-6))


def _wins(row: Row, plan: Plan) -> bool:
    return row.throughput is not None and row.throughput > (plan.throughput or 0.0) * (1.0 + 1e-6)


def _tight(instance: Instance, pools: Sequence[Pool]) -> Iterator[str]:
    for pool in pools:
        card = instance.hardware.groups[pool.group].accelerator
        if pool.memory is None:
            continue
        used = (pool.memory.capacity - pool.memory.free) / card.memory
        if used > card.usable_memory:
            yield (
                f"pool {pool.name} fills {used:.1%} of the memory of a {card.name}; "
                f"engines commonly stop at {card.usable_memory:.0%}"
            )
