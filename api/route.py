"""The answer to a routing question: as a document and as text."""

from collections.abc import Mapping
from typing import Any

from api import crossovers, words
from models.routing import Routing
from models.units import REQUEST_RATE, write
from solver.formulas import handoff
from solver.routing.choose import TAIL, Candidate, best, candidates
from solver.routing.flips import flips

MEASURES = ("request", "p99", "all-tasks")


def answer(asked: Routing) -> dict[str, Any]:
    """The document: every place, the best one by each measure, flips, load of links, targets."""
    found = candidates(asked)
    chosen = best(found, asked.choose)
    return {
        "name": asked.name,
        "choose": asked.choose,
        "chosen": {"place": chosen.name, "action": chosen.does},
        "best": {measure.replace("-", "_"): best(found, measure).name for measure in MEASURES},
        "places": [_place(asked, candidate) for candidate in found.values()],
        "crossovers": crossovers.listed(flips(asked)),
        "links": _loads(asked, found),
        "targets": _targets(asked, found, chosen),
    }


def _place(asked: Routing, candidate: Candidate) -> dict[str, Any]:
    p99 = asked.targets.p99
    return {
        "name": candidate.name,
        "queue_s": asked.places[candidate.name].queue,
        "action": candidate.does,
        "ttft_s": {"mean": candidate.law.mean, "p99": candidate.law.quantile(TAIL)},
        "serial_ttft_s": {"mean": candidate.serial.mean, "p99": candidate.serial.quantile(TAIL)},
        "all_tasks_s": candidate.outcome.all_tasks,
        "within_p99_target": None if p99 is None else candidate.law.within(p99),
        "locations": [
            {
                "location": option.location,
                "probability": option.probability,
                "ready_s": option.ready,
                "ttft_s": {
                    "overlapped": option.overlapped,
                    "serial": option.serial,
                    "layer_wise": option.layerwise,
                    "recompute": option.recompute,
                },
                "action": option.action,
                "chosen_ttft_s": option.seconds,
            }
            for option in candidate.options
        ],
    }


def _loads(asked: Routing, found: Mapping[str, Candidate]) -> list[dict[str, Any]]:
    """What requests like this would take of each link, if all of them went to a place."""
    if asked.request.rate is None:
        return []
    loads = []
    for candidate in found.values():
        for link, bandwidth in asked.links.items():
            crossings = sum(
                option.probability * asked.paths[option.location].over.count(link)
                for option in candidate.options
                if option.action == "fetch"
            )
            if crossings:
                load = handoff.handoff_bandwidth(asked.request.rate, asked.request.state, crossings)
                loads.append(
                    {
                        "link": link,
                        "place": candidate.name,
                        "bytes_per_s": load,
                        "capacity": bandwidth,
                        "utilisation": load / bandwidth,
                    }
                )
    return loads


def _targets(asked: Routing, found: Mapping[str, Candidate], chosen: Candidate) -> dict[str, Any]:
    def keeps(candidate: Candidate) -> bool:
        mean, p99 = asked.targets.mean, asked.targets.p99
        in_mean = mean is None or candidate.law.mean <= mean
        return in_mean and (p99 is None or candidate.law.quantile(TAIL) <= p99)

    stated = asked.targets.mean is not None or asked.targets.p99 is not None
    return {
        "mean_s": asked.targets.mean,
        "p99_s": asked.targets.p99,
        "met": keeps(chosen) if stated else None,
        "kept_by": [candidate.name for candidate in found.values() if keeps(candidate)] if stated else None,
    }


# --- text ---------------------------------------------------------------------------------------------


