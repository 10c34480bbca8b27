"""The chapter's eight cards: the worked answer of sections 9.2.3 and 9.7.2, and variants of it."""

import pytest

from models.plan import Plan
from models.told import Row
from solver.compare import compare
from solver.limits import Limits
from solver.solve import Options, solve
from solver.verify import verify
from tests.instances import document, eight, from_document


@pytest.fixture(scope="module")
def plan() -> Plan:
    return solve(eight())


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    return {row.scheme: row for row in compare(eight(), Limits())}


def test_the_plan(plan: Plan) -> None:
    assert (plan.status, plan.verified, plan.scheme) == ("optimal", True, "pd-direct")
    assert plan.objective.gap == 0.0
    assert [(p.stage, p.group, p.units, p.cards) for p in plan.pools] == [
        ("prefill", "a100", 4, 4),
        ("decode", "h20", 4, 4),
    ]
    assert plan.throughput == pytest.approx(4.554153973, rel=1e-9)
    assert plan.drain is not None
    assert plan.drain.drained_s == pytest.approx(43.20198, rel=1e-6)
    assert plan.drain.backlog == pytest.approx(35.0)
    assert plan.drain.met is True
    assert plan.drain.required_rate == pytest.approx(4.2)
    assert plan.cost.per_1000_requests == pytest.approx(0.6349206, rel=1e-6)
    assert plan.cost.per_1000_at_capacity == pytest.approx(0.4879550, rel=1e-6)
    assert [resource.name for resource in plan.resources if resource.binding] == [
        "cards[a100]",
        "cards[h20]",
        "capacity[decode@h20,memory]",
    ]


def test_times_at_load_and_at_capacity(plan: Plan) -> None:
    result = plan.workloads["reasoning"]
    assert result.ttft_s.at_load == pytest.approx(0.85637387 + 0.04832338, rel=1e-6)
    assert result.tpot_s.at_capacity == pytest.approx(0.0274475, rel=1e-5)
    assert result.tpot_s.at_load == pytest.approx(0.0168583, rel=1e-5)  # 15 requests in flight, not 32


def test_memory_of_both_stages(plan: Plan) -> None:
    prefill, decode = (pool.memory for pool in plan.pools)
    assert prefill is not None
    assert decode is not None
    assert prefill.weights + prefill.kv + prefill.buffers == 16_381_470_720 + 2 * 1_207_959_552
    assert (decode.weights + decode.kv + decode.buffers) / 2**30 == pytest.approx(56.88143, rel=1e-6)


def test_comparison_is_the_table_of_example_9_8(rows: dict[str, Row]) -> None:
    gib = 2.0**30
    assert {name: row.throughput for name, row in rows.items()} == pytest.approx(
        {"replicas": 3.01678, "chunked": 4.16577, "pd-direct": 4.55415, "pd-pooled": 4.55415}, rel=1e-5
    )
    payload = {name: (row.payload_bytes_per_request or 0.0) / gib for name, row in rows.items()}
    assert payload == pytest.approx({"replicas": 0.0, "chunked": 0.0, "pd-direct": 1.125, "pd-pooled": 2.25})
    assert rows["pd-direct"].channel_capacity == pytest.approx(20.69606, rel=1e-6)
    assert rows["pd-pooled"].channel_capacity == pytest.approx(10.34803, rel=1e-6)
    assert rows["replicas"].channel_capacity is None
    assert rows["chunked"].drained_s == pytest.approx(62.57065, rel=1e-6)
    assert rows["chunked"].reason == "misses the deadline by 2.571 s"
    assert (rows["replicas"].drained_s, rows["replicas"].met) == (None, False)
    assert rows["pd-direct"].split == {"prefill": {"a100": 4, "h20": 0}, "decode": {"a100": 0, "h20": 4}}


def test_largest_batch_that_fits_reaches_4_6709() -> None:
    plan = solve(eight("workloads.reasoning.batch=max"), Options(plan_only=True))
    assert plan.throughput == pytest.approx(4.6709, abs=5e-5)
    largest = {row.split["decode"]["h20"] for row in compare(eight("workloads.reasoning.batch=max"), Limits())[2:]}
    assert largest  # the row exists for both separations
    assert next(pool.batch for pool in plan.pools if pool.stage == "decode") == 57


