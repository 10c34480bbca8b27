"""Exercise 9-7 of the chapter, by hand and by the solver: when saving pays, what forces state out, what endures."""

import re
from collections import OrderedDict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from models import catalog
from models.llm import Llm
from models.load import load
from models.plan import Plan
from models.plan_tiers import TierUse
from models.units import BYTE_RATE, BYTES, TIME, parse
from solver import passes, physics
from solver.formulas import prefetch, state, tiers
from solver.physics import Device
from solver.solve import Options, solve

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "instances" / "chapter" / "hbm-forces-out.yaml"
PAGE = (ROOT / "docs" / "how-to" / "when-saving-pays.md").read_text(encoding="utf-8")

QWEN = physics.shape_of(
    Llm.model_validate({**(catalog.entry("models", "Qwen3-8B") or {}), "weights": "bf16", "kv": "bf16"})
)
A100 = Device(80e9, 156e12, 156e12, 1019.5e9)
TOKEN = 147_456  # 2 x 36 layers x 8 heads x 128 x 2 B
V = 8192 * TOKEN
WEIGHTS = 16_381_470_720
RECOMPUTE = 133_594_323_353_600 / 156e12  # prefill of 8192 tokens at half of the peak
NEW = {128: 15.40196152e-3, 256: 30.8578911e-3, 512: 61.9555902e-3}
"""Seconds of computing new tokens behind the prefix: 2 n 6 945 767 424 + 4 x 36 x 4096 (8192 n + n (n + 1)/2) +
2 x 622 329 856 operations."""
NIC = PCIE = 25e9
HALF = "hardware.groups.a100.usable_memory=0.5"


def operations(new: int, cached: int) -> int:
    pairs = new * cached + new * (new + 1) // 2
    return 2 * new * 6_945_767_424 + 4 * 36 * 4096 * pairs + 2 * 622_329_856


@cache
def plan_of(*changes: str) -> Plan:
    return solve(load(FILE, changes), Options(plan_only=True))


def uses(*changes: str) -> dict[str, TierUse]:
    plan = plan_of(*changes)
    assert (plan.status, plan.verified) == ("optimal", True)
    return {use.name: use for use in plan.tiers}


def shown(words: str) -> None:
    """The page says so, whatever the line breaks."""
    assert words in " ".join(PAGE.split()), words


# --- three ways to a hundred uses ---------------------------------------------------------------------


def test_the_prefix_by_hand() -> None:
    assert V / 2**30 == 1.125
    assert operations(8192, 0) / 156e12 == RECOMPUTE
    assert pytest.approx(0.856373868) == RECOMPUTE
    for new, seconds in NEW.items():
        assert operations(new, 8192) / 156e12 == pytest.approx(seconds, rel=1e-8)
        assert passes.prefill(QWEN, A100, new, 8192).seconds == pytest.approx(seconds, rel=1e-8)


def test_a_hundred_uses() -> None:
    once = tiers.path_seconds(V, [NIC])
    assert once == pytest.approx(48.31838208e-3)
    assert tiers.repeated_read_seconds(V, NIC, 100) == pytest.approx(4.831838208)
    assert pytest.approx(85.6373868) == 100 * RECOMPUTE
    assert once < RECOMPUTE < tiers.repeated_read_seconds(V, NIC, 100)
    # 0.856374 / 0.0483184 = 17.7
    assert tiers.repeated_read_seconds(V, NIC, 17) < RECOMPUTE < tiers.repeated_read_seconds(V, NIC, 18)
    assert pytest.approx(120.8, abs=0.05) == 100 * V / 1e9  # GB/s, in one second
    for row in (
        "| compute once, keep in HBM | 856.4 ms | 0 | 0.856 s |",
        "| read once over 25 GB/s, keep in HBM | 48.3 ms | 0 | 0.0483 s |",
        "| read over 25 GB/s at every use | 0 | 48.3 ms | 4.83 s |",
        "| compute at every use | 0 | 856.4 ms | 85.6 s |",
        "from the 18th use on",
        "121 GB/s",
    ):
        shown(row)


