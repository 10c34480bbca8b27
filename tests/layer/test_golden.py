"""`inferplan layer`: worked examples and exercises of sections 9.3 and 9.4, from files to golden values."""

from functools import cache
from typing import Any

import pytest

from api.layer.answer import answer
from models.layer.asked import LayerQuestion
from models.layer.checks import check
from models.load import question
from tests.golden.reading import ENTRIES, SIZES
from tests.instances import ROOT

FILES = ROOT / "instances" / "chapter" / "layer"
GOLDEN = {entry.id: entry for entry in ENTRIES}
EXPERTS, APART, MLA = "experts-on-cpu-or-gpu", "attention-and-experts-apart", "mla-state-handed-over"
STAY, BEHIND = "experts-that-stay", "cpu-that-falls-behind"
HOT, EVEN, SKEW, COPIES, ROWS = (
    "hot-expert-group",
    "balanced-expert-groups",
    "skew-of-wide-groups",
    "copies-of-hot-experts",
    "padded-rows",
)
AVX, ONE_ROW, FAR = "offload.kernel=avx512", "offload.rows=1", "offload.read=remote"
BYTE, ONE = "offload.weights=int8", "offload.over=1"
ONE_LINK, FP8, HGX = "exchange.between=50 GB/s", "exchange.dispatch=fp8", "exchange.link=450 GB/s"
OTHER, SMALL = "copies.link=50 GB/s", "copies.spare=32 MiB"
FAST = "separate.link=50 GB/s"