def test_batch_left_out_is_chosen_and_no_worse_than_the_largest() -> None:
    data = document()
    del data["workloads"]["reasoning"]["batch"]
    assert solve(from_document(data), Options(plan_only=True)).throughput == pytest.approx(4.6709, abs=5e-5)


@pytest.mark.parametrize(
    ("change", "throughput"),
    [("workloads.reasoning.cached=6144", 5.7060), ("workloads.reasoning.output=4097", 1.3607)],
)
def test_replicas_beside_separation_win_where_the_mix_pays(change: str, throughput: float) -> None:
    rate = "workloads.reasoning.rate=1/s"
    allowed = "schemes.allow=[replicas, pd-direct]"
    plan = solve(eight(change, rate, allowed), Options(plan_only=True))
    assert plan.throughput == pytest.approx(throughput, abs=5e-5)
    assert plan.scheme == "mixed"


@pytest.mark.parametrize(
    ("change", "separated", "chunked"),
    [
        ("workloads.reasoning.cached=6144", 5.6876, 6.7642),
        ("workloads.reasoning.output=129", 6.3330, 6.7570),
        ("workloads.reasoning.output=4097", 1.2595, 1.5077),
    ],
)
def test_excluded_chunking_that_would_win_is_said(change: str, separated: float, chunked: float) -> None:
    instance = eight(change, "schemes.allow=[pd-direct]", "workloads.reasoning.rate=1/s")
    plan = solve(instance)
    assert plan.throughput == pytest.approx(separated, rel=2e-4)
    row = next(row for row in plan.alternatives if row.scheme == "chunked")
    assert row.excluded
    assert row.throughput == pytest.approx(chunked, abs=5e-5)
    assert any("chunked is not allowed" in text for text in plan.warnings)


def test_mix_false_takes_the_best_scheme_alone() -> None:
    plan = solve(eight("schemes.mix=false"))
    assert (plan.status, plan.scheme) == ("optimal", "pd-direct")
    alone = solve(eight("schemes.mix=false", "schemes.allow=[replicas, chunked]", "service.drain=70s"))
    assert (alone.status, alone.scheme) == ("optimal", "chunked")


def test_ninety_per_cent_efficiency_misses_the_deadline() -> None:
    ninety = ("hardware.efficiency.compute=0.45", "hardware.efficiency.bandwidth=0.45", "schemes.allow=[pd-direct]")
    plan = solve(eight(*ninety))
    assert plan.status == "infeasible"
    row = next(row for row in plan.alternatives if row.scheme == "pd-direct")
    assert row.throughput == pytest.approx(4.0987386, rel=1e-6)
    assert row.drained_s == pytest.approx(68.456, rel=1e-4)
    texts = [relaxation.text for relaxation in plan.relaxations]
    assert "deadline 60 s -> 68.46 s" in texts
    assert plan.conflicts[0].limits == ["drain", "cards[a100]", "cards[h20]"]


@pytest.mark.parametrize(
    "changes",
    [
        ("service.drain=40s",),
        ("workloads.reasoning.rate=6/s",),
        ("service.drain=40s", "schemes={allow: [chunked, replicas], mix: false}"),
        ("service.drain=5s",),
        ("workloads.reasoning.rate=4/s", "service={startup: 0 s}", "schemes.allow=[replicas]"),
        ("limits.pools=[{stage: decode, group: h20, at_most: 3}]", "schemes.allow=[pd-direct]"),
        ("hardware.groups.h20.startup=50 s",),
        ("hardware.links.rdma.bandwidth=2 GB/s", "schemes.allow=[pd-direct]"),
    ],
)
def test_each_relaxation_makes_the_instance_solvable_and_a_smaller_one_does_not(changes: tuple[str, ...]) -> None:
    plan = solve(eight(*changes))
    assert plan.status == "infeasible"
    assert plan.conflicts
    assert plan.relaxations
    for relaxation in plan.relaxations:
        before, after = relaxation.before, relaxation.after
        if relaxation.after == "left out":
            rest = [change for change in changes if not change.startswith("limits.pools")]
            assert solve(eight(*rest), Options(plan_only=True)).status == "optimal"
            continue
        if relaxation.unit == "GPUs":
            path, before, after, less = f"{relaxation.path}.per_server", before, after, str(int(after) - 1)
        elif relaxation.unit == "requests":
            path, less = relaxation.path, str(int(after) - 1)
        elif relaxation.unit == "B/s":
            path, less = relaxation.path, f"{float(after.split()[0]) * 0.999} B/s"
        elif relaxation.unit == "s":
            path, less = relaxation.path, f"{float(after.split()[0]) * 0.999} s"
        else:
            path, less = relaxation.path, f"{float(after.removesuffix('/s')) * 1.002}/s"
        helped = solve(eight(*changes, f"{path}={after}"), Options(plan_only=True))
        assert helped.status == "optimal", relaxation
        assert solve(eight(*changes, f"{path}={less}"), Options(plan_only=True)).status == "infeasible", relaxation


