"""All of it in one run: `python -m benchmarks [PART ...] [--rounds N] [--data PATH] [--json]`."""

import argparse
import datetime
import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import backends, experts, results, solving, starting, traces

PARTS: dict[str, tuple[str, int, Callable[[int], list[results.Result]]]] = {
    "solving": ("Solving in process, warm", 21, solving.in_process),
    "middle": ("Two models on three node types, in process", 5, solving.middle),
    "tiers": ("State kept in four tiers, in process", 1, solving.tiers),
    "mixture": ("A mixture of experts on four node types, in process", 5, solving.mixture),
    "starting": ("The command line as a whole process", 21, starting.whole_process),
    "cards": ("Many cards", 15, solving.by_cards),
}
BACKENDS = ("Back ends: master problem, most throughput, full proof", 7)


def main() -> None:
    """Measure the parts asked for and print them."""
    options = _options()
    parts = options.parts or [*PARTS, "backends"]
    document: dict[str, Any] = {"machine": machine()}
    if not options.json:
        print("; ".join(f"{name} {value}" for name, value in document["machine"].items()))
    for name, (title, usual, measure) in PARTS.items():
        if name in parts:
            rounds = options.rounds or usual
            found = measure(rounds)
            document[name] = {"rounds": rounds, "results": [one.as_json() for one in found]}
            if not options.json:
                print(f"\n{title} ({rounds} rounds)\n\n{results.table(found)}", flush=True)
    if "backends" in parts:
        rounds = options.rounds or BACKENDS[1]
        rows: list[backends.Row] = []
        if not options.json:
            print(f"\n{BACKENDS[0]} ({rounds} rounds)")
        for found_here in backends.compare(rounds):
            rows += found_here
            if not options.json:
                print(f"\n{backends.table(found_here)}", flush=True)
        document["backends"] = {"rounds": rounds, "results": backends.as_json(rows)}
    if "experts" in parts:
        found_of_experts = list(experts.measure(options.data))
        document["experts"] = {"results": [one.as_json() for one in found_of_experts]}
        if not options.json:
            print(f"\nExpert placement\n\n{experts.table(found_of_experts)}", flush=True)
    if "traces" in parts:
        found_of_traces = list(traces.measure(options.data))
        document["traces"] = {"results": [one.as_json() for one in found_of_traces]}
        if not options.json:
            print(f"\nRequest traces\n\n{experts.table(found_of_traces)}", flush=True)
    document["machine"]["load at the end"] = _load()
    if options.json:
        print(json.dumps(document, indent=2))
    else:
        print(f"\nload at the end {_load()}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast inferplan is.")
    parser.add_argument(
        "parts", nargs="*", choices=[[], *PARTS, "backends", "experts", "traces"], metavar="PART", help="default: all"
    )
    parser.add_argument("--rounds", type=int, help="repetitions of each job")
    parser.add_argument("--data", type=Path, help="folder of measured loads or traces, for experts and traces")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    return parser.parse_args()


def machine() -> dict[str, str]:
    """What it ran on."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "Python": platform.python_version(),
        "OR-Tools": version("ortools"),
        "load": _load(),
    }


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    main()
