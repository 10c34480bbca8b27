"""`inferplan transition`: the chapter's examples, two plans, and every kind of bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from tests.golden.reading import ENTRIES
from tests.instances import EIGHT, ROOT

FILES = ROOT / "instances" / "chapter" / "transition"
GOLDEN = {entry.id: entry.exact for entry in ENTRIES}
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def running(path: Path, *more: str) -> tuple[int, Any]:
        code = main(["transition", str(path), "--json", *more])
        caught = capsys.readouterr()
        assert caught.err == ""
        return code, json.loads(caught.out)

    return running


def step(document: Any, name: str) -> Any:
    return next(one for one in document["steps"] if one["name"] == name)


def test_a_startup_of_ten_seconds(run: Run) -> None:
    code, found = run(FILES / "start-eight-cards.yaml")
    assert code == 0
    assert found["ready_s"] == pytest.approx(10.0)
    assert found["critical_path"] == ["process", "weights", "first run", "memory probe", "graph capture"]
    assert (step(found, "compile")["within"], step(found, "compile")["critical"]) == ("first run", False)
    assert found["bytes_moved"] == pytest.approx(16_381_470_720)
    backlog = found["backlog"]
    assert backlog["at_ready"] == backlog["peak"] == pytest.approx(35.0)
    assert backlog["drained_s"] == pytest.approx(GOLDEN["s9-6-1-pd-drain-end"], rel=1e-6)
    assert (backlog["met"], backlog["longest_wait_s"]) == (True, pytest.approx(10.0))
    assert backlog["required_rate"] == pytest.approx(4.2)


@pytest.mark.parametrize(("rate", "met"), [("4.2/s", True), ("4.19/s", False), ("3.02/s", False)])
def test_a_deadline_is_kept_or_not(run: Run, rate: str, met: bool) -> None:
    code, found = run(FILES / "start-eight-cards.yaml", "--set", f"service.after={rate}", "--set", "deadline=60.001 s")
    assert (code, found["backlog"]["met"]) == (0 if met else 3, met)
    assert (found["backlog"]["drained_s"] is None) == (rate == "3.02/s")


@pytest.mark.parametrize(("link", "seconds"), [("50 Gbit/s", 11.63), ("200 Gbit/s", 9.66)])
def test_other_degrees_of_parallelism(run: Run, link: str, seconds: float) -> None:
    _, found = run(FILES / "four-to-eight-cards.yaml", "--set", f"links.nic.bandwidth={link}")
    assert found["ready_s"] == pytest.approx(seconds, abs=5e-3)
    assert found["bytes_moved"] == 16_449_642_496
    change = "links.nic={bandwidth: 300 GB/s, per: card}"
    _, inside = run(FILES / "four-to-eight-cards.yaml", "--set", change)
    assert step(inside, "reshard")["seconds"] == pytest.approx(15.7e-3, abs=5e-5)


def test_a_live_copy(run: Run) -> None:
    code, found = run(FILES / "move-a-decode-worker.yaml", "--set", "steps.copy.pause=0 s")
    assert code == 0
    assert step(found, "copy")["seconds"] == pytest.approx(GOLDEN["s9-6-2-catch-up-25"])
    _, slow = run(
        FILES / "move-a-decode-worker.yaml", "--set", "steps.copy.pause=0 s", "--set", "links.nic.bandwidth=50 Gbit/s"
    )
    assert step(slow, "copy")["seconds"] == pytest.approx(GOLDEN["s9-6-2-catch-up-625"])
    _, paused = run(FILES / "move-a-decode-worker.yaml")
    assert paused["stops_s"] == pytest.approx(paused["ready_s"] - 0.01)
    assert paused["backlog"]["at_ready"] == pytest.approx(0.01)  # what came in the pause


def test_a_copy_that_never_ends(run: Run) -> None:
    code, found = run(FILES / "move-a-decode-worker.yaml", "--set", "links.nic.bandwidth=0.1 GB/s")
    assert (code, found["ready_s"], found["possible"]) == (3, None, False)
    assert found["backlog"]["drained_s"] is None
    assert step(found, "copy")["reason"].startswith("never: ")


def test_two_versions_and_failures(run: Run) -> None:
    code, found = run(FILES / "two-versions.yaml")
    assert code == 0
    assert [stage["cards"] for stage in found["rollout"]] == [10, 10, 10]
    replayed = {name: one["replayed_tokens"] for name, one in found["failures"].items()}
    assert replayed["outputs recorded"] == GOLDEN["s9-6-3-replay"]
    assert found["failures"]["outputs recorded"]["covered_tokens"] == GOLDEN["s9-6-3-rebuilt"]
    code, crowded = run(FILES / "two-versions.yaml", "--set", "rollout.cards=9")
    assert (code, crowded["possible"]) == (3, False)


def test_arrivals_that_change_and_bursts(run: Run) -> None:
    points, bursts = "[{at: 0 s, rate: 1/s}, {at: 20 s, rate: 3/s}]", "[{at: 30 s, requests: 10, weight: 4.5}]"
    arrivals = f"arrivals={{points: {points}, bursts: {bursts}}}"
    _, found = run(FILES / "start-eight-cards.yaml", "--set", arrivals, "--set", "service.after=4/s")
    backlog = found["backlog"]
    assert backlog["at_ready"] == pytest.approx(10.0)
    assert backlog["drained_s"] == pytest.approx(10.0 + 10.0 / 3.0)
    assert backlog["deciding_window"] == {"start_s": 30.0, "end_s": pytest.approx(75.0)}  # 45 that shrink by 1/s
    assert backlog["peak"] == pytest.approx(45.0)


PLAIN = """\
schema: 1
name: change
links:
  nic: {bandwidth: 10 GB/s, per: card}
