"""`inferplan flips`: its documents, its screen, and every kind of bad input."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.instances import EIGHT, ROOT

Run = Callable[..., tuple[int, str, str]]
APART = ROOT / "instances" / "chapter" / "attention-apart.yaml"
LINK = "hardware.links.rdma.startup"


def test_the_document(run: Run) -> None:
    code, out, _ = run("flips", APART, "--vary", LINK, "--vary", "workloads.chat.batch=300..500", "--json")
    told = json.loads(out)
    assert code == 0
    assert set(told) == {"instance", "now", "flips", "unchanged", "stopped"}
    assert (told["instance"], told["stopped"]) == ("attention-apart", [])
    assert (told["now"]["scheme"], told["now"]["other"]["scheme"]) == ("attention-ffn", "pd-direct")
    [one] = told["flips"]
    assert (one["path"], one["unit"], one["now"], one["tie"]) == (LINK, "s", 5e-5, False)
    assert one["at"] == one["above"]["value"]
    assert (one["below"]["scheme"], one["above"]["scheme"]) == ("attention-ffn", "pd-direct")
    assert one["below"]["status"] == "optimal"
    for side in ("below", "above"):  # what is told can be solved again
        changes = ("--set", f"{LINK}={one[side]['value']} s", "--plan-only", "--json")
        plan = json.loads(run("solve", APART, *changes)[1])
        assert (plan["scheme"], plan["objective"]["value"]) == (one[side]["scheme"], one[side]["objective"])
    same = {"path": "workloads.chat.batch", "unit": "", "now": 384, "from": 300, "to": 500}
    assert told["unchanged"] == [same]


def test_the_screen(run: Run) -> None:
    code, out, _ = run("flips", EIGHT, "--vary", "workloads.reasoning.batch", "--vary", "hardware.groups.a100.price")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(line.startswith("now: pd-direct, 0.6349 credit/1000 requests") for line in lines)
    assert any(line.startswith("next: pd-pooled alone") and "a tie, decided by fewer bytes" in line for line in lines)
    assert "workloads.reasoning.batch 32 58 pd-direct 0.6349 infeasible" in lines
    assert "hardware.groups.a100.price 0.03125 credit/h to 32 credit/h" in lines
    assert lines[-1].endswith("is not seen")
    out = run("flips", EIGHT, "--vary", "hardware.links.rdma.bandwidth=1 GB/s..25 GB/s")[1]
    assert "tie, decided by requests/s" in out


def test_an_instance_without_a_plan(run: Run) -> None:
    """The deadline cannot be kept at 8 requests/s; at fewer it can."""
    code, out, _ = run("flips", EIGHT, "--set", "workloads.reasoning.rate=8/s", "--vary", "workloads.reasoning.rate")
    assert code == 0
    assert "now: infeasible" in out
    assert "pd-direct" in out


def test_no_time_is_4(run: Run) -> None:
    heavy = ROOT / "instances" / "examples" / "three-node-types.yaml"
    code, out, _ = run("flips", heavy, "--vary", "workloads.overnight.rate", "--time-limit", "0.01", "--json")
    told = json.loads(out)
    assert (code, told["flips"], told["unchanged"]) == (4, [], [])
    assert [one["path"] for one in told["stopped"]] == ["workloads.overnight.rate"]
    assert run("flips", heavy, "--vary", "workloads.overnight.rate", "--time-limit", "0.01")[0] == 4


@pytest.mark.parametrize(
    ("vary", "path"),
    [
        (["schemes.mix"], "schemes.mix"),
        (["workloads.nobody.rate"], "workloads.nobody.rate"),
        (["workloads.reasoning.rate=8/s..2/s"], "workloads.reasoning.rate"),
        (["workloads.reasoning.rate=2/s"], "--vary"),
        (["workloads.reasoning.rate=..2/s"], "--vary"),
        (["=1..2"], "--vary"),
        (["workloads.reasoning.batch", "workloads.reasoning.batch"], "--vary"),
        (["workloads.reasoning.output=1..x"], "workloads.reasoning.output"),
    ],
)
def test_bad_input(run: Run, vary: list[str], path: str) -> None:
    code, out, _ = run("flips", EIGHT, *(word for text in vary for word in ("--vary", text)), "--json")
    problems = json.loads(out)["error"]["problems"]
    assert (code, [problem["path"] for problem in problems]) == (2, [path])


def test_every_number_that_is_wrong_is_told_at_once(run: Run) -> None:
    code, out, _ = run("flips", EIGHT, "--vary", "schemes.mix", "--vary", "name", "--json")
    assert (code, len(json.loads(out)["error"]["problems"])) == (2, 2)
    assert run("flips", Path("no-such-file.yaml"))[0] == 2