EXACT: list[tuple[str, str, tuple[str, ...], str]] = [
    # Example 9.3, section 9.3.2 and the worked example
    ("ex-9-3-expert-params", EXPERTS, (), "offload.expert_params"),
    ("ex-9-3-expert-bytes", EXPERTS, (), "offload.expert_bytes"),
    ("ex-9-3-eight-experts", EXPERTS, (), "offload.touched.bytes"),
    ("ex-9-3-cpu-read-8", EXPERTS, (), "offload.touched.read_s"),
    ("ex-9-3-cpu-1-row", EXPERTS, (AVX, ONE_ROW), "offload.cpu_s"),
    ("ex-9-3-gpu-1-row", EXPERTS, (AVX, ONE_ROW), "offload.gpu_s"),
    ("ex-9-3-avx-128", EXPERTS, (AVX,), "offload.cpu_s"),
    ("ex-9-3-gpu-128", EXPERTS, (AVX,), "offload.gpu_s"),
    ("ex-9-3-amx-128", EXPERTS, (), "offload.cpu_s"),
    ("ex-9-3-avx-last-cpu", EXPERTS, (AVX,), "offload.last_cpu_rows"),
    ("ex-9-3-avx-first-gpu", EXPERTS, (AVX,), "offload.first_gpu_rows"),
    ("ex-9-3-amx-last-cpu", EXPERTS, (), "offload.last_cpu_rows"),
    ("ex-9-3-local-read", EXPERTS, (ONE,), "offload.touched.read_s"),
    ("ex-9-3-numa-read", EXPERTS, (ONE, FAR), "offload.touched.read_s"),
    ("ex-9-3-amx-compute-128", EXPERTS, (ONE,), "offload.sockets.0.seconds"),
    ("ex-9-3-avx-compute-128", EXPERTS, (ONE, AVX), "offload.sockets.0.seconds"),
    ("worked-knee-avx", EXPERTS, (AVX,), "offload.cpu_knee_rows"),
    ("worked-knee-amx", EXPERTS, (), "offload.cpu_knee_rows"),
    ("worked-knee-avx-numa", EXPERTS, (AVX, FAR), "offload.cpu_knee_rows"),
    ("worked-knee-amx-numa", EXPERTS, (FAR,), "offload.cpu_knee_rows"),
    # Section 9.3.3
    ("s9-3-3-layer-32", STAY, (), "offload.resident.layer_bytes"),
    ("s9-3-3-resident-32", STAY, (), "offload.resident.bytes"),
    ("s9-3-3-resident-16", STAY, ("offload.keep=16",), "offload.resident.bytes"),
    ("s9-3-3-layer-128", STAY, (), "offload.touched.bytes"),
    ("s9-3-3-read-128", STAY, (), "offload.touched.read_s"),
    ("s9-3-3-read-8", STAY, ("offload.over=8",), "offload.touched.read_s"),
    ("s9-3-3-rows-even", STAY, (), "offload.sides.0.rows"),
    ("s9-3-3-rows-hot", STAY, ("offload.over=8",), "offload.sides.0.rows"),
    ("s9-3-3-dispatches", STAY, (), "offload.sockets.0.rows"),
    ("s9-3-3-active-experts", STAY, (), "offload.touched.random_experts"),
    ("s9-3-3-active-bytes", STAY, (), "offload.touched.random_bytes"),
    # Exercise 9-3
    ("xr-9-3-knee-avx-220-1byte", EXPERTS, (AVX, BYTE), "offload.cpu_knee_rows"),
    ("xr-9-3-knee-avx-125-1byte", EXPERTS, (AVX, BYTE, FAR), "offload.cpu_knee_rows"),
    ("xr-9-3-knee-amx-220-1byte", EXPERTS, (BYTE,), "offload.cpu_knee_rows"),
    ("xr-9-3-knee-amx-125-1byte", EXPERTS, (BYTE, FAR), "offload.cpu_knee_rows"),
    ("xr-9-3-time-avx-220-1", EXPERTS, (AVX, ONE_ROW), "offload.sides.0.cpu_s"),
    ("xr-9-3-time-avx-220-128", EXPERTS, (AVX,), "offload.sides.0.cpu_s"),
    ("xr-9-3-time-avx-125-1", EXPERTS, (AVX, ONE_ROW, FAR), "offload.sides.0.cpu_s"),
    ("xr-9-3-time-avx-125-128", EXPERTS, (AVX, FAR), "offload.sides.0.cpu_s"),
    ("xr-9-3-time-amx-220-1", EXPERTS, (ONE_ROW,), "offload.sides.0.cpu_s"),
    ("xr-9-3-time-amx-220-128", EXPERTS, (), "offload.sides.0.cpu_s"),
    ("xr-9-3-time-amx-125-1", EXPERTS, (ONE_ROW, FAR), "offload.sides.0.cpu_s"),
    ("xr-9-3-time-amx-125-128", EXPERTS, (FAR,), "offload.sides.0.cpu_s"),
    # Exercise 9-5
    ("xr-9-5-weights", BEHIND, (), "offload.demand.weights"),
    ("xr-9-5-ceiling", BEHIND, (), "offload.demand.ceiling_per_s"),
    ("xr-9-5-growth", BEHIND, (), "offload.demand.growth_per_s"),
    ("xr-9-5-active-256", BEHIND, (), "offload.touched.random_experts"),
    ("xr-9-5-rows-256", BEHIND, (), "offload.sides.0.rows"),
    # Example 9.4, exercises 9-4 and 9-11
    ("ex-9-4-one-way", APART, (), "separate.af.message_bytes"),
    ("ex-9-4-messages", APART, (), "separate.af.messages"),
    ("ex-9-4-bytes", APART, (), "separate.af.step_bytes"),
    ("ex-9-4-payload-time", APART, (), "separate.af.step_payload_s"),
    ("ex-9-4-startup-time", APART, (), "separate.af.step_startup_s"),
    ("ex-9-4-step-time", APART, (), "separate.af.step_s"),
    ("ex-9-4-prefill-bytes", APART, (), "separate.af.prefill_bytes"),
    ("ex-9-4-prefill-time", APART, ("separate.startup=0 s",), "separate.af.prefill_s"),
    ("ex-9-4-alpha-star-gqa-25", APART, (), "separate.critical_startup_s"),
    ("ex-9-4-alpha-star-gqa-50", APART, (FAST,), "separate.critical_startup_s"),
    ("ex-9-4-alpha-star-mla-25", MLA, (), "separate.critical_startup_s"),
    ("ex-9-4-alpha-star-mla-50", MLA, (FAST,), "separate.critical_startup_s"),
    ("ex-9-4-1024-steps", APART, (), "separate.requests.0.decode_s"),
    ("s9-3-4-serial", APART, (), "pipeline.serial_s"),
    ("s9-3-4-pipeline", APART, (), "pipeline.pipelined_s"),
    ("s9-3-4-pipeline-gain", APART, (), "pipeline.saving_s"),
    *(
        (f"xr-9-4-{what}-alpha-{startup}", APART, (f"separate.startup={startup} us",), f"separate.{path}")
        for startup in (1, 5, 20)
        for what, path in (
            ("pd", "pd.seconds"),
            ("72-parts", "pd.in_parts_s"),
            ("af-decode", "requests.0.decode_s"),
            ("af-prefill", "af.prefill_s"),
        )
    ),
    ("xr-9-4-af-request-alpha-5", APART, (), "separate.requests.0.af_s"),
    ("xr-9-11-bytes", MLA, (), "separate.pd.bytes"),
    ("xr-9-11-handoff-25", MLA, (), "separate.pd.seconds"),
    ("xr-9-11-handoff-50", MLA, (FAST,), "separate.pd.seconds"),
    ("xr-9-11-link-rate-25", MLA, (), "separate.pd.most_per_s"),
    ("xr-9-11-link-rate-50", MLA, (FAST,), "separate.pd.most_per_s"),
    ("xr-9-11-af-1024-25", MLA, (), "separate.requests.0.decode_s"),
    ("xr-9-11-af-4096-25", MLA, (), "separate.requests.1.decode_s"),
    # Section 9.4.1 and Example 9.5
    ("s9-4-1-dispatches", SKEW, (), "skew.dispatches"),
    ("s9-4-1-other-rows", SKEW, (), "skew.other_rows"),
    *(
        (f"s9-4-1-{what}-rows-ep{cards}", SKEW, (), f"skew.degrees.{index}.{key}_rows")
        for index, cards in enumerate((8, 32, 256))
        for what, key in (("hot", "busiest"), ("mean", "mean"))
    ),
    ("s9-4-1-hot-recv-ep256", SKEW, (), "skew.degrees.2.busiest_receive_s"),
    ("s9-4-1-mean-recv-ep256", SKEW, (), "skew.degrees.2.mean_receive_s"),
    ("s9-4-1-hot-shrink", SKEW, (), "skew.busiest_shrinks"),
    ("s9-4-1-mean-shrink", SKEW, (), "skew.mean_shrinks"),
    ("s9-4-1-idle-ep256", SKEW, (), "skew.degrees.2.idle_share"),
    (
        "s9-4-1-ep144-experts",
        SKEW,
        ("skew.cards=144", "skew.redundant=32", "skew.random=null"),
        "skew.degrees.0.experts_per_card",
    ),
    *(
        (f"ex-9-5-{case}-{what}", name, changes, f"exchange.{path}")
        for case, name, changes in (
            ("even", EVEN, ()),
            ("hot", HOT, ()),
            ("one-link", EVEN, (ONE_LINK,)),
            ("hot-fp8", HOT, (FP8,)),
        )
        for what, path in (
            ("dispatch", "dispatch.seconds"),
            ("compute", "compute.seconds"),
            ("combine", "combine.seconds"),
            ("total", "staged_s"),
        )
    ),
    ("ex-9-5-total-bytes", HOT, (), "exchange.dispatch.bytes"),
    ("ex-9-5-skew-hot", HOT, (), "exchange.skew"),
    ("ex-9-5-skew-even", EVEN, (), "exchange.skew"),
    ("ex-9-5-comm-share", EVEN, (), "exchange.exchange_share"),
    ("ex-9-5-task-time", EVEN, (), "exchange.row_compute_s"),
    ("ex-9-5-row-time", EVEN, (), "exchange.row_link_s"),
    ("s9-4-2-nic-crossover", HOT, (), "exchange.messages.crossover_bytes"),
    ("s9-4-3-pipeline", EVEN, (), "exchange.micro_batches.seconds"),
    ("s9-4-3-pipeline-saving", EVEN, (), "exchange.micro_batches.saving_s"),
    # Example 9.6, exercise 9-6 and section 9.4.3
    ("ex-9-6-copied", COPIES, (), "copies.copied_bytes"),
    ("ex-9-6-rows-after", COPIES, (), "copies.busiest_rows_after"),
    ("ex-9-6-time-before", COPIES, (), "copies.before_s"),
    ("ex-9-6-time-after", COPIES, (), "copies.after_s"),
    ("ex-9-6-saving-exact", COPIES, (), "copies.saving_s"),
    ("ex-9-6-copy-nvlink-exact", COPIES, (), "copies.copy_s"),
    ("ex-9-6-copy-cx7-exact", COPIES, (OTHER,), "copies.copy_s"),
    ("ex-9-6-payback-nvlink", COPIES, (), "copies.payback_batches"),
    ("ex-9-6-payback-cx7", COPIES, (OTHER,), "copies.payback_batches"),
    ("ex-9-6-fits-64", COPIES, (), "copies.fits"),
    ("ex-9-6-fits-32", COPIES, (SMALL,), "copies.fits"),
    ("s9-4-3-valid-rows", ROWS, (), "tiles.valid.rows"),
    ("s9-4-3-pad-nonempty", ROWS, (), "tiles.non_empty.rows"),
    ("s9-4-3-pad-all", ROWS, (), "tiles.every.rows"),
    ("s9-4-3-pad-nonempty-factor", ROWS, (), "tiles.non_empty.ratio"),
    ("s9-4-3-pad-all-factor", ROWS, (), "tiles.every.ratio"),
    ("xr-9-6-flops-valid", ROWS, (), "tiles.valid.flops"),
    ("xr-9-6-flops-nonempty-32", ROWS, (), "tiles.non_empty.flops"),
    ("xr-9-6-flops-all-32", ROWS, (), "tiles.every.flops"),
    ("s9-4-3-merge-wait", ROWS, (), "pipeline.tokens.0.seconds"),
    ("s9-4-3-merge-wait-fast", ROWS, ("pipeline.tokens.one=[0.3 ms, 1.4 ms]",), "pipeline.tokens.0.seconds"),
]
"""Golden id, file, changes, place in the answer."""


