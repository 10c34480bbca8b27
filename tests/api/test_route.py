"""`inferplan route`: the chapter's examples, documents, and every kind of bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from tests.golden.reading import ENTRIES
from tests.instances import ROOT

FILES = ROOT / "instances" / "chapter" / "routing"
GOLDEN = {entry.id: entry.exact for entry in ENTRIES}
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def running(path: Path, *more: str) -> tuple[int, Any]:
        code = main(["route", str(path), "--json", *more])
        caught = capsys.readouterr()
        assert caught.err == ""
        return code, json.loads(caught.out)

    return running


def place(document: Any, name: str) -> Any:
    return next(one for one in document["places"] if one["name"] == name)


def flip(document: Any, path: str, of: str) -> float:
    [value] = [one["value"] for one in document["crossovers"] if (one["path"], one["of"]) == (path, of)]
    return float(value)


def test_the_example_of_the_chapter(run: Run) -> None:
    code, slow = run(FILES / "remote-fetch.yaml")
    assert (code, slow["chosen"]) == (0, {"place": "a", "action": "local hit"})
    assert place(slow, "a")["ttft_s"]["mean"] * 1e3 == pytest.approx(GOLDEN["ex-9-7-a-hit"])
    b = place(slow, "b")
    assert b["ttft_s"]["mean"] * 1e3 == pytest.approx(GOLDEN["ex-9-7-b-50gbe"])
    assert b["locations"][0]["ttft_s"]["recompute"] * 1e3 == pytest.approx(GOLDEN["ex-9-7-b-recompute"])
    assert flip(slow, "links.nic", "all places") / 1e9 == pytest.approx(GOLDEN["ex-9-7-tie-hit"])
    assert flip(slow, "links.nic", "b") / 1e9 == pytest.approx(GOLDEN["ex-9-7-tie-recompute"])
    code, quick = run(FILES / "remote-fetch.yaml", "--set", "links.nic=200 Gbit/s")
    assert quick["chosen"] == {"place": "b", "action": "fetch over remote"}
    assert place(quick, "b")["ttft_s"]["mean"] * 1e3 == pytest.approx(GOLDEN["ex-9-7-b-200gbe"])
    [nic] = [load for load in quick["links"] if load["link"] == "nic"]
    assert nic["utilisation"] * 100 == pytest.approx(GOLDEN["ex-9-7-16-fetches-share"])


def test_an_uncertain_hit(run: Run) -> None:
    code, found = run(FILES / "uncertain-hit.yaml")
    assert code == 3  # no place keeps the target
    assert found["targets"] == {"mean_s": None, "p99_s": 0.22, "met": False, "kept_by": []}
    assert place(found, "a")["ttft_s"]["mean"] * 1e3 == pytest.approx(GOLDEN["s9-5-4-mean-p09"])
    assert place(found, "a")["ttft_s"]["p99"] * 1e3 == pytest.approx(GOLDEN["s9-5-4-miss-time"])
    assert flip(found, "places.a.state.local", "all places") * 100 == pytest.approx(GOLDEN["s9-5-4-p-threshold"])
    assert flip(found, "places.a.state.local", "a") == pytest.approx(0.99)
    assert found["best"] == {"request": "a", "p99": "b", "all_tasks": "a"}
    code, sure = run(FILES / "uncertain-hit.yaml", "--set", "places.a.state={local: 99 %, nowhere: 1 %}")
    assert (code, sure["targets"]["met"]) == (0, True)


def test_a_copy_in_host_memory_makes_the_miss_as_quick(run: Run) -> None:
    code, found = run(FILES / "copy-in-host-memory.yaml")
    assert code == 0
    assert place(found, "a")["ttft_s"]["p99"] == pytest.approx(place(found, "a")["ttft_s"]["mean"])


def test_one_request_or_all_tasks(run: Run) -> None:
    _, found = run(FILES / "two-tasks.yaml")
    assert found["best"] == {"request": "idle", "p99": "idle", "all_tasks": "with-its-cache"}
    assert place(found, "idle")["all_tasks_s"] == 1.54


@pytest.mark.parametrize(("queue", "chosen"), [("10 ms", "a"), ("20 ms", "b")])
def test_the_queue_at_which_restoring_elsewhere_is_quicker(run: Run, queue: str, chosen: str) -> None:
    _, found = run(FILES / "window-restored.yaml", "--set", f"places.a.queue={queue}")
    assert found["chosen"]["place"] == chosen
    assert flip(found, "places.a.queue", "all places") * 1e3 == pytest.approx(GOLDEN["s9-5-4-swa-threshold"])


def test_locations_asked_in_turn(run: Run) -> None:
    changes = "places.a={queue: 80 ms, chances: in-turn, state: {local: 90 %, host-memory: 50 %}}"
    _, found = run(FILES / "copy-in-host-memory.yaml", "--set", changes)
    shares = {at["location"]: at["probability"] for at in place(found, "a")["locations"]}
    assert shares == pytest.approx({"local": 0.9, "host-memory": 0.05, "nowhere": 0.05})


def test_every_example_is_told_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    for path in sorted(FILES.glob("*.yaml")):
        assert main(["route", str(path)]) in (0, 3)
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 45
        assert any("Send the request to" in line for line in lines)


BAD = """\
schema: 1
name: bad
request: {state: 1.125 GB/s, hit: 30, recompute: 1 s}
links: {nic: 25 GB/s}
paths:
  remote: {over: [nik], steps: {lookup: 10 ms}}
  local: {over: [nic]}
places:
  a: {queue: 250 ms, state: {locl: 1}}
  b: {queu: 20 ms, state: {remote: 60 %, nowhere: 50 %}}
  c: {state: {remote: 120 %}}
  d: {state: {nowhere: 1}, chances: in-turn}
  e: {state: {remote: 1}, fetch: layer-wise}
chose: p99
"""


def test_everything_wrong_is_told_at_once_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    code, document = run(tmp_path / "bad.yaml")
    assert code == 2
    told = {problem["path"]: (problem["line"], problem["message"]) for problem in document["error"]["problems"]}
    assert told == {
        "request.state": (3, "is a byte rate"),
        "request.hit": (3, "has no unit"),
        "request.layers": (3, "missing: e fetches layer-wise"),
        "paths.remote.over[0]": (6, 'no such link; did you mean "nic"?'),
        "paths.local": (7, "the name is taken: state that is local needs no path"),
        "places.a.state.locl": (9, 'no such location; did you mean "local"?'),
        "places.b.queu": (10, 'unknown key; did you mean "queue"?'),
        "places.b.state": (10, "the probabilities add up to 1.1"),
        "places.c.state.remote": (11, "is too large"),
        "places.c.state": (11, "the probabilities add up to 1.2"),
        "places.d.state.nowhere": (12, "cannot be asked in turn"),
        "chose": (14, 'unknown key; did you mean "choose"?'),
    }


@pytest.mark.parametrize(
    ("text", "path"),
    [("schema: 1", "name"), ("schema: 2\nname: x", "schema"), ("schema: 1\nplaces: 3", "places"), ("[1, 2]", "")],
)
def test_keys_that_are_missing_or_of_another_kind(run: Run, tmp_path: Path, text: str, path: str) -> None:
    (tmp_path / "bad.yaml").write_text(text + "\n")
    code, document = run(tmp_path / "bad.yaml")
    assert code == 2
    assert path in [problem["path"] for problem in document["error"]["problems"]]