# --- writing, and the time between two uses -----------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "write", "read", "times", "least"),
    [
        ("host memory, PCIe 25 GB/s, 256 GiB | 48.3 ms | 48.3 ms | 1 |", [25.0], [25.0], (48.3, 48.3), 1),
        ("SSD, 4.2 and 7.1 GB/s, 3.84 TB | 287.6 ms | 170.1 ms | 1 |", [4.2], [7.1], (287.6, 170.1), 1),
        ("NIC and PCIe, 25 GB/s each | 96.6 ms | 96.6 ms | 1 |", [25.0, 25.0], [25.0, 25.0], (96.6, 96.6), 1),
        ("remote, 2 GB/s | 604.0 ms | 604.0 ms | 3 |", [2.0], [2.0], (604.0, 604.0), 3),
        ("10 GbE, 1.25 GB/s | 966.4 ms | 966.4 ms | never |", [1.25], [1.25], (966.4, 966.4), None),
    ],
)
def test_from_which_use_on_saving_pays(
    row: str, write: list[float], read: list[float], times: tuple[float, float], least: int | None
) -> None:
    written, fetched = (tiers.path_seconds(V, [1e9 * hop for hop in hops]) for hops in (write, read))
    assert (1e3 * written, 1e3 * fetched) == pytest.approx(times, abs=0.05)
    found = tiers.uses_to_pay(written, fetched, RECOMPUTE)
    if least is None:
        assert found == float("inf")
    else:
        assert found == least
        assert tiers.save_and_use_seconds(written, fetched, least) < least * RECOMPUTE
        fewer = least - 1
        assert tiers.save_and_use_seconds(written, fetched, fewer) >= fewer * RECOMPUTE
    shown(row)


def test_how_long_state_stays() -> None:
    rate = tiers.state_production(V, RECOMPUTE)
    assert rate == pytest.approx(1.410551627e9)
    assert tiers.retention_seconds(256 * 2**30, rate) == pytest.approx(194.87, abs=0.005)
    assert tiers.retention_seconds(3.84e12, rate) / 60 == pytest.approx(45.37, abs=0.005)
    assert state.state_residency(V, 60.0) / 2**30 == pytest.approx(67.5)
    for words in ("256 GiB | 48.3 ms | 48.3 ms | 1 | 195 s |", "| 45.4 min |", "1.41 GB/s", "67.5 GiB·s"):
        shown(words)


def test_how_long_state_is_worth_its_place() -> None:
    memory = V / (64 * 2**30) * 0.02  # credits an hour of a state in memory, a GPU is 1
    assert RECOMPUTE / memory / 60 == pytest.approx(40.6, abs=0.05)
    hbm = V / (80e9 - WEIGHTS - 8 * 8512 * TOKEN)
    assert RECOMPUTE / hbm == pytest.approx(38.0, abs=0.05)
    shown("state is worth its place for 40.6 min")
    shown("cost 1 credit/h, and 38 s are the limit")


# --- less HBM -----------------------------------------------------------------------------------------

FREE = 80e9 - WEIGHTS - 8 * 8512 * TOKEN
"""Of a GPU beside its weights and the longest states of eight requests: 8448 tokens and 64 of the output."""


def alive(age: float) -> float:
    """Bytes at 2.5 requests/s: each leaves 8512 tokens, 90 % find 8192 of them again after 5 to 10 s."""
    found = 0.9 * max(0.0, age - 5.0) ** 2 / 10.0
    return 2.5 * (8512 * TOKEN * age - V * found)


def test_with_all_of_the_memory_state_stays_in_hbm() -> None:
    used = uses()
    hbm, dram = used["hbm@a100"], used["dram@a100"]
    assert hbm.capacity == pytest.approx(FREE)
    assert hbm.alive == pytest.approx(alive(10.0)) == pytest.approx(24.58e9, abs=5e6)
    assert hbm.retention_s == pytest.approx(10.0)
    assert (dram.policy, dram.pieces, dram.alive) == ("never", 0, 0.0)
    [found] = hbm.found
    assert found.rate.at_load == pytest.approx(0.9 * 2.5)
    assert found.first_token_s == pytest.approx(NEW[256])
    assert plan_of().cost.per_hour == pytest.approx(1.0)


def test_half_of_the_memory_forces_it_out() -> None:
    assert 1.25 * alive(5.0) > FREE - 40e9 > 0.0  # and before 5 s nothing comes back
    assert alive(5.0) == pytest.approx(15.69e9, abs=5e6)
    used, plan = uses(HALF), plan_of(HALF)
    hbm, dram = used["hbm@a100"], used["dram@a100"]
    assert hbm.capacity == pytest.approx(FREE - 40e9)
    assert (hbm.policy, hbm.found, hbm.retained) == ("never", [], [])
    assert (dram.policy, dram.pieces) == ("all", 1)
    assert dram.alive == pytest.approx(alive(10.0))
    [found] = dram.found
    assert found.rate.at_load == pytest.approx(0.9 * 2.5)
    # what it costs: a piece of memory, bytes over PCIe, and 1.125 GiB / 25 GB/s of each first token
    assert plan.cost.per_hour == pytest.approx(1.02)
    assert [(bought.name, bought.kind, bought.count) for bought in plan.purchases] == [("dram@a100", "tier", 1)]
    assert dram.read.at_load == pytest.approx(2.25 * V)
    assert dram.written.at_load == pytest.approx(2.5 * 8512 * TOKEN - 2.25 * V)
    assert found.first_token_s == pytest.approx(V / PCIE + NEW[256])
    assert plan.workloads["sessions"].reuse == plan_of().workloads["sessions"].reuse
    for words in ("0.02 credits/h; 2.72 GB/s over PCIe", "48.3 ms of the first token", "5 s alone are 15.7 GB"):
        shown(words)