@cache
def ask(name: str, changes: tuple[str, ...] = ()) -> Any:
    """The answer to a file, after changes, as a document; it is what the command prints."""
    return answer(question(FILES / f"{name}.yaml", LayerQuestion, check, changes))


def at(document: Any, path: str) -> Any:
    for key in path.split("."):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


@pytest.mark.parametrize(("golden", "name", "changes", "path"), EXACT, ids=[row[0] for row in EXACT])
def test_golden(golden: str, name: str, changes: tuple[str, ...], path: str) -> None:
    entry = GOLDEN[golden]
    assert at(ask(name, changes), path) == pytest.approx(entry.exact * SIZES[entry.unit], rel=1e-12)


@pytest.mark.parametrize(("cards", "index"), [(8, 0), (256, 2)])
def test_random_choices(cards: int, index: int) -> None:
    entry = GOLDEN[f"s9-4-1-random-excess-ep{cards}"]
    found = ask(SKEW)["skew"]["degrees"][index]
    assert 100.0 * (found["random_skew"] - 1.0) == pytest.approx(entry.expected, rel=entry.rel_tol)


@pytest.mark.parametrize(("state", "name"), [("gqa", APART), ("mla", MLA)])
def test_decode_steps_over_the_payload_of_one_handoff(state: str, name: str) -> None:
    found = ask(name)["separate"]
    ratio = found["requests"][0]["decode_s"] / found["pd"]["payload_s"]  # as the chapter takes it, without startup
    assert ratio == pytest.approx(GOLDEN[f"ex-9-4-1024-over-{state}"].exact, rel=1e-12)


