"""`inferplan trace`: reads a trace, analyses it, prints what it says."""

import argparse
import json
from typing import Any

from api.exits import SOLVED
from api.run import interruptible
from api.trace.answer import answer
from api.trace.replayed import replay
from api.trace.request import Request, of_trace, request
from models.trace.chunks import Trace
from models.trace.reading import read
from solver.limits import Limits
from solver.trace.analysis import Analysis, analyse, watched
from solver.trace.planned import Outcome, replayed


def trace(options: argparse.Namespace) -> int:
    """What a trace says of lengths, arrivals and reuse. Raises BadInput with every problem of options or file."""
    asked = request(options)
    limits = Limits()

    def watch(text: str) -> None:
        if limits.stop is not None and limits.stop.asked:
            raise KeyboardInterrupt
        limits.progress = text

    def work() -> tuple[Trace, Analysis, Outcome | None]:
        found = read(options.file, asked.reading, lambda count: watch(f"{count:,} requests read"))
        analysis = analyse(found, of_trace(asked, found), watch)
        if asked.plan is None:
            return found, analysis, None
        chunks = watched(found, watch, "replay of the plan")
        return (
            found,
            analysis,
            replayed(found, asked.plan, analysis.first, analysis.since, None if asked.scaled else 1.0, chunks),
        )

    found, analysis, outcome = interruptible(work, limits)
    document = answer(str(options.file), found, analysis, asked)
    document["replay"] = None if outcome is None else replay(outcome, found)
    if options.json:
        print(json.dumps(document, indent=2, allow_nan=False))
    else:
        print(_text(document, asked))
    return SOLVED


def _text(document: dict[str, Any], asked: Request) -> str:
    """What is asked alone, or all of it."""
    from api.trace import replayed as under_plan
    from api.trace import screen, snippet

    parts = [snippet.render(document)] if asked.snippet else []
    parts += [under_plan.render(document)] if asked.plan is not None else []
    return "\n\n".join(parts) if parts else screen.render(document)
