"""The only file that runs OR-Tools. Why a run stopped is a value, never an exception.

Linear programs go to GLOP. Programs with whole numbers are tried three times, each run with what the one before found:
SCIP for an instant without cuts, presolve and heuristics, which is all that small models need; HiGHS for a few seconds,
the quickest on middle sizes; then SCIP, which can be watched and ended from outside, as HiGHS cannot through MathOpt.
CP-SAT rounds continuous columns (docs/benchmarks.md).
"""

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt

from solver.limits import PROOF, Limits, Outcome, Status, gap
from solver.milp.model import Model, Row, Term
from solver.silence import silenced

FEASIBLE = 1e-9
"""Relative room of each row in a program with whole numbers; the usual 1e-6 adds up to more than ``PROOF`` allows."""
BARE = dict.fromkeys(("cuts", "presolve", "heuristics"), mathopt.Emphasis.OFF)
"""What the first run does without."""
BRIEF = 0.15
"""Seconds of the first run."""
QUICK = 2.0
"""Seconds of a run that cannot be stopped, for a full proof, before the gap that the user accepts counts."""

LARGE, LONG = 3000, 10.0
"""Columns from which a program is large, and the seconds of such a run then."""
ALIKE = 1e-5
"""Relative difference up to which two runs with different tolerances found the same."""