steps:
  process: {takes: 2 s}
  weights: {loads: new-units, link: nic, after: [process]}
  graphs: {takes: 10 s, saves: 0.2 ms, after: [weights]}
"""


@pytest.fixture
def plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """Whole-request units on all eight cards, and the best plan for more arrivals."""
    today, tomorrow = tmp_path / "a.json", tmp_path / "b.json"
    changes = ["schemes.allow=[replicas]", "service.drain=null", "workloads.reasoning.rate=1/s"]
    words = [word for change in changes for word in ("--set", change)]
    assert main(["solve", str(EIGHT), "--plan-only", "--out", str(today), *words]) == 0
    assert main(["solve", str(EIGHT), "--plan-only", "--out", str(tomorrow)]) == 0
    capsys.readouterr()
    return today, tomorrow


def test_pools_come_from_the_plans(run: Run, tmp_path: Path, plans: tuple[Path, Path]) -> None:
    (tmp_path / "change.yaml").write_text(PLAIN)
    pair = ["--from", str(plans[0]), "--to", str(plans[1])]
    code, found = run(tmp_path / "change.yaml", *pair)
    assert code == 0
    assert {(pool["stage"], pool["reassigned"]) for pool in found["pools"] if pool["after"]} == {
        ("prefill", 4),
        ("decode", 4),
    }
    assert found["service"]["during"]["rate"] == 0.0
    assert found["service"]["after"]["rate"] == pytest.approx(GOLDEN["ex-9-8-direct-throughput"], rel=1e-6)
    assert found["backlog"]["deadline_s"] == 60.0
    assert step(found, "graphs")["reason"] == "as stated; pays from batch 50,001 on"


@pytest.mark.parametrize("given", [[], ["--from"], ["--to"]])
def test_two_plans_or_none(run: Run, tmp_path: Path, plans: tuple[Path, Path], given: list[str]) -> None:
    (tmp_path / "change.yaml").write_text(PLAIN)
    code, found = run(tmp_path / "change.yaml", *[word for option in given for word in (option, str(plans[0]))])
    assert code == 2
    [problem] = found["error"]["problems"]
    wanted = (given[0], "stands alone") if given else ("steps.weights.loads", "needs two plans")
    assert (problem["path"], problem["message"]) == wanted


def test_every_example_is_told_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    for path in sorted(FILES.glob("*.yaml")):
        assert main(["transition", str(path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 45
        assert any("All ready in second" in line for line in lines)


BAD = """\
schema: 1
name: bad
links: {nic: {bandwidth: 25 GB}, slow: {bandwidth: 1 GB/s, per: gpu}}
steps:
  a: {takes: 1 s, after: [d]}
  b: {takes: 2, bytes: 3 GB}
  c: {bytes: 3 GB, link: nik, after: [a, q]}
  d: {takes: 1 s, after: [a]}
  e: {}
  f: {takes: 1 s, within: g}
  g: {takes: 1 s, within: a, pause: 1 s}
  h: {reshard: {model: Qwen3-8, from: 4, to: 8}, link: nic}
  i: {reshard: {model: Qwen3-8B, from: 4, to: 3}, link: nic, after: [f]}
