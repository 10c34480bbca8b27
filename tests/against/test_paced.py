"""Units paced by a step time: exact where one workload decides it, between two searches where several do.

The search that is never better tries the targets and the steps of full memory alone; the one that is never worse takes
for every row the step time that suits it best.
"""

import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from models import files
from models.instance import Instance
from models.load import build
from models.plan import Plan
from solver.solve import Options, solve
from tests.against.generate_parts import CARDS, MODELS, WIRES
from tests.against.network import Network
from tests.against.wide_cards import Card, Load, cuts
from tests.against.wide_case import wide_case
from tests.against.wide_search import Found, WideSearch
from tests.against.wide_units import Wide, batch_of, buffer, taus, wide_units

SEEDS = range(60)
NEAR = 1e-6


def paced_instance(seed: int) -> Instance:
    """One model, one or two groups, one to three workloads, most of them with targets."""
    draw = random.Random(77_000 + seed)
    allow = draw.choice((["pd-direct"], ["chunked"], ["replicas"], ["pd-direct", "chunked"]))
    number = draw.choice((1, 1, 2)) if len(allow) == 1 else 1
    groups = {
        f"g{i}": {
            "accelerator": draw.choice(CARDS),
            "servers": draw.choice((2, 3)) if number == 1 else 2,
            "per_server": draw.choice((1, 2)),
            "price": f"{draw.choice((1.2, 2.5)) + i / 9:.4g}/h",
            "scale_up": draw.choice(WIRES),
            "inside_handoffs": "free",
            "pp": [1] if draw.random() < 0.8 else [2],
        }
        for i in range(number)
    }
    loads: dict[str, Any] = {}
    for index in range(draw.choice((1, 2, 2, 3))):
        loads[f"w{index}"] = {
            "model": "m",
            "input": draw.choice((200, 1000, 3000)),
            "output": draw.choice((1, 60, 300, 900)) if index else draw.choice((60, 300, 900)),
            "rate": f"{draw.uniform(0.05, 2.0):.5g}/s",
            "targets": {"tpot": f"{draw.choice((20, 30, 50, 80))} ms"},
        }
        if draw.random() < 0.4:
            loads[f"w{index}"]["targets"]["ttft"] = f"{draw.choice((0.3, 0.8, 2.0))} s"
        if index and draw.random() < 0.3:
            del loads[f"w{index}"]["targets"]
        if draw.random() < 0.3:
            loads[f"w{index}"]["batch"] = draw.choice((4, 16))
    data = {
        "schema": 1,
        "name": f"paced-{seed}",
        "models": {"m": draw.choice(MODELS)},
        "hardware": {"groups": groups, "links": {"l": {"connects": list(groups), "bandwidth": "50 GB/s"}}},
        "workloads": loads,
        "schemes": {"allow": allow},
        "billing": {"pay": "used"},
        "objective": draw.choice(("throughput", "cost", "gpus", "headroom")),
    }
    return build(files.parse(files.dump(data)))


def no_worse(instance: Instance, unit: Wide) -> Wide:
    """The unit with every row at the step time that suits it best; a first token takes nothing."""
    if unit.tau is None:
        return unit
    network = Network(instance.hardware)
    cut = next(c for c in cuts(instance, network, unit.group, unit.model) if (c.tp, c.pp) == unit.cut)
    card = Card(instance, instance.hardware.groups[unit.group], instance.models[unit.model], cut)
    own = {n: (w, Load.of(card, w)) for n, w in instance.workloads.items()}
    own = {n: wl for n, wl in own.items() if batch_of(card, unit.kind, *wl, buffer(unit.kind, wl[1]))}
    targets = [w.targets.tpot for w, _ in own.values() if w.targets.tpot and w.decodes]
    longest = max([*targets, *taus(card, unit.kind, own)])
    takes: dict[str, tuple[float, ...]] = {}
    for name, (w, load) in own.items():
        if not (w.decodes or unit.stage == "both"):
            continue
        quickest = cut.pp * load.step.seconds(1) if w.decodes else 0.0
        if quickest > (w.targets.tpot or longest) * (1 + 1e-9):
            continue
        most = (w.targets.tpot or longest) / cut.pp if w.decodes else longest / cut.pp
        before = {"decode": (0.0, 0.0), "chunked": (load.compute + load.beside, load.memory + load.beside)}
        compute, memory = before.get(unit.kind, (load.prefill, load.prefill))
        step = load.step
        compute += load.calls * (step.each_compute + step.each_beside)
        memory += load.calls * (step.each_memory + step.each_beside)
        takes[name] = (
            compute / (1 - step.beside / most),
            memory / (1 - (step.memory + step.beside) / most),
            load.calls * quickest * load.held / card.room(),
            load.calls * quickest / w.batch if isinstance(w.batch, int) else 0.0,
        )
    return replace(unit, seconds=takes)


@cache
def tried(seed: int) -> tuple[Instance, Plan, Found | None, Found | None]:
    """Instance, plan, a search that cannot be better and one that cannot be worse."""
    made = paced_instance(seed)
    own = wide_units(made, Network(made.hardware), list(made.schemes.allow))
    chunks = [u for u in own if u.kind == "chunked" and any(made.workloads[n].targets.ttft for n in u.seconds)]
    below = WideSearch(wide_case(made, made.schemes.allow, [u for u in own if u not in chunks]))
    loose = [no_worse(made, unit) for unit in own]
    above = WideSearch(wide_case(made, made.schemes.allow, [u for u in loose if u.seconds]))
    return made, solve(made, Options(plan_only=True, reasons=False)), below.run(), above.run()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_plan_is_between_the_two_searches(seed: int) -> None:
    made, plan, below, above = tried(seed)
    assert plan.status in ("optimal", "infeasible")
    scale = 3600.0 if made.objective == "cost" else 1.0
    sign = 1.0 if made.objective in ("throughput", "headroom") else -1.0
    if plan.status == "infeasible":
        assert below is None
        return
    assert above is not None
    value = plan.objective.value or 0.0
    assert sign * value <= sign * above.value * scale + NEAR * abs(value)
    if below is not None:
        assert sign * value >= sign * below.value * scale - NEAR * abs(value)
    paced = any(pool.step_s is not None for pool in plan.pools)
    if paced and len(made.workloads) == 1 and not made.workloads["w0"].targets.ttft:
        assert below is not None
        assert value == pytest.approx(below.value * scale, rel=NEAR)


def test_the_two_searches_are_near_each_other() -> None:
    """Were they far apart, the test above would say little."""
    both = [(plan, below, above) for _, plan, below, above in map(tried, SEEDS) if below is not None]
    assert len(both) >= 25
    assert sum(any(pool.step_s for pool in plan.pools) for plan, _, _ in both) >= 20
    close = sum(above is not None and 0.7 <= above.value / below.value <= 1.4 for _, below, above in both)
    assert close >= 0.6 * len(both)
    assert any(len(made.workloads) > 1 and plan.status == "optimal" for made, plan, _, _ in map(tried, SEEDS))
