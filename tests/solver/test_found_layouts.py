"""Instances of units that divide a layer on which something once went wrong; each with what is right."""

from pathlib import Path
from typing import Any

import pytest

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build
from models.plan import Plan
from models.plan import Servers as Filling
from solver.data import gather
from solver.queueing.queues import longest_waits, queues
from solver.solve import Options, solve
from solver.verify import verify

MIXTRAL = "{m: {catalog: Mixtral-8x22B}}"
FOUR = "{g: {accelerator: A100-SXM-80GB, servers: 8, per_server: 4, price: 2/h}}"
LINK = "{nic: {catalog: NIC-400G, connects: [g]}}"


def made(groups: str = FOUR, models: str = MIXTRAL, workloads: str = "", **more: str) -> Instance:
    asked = workloads or "{w: {model: m, rate: 0.1/s, input: 1000, output: 200}}"
    keys = "\n".join(f"{key}: {text}" for key, text in more.items())
    text = f"schema: 1\nname: found\nhardware: {{groups: {groups}, links: {LINK}}}\nmodels: {models}\n"
    return build(files.parse(f"{text}workloads: {asked}\n{keys}\n"))


def planned(instance: Instance) -> Plan:
    plan = solve(instance, Options(plan_only=True))
    assert plan.status == "optimal"
    assert verify(plan, instance) == []
    return plan


@pytest.mark.parametrize("allow", ["expert-pool", "attention-ffn"])
def test_any_time_per_token_can_be_asked_of_units_with_parts(allow: str) -> None:
    for target in ("20 ms", "80 ms", "100 ms", "500 ms"):
        asked = f"{{w: {{model: m, rate: 0.1/s, input: 1000, output: 200, targets: {{tpot: {target}}}}}}}"
        plan = solve(made(workloads=asked, schemes=f"{{allow: [{allow}]}}"), Options(plan_only=True))
        assert plan.status in ("optimal", "infeasible")


def test_a_linear_program_that_one_solver_calls_imprecise_goes_to_another() -> None:
    plan = planned(
        made(
            "{g: {accelerator: A100-SXM-80GB, servers: 1, per_server: 2, pp: [1, 2]}}",
            "{m: {num_hidden_layers: 16, hidden_size: 1024, num_attention_heads: 32, num_key_value_heads: 2,"
            " head_dim: 128, intermediate_size: 12288, vocab_size: 64000, num_experts: 16, num_experts_per_tok: 2,"
            " moe_intermediate_size: 768, weights: int4}}",
            "{a: {model: m, rate: 0.1/s, input: 500, output: 1000}, b: {model: m, rate: 30/s, input: 100, output: 1},"
            " c: {model: m, rate: 3/s, input: 2000, output: 2}}",
            schemes="{allow: [hybrid, replicas, pd-direct]}",
            objective="headroom",
        )
    )
    assert plan.objective.value is not None


def test_the_smallest_unit_with_parts_is_kept_though_larger_ones_are_worth_more() -> None:
    """Few requests: what costs least is the unit of fewest GPUs, however well larger ones would do when full."""
    free = planned(made(schemes="{allow: [expert-pool]}", billing="{pay: used}"))
    narrow = planned(
        made(FOUR.replace("price", "dp: 1, price"), schemes="{allow: [expert-pool]}", billing="{pay: used}")
    )
    assert free.objective.value == pytest.approx(narrow.objective.value)


def test_a_degree_without_1_leaves_no_units_of_tp_alone() -> None:
    small = "{m: {catalog: Mixtral-8x22B, weights: fp8}}"
    instance = made(FOUR.replace("price", "ep: 4, price"), small)
    cuts = {c.cut.ep for c in gather(instance).candidates if c.cut is not None}
    assert cuts == {4}
    both = made(FOUR.replace("price", "ep: [1, 4], price"), small)
    assert {c.cut.ep for c in gather(both).candidates if c.cut is not None} == {1, 4}


def test_requests_wait_before_units_with_parts_too() -> None:
    """1200 requests in one second of ten minutes: the last one waits until all before it are served."""
    instance = made(
        workloads="{w: {model: m, rate: 2/s, input: 1000, output: 200, bursts: {every: 600 s, first: 1 s}}}",
        schemes="{allow: [expert-pool]}",
    )
    plan = planned(instance)
    stages = queues(plan, instance)
    assert stages[0].system.stage == "both"
    assert plan.throughput is not None
    assert longest_waits(stages, instance)["w"] >= 1200.0 / plan.throughput - 1.5