def test_without_host_memory_it_takes_a_second_gpu() -> None:
    plan = plan_of(HALF, "tiers=null")
    assert plan.cost.per_hour == pytest.approx(2.0)
    assert plan.workloads["sessions"].reuse is not None
    assert plan.workloads["sessions"].reuse.requests < 0.45
    [hbm] = plan.tiers
    assert hbm.alive == pytest.approx(alive(hbm.retention_s or 0.0))
    assert 1.25 * hbm.alive <= hbm.capacity == pytest.approx(2 * (FREE - 40e9))


# --- a pool of 4 GiB and one of 8 GiB -----------------------------------------------------------------

ORDER = (1, 2, 1, 3, 2, 4, 3, 5, 4, 6, 5, 7, 1, 2, 3, 4, 5, 6, 7)
FIRST_ENGINE = (1, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 1, 2, 3, 4, 5, 6, 7)
"""The same, without what the second engine does."""


def hits(order: Iterable[int], room: int) -> list[int]:
    """Numbers of the accesses that a cache of so many prefixes has, if it evicts what was used longest ago."""
    there: OrderedDict[int, None] = OrderedDict()
    found = []
    for number, prefix in enumerate(order):
        if prefix in there:
            found.append(number)
        there[prefix] = None
        there.move_to_end(prefix)
        if len(there) > room:
            there.popitem(last=False)
    return found


def others(order: tuple[int, ...], number: int) -> int:
    """Different prefixes between an access and the one before to the same prefix."""
    before = max(earlier for earlier in range(number) if order[earlier] == order[number])
    return len(set(order[before + 1 : number]))


def test_prefixes_that_pools_hold() -> None:
    assert (4 * 2**30 // V, 8 * 2**30 // V) == (3, 7)
    again = [number for number in range(len(ORDER)) if ORDER[number] in ORDER[:number]]
    small, large = hits(ORDER, 3), hits(ORDER, 7)
    assert (len(again), len(small), len(large)) == (12, 5, 12)
    assert small == [number for number in again if others(ORDER, number) <= 2]
    kept = set(large) - set(small)
    assert kept == {number for number in again if 3 <= others(ORDER, number) <= 6}
    assert len(kept) == len({ORDER[number] for number in kept}) == 7  # each of the seven prefixes once
    assert len(hits(ORDER, 6)) == 6


def test_private_pools_keep_none_of_them() -> None:
    first = [prefix for prefix in FIRST_ENGINE if prefix]
    second = [a for a, b in zip(ORDER, FIRST_ENGINE, strict=True) if not b]
    assert sorted([*first, *second]) == sorted(ORDER)
    assert hits(first, 3) == hits(second, 3) == []


def test_the_page_replays_this_order() -> None:
    lines = re.findall(r'"timestamp": (\d+), .*"hash_ids": \[(\d+)\]', PAGE)
    assert tuple(int(prefix) for _, prefix in lines) == ORDER
    assert [int(time) for time, _ in lines] == [1000 * number for number in range(len(ORDER))]
    for room, share in ((3, "26.3 %"), (7, "63.2 %")):
        assert f"{100 * len(hits(ORDER, room)) / len(ORDER):.1f} %" == share
        assert re.search(rf"^ {room} blocks .* {share}$", PAGE, re.MULTILINE)


# --- five minutes -------------------------------------------------------------------------------------


def test_five_minutes_take_a_drive() -> None:
    rate = tiers.state_production(V, RECOMPUTE)
    needed = tiers.capacity_for_interval(rate, parse("5 min", TIME))
    assert needed == pytest.approx(423.165e9, abs=5e5)
    hbm = tiers.memory_after_weights(80e9, WEIGHTS)
    host = tiers.share_of_card(parse("2 TiB", BYTES), 8)
    drive = catalog.entry("storage", "D7-P5520-3.84TB") or {}
    size = parse(drive["capacity"], BYTES)
    assert hbm == pytest.approx(63.62e9, abs=5e6)
    assert host == 256 * 2**30
    assert hbm < host < hbm + host < needed < size
    assert (hbm + host) / 1e9 == pytest.approx(338.5, abs=0.05)
    assert tiers.retention_seconds(hbm, rate) == pytest.approx(45.1, abs=0.05)
    assert tiers.retention_seconds(hbm + host, rate) == pytest.approx(240.0, abs=0.05)
    assert needed / size == pytest.approx(0.110, abs=5e-4)
    for words in ("= 423 GB for each GPU", "63.6 GB of HBM that the weights leave (45 s)", "(338 GB, 240 s)", "11 %"):
        shown(words)


# --- layer by layer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "early", "total"),
    [(128, 25, 48.7462143e-3), (256, 14, 49.1755457e-3), (512, 1, 63.2977675e-3)],
)
def test_layers_that_are_read_meanwhile(new: int, early: int, total: float) -> None:
    read, compute = V / PCIE / 36, NEW[new] / 36
    # reading dominates: all reads and the last layer; else the first read and all layers
    assert total == pytest.approx(max(36 * read + compute, read + 36 * compute), rel=1e-8)
    assert prefetch.layerwise_seconds(36, read, compute) == pytest.approx(total, rel=1e-8)
    assert prefetch.pipeline_seconds([read] * 36, [compute] * 36) == pytest.approx(total, rel=1e-8)
    assert prefetch.layers_early(36, read, compute) == early
    assert prefetch.pipeline_seconds([read] * 36, [compute] * 36, early) == pytest.approx(NEW[new], rel=1e-9)
    assert prefetch.pipeline_seconds([read] * 36, [compute] * 36, early - 1) > NEW[new] * (1.0 + 1e-3)
    buffer = prefetch.buffer_bytes(PCIE, V / PCIE, NEW[new])
    assert prefetch.buffer_layers(buffer, V / 36) == (early if new < 512 else 0)  # the flow forgets the first layer
    serial = V / PCIE + NEW[new]
    times = (f"{1e3 * seconds:.2f} ms" for seconds in (NEW[new], serial, total))
    shown(f"| {new} | {' | '.join(times)} | {early} ({32 * early} MiB) | {1e3 * NEW[new]:.2f} ms |")


