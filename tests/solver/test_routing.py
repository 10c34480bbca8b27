"""Routing: laws of a time, places and what they do, flips, quotas, pages; by hand and against small simulations."""

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.routing import Routing
from solver.crossovers import changes
from solver.formulas import prefetch
from solver.routing import quota
from solver.routing.choose import best, candidates
from solver.routing.flips import flips
from solver.routing.law import Law, behind, in_turn
from solver.routing.objectives import Outcome, best_for_all, best_for_target
from solver.routing.restore import Page, given_up, restore


def asked(**more: Any) -> Routing:
    """1 GB of state; 0.1 s of work with it, 1 s without; a 10 GB/s link."""
    request = {"state": "1 GB", "hit": "100 ms", "recompute": "1 s", **more.pop("request", {})}
    links = {"nic": "10 GB/s", "pcie": "20 GB/s"}
    paths = {"remote": {"over": ["nic", "pcie"], "steps": {"lookup": "10 ms"}}, "host": {"over": ["pcie"]}}
    return Routing.model_validate(
        {"schema": 1, "name": "hand", "request": request, "links": links, "paths": paths, **more}
    )


# --- laws ---------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 50)), min_size=1, max_size=6), st.integers(1, 100))
def test_the_quantile_is_that_of_as_many_samples(points: list[tuple[float, int]], percent: int) -> None:
    total = sum(weight for _, weight in points)
    law = Law.of((value, weight / total) for value, weight in points)
    samples = sorted(value for value, weight in points for _ in range(weight))
    assert law.quantile(percent / 100) == samples[math.ceil(percent * total / 100) - 1]
    assert law.mean == pytest.approx(sum(samples) / total)
    assert law.within(samples[0]) == pytest.approx(samples.count(samples[0]) / total)


def test_a_tier_behind_a_miss_is_asked_only_then() -> None:
    # 0.8 at once, else 0.5 after 1 s, else 4 s: 0.8, 0.1, 0.1
    law = behind([(0.8, 0.0), (0.5, 1.0)], 4.0)
    assert dict(law.points) == pytest.approx({0.0: 0.8, 1.0: 0.1, 4.0: 0.1})
    assert law.mean == pytest.approx(0.5)
    assert (law.quantile(0.9), law.quantile(0.91)) == (1.0, 4.0)
    assert in_turn([0.8, 0.5]) == pytest.approx([0.8, 0.1, 0.1])


def test_tiers_asked_in_turn_are_what_a_simulation_finds() -> None:
    chances, drawn = [0.6, 0.3, 0.5], random.Random(7)
    counts = [0] * 4
    for _ in range(20_000):
        counts[next((i for i, chance in enumerate(chances) if drawn.random() < chance), 3)] += 1
    assert [count / 20_000 for count in counts] == pytest.approx(in_turn(chances), abs=0.015)


# --- places -------------------------------------------------------------------------------------------


def test_every_way_of_one_place_by_hand() -> None:
    question = asked(places={"b": {"queue": "120 ms", "state": {"remote": 0.5, "host": 0.25, "nowhere": 0.25}}})
    remote, host, nowhere = candidates(question)["b"].options
    # remote: 10 + 100 + 50 ms to be ready; host: 50 ms, hidden by the queue
    assert (remote.ready, remote.overlapped, remote.serial) == pytest.approx((0.16, 0.26, 0.38))
    assert (host.ready, host.overlapped, host.serial) == pytest.approx((0.05, 0.22, 0.27))
    assert (nowhere.ready, nowhere.action) == (None, "recompute")
    assert nowhere.recompute == pytest.approx(1.12)
    found = candidates(question)["b"]
    assert found.law.mean == pytest.approx(0.5 * 0.26 + 0.25 * 0.22 + 0.25 * 1.12)
    assert found.law.quantile(0.75) == pytest.approx(0.26)
    assert found.serial.mean == pytest.approx(0.5 * 0.38 + 0.25 * 0.27 + 0.25 * 1.12)


def test_a_place_that_fetches_only_after_its_queue() -> None:
    one = asked(places={"b": {"queue": "120 ms", "state": {"host": 1}, "fetch": "serial"}})
    assert candidates(one)["b"].law.mean == pytest.approx(0.27)


