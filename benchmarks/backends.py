"""The same master problems on the solvers that MathOpt knows: how long they take, and whether they are right.

The goal is the throughput; for the exact solvers, also all goals of a plan one after the other. A value is right when
no solver finds a better one that counts carry, and when its own counts carry it: with the counts fixed, a linear
program gives the throughput that they really have.

CP-SAT knows whole numbers only: it rounds continuous columns to a grid, of width 1 unless it is told to scale them.
"""

import contextlib
import datetime
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ortools.math_opt.python import mathopt
from ortools.sat import sat_parameters_pb2

from benchmarks.random_instances import instance
from benchmarks.results import columns
from benchmarks.solving import EIGHT
from benchmarks.timing import Job, call, interleaved
from models.load import load
from solver.data import gather
from solver.limits import gap
from solver.milp.master import Goal, Master, build, goals
from solver.milp.model import INFINITY
from solver.optimise import SLACK

BARE, FINE, RELAXED = "GSCIP, bare", "CP_SAT, grid 1e-5", "GLOP, relaxed"
EXACT = ("GSCIP", BARE, "HIGHS")
SOLVERS = (*EXACT, "CP_SAT", FINE, RELAXED)
LIMIT = 5.0
"""Seconds a run may take; what takes longer runs once."""
RIGHT = 1e-6
"""Relative difference within which a value is right."""


@dataclass(frozen=True)
class Row:
    """One solver on one program."""

    instance: str
    size: str
    solver: str
    median_ms: float
    least_ms: float
    processor_ms: float
    goals_ms: float | None
    """Median processor time for all goals of a plan in order."""
    ended: str
    value: float | None
    carried: float | None
    """Throughput that the counts found really have."""
    verdict: str


def programs() -> dict[str, Master]:
    """The worked example and larger random ones, as the product would solve them."""
    instances = [
        load(EIGHT),
        instance(1, groups=2, workloads=2, models=1),
        instance(2),
        instance(3),
        instance(4, groups=4, workloads=4, cards=256),
        instance(7, groups=4, workloads=6, cards=32),
        instance(8, groups=6, workloads=6, cards=256),
    ]
    return {one.name: build(gather(one).only(one.schemes.allow).pruned()) for one in instances}


def converted(master: Master, relax: bool = False, counts: Sequence[float] = ()) -> tuple[Any, list[Any]]:
    """The program in MathOpt, with its columns; whole numbers relaxed or fixed to ``counts`` when asked."""
    made = mathopt.Model()
    source = master.model
    fixed = dict(zip(master.units, counts, strict=True)) if counts else {}
    variables = [
        made.add_variable(
            lb=fixed.get(index, lower), ub=fixed.get(index, upper), is_integer=whole and not relax and not fixed
        )
        for index, (lower, upper, whole) in enumerate(zip(source.lower, source.upper, source.integer, strict=True))
    ]
    for row in source.rows:
        sums: dict[int, float] = {}
        for column, coefficient in row.terms:
            sums[column] = sums.get(column, 0.0) + coefficient
        constraint = made.add_linear_constraint(lb=row.lower, ub=row.upper)
        for column, coefficient in sums.items():
            constraint.set_coefficient(variables[column], coefficient)
    aim(made, variables, master.by_throughput)
    return made, variables


def aim(made: Any, variables: Sequence[Any], goal: Goal) -> None:
    """Makes ``goal`` the objective."""
    made.objective.clear()
    made.objective.is_maximize = goal.maximise
    for column, coefficient in goal.terms:
        made.objective.set_linear_coefficient(variables[column], coefficient)


def in_order(master: Master, solver: str) -> None:
    """All goals of a plan, each kept while the next one is met, with the last solution as a hint."""
    made, variables = converted(master)
    hint: tuple[float, ...] = ()
    for goal in goals(master):
        if not goal.terms:
            continue
        aim(made, variables, goal)
        result = solved(made, solver, dict(zip(variables, hint, strict=True)) if hint else None)
        value = _value(result)
        if value is None:
            raise RuntimeError(f"{solver}: {result.termination}")
        hint = tuple(result.variable_values(variables))
        room = SLACK * max(abs(value), 1e-6)
        kept = made.add_linear_constraint(
            lb=value - room if goal.maximise else -INFINITY, ub=INFINITY if goal.maximise else value + room
        )
        for column, coefficient in goal.terms:
            kept.set_coefficient(variables[column], coefficient)


