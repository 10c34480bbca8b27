"""Continuing a stream after a failure: what was seen, what is on record, what state is saved (section 9.6.3)."""

from dataclasses import dataclass
from typing import Literal

from solver.formulas import recovery
from solver.formulas.state import covered_tokens

Way = Literal["continue", "replay", "resample", "repeat"]


@dataclass(frozen=True)
class Recovery:
    """How a request goes on."""

    way: Way
    """`continue` from saved state, `replay` recorded tokens first, `resample` what was seen but not recorded, or
    `repeat` the request: nothing was returned and nothing is recorded."""
    cached: int
    """Tokens whose saved state is used."""
    replayed: int
    """Tokens that a prefill feeds again, from position ``cached`` on."""
    covered: int
    """Tokens with state afterwards."""
    next_output: int
    """Number of the output that is made next, from 1."""
    seen_and_lost: int
    """Outputs that the user has seen and that may come out differently now."""


def recover(input_tokens: int, returned: int, logged: int, saved: int, compatible: bool = True) -> Recovery:
    """What to do with ``returned`` outputs seen, ``logged`` on record, and state of ``saved`` tokens.

    State of another weight version or format (``compatible`` false) is of no use. State beyond the record cannot be
    used either: it holds tokens that nobody knows any more.
    """
    cached = min(saved, input_tokens + max(0, logged - 1)) if compatible else 0
    lost = max(0, returned - logged)
    if logged == 0:
        replayed = max(0, input_tokens - cached)
        return Recovery("resample" if returned else "repeat", cached, replayed, input_tokens, 1, lost)
    replayed = int(recovery.replayed_tokens(input_tokens, logged, cached))
    way: Way = "resample" if lost else "replay" if replayed else "continue"
    return Recovery(way, cached, replayed, int(covered_tokens(input_tokens, logged)), logged + 1, lost)


def stopped_units(cards_per_unit: int, failed: tuple[int, ...]) -> set[int]:
    """Units that failed cards stop, cards numbered through: one card stops its whole synchronisation group."""
    return {card // cards_per_unit for card in failed}