def test_a_link_that_binds_is_named_and_cards_that_do_not_help_are_not() -> None:
    plan = solve(eight("hardware.links.rdma.bandwidth=2 GB/s", "schemes.allow=[pd-direct]"))
    assert plan.conflicts[0].limits == ["sustain", "link[rdma]"]
    assert "link rdma 2 -> 5.074 GB/s" in [relaxation.text for relaxation in plan.relaxations]
    assert not any(relaxation.unit == "GPUs" for relaxation in plan.relaxations)


def test_a_larger_batch_may_be_what_helps() -> None:
    plan = solve(eight("service.drain=40s"))
    texts = [relaxation.text for relaxation in plan.relaxations]
    assert "+1 h20" in texts
    assert any(text.startswith("batch 32 -> ") for text in texts)
    assert texts[0] == "arrivals 3.5 -> 3.415 requests/s"  # the smallest change comes first


def test_next_steps_are_what_a_solve_finds(plan: Plan) -> None:
    gains = {row.name: row.gain for row in plan.marginal}
    more = {
        "cards[a100]": ("hardware.groups.a100.per_server=5",),
        "cards[h20]": ("hardware.groups.h20.per_server=5",),
        "cards[a100,h20]": ("hardware.groups.a100.per_server=5", "hardware.groups.h20.per_server=5"),
    }
    for name, changes in more.items():
        again = solve(eight(*changes), Options(plan_only=True))
        assert again.throughput is not None
        assert plan.throughput is not None
        assert gains[name] == pytest.approx(again.throughput - plan.throughput, rel=1e-6)
    assert {row.name: row.step for row in plan.marginal if row.gain is None} == pytest.approx(
        {"arrivals": 3.7951283, "efficiency": 0.92223496, "link[rdma]": 5073430118.4}, rel=1e-6
    )


def test_units_of_different_startup_drain_in_phases() -> None:
    # chunked on A100 is ready at once, on H20 after 30 s: 3.5 t = 2.2484 t + 1.9174 (t - 30)
    changes = (
        "schemes.allow=[chunked]",
        "hardware.groups.a100.startup=0 s",
        "hardware.groups.h20.startup=30 s",
        "service.drain=90 s",
    )
    instance = eight(*changes)
    plan = solve(instance)
    a100, h20 = (4.0 / max(plan_seconds) for plan_seconds in ((0.98946, 1.77924), (2.08583, 0.88574)))
    expected = 30.0 * h20 / (a100 + h20 - 3.5)
    assert plan.drain is not None
    assert plan.drain.drained_s == pytest.approx(expected, rel=1e-3)
    assert len(plan.drain.phases) == 2
    assert plan.drain.backlog == pytest.approx(30.0 * (3.5 - a100), rel=1e-3)
    assert verify(plan, instance) == []


def test_a_hundred_thousand_cards_a_group() -> None:
    plan = solve(
        eight(
            "hardware.groups.a100.servers=25000",
            "hardware.groups.h20.servers=25000",
            "hardware.links.rdma.bandwidth=5000000 Gbit/s",
            "workloads.reasoning.rate=80000/s",
        ),
        Options(plan_only=True),
    )
    assert (plan.status, plan.verified) == ("optimal", True)
    assert plan.throughput is not None
    assert plan.throughput > 25000 * 4.5541


def test_seconds_of_units_are_those_used_above() -> None:
    from solver.data import gather

    need = {c.name: c.demand["reasoning"] for c in gather(eight()).candidates}
    assert need["chunked@a100"] == pytest.approx((0.98946, 1.77924), rel=1e-4)
    assert need["chunked@h20"] == pytest.approx((2.08583, 0.88574), rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        (("service.drain=43.2019 s",), "infeasible"),
        (("service.drain=43.20199 s",), "optimal"),
        (("workloads.reasoning.rate=4.554153973176907/s", "service.drain=1e9 s"), "infeasible"),
        (("workloads.reasoning.rate=4.5541539/s", "service.startup=0 s"), "optimal"),
        (("workloads.reasoning.rate=4.55416/s", "service={startup: 0 s}"), "infeasible"),
        (("workloads.reasoning.rate=1e-9/s", "hardware.groups.h20.startup=5 s"), "optimal"),
        (("workloads.reasoning.rate=1e-9/s", "billing.pay=used", "objective=gpus"), "optimal"),
    ],
)
def test_limits_that_are_just_met_or_just_missed(changes: tuple[str, ...], status: str) -> None:
    assert solve(eight(*changes)).status == status