def solved(made: Any, solver: str, hint: dict[Any, float] | None = None) -> Any:
    """One run to a full proof, on one thread; HiGHS takes no number of threads through MathOpt."""
    whole = solver != RELAXED
    parameters = mathopt.SolveParameters(
        time_limit=datetime.timedelta(seconds=LIMIT),
        relative_gap_tolerance=0.0 if whole else None,
        absolute_gap_tolerance=0.0 if whole else None,
        threads=1 if whole and solver != "HIGHS" else None,
    )
    if solver == BARE:
        parameters.cuts = parameters.presolve = parameters.heuristics = mathopt.Emphasis.OFF
    if solver == FINE:
        parameters.cp_sat = sat_parameters_pb2.SatParameters(mip_var_scaling=1e5)
    settings = mathopt.ModelSolveParameters()
    if hint:
        settings.solution_hints.append(mathopt.SolutionHint(hint, {}))
    try:
        kind = mathopt.SolverType[solver.partition(",")[0]]
        return mathopt.solve(made, kind, params=parameters, model_params=settings)
    except Exception:  # MathOpt fails to say so when CP-SAT finds its own roundings contradictory
        if solver.startswith("CP_SAT"):
            return None
        raise


def carried(master: Master, counts: Sequence[float]) -> float | None:
    """The throughput of whole ``counts``, by a linear program."""
    made, _ = converted(master, counts=[float(round(count)) for count in counts])
    result = solved(made, "GLOP")
    return float(result.objective_value()) if result.has_primal_feasible_solution() else None


def compare(rounds: int) -> Iterator[list[Row]]:
    """Every solver in turn, program by program."""
    for name, master in programs().items():
        yield _one(name, master, rounds)


def _one(name: str, master: Master, rounds: int) -> list[Row]:
    whole, variables = converted(master)
    relaxed, _ = converted(master, relax=True)
    last: dict[str, Any] = {}

    def job(solver: str) -> Job:
        def work() -> None:
            last[solver] = solved(relaxed if solver == RELAXED else whole, solver)

        return call(work)

    def chain(solver: str) -> Job:
        return call(lambda: in_order(master, solver))

    with _silenced():
        times = {solver: interleaved({solver: job(solver)}, 1, warm=0)[solver] for solver in SOLVERS}
        again = {solver: job(solver) for solver in SOLVERS if times[solver].least < LIMIT}
        times |= interleaved(again, rounds, warm=0)
        goal_times = interleaved({solver: chain(solver) for solver in EXACT}, max(1, rounds // 2), warm=0)
        values = {solver: _value(result) for solver, result in last.items()}
        real = {
            solver: carried(master, last[solver].variable_values([variables[column] for column in master.units]))
            for solver in SOLVERS
            if solver != RELAXED and values[solver] is not None
        }
    best = max((known for known in real.values() if known is not None), default=None)
    source = master.model
    size = f"{len(source.lower)} columns, {sum(source.integer)} whole, {len(source.rows)} rows"
    return [
        Row(
            instance=name,
            size=size,
            solver=solver,
            median_ms=1e3 * times[solver].median,
            least_ms=1e3 * times[solver].least,
            processor_ms=1e3 * times[solver].busy,
            goals_ms=1e3 * goal_times[solver].busy if solver in goal_times else None,
            ended="refused" if last[solver] is None else last[solver].termination.reason.name.lower(),
            value=values[solver],
            carried=real.get(solver),
            verdict=_verdict(solver, values[solver], real.get(solver), best),
        )
        for solver in SOLVERS
    ]


def _value(result: Any) -> float | None:
    return float(result.objective_value()) if result is not None and result.has_primal_feasible_solution() else None


def _verdict(solver: str, value: float | None, carried: float | None, best: float | None) -> str:
    if value is None or best is None:
        return "wrong: there is a plan"
    if solver == RELAXED:
        return f"a bound, {value / best - 1.0:.2%} above"
    words = []
    if gap(value, best) > RIGHT:
        words.append(f"value off by {value / best - 1.0:+.1e}")
    if gap(carried, best) > RIGHT:
        words.append("counts not the best")
    return "; ".join(words) or "right"


def table(rows: Sequence[Row]) -> str:
    """The comparison on one program as text."""
    header = (
        f"{rows[0].instance} ({rows[0].size})",
        *("median", "least", "processor", "all goals", "ended", "a tick", "verdict"),
    )
    lines = [
        (
            row.solver,
            f"{row.median_ms:.1f} ms",
            f"{row.least_ms:.1f} ms",
            f"{row.processor_ms:.1f} ms",
            "" if row.goals_ms is None else f"{row.goals_ms:.1f} ms",
            row.ended,
            "" if row.value is None else f"{row.value:.9g}",
            row.verdict,
        )
        for row in rows
    ]
    return columns(header, lines)


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The comparison as plain data."""
    return [asdict(row) for row in rows]


@contextlib.contextmanager
def _silenced() -> Iterator[None]:
    """Standard output and error closed meanwhile: HiGHS prints to the one, SCIP to the other."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
