"""`inferplan queue`: exercise 9-10 with its long requests in bursts, recorded arrivals, and every kind of bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from models.load import load
from tests.golden.reading import ENTRIES
from tests.instances import EIGHT, ROOT

BURSTS = ROOT / "instances" / "chapter" / "mixed-outputs-bursts.yaml"
GOLDEN: dict[str, float] = {entry.id: entry.exact for entry in ENTRIES if isinstance(entry.exact, int | float)}
Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def running(path: Path, *more: str) -> tuple[int, Any]:
        code = main(["queue", str(path), "--json", *more])
        caught = capsys.readouterr()
        assert caught.err == ""
        return code, json.loads(caught.out)

    return running


def problems(run: Run, *more: str) -> list[tuple[str, str, str]]:
    code, found = run(BURSTS, *more)
    assert code == 2
    return [(one["path"], one["message"], one["accepted"] or "") for one in found["error"]["problems"]]


# --- exercise 9-10 ----------------------------------------------------------------------------------

LONG, SHORT = (GOLDEN[f"xr-9-10-a100-{word}"] / GOLDEN["xr-9-10-a100-mean"] for word in ("long", "short"))
"""Work of a request in decode, where that of a mean request is 1."""
DECODE = 2.0 * GOLDEN["xr-9-10-best"]
"""Mean requests/s of two groups."""
PREFILL = 4.0 / GOLDEN["s9-2-3-a100-prefill-seconds"]
DENSE, EVEN = 10.5, 1.75
"""Long requests/s in the ten seconds, six times the mean, and short ones."""


def test_a_long_request_weighs_as_much_on_either_gpu() -> None:
    ratios = [GOLDEN[f"xr-9-10-{card}-long"] / GOLDEN[f"xr-9-10-{card}-short"] for card in ("a100", "h20")]
    assert ratios == pytest.approx([LONG / SHORT, LONG / SHORT])
    assert round(LONG / SHORT, 1) == 4.5


def test_the_burst_as_it_reaches_decode(run: Run) -> None:
    """Prefill hands over the burst at its own rate, in the mix in which it came, then the short ones that wait."""
    code, found = run(BURSTS)
    assert code == 0
    [prefill, decode] = found["stages"]
    assert prefill["capacity"]["requests"] == pytest.approx(PREFILL, rel=1e-6)
    assert decode["capacity"]["requests"] == pytest.approx(DECODE, rel=1e-6)
    assert decode["load"] == pytest.approx(3.5 / DECODE, rel=1e-6)
    weights = decode["work_of_a_request"]
    assert weights["half-long"] / weights["half-short"] == pytest.approx(LONG / SHORT, rel=1e-6)
    assert prefill["peak"]["mean_requests"] == pytest.approx(10.0 * (DENSE + EVEN - PREFILL), rel=1e-6)
    through = 10.0 * (DENSE + EVEN) / PREFILL  # second in which prefill has done the burst
    came = PREFILL * (DENSE * LONG + EVEN * SHORT) / (DENSE + EVEN)
    assert decode["peak"]["at_s"] == pytest.approx(through, rel=1e-6)
    assert decode["peak"]["mean_requests"] == pytest.approx(through * (came - DECODE), rel=1e-6)
    assert round(decode["peak"]["mean_requests"]) == 70
    waiting = decode["peak"]["requests"]
    assert waiting["half-long"] / waiting["half-short"] == pytest.approx(DENSE / EVEN, rel=1e-6)
    work = sum(count * weights[name] for name, count in waiting.items())
    assert work == pytest.approx(decode["peak"]["work"], rel=1e-6)


def test_without_a_limit_of_prefill_more_waits_and_is_gone_in_the_same_second(run: Run) -> None:
    _, found = run(BURSTS)
    decode = found["stages"][1]
    once = decode["at_once"]
    peak = 10.0 * (DENSE * LONG + EVEN * SHORT - DECODE)
    assert (once["peak"]["at_s"], once["peak"]["mean_requests"]) == (10.0, pytest.approx(peak, rel=1e-6))
    assert round(once["peak"]["mean_requests"]) == 137
    gone = 10.0 + peak / (DECODE - EVEN * SHORT)
    assert once["empty_again_s"] == pytest.approx(gone, rel=1e-6)
    assert decode["empty_again_s"] == pytest.approx(gone, rel=1e-6)
    for workload in found["workloads"].values():  # the last of the burst waits longest, wherever it waits
        assert workload["longest_wait_s"] == pytest.approx(peak / DECODE, rel=1e-6)


def test_a_window_of_ten_seconds_decides_and_one_of_a_minute_hides_it(run: Run) -> None:
    code, found = run(BURSTS, "--wait", "20 s")
    assert (code, found["kept"]) == (3, False)
    decode = found["stages"][1]
    windows = {window["seconds"]: window["of_capacity"] for window in decode["windows"]}
    assert windows[60.0] == pytest.approx(3.5 / DECODE, rel=1e-6)
    assert windows[10.0] > 1.6
    assert decode["shortest_window_s"] == pytest.approx(decode["empty_again_s"], rel=1e-6)
    [never, asked] = decode["needed"]
    burst = DENSE * LONG + EVEN * SHORT
    assert (never["wait_s"], never["window"]) == (0.0, {"start_s": 0.0, "seconds": 10.0})
    assert never["requests"] == pytest.approx(burst, rel=1e-6)
    assert asked["window"] == {"start_s": 0.0, "seconds": 10.0}
    assert asked["requests"] == pytest.approx(10.0 * burst / 30.0, rel=1e-6)


def test_the_capacity_that_is_needed_keeps_the_wait(run: Run) -> None:
    """Half as much again of every GPU: 8.2 mean requests/s for the 5.9 that 20 s of waiting need."""
    more = [f"limits.pools.{index}.exactly={units}" for index, units in ((0, 6), (1, 6), (3, 12))]
    groups = [f"hardware.groups.{name}.servers=3" for name in ("a100", "h20")]
    code, found = run(BURSTS, "--wait", "20 s", *(word for change in (*more, *groups) for word in ("--set", change)))
    assert (code, found["kept"]) == (0, True)
    assert all(need["of_capacity"] <= 1.0 for stage in found["stages"] for need in stage["needed"][1:])


def test_the_curve_is_straight_between_its_corners(run: Run) -> None:
    _, found = run(BURSTS, "--periods", "3")
    assert found["followed_s"] == 180.0
    for stage in found["stages"]:
        curve = {point["second"]: point["work"] for point in stage["curve"]}
        assert curve[60.0] == curve[120.0] == 0.0
        assert max(curve.values()) == pytest.approx(stage["peak"]["work"])
        for point in stage["curve"]:
            work = sum(count * stage["work_of_a_request"][name] for name, count in point["requests"].items())
            assert work == pytest.approx(point["work"], abs=1e-6)


# --- plans, recordings, what never ends -------------------------------------------------------------


def test_a_plan_that_was_kept(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.json"
    assert main(["solve", str(BURSTS), "--plan-only", "--out", str(plan), "--json"]) == 0
    assert "bursts exceed the capacity" in " ".join(json.loads(capsys.readouterr().out)["warnings"])
    assert run(BURSTS, "--plan", str(plan)) == run(BURSTS)
    [(path, message, accepted)] = problems(run, "--plan", str(plan), "--set", "workloads.half-long.bursts.first=20 s")
    assert path == "instance_sha256"
    assert "differs in workloads.half-long.bursts.first" in message
    assert accepted == "a plan of mixed-outputs-bursts as it stands: solve again"


def test_an_instance_without_a_plan(run: Run) -> None:
    code, found = run(BURSTS, "--set", "workloads.half-long.rate=9/s")
    assert (code, found["status"], found["stages"]) == (3, "infeasible", [])


def test_even_arrivals_never_wait(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = run(EIGHT, "--wait", "0 s")
    assert (code, found["kept"], found["workloads"]["reasoning"]["longest_wait_s"]) == (0, True, 0.0)
    assert [stage["waits"] for stage in found["stages"]] == [None, None]
    assert main(["queue", str(EIGHT)]) == 0
    assert "Nothing waits" in capsys.readouterr().out


def test_recorded_arrivals_are_followed_from_the_plan_alone(run: Run, tmp_path: Path) -> None:
    """10/s for 60 s, then 1/s for 540 s: 1.9/s on average; prefill falls behind by 5.33/s for a minute."""
    times = [index / 10 for index in range(600)] + [60.0 + second for second in range(541)]
    (tmp_path / "log.csv").write_text("time\n" + "\n".join(map(str, times)) + "\n")
    text = EIGHT.read_text().replace("rate: 3.5/s", "arrivals: log.csv")
    (tmp_path / "recorded.yaml").write_text(text)
    instance = load(tmp_path / "recorded.yaml")
    workload = instance.workloads["reasoning"]
    assert workload.profile is not None
    assert len(workload.profile) <= 241
    assert workload.rate == pytest.approx(1.9)
    assert type(instance).model_validate(instance.document()) == instance
    code, found = run(tmp_path / "recorded.yaml")
    assert (code, found["followed_s"]) == (0, 600.0)
    assert found["workloads"]["reasoning"]["over_time"] == "as its profile says, 600 s"
    prefill = found["stages"][0]
    stretch = 600.0 / (1140 // 20)  # rates are those of stretches: the change is told to within one
    assert prefill["peak"]["mean_requests"] == pytest.approx(60.0 * (10.0 - PREFILL), abs=stretch * 10.0)
    assert prefill["longest_wait_s"] == pytest.approx(60.0 * (10.0 / PREFILL - 1.0), abs=stretch * 10.0 / PREFILL)


def test_more_than_the_plan_does_never_ends(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    change = ("--set", "workloads.reasoning.profile=[{at: 0 s, rate: 2/s}, {at: 30 s, rate: 5/s}]")
    code, found = run(EIGHT, *change)
    assert (code, found["ends"]) == (3, False)
    assert [stage["peak"] for stage in found["stages"]] == [None, None]
    assert found["workloads"]["reasoning"]["longest_wait_s"] is None
    assert main(["queue", str(EIGHT), *change]) == 3
    assert "the queue grows without end" in capsys.readouterr().out


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "path", "words", "accepted"),
    [
        ("bursts.first=61 s", "bursts.first", "is longer than the period", "at most every, 60 s"),
        ("bursts.first=0 s", "bursts.first", "is too small", "above 0"),
        ("bursts.every=nan s", "bursts.every", "not a finite number", "a time"),
        ("bursts.every=.nan", "bursts.every", "has no unit", "a time"),
        ("bursts={every: 60 s}", "bursts.first", "missing", ""),
        ("bursts.last=3 s", "bursts.last", "unknown key", "every, first"),
        ("profile=[{at: 0 s, rate: 1/s}]", "bursts", "stands beside a profile", "one of the two"),
        ("arrivals=log.csv", "rate", "several of these", "one of rate"),
    ],
)
def test_bursts_that_are_none(run: Run, change: str, path: str, words: str, accepted: str) -> None:
    [found] = problems(run, "--set", f"workloads.half-long.{change}")
    assert found[0] == f"workloads.half-long.{path}"
    assert words in found[1]
    assert accepted in found[2]


def test_bursts_beside_a_file_of_arrivals(run: Run) -> None:
    workload = "{model: qwen3-8b, input: 8192, output: 1025, arrivals: log.csv, bursts: {every: 9 s, first: 3 s}}"
    [(path, message, accepted)] = problems(run, "--set", f"workloads.half-long={workload}")
    assert (path, accepted) == ("workloads.half-long.bursts", "one of the two")
    assert "a file of arrivals" in message


def test_a_profile_out_of_order(run: Run) -> None:
    code, found = run(EIGHT, "--set", "workloads.reasoning.profile=[{at: 9 s, rate: 1/s}, {at: 9 s, rate: 2/s}]")
    [one] = found["error"]["problems"]
    assert (code, one["path"]) == (2, "workloads.reasoning.profile[1].at")
    assert (one["message"], one["accepted"]) == ("is not later than the one before", "later than 9 s")


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--periods", "0", "a whole number from 1 to 100"),
        ("--periods", "1.5", "a whole number from 1 to 100"),
        ("--periods", "nan", "a whole number from 1 to 100"),
        ("--wait", "20", "has no unit"),
        ("--wait", "nan s", "not a finite number"),
        ("--wait", "-1 s", "a time from 0 s"),
    ],
)
def test_options_that_are_none(run: Run, option: str, value: str, words: str) -> None:
    [found] = problems(run, option, value)
    assert found[0] == option
    assert words in found[1]


def test_a_plan_that_is_no_file(run: Run) -> None:
    assert problems(run, "--plan", "none-such.json")[0][1].startswith("cannot be read")
