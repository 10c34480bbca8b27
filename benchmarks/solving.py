"""Solves in this process, warm, and how their time grows with the number of cards."""

from functools import partial
from pathlib import Path

from benchmarks.results import Result, as_ratio, in_ms
from benchmarks.timing import call, interleaved, ratio, reference
from models.instance import Instance
from models.load import load
from solver import units
from solver.data import gather
from solver.layouts import sections
from solver.limits import Limits
from solver.popularity import popularity
from solver.solve import Options, solve

ROOT = Path(__file__).resolve().parent.parent
EIGHT = ROOT / "instances" / "chapter" / "eight-cards.yaml"
THREE = ROOT / "instances" / "examples" / "three-node-types.yaml"
SIX = ROOT / "instances" / "bench" / "six-workloads.yaml"
TIERS = ROOT / "instances" / "bench" / "four-tiers.yaml"
TIERS_MS, TIERS_GAP = 10_000.0, 1e-3
MIXTURE = ROOT / "instances" / "bench" / "moe-four-types.yaml"
PLAN_MS, FULL_MS = 50.0, 250.0
CANDIDATES_MS = 2000.0
"""One mixture of experts on a 16-server cluster of four types."""
MIDDLE_MS = 5000.0
"""Two models, three node types, six request classes, TP 1 to 8, batch chosen: plan with explanation."""
CARDS = 2.0
"""Most that 10^5 cards a group may take, in units of 10 cards a group."""


def plan(instance: Instance, plan_only: bool) -> None:
    """A solve that must end with a verified optimal plan."""
    found = solve(instance, Options(plan_only=plan_only))
    if found.status != "optimal" or not found.verified:
        raise RuntimeError(f"{instance.name}: {found.status}")


def in_process(rounds: int) -> list[Result]:
    """The worked example, in milliseconds and in units of a plain Python loop."""
    instance = load(EIGHT)
    times = interleaved(
        {
            "loop": call(reference),
            "plan": call(lambda: plan(instance, True)),
            "full": call(lambda: plan(instance, False)),
        },
        rounds,
        warm=2,
    )
    loop = times["loop"]
    return [
        in_ms("eight-cards in process, plan only", times["plan"], PLAN_MS),
        in_ms("eight-cards in process, with alternatives and next steps", times["full"], FULL_MS),
        in_ms("plain Python loop, for scale", loop),
        as_ratio("plan only / loop", ratio(times["plan"], loop)),
        as_ratio("full / loop", ratio(times["full"], loop)),
    ]


def middle(rounds: int) -> list[Result]:
    """Two models on three node types: six classes of requests in three workloads, and six workloads with targets."""
    results = []
    for path in (THREE, SIX):
        instance = load(path)
        times = interleaved(
            {"plan": call(partial(plan, instance, True)), "full": call(partial(plan, instance, False))}, rounds
        )
        results += [
            in_ms(f"{instance.name}, plan only", times["plan"]),
            in_ms(f"{instance.name}, with alternatives and next steps", times["full"], MIDDLE_MS),
        ]
    return results


def tiers(rounds: int) -> list[Result]:
    """Four tiers, twenty parts of prompts, four groups: each part with times of its own, and one time for all (LRU)."""
    instance = load(TIERS)
    lru = {name: tier.model_copy(update={"eviction": "lru"}) for name, tier in instance.tiers.items()}
    common = instance.model_copy(update={"tiers": lru})
    gaps: dict[str, float] = {}

    def solved(name: str, one: Instance) -> None:
        found = solve(one, Options(Limits(TIERS_MS / 1e3, TIERS_GAP), plan_only=True, reasons=False))
        gaps[name] = 1.0 if found.objective.gap is None else found.objective.gap

    jobs = {"apart": call(partial(solved, "apart", instance)), "common": call(partial(solved, "common", common))}
    times = interleaved(jobs, rounds)
    return [
        in_ms(f"{instance.name}, a time for each part, gap {100.0 * gaps['apart']:.2g} %", times["apart"], TIERS_MS),
        in_ms(f"{instance.name}, LRU, gap {100.0 * gaps['common']:.2g} %", times["common"]),
    ]


def candidates(instance: Instance) -> None:
    """Every candidate, from nothing: what is kept from one call to the next is thrown away first."""
    for kept in (units._costs, units._alone, sections._simulated, popularity):
        kept.cache_clear()
    if len(gather(instance).candidates) < 100:
        raise RuntimeError(f"{instance.name}: few candidates")


def mixture(rounds: int) -> list[Result]:
    """One mixture of experts on 16 servers of four types, every scheme allowed."""
    instance = load(MIXTURE)
    times = interleaved(
        {
            "candidates": call(partial(candidates, instance)),
            "plan": call(partial(plan, instance, True)),
            "full": call(partial(plan, instance, False)),
        },
        rounds,
    )
    return [
        in_ms(f"{instance.name}, candidates from nothing", times["candidates"], CANDIDATES_MS),
        in_ms(f"{instance.name}, plan only", times["plan"]),
        in_ms(f"{instance.name}, with alternatives and next steps", times["full"], MIDDLE_MS),
    ]


def scaled(servers: int) -> Instance:
    """The worked example with ``servers`` servers of ten cards a group, arrivals and link in proportion."""
    changes = [f"hardware.groups.{group}.servers={servers}" for group in ("a100", "h20")]
    changes += [f"hardware.groups.{group}.per_server=10" for group in ("a100", "h20")]
    changes += [f"hardware.links.rdma.bandwidth={500 * servers} Gbit/s"]
    changes += [f"workloads.reasoning.rate={8.75 * servers}/s"]
    return load(EIGHT, changes)


def by_cards(rounds: int) -> list[Result]:
    """10^5 cards a group against 10 cards a group."""
    few, many = scaled(1), scaled(10_000)
    results = []
    for plan_only, label in ((True, "plan only"), (False, "full")):
        times = interleaved(
            {
                "few": call(partial(plan, few, plan_only)),
                "many": call(partial(plan, many, plan_only)),
            },
            rounds,
        )
        results += [
            in_ms(f"10 cards a group, {label}", times["few"]),
            in_ms(f"10^5 cards a group, {label}", times["many"]),
            as_ratio(f"10^5 / 10 cards a group, {label}", ratio(times["many"], times["few"]), CARDS),
        ]
    return results