class Session:
    """A program loaded once and solved for several goals; rows and bounds may be added in between."""

    def __init__(self, model: Model, relax: bool = False) -> None:
        self._model = mathopt.Model()
        self._variables = [
            self._model.add_variable(lb=lower, ub=upper, is_integer=integer and not relax)
            for lower, upper, integer in zip(model.lower, model.upper, model.integer, strict=True)
        ]
        self._whole = any(model.integer) and not relax
        self._integer = [v for v, integer in zip(self._variables, model.integer, strict=True) if integer and not relax]
        for row in model.rows:
            self.add(row)

    def add(self, row: Row) -> None:
        """One more row."""
        constraint = self._model.add_linear_constraint(lb=row.lower, ub=row.upper)
        for column, coefficient in _summed(row.terms).items():
            constraint.set_coefficient(self._variables[column], coefficient)

    def bound(self, column: int, lower: float, upper: float) -> None:
        """New bounds of a column."""
        self._variables[column].lower_bound = lower
        self._variables[column].upper_bound = upper

    def solve(
        self,
        terms: Sequence[Term],
        maximise: bool,
        limits: Limits,
        hint: Sequence[float] = (),
    ) -> Outcome:
        """The best value of ``terms``; proven if it can be, else the best found within the limits."""
        self._model.objective.clear()
        self._model.objective.is_maximize = maximise
        for column, coefficient in _summed(terms).items():
            self._model.objective.set_linear_coefficient(self._variables[column], coefficient)
        if not self._whole:
            outcome = self._run(limits, limits.left, 0.0, (), mathopt.SolverType.GLOP)
            if outcome.status == "stopped" and not limits.over:  # GLOP calls a few programs imprecise
                outcome = self._run(limits, limits.left, 0.0, (), mathopt.SolverType.HIGHS)
            return outcome
        enough = 0.0 if limits.exact else limits.gap
        if len(self._variables) > LARGE:
            return self._large(maximise, limits, hint)
        outcome = self._run(limits, min(limits.left, BRIEF), 0.0, hint)
        if self._ends(outcome, limits, enough):
            return outcome
        again = self._confirmed(limits, enough, outcome.values or hint)
        outcome = _better(outcome, again, maximise)
        if self._ends(outcome, limits, limits.gap):
            return outcome
        if not outcome.found:
            outcome = self._rounded(limits)
        again = self._run(limits, limits.left, limits.gap, outcome.values or hint, watched=True)
        return _better(outcome, again, maximise)

    def _large(self, maximise: bool, limits: Limits, hint: Sequence[float]) -> Outcome:
        """A large program is not proven in a moment: HiGHS for long, with its usual tolerance, then SCIP."""
        found = self._run(limits, min(limits.left, LONG), limits.gap, hint, mathopt.SolverType.HIGHS, loose=True)
        if found.status == "infeasible" or self._ends(found, limits, limits.gap):
            return found
        again = self._run(limits, limits.left, limits.gap, found.values or hint, watched=True)
        return _better(found, again, maximise)

    def _confirmed(self, limits: Limits, enough: float, hint: Sequence[float]) -> Outcome:
        """A run of HiGHS whose verdict a second one shares, with its usual tolerance.

        With a tight tolerance it cuts off solutions on some programs, and calls the start optimal, or nothing feasible.
        """
        found = self._run(limits, min(limits.left, QUICK), enough, hint, mathopt.SolverType.HIGHS)
        if found.status not in ("optimal", "infeasible"):
            return found
        other = self._run(limits, min(limits.left, QUICK), enough, found.values, mathopt.SolverType.HIGHS, loose=True)
        if found.value is None or other.value is None:
            same = found.status == other.status
        else:
            same = math.isclose(found.value, other.value, rel_tol=ALIKE, abs_tol=1e-9)
        if same:
            return found
        return replace(found, status="feasible", bound=None) if found.found else Outcome("stopped", None, None, ())

    @staticmethod
    def _ends(outcome: Outcome, limits: Limits, enough: float) -> bool:
        """Whether no further run is needed, or possible."""
        known = outcome.status in ("optimal", "infeasible") or outcome.gap <= enough
        return known or limits.over

    def _rounded(self, limits: Limits) -> Outcome:
        """The relaxation with every count rounded up, as a start for a long run; `stopped` when that does not fit."""
        bounds = [(v.lower_bound, v.upper_bound) for v in self._integer]
        try:
            self._whole = False
            for variable in self._integer:
                variable.integer = False
            relaxed = self._run(limits, limits.left, 0.0, (), mathopt.SolverType.GLOP)
            if not relaxed.found:
                return Outcome("stopped", None, None, ())
            values = dict(zip(self._variables, relaxed.values, strict=True))
            for variable in self._integer:
                count = math.ceil(values[variable] - 1e-6)
                variable.lower_bound = variable.upper_bound = float(count)
            rounded = self._run(limits, limits.left, 0.0, (), mathopt.SolverType.GLOP)
            if not rounded.found:
                return Outcome("stopped", None, None, ())
            return Outcome("feasible", rounded.value, relaxed.bound, rounded.values)
        finally:
            self._whole = True
            for variable, (lower, upper) in zip(self._integer, bounds, strict=True):
                variable.integer, variable.lower_bound, variable.upper_bound = True, lower, upper

    def _run(
        self,
        limits: Limits,
        seconds: float,
        gap: float,
        hint: Sequence[float],
        solver: mathopt.SolverType = mathopt.SolverType.GSCIP,
        watched: bool = False,
        loose: bool = False,
    ) -> Outcome:
        if limits.stop is not None and limits.stop.asked:
            return Outcome("stopped", None, None, ())
        parameters = mathopt.SolveParameters(
            time_limit=datetime.timedelta(seconds=max(seconds, 1e-3)),
            relative_gap_tolerance=gap if self._whole else None,
            absolute_gap_tolerance=0.0 if self._whole else None,
            random_seed=limits.seed,
            threads=1 if self._whole and solver == mathopt.SolverType.GSCIP else None,
            **({} if watched or not self._whole or solver != mathopt.SolverType.GSCIP else BARE),
        )
        if self._whole:
            parameters.gscip.real_params["numerics/feastol"] = FEASIBLE
            for tolerance in () if loose else ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
                parameters.highs.double_options[tolerance] = FEASIBLE
        settings = mathopt.ModelSolveParameters()
        if hint and self._whole:
            settings.solution_hints.append(mathopt.SolutionHint(dict(zip(self._variables, hint, strict=True)), {}))
        try:
            with silenced():
                result = self._call(solver, parameters, settings, limits if watched else None)
        except (AttributeError, RuntimeError):  # how MathOpt ends when its solver gives up on the numbers
            return Outcome("stopped", None, None, ())
        return self._outcome(result)

    def _call(
        self,
        solver: mathopt.SolverType,
        parameters: mathopt.SolveParameters,
        settings: mathopt.ModelSolveParameters,
        watched: Limits | None,
    ) -> mathopt.SolveResult:
        events = {mathopt.Event.MIP_NODE, mathopt.Event.MIP_SOLUTION} if watched else set()
        return mathopt.solve(
            self._model,
            solver,
            params=parameters,
            model_params=settings,
            callback_reg=mathopt.CallbackRegistration(events=events) if watched else None,
            cb=_watch(watched) if watched else None,
        )

    def _outcome(self, result: mathopt.SolveResult) -> Outcome:
        reason = result.termination.reason
        if reason in (mathopt.TerminationReason.INFEASIBLE, mathopt.TerminationReason.INFEASIBLE_OR_UNBOUNDED):
            return Outcome("infeasible", None, None, ())
        if not result.has_primal_feasible_solution():
            return Outcome("stopped", None, None, ())
        value, values = result.objective_value(), tuple(result.variable_values(self._variables))
        if self._whole:
            bound: float | None = result.dual_bound()
            return Outcome("optimal" if gap(value, bound) <= PROOF else "feasible", value, bound, values)
        optimal = reason == mathopt.TerminationReason.OPTIMAL  # cut short, the value of a linear program bounds nothing
        return Outcome("optimal" if optimal else "feasible", value, value if optimal else None, values)


