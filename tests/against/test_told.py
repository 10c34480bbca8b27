"""What a plan tells of changes is confirmed by solving with each of them, and with a little less of it."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

import pytest

from models.errors import BadInput
from models.plan import Plan
from models.told import Marginal
from solver.solve import solve
from tests.against import margins, told
from tests.against.generate_wide import wide_document
from tests.against.told import Document, built, solved

INFEASIBLE = (3, 8, 13, 15, 23, 25, 33, 36, 50, 65, 112, 138, 181, 191, 256, 295, 325)
FEASIBLE = (4, 9, 16, 20, 21, 34, 61, 66, 95, 139, 243, 382)
NEAR = 2e-6


@cache
def full(seed: int) -> tuple[Document, Plan]:
    document = wide_document(seed, alike=True)
    return document, solve(built(document))


@pytest.mark.parametrize("seed", INFEASIBLE)
def test_each_relaxation_helps_and_less_of_it_does_not(seed: int) -> None:
    document, plan = full(seed)
    assert plan.status == "infeasible"
    assert plan.relaxations
    for change in plan.relaxations:
        assert "less of a change may do" not in change.text
        enough = told.applied(document, change)
        if enough is not None:
            assert solved(enough).status == "optimal", change.text
        less = told.applied(document, change, less=True)
        try:
            assert less is None or solved(less).status == "infeasible", change.text
        except BadInput:  # less than nothing
            continue


def test_relaxations_are_of_every_sort() -> None:
    kinds = Counter(change.path.split(".")[-1] for seed in INFEASIBLE for change in full(seed)[1].relaxations)
    wanted = {
        "rate",
        "drain",
        "at_most",
        "spare",
        "at_least",
        "bandwidth",
        "batch",
        "tpot",
        "minimum_share",
        "g0",
        "g1",
    }
    assert wanted <= set(kinds), kinds


def told_of(seed: int, *kinds: str) -> Iterator[Marginal]:
    return (one for one in full(seed)[1].marginal if one.name.split("[")[0] in kinds)


def most(document: Document) -> float:
    return solved(margins.most(document)).throughput or 0.0


@pytest.mark.parametrize("seed", FEASIBLE)
def test_one_more_brings_what_is_told(seed: int) -> None:
    document, plan = full(seed)
    now = most(document)
    for one in told_of(seed, "cards", "link"):
        if one.gain is None:
            continue
        if one.name == "cards":
            assert now == pytest.approx((plan.throughput or 0.0) + one.gain, rel=NEAR), one.text
            continue
        named = one.name.partition("[")[2][:-1]
        cards = one.unit == "cards"
        changed = margins.one_more(document, named.split(",")) if cards else margins.wider(document, named)
        if changed is not None:
            assert most(changed) == pytest.approx(now + one.gain, rel=NEAR), one.text


@pytest.mark.parametrize("seed", FEASIBLE)
def test_one_more_card_saves_what_is_told(seed: int) -> None:
    document = full(seed)[0]
    for one in told_of(seed, "cost"):
        changed = margins.one_more(document, one.name[5:-1].split(","))
        if changed is None:
            continue
        before, after = (solved({**asked, "objective": "cost"}).objective.value or 0.0 for asked in (document, changed))
        assert max(0.0, before - after) == pytest.approx(one.gain, abs=NEAR * before), one.text


@pytest.mark.parametrize("seed", FEASIBLE)
def test_arrivals_and_deadline_may_grow_as_told(seed: int) -> None:
    """With the units of the plan, the largest multiple of the arrivals is what is told."""
    document, plan = full(seed)
    fixed, rate = margins.fixed(document, plan), built(document).rate
    if fixed is None:
        return
    arrivals = next(iter(told_of(seed, "arrivals")), None)
    if arrivals is not None:
        assert solved(margins.headroom(fixed)).objective.value == pytest.approx(arrivals.step / rate, rel=NEAR)
        for deadline in told_of(seed, "drain"):
            later = margins.headroom(fixed)
            later["service"]["drain"] = f"{(built(document).service.drain or 0.0) + 1.0!r} s"
            value = (arrivals.step + (deadline.gain or 0.0)) / rate
            assert solved(later).objective.value == pytest.approx(value, rel=NEAR), deadline.text
        for factor, status in ((1.0 - 1e-4, "optimal"), (1.001, "infeasible")):
            grown = margins.arriving(fixed, arrivals.step / rate * factor)
            assert solved(grown).status == status, arrivals.text


@pytest.mark.parametrize("seed", FEASIBLE)
def test_efficiency_and_links_may_shrink_as_told(seed: int) -> None:
    """Efficiency is told as if all seconds grew, so with sums over GPUs a little less may still do."""
    document, plan = full(seed)
    fixed = margins.fixed(document, plan)
    if fixed is None:
        return
    wide = any(pool.cards_per_unit > 1 for pool in plan.pools)
    for one in told_of(seed, "efficiency"):
        assert solved(margins.scaled(fixed, one.step * 1.001)).status == "optimal", one.text
        assert wide or solved(margins.scaled(fixed, one.step * 0.997)).status == "infeasible", one.text
    capacity = {row.name: row.capacity for row in plan.resources}
    for link in fixed["hardware"]["links"]:
        mine = [m for m in told_of(seed, "link") if m.unit == "B/s" and m.name.startswith(f"link[{link}")]
        share = max((one.step / capacity[one.name] for one in mine), default=0.0)
        if share > 1e-6:
            assert solved(margins.narrower(fixed, link, share * 1.001)).status == "optimal", link
            if len(fixed["hardware"]["links"]) == 1:  # else another way may do
                assert solved(margins.narrower(fixed, link, share * 0.997)).status == "infeasible", link


def test_margins_are_of_every_sort() -> None:
    """Counted where they are told; units that cannot be fixed by limits are passed over above."""
    kinds = Counter(f"{m.name.split('[')[0]} {m.unit}" for seed in FEASIBLE for m in full(seed)[1].marginal)
    least = {
        "cards cards": 20,
        "cost EUR/h": 4,
        "arrivals requests/s": 6,
        "drain s": 2,
        "efficiency of stated": 5,
        "link B/s": 4,
        "link port": 3,
        "link step": 3,
    }
    assert {name: kinds[name] for name, number in least.items() if kinds[name] < number} == {}, kinds
    assert sum(margins.fixed(*full(seed)) is not None for seed in FEASIBLE) >= 6
