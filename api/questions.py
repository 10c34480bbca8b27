"""Commands that ask something else than for a plan: requests, changes of a deployment, what waits, one layer, a trace,
and where an answer flips.
"""

import argparse
import json
from typing import Any

from api.exits import INFEASIBLE, SOLVED, STOPPED
from models.errors import BadInput, Problem


def route(options: argparse.Namespace) -> int:
    """Where a request goes; 3 when no place keeps the targets."""
    from api.route import answer, render
    from models.load import question
    from models.routing import Routing, check

    asked = question(options.file, Routing, check, options.changes)
    found = answer(asked)
    print(json.dumps(found, indent=2, allow_nan=False) if options.json else render(found, asked))
    return INFEASIBLE if found["targets"]["kept_by"] == [] else SOLVED


def layer(options: argparse.Namespace) -> int:
    """What one layer costs where; 3 when something does not fit or cannot keep up."""
    from api.layer.answer import answer
    from api.layer.screen import render
    from models.layer.asked import LayerQuestion
    from models.layer.checks import check
    from models.load import question

    found = answer(question(options.file, LayerQuestion, check, options.changes))
    print(json.dumps(found, indent=2, allow_nan=False) if options.json else render(found))
    return INFEASIBLE if found["fails"] else SOLVED


def transition(options: argparse.Namespace) -> int:
    """From one deployment to the next; 3 when it never ends, or misses its deadline."""
    from itertools import chain

    from api.planfile import read
    from api.transition import answer, render
    from models.load import question
    from models.transition import Transition, check
    from solver.transition.graph import problems
    from solver.transition.pools import difference
    from solver.transition.timeline import timeline

    def looked(data: dict[str, Any]) -> Any:
        return chain(check(data), problems(data))

    asked = question(options.file, Transition, looked, options.changes)
    plans = [(name, path) for name, path in (("--from", options.before), ("--to", options.after)) if path is not None]
    if len(plans) == 1:
        raise BadInput([Problem(plans[0][0], "stands alone", str(plans[0][1]), "--from and --to, or neither")])
    found = timeline(asked, difference(*(read(path, name) for name, path in plans)) if plans else None)
    told = answer(asked, found)
    print(json.dumps(told, indent=2, allow_nan=False) if options.json else render(told))
    return SOLVED if found.possible else INFEASIBLE


def queue(options: argparse.Namespace) -> int:
    """What waits over time; 3 when there is no plan, the queue never ends, or a wait asked for is not kept."""
    from api.planfile import of_instance, read
    from api.queue import answer, render
    from api.run import interruptible
    from models.load import load
    from solver.limits import Limits
    from solver.queueing.queues import queues
    from solver.solve import Options, solve

    instance = load(options.file, options.changes)
    if options.plan is not None:
        plan = of_instance(read(options.plan, "--plan"), instance)
    else:
        limits = Limits()
        plan = interruptible(lambda: solve(instance, Options(limits, plan_only=True, reasons=False)), limits)
    if plan.status not in ("optimal", "feasible"):
        message = f"{instance.name}: {plan.status}, there is no plan whose queue could be told; see inferplan explain"
        print(json.dumps({"instance": instance.name, "status": plan.status, "stages": []}) if options.json else message)
        return STOPPED if plan.status == "stopped" else INFEASIBLE
    stages = queues(plan, instance, options.periods)
    told = answer(instance, stages, options.wait)
    print(json.dumps(told, indent=2, allow_nan=False) if options.json else render(told))
    missed = options.wait is not None and not told["kept"]
    return INFEASIBLE if missed or not told["ends"] else SOLVED


def trace(options: argparse.Namespace) -> int:
    """What a trace of requests says of lengths, arrivals and reuse."""
    from api.trace.command import trace as told

    return told(options)


def flips(options: argparse.Namespace) -> int:
    """Where the answer flips as one number moves; 4 when a number was not followed to the end."""
    from api.flips import answer, render
    from api.run import interruptible
    from models.load import load
    from solver.flips.asked import Asked, asked, numbers
    from solver.flips.search import flips as search
    from solver.limits import Limits

    instance = load(options.file, options.changes)
    ranges: list[Asked] = []
    problems: list[Problem] = []
    for path, stated in _ranges(options.vary) if options.vary else [(path, None) for path in numbers(instance)]:
        try:
            ranges.append(asked(instance, path, stated))
        except BadInput as error:
            problems.extend(error.problems)
    if problems:
        raise BadInput(problems)
    limits = Limits(options.time_limit)
    found = interruptible(lambda: search(instance, ranges, limits), limits)
    told = answer(instance, found)
    print(json.dumps(told, indent=2, allow_nan=False) if options.json else render(instance, found))
    return STOPPED if found.stopped else SOLVED


def _ranges(texts: list[str]) -> list[tuple[str, tuple[str, str] | None]]:
    """Paths, each with LOW and HIGH as written where they are. Raises BadInput."""
    found: dict[str, tuple[str, str] | None] = {}
    for text in texts:
        path, equals, values = (part.strip() for part in text.partition("="))
        low, dots, high = (part.strip() for part in values.partition(".."))
        if not path or (equals and not (low and dots and high)):
            accepted = "PATH or PATH=LOW..HIGH, e.g. workloads.chat.rate=2/s..8/s"
            raise BadInput([Problem("--vary", "not a number with a range", text, accepted)])
        if path in found:
            raise BadInput([Problem("--vary", "the place is varied twice", path, "each place once")])
        found[path] = (low, high) if equals else None
    return list(found.items())
