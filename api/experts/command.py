"""`inferplan experts`: reads loads, places replicas, prints or writes the result."""

import argparse
import json
from typing import Any

from api.exits import SOLVED
from api.experts.request import Request, request
from solver.experts.place import Effort
from solver.experts.result import Result, scenario
from solver.experts.solve import Options, solve


def experts(options: argparse.Namespace) -> int:
    """Place experts for measured loads. Raises BadInput with every problem of the options and files."""
    asked = request(options)
    how = Options(asked.time, Effort(seed=options.seed or 0), options.tighten, options.worst)
    parts = [asked.loads.alone(k) for k in range(asked.loads.scenarios)] if options.separate else [asked.loads]
    results = [_judged(solve(part, asked.layout, how), asked) for part in parts]
    extra = _extra(results[0], asked, options) if len(results) == 1 else {}
    if options.write is not None:
        _write(results[0], asked, options)
    if options.html is not None:
        from api.commands import save
        from api.experts.picture import picture

        save(options.html, picture(results[0], asked.current), "--html")
    if options.json:
        document = results[0].as_json() if not options.separate else _separate(results)
        print(json.dumps({**document, **extra}, indent=None, allow_nan=False))
    else:
        from api.experts.screen import render

        print(render(results, asked.timed))
        print("\n".join(_said(extra)), end="\n" if extra else "")
    return SOLVED


def _judged(result: Result, asked: Request) -> Result:
    """The result with what the placement does for loads it was not made for."""
    from dataclasses import replace

    if asked.holdout is None:
        return result
    held = tuple(
        scenario(name, result.placement, tokens, asked.time)
        for name, tokens in zip(asked.holdout.names, asked.holdout.tokens, strict=True)
    )
    return replace(result, holdout=held)


def _separate(results: list[Result]) -> dict[str, Any]:
    """One document for placements of their own: figures over all, everything else by scenario."""
    documents = {result.scenarios[0].name: result.as_json() for result in results}
    each = {
        name: {**document["scenarios"][name], **{key: document[key] for key in ("layers", "physical_to_logical_map")}}
        for name, document in documents.items()
    }
    value, bound = (sum(document[key] for document in documents.values()) for key in ("value", "bound"))
    return {
        "balancedness": sum(one["balancedness"] for one in each.values()) / len(each),
        "balancedness_min": min(one["balancedness_min"] for one in each.values()),
        "value": value,
        "bound": bound,
        "gap": max(0.0, (value - bound) / value),
        "seconds": sum(document["seconds"] for document in documents.values()),
        "bound_seconds": sum(document["bound_seconds"] for document in documents.values()),
        "cards": results[0].placement.layout.cards,
        "slots_per_card": list(results[0].placement.layout.slots),
        "layers": None,
        "physical_to_logical_map": None,
        "scenarios": each,
    }


def _write(result: Result, asked: Request, options: argparse.Namespace) -> None:
    from api.commands import save
    from api.experts.writing import WRITERS

    save(options.out, WRITERS[options.write](result.placement, asked.layer_ids, asked.model_layers), "--out")


def _extra(result: Result, asked: Request, options: argparse.Namespace) -> dict[str, Any]:
    """Parts that only some options ask for."""
    return {}


def _said(extra: dict[str, Any]) -> list[str]:
    return []
