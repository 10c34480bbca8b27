"""Every file of instances/chapter gives what the chapter says: golden values, or numbers as the chapter prints them."""

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from models.load import load
from models.plan import Plan
from models.told import Row
from solver.compare import compare
from solver.formulas import drain
from solver.limits import Limits
from solver.solve import solve
from solver.verify import verify
from tests.golden.reading import ENTRIES

CHAPTER = Path(__file__).resolve().parents[2] / "instances" / "chapter"
GOLDEN = {entry.id: entry.exact for entry in ENTRIES}
Split = tuple[int, ...]
"""Prefill units of each group, in the file's order; the other cards decode."""


@dataclass(frozen=True)
class Says:
    """What the chapter says of one file; rates in requests/s."""

    scheme: str
    throughput: float
    split: Split = ()
    """Of the plan's pools where they are separated."""
    rows: dict[str, float | None] = field(default_factory=dict)
    """Throughput of the other schemes in the comparison; None: a limit on pools rules it out."""
    printed: bool = False
    """The throughput is one that the chapter prints rounded."""
    chunked_wins: bool = False
    """Chunked prefill is left out and would serve more."""
    cards: int = 8


SHORT = {"replicas": GOLDEN["s9-2-4-short-colocated"], "chunked": GOLDEN["ex-9-2-chunked-8-short-output"]}
LONG = {"chunked": GOLDEN["ex-9-2-chunked-8-long-output"]}
HIT = {"chunked": GOLDEN["ex-9-2-chunked-8-prefix-hit"]}
WHOLE = {"replicas": None, "chunked": None}
ALL_PREFILL = 4.0 * (GOLDEN["s9-2-4-a100-p-before"] + GOLDEN["s9-2-4-short-h20-p"])
"""Prefill of all eight cards; nothing decodes."""

SAID = {
    "eight-cards": Says(
        scheme="pd-direct",
        throughput=GOLDEN["ex-9-8-direct-throughput"],
        split=(4, 0),
        rows={
            "replicas": GOLDEN["ex-9-8-replicas-throughput"],
            "chunked": GOLDEN["ex-9-2-chunked-8"],
            "pd-pooled": GOLDEN["ex-9-8-direct-throughput"],
        },
    ),
    "mla-handoff": Says(
        scheme="pd-direct",
        throughput=GOLDEN["ex-9-8-direct-mla-throughput"],
        split=(4, 0),
        rows={
            "replicas": GOLDEN["ex-9-8-replicas-throughput"],
            "chunked": GOLDEN["ex-9-2-chunked-8"],
            "pd-pooled": GOLDEN["ex-9-8-direct-mla-throughput"],
        },
    ),
    "mla-query-work": Says(scheme="pd-direct", throughput=GOLDEN["xr-9-11-pool"], split=(4, 0)),
    "eight-a100": Says(
        scheme="chunked",
        throughput=4.50,
        printed=True,
        rows={
            "replicas": GOLDEN["s9-2-3-8a100-colocated"],
            "pd-direct": GOLDEN["s9-2-3-8a100-best-pd"],
            "pd-pooled": GOLDEN["s9-2-3-8a100-best-pd"],
        },
    ),
    "eight-h20": Says(
        scheme="chunked",
        throughput=2.0 * GOLDEN["ex-9-2-chunked-8"] - 4.50,  # twice what four H20 add to four A100
        printed=True,
        rows={
            "replicas": GOLDEN["ex-9-2-8h20-colocated"],
            "pd-direct": GOLDEN["ex-9-2-8h20-best-pd"],
            "pd-pooled": GOLDEN["ex-9-2-8h20-best-pd"],
        },
    ),
    "prefix-hit": Says(
        scheme="pd-direct", throughput=GOLDEN["s9-2-4-hit-best"], split=(2, 0), rows=HIT, chunked_wins=True
    ),
    "prefix-hit-mixed": Says(
        scheme="chunked", throughput=HIT["chunked"], rows={"pd-direct": GOLDEN["s9-2-4-hit-best"]}
    ),
    "output-129": Says(
        scheme="pd-direct", throughput=GOLDEN["s9-2-4-short-best"], split=(4, 3), rows=SHORT, chunked_wins=True
    ),
    "output-129-mixed": Says(
        scheme="chunked",
        throughput=SHORT["chunked"],
        rows={"replicas": SHORT["replicas"], "pd-direct": GOLDEN["s9-2-4-short-best"]},
    ),
    "output-4097": Says(scheme="pd-direct", throughput=1.26, printed=True, split=(2, 0), rows=LONG, chunked_wins=True),
    "output-4097-mixed": Says(scheme="chunked", throughput=LONG["chunked"]),
    "output-4097-four-groups": Says(
        scheme="pd-direct", throughput=5.04, printed=True, split=(8, 0), rows={**WHOLE}, cards=32
    ),
    "narrow-link": Says(
        scheme="pd-direct",
        throughput=GOLDEN["xr-9-2-bound-base"],
        rows={"replicas": GOLDEN["ex-9-8-replicas-throughput"], "chunked": GOLDEN["ex-9-2-chunked-8"]},
        chunked_wins=True,
    ),
    "mixed-outputs": Says(
        scheme="pd-direct",
        throughput=GOLDEN["xr-9-10-best"],
        split=tuple(GOLDEN["xr-9-10-best-split"]),
        chunked_wins=True,
    ),
    "mixed-outputs-three-groups": Says(
        scheme="pd-direct", throughput=3.0 * GOLDEN["xr-9-10-best"], split=(6, 0), rows={**WHOLE}, cards=24
    ),
    "mixed-outputs-bursts": Says(
        scheme="pd-direct", throughput=2.0 * GOLDEN["xr-9-10-best"], split=(4, 0), rows={**WHOLE}, cards=16
    ),
}
"""File -> what the chapter says of it. forty-per-cent has no plan, and a test of its own."""
INFEASIBLE = {"forty-per-cent"}
ENDS = {"one-output-token"}
"""Of requests that end with prefill; a test of its own."""
APART = {"attention-apart"}
"""Of schemes for which the chapter has no numbers; tests/solver/test_flips.py works them out."""
KEPT = {"hbm-forces-out"}
"""Of state that is kept for later; tests/solver/test_exercise_9_7.py works it out."""
BOUGHT = {
    "output-4097-bundles": ("pd-direct", 32, 5.41),  # the chapter's 5.04 splits every group alike
    "output-4097-bundles-free": ("chunked", 24, 4.52),
}
"""File -> scheme, cards, and throughput of a plan that buys its groups."""