def test_state_that_takes_longer_than_computing_is_not_fetched() -> None:
    slow = asked(places={"b": {"state": {"remote": 1}, "recompute": "200 ms"}})
    [option] = candidates(slow)["b"].options
    assert option.action == "recompute"
    assert option.seconds == pytest.approx(0.2)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 40), st.floats(0, 0.5))
def test_layer_by_layer_is_the_pipeline_behind_the_queue(layers: int, queue: float) -> None:
    question = asked(
        request={"layers": layers},
        places={"b": {"queue": f"{queue:.6f} s", "state": {"remote": 1}, "fetch": "layer-wise"}},
    )
    [option] = candidates(question)["b"].options
    # 110 ms until host memory has it; then 50/n ms a layer, 100/n ms of computing a layer
    done = 0.0
    for layer in range(1, layers + 1):
        done = max(done, question.places["b"].queue, 0.11 + layer * 0.05 / layers) + 0.1 / layers
    assert option.layerwise == pytest.approx(done)
    whole = prefetch.pipeline_seconds([0.05 / layers] * layers, [0.1 / layers] * layers)
    assert option.layerwise == pytest.approx(0.11 + whole) or question.places["b"].queue > 0.11


def test_tasks_behind_the_request_end_later_where_it_goes() -> None:
    question = asked(
        places={
            "a": {"queue": "500 ms", "state": {"local": 1}, "behind": ["2 s"]},
            "b": {"queue": "100 ms", "behind": ["1 s", "500 ms"]},
        }
    )
    found = candidates(question)
    assert found["a"].outcome.all_tasks == pytest.approx(2.6)  # 0.5 + 0.1 and 2 s; b ends at 1.6 s
    assert found["b"].outcome.all_tasks == pytest.approx(2.6)  # 0.1 + 1 and 1.5 s; a ends at 2.5 s
    assert best(found, "request").name == "a"
    longer = question.model_copy(
        update={"places": {**question.places, "b": question.places["b"].model_copy(update={"behind": [0.5]})}}
    )
    assert best(candidates(longer), "all-tasks").name == "b"  # then a ends last, without the request


def test_one_goal_or_the_other() -> None:
    choices = {"cache": Outcome(1.38, (1.0,)), "idle": Outcome(0.33, (1.54,)), "worse": Outcome(1.38, (1.2,))}
    assert (best_for_target(choices), best_for_all(choices)) == ("idle", "cache")


# --- flips --------------------------------------------------------------------------------------------


def test_changes_are_found_to_the_last_digits() -> None:
    found = list(
        changes(lambda value: "low" if value < math.pi else "mid" if value < 7.5 else "high", [0.0, 2.0, 4.0, 9.0])
    )
    assert [(below, above) for _, below, above in found] == [("low", "mid"), ("mid", "high")]
    assert [value for value, _, _ in found] == pytest.approx([math.pi, 7.5], rel=1e-15)


def test_flips_by_hand() -> None:
    question = asked(
        places={"a": {"queue": "300 ms", "state": {"local": 0.9, "nowhere": 0.1}}, "b": {"state": {"remote": 1}}},
        targets={"p99": "500 ms"},
    )
    found = {(flip.what, flip.who): flip.value for flip in flips(question)}
    # a: 0.9 x 0.4 + 0.1 x 1.3 = 0.49 s; b ties when nic takes 0.49 - 0.1 - 0.06 s, and with computing at 1 - 0.16 s
    assert found[("links.nic", "all places")] == pytest.approx(1e9 / 0.33)
    assert found[("links.nic", "b")] == pytest.approx(1e9 / 0.84)
    assert found[("places.b.queue", "all places")] == pytest.approx(0.39)
    assert found[("places.a.queue", "all places")] == pytest.approx(0.07)  # 0.19 + queue against 0.26
    assert ("places.a.state.local", "all places") not in found  # even a sure hit takes 0.4 s, b 0.26 s
    assert found[("places.a.state.local", "a")] == pytest.approx(0.99)


