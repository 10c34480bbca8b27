"""`inferplan experts` from end to end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.cli import main
from models.experts.layout import Layout, TimeModel
from solver.experts.nodes import curve, strict
from solver.experts.times import card_times
from tests.experts.synthetic import drifted, skewed

TOKENS = skewed(4, 16)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INFERPLAN_DEBUG", "1")
    np.savez(tmp_path / "loads.npz", day=TOKENS, night=drifted(TOKENS, 1))
    np.save(tmp_path / "one.npy", TOKENS)
    np.save(tmp_path / "later.npy", drifted(TOKENS, 2))
    return tmp_path / "loads.npz"


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, Any]:
    code = main(["experts", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_one_file_one_placement(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(capsys, file, "--cards", "4", "--slots", "20", "--holdout", file.parent / "later.npy")
    assert code == 0
    keys = {"balancedness", "balancedness_min", "gap", "bound", "seconds", "layers", "physical_to_logical_map"}
    assert keys <= set(found)
    assert list(found["scenarios"]) == ["day", "night"]
    assert {"balancedness", "balancedness_min", "bound", "gap"} <= set(found["scenarios"]["day"])
    assert list(found["holdout"]) == ["later"]
    assert [len(row) for row in found["physical_to_logical_map"]] == [20] * 4
    assert all(set(row) == set(range(16)) for row in found["physical_to_logical_map"])
    assert len(found["layers"]) == 4


def test_scenarios_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, together = run(capsys, file, "--cards", "4", "--slots-per-card", "5")
    code, found = run(capsys, file, "--cards", "4", "--slots-per-card", "5", "--separate")
    assert code == 0
    for name, one in found["scenarios"].items():
        assert one["balancedness"] >= together["scenarios"][name]["balancedness"] - 1e-3
        assert len(one["physical_to_logical_map"]) == 4


def test_everything_at_once(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one, out, page = file.parent / "one.npy", tmp_path / "map.json", tmp_path / "page.html"
    words = ("--cards", "4", "--slots", "20", "--first-layer", "1")
    assert run(capsys, one, *words, "--write", "vllm", "--out", out)[0] == 0
    priced = ("--expert-bytes", "44 MB", "--copy-rate", "40 GB/s", "--token-time", "80 ns", "--lifetime", "100000")
    extra = ("--budget", "400 MB", "--expert-groups", "4", "--nodes", "2", "--kv-token-bytes", "70 kB", "--html", page)
    later = file.parent / "later.npy"
    code, found = run(capsys, later, *words, "--current", out, *priced, "--in-flight", "2", *extra)
    assert code == 0
    assert found["moves"]["ways"][0]["copies"] == 0
    assert found["moves"]["ways"][-1]["verdict"] in ("move", "stay")
    assert sum(found["budget"]["replicas"]) <= 9
    assert found["budget"]["curve"][-1]["balancedness"] >= found["budget"]["curve"][0]["balancedness"]
    assert found["nodes"]["curve"][0]["leaving"] == 0.0
    text = page.read_text()
    assert text.count("<svg") == 1
    assert "<script" not in text
    assert "http" not in text
    assert main(["experts", str(later), *words, "--current", str(out), *priced, *map(str, extra)]) == 0
    said = capsys.readouterr().out
    assert "MOVE TO" in said
    assert "GROUPS AT HOME" in said


def test_what_is_assumed_is_said(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(capsys, file, "--cards", "4", "--slots", "20", "--budget", "200000000")
    assert code == 0
    assert found["budget"]["expert_bytes"] == 3 * 7168 * 2048
    assert sum(found["budget"]["replicas"]) <= 4
    assert "44.0 MB" in found["notes"][0]


def test_groups_that_do_not_fit_are_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(capsys, file, "--cards", "6", "--slots", "18", "--nodes", "3", "--expert-groups", "4")
    assert code == 0
    assert found["nodes"] == {
        "groups": 4,
        "possible": False,
        "reason": "4 groups cannot be divided over 3 nodes",
        "curve": [],
    }


def test_groups_kept_and_shares(file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("--cards", "4", "--slots", "24", "--nodes", "2", "--expert-groups", "4", "--keep-groups")
    code, found = run(capsys, file.parent / "one.npy", *words, "--splits", tmp_path / "s.json")
    assert code == 0
    for row in found["physical_to_logical_map"]:
        nodes = [{e // 4 for e in row[:12]}, {e // 4 for e in row[12:]}]
        assert not nodes[0] & nodes[1]
    document = json.loads((tmp_path / "s.json").read_text())
    assert document["balancedness"] >= found["balancedness"] - 1e-9
    for row, shares in zip(document["physical_to_logical_map"], document["split"], strict=True):
        sums = np.zeros(16)
        np.add.at(sums, row, shares)
        assert np.allclose(sums, 1.0)
    assert found["scenarios"]["one"]["bound_any_split"] <= document["value"] * (1 + 1e-9)
    wrong = ("--cards", "6", "--slots", "18", "--nodes", "3", "--expert-groups", "4", "--keep-groups")
    assert run(capsys, file, *wrong)[0] == 2


BAD: list[tuple[tuple[str, ...], str, str]] = [
    (("--cards", "4", "--slots", "15"), "--slots", "15 slots on 4 cards cannot hold 16 experts"),
    (("--cards", "4"), "--slots", "is missing"),
    (("--cards", "4", "--slots", "20", "--slots-per-card", "5"), "--slots", "stands beside"),
    (("--cards", "4", "--slots-per-card", "5,5"), "--slots-per-card", "2 numbers for 4 cards"),
    (("--cards", "4", "--slots-per-card", "-5"), "--slots-per-card", "not a number"),
    (("--cards", "0", "--slots", "20"), "--cards", "not a number"),
    (("--cards", "x", "--slots", "20"), "--cards", "not a number"),
    (("--cards", "4", "--slots", "20", "--nodes", "3"), "--nodes", "cannot be divided"),
    (("--cards", "3", "--slots", "20", "--write", "vllm", "--out", "x"), "--slots", "engines need equal cards"),
    (("--cards", "3", "--slots", "20", "--engine"), "--slots", "engines need equal cards"),
    (("--cards", "4", "--slots", "20", "--keep-groups"), "--expert-groups", "is missing"),
    (("--cards", "4", "--slots", "20", "--write", "vllm"), "--out", "is missing"),
    (("--cards", "4", "--slots", "20", "--expert-bytes", "0 B"), "--expert-bytes", "too small"),
    (("--cards", "4", "--slots", "20", "--copy-rate", "0 B/s"), "--copy-rate", "too small"),
    (("--cards", "4", "--slots", "20", "--budget", "1 s", "--expert-bytes", "1 MB"), "--budget", "is a time"),
    (("--cards", "4", "--slots", "20", "--expert-groups", "5"), "--expert-groups", "cannot be divided"),
    (("--cards", "4", "--slots", "20", "--weights", "1"), "--weights", "1 weights for 2 scenarios"),
    (("--cards", "4", "--slots", "20", "--slot-time", "1 us"), "--token-time", "is missing"),
    (("--cards", "4", "--slots", "20", "--lifetime", "9"), "--current", "is missing"),
    (("--cards", "4", "--slots", "20", "--model-layers", "3"), "--model-layers", "up to layer 3"),
]


@pytest.mark.parametrize(("words", "path", "message"), BAD)
def test_bad_input(
    file: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], path: str, message: str
) -> None:
    code, found = run(capsys, file, *words)
    assert code == 2
    problems = found["error"]["problems"]
    assert any(p["path"] == path and message in p["message"] for p in problems), problems


def test_bad_numbers_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for text, value in (("0", "0"), ("-3", "-3"), ("nan", "nan")):
        (tmp_path / "x.csv").write_text(f"1,2,3\n4,{text},6")
        code, found = run(capsys, tmp_path / "x.csv", "--cards", "2", "--slots", "4")
        assert code == 2
        [problem] = found["error"]["problems"]
        assert (problem["path"], problem["value"]) == ("LOADS[1,1]", value)


@pytest.mark.parametrize("option", ["--expert-bytes", "--budget", "--copy-rate", "--kv-token-bytes"])
def test_numbers_beyond_all_numbers(file: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    code, found = run(capsys, file, "--cards", "4", "--slots", "20", option, "9" * 400)
    assert code == 2
    assert found["error"]["problems"][0]["path"] == option


def test_nothing_in_flight_is_the_default(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (file, "--cards", "4", "--slots", "20")
    _, made = run(capsys, *words)
    current = file.parent / "map.json"
    current.write_text(json.dumps(made))
    assert run(capsys, *words, "--current", current, "--in-flight", "0")[0] == 0
    code, found = run(capsys, *words, "--in-flight", "2")
    assert (code, found["error"]["problems"][0]["path"]) == (2, "--current")


def test_loads_too_small_to_add_up(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(file.parent / "tiny.npy", TOKENS * 1e-318)
    code, found = run(capsys, file.parent / "tiny.npy", "--cards", "4", "--slots", "20")
    assert code == 2
    assert "too small" in found["error"]["problems"][0]["message"]


def test_no_strict_placement_beats_its_bound_by_filling_slots(file: Path) -> None:
    tokens = np.array([[9.0, 5.0, 4.0, 3.0, 8.0, 6.0, 2.0, 1.0]])
    layout, time = Layout((4,) * 4, 2), TimeModel(5.0, 1.0)
    start, _, _ = strict(tokens, layout, 4, time)
    points, bound = curve(tokens, layout, 4, time, start)
    full = card_times(start, tokens, time).max(1)
    most = (tokens.sum(1) + 5.0 * layout.total) / layout.cards
    assert points[0].balancedness <= bound
    assert bound >= float((most / full).mean()) * (1 - 1e-9)  # every slot filled, its busiest card no worse
