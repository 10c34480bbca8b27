"""`inferplan layer`: where answers flip, further conditions by hand, and documents."""

import json
import re
import typing
from pathlib import Path
from typing import Any

import pytest

from api.cli import main
from models.layer.asked import SECTIONS, LayerQuestion
from tests.docs.markdown import rows
from tests.instances import ROOT
from tests.layer.conftest import Run
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
    [enough] = ask(EVEN, (ONE_LINK,))["exchange"]["crossovers"]
    assert (enough["path"], enough["value"]) == ("exchange.between", pytest.approx(200e9))  # four cards of 50 GB/s
    hot = flip(ask(HOT, (ONE_LINK,))["exchange"], "exchange.between", "an exchange")
    assert hot["value"] == pytest.approx(64 * 2**20 / (40 * 2**20 / 50e9))
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


@pytest.mark.parametrize(("weights", "size", "first"), [("fp8", 18, 36), ("int8", 18, 36), ("int4", 9, 18)])
def test_narrower_weights_bring_the_gpu_forward(weights: str, size: int, first: int) -> None:
    # moving 9 MiB: 5 + 377.48736 + 12.13786 us; computing: 10 + 21.62688 us a row: equal at 17.8. 18 MiB: at 35.8
    found = ask(EXPERTS, (AVX, f"offload.weights={weights}"))["offload"]
    assert (found["expert_bytes"], found["first_gpu_rows"]) == (size * 2**20, first)


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


def test_a_batch_in_place_of_rows() -> None:
    batch = ("exchange.rows=null", "exchange.tokens=1024", "exchange.cards=4")
    assert ask(EVEN, batch)["exchange"] == ask(EVEN)["exchange"]
    # the first of 128 experts gets 512 of 8192 rows, each of 31 others on its card 7680 / 127
    hot = ask(EVEN, (*batch, "exchange.hot=512"))["exchange"]["rows"]
    assert hot == pytest.approx([512 + 31 * 7680 / 127] + 3 * [32 * 7680 / 127])


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
    assert schema["$defs"]["Copies"]["properties"]["weights"]["description"].startswith("Of the experts")
    assert "weights" not in schema["$defs"]["Llm"]["required"]
    assert "Xeon-Platinum-8452Y" in json.dumps(schema["$defs"]["Offloading"]["properties"]["cpu"])


def test_every_key_has_a_row() -> None:
    page = (ROOT / "docs" / "how-to" / "cost-a-layer.md").read_text(encoding="utf-8")
    told: set[str] = set()
    for row in rows(page.partition("## Keys")[2]):
        section = ""
        for key in re.findall(r"`([a-z_.]+)`", row[0]):
            section = key.rpartition(".")[0] or section
            told.add(".".join(filter(None, (section, key.rpartition(".")[2]))))
    shared = {"model", "expert", "weights", "gpu", "efficiency"}
    keys = {
        key if key in shared else f"{section}.{key}"
        for section in SECTIONS
        for key in typing.get_args(LayerQuestion.model_fields[section].annotation)[0].model_fields
    }
    assert told == keys