service: {stops: z, after: 4 s}
arrivals: {rate: 1/s, points: [{at: 5 s, rate: 1/s}, {at: 4 s, rate: 1/s}]}
rollout: {old: {unit_rate: 1/s}, new: {unit_rate: 1/s}, shares: [120 %], cards: 8}
failures: {x: {input: 10, returned: 3, logged: 9}}
dedline: 3 s
"""


def test_everything_wrong_is_told_at_once_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    code, document = run(tmp_path / "bad.yaml")
    assert code == 2
    told = {(problem["line"], problem["path"]): problem["message"] for problem in document["error"]["problems"]}
    assert told == {
        (3, "links.nic.bandwidth"): "is a size in bytes",
        (3, "links.slow.per"): "is none of the words that can stand here",
        (5, "steps.a"): "the steps wait for each other: a -> d -> a",
        (6, "steps.b"): "has takes and bytes",
        (6, "steps.b.takes"): "has no unit",
        (6, "steps.b.link"): "missing: bytes go over a link",
        (7, "steps.c.link"): 'no such link; did you mean "nic"?',
        (7, "steps.c.after[1]"): "no such step",
        (9, "steps.e"): "has nothing to do",
        (10, "steps.f.within"): "is within another step itself",
        (11, "steps.g.pause"): "is for state that is copied while it grows",
        (12, "steps.h.reshard.model"): 'no such model in the catalog; did you mean "Qwen3-8B"?',
        (13, "steps.i.reshard.to"): "does not cut the state of Qwen3-8B",
        (13, "steps.i.after[0]"): "is within another step, or this one is",
        (14, "service.stops"): "no such step",
        (14, "service.after"): "is a time",
        (15, "arrivals.points"): "stands beside a constant rate",
        (15, "arrivals.points[1].at"): "is not later than the one before",
        (16, "rollout.shares[0]"): "is too large",
        (17, "failures.x.logged"): "is more than can be on record",
        (18, "dedline"): 'unknown key; did you mean "deadline"?',
    }


def test_what_is_within_a_step_is_not_longer_than_it(run: Run) -> None:
    code, found = run(FILES / "start-eight-cards.yaml", "--set", "steps.compile.takes=5 s")
    assert code == 2
    [problem] = found["error"]["problems"]
    assert problem["path"] == "steps.first run"
    assert problem["message"] == "takes 4 s, but what is within it takes 5 s (compile)"


def test_a_link_that_is_nothing_is_missing(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "null.yaml"
    file.write_text("schema: 1\nname: x\nlinks: {nic: {bandwidth: 1 GB/s}}\nsteps: {a: {bytes: 1 GB, link: null}}\n")
    code, document = run(file)
    assert code == 2
    assert document["error"]["problems"][0]["path"] == "steps.a.link"
