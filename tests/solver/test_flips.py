"""Where the answer flips: against formulas worked out here by hand, and against solves on both sides."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from models.errors import BadInput
from models.instance import Instance
from models.load import load
from models.number import find, moved
from models.plan import Plan
from solver.flips.asked import asked, numbers, outward
from solver.flips.search import Flip, Found, flips
from solver.limits import Limits, Stop
from solver.solve import Options, solve
from tests.against.generate import document
from tests.against.generate import instance as generated
from tests.instances import ROOT, eight, from_document

CHAPTER = ROOT / "instances" / "chapter"
FILES = [path for kind in ("chapter", "examples", "bench") for path in sorted(ROOT.glob(f"instances/{kind}/*.yaml"))]
CALM = ("service.drain=null", "workloads.reasoning.rate=0.2/s", "objective=throughput")
"""No promise of the eight cards decides; the most requests/s wins."""
TWO = ("schemes={allow: [chunked, pd-direct], mix: false}", *CALM)

# Qwen3-8B from its config.json: 36 layers, width 4096, 32 query and 8 KV heads of 128, inner width 12288.
LAYERS, WIDTH, KV_WIDTH, QUERY_WIDTH, INNER, WORDS = 36, 4096, 1024, 4096, 12288, 151936
ATTENTION = LAYERS * WIDTH * (2 * QUERY_WIDTH + 2 * KV_WIDTH)
FEED = LAYERS * 3 * WIDTH * INNER
HEAD = WORDS * WIDTH
NORMS = LAYERS * (2 * WIDTH + 2 * 128) + WIDTH
PAIR = LAYERS * 4 * QUERY_WIDTH
"""FLOPs of a query-key pair, scores and values."""
KV = LAYERS * 2 * KV_WIDTH * 2
"""Bytes of a token."""
RESIDENT = 2 * (ATTENTION + FEED + 2 * HEAD + NORMS)


@dataclass(frozen=True)
class Card:
    """Effective FLOP/s and B/s at 50 % of peak, and bytes."""

    flops: float
    memory: float
    bytes: float

    def prefill(self, new: int, params: float = ATTENTION + FEED) -> tuple[float, float]:
        """Compute and memory seconds."""
        return self._pass(new, params, 1, new * (new + 1) / 2, 0)

    def step(self, batch: float, context: float, params: float = ATTENTION + FEED) -> tuple[float, float]:
        return self._pass(batch, params, batch, batch * (context + 1), batch * (context + 1) * KV)

    def _pass(self, rows: float, params: float, heads: float, pairs: float, state: float) -> tuple[float, float]:
        flops = 2 * rows * params + pairs * PAIR + 2 * heads * HEAD
        return flops / self.flops, (2 * (params + HEAD + NORMS) + 2 * WIDTH * rows + state) / self.memory


A100, H20, L40S = Card(156e12, 1019.5e9, 80e9), Card(74e12, 2048e9, 96e9), Card(181.025e12, 432e9, 48e9)
FOUR = ((A100, 4), (H20, 4))


def fits(card: Card, new: int, out: int, batch: int) -> bool:
    """The weights, the batch, and the state that is received or made beside it."""
    return RESIDENT + batch * (new + out - 1) * KV + new * KV <= card.bytes


def chunked(new: int, out: int, batch: int) -> float:
    """Requests/s of all cards, each overlapping compute and memory fully."""
    total = 0.0
    for card, count in FOUR:
        if fits(card, new, out, batch):
            calls, step = (out - 1) / batch, card.step(batch, new + (out - 1) / 2)
            total += count / max(first + calls * later for first, later in zip(card.prefill(new), step, strict=True))
    return total


def separated(new: int, out: int, batch: int, link: float = 25e9) -> float:
    """Requests/s of the best split of the cards, each state crossing the link once."""
    best = 0.0
    for a in range(5):
        for h in range(5):
            first = a / max(A100.prefill(new)) + h / max(H20.prefill(new))
            later = 0.0
            for card, count in ((A100, 4 - a), (H20, 4 - h)):
                if fits(card, new, out, batch):
                    later += count * batch / ((out - 1) * max(card.step(batch, new + (out - 1) / 2)))
            best = max(best, min(first, later))
    return min(best, link / (new * KV))


def apart(startup: float, bandwidth: float = 25e9, new: int = 128, out: int = 1025, batch: int = 384) -> float:
    """Requests/s of attention on the H20 and feed-forward networks on the L40S: docs/reference/layouts.md."""

    def elsewhere(rows: float) -> float:
        return max(2 * rows * FEED / L40S.flops, 2 * FEED / L40S.memory)

    def way(rows: float) -> float:
        return rows * 2 * WIDTH * LAYERS / bandwidth + LAYERS * startup

    first = max(H20.prefill(new, ATTENTION)) + elsewhere(new) + 2 * way(new)
    best = 0.0
    for micro in (1, 2, 4):
        rows = batch / micro
        own = max(H20.step(rows, new + (out - 1) / 2, ATTENTION))
        chain = own + elsewhere(rows) + 2 * way(rows)
        step = chain if micro == 1 else max(micro * max(own, elsewhere(rows), way(rows)), chain)
        best = max(best, 1.0 / (first + (out - 1) * step / batch))
    return best


def found(instance: Instance, *paths: str, seconds: float = 60.0) -> Found:
    return flips(instance, [asked(instance, path) for path in paths], Limits(seconds))


def two_sides(one: Flip) -> list[tuple[float, tuple[str, ...], Plan]]:
    return [(point.value, point.outcome, point.plan) for point in (one.below, one.above)]


def test_the_formulas_of_this_file_give_what_the_chapter_prints() -> None:
    assert chunked(8192, 1025, 32) == pytest.approx(4.17, abs=0.005)
    assert separated(8192, 1025, 32) == pytest.approx(4.55, abs=0.005)


def test_a_link_narrower_than_the_chunked_rate_times_the_state() -> None:
    (one,) = found(eight(*TWO), "hardware.links.rdma.bandwidth").flips
    closed = chunked(8192, 1025, 32) * 8192 * KV
    assert one.below.value <= closed <= one.above.value
    assert one.at == one.below.value == pytest.approx(closed, rel=1e-3)
    assert (one.below.outcome, one.above.outcome) == (("chunked",), ("pd-direct",))
    assert (one.decided_by, one.tie) == ("throughput", False)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("workloads.reasoning.output", lambda value: (8192, value, 32)),
        ("workloads.reasoning.input", lambda value: (value, 1025, 32)),
        ("workloads.reasoning.batch", lambda value: (8192, 1025, value)),
    ],
)
def test_lengths_and_batches_of_the_eight_cards(path: str, known: object) -> None:
    assert callable(known)
    told = found(eight(*TWO), path).flips
    assert told
    for one in told:
        assert one.above.value - one.below.value == 1
        for value, outcome, plan in two_sides(one):
            rates = {"chunked": chunked(*known(int(value))), "pd-direct": separated(*known(int(value)))}
            best = max(rates, key=lambda name: rates[name])
            if rates[best] < 0.2:
                assert outcome == ()
                continue
            assert outcome == (best,)
            assert plan.throughput == pytest.approx(rates[best], rel=1e-6)


def test_how_quick_a_link_must_be_to_take_attention_apart() -> None:
    instance = load(CHAPTER / "attention-apart.yaml")
    pd = 384 / (1024 * max(H20.step(384, 640)))
    (one,) = found(instance, "hardware.links.rdma.startup").flips
    assert apart(one.below.value) > pd > apart(one.above.value)
    assert one.above.value == pytest.approx(one.below.value, rel=1e-3)
    assert (one.below.outcome, one.above.outcome) == (("attention-ffn",), ("pd-direct",))
    assert one.below.plan.throughput == pytest.approx(apart(one.below.value), rel=1e-6)
    assert one.above.plan.throughput == pytest.approx(pd, rel=1e-6)
    assert (one.decided_by, one.tie) == ("throughput", False)


def test_how_wide_a_link_must_be_to_take_attention_apart() -> None:
    instance = load(CHAPTER / "attention-apart.yaml")
    pd = 384 / (1024 * max(H20.step(384, 640)))
    (one,) = found(instance, "hardware.links.rdma.bandwidth").flips
    assert apart(50e-6, one.below.value) < pd < apart(50e-6, one.above.value)
    assert one.above.value == pytest.approx(one.below.value, rel=1e-3)


def test_the_margin_to_the_best_other_scheme() -> None:
    told = found(load(CHAPTER / "attention-apart.yaml")).now
    assert told is not None
    assert told.other is not None
    assert (told.outcome, told.other[0], told.decided_by) == (("attention-ffn",), "pd-direct", "throughput")
    assert told.margin == pytest.approx(apart(50e-6) / (384 / (1024 * max(H20.step(384, 640)))) - 1.0, rel=1e-6)


def test_a_flip_within_one_objective_is_a_tie() -> None:
    """All GPUs are paid for, so every scheme costs the same, and requests/s decide."""
    changes = (
        "schemes={allow: [chunked, pd-direct], mix: false}",
        "service.drain=null",
        "workloads.reasoning.rate=1/s",
    )
    told = found(eight(*changes), "hardware.links.rdma.bandwidth")
    (one,) = told.flips
    assert (one.decided_by, one.tie) == ("throughput", True)
    assert one.at == pytest.approx(chunked(8192, 1025, 32) * 8192 * KV, rel=1e-3)
    assert told.now is not None
    assert told.now.decided_by == "throughput"
    assert told.now.margin == pytest.approx(separated(8192, 1025, 32) / chunked(8192, 1025, 32) - 1.0, rel=1e-6)


def test_a_flip_to_infeasible_is_decided_by_limits() -> None:
    """Arrivals above what the winner sustains: 4 A100 that prefill, whatever decodes."""
    instance = eight("schemes.allow=[pd-direct]", "service.drain=null")
    (one,) = found(instance, "workloads.reasoning.rate").flips
    assert one.below.value <= separated(8192, 1025, 32) <= one.above.value
    assert (one.below.outcome, one.above.outcome) == (("pd-direct",), ())
    assert (one.above.plan.status, one.decided_by, one.tie) == ("infeasible", "limits", False)
    back = found(moved(instance, find(instance, "workloads.reasoning.rate"), 6.0), "workloads.reasoning.rate")
    assert back.now is not None
    assert back.now.outcome == ()
    assert back.flips[0].at == pytest.approx(one.at, rel=2e-3)


def test_equal_schemes_are_decided_by_their_order() -> None:
    """Without KV to hand over, a request of one output token is prefill alone, whatever the scheme."""
    changes = (
        "workloads.reasoning.output=1",
        "service.drain=null",
        "schemes={allow: [replicas, pd-direct], mix: false}",
    )
    told = found(eight(*changes, "objective=throughput")).now
    assert told is not None
    assert (told.outcome, told.decided_by, told.margin) == (("replicas",), "order", 0.0)


def by_throughput(seed: int) -> Instance:
    """An instance of the generator in which nothing is promised and the most requests/s win."""
    data = document(seed)
    for key in ("limits", "service"):
        data.pop(key, None)
    for workload in data["workloads"].values():
        workload["rate"] = "0.001/s"
        workload.pop("targets", None)
    allow = ["replicas", "chunked", "pd-direct", "pd-pooled"]
    return from_document({**data, "objective": "throughput", "schemes": {"allow": allow, "mix": seed % 2 == 0}})


@pytest.mark.parametrize(
    ("instance", "least"),
    [
        (generated(1), 2),
        (generated(5), 0),
        (by_throughput(1), 2),
        (by_throughput(4), 1),
        (by_throughput(8), 2),
        (by_throughput(20), 3),
    ],
    ids=["promises", "infeasible", "alone", "in order", "a link", "side by side"],
)
def test_both_sides_of_every_flip_solve_to_what_is_told(instance: Instance, least: int) -> None:
    ends = ("l0.bandwidth", "w0.output", "w0.input", "w0.rate")
    paths = [path for path in numbers(instance) if path.endswith(ends)]
    told = found(instance, *paths)
    assert told.stopped == []
    assert len(told.flips) >= least
    assert {one.number.path for one in told.flips} | {one.number.path for one in told.unchanged} == set(paths)
    for one in told.flips:
        number = one.number
        assert one.below.outcome != one.above.outcome
        assert one.above.value - one.below.value <= (1 if number.whole else 1e-3 * one.above.value)
        assert told.now is not None
        near = one.above if one.at == one.below.value else one.below
        assert near.outcome == told.now.outcome
        for value, outcome, plan in two_sides(one):
            again = solve(moved(instance, number, value), Options(plan_only=True, reasons=False))
            assert {pool.scheme for pool in again.pools} == set(outcome)
            assert (again.status, again.objective.value) == (plan.status, plan.objective.value)


def test_numbers_that_are_asked_about() -> None:
    links = ["hardware.links.rdma.startup", "hardware.links.rdma.bandwidth"]
    rest = [f"workloads.reasoning.{key}" for key in ("output", "input", "batch", "rate")]
    prices = ["hardware.groups.a100.price", "hardware.groups.h20.price"]
    assert numbers(eight()) == [*links, *rest, *prices]
    assert numbers(eight("schemes.allow=[replicas]", "workloads.reasoning.batch=null")) == [
        *(path for path in rest if not path.endswith("batch")),
        *prices,
    ]
    wired = numbers(eight("schemes.allow=[replicas]", "models.qwen3-8b.tp=[1, 2]"))
    assert wired[:2] == ["hardware.groups.a100.scale_up.startup", "hardware.groups.a100.scale_up.bandwidth"]


def test_ranges_stay_within_what_is_legal() -> None:
    instance = eight("workloads.reasoning.batch=8", "workloads.reasoning.cached=5000")
    batch = asked(instance, "workloads.reasoning.batch")
    assert (batch.low, batch.high) == (1, 256)
    assert asked(instance, "workloads.reasoning.input").low == 5001  # a cached prefix leaves one token to prefill
    assert asked(instance, "hardware.efficiency.compute").high == 1.0
    stated = asked(instance, "hardware.links.rdma.startup", ("0 s", "1 ms"))
    assert (stated.low, stated.high) == (0.0, 1e-3)
    none = asked(eight("hardware.links.rdma.startup=0 s"), "hardware.links.rdma.startup")
    assert (none.low, none.high) == (0.0, 1e-3)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_instance_with_a_number_where_it_was_is_the_same(path: Path) -> None:
    instance = load(path)
    for at in [f"workloads.{name}.rate" for name in instance.workloads][:2]:
        number = find(instance, at)
        assert moved(instance, number, number.now) == instance
        assert moved(instance, number, 2.0 * number.now).sha256() != instance.sha256()


@pytest.mark.parametrize(
    ("path", "stated", "problem"),
    [
        ("workloads.reasoning.outptu", None, "not in the instance"),
        ("workloads.other.rate", None, "not in the instance"),
        ("workloads.reasoning.rate.x", None, "not in the instance"),
        ("workloads.reasoning.users", None, "read as others"),
        ("workloads.reasoning.targets.ttft", None, "is not stated"),
        ("schemes.mix", None, "not a number"),
        ("schemes.allow", None, "not a number"),
        ("workloads.reasoning.rate", ("8/s", "2/s"), "LOW is above HIGH"),
        ("workloads.reasoning.rate", ("4/s", "8/s"), "outside of the range"),
        ("workloads.reasoning.rate", ("1 GB/s", "8/s"), "is a byte rate"),
        ("workloads.reasoning.output", ("0.5", "2000"), "not a whole number"),
        ("workloads.reasoning.output", ("0", "2000"), "out of bounds"),
        ("workloads.reasoning.cached", None, "needs a range"),
    ],
)
def test_what_is_no_number_with_a_range(path: str, stated: tuple[str, str] | None, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        asked(eight(), path, stated)


@pytest.mark.parametrize(
    ("now", "end", "tried"),
    [
        (5, 0, [2, 1, 0]),
        (5, 1, [2, 1]),
        (0, 3, [1, 2, 3]),
        (1, 5, [2, 4, 5]),
        (4, 4, []),
    ],
)
def test_whole_numbers_on_the_way(now: int, end: int, tried: list[int]) -> None:
    number = replace(find(eight(), "workloads.reasoning.cached"), now=float(now))
    assert list(outward(number, float(end))) == tried


def test_no_time_is_no_answer() -> None:
    told = found(eight(), "workloads.reasoning.rate", seconds=1e-9)
    assert told.now is None
    assert [(one.number.path, one.low, one.high) for one in told.stopped] == [("workloads.reasoning.rate", 3.5, 3.5)]


class After(Stop):
    """Asks to stop once it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    @property
    def asked(self) -> bool:  # type: ignore[override]
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("looks", [0, 30, 116, 120, 124, 150])
def test_what_is_told_of_a_search_that_is_stopped(looks: int) -> None:
    """Every number is told; a flip that was not followed to the end still lies between what is told of it."""
    paths = ["hardware.links.rdma.bandwidth", "workloads.reasoning.rate"]
    told = flips(eight(*TWO), [asked(eight(*TWO), path) for path in paths], Limits(stop=After(looks)))
    left = {one.number.path for one in told.stopped}
    assert left | {one.number.path for one in told.flips} == set(paths)
    assert (told.now is None) == (looks == 0)
    closed = chunked(8192, 1025, 32) * 8192 * KV
    for one in told.flips:
        assert one.below.value <= closed <= one.above.value
        assert (one.decided_by is None) == (one.above.value - one.below.value > 1e-3 * one.above.value)


def test_a_search_from_zero_reaches_zero_again() -> None:
    instance = load(CHAPTER / "attention-apart.yaml", ["hardware.links.rdma.startup=0 s"])
    (one,) = found(instance, "hardware.links.rdma.startup").flips
    assert apart(one.below.value) > 384 / (1024 * max(H20.step(384, 640))) > apart(one.above.value)
    slow = load(CHAPTER / "attention-apart.yaml", ["hardware.links.rdma.startup=1 ms"])
    there = asked(slow, "hardware.links.rdma.startup", ("0 s", "1 ms"))
    (back,) = flips(slow, [there], Limits()).flips
    assert math.isclose(back.at, one.at, rel_tol=2e-3)
