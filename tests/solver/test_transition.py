"""Steps in time, re-sharding, live migration, recovery, two versions, and what changes between plans."""

import math
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import BadInput
from models.plan import Plan
from models.transition import Transition
from solver.formulas import migration
from solver.limits import Limits
from solver.solve import Options, solve
from solver.transition import graph, migrate, recover, reshard, rollout
from solver.transition.graph import Step
from solver.transition.pools import Difference, difference
from solver.transition.timeline import timeline
from tests.instances import eight

# --- steps --------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 9.0), st.sets(st.integers(0, 9), max_size=3)), min_size=1, max_size=10))
def test_without_links_all_is_ready_after_the_longest_path(drawn: list[tuple[float, set[int]]]) -> None:
    steps = [
        Step(f"s{i}", seconds, tuple(f"s{before}" for before in sorted(after) if before < i))
        for i, (seconds, after) in enumerate(drawn)
    ]
    paths: nx.DiGraph[str] = nx.DiGraph()
    for step in steps:
        paths.add_edge("start", step.name, weight=0.0)
        paths.add_edge(step.name, f"end of {step.name}", weight=step.seconds)
        paths.add_edges_from((f"end of {before}", step.name, {"weight": 0.0}) for before in step.after)
    timed = graph.schedule(steps)
    assert graph.ready(timed) == pytest.approx(nx.dag_longest_path_length(paths, weight="weight"))
    by_name = {step.name: step.seconds for step in steps}
    assert sum(by_name[name] for name in graph.critical_path(timed)) == pytest.approx(graph.ready(timed))


def test_a_step_within_another_is_not_added_again() -> None:
    steps = [
        Step("process", 1.0),
        Step("first run", 5.0, ("process",)),
        Step("compile", 3.0, (), "first run"),
        Step("tune", 1.5, ("compile",), "first run"),
        Step("capture", 2.0, ("first run",)),
    ]
    timed = {row.step.name: row for row in graph.schedule(steps)}
    assert graph.ready(timed.values()) == 8.0  # not 12.5
    assert (timed["compile"].start, timed["tune"].start, timed["tune"].end) == (1.0, 4.0, 5.5)
    assert graph.critical_path(graph.schedule(steps)) == ["process", "first run", "capture"]


def test_a_link_carries_one_move_at_a_time() -> None:
    steps = [
        Step("late", 1.0, ("wait",), link="nic"),
        Step("wait", 2.0),
        Step("early", 4.0, link="nic"),
        Step("other", 3.0, link="pcie"),
    ]
    timed = {row.step.name: row for row in graph.schedule(steps)}
    assert (timed["early"].start, timed["late"].start, timed["late"].waits_for) == (0.0, 4.0, "early")
    assert timed["other"].start == 0.0
    assert graph.critical_path(graph.schedule(steps)) == ["early", "late"]


def test_cycles_are_told_with_their_steps() -> None:
    data = {
        "steps": {"a": {"after": ["c"]}, "b": {"after": ["a"]}, "c": {"after": ["b"]}, "d": {"after": ["d"]}, "e": {}}
    }
    told = [(found.path, found.message) for found in graph.problems(data)]
    assert sorted(told) == [
        ("steps.a", "the steps wait for each other: a -> b -> c -> a"),
        ("steps.d", "the steps wait for each other: d -> d"),
    ]


# --- re-sharding --------------------------------------------------------------------------------------

MATRICES, NORMS = 16_381_470_720.0 - 616_448.0, 616_448.0  # Qwen3-8B in BF16, section 9.2.3
STATE = 2 * 8192 * 147_456.0


def test_four_to_eight_cards_as_in_the_chapter() -> None:
    moved = reshard.reshard(MATRICES, NORMS, STATE, 4, 8, kv_heads=8)
    assert moved.network == 16_449_642_496  # section 9.6.2: 16.4 GB
    assert moved.busiest_sender == moved.sent[1] == 4_699_193_344  # 4.7 GB
    assert moved.local == pytest.approx(4.7e9, rel=2e-3)
    assert reshard.seconds(moved, 6.25e9, per_card=False) == pytest.approx(2.63, abs=5e-3)
    assert reshard.seconds(moved, 25e9, per_card=False) == pytest.approx(0.66, abs=5e-3)
    assert reshard.seconds(moved, 300e9, per_card=True) == pytest.approx(15.7e-3, abs=5e-5)


