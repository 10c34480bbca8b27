"""Ways to serve requests on units of any sort, what they are worth, and whether units pack into servers."""

from collections.abc import Sequence
from functools import cache

from ortools.linear_solver import pywraplp

from models.instance import Instance
from tests.against import contexts
from tests.against.network import Network, trips
from tests.against.programs import INFINITY, Case, Counts, Recipe, Stage, solved
from tests.against.wide_cards import NEVER
from tests.against.wide_units import Wide, wide_units


def wide_case(instance: Instance, schemes: Sequence[str], units: Sequence[Wide] | None = None) -> Case:
    """Every way to serve a request from first token to last."""
    network, recipes = Network(instance.hardware), []
    built = wide_units(instance, network, list(schemes)) if units is None else list(units)
    every = list(enumerate(built))
    built = [u for i, u in every if not any(_worse(u, v, i > j) for j, v in every)]
    for i, first in enumerate(built):
        for name, seconds in first.seconds.items():
            workload = instance.workloads[name]
            begin = tuple((i, k, s) for k, s in enumerate(seconds))
            if first.stage == "both" or (first.stage == "prefill" and not workload.decodes):
                recipes.append(Recipe(name, begin, first.load.get(name, {}), 0.0, first.startup))
            if first.stage != "prefill" or not workload.decodes:
                continue
            llm = instance.models[workload.model]
            sizes = [(one.share, contexts.state(llm, one.input)) for one in workload.classes if one.output > 1]
            for j, second in enumerate(built):
                if second.stage != "decode" or name not in second.seconds:
                    continue
                finish = tuple((j, k, s) for k, s in enumerate(second.seconds[name]))
                for trip in trips(network, list(schemes), first.group, second.group, sizes):
                    if first.first.get(name, 0.0) + trip.seconds > (workload.targets.ttft or NEVER) * (1 + 1e-9):
                        continue
                    load = dict(trip.load)
                    for part in (first.load.get(name, {}), second.load.get(name, {})):
                        for channel, share in part.items():
                            load[channel] = load.get(channel, 0.0) + share
                    ready = max(first.startup, second.startup)
                    recipes.append(Recipe(name, (*begin, *finish), load, trip.crossing, ready))
    return Case(instance, tuple(schemes), tuple(built), tuple(recipes))


def _worse(a: Wide, b: Wide, later: bool) -> bool:
    """Whether one unit of ``b``, on as many GPUs, does all that one of ``a`` does."""
    same = (a.kind, a.group, a.model, a.cards, a.block, a.measured, a.cut) == (
        b.kind,
        b.group,
        b.model,
        b.cards,
        b.block,
        b.measured,
        b.cut,
    )
    if a is b or not same or not set(a.seconds) <= set(b.seconds):
        return False
    pairs = [(x, y) for name in a.seconds for x, y in zip(a.seconds[name], b.seconds[name], strict=True)]
    return all(y <= x for x, y in pairs) and (later or any(y < x for x, y in pairs))


@cache
def packs(blocks: tuple[int, ...], servers: tuple[int, ...]) -> bool:
    """Whether blocks, largest first, fit into servers with so many free GPUs."""
    if not blocks:
        return True
    tried = set()
    for at, room in enumerate(servers):
        if room >= blocks[0] and room not in tried:
            tried.add(room)
            left = tuple(sorted((*servers[:at], room - blocks[0], *servers[at + 1 :])))
            if packs(blocks[1:], left):
                return True
    return False


@cache
def splits(cards: int, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Every way to give at most ``cards`` to units of these sizes."""
    if not sizes:
        return ((),)
    rest = sizes[1:]
    return tuple((n, *tail) for n in range(cards // sizes[0] + 1) for tail in splits(cards - n * sizes[0], rest))


class Served:
    """Most value of what is served, when no workload gets less than its least share."""

    def __init__(self, case: Case, widths: dict[str, float]) -> None:
        self.program = program = pywraplp.Solver.CreateSolver("GLOP")
        self.stage = Stage(program, case, INFINITY, 1.0, widths)
        program.Objective().SetMaximization()
        for name, w in case.instance.workloads.items():
            self.stage.served(program.Constraint(w.minimum_share * w.rate, w.rate), name)
            for recipe, column in self.stage.recipes:
                if recipe.workload == name:
                    program.Objective().SetCoefficient(column, w.value * w.qualifying)

    def at(self, counts: Counts) -> float | None:
        self.stage.set(counts)
        return float(self.program.Objective().Value()) if solved(self.program) else None
