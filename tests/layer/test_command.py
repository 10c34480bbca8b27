"""`inferplan layer`: where answers flip, further conditions by hand, documents, and every kind of bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from tests.layer.test_golden import (
    APART,
    AVX,
    BEHIND,
    COPIES,
    EVEN,
    EXPERTS,
    FILES,
    HOT,
    MLA,
    ONE_LINK,
    SKEW,
    STAY,
    ask,
)

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def running(path: Path, *more: str) -> tuple[int, Any]:
        code = main(["layer", str(path), "--json", *more])
        caught = capsys.readouterr()
        assert caught.err == ""
        return code, json.loads(caught.out)

    return running


# --- where answers flip -------------------------------------------------------------------------------


def flip(block: Any, path: str, of: str) -> Any:
    [found] = [one for one in block["crossovers"] if (one["path"], one["of"]) == (path, of)]
    return found


def set_to(path: str, value: float, unit: str) -> str:
    return f"{path}={value!r} {unit}"


@pytest.mark.parametrize("path", ["offload.link", "offload.startup"])
def test_the_side_of_a_layer_flips_where_it_is_said(path: str) -> None:
    change = (AVX, "offload.rows=64")
    found = flip(ask(EXPERTS, change)["offload"], path, "the layer")
    for factor, side in ((1 - 1e-9, found["below"]), (1 + 1e-9, found["above"])):
        moved = ask(EXPERTS, (*change, set_to(path, found["value"] * factor, found["unit"])))
        assert moved["offload"]["quicker"] == side


@pytest.mark.parametrize(("name", "more"), [(HOT, ()), (EVEN, ()), (EVEN, ("exchange.between=2 TB/s",))])
def test_the_longest_stage_flips_where_it_is_said(name: str, more: tuple[str, ...]) -> None:
    value = flip(ask(name, more)["exchange"], "exchange.link", "the layer")["value"]
    longest = [
        ask(name, (*more, set_to("exchange.link", value * factor, "B/s")))["exchange"]["longest"]
        for factor in (1 - 1e-6, 1 + 1e-6)
    ]
    assert longest == ["dispatch", "compute"]


def test_no_link_of_cards_helps_against_a_narrow_one_between_pools() -> None:
    assert ask(EVEN, (ONE_LINK,))["exchange"]["crossovers"] == []
    found = ask(EVEN, ("exchange.between=100 GB/s",))["exchange"]
    assert (found["dispatch"]["binds"], found["dispatch"]["edges"]) == ("cut", ["switch 0 -> switch 1"])


@pytest.mark.parametrize("batches", [16, 64])
def test_copies_pay_from_the_link_that_is_said(batches: int) -> None:
    value = flip(ask(COPIES)["copies"], "copies.link", f"{batches} batches")["value"]
    # N dt = c (W / B + alpha): B = c W / (N dt - c alpha)
    by_hand = 7 * 36 * 2**20 / (batches * 240.46821253731343e-6 - 35e-6)
    assert value == pytest.approx(by_hand, rel=1e-12)


def test_an_output_and_a_startup_at_which_af_has_taken_longer() -> None:
    found = ask(APART)["separate"]
    assert found["af_dearer_from_step"] == 126  # 48.323382 ms over 0.38359296 ms is 125.98
    assert flip(found, "separate.output", "decode")["value"] == 127
    startup = flip(found, "separate.startup", "decode of 1025 tokens")["value"]
    # 1024 (V_AF / B + 72 a) = V_KV / B + a
    by_hand = (2**30 * 1.125 - 1024 * 576 * 1024) / 25e9 / (1024 * 72 - 1)
    assert startup == pytest.approx(by_hand, rel=1e-9)
    assert flip(ask(MLA)["separate"], "separate.startup", "one step")["value"] == pytest.approx(323.98783098591544e-6)


# --- further conditions -------------------------------------------------------------------------------


def test_experts_in_the_memory_of_two_sockets() -> None:
    # AVX-512 computes 128 rows in 2.68435456 ms; 3 of 4 experts lie at socket 1
    more = (AVX, "offload.rows=[128, 128, 128, 128]", "offload.over=null", "offload.sockets=2")
    found = ask(EXPERTS, (*more, "offload.homes=[1, 0, 1, 1]"))["offload"]
    assert [one["seconds"] for one in found["sockets"]] == pytest.approx([2.68435456e-3, 3 * 2.68435456e-3])
    assert (found["busiest_socket"], found["sockets"][1]["experts"]) == (1, 3)
    assert [one["experts"] for one in ask(EXPERTS, more)["offload"]["sockets"]] == [2, 2]


def test_experts_that_stay_save_the_way_to_host_memory() -> None:
    # 4 rows each: on the GPU 36 MiB over 1019.5 GB/s, 37.0267 us; on the CPU 10 + 2.62144 + 171.585164 us
    found = ask(STAY, ("offload.keep=16",))["offload"]["resident"]
    assert (found["fit"], found["fits"]) == (22, True)  # 80 GB / (94 x 36 MiB) = 22.5
    here, away = 16 * 37748736 / 1019.5e9, 112 * (10e-6 + 2 * 4 * 8192 / 25e9 + 37748736 / 220e9)
    assert (found["in_turn_s"], found["overlapped_s"]) == (pytest.approx(here + away), pytest.approx(away))


def test_two_sockets_compute_twice_as_much() -> None:
    one, two = (ask(BEHIND, (f"offload.sockets={count}",))["offload"]["demand"] for count in (1, 2))
    assert two["ceiling_per_s"] == pytest.approx(2 * one["ceiling_per_s"])
    assert two["growth_per_s"] == 0.0


def test_a_shape_of_its_own_is_as_good_as_a_model() -> None:
    own = "offload.expert={hidden: 4096, width: 1536, experts: 128, chosen: 8, layers: 94}"
    assert ask(STAY, ("offload.model=null", own))["offload"] == ask(STAY)["offload"]


def test_cards_that_have_tokens_and_experts() -> None:
    # 8 rows of 8 KiB at each of 4 cards; each gets 3/4 of them from others. Its server's link carries 2 of 6 rows, and
    # both links together bind: 48 KiB over 60 GB/s; in FP8 half of it
    group = "exchange.group={servers: 2, per_server: 2, inside: 50 GB/s}"
    more = ("exchange.sources=null", group, "exchange.rows=[8, 8, 8, 8]", "exchange.link=10 GB/s")
    found = ask(EVEN, more)["exchange"]
    assert found["dispatch"]["bytes"] == 4 * 6 * 8192
    assert found["dispatch"]["receive_s"] == pytest.approx(6 * 8192 / 60e9)
    assert found["dispatch"]["cut_s"] == pytest.approx(8 * 8192 / 20e9)  # 8 rows from server to server, over 2 ports
    assert found["dispatch"]["binds"] == "cut"
    assert "twice the link inside servers" in [step["change"] for step in found["steps"]]


def test_weights_that_a_card_reads() -> None:
    found = ask(EVEN, ("exchange.experts_per_card=32",))["exchange"]["compute"]
    assert found["read_s"] == found["seconds"] == pytest.approx(32 * 36 * 2**20 / 1675e9)


def test_what_one_change_gives_is_the_answer_to_the_changed_question() -> None:
    steps = {step["change"]: step["staged_s"] for step in ask(HOT)["exchange"]["steps"]}
    assert steps["twice the link of each card"] == ask(HOT, ("exchange.link=100 GB/s",))["exchange"]["staged_s"]
    assert steps["dispatch in FP8"] == ask(HOT, ("exchange.dispatch=fp8",))["exchange"]["staged_s"]
    assert steps["rows spread evenly"] == ask(EVEN)["exchange"]["staged_s"]


def test_second_copies_of_the_first_experts() -> None:
    # 8 experts and 4 copies, 3 slots on each of 4 cards; 16 rows, 5 of them of the first one, 11/7 of each other
    few = ("skew.tokens=8", "skew.chosen=2", "skew.experts=8", "skew.hot=5", "skew.random=null", "skew.cards=4")
    copied = ask(SKEW, (*few, "skew.redundant=4"))["skew"]["degrees"][0]
    # slots: 0 1 2 | 3 4 5 | 6 7 0' | 1' 2' 3'
    other = 11 / 7
    assert copied["busiest_rows"] == pytest.approx(max(2.5 + other, 2.5 * other, 2 * other + 2.5, 1.5 * other))
    assert copied["experts_per_card"] == 3
    single = ask(SKEW, (*few, "skew.cards=1", "skew.redundant=8"))["skew"]["degrees"][0]
    assert (single["busiest_rows"], single["skew"]) == (pytest.approx(16), 1)


def test_parts_that_come_late() -> None:
    # 2 and 3 ms; parts at 0, 9, 9, 9: the second is done at 14, the others 3 ms after each other
    found = ask(APART, ("pipeline.ready=[0 s, 9 ms, 9 ms, 9 ms]",))["pipeline"]
    assert found["with_late_parts_s"] == pytest.approx(20e-3)


def test_a_token_waits_for_its_own_experts_or_for_all() -> None:
    tokens = "pipeline.tokens={a: [1 ms, 2 ms], b: [3 ms]}"
    found = ask(APART, (tokens, "pipeline.merge=0.5 ms"))["pipeline"]["tokens"]
    assert [one["seconds"] for one in found] == pytest.approx([2.5e-3, 3.5e-3])
    assert [one["at_barrier_s"] for one in found] == pytest.approx([3.5e-3, 3.5e-3])


# --- documents and exit codes -------------------------------------------------------------------------

FAILING = {"cpu-that-falls-behind", "experts-that-stay"}


@pytest.mark.parametrize("path", sorted(FILES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_is_told(run: Run, capsys: pytest.CaptureFixture[str], path: Path) -> None:
    code, document = run(path)
    assert document == ask(path.stem)
    assert code == (3 if path.stem in FAILING else 0)
    assert main(["layer", str(path)]) == code
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(path.stem)
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 130


def test_a_key_for_everything_that_may_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "layer"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$defs"]["Exchange"]["properties"]["between"]["description"].startswith("What the switches")
    assert "Xeon-Platinum-8452Y" in json.dumps(schema["$defs"]["Offloading"]["properties"]["cpu"])


# --- bad input ----------------------------------------------------------------------------------------

BAD = """\
schema: 1
name: bad
offload:
  model: Qwen3-8B
  cpu: Xeon-Platinum-8452
  kernel: amx
  gpu: A100-PCIe-40GB
  link: 25 GB
  rows: [1, -2, .nan, many]
  homes: [0, 2, 0, 0]
