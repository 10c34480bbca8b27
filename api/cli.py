"""The command line. Every command takes `--json`; exit codes are those of the public contract.

0 solved or valid; 2 bad input, usage errors too; 3 proven infeasible; 4 stopped without a plan; 1 a fault of ours.
"""

import argparse
import contextlib
import gc
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from api import commands, options, questions
from api.exits import BAD, FAULT, SOLVED, STOPPED
from models.errors import BadInput, Problem

LATER = (*("simulate", "calibrate", "batch", "export", "import", "serve", "remote"),)
"""Commands of the contract that are not built yet."""


class Parser(argparse.ArgumentParser):
    """argparse whose errors are problems like any other."""

    def error(self, message: str) -> NoReturn:
        """Raises BadInput, at the option where argparse names one."""
        named = re.fullmatch(r"argument (-[\w-]+): (.*)", message, re.DOTALL)
        place, message = named.groups() if named else ("command line", message)
        raise BadInput([Problem(place, message, None, f"see {self.prog} --help")])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    gc.disable()  # imports make only things that stay; looking at them takes 7 % of a short command
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    code = SOLVED
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - closed by the caller, open to the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without block characters shows question marks
        code = _code(words, as_json)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    except KeyboardInterrupt:
        print("inferplan: interrupted", file=sys.stderr)
        return STOPPED
    except OSError as error:  # standard output cannot be written, a full disk for example
        with contextlib.suppress(OSError):
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - so that Python does not try again at its end
            print(f"inferplan: {error.strerror or error}", file=sys.stderr)
        return FAULT


def _code(words: list[str], as_json: bool) -> int:
    """Runs the command, and tells what went wrong."""
    try:
        given = parser().parse_args(_with_negatives(words))
        return int(given.run(given))
    except BadInput as error:
        return _bad(error, as_json)
    except OSError:
        raise
    except Exception as error:  # the last door: no traceback reaches a user
        return _fault(error, as_json)


def _with_negatives(words: list[str]) -> list[str]:
    """`--rate -5/s` as `--rate=-5/s`, so that the value is refused as one, not taken for an option."""
    joined: list[str] = []
    for word in words:
        before = joined[-1] if joined else ""
        if re.match(r"-\.?[0-9]", word) and re.fullmatch(r"--[a-z][a-z0-9-]*", before):
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return joined


def _bad(error: BadInput, as_json: bool) -> int:
    if as_json:
        problems = [problem.as_json() for problem in error.problems]
        print(json.dumps({"error": {"kind": "bad_input", "problems": problems}}, indent=2))
    else:
        count = len(error.problems)
        print(f"inferplan: {count} problem{'' if count == 1 else 's'} in the input", file=sys.stderr)
        print("\n".join(f"  {line}" for line in str(error).splitlines()), file=sys.stderr)
    return BAD


def _fault(error: Exception, as_json: bool) -> int:
    if os.environ.get("INFERPLAN_DEBUG"):
        raise error
    message = f"{type(error).__name__}: {error}"
    if as_json:
        problem = Problem("", message).as_json()
        print(json.dumps({"error": {"kind": "internal", "problems": [problem]}}, indent=2))
    else:
        print(f"inferplan: a fault of inferplan itself: {message}", file=sys.stderr)
        print("  INFERPLAN_DEBUG=1 shows where; please report it with the instance file.", file=sys.stderr)
    return FAULT


