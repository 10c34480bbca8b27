"""Expert placement on measured and generated loads: `python -m benchmarks experts --data PATH`.

PATH holds `eplb_baseline.csv`, what EPLB reaches on a grid of cases, and `*.npz`, measured loads by name (layers x
experts). Nothing of either is part of the project; without a path, generated loads only, and nothing to compare with.
"""

import csv
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.experts.layout import TOKENS, Layout
from models.experts.loads import loads
from solver.experts.moves import migrate
from solver.experts.place import place
from solver.experts.result import scenario
from solver.experts.solve import Options, solve

DISTRIBUTIONS = ("zipf0.5", "zipf0.8", "zipf1.2", "lognorm0.5", "lognorm1.0", "lognorm1.5", "hot4x")
MIXED_GOAL, MOVES_GOAL, COPIES_GOAL = 0.985, 0.98, 35.0
GRID_GOALS = ((1e-3, 75), (1e-2, 91))
SPEED = ((32, 0.3), (144, 1.5))


@dataclass(frozen=True)
class Measured:
    """One figure. goal: what was aimed at, in words."""

    name: str
    value: str
    goal: str = ""
    met: bool | None = None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "goal": self.goal, "met": self.met}


def generated(kind: str, layers: int, experts: int, seed: int = 0) -> np.ndarray:
    """Loads of a distribution, 1e6 tokens a layer, at least 1 an expert."""
    rng = np.random.default_rng([seed, DISTRIBUTIONS.index(kind), layers, experts])
    shape = (layers, experts)
    if kind.startswith("zipf"):
        ranks = np.arange(1, experts + 1) ** -float(kind[4:])
        tokens = np.stack([rng.permutation(ranks) for _ in range(layers)]) * np.exp(0.1 * rng.standard_normal(shape))
    elif kind.startswith("lognorm"):
        tokens = np.exp(float(kind[7:]) * rng.standard_normal(shape))
    else:
        tokens = rng.uniform(0.9, 1.1, shape)
        tokens[np.arange(layers), rng.integers(0, experts, layers)] = 4.0
    return np.asarray(np.maximum(np.round(tokens / tokens.sum(1, keepdims=True) * 1e6), 1.0))


def measure(data: Path | None) -> Iterator[Measured]:
    """All figures; those of measured loads need ``data``."""
    if data is None:
        yield from speed({kind: generated(kind, 58, 256) for kind in ("lognorm0.5", "lognorm1.0")})
        return
    measured = {name: array for path in sorted(data.glob("*.npz")) for name, array in np.load(path).items()}
    yield from speed({name: array.astype(np.float64) for name, array in measured.items()})
    yield from mixed(measured)
    yield from moves(measured)
    yield from grid(data, measured)


def speed(cases: dict[str, np.ndarray]) -> Iterator[Measured]:
    """Processor time of 288 slots without the threshold program, least of three, slowest case."""
    for cards, goal in SPEED:
        layout = Layout((288 // cards,) * cards)
        times = [min(_processor(tokens, layout) for _ in range(3)) for tokens in cases.values()]
        name = f"{cards} cards x {288 // cards} slots, slowest of {len(cases)}"
        yield Measured(name, f"{max(times):.2f} s", f"<= {goal:g} s", max(times) <= goal)


def _processor(tokens: np.ndarray, layout: Layout) -> float:
    started = time.process_time()
    place(tokens, layout)
    return time.process_time() - started


def mixed(measured: dict[str, np.ndarray]) -> Iterator[Measured]:
    """One placement for all measured loads."""
    for cards, slots, goal in ((32, 9, MIXED_GOAL), (72, 4, None)):
        result = solve(loads(measured), Layout((slots,) * cards), Options(tighten=0.0))
        low = min(one.balancedness for one in result.scenarios)
        name = f"{len(measured)} loads together, {cards} x {slots}, least balancedness"
        yield Measured(name, f"{low:.4f}", "" if goal is None else f">= {goal}", None if goal is None else low >= goal)
        yield Measured(f"the same, gap and time, {cards} x {slots}", f"{result.gap:.2%}, {result.seconds:.1f} s")


def moves(measured: dict[str, np.ndarray]) -> Iterator[Measured]:
    """From the placement of each measured load to each other, 32 cards x 9 slots."""
    layout, copies, balance = Layout((9,) * 32), [], []
    for name, tokens in measured.items():
        current, _ = place(tokens.astype(np.float64), layout)
        for other, later in measured.items():
            if other != name:
                found = migrate(current, later.astype(np.float64), TOKENS, MOVES_GOAL)
                copies.append(float(found.copies.mean()))
                balance.append(scenario(other, found.placement, later, TOKENS).balancedness)
    met = max(copies) <= COPIES_GOAL and min(balance) >= MOVES_GOAL
    value = f"{max(copies):.1f} copies a layer for {min(balance):.4f}"
    yield Measured(f"migration, worst of {len(copies)} pairs", value, "<= 35 for >= 0.98", met)


def grid(data: Path, measured: dict[str, np.ndarray]) -> Iterator[Measured]:
    """All cases of the baseline: never below it, and proven gaps."""
    with open(data / "eplb_baseline.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["policy"] == "global"]
    gaps: dict[bool, list[float]] = {False: [], True: []}
    below, spent = 0, 0.0
    for row in rows:
        kind = row["dist"].removeprefix("trace:")
        tokens = measured.get(kind)
        if tokens is None:
            tokens = generated(kind, int(row["L"]), int(row["E"]), int(row["seed"]))
        cards, slots = int(row["gpus"]), int(row["slots"])
        for tighten in (False, True):
            options = Options(tighten=60.0 if tighten else 0.0)
            result = solve(loads({kind: tokens}), Layout((slots // cards,) * cards), options)
            gaps[tighten].append(result.gap)
            below += result.balancedness < float(row["bal_mean"]) - 1e-5
            spent += result.bound_seconds
    yield Measured(f"{len(rows)} cases, below EPLB", str(below), "0", below == 0)
    for share, goal in GRID_GOALS:
        plain, tight = (sum(gap <= share for gap in gaps[flag]) for flag in (False, True))
        yield Measured(
            f"gap <= {share:.1%}, without / with threshold programs", f"{plain} / {tight}", f">= {goal}", tight >= goal
        )
    yield Measured("largest gap, without / with", f"{max(gaps[False]):.2%} / {max(gaps[True]):.2%}")
    yield Measured("processor time of all threshold programs", f"{spent:.0f} s")


def table(found: list[Measured]) -> str:
    lines = ["| What | Value | Goal | Met |", "|---|---|---|---|"]
    words = {True: "yes", False: "no", None: ""}
    return "\n".join([*lines, *(f"| {one.name} | {one.value} | {one.goal} | {words[one.met]} |" for one in found)])