def test_two_to_one_by_hand() -> None:
    moved = reshard.reshard(100.0, 3.0, 10.0, 2, 1, kv_heads=2)
    assert (moved.sent, moved.received, moved.kept) == ({1: 55.0}, {0: 55.0}, {0: 58.0})


def test_cards_that_are_new_get_everything() -> None:
    moved = reshard.reshard(100.0, 3.0, 10.0, 2, 2, kv_heads=2, targets=[2, 3])
    assert moved.network == 116.0
    assert moved.kept == {}
    assert reshard.reshard(100.0, 3.0, 10.0, 4, 4).network == 0.0


def test_more_cards_than_kv_heads_hold_the_same_state() -> None:
    # 2 heads on 4 cards: cards 0, 1 hold the first, 2, 3 the second; from 2 cards: 0 has the first, 1 the second
    moved = reshard.reshard(0.0, 0.0, 8.0, 2, 4, kv_heads=2)
    assert moved.received == {1: 4.0, 2: 4.0, 3: 4.0}
    assert moved.kept == {0: 4.0}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([1, 2, 3, 4, 6, 8, 12]), st.sampled_from([1, 2, 3, 4, 6, 8, 12]), st.booleans())
def test_every_card_ends_with_what_it_needs(before: int, after: int, apart: bool) -> None:
    targets = range(before, before + after) if apart else range(after)
    moved = reshard.reshard(120.0, 5.0, 24.0, before, after, kv_heads=24, targets=list(targets))
    for card in targets:
        assert moved.received.get(card, 0.0) + moved.kept.get(card, 0.0) == pytest.approx(144.0 / after + 5.0)
    assert sum(moved.sent.values()) == pytest.approx(sum(moved.received.values()))
    assert set(moved.sent) <= set(range(before))


# --- live migration -----------------------------------------------------------------------------------


def test_a_migration_without_pause_catches_up_fully() -> None:
    found = migrate.migrate(41e9, 25e9, 0.2e9)
    assert found.seconds == pytest.approx(migration.catch_up_seconds(41e9, 25e9, 0.2e9))
    assert found.copied == pytest.approx(25e9 * found.seconds)


def test_a_pause_leaves_the_rest_for_the_end() -> None:
    # 40 GB at 10 GB/s, 2 GB/s grow; a pause of 0.4 s copies 4 GB: 36 GB at a net 8 GB/s before it
    found = migrate.migrate(40e9, 10e9, 2e9, pause=0.4)
    assert (found.background, found.pause, found.seconds) == pytest.approx((4.5, 0.4, 4.9))
    assert (found.grown, found.copied) == pytest.approx((9e9, 49e9))


@settings(max_examples=25, deadline=None)
@given(st.floats(1.0, 50.0), st.floats(1.0, 20.0), st.floats(0.0, 25.0), st.floats(0.0, 3.0))
def test_a_migration_is_a_simulation_of_it(state: float, bandwidth: float, growth: float, pause: float) -> None:
    found = migrate.migrate(state, bandwidth, growth, pause)
    missing, step, time = state, 1e-3, 0.0
    while missing > bandwidth * pause and time < 20.0:
        missing, time = missing + (growth - bandwidth) * step, time + step
    if found.background < 19.0:
        assert time == pytest.approx(found.background, abs=0.01)
    else:
        assert time >= 19.0


def test_a_copy_that_never_comes_nearer() -> None:
    assert not migrate.migrate(40e9, 2e9, 2e9, pause=1.0).ends
    assert migrate.migrate(40e9, 2e9, 2e9, pause=20.0).seconds == 20.0  # stop and copy all


