"""What is said of an infeasible instance: what was not proven the least change says so; nothing where nobody asks."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from models.plan import Plan
from solver import relax
from solver.backend import Session
from solver.changes import UNSURE
from solver.limits import Limits, Outcome
from solver.milp.model import Term
from solver.solve import Options, solve
from tests.instances import eight


def too_many(reasons: bool = True) -> Plan:
    return solve(eight("workloads.reasoning.rate=6/s"), Options(reasons=reasons))


class Unproven(Session):
    """A session that finds what it finds, but never the proof of it."""

    def solve(self, terms: Sequence[Term], maximise: bool, limits: Limits, hint: Sequence[float] = ()) -> Outcome:
        """The solution, called feasible and without a bound."""
        found = super().solve(terms, maximise, limits, hint)
        return replace(found, status="feasible", bound=None) if found.found else found


def arrivals(plan: Plan) -> str:
    return next(r.text for r in plan.relaxations if r.path == "workloads.reasoning.rate")


def test_a_change_that_was_not_proven_the_least_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    proven = arrivals(too_many())
    assert proven == "arrivals 6 -> 3.795 requests/s"
    monkeypatch.setattr(relax, "Session", Unproven)
    assert arrivals(too_many()) == proven + UNSURE


def test_reasons_are_left_out_where_nobody_asks() -> None:
    told, bare = too_many(), too_many(reasons=False)
    assert told.status == bare.status == "infeasible"
    assert told.conflicts
    assert told.relaxations
    assert told.alternatives
    assert (bare.conflicts, bare.relaxations, bare.alternatives) == ([], [], [])
