"""What a relaxation is: a change of one limit, how large it is, and whether no smaller one helps."""

from collections.abc import Callable

from models.instance import Instance
from models.told import Relaxation
from solver.limits import Limits, Outcome

Solvable = Callable[[Instance], bool]
"""Whether an instance has a plan: the solve itself, so that each relaxation shown was solved with."""
Sized = tuple[float, Relaxation]
"""How large a change is, over what it changes; smallest first."""
UNSURE = " (less of a change may do: the time was up before that was known)"


def sure(outcome: Outcome, limits: Limits) -> bool:
    """Whether no smaller change helps: proven, to the gap that is asked for."""
    return outcome.status == "infeasible" or outcome.gap <= limits.gap


def relaxation(path: str, before: str, after: str, unit: str, text: str) -> Relaxation:
    """A change of what stands at ``path``, in words."""
    return Relaxation.model_validate({"path": path, "from": before, "to": after, "unit": unit, "text": text})
