"""Rows of cards under expert parallelism of several degrees: one hot expert, or choices drawn at random."""

from dataclasses import dataclass

from models.layer.asked import Skewed
from solver import skew
from solver.formulas import experts, handoff
from solver.skew import Placement, by_index


@dataclass(frozen=True)
class Degree:
    """One degree of expert parallelism."""

    cards: int
    experts_per_card: float
    """Copies included."""
    mean_rows: float
    busiest_rows: float
    skew: float
    """The busiest over the mean."""
    idle_share: float
    """Of the time that a card with mean rows waits for the busiest."""
    mean_receive_s: float | None
    busiest_receive_s: float | None
    random_skew: float | None
    """Mean over drawn batches."""
    random_error: float | None
    """Standard error of that mean."""


@dataclass(frozen=True)
class Skew:
    """The answer."""

    dispatches: float
    expert_rows: float
    """Mean of an expert; more cards do not raise it."""
    other_rows: float
    """Of each expert that is not hot."""
    degrees: tuple[Degree, ...]
    busiest_shrinks: float
    """Rows of the busiest card, fewest cards over most cards."""
    mean_shrinks: float


def skewed(asked: Skewed) -> Skew:
    """The answer to a `skew` section."""
    mean = experts.mean_rows(asked.tokens, asked.chosen, asked.experts)
    rows = skew.one_hot(asked.tokens, asked.chosen, asked.experts, mean if asked.hot is None else asked.hot)
    degrees = tuple(_degree(asked, rows, cards) for cards in asked.cards)
    few, many = min(degrees, key=lambda one: one.cards), max(degrees, key=lambda one: one.cards)
    return Skew(
        experts.dispatches(asked.tokens, asked.chosen),
        mean,
        rows[-1],
        degrees,
        few.busiest_rows / many.busiest_rows,
        few.mean_rows / many.mean_rows,
    )


def placed(count: int, redundant: int, cards: int) -> Placement:
    """Experts, then second copies of the first ones, dealt to cards in order; one card needs no second copies."""
    slots = by_index(count + redundant, cards).homes
    first = Placement(cards, slots[:count])
    seconds = [(expert, slots[count + expert][0]) for expert in range(redundant)]
    return first.with_copies([(expert, card) for expert, card in seconds if card not in first.homes[expert]])


def _degree(asked: Skewed, rows: list[float], cards: int) -> Degree:
    placement = placed(asked.experts, asked.redundant, cards)
    loads = placement.loads(rows)
    mean, busiest, uneven = sum(loads) / cards, max(loads), skew.skew(loads)
    receive: tuple[float | None, float | None] = (None, None)
    if asked.row is not None and asked.link is not None:
        receive = (
            handoff.transfer_seconds(mean * asked.row, asked.link),
            handoff.transfer_seconds(busiest * asked.row, asked.link),
        )
    drawn: tuple[float | None, float | None] = (None, None)
    if asked.random is not None:
        found = skew.random_skew(asked.tokens, asked.chosen, placement, asked.random.batches, asked.random.seed)
        drawn = (found.mean, found.error)
    physical = experts.experts_per_card(asked.experts, asked.redundant, cards)
    return Degree(cards, physical, mean, busiest, uneven, experts.idle_share(uneven), *receive, *drawn)