def test_the_threshold_of_the_link_at_the_rate_of_the_cluster() -> None:
    needed = ask(MLA)["separate"]["pd"]["needed"]
    assert needed / 1e9 == pytest.approx(GOLDEN["xr-9-11-threshold"].exact, rel=1e-6)  # the file rounds the rate


def test_both_pools_in_one_server() -> None:
    # 40 MiB over 450 GB/s: 93.207 us each way; the card's 390.688 us are the longest stage
    found = ask(HOT, (HGX,))["exchange"]
    assert found["dispatch"]["seconds"] == pytest.approx(93.206755556e-6, rel=1e-9)
    assert found["staged_s"] == pytest.approx(577.101864e-6, rel=1e-8)
    assert found["longest"] == "compute"


def test_contention_that_eats_the_gain_of_two_micro_batches() -> None:
    # Stages of one part: 167.77216, 78.13767, 167.77216 us; with factor f on both exchanges the pipeline takes
    # 78.13767 + 3 x 167.77216 f, on the experts 335.54432 + 2 x 78.13767 f; both shall be 827.36398.
    micro = ask(EVEN)["exchange"]["micro_batches"]
    assert micro["exchange_limit"] == pytest.approx((827.36398127 - 78.13767064) / (3 * 167.77216), rel=1e-9)
    assert micro["compute_limit"] == pytest.approx((827.36398127 - 335.54432) / (2 * 78.13767064), rel=1e-9)
    slowed = ask(ROWS)["pipeline"]
    assert slowed["with_contention_s"] == pytest.approx(slowed["serial_s"], rel=1e-4)  # the file rounds the factor


def test_what_a_hotspot_wins_or_loses() -> None:
    # 240.46821 us a batch against 622.20256 us in the server, 5319.82304 us from another one
    inside, across = ([one["seconds"] for one in ask(COPIES, more)["copies"]["lasting"]] for more in ((), (OTHER,)))
    assert inside == pytest.approx([3225.288840e-6, 14767.763042e-6], rel=1e-8)
    assert across == pytest.approx([-1472.331639e-6, 10070.142562e-6], rel=1e-8)
    assert [one["worth"] for one in ask(COPIES, (OTHER,))["copies"]["lasting"]] == [False, True]
    small = ask(COPIES, (SMALL,))
    assert small["fails"] == ["copies do not fit"]
    assert small["copies"]["payback_batches"] is None
    assert small["copies"]["short_cards"] == [1, 2, 3, 4, 5, 6, 7]


def test_layers_first_that_save_most() -> None:
    budget = "copies.layers={savings: [0.1 ms, 0 s, 0.3 ms, 0.2 ms], memory: 100 MiB}"
    layers = ask(COPIES, (budget,))["copies"]["layers"]
    assert (layers["chosen"], layers["bytes"], layers["all_bytes"]) == ([2, 3], 72 * 2**20, 144 * 2**20)
    whole = "copies.layers={savings: [" + ", ".join(["1 us"] * 94) + "], memory: 288 MiB}"
    layers = ask(COPIES, (whole,))["copies"]["layers"]
    assert layers["all_bytes"] == GOLDEN["s9-4-2-all-layers"].exact * 2**20
    assert len(layers["chosen"]) == 8
