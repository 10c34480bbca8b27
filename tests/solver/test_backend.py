"""Runs of the solver: what they prove, when they stop, and that side steps leave nothing behind."""

import math

import pytest
from ortools.math_opt.python import mathopt

from solver.backend import Session, _better
from solver.limits import Limits, Outcome, Status, Stop, gap
from solver.milp.model import Model, at_least, at_most


def packing() -> Model:
    """Two kinds of units, 3 and 5 seconds of work each, to do 19 seconds of work; at most 4 of the first kind."""
    model = Model()
    small, large = model.column(upper=4.0, integer=True), model.column(upper=9.0, integer=True)
    model.rows.append(at_least("work", [(small, 3.0), (large, 5.0)], 19.0))
    return model


COST = [(0, 2.0), (1, 3.5)]


def solved(session: Session, limits: Limits | None = None) -> Outcome:
    return session.solve(COST, False, limits or Limits())


def aimed(model: Model) -> Session:
    """A session whose objective is set and that has not been solved."""
    session = Session(model)
    session._model.objective.is_maximize = False
    for column, coefficient in COST:
        session._model.objective.set_linear_coefficient(session._variables[column], coefficient)
    return session


def test_a_program_with_whole_numbers_is_solved_to_a_proof() -> None:
    outcome = solved(Session(packing()))
    assert outcome.status == "optimal"
    assert outcome.value == pytest.approx(13.0)
    assert outcome.bound == pytest.approx(13.0)
    assert [round(value) for value in outcome.values] == [3, 2]


def test_the_relaxation_is_a_bound() -> None:
    assert solved(Session(packing(), relax=True)).value == pytest.approx(8.0 + 3.5 * 7.0 / 5.0)


def test_rounding_up_is_a_plan_and_leaves_the_program_as_it_was() -> None:
    session = aimed(packing())
    rounded = session._rounded(Limits())
    assert rounded.status == "feasible"
    assert rounded.values == (4.0, 2.0)
    assert rounded.value == pytest.approx(15.0)
    assert rounded.bound == pytest.approx(12.9)
    assert solved(session).value == pytest.approx(13.0)


def test_rounding_up_beyond_what_there_is_is_no_plan() -> None:
    model = packing()
    model.rows.append(at_most("cards", [(0, 1.0), (1, 1.0)], 5.4))
    assert aimed(model)._rounded(Limits()).status == "stopped"


def test_what_cannot_be_is_infeasible() -> None:
    model = packing()
    model.rows.append(at_most("cards", [(0, 1.0), (1, 1.0)], 2.0))
    assert solved(Session(model)).status == "infeasible"


def test_a_stop_that_was_asked_for_begins_nothing() -> None:
    stop = Stop()
    stop.ask()
    limits = Limits(stop=stop)
    assert solved(Session(packing()), limits).status == "stopped"
    assert limits.over


def test_parts_never_outlast_the_whole() -> None:
    limits = Limits(seconds=5.0)
    limits.start()
    assert limits.part(10.0).left <= 5.0
    assert limits.part(1.0).left <= 1.0


def test_gap_is_unknown_without_a_bound() -> None:
    assert gap(1.0, None) == math.inf
    assert gap(2.0, 1.5) == 0.25


def test_a_linear_program_that_was_cut_short_bounds_nothing() -> None:
    model = Model()
    model.column(upper=4.0)
    session = Session(model)
    session._model.objective.set_linear_coefficient(session._variables[0], 1.0)
    session._model.objective.is_maximize = True
    result = mathopt.solve(session._model, mathopt.SolverType.GLOP)
    proven = session._outcome(result)
    assert (proven.status, proven.value, proven.bound, proven.gap) == ("optimal", 4.0, 4.0, 0.0)
    result.termination.reason = mathopt.TerminationReason.FEASIBLE
    short = session._outcome(result)
    assert (short.status, short.value, short.bound) == ("feasible", 4.0, None)
    assert short.gap == math.inf


def outcome(status: Status, value: float | None = None) -> Outcome:
    return Outcome(status, value, value if status == "optimal" else None, () if value is None else (value,))


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        (outcome("optimal", 0.04), outcome("optimal", 0.15), "feasible"),
        (outcome("optimal", 0.15), outcome("optimal", 0.15 * (1.0 + 1e-7)), "optimal"),
        (outcome("infeasible"), outcome("optimal", 0.15), "stopped"),
        (outcome("infeasible"), outcome("infeasible"), "infeasible"),
        (outcome("optimal", 0.04), outcome("stopped"), "feasible"),
    ],
)
def test_a_verdict_counts_only_where_two_runs_with_different_tolerances_share_it(
    first: Outcome, second: Outcome, what: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HiGHS called a start of 0.04 optimal where 0.15 was: its tight tolerance had cut off the rest."""
    model = Model()
    model.column(upper=1.0, integer=True)
    session = Session(model)
    runs = iter([first, second])
    monkeypatch.setattr(session, "_run", lambda *_, **__: next(runs))
    found = session._confirmed(Limits(), 0.0, ())
    assert found.status == what
    assert (found.bound is None) == (what != "optimal")


@pytest.mark.parametrize("verdict", [Outcome("infeasible", None, None, ()), Outcome("optimal", 9.0, 9.0, (9.0,))])
def test_a_verdict_that_a_solution_contradicts_is_none(verdict: Outcome) -> None:
    found = Outcome("feasible", 10.0, 12.0, (10.0,))
    assert _better(found, verdict, True) == found
    nothing = Outcome("stopped", None, None, ())
    assert _better(nothing, verdict, True) == verdict
    assert _better(verdict, nothing, True) == verdict