exchange:
  model: Qwen3-235B-A22B
  gpu: H100-SXM-80GB
  rows: []
  link: 50 GB/s
skew: {tokens: 64, chosen: 8, experts: 128, cards: [8, 256], hot: 65}
copies:
  model: Qwen3-235B-A22B
  gpu: {catalog: H100-SXM-80GB, memory: 80}
  cards: 2
  rows: [8, 8]
  copies: [{expert: 1, to: 1}, {expert: 1, to: 1}, {expert: 0, to: 0}, {expert: 2, to: 1}, {expert: 0, to: 2}]
  link: 450 GB/s
  spare: 64 MiB
separate: {model: Qwen3-8B, link: 25 GB/s, input: 8192, output: [], stateof: DeepSeek-V3}
tiles: {rows: [0, 0], tile: 0}
pipeline: {stages: {a: 1 ms}, batches: 2, slower: {b: 2, a: 0.5}, ready: [0 s]}
"""


def problems(document: Any) -> dict[str, tuple[int, str]]:
    return {one["path"]: (one["line"], one["message"]) for one in document["error"]["problems"]}


def test_everything_wrong_is_told_at_once_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    code, document = run(tmp_path / "bad.yaml")
    assert code == 2
    assert problems(document) == {
        "offload.model": (4, "is a dense model"),
        "offload.cpu": (5, 'is no name of the catalog; did you mean "Xeon-Platinum-8452Y"?'),
        "offload.link": (8, "is a size in bytes"),
        "offload.rows[1]": (9, "is negative"),
        "offload.rows[2]": (9, "is not finite"),
        "offload.rows[3]": (9, "is not a number of rows"),
        "offload.homes[1]": (10, "no such socket"),
        "exchange.sources": (11, "missing, and so is group"),
        "exchange.rows": (14, "is empty"),
        "skew.cards[1]": (16, "some cards would have no expert"),
        "skew.hot": (16, "is more than one row of each token"),
        "copies.gpu.memory": (19, "has no unit"),
        "copies.copies[1].to": (22, "the card has expert 1 already"),
        "copies.copies[2].to": (22, "the card has expert 0 already"),
        "copies.copies[3].expert": (22, "no such expert"),
        "copies.copies[4].to": (22, "no such card"),
        "separate.output": (25, "is empty"),
        "separate.stateof": (25, 'unknown key; did you mean "state_of"?'),
        "tiles.rows": (26, "no expert has any"),
        "tiles.tile": (26, "input should be greater than or equal to 1"),
        "pipeline.slower.b": (27, "no such stage"),
        "pipeline.slower.a": (27, "input should be greater than or equal to 1"),
        "pipeline.ready": (27, "1 times for 2 micro-batches"),
    }
    assert all(one["accepted"] for one in document["error"]["problems"] if "unknown key" not in one["message"])


ONE_BAD = {
    EXPERTS: {
        "offload.kernel=avx": ("offload.kernel", 'the CPU has no such kernel; did you mean "avx512"?'),
        "offload.cpu={catalog: Xeon-Platinum-8452Y, kernels: {avx512: 2 TFLOP/s}}": (
            "offload.kernel",
            "the CPU has no such kernel",
        ),
        "offload.cpu={name: mine, cores: 8, memory: 64 GB, bandwidth: 50 GB/s, kernels: {amx: 5 TFLOP/s}}": (
            "offload.cpu.remote_bandwidth",
            "missing",
        ),
        "offload.rows=null": ("offload.tokens", "missing, and so are rows"),
        "offload.tokens=64": ("offload.tokens", "stands beside rows"),
        "offload.over=129": ("offload.over", "the layer has 128 experts"),
        "offload.rows=0": ("offload.rows", "no expert has any"),
        "offload.rows=[1, 2]": ("offload.over", "stands beside a list of rows"),
        "offload.homes=[0, 0]": ("offload.homes", "2 for 8 experts"),
        "offload.model=null": ("offload.model", "missing: whose experts"),
        "offload.expert={hidden: 4096, width: 1536}": ("offload.expert", "stands beside a model"),
        "offload.gpu=A100": ("offload.gpu", 'is no name of the catalog; did you mean "A100-PCIe-40GB"?'),
    },
    STAY: {
        "offload.over=7": ("offload.over", "each token chooses 8 experts"),
        "offload.keep=129": ("offload.keep", "the layer has 128 experts"),
    },
    HOT: {
        "exchange.group={servers: 1, per_server: 4, inside: 450 GB/s}": (
            "exchange.group",
            "stands beside sources",
        ),
        "exchange.rows=[0, 0]": ("exchange.rows", "no expert has any"),
    },
    SKEW: {
        "skew.cards=300": ("skew.cards", "some cards would have no expert"),
        "skew.redundant=257": ("skew.redundant", "is more than a second copy of each"),
        "skew.chosen=257": ("skew.chosen", "is more than there are"),
        "skew.link=null": ("skew.link", "missing: a time needs bytes and a link"),
        "skew.tokens=1000000": ("skew.random.batches", "too many choices to draw"),
    },
    COPIES: {
        "copies.homes=[0, 0]": ("copies.homes", "2 for 8 experts"),
        "copies.homes=[0, 0, 0, 0, 0, 0, 0, 8]": ("copies.homes[7]", "no such card"),
    },
}


@pytest.mark.parametrize(
    ("name", "change", "path", "message"),
    [(name, change, *told) for name, changes in ONE_BAD.items() for change, told in changes.items()],
)
def test_one_thing_wrong(run: Run, name: str, change: str, path: str, message: str) -> None:
    code, document = run(FILES / f"{name}.yaml", "--set", change)
    assert code == 2
    assert [(one["path"], one["message"]) for one in document["error"]["problems"]] == [(path, message)]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("schema: 1\nname: x", "", "asks nothing"),
        ("schema: 1\nname: x\nskew: 3", "skew", "is not a mapping of keys"),
        ("schema: 2\nname: x\ntiles: {rows: [1], tile: 8}", "schema", "is none of the words that can stand here"),
        ("[1, 2]", "", "the top level is a list"),
    ],
)
def test_a_file_that_asks_nothing(run: Run, tmp_path: Path, text: str, path: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(text + "\n")
    code, document = run(tmp_path / "bad.yaml")
    assert code == 2
    assert (path, message) in [(one["path"], one["message"]) for one in document["error"]["problems"]]


def test_a_shape_that_leaves_out_what_is_needed(run: Run) -> None:
    own = ("--set", "offload.model=null", "--set", "offload.expert={hidden: 4096, width: 1536}")
    code, document = run(FILES / f"{STAY}.yaml", *own)
    assert code == 2
    assert {one["path"] for one in document["error"]["problems"]} == {
        f"offload.expert.{key}" for key in ("experts", "chosen", "layers")
    }
