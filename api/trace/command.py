"""`inferplan trace`: reads a trace, analyses it, prints what it says."""

import argparse
import json

from api.exits import SOLVED
from api.run import interruptible
from api.trace.answer import answer
from api.trace.request import of_trace, request
from models.trace.chunks import Trace
from models.trace.reading import read
from solver.limits import Limits
from solver.trace.analysis import Analysis, analyse


def trace(options: argparse.Namespace) -> int:
    """What a trace says of lengths, arrivals and reuse. Raises BadInput with every problem of options or file."""
    asked = request(options)
    limits = Limits()

    def watch(text: str) -> None:
        if limits.stop is not None and limits.stop.asked:
            raise KeyboardInterrupt
        limits.progress = text

    def work() -> tuple[Trace, Analysis]:
        found = read(options.file, asked.reading, lambda count: watch(f"{count:,} requests read"))
        return found, analyse(found, of_trace(asked, found), watch)

    found, analysis = interruptible(work, limits)
    document = answer(str(options.file), found, analysis, asked)
    if options.json:
        print(json.dumps(document, indent=2, allow_nan=False))
    elif asked.snippet:
        from api.trace.snippet import render as snippet

        print(snippet(document))
    else:
        from api.trace.screen import render

        print(render(document))
    return SOLVED
