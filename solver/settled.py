"""Reading flows out of programs with the counts chosen, and choosing among equal ones."""

from collections.abc import Sequence

from solver.backend import Session
from solver.data import Data
from solver.limits import Limits, Outcome
from solver.milp.flows import Flows
from solver.milp.master import crossing
from solver.milp.model import Term, at_most
from solver.regimes import Settled

EASY = Limits(seconds=30.0)
ROUNDING = 1e-7
"""Of the largest flow: by so much rows are broken in a linear program that is solved."""


def numbers(counts: Sequence[int], column: int) -> tuple[tuple[Term, ...], ...]:
    """Counts as multiples of a column; candidates without units are not ready."""
    return tuple(((column, float(count)),) if count else () for count in counts)


def read(regime: Flows, data: Data, values: Sequence[float], scale: float) -> Settled:
    """Flows of a regime in requests, times ``scale``; crumbs that are the solver's tolerance are swept away."""
    columns = [*regime.rates.values(), *regime.routes.values()]
    crumb = 1e-9 * max((values[column] for column in columns), default=0.0)

    def swept(workload: str, column: int) -> float:
        return values[column] * data.share(workload) * scale if values[column] > crumb else 0.0

    rates = {(workload, c): swept(workload, column) for (workload, c), column in regime.rates.items()}
    hits = {(workload, c, state): swept(workload, column) for (workload, c, state), column in regime.hits.items()}
    for (workload, c), rate in rates.items():  # where hardly a request is served, no more than that finds anything
        mine = [key for key in hits if key[:2] == (workload, c)]
        total = sum(hits[key] for key in mine)
        if rate < total <= rate + ROUNDING * max(rates.values()):
            hits |= {key: hits[key] * rate / total for key in mine}
    return Settled(
        0.0, rates, tuple(swept(route.workload, regime.routes[r]) for r, route in enumerate(data.routes)), hits=hits
    )


def calmest(session: Session, data: Data, regime: Flows, best: Outcome) -> Outcome:
    """Of the flows that the rows allow, those with the fewest bytes on links, then the fewest busy unit-seconds."""
    moved = [(column, weight) for (_, column), weight in crossing(data, regime)]
    busy = [
        (column, max(data.candidates[i].demand[name]) * data.share(name) / data.tick)
        for (name, i), column in regime.rates.items()
    ]
    for (name, i, state), column in regime.hits.items():
        saved = max(data.candidates[i].demand[name]) - max(data.candidates[i].hits[name][state - 1])
        busy.append((column, -saved * data.share(name) / data.tick))
    for terms in (moved, busy):
        least = session.solve(terms, False, EASY) if terms else best
        if not least.found or least.value is None:
            break
        best = least
        session.add(at_most("keep", terms, least.value * (1.0 + 1e-12)))
    return best