def test_a_scheme_is_not_lost_to_another_that_cannot_stand_beside_it() -> None:
    """Chunked beats replicas where it fits; where mix is false it must not push them out of where only they fit."""
    changes = ("hardware.groups.h20.usable_memory=0.63", "workloads.reasoning.rate=3/s", "service={startup: 10 s}")
    plan = solve(eight("schemes={allow: [replicas, chunked], mix: false}", *changes))
    assert (plan.status, plan.scheme) == ("optimal", "replicas")


TWO_MODELS = (
    "models.m2={catalog: Qwen3-8B}",
    "workloads.b={model: m2, rate: 0.1/s, input: 100, output: 100}",
    "hardware.groups={h20: {accelerator: H20-SXM5-96GB, servers: 1, per_server: 1, price: 1/h}}",
    "hardware.links={}",
    "hardware.stores={}",
    "schemes={allow: [replicas, chunked]}",
)


@pytest.mark.parametrize(
    ("changes", "limits"),
    [
        (("service.drain=40s",), ["drain", "cards[a100]", "cards[h20]"]),
        (("service.startup=70 s",), ["drain (over after 60 s, before any unit is ready at 70 s)"]),
        (
            ("limits.pools=[{stage: decode, at_least: 3}, {stage: decode, at_most: 2}]",),
            ["pools[0] (decode: at least 3)", "pools[1] (decode: at most 2)"],
        ),
        (
            (
                "limits.pools=[{scheme: chunked, at_least: 3}]",
                "schemes.allow=[replicas]",
                "workloads.reasoning.rate=1/s",
            ),
            ["pools[0] (chunked: at least 3)"],
        ),
        (
            (
                "limits.pools=[{stage: decode, at_most: 2}, {group: h20, at_least: 1}, {stage: prefill, at_most: 100}]",
                "schemes.allow=[pd-direct]",
            ),
            ["sustain", "pools[0] (decode: at most 2)"],
        ),
        (TWO_MODELS, ["sustain", "cards[h20]"]),
        (("hardware.links.rdma.bandwidth=2 GB/s", "schemes.allow=[pd-direct]"), ["sustain", "link[rdma]"]),
    ],
)
def test_conflicts_name_what_cannot_hold_together_and_nothing_else(changes: tuple[str, ...], limits: list[str]) -> None:
    plan = solve(eight(*changes))
    assert plan.status == "infeasible"
    assert plan.conflicts[0].limits == limits
    assert plan.relaxations or "scheme: chunked" in changes[0]


def test_too_large_a_batch_is_told_the_one_that_fits() -> None:
    plan = solve(eight("workloads.reasoning.batch=100", "workloads.reasoning.rate=1/s"))
    assert plan.conflicts[0].limits[0].startswith("memory[")
    assert "batch 100 -> 58 for reasoning" in [relaxation.text for relaxation in plan.relaxations]


def test_one_more_card_is_solved_with_every_scheme_also_where_they_may_not_mix() -> None:
    plan = solve(eight("schemes.mix=false"))
    more = solve(eight("schemes.mix=false", "hardware.groups.a100.per_server=5"), Options(plan_only=True))
    assert plan.throughput is not None
    assert more.throughput is not None
    gain = next(row.gain for row in plan.marginal if row.name == "cards[a100]")
    assert gain == pytest.approx(more.throughput - plan.throughput, rel=1e-6)
    assert more.scheme == "chunked"


def test_a_handoff_that_outlasts_the_drain_is_said() -> None:
    slow = solve(eight("hardware.links.rdma.startup=100 s", "schemes.allow=[pd-direct]"), Options(plan_only=True))
    assert any("a handoff takes 100 s" in text for text in slow.warnings)
    assert not any("a handoff takes" in text for text in solve(eight(), Options(plan_only=True)).warnings)