@cache
def plan_of(name: str, *changes: str) -> Plan:
    return solve(load(CHAPTER / f"{name}.yaml", changes))


@cache
def rows_of(name: str, *changes: str) -> dict[str, Row]:
    return {row.scheme: row for row in compare(load(CHAPTER / f"{name}.yaml", changes), Limits())}


def near(value: float, printed: bool = False) -> object:
    """What the value may be: as exact as a solve, or as the chapter rounds."""
    return pytest.approx(value, abs=0.005) if printed else pytest.approx(value, rel=1e-6)


def test_every_file_is_covered() -> None:
    assert {path.stem for path in CHAPTER.glob("*.yaml")} == {*SAID, *INFEASIBLE, *ENDS, *APART, *KEPT, *BOUGHT}
    others = {path.name for path in CHAPTER.iterdir() if path.suffix != ".yaml"}
    assert others == {"layer", "routing", "transition"}  # questions of other commands, each with tests of its own


@pytest.mark.parametrize("name", [*SAID, *INFEASIBLE, *ENDS, *APART, *KEPT, *BOUGHT])
def test_file_says_where_it_comes_from(name: str) -> None:
    instance = load(CHAPTER / f"{name}.yaml")
    assert instance.name == name
    assert instance.about.endswith("?")
    assert '"Distributed Inference", chapter 9' in (CHAPTER / f"{name}.yaml").read_text(encoding="utf-8")
    assert all(group.usable_memory == 1.0 for group in instance.hardware.groups.values())
    assert all(link.link_efficiency == 1.0 for link in instance.hardware.links.values())


@pytest.mark.parametrize("name", SAID)
def test_plan(name: str) -> None:
    says, plan = SAID[name], plan_of(name)
    assert (plan.status, plan.verified, plan.scheme) == ("optimal", True, says.scheme)
    assert verify(plan, load(CHAPTER / f"{name}.yaml")) == []
    assert plan.throughput == near(says.throughput, says.printed)
    if says.split:
        prefill = {pool.group: pool.units for pool in plan.pools if pool.stage == "prefill"}
        assert tuple(prefill.get(group, 0) for group in ("a100", "h20")) == says.split
        assert sum(pool.cards for pool in plan.pools) == says.cards


@pytest.mark.parametrize("name", SAID)
def test_backlog_is_gone_when_the_fluid_model_says(name: str) -> None:
    plan, instance = plan_of(name), load(CHAPTER / f"{name}.yaml")
    assert plan.drain is not None
    assert plan.throughput is not None
    if name == "narrow-link":
        assert plan.drain.drained_s is None
    else:
        assert plan.drain.drained_s == near(drain.drained_at(instance.rate, plan.throughput, 10.0))
    assert plan.drain.met is (None if instance.service.drain is None else True)


