"""The verifier reports every way in which a valid plan is made false, and names what is broken."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pydantic import BaseModel

from models import files
from models.instance import Instance
from models.load import build
from models.plan import Parallelism, Plan
from models.plan_tiers import Load
from solver.solve import Options, solve
from solver.verify import verify

TEXT = (Path(__file__).resolve().parents[2] / "instances" / "chapter" / "eight-cards.yaml").read_text()
CHANGES = {
    "direct": ["schemes.allow=[pd-direct]"],
    "pooled": ["schemes.allow=[pd-pooled]", "hardware.stores.kv-pool.read=20 GB/s"],
    "whole": ["schemes.allow=[replicas]", "workloads.reasoning.rate=2/s"],
    "phases": ["schemes.allow=[replicas]", "workloads.reasoning.rate=2/s", "hardware.groups.h20.startup=30 s"],
    "alone": ["schemes.allow=[pd-direct, pd-pooled]", "schemes.mix=false"],
    "cut": ["schemes.allow=[replicas]", "models.qwen3-8b.tp=2", "workloads.reasoning.rate=2/s"],
    "paced": [
        "schemes.allow=[chunked]",
        "workloads.reasoning.batch=null",
        "workloads.reasoning.targets={ttft: 4 s, tpot: 60 ms}",
        "workloads.reasoning.rate=2/s",
    ],
    "bought": [
        "schemes.allow=[pd-direct]",
        "hardware.groups.a100.servers=0",
        "hardware.bundles={four: {cards: {a100: 4}, price: 4/h, at_most: 2}}",
    ],
    "wider": [
        "schemes.allow=[pd-direct]",
        "hardware.links.rdma.bandwidth=3 GB/s",
        "hardware.links.rdma.step={price: 1/h, at_most: 3}",
    ],
    "measured": [
        "schemes.allow=[replicas]",
        "workloads.reasoning.rate=2/s",
        "measured={m: {group: h20, model: qwen3-8b, rates: {reasoning: 1/s}}}",
        "workloads.reasoning.pin=h20",
    ],
    "dropping": [
        "schemes.allow=[pd-direct]",
        "workloads.reasoning={model: qwen3-8b, rate: 6/s, input: 8192, output: 1025, batch: 32, minimum_share: 0.5}",
        "service.drain=null",
    ],
    "limited": ["schemes.allow=[pd-direct]", "limits.pools=[{stage: decode, at_most: 4}]", "billing.pay=used"],
}
T = TypeVar("T", bound=BaseModel)
Change = Callable[[Plan], Plan]


def instance(name: str, *more: str) -> Instance:
    return build(files.parse(TEXT), [*CHANGES[name], *more])


@cache
def plan(name: str) -> Plan:
    made = instance(name)
    found = solve(made, Options(plan_only=True))
    assert found.status == "optimal"
    assert verify(found, made) == []
    return found


def with_(item: T, **values: Any) -> T:
    return item.model_copy(update=values)


def pool(number: int, **values: Any) -> Change:
    return lambda p: with_(p, pools=[with_(q, **values) if i == number else q for i, q in enumerate(p.pools)])


def scaled(load: Load, factor: float) -> Load:
    return Load(at_load=load.at_load * factor, at_capacity=load.at_capacity * factor)


def more_through(number: int, factor: float) -> Change:
    def change(p: Plan) -> Plan:
        rates = {name: scaled(load, factor) for name, load in p.pools[number].rates.items()}
        return pool(number, rates=rates)(p)

    return change


def all_flows(factor: float) -> Change:
    def change(p: Plan) -> Plan:
        pools = [with_(q, rates={n: scaled(r, factor) for n, r in q.rates.items()}) for q in p.pools]
        handoffs = [with_(h, rate=scaled(h.rate, factor)) for h in p.handoffs]
        return with_(p, pools=pools, handoffs=handoffs, throughput=(p.throughput or 0.0) * factor)

    return change


def drain(**values: Any) -> Change:
    def change(p: Plan) -> Plan:
        assert p.drain is not None
        return with_(p, drain=with_(p.drain, **values))

    return change


def phase(number: int, **values: Any) -> Change:
    def change(p: Plan) -> Plan:
        assert p.drain is not None
        phases = [with_(q, **values) if i == number else q for i, q in enumerate(p.drain.phases)]
        return drain(phases=phases)(p)

    return change


def faster_phase(number: int, factor: float) -> Change:
    def change(p: Plan) -> Plan:
        assert p.drain is not None
        pools = {
            name: {w: rate * factor for w, rate in row.items()} for name, row in p.drain.phases[number].pools.items()
        }
        return phase(number, pools=pools)(p)

    return change


def one_more_unit(p: Plan) -> Plan:
    units = p.pools[0].units + 1
    return pool(0, units=units, cards=units)(p)


def first_token(p: Plan) -> Plan:
    result = p.workloads["reasoning"]
    times = with_(result.ttft_s, at_load=(result.ttft_s.at_load or 0.0) * 0.9)
    return with_(p, workloads={"reasoning": with_(result, ttft_s=times)})


def objective(**values: Any) -> Change:
    return lambda p: with_(p, objective=with_(p.objective, **values))


def cost(**values: Any) -> Change:
    return lambda p: with_(p, cost=with_(p.cost, **values))


def listed(field: str, **values: Any) -> Change:
    """The first entry of a list changed."""
    return lambda p: with_(p, **{field: [with_(getattr(p, field)[0], **values), *getattr(p, field)[1:]]})


def served(rate: float) -> Change:
    return lambda p: with_(p, workloads={n: with_(w, served=rate) for n, w in p.workloads.items()})


def set_(**values: Any) -> Change:
    return lambda p: with_(p, **values)


MUTATIONS: list[tuple[str, str, Change, str]] = [
    ("a card that does not exist", "direct", one_more_unit, "cards[a100]"),
    ("units that are not on cards", "direct", pool(0, units=5), "pools: prefill@a100"),
    ("a pool in a group that is not there", "direct", pool(0, group="b200"), "pools: prefill@a100"),
    ("a pool twice", "direct", lambda p: with_(p, pools=[p.pools[0], *p.pools]), "listed twice"),
    ("two cards a unit", "direct", pool(0, cards_per_unit=2, cards=8), "2 GPUs are not TP1 x PP1"),
    ("a scheme that is not allowed", "direct", pool(0, scheme="pd-pooled"), "schemes: pd-pooled"),
    ("a stage that is no part of its scheme", "whole", pool(0, stage="decode"), "no part of replicas"),
    ("more prefill than is handed over", "direct", more_through(0, 1.1), "handoff[reasoning,prefill@a100]"),
    ("more decode than is handed over", "direct", more_through(1, 1.1), "handoff[reasoning,decode@h20]"),
    ("more than the units can do", "direct", all_flows(1.01), "capacity[decode@h20]"),
    ("more than whole units can do", "whole", all_flows(1.01), "capacity["),
    ("less than arrives", "direct", all_flows(0.5), "sustain"),
    ("less served than said", "direct", set_(throughput=5.0), "serve[reasoning]"),
    ("a batch beyond memory", "direct", pool(1, batches={"reasoning": 100}, batch=100), "memory[decode@h20]"),
    ("a batch beyond memory in a whole unit", "whole", pool(0, batches={"reasoning": 100}, batch=100), "memory["),
    ("a batch that was not asked for", "direct", pool(1, batches={"reasoning": 33}, batch=33), "pools: decode@h20"),
    ("no handoff", "direct", set_(handoffs=[]), "handoff"),
    ("no handoff at capacity", "direct", listed("handoffs", rate=Load(at_load=3.5, at_capacity=0.0)), "handoff["),
    ("a handoff through no store", "pooled", listed("handoffs", store=None), "handoff["),
    ("a handoff of half the bytes", "direct", listed("handoffs", bytes_per_request=1e8), "handoffs[0].bytes"),
    ("a quicker handoff", "direct", listed("handoffs", seconds=0.01), "handoffs[0].seconds"),
    ("an earlier second", "direct", drain(drained_s=40.0), "drain"),
    ("an earlier second of the last phase", "phases", drain(drained_s=10.0), "drain"),
    ("no second", "direct", drain(drained_s=None), "drain"),
    ("no drain", "direct", set_(drain=None), "drain"),
    ("no phases", "direct", drain(phases=[]), "drain"),
    ("a phase before anything is ready", "direct", phase(0, start_s=2.0), "before it is ready"),
    ("a phase that ends late", "direct", phase(0, end_s=70.0), "drain"),
    ("units beyond themselves in a phase", "direct", faster_phase(0, 1.2), "in phase 0 of the drain"),
    ("served before it arrives", "phases", phase(0, start_s=10.0, end_s=10.0), "drain"),
    ("a wrong backlog", "direct", drain(backlog=1.0), "drain.backlog"),
    ("a wrong required rate", "direct", drain(required_rate=4.0), "drain.required_rate"),
    ("another deadline", "direct", drain(deadline_s=30.0), "drain"),
    ("a lower cost", "direct", cost(per_hour=7.0), "cost.per_hour"),
    ("a lower cost of a request", "direct", cost(per_1000_requests=0.5), "cost.per_1000_requests"),
    ("no cost", "direct", cost(per_1000_at_capacity=None), "cost.per_1000_at_capacity"),
    ("another currency", "direct", cost(currency="USD"), "cost.currency"),
    ("a quicker first token", "direct", first_token, "workloads.reasoning.ttft_s"),
    ("proven, with a gap", "direct", objective(gap=1e-3), "objective: called optimal"),
    ("proven, without a gap", "direct", objective(gap=None), "objective: called optimal"),
    ("better than its bound", "direct", objective(value=0.5), "objective: the value"),
    ("another value", "direct", objective(value=0.7, bound=0.7), "objective.value"),
    ("the value of another objective", "direct", objective(name="gpus", value=8.0, bound=8.0), "objective"),
    ("a utilisation", "direct", pool(1, utilisation=0.1), "pools[1].utilisation"),
    ("a pool's own capacity", "direct", pool(1, capacity=9.0), "pools[1].capacity"),
    ("a resource's demand", "direct", listed("resources", demand=1.0), "resources[0].demand"),
    ("a resource left out", "direct", lambda p: with_(p, resources=p.resources[1:]), "resources"),
    ("bytes on a link", "direct", listed("traffic", bytes_per_s=1.0), "traffic[0].bytes_per_s"),
    ("infeasible, with pools", "direct", set_(status="infeasible"), "status"),
    ("another scheme", "direct", set_(scheme="replicas"), "scheme"),
    ("the digest of another instance", "direct", set_(instance_sha256="0" * 64), "instance"),
    ("the document of another instance", "direct", set_(instance_document={"name": "x"}), "instance"),
    ("a stage that nobody knows", "direct", pool(0, stage="middle"), "no known stage"),
    ("a workload that is not there", "direct", pool(0, rates={"chat": Load(at_load=1, at_capacity=1)}), "a workload"),
    ("no batch", "direct", pool(1, batches={}), "no batch"),
    ("a handoff from nowhere", "direct", listed("handoffs", source="b200"), "not in the instance"),
    (
        "a unit larger than a server",
        "direct",
        pool(0, cards_per_unit=5, cards=20, parallelism=Parallelism(tp=5)),
        "does not fit in a server",
    ),
    ("two schemes where one may stand", "alone", pool(0, scheme="pd-pooled"), "stand side by side"),
    ("phases one over the other", "phases", phase(1, start_s=12.0), "phases overlap"),
    ("a plan that says it was not verified", "direct", set_(verified=False), "verified"),
    ("a pool in a phase alone", "direct", phase(0, pools={"ghost": {"reasoning": 1.0}}), "pools: ghost"),
    ("a handoff in a phase alone", "direct", phase(0, handoffs={"ghost": 1.0}), "a phase names one"),
    ("less than nothing", "direct", more_through(0, -1.0), "a rate that is no rate"),
    ("other degrees", "cut", pool(0, parallelism=Parallelism(tp=4)), "2 GPUs are not TP4 x PP1"),
    ("stages that are not there", "cut", pool(0, parallelism=Parallelism(tp=1, pp=2)), "TP1 is not allowed"),
    ("steps slower than the target", "paced", pool(0, step_s=0.08), "is paced by 0.08 s, target 0.06 s"),
    ("steps that no unit takes", "paced", pool(0, step_s=0.03), "capacity[chunked@a100]"),
    ("no step time", "paced", pool(0, step_s=None), "capacity[chunked@a100]"),
    ("cards that nobody bought", "bought", set_(purchases=[]), "cards[a100]: 4 used of 0"),
    ("more bought than brought", "bought", listed("purchases", count=2), "purchases[four]: brings other cards"),
    ("more bought than there is", "bought", listed("purchases", count=3), "purchases[four]: 3 of at most 2"),
    ("something that nobody sells", "bought", listed("purchases", name="five"), "nothing of this name is for sale"),
    ("more steps than a link takes", "wider", listed("purchases", count=4), "purchases[rdma]: no such step"),
    ("a step that nobody bought", "wider", set_(purchases=[]), "link[rdma]"),
    ("no memory", "direct", pool(1, memory=None), "pools[1].memory"),
    ("a measured unit that is not there", "measured", pool(0, measured="n"), "names a measured unit that is not in"),
    ("a measured unit that counts as computed", "measured", pool(0, measured=None), "capacity["),
    ("a measured unit of two GPUs", "measured", pool(0, cards_per_unit=2, cards=8), "2 GPUs are not"),
    ("fewer served than must be", "dropping", served(2.0), "served[reasoning]: 2 requests/s, outside 3 to 6"),
    ("more served than arrive", "dropping", served(7.0), "served[reasoning]: 7 requests/s, outside 3 to 6"),
    ("a bound without a gap", "direct", objective(gap=None), "stands without a bound, or a bound without it"),
]


@pytest.mark.parametrize(("base", "change", "named"), [m[1:] for m in MUTATIONS], ids=[m[0] for m in MUTATIONS])
def test_a_false_plan_is_refused(base: str, change: Change, named: str) -> None:
    false = change(plan(base))
    assert false != plan(base)
    violations = verify(false, instance(base))
    assert any(named in violation for violation in violations), violations


OTHER = [
    ("a narrower link", "direct", "hardware.links.rdma.bandwidth=3 GB/s", "link[rdma]"),
    ("a narrower link for two legs", "pooled", "hardware.links.rdma.bandwidth=7 GB/s", "link[rdma]"),
    ("a smaller store", "pooled", "hardware.stores.kv-pool.capacity=0.5 GB", "store[kv-pool]"),
    ("a store too small for one state", "pooled", "hardware.stores.kv-pool.capacity=0.1 GB", "store[kv-pool]"),
    ("a store that is written slowly", "pooled", "hardware.stores.kv-pool.write=1 GB/s", "store[kv-pool,write]"),
    (
        "a slow store that fills up",
        "pooled",
        "hardware.stores.kv-pool={on: rdma, capacity: 1.3 GB, read: 5.6 GB/s}",
        "store[kv-pool]:",
    ),
    ("fewer cards", "direct", "hardware.groups.a100.per_server=3", "cards[a100]"),
    ("less memory", "direct", "hardware.groups.h20.usable_memory=0.5", "memory[decode@h20]"),
    ("slower cards", "direct", "hardware.efficiency.bandwidth=0.4", "capacity[decode@h20]"),
    ("more arrivals", "direct", "workloads.reasoning.rate=4.6/s", "sustain"),
    ("an earlier deadline", "direct", "service.drain=40 s", "drain"),
    ("a later start", "direct", "service.startup=11 s", "before it is ready"),
    ("a bound on pools", "limited", "limits.pools=[{stage: decode, at_most: 1}]", "pools[0]"),
    ("a floor under pools", "limited", "limits.pools=[{group: h20, at_least: 5}]", "pools[0]"),
    ("another price", "direct", "hardware.groups.h20.price=2/h", "cost.per_hour"),
    ("another scheme", "direct", "schemes.allow=[replicas]", "schemes: pd-direct"),
    ("another objective", "direct", "objective=throughput", "objective"),
    ("a group that may not serve it", "direct", "workloads.reasoning.deny=[a100]", "may not use a100"),
    ("other degrees allowed", "cut", "models.qwen3-8b.tp=1", "TP2 is not allowed"),
    ("other degrees allowed on a group", "cut", "hardware.groups.h20.tp=1", "TP2 is not allowed"),
    ("a shorter time per token", "paced", "workloads.reasoning.targets.tpot=20 ms", "targets[reasoning,tpot]"),
    ("an earlier first token", "direct", "workloads.reasoning.targets={ttft: 0.9 s}", "targets[reasoning,ttft]"),
    ("bundles of other cards", "bought", "hardware.bundles.four.cards.a100=8", "brings other cards"),
    ("a link without steps", "wider", "hardware.links.rdma.step=null", "no such step"),
    ("a slower measurement", "measured", "measured.m.rates.reasoning=0.4/s", "capacity["),
    ("pools of at least five units", "direct", "limits.units={at_least: 5}", "units[prefill@a100]: 4 of at least 5"),
    ("one unit to spare", "direct", "limits.spare={units: 1}", "units less 1 to spare busy at load"),
    ("a larger share to be served", "dropping", "workloads.reasoning.minimum_share=1", "served[reasoning]"),
    ("places that are not connected", "direct", "hardware.links.rdma.connects=[a100]", "not connected"),
]


@pytest.mark.parametrize(("base", "setting", "named"), [o[1:] for o in OTHER], ids=[o[0] for o in OTHER])
def test_a_plan_for_another_instance_is_refused(base: str, setting: str, named: str) -> None:
    violations = verify(plan(base), instance(base, setting))
    assert any(named in violation for violation in violations), violations
