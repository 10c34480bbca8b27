"""`inferplan experts`: reads loads, places replicas, prints or writes the result."""

import argparse
import json
from dataclasses import replace
from typing import Any

from api.exits import SOLVED
from api.experts.request import EXPERT_BYTES, Request, request
from models.experts.placement import Placement
from solver.experts.moves import relabelled
from solver.experts.place import Effort
from solver.experts.result import Result, scenario
from solver.experts.solve import Options, solve


def experts(options: argparse.Namespace) -> int:
    """Place experts for measured loads. Raises BadInput with every problem of the options and files."""
    asked = request(options)
    how = Options(
        asked.time,
        Effort(seed=options.seed or 0),
        options.tighten,
        options.worst,
        asked.groups if options.keep_groups else None,
    )
    parts = [asked.loads.alone(k) for k in range(asked.loads.scenarios)] if options.separate else [asked.loads]
    results = [_judged(solve(part, asked.layout, how), asked) for part in parts]
    if asked.current is not None and not options.separate:
        results = [_relabelled(results[0], asked.current)]
    results[0].notes.extend(_assumed(options))
    extra, said = _extra(results[0], asked) if not options.separate else ({}, [])
    if options.write is not None:
        _write(results[0], asked, options)
    if options.splits is not None:
        from api.commands import save
        from api.experts.extra import splits

        document, lines = splits(results[0])
        save(options.splits, json.dumps(document) + "\n", "--splits")
        extra, said = {**extra, "split": {key: document[key] for key in ("balancedness", "value")}}, [*said, *lines]
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
        if said:
            print("\n".join(said))
    return SOLVED


def _judged(result: Result, asked: Request) -> Result:
    """The result with what the placement does for loads it was not made for."""
    if asked.holdout is None:
        return result
    held = tuple(
        scenario(name, result.placement, tokens, asked.time)
        for name, tokens in zip(asked.holdout.names, asked.holdout.tokens, strict=True)
    )
    return replace(result, holdout=held)


def _relabelled(result: Result, current: Placement) -> Result:
    """The result with cards renamed so that most replicas are where they are now."""
    return replace(result, placement=relabelled(current, result.placement))


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
        "time": {"per_slot": results[0].time.per_slot, "per_token": results[0].time.per_token},
        "layers": None,
        "physical_to_logical_map": None,
        "scenarios": each,
    }


def _write(result: Result, asked: Request, options: argparse.Namespace) -> None:
    from api.commands import save
    from api.experts.writing import WRITERS

    save(options.out, WRITERS[options.write](result.placement, asked.layer_ids, asked.model_layers), "--out")


def _extra(result: Result, asked: Request) -> tuple[dict[str, Any], list[str]]:
    """Parts that only some options ask for, as JSON and as lines of text."""
    from api.experts import extra

    parts: dict[str, tuple[dict[str, Any], list[str]]] = {}
    if asked.current is not None:
        parts["moves"] = extra.moves(result, asked)
    if asked.budget is not None:
        parts["budget"] = extra.memory(asked)
    if asked.groups is not None:
        parts["nodes"] = extra.hierarchy(result, asked)
    documents = {name: document for name, (document, _) in parts.items()}
    return documents, [line for _, lines in parts.values() for line in lines]


def _assumed(options: argparse.Namespace) -> list[str]:
    """What is taken for granted, in words."""
    if options.expert_bytes is None and (options.budget is not None or options.current is not None):
        return [f"an expert is taken to have {EXPERT_BYTES / 1e6:.1f} MB, as DeepSeek-V3's in FP8; see --expert-bytes"]
    return []