@pytest.mark.parametrize("name", SAID)
def test_comparison(name: str) -> None:
    says, rows = SAID[name], rows_of(name)
    assert rows[says.scheme].throughput == near(says.throughput, says.printed)
    for scheme, throughput in says.rows.items():
        if throughput is None:
            assert (rows[scheme].throughput, rows[scheme].reason) == (None, "breaks a limit on pools")
        else:
            assert rows[scheme].throughput == near(throughput)
    for separated in (rows["pd-direct"], rows["pd-pooled"]):
        if separated.throughput:
            copies = {"pd-direct": 1, "pd-pooled": 2}[separated.scheme]
            state = GOLDEN["s9-2-2-mla-8192-bytes"] if name.startswith("mla") else 1.125 * 2**30
            assert separated.payload_bytes_per_request == near(copies * state)


@pytest.mark.parametrize("name", SAID)
def test_excluded_scheme_that_would_serve_more_is_said(name: str) -> None:
    said = any("chunked is not allowed here" in text for text in plan_of(name).warnings)
    assert said is SAID[name].chunked_wins


@pytest.mark.parametrize(
    ("name", "split"),
    [("eight-a100", {"a100": 3}), ("eight-h20", {"h20": 5}), ("output-129-mixed", {"a100": 4, "h20": 3})],
)
def test_best_separation_beside_a_plan_that_does_better(name: str, split: dict[str, int]) -> None:
    assert rows_of(name)["pd-direct"].split["prefill"] == split


def test_chunked_cards_add_up() -> None:
    both = [plan_of(name).throughput or 0.0 for name in ("eight-a100", "eight-h20")]
    assert sum(both) == near(2.0 * GOLDEN["ex-9-2-chunked-8"])


@pytest.mark.parametrize(
    ("name", "scheme", "second"),
    [
        ("eight-cards", "pd-direct", GOLDEN["ex-9-8-pd-drain-end"]),
        ("eight-cards", "chunked", GOLDEN["ex-9-8-chunked-drain-end"]),
        ("mixed-outputs-three-groups", "pd-direct", GOLDEN["xr-9-10-drain-3-groups"]),
    ],
)
def test_drain_seconds_of_the_comparison(name: str, scheme: str, second: float) -> None:
    assert rows_of(name)[scheme].drained_s == near(second)


def given(prefill: Split, decode: Split) -> str:
    """The change that fixes a split; counts of A100, H20."""
    pairs = chain.from_iterable(
        [("prefill", group, p), ("decode", group, d)]
        for group, p, d in zip(("a100", "h20"), prefill, decode, strict=True)
    )
    bounds = ", ".join(f"{{stage: {stage}, group: {group}, exactly: {count}}}" for stage, group, count in pairs)
    return f"limits.pools=[{bounds}]"


def test_prefix_hit_drains_as_section_9_7_3_prints() -> None:
    assert rows_of("prefix-hit")["replicas"].throughput == near(4.90, printed=True)
    assert rows_of("prefix-hit")["replicas"].drained_s == pytest.approx(35.1, abs=0.05)
    assert plan_of("prefix-hit").alternatives
    assert rows_of("prefix-hit")["pd-direct"].drained_s == pytest.approx(26.0, abs=0.05)
    former = rows_of("prefix-hit", given((4, 0), (0, 4)))["pd-direct"]
    assert former.throughput == near(GOLDEN["ex-9-8-direct-throughput"])
    assert former.drained_s == pytest.approx(43.2, abs=0.05)


def test_narrow_link_leaves_ten_requests_waiting() -> None:
    plan = plan_of("narrow-link")
    assert plan.drain is not None
    assert plan.drain.backlog == pytest.approx(GOLDEN["xr-9-2-backlog-60"])
    assert "rdma" in " ".join(resource.name for resource in plan.resources if resource.binding)


def test_forty_per_cent_serves_the_arrivals_and_misses_the_deadline() -> None:
    plan, rate = plan_of("forty-per-cent"), 0.8 * GOLDEN["ex-9-8-direct-throughput"]
    assert (plan.status, plan.scheme) == ("infeasible", None)
    assert any("drain" in conflict.limits for conflict in plan.conflicts)
    row = rows_of("forty-per-cent")["pd-direct"]
    assert (row.throughput, row.met) == (near(rate), False)
    assert row.split["prefill"] == {"a100": 4, "h20": 0}
    assert row.drained_s == near(drain.drained_at(3.5, rate, 10.0))
    later = plan_of("forty-per-cent", "service.drain=255 s")
    assert (later.status, later.scheme, later.throughput) == ("optimal", "pd-direct", near(rate))