# --- failures and versions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((8192, 1025, 1025, 8192), ("replay", 8192, 1024, 9216, 1026, 0)),  # section 9.6.3
        ((8192, 1025, 1025, 9216), ("continue", 9216, 0, 9216, 1026, 0)),
        ((8192, 1025, 1025, 9000), ("replay", 9000, 216, 9216, 1026, 0)),
        ((8192, 1025, 1025, 9216, False), ("replay", 0, 9216, 9216, 1026, 0)),
        ((8192, 1025, 1000, 9216), ("resample", 9191, 0, 9191, 1001, 25)),
        ((8192, 1025, 0, 8192), ("resample", 8192, 0, 8192, 1, 1025)),
        ((8192, 0, 0, 0), ("repeat", 0, 8192, 8192, 1, 0)),
        ((8192, 1, 1, 8192), ("continue", 8192, 0, 8192, 2, 0)),
    ],
)
def test_what_is_replayed(arguments: Any, expected: Any) -> None:
    found = recover.recover(*arguments)
    got = (found.way, found.cached, found.replayed, found.covered, found.next_output, found.seen_and_lost)
    assert got == expected
    assert found.cached + found.replayed == found.covered


def test_one_card_stops_its_whole_group() -> None:
    assert recover.stopped_units(4, (5,)) == {1}
    assert recover.stopped_units(4, (0, 3, 12)) == {0, 3}
    assert recover.stopped_units(1, (5,)) == {5}


def test_both_versions_need_cards_while_they_stand_side_by_side() -> None:
    old, new = rollout.Version(1.0, 2), rollout.Version(2.0, 3)
    found = rollout.stages(old, new, 4.0, [0.25, 0.5, 1.0], cards=12)
    assert [(stage.old_units, stage.new_units, stage.cards, stage.fits) for stage in found] == [
        (3, 1, 4 * 2 + 3, True),  # four old units until the new one is ready
        (2, 1, 3 * 2 + 3, True),
        (0, 2, 2 * 2 + 6, True),
    ]
    assert [stage.fits for stage in rollout.stages(old, new, 4.0, [1.0], cards=13)] == [False]


# --- plans --------------------------------------------------------------------------------------------


def plan(*changes: str) -> Plan:
    return solve(eight(*changes), Options(Limits(), plan_only=True))


REPLICAS = ("schemes.allow=[replicas]", "service.drain=null", "workloads.reasoning.rate=1/s")


def between(before: Plan, after: Plan) -> Difference:
    return difference(before, after)


def test_units_that_change_their_stage_keep_their_weights() -> None:
    found = between(plan(*REPLICAS), plan())
    counts = {
        (one.group, one.stage): (one.before, one.after, one.kept, one.reassigned, one.new) for one in found.changes
    }
    assert counts["a100", "prefill"] == (0, 4, 0, 4, 0)
    assert counts["h20", "decode"] == (0, 4, 0, 4, 0)
    assert (found.weights, found.during, found.crowded) == (0.0, 0.0, ())
    assert found.arrivals == 3.5
    assert found.deadline == 60.0


def test_new_units_load_their_weights_beside_what_serves() -> None:
    few = (*REPLICAS, "limits.pools=[{stage: both, group: h20, exactly: 4}, {stage: both, group: a100, exactly: 0}]")
    more = (*REPLICAS, "limits.pools=[{stage: both, group: h20, exactly: 4}, {stage: both, group: a100, exactly: 3}]")
    before, after = plan(*few), plan(*more)
    found = between(before, after)
    [new] = [one for one in found.changes if one.new]
    assert (new.group, new.new, new.cards_per_unit) == ("a100", 3, 1)
    assert found.busiest == pytest.approx(16_381_470_720)
    assert found.weights == pytest.approx(3 * 16_381_470_720)
    assert found.during == pytest.approx(before.throughput)
    assert found.crowded == ()
    steps = {"weights": {"loads": "new-units", "link": "nic"}, "ready": {"takes": "2 s", "after": ["weights"]}}
    asked = {"schema": 1, "name": "more", "links": {"nic": {"bandwidth": "10 GB/s"}}, "steps": steps}
    told = timeline(Transition.model_validate(asked), found)
    assert told.ready == pytest.approx(3 * 1.638147072 + 2.0)
    assert told.during.value == pytest.approx(before.throughput)
    per_card = {**asked, "links": {"nic": {"bandwidth": "10 GB/s", "per": "card"}}}
    assert timeline(Transition.model_validate(per_card), found).ready == pytest.approx(1.638147072 + 2.0)