def render(found: dict[str, Any], asked: Routing) -> str:
    """The document as one screen."""
    chosen = next(place for place in found["places"] if place["name"] == found["chosen"]["place"])
    count = words.plural(len(found["places"]), "place")
    lines = [f"{found['name']}: {count}, {words.gibibytes(asked.request.state)} of state", ""]
    end = f"; all tasks end after {words.seconds(chosen['all_tasks_s'])}" if found["choose"] == "all-tasks" else ""
    lines.append(
        f"  Send the request to {chosen['name']} ({chosen['action']}): first token after "
        f"{words.seconds(chosen['ttft_s']['mean'])} in the mean, p99 {words.seconds(chosen['ttft_s']['p99'])}{end}."
    )
    lines.extend([*_target_lines(found), "", *_place_lines(found), "", *_location_lines(found)])
    lines.extend([*_best_lines(found), *crossovers.lines(found["crossovers"]), *_load_lines(found, asked)])
    lines.extend(
        ["", " times to the first token; a fetch is whole before work begins, unless by layers; queues are as stated"]
    )
    return "\n".join(lines)


def _target_lines(found: dict[str, Any]) -> list[str]:
    targets = found["targets"]
    if targets["met"] is None:
        return []
    stated = [
        f"{key} {words.seconds(targets[f'{key}_s'])}" for key in ("mean", "p99") if targets[f"{key}_s"] is not None
    ]
    kept = ", ".join(targets["kept_by"]) or "no place"
    return [f"  Target {' and '.join(stated)}: {'kept' if targets['met'] else 'missed'}; {kept} would keep it."]


def _place_lines(found: dict[str, Any]) -> list[str]:
    table = [["PLACE", "queue", "MEAN", "p99", "fetch only after the queue", "all tasks", "MOST LIKELY"]]
    for place in found["places"]:
        chosen = place["name"] == found["chosen"]["place"]
        table.append(
            [
                place["name"],
                words.seconds(place["queue_s"]) if place["queue_s"] else "0",
                words.seconds(place["ttft_s"]["mean"]),
                words.seconds(place["ttft_s"]["p99"]),
                words.seconds(place["serial_ttft_s"]["mean"]),
                words.seconds(place["all_tasks_s"]),
                place["action"] + ("  <- chosen" if chosen else ""),
            ]
        )
    return words.table(table, frozenset(range(1, 6)))


def _location_lines(found: dict[str, Any]) -> list[str]:
    table = [
        ["PLACE", "STATE IS", "so often", "ready", "fetched while waiting", "after", "by layers", "recomputed", "DOES"]
    ]
    for place in found["places"]:
        for at in place["locations"]:
            table.append(
                [
                    place["name"],
                    at["location"],
                    words.percent(at["probability"]),
                    "0" if at["ready_s"] == 0 else words.seconds(at["ready_s"]),
                    words.seconds(at["ttft_s"]["overlapped"]),
                    words.seconds(at["ttft_s"]["serial"]),
                    words.seconds(at["ttft_s"]["layer_wise"]),
                    words.seconds(at["ttft_s"]["recompute"]),
                    at["action"],
                ]
            )
    return words.table(table, frozenset(range(2, 8)))


def _best_lines(found: dict[str, Any]) -> list[str]:
    names = found["best"]
    if len(set(names.values())) == 1:
        return ["", f" BEST by every measure: {names['request']}"]
    return ["", f" BEST for the request: {names['request']}; its p99: {names['p99']}; all tasks: {names['all_tasks']}"]


def _load_lines(found: dict[str, Any], asked: Routing) -> list[str]:
    if not found["links"] or asked.request.rate is None:
        return []
    table = [["LINK", "if all go to", "load", "of", ""]]
    for row in found["links"]:
        over = "  more than it carries" if row["utilisation"] > 1 else ""
        loads = [f"{words.gigabytes_per_second(row[key])} GB/s" for key in ("bytes_per_s", "capacity")]
        table.append([row["link"], row["place"], *loads, words.percent(row["utilisation"]) + over])
    return ["", f" at {write(asked.request.rate, REQUEST_RATE)}:", *words.table(table, frozenset({2, 3}))]
