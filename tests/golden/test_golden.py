"""The numbers of "Distributed Inference", chapter 9, as values*.yaml hold them, each met by the project's own code."""

from collections import Counter
from typing import Any

import pytest

from models import catalog
from models.units import BYTE_RATE, BYTES, FLOP_RATE, parse
from solver.formulas import drain, stages
from solver.units import DECODE, REPLICA
from tests.golden import (
    by_exchange,
    by_experts,
    by_formula,
    by_mixing,
    by_roofline,
    by_routing,
    by_solving,
    by_tiers,
)
from tests.golden.reading import CONSTANTS, ENTRIES, SIZES, Cards, Entry, Value, cpu_socket, llm, one

PARTS = (by_formula, by_roofline, by_experts, by_exchange, by_tiers, by_routing, by_solving, by_mixing)
QUANTITIES = {name: function for part in PARTS for name, function in part.QUANTITIES.items()}
TOLERANCES = {
    **dict.fromkeys((*by_solving.QUANTITIES, *by_mixing.QUANTITIES), 1e-6),  # a solve is exact to its own tolerance
    **dict.fromkeys(by_exchange.SIMULATED, 0.04),  # three spreads of the mean of 1000 batches, of whatever seed
}
"""Where not 1e-9."""
SECTIONS = {
    **{"9.0": 2, "9.1.1": 11, "9.1.3": 5, "9.2.2": 27, "9.2.3": 99, "9.2.4": 47},
    **{"9.3.2": 19, "9.3.3": 14, "9.3.4": 20, "9.4.1": 57, "9.4.2": 21, "9.4.3": 9},
    **{"9.5.1": 1, "9.5.2": 60, "9.5.3": 8, "9.5.4": 29},
    **{"9.6.1": 10, "9.6.2": 6, "9.6.3": 4, "9.7.1": 3, "9.7.2": 34, "9.7.3": 10},
    **{"exercise 9-1": 7, "exercise 9-2": 8, "exercise 9-10": 13, "exercise 9-11": 12},
    **{
        "exercise 9-3": 16,
        "exercise 9-4": 16,
        "exercise 9-5": 5,
        "exercise 9-6": 6,
        "exercise 9-8": 4,
        "exercise 9-9": 7,
        "worked-example": 5,
    },
}
"""Entries by section."""
COMPARISONS = {"approx", "lt", "gt"}


def numbers(value: Any) -> list[float]:
    return [float(number) for number in value] if isinstance(value, list) else [float(value)]


def computed(entry: Entry) -> list[float]:
    """The value of an entry in its unit."""
    value: Value = QUANTITIES[entry.quantity](**entry.inputs)
    return [number / SIZES[entry.unit] for number in numbers(value)]


def within(value: list[float], wanted: Any, relative: float) -> bool:
    """Whether each number is near the wanted one; where that is 0, exactly so."""
    pairs = list(zip(value, numbers(wanted), strict=True))
    return all(abs(have - want) <= relative * abs(want) or have == want for have, want in pairs)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_golden(entry: Entry) -> None:
    value = computed(entry)
    assert within(value, entry.exact, TOLERANCES.get(entry.quantity, 1e-9)), (
        f"{value} is not {entry.exact} {entry.unit}"
    )
    if entry.compare == "lt":
        assert value[0] < entry.expected
    elif entry.compare == "gt":
        assert value[0] > entry.expected
    else:
        assert within(value, entry.expected, entry.rel_tol), f"{value} is not {entry.expected} {entry.unit}"


def test_every_entry_is_there_once() -> None:
    assert len({entry.id for entry in ENTRIES}) == len(ENTRIES) == 595
    assert Counter(entry.section for entry in ENTRIES) == SECTIONS
    assert {entry.compare for entry in ENTRIES} <= COMPARISONS


def test_every_quantity_has_one_function_that_some_entry_uses() -> None:
    assert len(QUANTITIES) == sum(len(part.QUANTITIES) for part in PARTS)
    assert {entry.quantity for entry in ENTRIES} == set(QUANTITIES)


