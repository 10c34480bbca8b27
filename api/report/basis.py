"""The parts of the report about what the plan rests on: proof, assumptions, words, and the instance itself."""

from api import answer, words
from api.glossary import TERMS
from api.report.markup import Html, details, escape, join, table, tag
from models import files
from models.instance import Instance
from models.plan import Plan

MOST_CHARACTERS = 200_000
"""Of the instance that the report repeats, as HTML; the plan as JSON has all of it."""


def proof(plan: Plan, _: Instance) -> Html:
    """How good the plan is, and how that is known."""
    goal = plan.objective
    rows = [["status", plan.status], ["objective", goal.name]]
    if plan.pools:
        rows += [
            ["value", f"{words.number(goal.value, 6)} {goal.unit}"],
            ["bound: no plan is better", f"{words.number(goal.bound, 6)} {goal.unit}"],
            ["gap", answer.gap(plan)],
            ["verified", "yes: limits and numbers were computed again, without the model" if plan.verified else "no"],
        ]
    rows += [
        ["time of the solve", words.seconds(plan.solve_seconds)],
        ["SHA-256 of the instance", plan.instance_sha256],
    ]
    return table("How good the answer is", ["What", "Value"], rows)


def assumptions(plan: Plan, _: Instance) -> Html:
    """Numbers that the plan rests on."""
    rows = [[row.name, row.value, row.provenance] for row in plan.assumptions]
    return table("What the plan rests on, and where it comes from", ["What", "Value", "From"], rows)


def vocabulary(_: Plan, __: Instance) -> Html:
    """The words of the report."""
    listed = join(join([tag("dt", term), tag("dd", text)]) for term, text in TERMS.items())
    return details("Words used here", tag("dl", listed))


def document(plan: Plan, _: Instance) -> Html:
    """The resolved instance, which can be solved again as it stands."""
    text, most = files.dump(plan.instance_document), MOST_CHARACTERS
    while len(inside := escape(text[:most], most)) > MOST_CHARACTERS:  # what is escaped grows
        most = most * 3 // 4
    left = len(text) - most
    note = f"\n# {left:,} more characters are in the plan as JSON, under instance_document" if left > 0 else ""
    shown = tag("pre", tag("code", inside, note), tabindex="0")
    return details("The instance as YAML: catalog entries filled in, defaults written out", shown)
