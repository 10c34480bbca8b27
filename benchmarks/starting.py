"""The command line as a whole process, against a Python that only imports what it needs."""

import os
import sys
from pathlib import Path

from benchmarks.results import Result, as_ratio, in_ms
from benchmarks.solving import EIGHT, ROOT
from benchmarks.timing import interleaved, process, ratio

IMPORTS = "import ortools.math_opt.python.mathopt, networkx, numpy, pydantic, yaml"
IN_USE = IMPORTS + "; pydantic.BaseModel, pydantic.ConfigDict, pydantic.Field, pydantic.ValidationError"
"""pydantic imports most of itself only when its names are used."""
OWN = "import gc; gc.disable(); import api.cli, api.run, api.screen, models.load, solver.solve; gc.freeze()"
SAME = "import sys; from api.cli import main; sys.exit(main())"
"""What the console script holds, for a checkout without it."""
GOAL = 1.5


def command() -> list[str]:
    """The console script beside this Python, or the same lines without it."""
    script = Path(sys.executable).with_name("inferplan")
    return [str(script)] if script.exists() else [sys.executable, "-c", SAME]


def whole_process(rounds: int) -> list[Result]:
    """`inferplan solve eight-cards.yaml` from start to end."""
    os.chdir(ROOT)
    solve = [*command(), "solve", str(EIGHT)]
    times = interleaved(
        {
            "imports": process([sys.executable, "-c", IMPORTS]),
            "in use": process([sys.executable, "-c", IN_USE]),
            "own": process([sys.executable, "-c", OWN]),
            "full": process(solve),
            "plan": process([*solve, "--plan-only"]),
        },
        rounds,
    )
    imports = times["imports"]
    return [
        in_ms("a process that imports the libraries", imports),
        in_ms("the same, with pydantic in use", times["in use"]),
        in_ms("a process that imports inferplan's own modules", times["own"]),
        in_ms("inferplan solve", times["full"]),
        in_ms("inferplan solve --plan-only", times["plan"]),
        as_ratio("inferplan solve / imports", ratio(times["full"], imports), GOAL),
        as_ratio("inferplan solve --plan-only / imports", ratio(times["plan"], imports), GOAL),
        as_ratio("pydantic in use / imports", ratio(times["in use"], imports)),
        as_ratio("own modules / imports", ratio(times["own"], imports)),
    ]
