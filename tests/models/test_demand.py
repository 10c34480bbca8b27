"""What a workload says of its requests: how many, how long, how quick, how many must be served."""

from pathlib import Path
from typing import Any

import pytest

from models import tabular, traffic
from models.errors import BadInput, Problem
from models.instance import Instance
from models.load import load
from models.workload import Workload
from tests.instances import EIGHT, eight

TEXT = EIGHT.read_text(encoding="utf-8")


def problem(*changes: str) -> Problem:
    """The one problem of the eight-card file after changes."""
    with pytest.raises(BadInput) as caught:
        eight(*(f"workloads.reasoning.{change}" for change in changes))
    [found] = caught.value.problems
    return found


def workload(*changes: str) -> Workload:
    return eight(*(f"workloads.reasoning.{change}" for change in changes)).workloads["reasoning"]


def beside(folder: Path, name: str, text: str, workload: str) -> Instance:
    """The eight-card file with another workload, and a CSV file beside it."""
    (folder / name).write_text(text, encoding="utf-8")
    start, end = TEXT.index("  reasoning:"), TEXT.index("service:")
    made = f"{TEXT[:start]}  reasoning: {{model: qwen3-8b, batch: 32, {workload}}}\n\n{TEXT[end:]}"
    (folder / "instance.yaml").write_text(made, encoding="utf-8")
    return load(folder / "instance.yaml")


MIX = "lengths=[{share: 30 %, input: 1000, output: 200}, {share: 0.7, input: 8192, output: 1025, cached: 100}]"


# --- how many ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "rate", "words"),
    [
        ("{users: 900, think_time: 45 s}", 20.0, "900 users, each with a request every 45 s"),
        ("{per_day: 864000}", 10.0, "864,000 a day"),
        ("{rate: 2/s, plan_for: p95 of 5-minute windows}", 641 / 300, "641 requests in a window (Poisson)"),
        ("{rate: 2/s, plan_for: p50 of 10 s windows}", 2.0, "20 requests in a window"),
        (
            "{rate: 2/s, plan_for: p95 of 5-minute windows, dispersion: 9}",
            726 / 300,
            "726 requests in a window (variance 9 times the mean)",
        ),
    ],
)
def test_rate_follows_from_what_is_said(said: str, rate: float, words: str) -> None:
    base = "{model: qwen3-8b, input: 8192, output: 1025, "
    found = eight(f"workloads.reasoning={base}{said[1:]}").workloads["reasoning"]
    assert found.rate == pytest.approx(rate, rel=1e-6)
    assert words in (found.rate_from or "")


def test_a_percentile_of_many_requests_is_close_to_the_normal_law() -> None:
    assert traffic._count(1e6, 1.0, 0.95) == pytest.approx(1e6 + 1.6449 * 1e3, abs=3)
    assert traffic._count(1.1e6, 4.0, 0.95) == pytest.approx(1.1e6 + 1.6449 * 2 * 1.1e6**0.5, abs=3)


