"""Units of several GPUs, what may be bought, what was measured, and what runs today: bad values and good ones."""

import json
from typing import Any

import pytest

from models.errors import BadInput
from tests.instances import eight

UNIT = {"group": "h20", "model": "qwen3-8b", "rates": {"reasoning": "0.5/s"}}
BUNDLE = {"cards": {"a100": 4}, "price": "4/h"}
STEP = {"price": "1/h", "at_most": 2}


def measured(**changes: Any) -> str:
    return f"measured.m={json.dumps({**UNIT, **changes})}"


def bundle(name: str = "b", **changes: Any) -> str:
    return f"hardware.bundles.{name}={json.dumps({**BUNDLE, **changes})}"


def step(**changes: Any) -> str:
    return f"hardware.links.rdma.step={json.dumps({**STEP, **changes})}"


def current(**pool: Any) -> str:
    return f"current=[{json.dumps({'group': 'h20', 'units': 4, **pool})}]"


MODEL, GROUP = "models.qwen3-8b", "hardware.groups.a100"
WINDOW, SLIDES = f"{MODEL}.sliding_window=4096", ["sliding_attention"] * 36


@pytest.mark.parametrize(
    ("changes", "path", "message", "accepted"),
    [
        # how units are cut
        ([f"{MODEL}.tp=3"], f"{MODEL}.tp[0]", "does not divide the heads and widths of the model", "one of 1, 2, 4, 8"),
        ([f"{MODEL}.tp=[2, 2]"], f"{MODEL}.tp[1]", "named twice", "each degree once"),
        ([f"{MODEL}.tp=[]"], f"{MODEL}.tp", "is empty", "at least 1 item"),
        ([f"{MODEL}.tp=0"], f"{MODEL}.tp[0]", "greater than or equal to 1", "1 or more"),
        ([f"{MODEL}.tp=two"], f"{MODEL}.tp", "is not a list", "a list"),
        ([f"{MODEL}.pp=37"], f"{MODEL}.pp[0]", "more stages than layers", "at most 36"),
        ([f"{GROUP}.tp=3"], f"{GROUP}.tp", "none of these divides the heads and widths", "one of 1, 2, 4, 8"),
        ([f"{GROUP}.pp=[40, 48]"], f"{GROUP}.pp", "none of these is at most the layers of a model", "one of 1, 2, 3"),
        ([f"{GROUP}.tp=[1, 8]"], f"{GROUP}.tp[1]", "more than the 4 GPUs of a server", "at most 4"),
        ([f"{GROUP}.scale_up=NVLink-9"], f"{GROUP}.scale_up", "not in the catalog of links", "NVLink-3"),
        ([f"{GROUP}.scale_up={{startup: 1 us}}"], f"{GROUP}.scale_up.bandwidth", "missing", ""),
        # models
        ([f"{MODEL}.num_experts=8"], f"{MODEL}.num_experts_per_tok", "makes it a mixture of experts", "1 or more"),
        (
            [f"{MODEL}.num_experts=8", f"{MODEL}.num_experts_per_tok=9"],
            f"{MODEL}.num_experts_per_tok",
            "more than the 8 there are",
            "at most 8",
        ),
        ([f"{MODEL}.kv_lora_rank=512"], f"{MODEL}.qk_nope_head_dim", "kv_lora_rank makes it an MLA model", "a whole"),
        # kinds of layers
        ([f"{MODEL}.layer_types=[full_attention]"], f"{MODEL}.layer_types", "one kind for each of", "a list of 36"),
        (
            [f"{MODEL}.layer_types=[{', '.join(['chunked_attention'] * 36)}]"],
            f"{MODEL}.layer_types[35]",
            "none of the words",
            "'sliding_attention'",
        ),
        ([f"{MODEL}.layer_types=[{', '.join(SLIDES)}]"], f"{MODEL}.sliding_window", "has sliding_attention", "tokens"),
        ([f"{MODEL}.sliding_window_pattern=6"], f"{MODEL}.sliding_window", "pattern has a window", "tokens"),
        ([f"{MODEL}.sliding_window=0"], f"{MODEL}.sliding_window", "greater than or equal to 1", "1 or more"),
        (
            [WINDOW, f"{MODEL}.sliding_window_pattern=6", f"{MODEL}.layer_types=[{', '.join(SLIDES)}]"],
            f"{MODEL}.layer_types",
            "contradicts sliding_window_pattern = 6",
            "full_attention in each layer that 6 divides",
        ),
        (
            [WINDOW, f"{MODEL}.sliding_window_pattern=6", f"{MODEL}.full_attention_interval=4"],
            f"{MODEL}.full_attention_interval",
            "beside sliding_window_pattern",
            "one of them",
        ),
        (
            [f"{MODEL}.full_attention_interval=4"],
            f"{MODEL}.linear_num_key_heads",
            "layers have linear attention",
            "or recurrent_state",
        ),
        (
            [f"{MODEL}.full_attention_interval=4", f"{MODEL}.linear_num_key_heads=16"],
            f"{MODEL}.linear_conv_kernel_dim",
            "layers have linear attention",
            "a whole number",
        ),
        ([f"{MODEL}.recurrent_state=1 MB"], f"{MODEL}.recurrent_state", "no layer has linear", "linear_attention"),
        (
            [f"{MODEL}.handoff_state={{catalog: Qwen3-32B, sliding_window_pattern: 6}}"],
            f"{MODEL}.handoff_state.sliding_window",
            "pattern has a window",
            "tokens",
        ),
        # what may be bought
        ([bundle(cards={"a10": 4})], "hardware.bundles.b.cards.a10", "no group of this name", "one of a100, h20"),
        ([bundle(cards={})], "hardware.bundles.b.cards", "is empty", "at least 1 item"),
        ([bundle(price=None)], "hardware.bundles.b.price", "missing: the objective is a cost", "a price of one bundle"),
        ([bundle("a100")], "hardware.bundles.a100", "the name is taken by a group", "a new name"),
        (
            [f"{GROUP}.servers=unlimited", bundle()],
            "hardware.bundles.b.cards.a100",
            "rented as needed already",
            "0 where",
        ),
        ([f"{GROUP}.servers=unlimited", "objective=throughput"], "objective", "has no limit with", "at_most for every"),
        ([bundle(), "objective=headroom"], "objective", "has no limit with hardware.bundles.b", "at_most for every"),
        ([f"{GROUP}.rent=rack"], f"{GROUP}.rent", "none of the words", "'gpu' or 'server'"),
        (
            [f"{GROUP}.servers=unlimited", "hardware.links.rdma.per=server"],
            "hardware.links.rdma.per",
            "ports of servers that are bought are not supported yet: a100",
            "link, with ports",
        ),
        ([step(price=None)], "hardware.links.rdma.step.price", "", ""),
        ([step(at_most=0)], "hardware.links.rdma.step.at_most", "greater than or equal to 1", "1 or more"),
        # what was measured, and what runs today
        ([measured(group="a10")], "measured.m.group", "no group of this name", "one of a100, h20"),
        ([measured(model="qwen")], "measured.m.model", "no model of this name", "one of qwen3-8b"),
        ([measured(rates={})], "measured.m", "states no rate", "rates by workload, or a table"),
        ([measured(rates={"chat": "1/s"})], "measured.m.rates.chat", "no workload of this name", "one of reasoning"),
        ([measured(stage="prefill", scheme="chunked")], "measured.m.scheme", "only for units that serve whole", "both"),
        ([measured(tp=8)], "measured.m.tp", "more than the 4 GPUs of a server", "at most 4"),
        ([measured(tp=2, pp=2, cards=3)], "measured.m.cards", "fewer than tp x pp = 4", "4 or more"),
        ([current(group="a10")], "current[0].group", "no group of this name", "one of a100, h20"),
        ([current(units=0)], "current[0].units", "too small", ""),
        ([current(tp=8)], "current[0].tp", "more than the 4 GPUs of a server", "at most 4"),
        # limits and objectives
        (["limits.units={at_least: 0}"], "limits.units.at_least", "greater than or equal to 1", "1 or more"),
        (["limits.spare={}"], "limits.spare.units", "missing", ""),
        (["limits.pin={}"], "limits.pin", "not supported yet", ""),
    ],
)
def test_a_bad_value_is_said_with_its_place(changes: list[str], path: str, message: str, accepted: str) -> None:
    with pytest.raises(BadInput) as caught:
        eight(*changes)
    found = {p.path: p for p in caught.value.problems}
    assert path in found, caught.value.problems
    assert message in found[path].message
    assert accepted in (found[path].accepted or "")