@pytest.mark.parametrize(
    ("name", "groups", "split", "sustained", "met"),
    [
        ("output-4097-four-groups", 2, (4, 0), False, False),
        ("output-4097-four-groups", 3, (6, 0), True, False),
        ("mixed-outputs-three-groups", 1, (2, 0), False, False),
        ("mixed-outputs-three-groups", 2, (4, 0), True, False),
    ],
)
def test_fewer_groups_do_not_do(name: str, groups: int, split: Split, sustained: bool, met: bool) -> None:
    changes = (
        f"hardware.groups.a100.servers={groups}",
        f"hardware.groups.h20.servers={groups}",
        f"hardware.links.rdma.ports={groups}",
        given(split, (4 * groups - split[0], 4 * groups)),
    )
    row = rows_of(name, *changes)["pd-direct"]
    assert row.throughput is not None
    assert ((row.throughput >= 3.5), row.met) == (sustained, met)
    assert plan_of(name, *changes).status == "infeasible"
    if name == "output-4097-four-groups" and groups == 3:
        assert row.throughput == near(3.78, printed=True)
    if name == "mixed-outputs-three-groups" and groups == 2:
        assert row.drained_s == near(GOLDEN["xr-9-10-drain-2-groups"])


@pytest.mark.parametrize("name", BOUGHT)
def test_groups_are_bought_whole(name: str) -> None:
    (scheme, cards, throughput), plan = BOUGHT[name], plan_of(name)
    assert (plan.status, plan.verified, plan.scheme) == ("optimal", True, scheme)
    assert plan.throughput == near(throughput, printed=True)
    assert sum(pool.cards for pool in plan.pools) == cards
    [bought] = plan.purchases
    assert (bought.name, bought.kind, bought.count) == ("group", "bundle", cards // 8)
    assert bought.cards == {"a100": cards // 2, "h20": cards // 2}
    assert plan.cost.per_hour == pytest.approx(cards)
    for fewer in (cards // 8 - 1, 0):
        assert plan_of(name, f"hardware.bundles.group.at_most={fewer}").status == "infeasible"


def test_chunked_groups_reach_what_they_do_each() -> None:
    assert plan_of("output-4097-bundles-free").throughput == near(3.0 * LONG["chunked"])


def test_a_compact_state_halves_the_bytes_and_changes_nothing_else() -> None:
    rows = {row.scheme: row for row in compare(load(CHAPTER / "mla-handoff.yaml"), Limits())}
    assert rows["pd-direct"].channel_capacity == pytest.approx(GOLDEN["ex-9-8-direct-mla-channel"], rel=1e-6)
    assert rows["pd-direct"].payload_bytes_per_request == GOLDEN["s9-2-2-mla-8192-bytes"]
    plan = solve(load(CHAPTER / "mla-handoff.yaml"))
    decode = next(pool for pool in plan.pools if pool.stage == "decode")
    assert decode.memory is not None
    held = (decode.memory.kv + decode.memory.buffers) / 2**30
    assert held == pytest.approx(GOLDEN["ex-9-8-mla-total"], rel=1e-6)
    assert decode.utilisation == pytest.approx(3.5 / GOLDEN["ex-9-8-direct-throughput"], rel=1e-6)


def test_requests_of_one_token_need_no_decode_and_no_handoff() -> None:
    """All eight cards prefill, whatever the scheme: nothing is left that could be separated."""
    plan = plan_of("one-output-token")
    assert plan.throughput == pytest.approx(ALL_PREFILL, rel=1e-6)
    assert {pool.stage for pool in plan.pools} == {"prefill"}
    assert plan.handoffs == []
    assert plan.workloads["classify"].tpot_s.at_load is None
    rows = rows_of("one-output-token")
    assert all(rows[name].throughput == pytest.approx(ALL_PREFILL, rel=1e-6) for name in ("replicas", "chunked"))


def test_every_file_has_a_place_in_the_list_of_examples() -> None:
    page = (CHAPTER.parents[1] / "docs" / "reference" / "chapter.md").read_text(encoding="utf-8")
    rows = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ") and "|---" not in line][1:]
    named = {name for row in rows for name in re.findall(r"`([\w/-]+)`", row)}
    there = {path.relative_to(CHAPTER).with_suffix("").as_posix() for path in CHAPTER.rglob("*.yaml")}
    assert named == there
