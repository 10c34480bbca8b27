"""Small instances on which a plan once failed its own verifier, or a command failed; each with what is right."""

from typing import Any

import pytest

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build
from models.plan import Plan
from solver.check import check
from solver.solve import Options, solve
from solver.verify import verify


def made(groups: str, models: str, workloads: str, **more: str) -> Instance:
    keys = "\n".join(f"{key}: {text}" for key, text in more.items())
    text = f"schema: 1\nname: found\nhardware: {groups}\nmodels: {models}\nworkloads: {workloads}\n{keys}\n"
    return build(files.parse(text))


def planned(instance: Instance) -> Plan:
    plan = solve(instance, Options(plan_only=True))
    assert plan.status == "optimal"
    assert verify(plan, instance) == []
    return plan


A100 = "accelerator: A100-SXM-80GB"


def test_a_group_without_servers_needs_a_bundle() -> None:
    with pytest.raises(BadInput, match="no server, and no bundle brings any"):
        made(
            f"{{groups: {{a: {{{A100}, servers: 0, per_server: 4, price: 1/h}}}}}}",
            "{m: {catalog: Qwen3-8B}}",
            "{w: {model: m, rate: 1/s, input: 2000, output: 200}}",
        )


def test_stage_units_beside_hybrid_ones_keep_their_own_buffers() -> None:
    planned(
        made(
            f"{{groups: {{g: {{{A100}, servers: 1, per_server: 8, price: 1/h, inside_handoffs: free}}}}}}",
            "{m: {catalog: Llama-3.1-8B}}",
            "{w: {model: m, rate: 20/s, input: 1000, output: 1025}}",
            schemes="{allow: [hybrid, pd-pooled]}",
        )
    )


def test_hundreds_of_units_that_do_not_nest_are_packed() -> None:
    """160 servers of 7 hold 160 units of 3 and 320 of 2, exactly."""
    instance = made(
        f"{{groups: {{a: {{{A100}, servers: 160, per_server: 7, price: 1/h}}}}}}",
        "{m: {catalog: Qwen3-8B}}",
        "{x: {model: m, rate: 1600/s, input: 2000, output: 200},"
        " y: {model: m, rate: 3200/s, input: 2000, output: 300}}",
        measured="{three: {group: a, model: m, tp: 3, rates: {x: 10/s}},"
        " two: {group: a, model: m, tp: 2, rates: {y: 10/s}}}",
    )
    plan = planned(instance)
    assert sum(pool.cards for pool in plan.pools) == 1120
    assert [(one.group, one.count, one.blocks) for one in plan.servers] == [("a", 160, {"3": 1, "2": 2})]
    fewer = plan.model_copy(update={"servers": [plan.servers[0].model_copy(update={"count": 159})]})
    assert any("blocks of 2 GPUs" in text for text in verify(fewer, instance))
    wider = plan.model_copy(update={"servers": [plan.servers[0].model_copy(update={"blocks": {"3": 1, "2": 3}})]})
    assert any("do not fit in a server of 7" in text for text in verify(wider, instance))


def test_uses_of_a_hybrid_unit_send_between_their_stages_too() -> None:
    planned(
        made(
            "{groups: {g: {accelerator: H100-SXM-80GB, servers: 9, per_server: 1, price: 1/h, inside_handoffs: free}},"
            " links: {l: {connects: [g], bandwidth: 100 MB/s}}}",
            "{m: {catalog: Llama-3.1-70B}}",
            "{w: {model: m, rate: 4/s, input: 1000, output: 2}}",
            schemes="{allow: [hybrid]}",
        )
    )


def test_measured_stage_units_stand_beside_hybrid_ones() -> None:
    planned(
        made(
            "{groups: {g: {accelerator: H20-SXM5-96GB, servers: 3, per_server: 16, price: 100/h},"
            " h: {accelerator: L40S, servers: 1, per_server: 16, price: 100/h}},"
            " links: {l: {connects: [g, h], bandwidth: 25 GB/s}}}",
            "{m: {catalog: Qwen3-8B}}",
            "{w: {model: m, rate: 1/s, input: 100, output: 4000}}",
            schemes="{allow: [hybrid, pd-direct]}",
            measured="{u: {group: g, model: m, stage: prefill, rates: {w: 30/s}}}",
        )
    )


def test_a_looser_time_per_token_is_never_worse() -> None:
    """The best step time of a unit alone is where it is as busy as it is full; it is always tried."""
    rates = []
    for target in (15, 20, 27, 40, 90, 400):
        plan = planned(
            made(
                f"{{groups: {{g: {{{A100}, servers: 2, per_server: 8, price: 2.5/h, usable_memory: 0.3}}}}}}",
                "{m: {catalog: Qwen3-8B}}",
                f"{{w: {{model: m, rate: 5/s, input: 1000, output: 2, cached: 999, targets: {{tpot: {target} ms}}}}}}",
                objective="throughput",
                schemes="{allow: [replicas]}",
            )
        )
        rates.append(plan.throughput or 0.0)
    assert rates == sorted(rates)