def test_units_with_several_workloads_are_priced_alone_too_where_batches_differ() -> None:
    """Two long requests beside thousands of short ones: alone they read few experts in each step."""
    long, short = "{model: m, rate: 0.01/s, input: 30000, output: 1000}", "{model: m, rate: 5/s, input: 10, output: 10}"
    instance = made("{g: {server: HGX-H100, servers: 2, price: 2/h}}", workloads=f"{{long: {long}, short: {short}}}")
    served = {frozenset(c.demand) for c in gather(instance).candidates if c.schemes[0] == "replicas"}
    assert frozenset({"long", "short"}) in served


@pytest.mark.parametrize(
    ("models", "groups", "said"),
    [
        ("{m: {catalog: Mixtral-8x22B, ep: 4}}", FOUR.replace("price", "ep: 2, price"), "none of them is allowed on g"),
        ("{m: {catalog: Mixtral-8x22B, ep: 3}}", FOUR, "does not divide the 8 experts"),
        ("{m: {catalog: Mixtral-8x22B, ep: 64}}", FOUR, "wider than the 32 GPUs"),
        ("{m: {catalog: Mixtral-8x22B, num_experts: 16}}", FOUR, "stands beside another number of experts"),
        ("{m: {catalog: Mixtral-8x22B, mlp_only_layers: [99]}}", FOUR, "there is no such layer"),
        ("{m: {catalog: Mixtral-8x22B, first_k_dense_replace: 1000}}", FOUR, "leaves no layer with experts"),
        ("{m: {catalog: Qwen3-8B, ep: 2}}", FOUR, "the model has no experts to spread"),
        ("{m: {catalog: Qwen3-8B, dp: 2}}", FOUR, "means nothing without experts"),
        ("{m: {catalog: Mixtral-8x22B, num_local_experts: 65536}}", FOUR, "16384"),
        ("{m: {catalog: Mixtral-8x22B, num_hidden_layers: 10000000}}", FOUR, "10000"),
    ],
)
def test_degrees_and_shapes_that_contradict_each_other_are_named(models: str, groups: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        made(groups, models)
    assert any(said in str(problem) for problem in refused.value.problems), refused.value


@pytest.mark.parametrize(
    ("allow", "said"),
    [
        ("[cpu-experts]", "no group states the CPUs"),
        ("[replicas, replicas]", "named twice"),
        ("[expert-pool]", ""),
    ],
)
def test_schemes_that_nothing_can_be_of_are_named(allow: str, said: str) -> None:
    if not said:
        made(schemes=f"{{allow: {allow}}}")
        with pytest.raises(BadInput, match="no model has experts"):
            made(models="{m: {catalog: Qwen3-8B}}", schemes=f"{{allow: {allow}}}")
        return
    with pytest.raises(BadInput, match=said):
        made(schemes=f"{{allow: {allow}}}")


def changed(plan: Plan, **pool: Any) -> Plan:
    return plan.model_copy(update={"pools": [plan.pools[0].model_copy(update=pool), *plan.pools[1:]]})


def test_a_plan_whose_parts_were_changed_is_refused() -> None:
    instance = made(schemes="{allow: [expert-pool]}", billing="{pay: used}")
    plan = planned(instance)
    main, part = plan.pools
    assert (main.stage, main.serves, part.stage, part.part_of) == ("attention", "both", "expert", main.name)
    for false in (
        changed(plan, micro_batches=main.micro_batches + 1),
        changed(plan, redundant_experts=8),
        changed(plan, resident_experts=1),
        plan.model_copy(update={"pools": [main]}),
        plan.model_copy(update={"pools": [main, part.model_copy(update={"cards_per_unit": 8, "cards": 8})]}),
        plan.model_copy(update={"servers": [Filling(group="x", count=1, blocks={"4": 1})]}),
    ):
        assert verify(false, instance), false.pools


def test_a_unit_of_several_uses_that_cannot_be_is_refused(tmp_path: Path) -> None:
    instance = made("{g: {server: HGX-H100, servers: 1, price: 2/h}}", schemes="{allow: [hybrid]}")
    plan = planned(instance)
    uses = [pool.model_copy(update={"resident_experts": 1}) if pool.shares else pool for pool in plan.pools]
    assert any(pool.shares for pool in uses)
    assert verify(plan.model_copy(update={"pools": uses}), instance)


def test_loads_in_a_file_read_back_as_they_are() -> None:
    loads = "[0.88, 1.44, 0.38, 0.9, 1.48, 1.64, 0.93, 0.92]"
    instance = made(models=f"{{m: {{catalog: Mixtral-8x22B, expert_loads: {loads}}}}}")
    assert build(files.parse(files.dump(instance.document()))).sha256() == instance.sha256()
