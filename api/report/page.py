"""The report: one HTML file that needs nothing else, neither the network nor files beside it."""

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

from api.report import basis, kept, sections, service
from api.report.figures import figures
from api.report.headline import headline
from api.report.markup import Html, data, escape, join, tag
from models.instance import Instance
from models.plan import Plan

HERE = Path(__file__).resolve().parent
PLOTLY = HERE.parent / "vendor" / "plotly-cartesian.min.js"

Part = Callable[[Plan, Instance], Html]
PARTS: tuple[tuple[str, str, Part], ...] = (
    ("cluster", "What runs where", sections.cluster),
    ("pools", "Pools", sections.pools),
    ("resources", "What is full", sections.fullness),
    ("state", "State kept for later", kept.state),
    ("backlog", "Startup backlog", service.backlog),
    ("today", "What runs today", service.today),
    ("schemes", "Why not another scheme", service.schemes),
    ("workloads", "Workloads", service.workloads),
    ("cost", "Cost", service.cost),
    ("next", "What next", service.next_steps),
    ("crossing", "Handoffs and links", sections.crossing),
    ("basis", "What it rests on", basis.assumptions),
    ("proof", "How good it is", basis.proof),
    ("instance", "The instance", basis.document),
    ("words", "Words", basis.vocabulary),
)


def render(plan: Plan, instance: Instance) -> str:
    """The whole report as HTML; the same plan and instance give the same text."""
    made = [(name, title, part(plan, instance)) for name, title, part in PARTS]
    shown = [(name, title, inside) for name, title, inside in made if inside]
    links = [tag("a", title, href=f"#{name}") for name, title, _ in shown]
    body = [
        tag("a", "Skip to the plan", href="#main", class_="skip"),
        headline(plan, instance),
        tag("nav", *(join([link, " "]) for link in links), aria_label="Parts of the report"),
        tag("main", *(_section(*part) for part in shown), id="main"),
        tag("footer", "Made by inferplan from the plan and the instance alone. Every number: --json or --out."),
        tag("noscript", tag("p", "Charts need scripts; every number in them is in a table too.", class_="note")),
    ]
    charts = figures(plan, instance)
    scripts = [_text(PLOTLY), _text(HERE / "script.js")] if charts else []
    embedded = [f'<script type="application/json" id="figures">{data(charts)}</script>'] if charts else []
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">',
            tag("head", _head(plan, scripts)),
            "<body>",
            *body,
            *embedded,
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def _section(name: str, title: str, inside: Html) -> Html:
    return tag("section", tag("h2", title, id=f"title-{name}"), inside, id=name, aria_labelledby=f"title-{name}")


def _head(plan: Plan, scripts: list[str]) -> Html:
    """The policy lets run only the scripts that are in here, by their digest, and lets nothing be fetched."""
    digests = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src {digests}"
    lines = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<meta name="generator" content="inferplan">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(plan.instance)}: {plan.status}</title>",
        f"<style>{_text(HERE / 'style.css')}</style>",
    ]
    return Html("\n".join(["", *lines, ""]))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