def test_units_that_stay_serve_alone() -> None:
    """Two of four prefill units go, all decode units stay; one whole-request unit more."""
    before = plan()
    prefill, decode = before.pools
    fewer = before.model_copy(update={"pools": [prefill.model_copy(update={"units": 2}), decode]})
    found = between(before, fewer)
    assert found.during == pytest.approx(min(prefill.capacity / 2, decode.capacity))
    assert [(one.kept, one.new) for one in found.changes] == [(2, 0), (4, 0)]
    assert between(fewer, before).during == pytest.approx(fewer.throughput or 0.0)  # the new ones fit beside


def test_new_units_may_need_the_gpus_of_old_ones() -> None:
    before = plan()
    prefill, decode = before.pools
    cut = prefill.parallelism.model_copy(update={"tp": 2})
    wider = prefill.model_copy(update={"units": 2, "cards_per_unit": 2, "parallelism": cut})
    found = between(before, before.model_copy(update={"pools": [wider, decode]}))
    assert found.crowded == ("a100",)
    assert [(one.cut, one.before, one.after, one.new) for one in found.changes if one.stage == "prefill"] == [
        ("TP1", 4, 0, 0),
        ("TP2", 0, 2, 2),
    ]
    assert found.during == 0.0  # decoding alone serves nothing
    asked = {"schema": 1, "name": "cut", "steps": {"all": {"takes": "4 s"}}}
    told = timeline(Transition.model_validate(asked), found)
    assert (told.during.value, told.stops) == (0.0, 0.0)
    assert told.waiting is not None
    assert told.waiting.at(4.0) == pytest.approx(3.5 * 4.0)


def test_weights_that_a_plan_does_not_say_cannot_be_loaded() -> None:
    before = plan()
    prefill, decode = before.pools
    measured = [prefill.model_copy(update={"memory": None}), decode]
    fewer = before.model_copy(update={"pools": [prefill.model_copy(update={"units": 1}), decode]})
    steps = {"weights": {"loads": "new-units", "link": "nic"}}
    asked = {"schema": 1, "name": "unknown", "links": {"nic": {"bandwidth": "10 GB/s"}}, "steps": steps}
    with pytest.raises(BadInput, match="does not say"):
        timeline(Transition.model_validate(asked), between(fewer, before.model_copy(update={"pools": measured})))


def test_a_plan_whose_instance_says_nothing_is_taken_as_it_is() -> None:
    before = plan()
    bare = before.model_copy(update={"instance_document": {"hardware": {"groups": {"a100": 3}}}})
    idle = bare.model_copy(update={"pools": [pool.model_copy(update={"units": 0}) for pool in bare.pools]})
    assert between(bare, before).crowded == ()
    assert between(idle, before).during == 0.0


def test_a_file_without_a_plan_is_refused() -> None:
    nothing = plan("workloads.reasoning.rate=900/s")
    with pytest.raises(BadInput, match="no plan in it"):
        between(nothing, plan())


def test_a_copy_that_never_ends_makes_the_transition_impossible() -> None:
    steps = {"copy": {"bytes": "40 GB", "grows": "3 GB/s", "link": "nic"}, "then": {"takes": "1 s", "after": ["copy"]}}
    asked = {"schema": 1, "name": "never", "links": {"nic": {"bandwidth": "2 GB/s"}}, "steps": steps}
    told = timeline(Transition.model_validate(asked))
    assert (told.ready, told.possible, told.waiting) == (math.inf, False, None)