CLUSTER = {"a100-80gb-sxm": 4, "h20-sxm5-96gb": 4}
ROLES: tuple[Cards, Cards] = ({"a100-80gb-sxm": 4}, {"h20-sxm5-96gb": 4})


@pytest.mark.parametrize("workload", CONSTANTS["workloads"])
def test_solves_of_one_workload_give_what_the_closed_forms_give(workload: str) -> None:
    cards = {card: one(workload, card) for card in CLUSTER}
    serial = sum(
        stages.serial_rate(at.prefill.seconds, at.demand(REPLICA)[0] - at.prefill.seconds) * CLUSTER[card]
        for card, at in cards.items()
    )
    assert by_solving.colocated_rate(workload, CLUSTER) == pytest.approx(serial, rel=1e-6)
    overlapped = 0.0
    for card, at in cards.items():
        compute, memory = at.demand(DECODE)
        overlapped += CLUSTER[card] * stages.overlapped_rate(at.prefill.compute, compute, at.prefill.memory, memory)
    assert by_solving.chunked_rate(workload, CLUSTER) == pytest.approx(overlapped, rel=1e-6)
    separated = stages.separated_rate(
        by_roofline.pool_rate(workload, ROLES[0], "prefill"),
        by_roofline.pool_rate(workload, ROLES[1], "decode"),
        by_formula.link_rate("qwen3-8b", 8192, "25 GB/s"),
    )
    assert by_solving.pd_rate(workload, *ROLES, "25 GB/s") == pytest.approx(separated, rel=1e-6)


def test_a_solve_drains_when_the_fluid_model_does() -> None:
    rate = by_solving.pd_rate("base", *ROLES, "25 GB/s")
    found = by_solving.drain_end("pd-direct", "base", prefill=ROLES[0], decode=ROLES[1])
    assert found == pytest.approx(drain.drained_at(3.5, rate, 10.0), rel=1e-6)


@pytest.mark.parametrize("name", CONSTANTS["cards"])
def test_cards_of_the_chapter_are_those_of_the_catalog(name: str) -> None:
    stated = CONSTANTS["cards"][name]
    card = catalog.entry("accelerators", stated["catalog"])
    assert card is not None
    assert parse(card["compute"]["bf16"], FLOP_RATE) == parse(stated["compute"], FLOP_RATE)
    assert parse(card["bandwidth"], BYTE_RATE) == parse(stated["bandwidth"], BYTE_RATE)
    assert parse(card["memory"], BYTES) == parse(stated["capacity"], BYTES)


@pytest.mark.parametrize("name", CONSTANTS["cpus"])
def test_cpus_of_the_chapter_are_those_of_the_catalog(name: str) -> None:
    stated, cpu = CONSTANTS["cpus"][name], cpu_socket(name)
    assert cpu.kernels == {kernel: parse(reached, FLOP_RATE) for kernel, reached in stated["kernels"].items()}
    assert cpu.bandwidth == parse(stated["bandwidth"], BYTE_RATE)
    assert cpu.remote_bandwidth == parse(stated["remote_bandwidth"], BYTE_RATE)


NAMES = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "intermediate": "intermediate_size",
    "vocab": "vocab_size",
    "moe_intermediate": "moe_intermediate_size",
    "experts": "experts",
    "top_k": "num_experts_per_tok",
    "d_c": "kv_lora_rank",
    "d_r": "qk_rope_head_dim",
    "qk_dim": "head_dim",
    "nope_dim": "qk_nope_head_dim",
    "v_dim": "v_head_dim",
}
"""Name in the constants -> name in the catalog."""


@pytest.mark.parametrize("name", CONSTANTS["models"])
def test_models_of_the_chapter_are_those_of_the_catalog(name: str) -> None:
    stated = {key: value for key, value in CONSTANTS["models"][name].items() if key not in ("catalog", "state")}
    assert stated.pop("bytes") == 2  # of BF16
    described = llm(name)
    assert (described.kv_lora_rank is not None) == (CONSTANTS["models"][name]["state"] == "mla")
    assert {key: getattr(described, NAMES[key]) for key in stated} == stated