@pytest.mark.parametrize(("new", "early"), [(128, 25), (256, 14), (512, 1)])
def test_plans_read_layer_by_layer(new: int, early: int) -> None:
    changes = (HALF, "tiers.dram.fetch=layer-wise", f"workloads.sessions.input={8192 + new}")
    read, compute = V / PCIE / 36, NEW[new] / 36
    [found] = uses(*changes)["dram@a100"].found
    assert found.first_token_s == pytest.approx(max(36 * read + compute, read + 36 * compute))
    ahead = uses(*changes, f"tiers.dram.early_layers={early}")
    [found] = ahead["dram@a100"].found
    assert found.first_token_s == pytest.approx(NEW[new])
    taken = uses(*changes)["hbm@a100"].capacity - ahead["hbm@a100"].capacity
    assert taken == pytest.approx(early * V / 36)  # HBM keeps room for the layers of one request
    [found] = uses(*changes, f"tiers.dram.early_layers={early - 1}")["dram@a100"].found
    assert found.first_token_s is not None
    assert found.first_token_s > NEW[new] * (1.0 + 1e-3)


# --- what a drive may be written ----------------------------------------------------------------------


def test_new_state_that_a_drive_may_take() -> None:
    drive = catalog.entry("storage", "D7-P5520-3.84TB") or {}
    allowed = tiers.sustained_write_rate(parse(drive["capacity"], BYTES), float(drive["writes_per_day"]))
    assert allowed == pytest.approx(3.84e12 / 86_400) == pytest.approx(44.44e6, abs=5e3)
    rate = tiers.state_production(V, RECOMPUTE)
    assert tiers.writable_share(allowed, rate) == pytest.approx(0.03150856)
    assert tiers.writable_share(allowed, rate / 2) == pytest.approx(0.06301711)
    days = [tiers.drive_life(5 * 365.0, allowed, made) for made in (rate, rate / 2)]
    assert days == pytest.approx([57.503, 115.006], abs=5e-4)
    for words in ("44.4 MB/s on average, 3.15 % of 1.41 GB/s", "the share is 6.30 %", "in 58 days", "in 115"):
        shown(words)


def test_drives_of_the_chapter_write_and_read_as_worked_with() -> None:
    drive = catalog.entry("storage", "D7-P5520-3.84TB") or {}
    assert (parse(drive["read"], BYTE_RATE), parse(drive["write"], BYTE_RATE)) == (7.1e9, 4.2e9)