@pytest.mark.parametrize("allow", [["hybrid"], ["replicas", "chunked", "pd-direct"]])
def test_requests_of_one_token_can_be_checked(allow: list[str]) -> None:
    data: dict[str, Any] = check(
        made(
            f"{{groups: {{g: {{{A100}, servers: 1, per_server: 4, price: 1/h}}}}}}",
            "{m: {catalog: Qwen3-8B}}",
            "{a: {model: m, rate: 1/s, input: 2000, output: 1, targets: {tpot: 50 ms}},"
            " b: {model: m, rate: 1/s, input: 2000, output: 100, targets: {tpot: 50 ms}}}",
            schemes=f"{{allow: {allow}}}",
        )
    )
    assert data["stages"]


def test_handoffs_of_hybrid_and_separated_units_have_names_of_their_own() -> None:
    planned(
        made(
            "{groups: {g: {accelerator: H200-SXM-141GB, servers: 1, per_server: 16, price: 1/h,"
            " inside_handoffs: free}}}",
            "{m: {catalog: Qwen3-8B}}",
            "{w: {model: m, users: 100, think_time: 1 min, input: 1000, output: 1025, targets: {tpot: 20 ms}}}",
            schemes="{allow: [pd-direct, hybrid]}",
            limits="{spare: {units: 2}}",
        )
    )


@pytest.mark.parametrize("limits", ["{}", "{units: {at_least: 3}}"])
@pytest.mark.parametrize("objective", ["headroom", "gpus", "throughput"])
def test_next_to_no_arrivals_are_planned_for(objective: str, limits: str) -> None:
    """One request a day on dozens of GPUs: neither number is lost in the other's rounding."""
    planned(
        made(
            f"{{groups: {{g: {{{A100}, servers: 5, per_server: 8, price: 1/h}}}}}}",
            "{m: {catalog: Llama-3.1-8B}}",
            "{w: {model: m, per_day: 1, input: 8192, output: 2}}",
            objective=objective,
            limits=limits,
        )
    )


def test_next_to_no_value_can_be_divided_by() -> None:
    plan = planned(
        made(
            f"{{groups: {{g: {{{A100}, servers: 2, per_server: 8, price: 2.5/h}}}}}}",
            "{m: {catalog: Qwen3-8B}}",
            "{w: {model: m, per_day: 1, input: 1000, output: 100, value: 0.001, minimum_share: 0.01}}",
        )
    )
    assert plan.objective.value == pytest.approx(
        40.0 * 24.0 / 0.001 * 1000.0, rel=1e-6
    )  # 16 GPUs for a day, one request


def test_a_million_units_to_spare_are_relaxed_in_time() -> None:
    instance = made(
        f"{{groups: {{g: {{{A100}, servers: 1, per_server: 4, price: 1/h}}}}}}",
        "{m: {catalog: Qwen3-8B}}",
        "{w: {model: m, rate: 1/s, input: 2000, output: 200}}",
        limits="{spare: {units: 1000000}}",
    )
    plan = solve(instance, Options())
    assert plan.status == "infeasible"
    assert any(one.path == "limits.spare.units" and one.after == "3" for one in plan.relaxations)


@pytest.mark.parametrize(("batch", "at_most"), [(1, 0.5), (4, 1.5), (32, 3.5)])
def test_what_runs_today_has_the_batch_that_it_has(batch: int, at_most: float) -> None:
    instance = made(
        f"{{groups: {{a: {{{A100}, servers: 2, per_server: 8, price: 1/h}}}}}}",
        "{m: {catalog: Qwen3-8B}}",
        "{w: {model: m, rate: 1/s, input: 2000, output: 200, targets: {tpot: 5 s}}}",
        current=f"[{{group: a, units: 1, batch: {batch}}}]",
    )
    today = solve(instance, Options()).current
    assert today is not None
    assert 0.0 < today.throughput < at_most


def test_a_step_time_of_nothing_is_refused_by_the_verifier() -> None:
    instance = made(
        f"{{groups: {{g: {{{A100}, servers: 1, per_server: 4, price: 1/h}}}}}}",
        "{m: {catalog: Qwen3-8B}}",
        "{w: {model: m, rate: 1/s, input: 2000, output: 200, targets: {tpot: 40 ms}}}",
    )
    plan = planned(instance)
    for step in (0.0, -1.0, 1e-9):
        pools = [pool.model_copy(update={"step_s": step}) for pool in plan.pools]
        assert verify(plan.model_copy(update={"pools": pools}), instance)


def test_one_more_server_counts_where_units_do_not_nest_in_servers() -> None:
    """A unit of three in each server of four: a fifth server brings a fifth unit, a fourth of what there is."""
    instance = made(
        f"{{groups: {{a: {{{A100}, servers: 4, per_server: 4, price: 1/h}}}}}}",
        "{m: {catalog: Qwen3-8B}}",
        "{w: {model: m, rate: 10/s, input: 2000, output: 200}}",
        measured="{three: {group: a, model: m, tp: 3, rates: {w: 10/s}}}",
        schemes="{allow: [replicas]}",
    )
    more = next(row for row in solve(instance).marginal if row.name == "cards[a]")
    assert more.step == 4.0
    assert more.gain == pytest.approx(10.0)