def parser() -> Parser:
    """The whole command line."""
    text = "What runs where: deployment plans for LLM inference, proved."
    top = Parser(prog="inferplan", allow_abbrev=False, description=text)
    subcommands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    _solve(subcommands)
    _new(subcommands)
    _experts(subcommands)

    _file(subcommands, "check", commands.check, "is the file valid, and what was understood")
    _file(subcommands, "compare", commands.compare, "every scheme on its own, side by side")
    _file(subcommands, "explain", commands.explain, "what binds and what next; or why nothing fits")
    sweep = _file(subcommands, "sweep", commands.sweep, "one instance over a grid of changes, as a table")
    sweep.add_argument(
        "--vary", metavar="PATH=V1,V2", action="append", required=True, help="values of one place; may be repeated"
    )
    sweep.add_argument(
        "--time-limit", metavar="SECONDS", type=options.seconds, default=60.0, help="of each solve; default 60"
    )
    flips = _file(subcommands, "flips", questions.flips, "from which value of a number another scheme wins")
    text = "a number that moves; may be repeated. Default: links, lengths, batches, arrivals, prices"
    flips.add_argument("--vary", metavar="PATH[=LOW..HIGH]", action="append", default=[], help=text)
    text = "of the whole search; default 300"
    flips.add_argument("--time-limit", metavar="SECONDS", type=options.seconds, default=300.0, help=text)
    verify = _file(subcommands, "verify", commands.verify, "does a plan hold for an instance")
    verify.add_argument("plan", metavar="PLAN.json", type=Path)
    _file(subcommands, "route", questions.route, "where a request goes when its state may be elsewhere")
    _file(subcommands, "layer", questions.layer, "what one layer costs where: experts, exchanges, copies, handoffs")
    text = "from one deployment to the next: order of steps, bytes, time, and what waits meanwhile"
    transition = _file(subcommands, "transition", questions.transition, text)
    transition.add_argument("--from", metavar="A.json", dest="before", type=Path, help="the plan that runs today")
    transition.add_argument("--to", metavar="B.json", dest="after", type=Path, help="the plan that shall run")

    queue = _file(subcommands, "queue", questions.queue, "what waits over time where requests come in bursts")
    queue.add_argument("--plan", metavar="PLAN.json", type=Path, help="of this instance; left out: it is solved")
    text = "of the longest bursts that are followed; default 2"
    queue.add_argument("--periods", metavar="N", type=options.periods, default=2, help=text)
    text = "the longest that a request may wait; default: the deadline of the startup backlog"
    queue.add_argument("--wait", metavar="TIME", type=options.wait, help=text)

    _trace(subcommands)

    catalog = _command(
        subcommands, "catalog", commands.catalog, "accelerators, servers, models, links, storage, with sources"
    )
    catalog.add_argument("kind", metavar="KIND", nargs="?")
    catalog.add_argument("name", metavar="NAME", nargs="?")

    schema = _command(subcommands, "schema", commands.schema, "JSON Schema of instance files (or of other files)")
    kinds = ("instance", "plan", "routing", "transition", "layer")
    schema.add_argument("what", nargs="?", choices=kinds, default="instance")

    glossary = _command(subcommands, "glossary", commands.glossary, "the words of plans and reports")
    glossary.add_argument("word", metavar="WORD", nargs="?")

    for name in LATER:
        later = _command(subcommands, name, commands.later, None)
        later.add_argument("rest", nargs=argparse.REMAINDER)
    return top


def _solve(subcommands: Any) -> None:
    solve = _command(subcommands, "solve", commands.solve, "the best plan for an instance, with its reasons")
    solve.add_argument("file", metavar="FILE", type=Path, nargs="?", help="left out: the examples are listed")
    solve.add_argument("--time-limit", metavar="SECONDS", type=options.seconds, default=60.0, help="default 60")
    solve.add_argument(
        "--gap", metavar="SHARE", type=options.share, default=1e-4, help="may stop inside it; default 1e-4"
    )
    solve.add_argument("--seed", metavar="N", type=options.seed, default=None, help="of the solver")
    solve.add_argument(
        "--plan-only",
        action="store_true",
        help="no alternatives, no next steps; an infeasible instance is still explained",
    )
    solve.add_argument("--out", metavar="PLAN.json", type=Path, help="write the plan as JSON too")
    solve.add_argument("--html", metavar="REPORT.html", type=Path, help="write a report for the browser, one file")
    _changes(solve)