def test_a_sure_enough_hit_ties_with_the_other_place() -> None:
    question = asked(places={"a": {"state": {"local": 0.9, "nowhere": 0.1}}, "b": {"state": {"remote": 1}}})
    [flip] = [flip for flip in flips(question) if flip.what == "places.a.state.local"]
    assert flip.value == pytest.approx((1.0 - 0.26) / 0.9)
    tied = {"a": question.places["a"].model_copy(update={"state": {"local": flip.value, "nowhere": 1 - flip.value}})}
    found = candidates(question.model_copy(update={"places": {**question.places, **tied}}))
    assert found["a"].law.mean == pytest.approx(found["b"].law.mean)


def test_asked_in_turn_only_the_first_location_has_a_probability_of_its_own() -> None:
    state = {"remote": 0.5, "host": 0.5}
    question = asked(
        places={"a": {"state": state, "chances": "in-turn"}, "b": {"queue": "10 s"}}, targets={"p99": "150 ms"}
    )
    assert [option.probability for option in candidates(question)["a"].options] == [0.5, 0.25, 0.25]
    assert not [flip for flip in flips(question) if "state" in flip.what]  # host is quicker than remote


# --- quota and pages ----------------------------------------------------------------------------------


def test_the_quota_is_tested_before_adding() -> None:
    assert quota.admitted([1024] * 8, 3289) == [True] * 4 + [False] * 4  # section 9.6.1
    assert quota.admitted([1024] * 8, 3072) == [True] * 3 + [False] * 5
    assert quota.admitted([4000, 1, 1], 100) == [True, False, False]
    assert quota.admitted([5], 0) == [False]


def test_who_finds_no_room_overtakes_by_computing() -> None:
    wanted = [quota.Wanted(f"r{i}", 1024, fetch=0.5, hit=0.01, recompute=0.1) for i in range(8)]
    ran = quota.order(wanted, 3289)
    assert [one.name for one in ran] == ["r4", "r5", "r6", "r7", "r0", "r1", "r2", "r3"]
    assert ran[0].end == pytest.approx(0.1)
    assert ran[4].start == pytest.approx(0.5)  # four computed until 0.4 s; then the GPU waits for the state
    assert ran[-1].end == pytest.approx(0.54)
    assert [one.name for one in quota.order(wanted, 1e9)] == [f"r{i}" for i in range(8)]


def prefill(new: float, cached: float) -> float:
    return 0.001 * new


@pytest.mark.parametrize(
    ("conditions", "way", "used", "seconds", "isolate"),
    [
        ("wwww", "use", 4, 0.0, ()),
        ("wwwm", "recompute-rest", 3, 0.016, (3,)),
        ("mwww", "abandon", 0, 0.064, (0,)),
        ("wtww", "recompute-rest", 1, 0.048, (1,)),
        ("wwvw", "abandon", 0, 0.064, (2,)),
        ("wlww", "wait", 4, 0.01, ()),
        ("wlwm", "wait", 3, 0.026, (3,)),
    ],
)
def test_pages_that_are_not_whole(
    conditions: str, way: str, used: int, seconds: float, isolate: tuple[int, ...]
) -> None:
    named = {
        "w": Page(),
        "m": Page("missing"),
        "t": Page("truncated"),
        "v": Page("other-version"),
        "l": Page("late", 0.01),
    }
    found = restore([named[letter] for letter in conditions], 16, 64, prefill)
    assert (found.way, found.pages_used, found.isolate) == (way, used, isolate)
    assert found.tokens_used == 16 * used
    assert found.seconds == pytest.approx(seconds)


def test_a_page_that_comes_too_late_is_not_waited_for() -> None:
    found = restore([Page(), Page("late", 0.05), Page(), Page()], 16, 64, prefill)
    assert (found.way, found.pages_used) == ("recompute-rest", 1)
    assert found.seconds == pytest.approx(0.048)


def test_waiting_is_limited_by_what_computing_takes() -> None:
    found = restore([Page(), Page("late", 0.01), Page(), Page()], 16, 64, prefill)
    assert found.limit == pytest.approx(0.048)
    assert given_up(found, 0.02, 0.048) == 0.02
    assert given_up(found, math.inf, 0.048) == pytest.approx(0.096)


def test_the_last_tokens_are_not_on_a_whole_page() -> None:
    found = restore([Page()] * 63, 16, 1024, prefill)  # section 9.5.3: 1008 tokens of 1024
    assert (found.way, found.tokens_used) == ("recompute-rest", 1008)
    assert found.seconds == pytest.approx(0.016)