@pytest.mark.parametrize(
    ("said", "path", "words"),
    [
        ("{users: 9}", "think_time", "missing: users need it"),
        ("{users: 0, think_time: 9 s}", "users", "is not a number of users"),
        ("{users: 9, think_time: 9}", "think_time", "has no unit"),
        ("{rate: 2/s, think_time: 9 s}", "think_time", "stands without users"),
        ("{rate: 2/s, users: 9, think_time: 9 s}", "rate", "several of these stand side by side"),
        ("{per_day: many}", "per_day", "is not a number of requests a day"),
        ("{rate: 2/s, plan_for: busiest hour}", "plan_for", "is not a percentile of windows"),
        ("{rate: 2/s, plan_for: p0 of 5-minute windows}", "plan_for", "is not a percentile of windows"),
        ("{rate: 2/s, plan_for: p95 of 5-minute windows, dispersion: 0.5}", "dispersion", "is not a dispersion"),
        ("{rate: 2/s, dispersion: 3}", "dispersion", "needs plan_for"),
        ("{plan_for: p95 of 5-minute windows}", "rate", "missing"),
        ("{arrivals: none-such.csv}", "arrivals", "cannot be read"),
    ],
)
def test_arrivals_that_do_not_go_together(said: str, path: str, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        eight(f"workloads.reasoning={{model: qwen3-8b, input: 8192, output: 1025, {said[1:]}")
    [found] = caught.value.problems
    assert found.path == f"workloads.reasoning.{path}"
    assert words in found.message


def test_arrivals_of_a_file(tmp_path: Path) -> None:
    lengths = "input: 8192, output: 1025, arrivals: log.csv"
    rows = "\n".join(str(k / 2) for k in range(601))  # two a second for 300 s
    found = beside(tmp_path, "log.csv", f"time\n{rows}\n", lengths).workloads["reasoning"]
    assert found.rate == pytest.approx(2.0)
    assert found.rate_from == "mean of 601 arrivals in log.csv"
    burst = "\n".join(["0"] * 5 + ["10"] * 15 + ["20"] * 5 + ["30"])
    planned = beside(tmp_path, "log.csv", f"time\n{burst}\n", f"{lengths}, plan_for: p99 of 10 s windows")
    assert planned.workloads["reasoning"].rate == pytest.approx(1.5)
    dates = "timestamp,user\n2026-01-31 12:00:00.5,a\n2026-01-31 12:00:10.5,b\n"
    assert beside(tmp_path, "log.csv", dates, lengths).workloads["reasoning"].rate == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("text", "more", "words"),
    [
        ("time\n1\n", "", "holds 1 arrivals"),
        ("time\n1\n1\n", "", "all arrivals are in the same second"),
        ("when\n1\n2\n", "", "has no column of times"),
        ("time\n1\nsoon\n", "", "row in line 3 of the file: not of the kind"),
        ("time\n1\n2\n", ", plan_for: p95 of 5-minute windows", "less than a window"),
    ],
)
def test_a_file_of_arrivals_that_is_none(tmp_path: Path, text: str, more: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        beside(tmp_path, "log.csv", text, f"input: 8192, output: 1025, arrivals: log.csv{more}")


# --- how long ---------------------------------------------------------------------------------------


def test_a_mix_of_lengths() -> None:
    data = "workloads.reasoning={model: qwen3-8b, rate: 2/s, "
    found = eight(f"{data}{MIX.replace('=', ': ')}}}").workloads["reasoning"]
    assert found.mean_input == pytest.approx(0.3 * 1000 + 0.7 * 8192)
    assert found.mean_output == pytest.approx(0.3 * 200 + 0.7 * 1025)
    assert (found.longest_input, found.longest_total) == (8192, 9217)


def test_lengths_stand_alone() -> None:
    with pytest.raises(BadInput) as caught:
        eight(f"workloads.reasoning.{MIX}")
    assert [(p.path, p.message) for p in caught.value.problems] == [
        (f"workloads.reasoning.{key}", "stands beside lengths") for key in ("input", "output")
    ]


@pytest.mark.parametrize(
    ("lengths", "path", "message", "accepted"),
    [
        ("[{share: 0.9, input: 9, output: 9}]", "", "the shares do not add up to 100 %", "shares that do"),
        ("[]", "", "is empty", "at least 1 item"),
        (
            "[{share: 1, input: 9, output: 9, cached: 9}]",
            "[0].cached",
            "not less than the input",
            "0 to 8: at least one input token is computed",
        ),
        ("[{share: 0, input: 9, output: 9}, {share: 1, input: 9, output: 9}]", "[0].share", "is too small", "a share"),
    ],
)
def test_lengths_that_are_none(lengths: str, path: str, message: str, accepted: str) -> None:
    with pytest.raises(BadInput) as caught:
        eight(f"workloads.reasoning={{model: qwen3-8b, rate: 2/s, lengths: {lengths}}}")
    [found] = caught.value.problems
    assert (found.path, found.message) == (f"workloads.reasoning.lengths{path}", message)
    assert accepted in (found.accepted or "")


@pytest.mark.parametrize(
    "columns", ["input,output,count\n512,128,30\n4096,512,70\n", "input,output,share\n512,128,30%\n4096,512,0.7\n"]
)
def test_a_histogram_is_a_list_of_classes(tmp_path: Path, columns: str) -> None:
    found = beside(tmp_path, "h.csv", columns, "rate: 2/s, histogram: h.csv").workloads["reasoning"]
    assert [one.share for one in found.classes] == pytest.approx([0.3, 0.7])
    assert [(one.input, one.output) for one in found.classes] == [(512, 128), (4096, 512)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("input,output,share\n512,128,0.5\n1,1,0.6\n", "the shares do not add up to 1"),
        ("input,output\n512,128\n", "has not the columns of a histogram"),
        ("input,output,count\n0,128,5\n", "row in line 2 of the file: input is no length"),
        ("input,output,count\n512,128,-5\n", "row in line 2 of the file: count is no weight"),
        ("input,output,count\n512,128,0\n", "all counts are 0"),
        ("", "has not the columns of a histogram"),
    ],
)
def test_a_histogram_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        beside(tmp_path, "h.csv", text, "rate: 2/s, histogram: h.csv")


