"""A trace in the tiers of a plan: what is replayed, what it is compared with, and what is refused."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from benchmarks.prediction import Sizes, instance, part, predict
from models.instance import Instance
from models.plan import Plan
from models.trace.chunks import Trace
from solver.solve import Options, solve
from solver.trace.fitted import fit
from solver.trace.generate import Conversations, conversations
from solver.trace.planned import FRONT, planned, replayed
from solver.trace.replay import replay
from solver.trace.reuse import of_trace
from tests.trace.test_fitted import made

LIKE = Conversations(rate=2.0, turns=3.0, gap=(40.0, 0.7), question=(1500.0, 0.7))


def solved(sizes: Sizes, **changes: Any) -> tuple[Trace, Instance, Plan]:
    trace = made(LIKE, 3000, 1, 100.0)
    found = instance(fit(of_trace(trace), 512, trace.span), sizes, 512)
    tiers = {name: tier.model_copy(update=changes.get(name, {})) for name, tier in found.tiers.items()}
    found = found.model_copy(update={"tiers": tiers})
    return trace, found, solve(found, Options(plan_only=True, reasons=False))


def test_capacities_and_policies() -> None:
    trace, _, plan = solved(Sizes(3000, 9000, "second_hit"), ssd={"admission": 512 * 12_000})
    found = planned(plan, None)
    assert (found.workload, found.group, found.share, found.copies) == ("chat", "h200", 1.0, 1)
    assert found.token_bytes == pytest.approx(70_272.0, rel=1e-6)
    dram, ssd = found.replayable(512, 1.0)
    # each of 16 servers has its own copy of two blocks of a system prompt, the replay has one
    assert (dram.name, dram.capacity, dram.write, dram.retention) == ("dram@h200", 3000 - 15 * 2, "all", inf)
    assert (ssd.name, ssd.capacity, ssd.write, ssd.admission) == ("ssd@h200", 9000 - 15 * 2, "second_access", 12_000)
    half, _ = found.replayable(512, 0.5)
    assert half.capacity == (3000 - 16 * 2) / 2 + 2
    told = replayed(trace, found, 0, 0.0)
    assert told.scale == pytest.approx(told.rate / found.rate)
    assert told.replayed == replay(trace.chunks(), told.tiers, 512)


def test_a_tier_that_takes_what_is_evicted() -> None:
    _, _, plan = solved(Sizes(3000, 9000, "exclusive"))
    dram, ssd = planned(plan, None).replayable(512, 1.0)
    assert (dram.holds, ssd.holds, ssd.write) == ("inclusive", "exclusive", "on_eviction")


def test_the_only_tier_takes_only_what_returned() -> None:
    """A tier without room stands in front of it, and is not told."""
    trace, _, plan = solved(Sizes(3000, 9000, "second_hit"))
    whole = planned(plan, None)
    alone = replace(whole, tiers=whole.tiers[1:])
    front, ssd = alone.replayable(512, 1.0)
    assert (front.name, front.capacity, ssd.write) == (FRONT, 0.0, "second_access")
    told = replayed(trace, alone, 0, 0.0, 1.0)
    assert [tier.name for tier in told.tiers] == ["ssd@h200"]
    assert [tier.name for tier in told.replayed.tiers] == ["ssd@h200"]
    assert 0.1 < told.replayed.token_hit_rate < whole.tiers[0].found + whole.tiers[1].found


def test_a_time_to_live() -> None:
    trace, _, plan = solved(Sizes(9000, 30000), dram={"eviction": "ttl"}, ssd={"eviction": "ttl"})
    found = planned(plan, None)
    times = [tier.retention for tier in found.replayable(512, 1.0)]
    assert all(1.0 < time < inf for time in times)
    told = replayed(trace, found, trace.requests // 2, trace.span / 2, 1.0)
    predicted = sum(tier.found for tier in found.tiers)
    assert told.replayed.token_hit_rate == pytest.approx(predicted, abs=0.05)


def test_requests_at_random() -> None:
    trace, _, plan = solved(Sizes(9000, 30000), dram={"routing": "random"}, ssd={"routing": "random"})
    found = planned(plan, None)
    assert found.copies == 16
    dram, _ = found.replayable(512, 1.0)
    assert (dram.capacity, dram.shared) == (float(9000 // 16), False)
    told = replayed(trace, found, trace.requests // 2, trace.span / 2, 1.0)
    predicted = sum(tier.found for tier in found.tiers)
    # the plan counts the last turn alone; an earlier one may have been here
    assert predicted < told.replayed.token_hit_rate < predicted + 0.05


def test_tiers_that_all_places_share() -> None:
    _, _, plan = solved(Sizes(9000, 30000))
    found = planned(plan, None)
    first, second = found.tiers
    some = replace(found, tiers=(replace(first, spread=4.0, prompts=4.0), second))
    one, other = some.replayable(512, 1.0)
    assert (some.copies, one.shared, other.shared) == (4, False, True)
    assert (one.capacity, other.capacity) == (9000 / 4, 30000 - 15 * 2)


CASES = [
    (1, Conversations(rate=5.0, turns=3.0, gap=(40.0, 0.7), question=(1500.0, 0.7))),
    (3, Conversations(rate=8.0, turns=2.0, gap=(60.0, 0.5), system=4096)),
    (4, Conversations(rate=6.0, turns=3.0, gap=(25.0, 1.0), system=0, longest=16_000)),
]


@pytest.mark.parametrize(("seed", "like"), CASES)
@pytest.mark.parametrize("policy", ["all", "second_hit", "exclusive"])
def test_the_next_half_is_predicted_within_two_points(seed: int, like: Conversations, policy: str) -> None:
    """Curve of the first half, plan, replay of the second; sizes in seconds of what is read."""
    requests = int(2000.0 * like.rate * like.turns)
    trace = cached(seed, like, requests)
    half = part(trace, 0.0, trace.span / 2.0)
    each = half.accesses / half.span
    for dram, ssd in ((20.0, 60.0), (40.0, 150.0)):
        told = predict(trace, Sizes(int(dram * each), int(ssd * each), policy), same_load=True)
        predicted = sum(tier.found for tier in told.planned.tiers)
        assert told.replayed.token_hit_rate == pytest.approx(predicted, abs=0.02)


TRACES: dict[int, Trace] = {}


def cached(seed: int, like: Conversations, requests: int) -> Trace:
    """Past the first 1000 s, in which conversations begin and hardly any go on."""
    if seed not in TRACES:
        TRACES[seed] = made(like, requests, seed, 1000.0)
    return TRACES[seed]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setenv("INFERPLAN_DEBUG", "1")
    trace, plan = tmp_path / "requests.jsonl", tmp_path / "plan.json"
    text = [json.dumps(one) for one in conversations(1500, LIKE, 1)]
    trace.write_text("\n".join(text) + "\n")
    plan.write_text(json.dumps(solved(Sizes(3000, 9000))[2].as_json()))
    return trace, plan


def test_the_command(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    trace, plan = files
    words = ["trace", str(trace), "--plan", str(plan), "--warm-up", "50 %"]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["replay"]
    assert (told["workload"], told["group"], told["copies"], told["share_of_load"]) == ("chat", "h200", 1, 1.0)
    assert told["scale"] == pytest.approx(told["trace_rate"] / told["plan_rate"])
    before, after, between = (told[key] for key in ("predicted", "replayed", "differences"))
    assert between["hit"] == pytest.approx(after["hit"] - before["hit"])
    for a, b, c in zip(before["tiers"], after["tiers"], between["tiers"], strict=True):
        assert a["name"] == b["name"] == c["name"]
        assert c["hit"] == pytest.approx(b["hit"] - a["hit"])
        assert c["written_bytes_per_s"] == pytest.approx(b["written_bytes_per_s"] / a["written_bytes_per_s"] - 1.0)
        assert b["peak"] <= 1.0
        assert b["capacity_bytes"] == pytest.approx(b["capacity_blocks"] * 512 * told["kv_bytes_per_token"])
    assert before["hit"] == pytest.approx(sum(one["hit"] for one in before["tiers"]))
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    for piece in (
        "in the tiers of h200",
        "after a warm-up of 750 requests",
        "capacities times",
        "points from",
        "all tiers",
    ):
        assert piece in text
    assert main([*words, "--scale", "no", "--reuse"]) == 0
    text = capsys.readouterr().out
    assert "capacities as planned" in " ".join(text.split())
    assert "tokens_kept:" in text


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[str]:
    assert main(["trace", *map(str, words), "--json"]) == 2
    return [one["path"] + ": " + one["message"] for one in json.loads(capsys.readouterr().out)["error"]["problems"]]


def test_plans_that_do_not_fit(files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, path = files
    plan = json.loads(path.read_text())
    other = tmp_path / "other.json"

    document = plan["instance_document"]
    chat = document["workloads"]["chat"]
    two = {**document, "workloads": {"chat": chat, "more": chat}}
    none = {**document, "workloads": {"chat": {key: value for key, value in chat.items() if key != "reuse"}}}
    never = [{**one, "policy": "never", "retained": []} for one in plan["tiers"]]
    cases: list[tuple[dict[str, Any], list[str], str]] = [
        ({"status": "infeasible"}, [], "--plan: there is no plan in it"),
        ({"instance_document": {}}, [], "--plan: instance_document is no instance"),
        ({"tiers": []}, [], "--plan: tells of no tiers"),
        ({"tiers": never}, [], "--plan: keeps nothing of chat in any tier"),
        ({"instance_document": none}, [], "--plan: no workload of the plan has reuse"),
        ({"instance_document": two}, [], "--workload: is not told, and the plan serves several"),
        ({}, ["--workload", "chatt"], "--workload: no workload with reuse of this name in the plan; did you mean"),
        ({}, ["--warm-up", "99.99 %"], "--plan: needs a rate"),
    ]
    for keys, words, said in cases:
        other.write_text(json.dumps({**plan, **keys}))
        [problem] = refused(capsys, trace, "--plan", other, *words)
        assert problem.startswith(said)
    assert refused(capsys, trace, "--workload", "chat", "--scale", "no") == [
        "--workload: is about a plan that is replayed",
        "--scale: is about a plan that is replayed",
    ]
    plain = tmp_path / "t.csv"
    plain.write_text("time,input,output\n0,5,1\n1,6,2\n")
    assert refused(capsys, plain, "--plan", path) == ["--plan: needs blocks, and the trace tells of none"]


def test_several_groups(files: tuple[Path, Path]) -> None:
    _, path = files
    plan = Plan.model_validate_json(path.read_text())
    [pool] = [one for one in plan.pools if one.begins]
    less = {name: load.model_copy(update={"at_load": load.at_load / 3}) for name, load in pool.rates.items()}
    elsewhere = pool.model_copy(update={"name": "elsewhere", "group": "other", "rates": less})
    document = json.loads(json.dumps(plan.instance_document))
    document["hardware"]["groups"]["other"] = document["hardware"]["groups"]["h200"]
    for tier in document["tiers"].values():
        tier["in"] = ["h200"] if tier.get("in") != [] else []
    found = planned(plan.model_copy(update={"pools": [pool, elsewhere], "instance_document": document}), None)
    assert found.group == "h200"
    assert found.share == pytest.approx(0.75)
    assert "75 % of chat begins on h200" in found.notes[0]