def _new(subcommands: Any) -> None:
    text = "an instance file from a list of Kubernetes nodes, a model and what arrives"
    new = _command(subcommands, "new", commands.new, text)
    # Nothing is required here: what is missing is reported beside what is wrong.
    new.add_argument("--nodes", metavar="NODES.json", type=Path, help="output of kubectl get nodes -o json; - reads it")
    new.add_argument("--model", metavar="NAME|CONFIG", help="a name of the catalog, its repository, or a config.json")
    new.add_argument("--rate", metavar="RATE", help="requests that arrive, e.g. 5/s")
    new.add_argument("--users", metavar="N", help="in place of --rate: people who ask")
    new.add_argument("--think-time", metavar="TIME", help="of a user between requests, e.g. 45s")
    new.add_argument("--input", metavar="N", help="tokens of a request")
    new.add_argument("--output", metavar="N", help="tokens of an answer")
    for name, meaning in (("ttft", "time to the first token"), ("tpot", "time of each token after it")):
        new.add_argument(f"--{name}", metavar="TIME", help=f"limit on the {meaning}, without queueing")
        new.add_argument(f"--{name}-p95", metavar="TIME", help="percentiles are not computed yet: becomes such a limit")
    new.add_argument("--name", metavar="NAME", help="of the instance; default: that of the file")
    new.add_argument("-o", metavar="FILE", dest="file", type=Path, help="write the file; default: standard output")
    new.add_argument("--force", action="store_true", help="write over a file that exists")


def _experts(subcommands: Any) -> None:
    text = "replicas of experts onto cards, from measured loads, with a proven bound"
    made = _command(subcommands, "experts", commands.experts, text)
    made.add_argument("loads", metavar="LOADS", type=Path, help="layers x experts, one array or several: scenarios")
    made.add_argument("--cards", metavar="R", required=True, help="cards of the expert-parallel group")
    made.add_argument("--slots", metavar="P", help="physical slots of one layer over all cards")
    made.add_argument("--slots-per-card", metavar="S[,S...]", help="in place of --slots: of every card, or of each")
    made.add_argument("--nodes", metavar="N", default="1", help="nodes of equally many cards; default 1")
    made.add_argument("--expert-groups", metavar="G", help="groups of experts: balance against traffic between nodes")
    made.add_argument("--keep-groups", action="store_true", help="every replica on the node of its expert's group")
    made.add_argument("--engine", action="store_true", help="as for an engine: equal cards, every slot filled")
    made.add_argument("--separate", action="store_true", help="a placement for each scenario, not one for all")
    made.add_argument("--weights", metavar="W1,W2", help="of the scenarios; default: all alike")
    made.add_argument("--worst", action="store_true", help="the worst scenario counts, not the weighted sum")
    made.add_argument("--holdout", metavar="FILE", type=Path, help="loads to judge the placement by")
    made.add_argument("--token-time", metavar="TIME", help="of one token on an expert; default: tokens are counted")
    made.add_argument("--slot-time", metavar="TIME", help="of one active slot, beside --token-time")
    made.add_argument("--steps", metavar="N", help="steps in which the loads were measured, for times of one step")
    made.add_argument("--current", metavar="MAP", type=Path, help="where replicas are now: copies, bytes, break-even")
    made.add_argument("--copy-rate", metavar="RATE", help="bytes/s that a card sends or receives")
    made.add_argument("--copy-startup", metavar="TIME", help="of each copy; default 0")
    made.add_argument("--in-flight", metavar="N", help="batches to wait for before a replica is reclaimed; default 0")
    made.add_argument("--lifetime", metavar="STEPS", help="how long the loads stay as they are: is a move worth it")
    made.add_argument("--budget", metavar="BYTES", help="for replicas, all layers and cards: the best use of it")
    made.add_argument("--expert-bytes", metavar="BYTES", help="weights of one expert of one layer")
    made.add_argument("--kv-token-bytes", metavar="BYTES", help="KV of a token: what a replica takes from it")
    made.add_argument(
        "--write", metavar="ENGINE", choices=("sglang", "trtllm", "vllm", "vllm-ascend"), help="for --out"
    )
    made.add_argument("--out", metavar="FILE", type=Path, help="the placement as a file of --write's engine")
    made.add_argument("--splits", metavar="FILE", type=Path, help="the best share of each slot, for fixed shares")
    made.add_argument(
        "--first-layer", metavar="N", help="the model's number of the first layer with experts; default 0"
    )
    made.add_argument("--model-layers", metavar="N", help="layers of the model, those without experts included")
    made.add_argument("--html", metavar="FILE", type=Path, help="heat map of layers x cards, before and after")
    made.add_argument(
        "--tighten", metavar="SECONDS", type=options.pause, default=30.0, help="for tighter bounds; default 30"
    )
    made.add_argument("--seed", metavar="N", type=options.seed, default=None, help="of the search")


