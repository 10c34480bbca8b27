"""One choice, two goals: the request alone, or all tasks on the machines. They need not agree (section 9.5.4)."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """When tasks end if one choice is made, in s."""

    target: float
    """The request that is routed."""
    others: tuple[float, ...] = ()
    """The other tasks."""

    @property
    def all_tasks(self) -> float:
        """When the last task ends."""
        return max((self.target, *self.others))


def best_for_target(outcomes: Mapping[str, Outcome]) -> str:
    """The choice whose request ends first; among equals the one that lets all tasks end first."""
    return min(outcomes, key=lambda name: (outcomes[name].target, outcomes[name].all_tasks))


def best_for_all(outcomes: Mapping[str, Outcome]) -> str:
    """The choice after which all tasks end first; among equals the one whose request does."""
    return min(outcomes, key=lambda name: (outcomes[name].all_tasks, outcomes[name].target))
