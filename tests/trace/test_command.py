"""`inferplan trace` from files to documents and text."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from api.trace.screen import written
from tests.trace import naive

KEYS = {"requests", "format", "lengths", "arrivals", "hit_curve", "reuse"}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INFERPLAN_DEBUG", "1")
    return naive.file_of(tmp_path / "requests.jsonl", 300, rate=1.0)


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, Any]:
    code = main(["trace", *map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    assert main(["trace", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_document(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(capsys, file)
    assert code == 0
    assert KEYS | {"ttl_curve", "writes", "problems", "parameters"} <= set(found)
    assert (found["requests"], found["format"], found["writes"]) == (300, "mooncake", None)
    assert found["parameters"]["warm_up"] == {"requests": 0, "seconds": 0.0}
    assert (found["parameters"]["weight"], found["parameters"]["partial_blocks"]) == ("token", "count")
    for curve, key in (("hit_curve", "capacity_blocks"), ("ttl_curve", "ttl_s")):
        rows = found[curve]
        assert rows[-1][key] is None
        assert [row["hit"] for row in rows] == sorted(row["hit_token"] for row in rows)
    assert found["hit_curve"][-1]["hit"] == pytest.approx(found["reuse"]["all"]["reused"])
    assert found["reuse"]["curve"][-1][1] == pytest.approx(found["hit_curve"][-1]["hit"])
    assert found["reuse"]["never_reused"] == pytest.approx(1.0 - found["hit_curve"][-1]["hit"])
    assert found["reuse"]["hot"]["blocks"] == 2
    assert found["problems"] == {"skipped": 0, "first": []}


def test_everything_at_once(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--warm-up", "25 %", "--weight", "block", "--capacities", "77, 40000 tokens,2 GB", "--ttl", "45 s,3 min"]
    words += ["--kv-bytes-per-token", "70272", "--dram", "100", "--ssd", "20 GB", "--drive", "7.68 TB,1/day,5 years"]
    words += ["--partial-blocks", "drop", "--hot", "50%", "--admission", "50", "--spread"]
    code, found = run(capsys, file, *words)
    assert code == 0
    assert found["parameters"]["warm_up"]["requests"] == 75
    assert {77, 78, 55} <= {row["capacity_blocks"] for row in found["hit_curve"]}
    assert {45.0, 180.0} <= {row["ttl_s"] for row in found["ttl_curve"]}
    assert all(row["hit"] == row["hit_block"] for row in found["hit_curve"])
    writes = found["writes"]
    assert (writes["dram_blocks"], writes["ssd_blocks"]) == (100, 555)
    for row in writes["policies"]:
        assert row["write_bytes_per_s"] == pytest.approx(row["write_tokens_per_s"] * 70272)
        assert row["drives_by_endurance"] == pytest.approx(row["write_bytes_per_s"] * 86400 / 7.68e12)
        assert row["drives_by_capacity"] == pytest.approx(555 * 512 * 70272 / 7.68e12)
    text = " ".join(said(capsys, file, *words).split())
    for part in ("warm-up of 75 requests", "not kept", "drives by wear", "curve: {", "spread", "second-access", "GiB"):
        assert part in text


def test_the_same_as_one_would_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.jsonl"
    requests = naive.some(5, tree=True)
    lines = [
        {"timestamp": time * 1e3, "input_length": length, "output_length": 1, "hash_ids": ids}
        for time, length, ids in requests
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    _, found = run(capsys, path, "--block-tokens", str(naive.SIZE), "--capacities", "3,9", "--ttl", "7.1 s")
    total = sum(length for _, length, _ in requests)
    for row in found["hit_curve"][:-1]:
        assert row["hit"] == pytest.approx(naive.lru(requests, row["capacity_blocks"])[1] / total)
    [row] = [row for row in found["ttl_curve"] if row["ttl_s"] == 7.1]
    assert row["hit"] == pytest.approx(naive.kept(requests, 7.1)[1] / total)


def test_a_trace_without_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("time,input,output\n0,5,1\n1,6,2\n")
    code, found = run(capsys, path)
    assert code == 0
    assert (found["hit_curve"], found["reuse"], found["blocks"]) == (None, None, None)
    assert "No blocks" in said(capsys, path)
    code, found = run(capsys, path, "--dram", "5", "--ssd", "5", "--capacities", "9", "--ttl", "3 s")
    assert code == 2
    assert [one["path"] for one in found["error"]["problems"]] == ["--capacities", "--dram", "--ttl"]


def test_one_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [1]}')
    for words in ([], ["--warm-up", "99 %"], ["--dram", "1", "--ssd", "1"], ["--partial-blocks", "drop"]):
        code, found = run(capsys, path, *words)
        assert code == 0
        assert found["hit_curve"][-1]["hit"] == 0.0
        assert "1 request in" in said(capsys, path, *words)


def test_lines_left_out_are_told(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(file.read_text() + "{}\n")
    code, found = run(capsys, file)
    assert code == 2
    assert found["error"]["problems"][0]["line"] == 301
    code, found = run(capsys, file, "--skip-bad")
    assert (code, found["problems"]["skipped"], found["problems"]["first"][0]["line"]) == (0, 1, 301)
    assert "1 line left out; line 301" in said(capsys, file, "--skip-bad")


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["--warm-up", "100 %"], "--warm-up"),
        (["--warm-up", "-5 min"], "--warm-up"),
        (["--warm-up", "much"], "--warm-up"),
        (["--warm-up", "5 GB"], "--warm-up"),
        (["--ttl", "5"], "--ttl"),
        (["--ttl", "5 s,,6 s"], "--ttl"),
        (["--capacities", "-3"], "--capacities"),
        (["--capacities", "1.5"], "--capacities"),
        (["--capacities", "nan"], "--capacities"),
        (["--capacities", "9" * 30], "--capacities"),
        (["--capacities", "64 GB"], "--capacities"),
        (["--capacities", "64 apples"], "--capacities"),
        (["--dram", "5"], "--dram"),
        (["--ssd", "5"], "--ssd"),
        (["--dram", "x", "--ssd", "5"], "--dram"),
        (["--admission", "5"], "--admission"),
        (["--dram", "5", "--ssd", "5", "--admission", "0"], "--admission"),
        (["--dram", "5", "--ssd", "5", "--drive", "7.68 TB,1/day,5 years"], "--drive"),
        (["--kv-bytes-per-token", "0"], "--kv-bytes-per-token"),
        (["--kv-bytes-per-token", "5 s"], "--kv-bytes-per-token"),
        (["--block-tokens", "0"], "--block-tokens"),
        (["--block-tokens", "1e99"], "--block-tokens"),
        (["--columns", "time"], "--columns"),
        (["--columns", "when=t"], "--columns"),
        (["--hot", "0"], "--hot"),
        (["--hot", "many"], "--hot"),
        (["--format", "moon"], "--format"),
        (["--time-unit", "h"], "--time-unit"),
        (["--weight", "request"], "--weight"),
        (["--block-tokens", "16"], "hash_ids"),
    ],
)
def test_options_that_are_refused(file: Path, capsys: pytest.CaptureFixture[str], words: list[str], place: str) -> None:
    code, found = run(capsys, file, *words)
    assert code == 2
    assert found["error"]["problems"][0]["path"] == place


@pytest.mark.parametrize("drive", ["7.68 TB", "7.68 TB,1,5 years", "1 s,1/day,5 years", "8 TB,0/day,5 years"])
def test_drives_that_are_refused(file: Path, capsys: pytest.CaptureFixture[str], drive: str) -> None:
    words = ["--dram", "5", "--ssd", "5", "--kv-bytes-per-token", "70 kB", "--drive", drive]
    code, found = run(capsys, file, *words)
    assert (code, found["error"]["problems"][0]["path"]) == (2, "--drive")


def test_a_curve_as_files_have_it() -> None:
    curve = [[0.001, 1e-6], [30.0, 0.1], [47.0, 0.2], [60.0, 0.3], [3600.0, 0.5], [4000.5, 0.51]]
    assert written(curve) == "{30 s: 10 %, 1 min: 30 %, 1 h: 50 %, 4000.5 s: 51 %}"