def test_power_needs_the_power_of_every_gpu() -> None:
    assert eight("objective=power").objective == "power"
    own = "{name: own, memory: 80 GB, bandwidth: 2 TB/s, compute: {bf16: 300 TFLOP/s}}"
    with pytest.raises(BadInput, match="missing: the objective is power"):
        eight("objective=power", f"{GROUP}.accelerator={own}")


def test_gpus_of_bundles_alone_need_no_price() -> None:
    made = eight(f"{GROUP}.servers=0", f"{GROUP}.price=null", bundle(), "objective=cost")
    assert made.hardware.groups["a100"].cards == 0


def test_one_degree_is_a_list_of_one() -> None:
    made = eight(f"{MODEL}.tp=2", f"{GROUP}.pp=1")
    assert (made.models["qwen3-8b"].tp, made.hardware.groups["a100"].pp) == ([2], [1])


def test_scale_up_comes_from_the_catalog_unless_stated() -> None:
    wired = eight().hardware.groups["a100"].scale_up
    assert wired is not None
    assert wired.name == "NVLink-3"
    own = eight(f"{GROUP}.scale_up={{bandwidth: 20 GB/s}}").hardware.groups["a100"].scale_up
    assert own is not None
    assert (own.name, own.payload_bandwidth) == (None, 20e9)


def test_what_is_rented_is_for_sale_under_the_groups_name() -> None:
    hardware = eight(f"{GROUP}.servers=unlimited", f"{GROUP}.rent=server", bundle(cards={"h20": 4})).hardware
    assert set(hardware.purchases) == {"a100", "b"}
    assert hardware.purchases["a100"].cards == {"a100": 4}
    assert hardware.purchases["a100"].price == pytest.approx(4 / 3600)


def test_a_measured_unit_takes_the_gpus_that_it_says() -> None:
    made = eight(measured(tp=2)).measured["m"]
    assert (made.size, made.stage, made.rates["reasoning"]) == (2, "both", 0.5)
    assert eight(measured(tp=2, cards=3)).measured["m"].size == 3