def _trace(subcommands: Any) -> None:
    text = "a trace of requests: lengths, arrivals, how much a cache of any size would hit, writes to a second tier"
    made = _command(subcommands, "trace", questions.trace, text)
    made.add_argument("file", metavar="FILE", type=Path, help="may be packed (gzip, xz, bzip2); - is standard input")
    made.add_argument("--format", metavar="NAME", help="mooncake, bailian, azure, burstgpt, jsonl, csv; default: seen")
    made.add_argument("--block-tokens", metavar="N", help="tokens of a block; default: the format's")
    made.add_argument("--columns", metavar="FIELD=NAME,...", help="names of time, input, output, blocks, session")
    made.add_argument("--time-unit", metavar="UNIT", help="s, ms, us or ns; default: the format's")
    made.add_argument("--sort", action="store_true", help="put requests in the order of their times")
    made.add_argument("--spread", action="store_true", help="spread requests of one time until the next time")
    made.add_argument(
        "--sessions", action="store_true", help="make blocks of sessions: a turn begins with the last one"
    )
    made.add_argument("--skip-bad", action="store_true", help="leave out lines that are wrong, and count them")
    text = "of last blocks that are not full: kept as blocks, or not kept; default count"
    made.add_argument("--partial-blocks", choices=("count", "drop"), default="count", help=text)
    text = "that fills the cache and does not count: 50 %%, 10 min or 1000 requests; default none"
    made.add_argument("--warm-up", metavar="PART", help=text)
    text = "what hit rates are shares of; default token"
    made.add_argument("--weight", choices=("token", "block"), default="token", help=text)
    made.add_argument("--capacities", metavar="C1,C2,...", help="of a cache: blocks, tokens or bytes, e.g. 5859,64 GB")
    made.add_argument("--ttl", metavar="T1,T2,...", help="further times for which blocks are kept, e.g. 90 s,15 min")
    made.add_argument("--hot", metavar="SHARE", help="of requests that read a block for it to be hot; default 5 %%")
    made.add_argument("--kv-bytes-per-token", metavar="BYTES", help="tells tokens in bytes too")
    text = "print the workload as an instance has it: rate, lengths, and what of its prompts comes back"
    made.add_argument("--reuse", action="store_true", help=text)
    text = "of --reuse: nothing was read before the trace begins; default: as if it had gone on like this before"
    made.add_argument("--as-counted", action="store_true", help=text)
    text = "replay the trace in the tiers of a plan, beside what the plan says of them"
    made.add_argument("--plan", metavar="PLAN.json", type=Path, help=text)
    made.add_argument("--workload", metavar="NAME", help="of the plan; default: the only one with reuse")
    text = "of --plan: capacities times the rate of the trace over that of the plan; default yes"
    made.add_argument("--scale", choices=("yes", "no"), default=None, help=text)
    made.add_argument("--dram", metavar="C", help="the upper of two tiers; adds the table of writes to the lower one")
    made.add_argument("--ssd", metavar="C", help="the lower of two tiers")
    made.add_argument("--admission", metavar="N", help="blocks whose first access is remembered; default all")
    made.add_argument("--drive", metavar="SIZE,N/day,YEARS", help="of the lower tier, e.g. 7.68 TB,1/day,5 years")


def _command(subcommands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str | None) -> Parser:
    extra = {} if text is None else {"help": text, "description": text}
    made: Parser = subcommands.add_parser(name, allow_abbrev=False, **extra)
    made.add_argument("--json", action="store_true", help="one JSON document on standard output")
    made.set_defaults(run=run)
    return made


def _file(subcommands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str) -> Parser:
    """A command about one instance file, which may be changed on the command line."""
    made = _command(subcommands, name, run, text)
    made.add_argument("file", metavar="FILE", type=Path)
    _changes(made)
    return made


def _changes(command: Parser) -> None:
    command.add_argument(
        "--set", metavar="PATH=VALUE", dest="changes", action="append", default=[], help="change the instance"
    )


if __name__ == "__main__":
    sys.exit(main())
