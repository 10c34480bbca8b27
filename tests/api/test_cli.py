"""The command line in process: documents, texts, exit codes, files."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.cli import LATER
from models import files
from tests.instances import EIGHT, ROOT, eight

CONTRACT = """
    schema instance instance_sha256 instance_document status objective solve_seconds scheme throughput pools workloads
    resources drain cost tiers experts traffic alternatives marginal conflicts relaxations assumptions warnings verified
"""
Run = Callable[..., tuple[int, str, str]]


def problems(run: Run, *words: str | Path) -> list[dict[str, Any]]:
    """The problems of a bad input, from one JSON document and nothing else on standard output."""
    code, out, err = run(*words, "--json")
    assert (code, err) == (2, "")
    document = json.loads(out)
    assert document["error"]["kind"] == "bad_input"
    found: list[dict[str, Any]] = document["error"]["problems"]
    assert all(set(problem) == {"path", "line", "value", "message", "accepted"} for problem in found)
    return found


def test_solve_prints_the_answer_on_one_screen(run: Run) -> None:
    code, out, err = run("solve", EIGHT)
    assert (code, err) == (0, "")
    assert re.search(r"OPTIMAL  gap 0 %  verified", out)
    for words in (
        "Run prefill on 4 x A100-SXM-80GB and decode on 4 x H20-SXM5-96GB, handing the KV over directly",
        "3.50 requests/s served of 4.55 possible; startup backlog gone in second 43 of 60.",
        "0.63 credits per 1000 qualifying requests (8.00 credits/h, all 8 GPUs paid).",
        "misses the deadline by 2.571 s",
        "efficiency may fall from 0.5 to 0.4612",
    ):
        assert words in out
    assert len(out.splitlines()) <= 45
    assert max(map(len, out.splitlines())) <= 110


def test_solve_json_has_the_keys_of_the_contract(run: Run) -> None:
    code, out, err = run("solve", EIGHT, "--json")
    assert (code, err) == (0, "")
    plan = json.loads(out)
    for key in CONTRACT.split():
        assert key in plan
    assert {"name", "value", "bound", "gap"} <= set(plan["objective"])
    pool = plan["pools"][0]
    assert {"name", "scheme", "stage", "group", "model", "units", "cards_per_unit", "cards", "batch"} <= set(pool)
    assert set(pool["parallelism"]) == {"tp", "ep", "pp", "dp"}
    assert set(pool["memory"]) == {"weights", "kv", "buffers", "experts", "free", "capacity"}
    assert {"rate", "served", "capacity", "ttft_s", "tpot_s", "qualifying_rate"} <= set(plan["workloads"]["reasoning"])
    assert {"ready_s", "backlog", "drained_s", "deadline_s", "required_rate", "met"} <= set(plan["drain"])
    assert {"name", "step", "gain"} <= set(plan["marginal"][0])
    assert {"name", "value", "provenance"} == set(plan["assumptions"][0])
    assert plan["schema"] == 1
    assert plan["verified"] is True


def test_infeasible_is_3_with_a_plan_document(run: Run) -> None:
    code, out, _ = run("solve", EIGHT, "--set", "service.drain=40s", "--json")
    plan = json.loads(out)
    assert (code, plan["status"], plan["pools"], plan["throughput"]) == (3, "infeasible", [], None)
    assert plan["conflicts"][0]["limits"][0] == "drain"
    assert set(plan["relaxations"][0]) == {"path", "from", "to", "unit", "text"}
    code, out, _ = run("solve", EIGHT, "--set", "service.drain=40s")
    assert code == 3
    assert "deadline 40 s -> 43.21 s" in out


def test_out_writes_the_same_plan_and_verify_reads_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    code, out, _ = run("solve", EIGHT, "--json", "--out", file)
    assert code == 0
    assert json.loads(file.read_text()) == json.loads(out)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
    assert run("verify", EIGHT, file)[0] == 0
    assert json.loads(run("verify", EIGHT, file, "--json")[1]) == {"ok": True, "violations": []}


def test_verify_names_what_a_changed_plan_breaks(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    run("solve", EIGHT, "--out", file)
    plan = json.loads(file.read_text())
    plan["pools"][1]["units"] = plan["pools"][1]["cards"] = 5
    file.write_text(json.dumps(plan))
    code, out, _ = run("verify", EIGHT, file, "--json")
    assert code == 3
    assert json.loads(out) == {"ok": False, "violations": ["cards[h20]: 5 used of 4"]}


def test_verify_refuses_a_plan_of_another_instance(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    run("solve", EIGHT, "--set", "workloads.reasoning.rate=3/s", "--out", file)
    assert problems(run, "verify", EIGHT, file)[0]["path"] == "instance_sha256"
    assert run("verify", EIGHT, file, "--set", "workloads.reasoning.rate=3/s")[0] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("[1, 2", "is not JSON"),
        ("[]", "not a plan of this version"),
        ('{"schema": 2}', "not a plan of this version"),
        ('{"schema": 1}', "Field required"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_verify_refuses_files_that_are_no_plans(run: Run, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    assert message in problems(run, "verify", EIGHT, file)[0]["message"]


def test_a_plan_file_that_cannot_be_written_is_said_and_leaves_nothing(run: Run, tmp_path: Path) -> None:
    missing = tmp_path / "no" / "plan.json"
    assert "cannot be written" in problems(run, "solve", EIGHT, "--out", missing)[0]["message"]
    assert list(tmp_path.iterdir()) == []


def test_instance_document_of_a_plan_is_an_instance_itself(run: Run, tmp_path: Path) -> None:
    plan = json.loads(run("solve", EIGHT, "--json", "--plan-only")[1])
    again = tmp_path / "again.yaml"
    again.write_text(files.dump(plan["instance_document"]))
    other = json.loads(run("solve", again, "--json", "--plan-only")[1])
    assert other["instance_sha256"] == plan["instance_sha256"]
    assert other["throughput"] == plan["throughput"]


def test_compare(run: Run) -> None:
    code, out, err = run("compare", EIGHT, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["instance"] == "eight-cards"
    assert [row["scheme"] for row in document["rows"]] == ["replicas", "chunked", "pd-direct", "pd-pooled"]
    keys = "scheme status throughput compute_capacity channel_capacity payload_bytes_per_request drained_s met"
    for row in document["rows"]:
        assert {*keys.split(), "cost_per_1000_requests", "split", "excluded", "reason"} <= set(row)
    code, out, _ = run("compare", EIGHT, "--set", "schemes.allow=[chunked]")
    assert "pd-direct (not allowed)" in out
    assert "misses the deadline by 2.571 s" in out


def test_check_says_what_was_understood(run: Run) -> None:
    code, out, err = run("check", EIGHT, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert {"instance", "topology", "stages", "problems"} <= set(found)
    assert found["problems"] == []
    decode = next(s for s in found["stages"] if s["stage"] == "decode" and s["group"] == "h20")
    assert decode["unit_seconds"] == pytest.approx(0.878319008)
    assert decode["provenance"] == "roofline"
    assert found["topology"]["links"] == [{"name": "rdma", "link": "rdma", "capacity": 25e9}]
    assert "STAGES" in run("check", EIGHT)[1]


def test_check_of_an_infeasible_file_is_0(run: Run) -> None:
    assert run("check", EIGHT, "--set", "service.drain=1s")[0] == 0


def test_catalog(run: Run) -> None:
    entries = json.loads(run("catalog", "--json")[1])["entries"]
    assert len(entries) > 30
    one = json.loads(run("catalog", "accelerators", "H20-SXM5-96GB", "--json")[1])["entries"]
    assert [entry["memory"] for entry in one] == ["96 GB"]
    assert "section 9.2.3" in run("catalog", "accelerators", "H20-SXM5-96GB")[1]
    assert "Qwen3-8B" in run("catalog", "models")[1]
    assert 'did you mean "H20-SXM5-96GB"' in problems(run, "catalog", "accelerators", "H20-SXM-96GB")[0]["message"]
    assert problems(run, "catalog", "gpus")[0]["accepted"] == "accelerators, servers, models, links, storage, cpus"


def test_schema_describes_files_and_plans(run: Run) -> None:
    schema = json.loads(run("schema")[1])
    assert schema["properties"]["hardware"]["$ref"] == "#/$defs/Hardware"
    assert "A100-SXM-80GB" in json.dumps(schema["$defs"]["Group"]["properties"]["accelerator"])
    assert schema["$defs"]["Group"]["properties"]["servers"]["description"].startswith("Number of servers: ")
    assert {"users", "histogram", "pin"} <= set(schema["$defs"]["Workload"]["properties"])
    assert {"required": ["per_day"]} in schema["$defs"]["Workload"]["anyOf"]
    assert "throughput" in json.loads(run("schema", "plan")[1])["properties"]
    routing, transition = (json.loads(run("schema", what)[1]) for what in ("routing", "transition"))
    assert routing["$defs"]["RoutePlace"]["properties"]["behind"]["description"].startswith("Work of tasks")
    assert {"from", "to"} <= set(transition["$defs"]["Resharding"]["properties"])


@pytest.mark.parametrize("name", LATER)
def test_commands_that_come_later_say_so(run: Run, name: str) -> None:
    assert problems(run, name)[0]["message"] == f"`inferplan {name}` is not supported yet"


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        ("frobnicate",),
        ("solve", "a.yaml", "--time-limit", "nan"),
        ("solve", "a.yaml", "--time-limit", "0"),
        ("solve", "a.yaml", "--gap", "-1"),
        ("solve", "a.yaml", "--seed", "1.5"),
        ("solve", EIGHT, "--set", "rate"),
        ("solve", EIGHT, "--set", "name.more=3"),
        ("solve", EIGHT, "--set", "workloads.reasoning.rate=[1, 2"),
        ("solve", "no-such-file.yaml"),
        ("solve", "."),
        (),
    ],
)
def test_usage_errors_are_bad_input(run: Run, words: tuple[str, ...]) -> None:
    assert problems(run, *words)
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err.startswith("inferplan: 1 problem")


def test_a_fault_of_ours_is_1_without_a_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr("solver.solve.solve", broken)
    code, out, err = run("solve", EIGHT)
    assert (code, out) == (1, "")
    assert "a wheel came off" in err
    assert "Traceback" not in err
    code, out, _ = run("solve", EIGHT, "--json")
    assert code == 1
    assert json.loads(out)["error"]["kind"] == "internal"


def test_out_follows_links_and_leaves_devices_alone(run: Run, tmp_path: Path) -> None:
    target, pointer = tmp_path / "plan.json", tmp_path / "latest.json"
    target.write_text("old")
    pointer.symlink_to(target)
    assert run("solve", EIGHT, "--plan-only", "--out", pointer)[0] == 0
    assert pointer.is_symlink()
    assert json.loads(target.read_text())["status"] == "optimal"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    got: list[str] = []
    reader.start()
    assert run("solve", EIGHT, "--plan-only", "--out", pipe)[0] == 0
    reader.join(10)
    assert pipe.is_fifo()
    assert json.loads(got[0])["status"] == "optimal"


@pytest.mark.parametrize("name", ["", ".", "x" * 300, "a\0b"])
def test_out_names_that_are_no_files(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert "cannot be written" in problems(run, "solve", EIGHT, "--plan-only", "--out", name)[0]["message"]
    assert list(tmp_path.iterdir()) == []


def test_an_infeasible_plan_is_nothing_to_verify(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    run("solve", EIGHT, "--set", "service.drain=40s", "--out", file)
    found = problems(run, "verify", EIGHT, file, "--set", "service.drain=40s")
    assert found[0]["message"] == "there is no plan in it"


def test_a_plan_of_a_changed_file_says_what_differs(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    run("solve", EIGHT, "--out", file)
    found = problems(run, "verify", EIGHT, file, "--set", "workloads.reasoning.rate=3/s")
    assert "differs in workloads.reasoning.rate" in found[0]["message"]


@pytest.mark.parametrize(
    ("encoding", "words"), [("ascii", "Run prefill on 4 x A100"), ("latin-1", "Run prefill on 4 x A100")]
)
def test_terminals_without_block_characters(encoding: str, words: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "api.cli", "solve", str(EIGHT), "--plan-only"]
    done = subprocess.run(command, capture_output=True, env=environment, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert words.encode() in done.stdout


def test_a_reader_that_has_had_enough_is_no_fault() -> None:
    command = f"{sys.executable} -m api.cli solve {EIGHT} --plan-only --json | head -c 10"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_a_long_solve_with_what_there_is(number: int, tmp_path: Path) -> None:
    """Bin packing by units of many kinds: a proof takes far longer than the interrupt allows."""
    file = tmp_path / "long.yaml"
    file.write_text(files.dump(long_document()))
    command = [sys.executable, "-m", "api.cli", "solve", str(file), "--plan-only", "--gap", "0", "--json"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    try:
        assert started.stderr is not None
        for line in started.stderr:  # the first line of progress says that the search is under way
            assert line.startswith(b"inferplan: ")
            break
        started.send_signal(number)
        out, _ = started.communicate(timeout=30)
    finally:
        started.kill()
    plan = json.loads(out)
    assert started.returncode == (4 if plan["status"] == "stopped" else 0)
    assert plan["status"] in ("feasible", "stopped")


def long_document() -> dict[str, Any]:
    cards = ["A100-SXM-80GB", "H20-SXM5-96GB", "H100-SXM-80GB", "H200-SXM-141GB", "B200", "MI300X", "L40S"]
    names = [f"g{number}" for number in range(12)]
    return {
        "schema": 1,
        "name": "long",
        "hardware": {
            "groups": {
                name: {"accelerator": cards[n % 7], "servers": 9 + n, "per_server": 8, "price": f"{1 + 0.37 * n:.2f}/h"}
                for n, name in enumerate(names)
            },
            "links": {"net": {"connects": names, "bandwidth": "50 GB/s", "per": "server"}},
        },
        "models": {f"m{n}": {"catalog": name} for n, name in enumerate(("Qwen3-8B", "Qwen3-32B", "Llama-3.1-8B"))},
        "workloads": {
            f"w{n}": {
                "model": f"m{n % 3}",
                "rate": f"{n + 1}/s",
                "input": 500 + 700 * n,
                "output": 100 + 61 * n,
            }
            for n in range(30)
        },
        "billing": {"pay": "used"},
    }


def test_explain_says_what_binds_and_what_next(run: Run) -> None:
    code, out, err = run("explain", EIGHT)
    assert (code, err) == (0, "")
    assert re.search(r"capacity\[decode@h20,memory\] +3\.074 +4 units +76\.9 % +binds", out)
    assert "+1 a100: 5.12 requests/s (+0.56); 4.67 with pd-direct alone" in out
    plan = json.loads(run("explain", EIGHT, "--json")[1])
    assert plan["marginal"]
    assert plan["status"] == "optimal"


def test_explain_of_an_infeasible_instance_is_0(run: Run) -> None:
    code, out, _ = run("explain", EIGHT, "--set", "service.drain=40s")
    assert code == 0
    assert "batch 32 -> 36 for reasoning" in out
    plan = json.loads(run("explain", EIGHT, "--set", "service.drain=40s", "--json")[1])
    assert [relaxation["to"] for relaxation in plan["relaxations"]][:2] == ["3.415/s", "43.21 s"]


def test_sweep_is_a_row_for_each_point(run: Run) -> None:
    vary = ("--vary", "workloads.reasoning.output=129,1025", "--vary", "schemes.mix=true,false")
    code, out, err = run("sweep", EIGHT, *vary, "--json")
    assert (code, err) == (0, "")
    rows = json.loads(out)["rows"]
    assert [tuple(row["values"].values()) for row in rows] == [
        ("129", "true"),
        ("129", "false"),
        ("1025", "true"),
        ("1025", "false"),
    ]
    assert [row["throughput"] for row in rows] == pytest.approx([6.757, 6.757, 4.554154, 4.554154], rel=1e-5)
    alone = json.loads(run("solve", EIGHT, "--set", "workloads.reasoning.output=129", "--json", "--plan-only")[1])
    assert rows[0]["throughput"] == alone["throughput"]
    text = run("sweep", EIGHT, "--vary", "service.drain=40s,60s")[1]
    assert "infeasible" in text
    assert "pd-direct" in text


@pytest.mark.parametrize(
    "vary",
    [
        ["rate"],
        ["workloads.reasoning.rate="],
        ["workloads.reasoning.rate=1/s,1/s"],
        ["workloads.reasoning.rate=1/s,2"],
        ["workloads.reasoning.batch=1", "workloads.reasoning.batch=2"],
        ["workloads.reasoning.batch=" + ",".join(map(str, range(1, 102))), "service.drain=" + ",".join(
            f"{n} s" for n in range(1, 102))],
    ],
)  # fmt: skip
def test_axes_that_are_none(run: Run, vary: list[str]) -> None:
    assert problems(run, "sweep", EIGHT, *(word for text in vary for word in ("--vary", text)))


def test_solve_without_a_file_lists_the_examples(run: Run) -> None:
    code, out, _ = run("solve")
    assert code == 0
    assert str(EIGHT) in out
    examples = json.loads(run("solve", "--json")[1])["examples"]
    assert {"file": str(EIGHT), "about": eight().about} in examples


def test_values_of_an_axis_may_hold_commas_in_brackets(run: Run) -> None:
    code, out, _ = run("sweep", EIGHT, "--vary", "schemes.allow=[replicas, chunked],[pd-direct]", "--json")
    assert code == 0
    assert [row["scheme"] for row in json.loads(out)["rows"]] == [None, "pd-direct"]
    assert [row["status"] for row in json.loads(out)["rows"]] == ["infeasible", "optimal"]


def test_set_begins_a_list_that_is_not_there(run: Run) -> None:
    limits = (
        "--set",
        "limits.pools.0.stage=decode",
        "--set",
        "limits.pools.0.at_most=3",
        "--set",
        "schemes.allow=[pd-direct]",
    )
    code, out, _ = run("solve", EIGHT, *limits, "--json", "--plan-only")
    assert code == 3
    assert json.loads(out)["conflicts"][0]["limits"][-1].startswith("pools[0] (decode: at most 3)")


def test_verify_of_an_unknown_objective_is_no_fault(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    run("solve", EIGHT, "--out", file)
    plan = json.loads(file.read_text())
    plan["objective"]["name"] = "zzz"
    file.write_text(json.dumps(plan))
    assert run("verify", EIGHT, file, "--json")[0] == 3


def test_glossary(run: Run) -> None:
    code, out, _ = run("glossary")
    assert code == 0
    assert out.startswith("backlog")
    assert json.loads(run("glossary", "ttft", "--json")[1])["terms"].keys() == {"TTFT"}
    assert 'did you mean "prefill"' in problems(run, "glossary", "prefil")[0]["message"]


def test_every_scheme_and_status_is_in_the_glossary(run: Run) -> None:
    terms = json.loads(run("glossary", "--json")[1])["terms"]
    assert {"replicas", "chunked", "pd-direct", "pd-pooled", "optimal", "feasible", "infeasible"} <= set(terms)
