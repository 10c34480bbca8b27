"""The result of `inferplan experts` for people."""

from collections.abc import Sequence

from api import words
from models.errors import shown as shown_text
from solver.experts.result import Result, Scenario


def render(results: Sequence[Result], timed: bool) -> str:
    """Placements as text: one of all scenarios, or one of each."""
    first = results[0]
    loads, layout = first.loads, first.placement.layout
    low, high = min(layout.slots), max(layout.slots)
    slots = f"{low}" if low == high else f"{low} to {high}"
    spare = layout.total - loads.experts
    count = f"{loads.layers} layer{'' if loads.layers == 1 else 's'}"
    lines = [
        f"{count} of {loads.experts} experts on {layout.cards} cards with {slots} slots "
        f"({layout.total} slots a layer, {spare} for replicas)",
        "",
    ]
    rows = [["LOADS", "balancedness", "worst layer", "busiest cards", "at least", "gap"]]
    for result in results:
        rows += [_row(one, timed) for one in result.scenarios]
        rows += [_row(one, timed, " (held out)") for one in result.holdout]
    lines += words.table(rows, frozenset(range(1, 6)))
    lines += ["", *(_proof(result) for result in results)]
    lines += [f" note: {note}" for result in results for note in result.notes]
    return "\n".join(lines)


def _row(one: Scenario, timed: bool, mark: str = "") -> list[str]:
    def shown(value: float | None) -> str:
        return words.seconds(value) if timed and value is not None else words.number(value, 6)

    return [
        shown_text(one.name) + mark,
        f"{one.balancedness:.4f}",
        f"{float(one.balance.min()):.4f}",
        shown(one.value),
        shown(one.bound),
        "-" if one.gap is None else gap(one.gap),
    ]


def gap(share: float) -> str:
    """A gap in per cent with two decimals, three where it is small."""
    return f"{100.0 * share:.2f} %" if share >= 1e-3 else f"{100.0 * share:.3f} %"


def _proof(result: Result) -> str:
    kinds: dict[str, int] = {}
    for one in result.scenarios:
        for bound in one.bounds:
            kinds[bound.kind] = kinds.get(bound.kind, 0) + 1
    told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items(), key=lambda item: -item[1]))
    whole = f" placement for all: gap {gap(result.gap)};" if len(result.scenarios) > 1 else ""
    return f"{whole} bounds of layers: {told}; checked again"