@dataclass(frozen=True)
class Priced:
    """An optimal solution of a linear program with the price of every row: what one more of its limit changes."""

    value: float
    values: tuple[float, ...]
    prices: tuple[float, ...]


def priced(model: Model, terms: Sequence[Term], maximise: bool, seconds: float) -> Priced | None:
    """The linear program of ``model`` by GLOP, with prices; None where it was not solved to the end in time."""
    program = mathopt.Model.from_model_proto(_written(model, terms, maximise))
    limit = datetime.timedelta(seconds=max(seconds, 1e-3))
    try:
        with silenced():
            result = mathopt.solve(program, mathopt.SolverType.GLOP, params=mathopt.SolveParameters(time_limit=limit))
    except (AttributeError, RuntimeError):
        return None
    if result.termination.reason != mathopt.TerminationReason.OPTIMAL:
        return None
    values = {variable.id: value for variable, value in result.variable_values().items()}
    prices = {row.id: price for row, price in result.dual_values().items()}
    return Priced(
        result.objective_value(),
        tuple(values[column] for column in range(len(model.lower))),
        tuple(prices[row] for row in range(len(model.rows))),
    )


def _written(model: Model, terms: Sequence[Term], maximise: bool) -> model_pb2.ModelProto:
    """The program as one message: many times as fast as coefficient by coefficient."""
    proto = model_pb2.ModelProto()
    proto.variables.ids.extend(range(len(model.lower)))
    proto.variables.lower_bounds.extend(model.lower)
    proto.variables.upper_bounds.extend(model.upper)
    proto.variables.integers.extend([False] * len(model.lower))
    proto.linear_constraints.ids.extend(range(len(model.rows)))
    proto.linear_constraints.lower_bounds.extend(row.lower for row in model.rows)
    proto.linear_constraints.upper_bounds.extend(row.upper for row in model.rows)
    matrix = proto.linear_constraint_matrix
    for number, row in enumerate(model.rows):
        summed = sorted(_summed(row.terms).items())
        matrix.row_ids.extend([number] * len(summed))
        matrix.column_ids.extend(column for column, _ in summed)
        matrix.coefficients.extend(coefficient for _, coefficient in summed)
    proto.objective.maximize = maximise
    goal = sorted(_summed(terms).items())
    proto.objective.linear_coefficients.ids.extend(column for column, _ in goal)
    proto.objective.linear_coefficients.values.extend(coefficient for _, coefficient in goal)
    return proto


def assigned(cost: np.ndarray) -> np.ndarray:
    """The column for each row of a square table of whole costs that makes their sum least. cost: (n, n)."""
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

    rows, columns = np.indices(cost.shape)
    problem = SimpleLinearSumAssignment()
    problem.add_arcs_with_cost(rows.ravel(), columns.ravel(), np.asarray(cost, dtype=np.int64).ravel())
    if problem.solve() != problem.OPTIMAL:
        raise RuntimeError("a full assignment always exists")
    return np.array([problem.right_mate(row) for row in range(len(cost))])


def _better(one: Outcome, other: Outcome, maximise: bool) -> Outcome:
    """The better solution of two runs with the better bound; a verdict that a solution contradicts is none."""
    if one.value is None or other.value is None:
        return one if one.found or other.status == "stopped" else other
    sign = 1.0 if maximise else -1.0
    if other.status == "optimal":
        beaten = sign * one.value > sign * other.value and gap(one.value, other.value) > PROOF
        return one if beaten else other
    best = max(one, other, key=lambda run: sign * (run.value or 0.0))
    bounds = [run.bound for run in (one, other) if run.bound is not None]
    bound = (min if maximise else max)(bounds, default=None)
    status: Status = "optimal" if gap(best.value, bound) <= PROOF else "feasible"
    return Outcome(status, best.value, bound, best.values)


def _watch(limits: Limits) -> Callable[[mathopt.CallbackData], mathopt.CallbackResult]:
    """Tells how a long run stands, and ends it when asked to."""
    goal = limits.progress

    def look(data: mathopt.CallbackData) -> mathopt.CallbackResult:
        found, bound = data.mip_stats.primal_bound, data.mip_stats.dual_bound
        if found is None or bound is None or not math.isfinite(found):
            limits.progress = f"{goal}: nothing found yet"
        else:
            limits.progress = f"{goal}: best {found:.6g}, bound {bound:.6g}, gap {gap(found, bound):.2%}"
        return mathopt.CallbackResult(terminate=limits.stop is not None and limits.stop.asked)

    return look


def _summed(terms: Sequence[Term]) -> dict[int, float]:
    sums: dict[int, float] = {}
    for column, coefficient in terms:
        sums[column] = sums.get(column, 0.0) + coefficient
    return sums