# --- how quick, how many ----------------------------------------------------------------------------


def test_targets_are_times_and_never_percentiles() -> None:
    assert workload("targets={ttft: 2 s, tpot: 50 ms}").targets.tpot == pytest.approx(0.05)
    found = problem("targets.ttft={p95: 2 s}")
    assert found.message == "percentiles are not supported yet, and not read as anything else"
    assert found.accepted == "a time: a hard limit for every request, without queueing"
    assert problem("targets.tpot=0 s").message == "is too small"
    assert problem("targets.tpop=1 s").message == 'unknown key; did you mean "tpot"?'


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        (
            ["workloads.reasoning.minimum_share=0", "service.drain=null"],
            "workloads.reasoning.minimum_share",
            "too small",
        ),
        (["workloads.reasoning.minimum_share=0.5"], "workloads.reasoning.minimum_share", "beside service.drain"),
        (
            ["workloads.reasoning.minimum_share=0.5", "service.drain=null", "objective=throughput"],
            "workloads.reasoning.minimum_share",
            "means nothing to the objective throughput",
        ),
        (["workloads.reasoning.value=0"], "workloads.reasoning.value", "greater than 0"),
        (["workloads.reasoning.pin=h200"], "workloads.reasoning.allow[0]", "no group of this name"),
        (
            ["workloads.reasoning.pin=h20", "workloads.reasoning.deny=[a100]"],
            "workloads.reasoning.pin",
            "stands beside",
        ),
    ],
)
def test_dropping_and_pinning(changes: list[str], path: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        eight(*changes)
    found = caught.value.problems[0]
    assert found.path == path
    assert message in found.message


def test_a_pin_is_the_one_group_allowed() -> None:
    made: Any = workload("pin=h20")
    assert (made.allow, made.may_use("a100"), made.may_use("h20")) == (["h20"], False, True)


def test_a_mistyped_key_gets_the_nearest_of_those_that_stand_for_others() -> None:
    assert problem("thinktime=4 s").message == 'unknown key; did you mean "think_time"?'
    assert problem("histogramm=a.csv").message == 'unknown key; did you mean "histogram"?'


def test_a_device_is_no_histogram() -> None:
    for name in ("/dev/zero", "/dev/null", "/tmp"):
        with pytest.raises(BadInput, match=r"not a file that can be read whole|cannot be read"):
            tabular.histogram(name, ("workloads", "w", "histogram"), Path("."))


def test_dispersions_next_to_one_are_poisson() -> None:
    counts = {traffic._count(30.0, dispersion, 0.95) for dispersion in (1.0, 1.0 + 1e-12, 1.0 + 1e-7)}
    assert counts == {39}  # of the Poisson law with mean 30, by tables
    assert traffic._count(30.0, 1.0 + 1e-5, 0.95) == 39
    assert traffic._count(30.0, 3.0, 0.95) > 39
