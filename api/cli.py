"""The command line. Every command takes `--json`; exit codes are those of the public contract.

0 solved or valid; 2 bad input, usage errors too; 3 proven infeasible; 4 stopped without a plan; 1 a fault of ours.
"""

import argparse
import contextlib
import gc
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from models.errors import BadInput, Problem

SOLVED, FAULT, BAD, INFEASIBLE, STOPPED = 0, 1, 2, 3, 4

LATER = (
    *("new", "explain", "sweep", "experts", "trace", "simulate", "route", "transition"),
    *("calibrate", "batch", "export", "import", "serve", "remote", "glossary"),
)
"""Commands of the contract that are not built yet."""


class Parser(argparse.ArgumentParser):
    """argparse whose errors are problems like any other."""

    def error(self, message: str) -> NoReturn:
        """Raises BadInput."""
        raise BadInput([Problem("command line", message, None, f"see {self.prog} --help")])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    gc.disable()  # imports make only things that stay; looking at them takes 7 % of a short command
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="replace")  # a terminal without block characters shows question marks
        options = parser().parse_args(words)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except BadInput as error:
        return _bad(error, as_json)
    except BrokenPipeError:  # the reader has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SOLVED
    except KeyboardInterrupt:
        print("inferplan: interrupted", file=sys.stderr)
        return STOPPED
    except OSError as error:  # standard output cannot be written, a full disk for example
        with contextlib.suppress(OSError):
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - so that Python does not try again at its end
            print(f"inferplan: {error.strerror or error}", file=sys.stderr)
        return FAULT
    except Exception as error:  # the last door: no traceback reaches a user
        return _fault(error, as_json)


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
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    solve = _command(commands, "solve", _solve, "the best plan for an instance, with its reasons")
    solve.add_argument("file", metavar="FILE", type=Path)
    solve.add_argument("--time-limit", metavar="SECONDS", type=_seconds, default=60.0, help="default 60")
    solve.add_argument("--gap", metavar="SHARE", type=_share, default=1e-4, help="may stop inside it; default 1e-4")
    solve.add_argument("--seed", metavar="N", type=_seed, default=None, help="of the solver")
    solve.add_argument(
        "--plan-only",
        action="store_true",
        help="no alternatives, no next steps; an infeasible instance is still explained",
    )
    solve.add_argument("--out", metavar="PLAN.json", type=Path, help="write the plan as JSON too")
    solve.add_argument("--html", metavar="REPORT.html", help=argparse.SUPPRESS)
    _changes(solve)

    check = _command(commands, "check", _check, "is the file valid, and what was understood")
    check.add_argument("file", metavar="FILE", type=Path)
    _changes(check)

    compare = _command(commands, "compare", _compare, "every scheme on its own, side by side")
    compare.add_argument("file", metavar="FILE", type=Path)
    _changes(compare)

    verify = _command(commands, "verify", _verify, "does a plan hold for an instance")
    verify.add_argument("file", metavar="FILE", type=Path)
    verify.add_argument("plan", metavar="PLAN.json", type=Path)
    _changes(verify)

    catalog = _command(commands, "catalog", _catalog, "accelerators, servers, models, links, storage, with sources")
    catalog.add_argument("kind", metavar="KIND", nargs="?")
    catalog.add_argument("name", metavar="NAME", nargs="?")

    schema = _command(commands, "schema", _schema, "JSON Schema of instance files (or of plans)")
    schema.add_argument("what", nargs="?", choices=("instance", "plan"), default="instance")

    for name in LATER:
        later = _command(commands, name, _later, None)
        later.add_argument("rest", nargs=argparse.REMAINDER)
    return top


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str | None) -> Parser:
    extra = {} if text is None else {"help": text, "description": text}
    made: Parser = commands.add_parser(name, allow_abbrev=False, **extra)
    made.add_argument("--json", action="store_true", help="one JSON document on standard output")
    made.set_defaults(run=run)
    return made


def _changes(command: Parser) -> None:
    command.add_argument(
        "--set", metavar="PATH=VALUE", dest="changes", action="append", default=[], help="change the instance"
    )


def _number(text: str, accepted: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:  # also refuses nan
        raise argparse.ArgumentTypeError(f"{text!r} is not {accepted}")
    return value


def _seconds(text: str) -> float:
    return _number(text.removesuffix("s").strip(), "a number of seconds from 0.01 to 1e6", 0.01, 1e6)


def _share(text: str) -> float:
    return _number(text, "a share from 0 to 1", 0.0, 1.0)


def _seed(text: str) -> int:
    value = _number(text, "a whole number from 0 to 2147483647", 0, 2**31 - 1)
    if value != int(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(value)


def _later(options: argparse.Namespace) -> int:
    raise BadInput([Problem("command line", f"`inferplan {options.command}` is not supported yet")])


def _print(document: Any) -> None:
    print(json.dumps(document, indent=2, allow_nan=False))


def _solve(options: argparse.Namespace) -> int:
    from api.run import interruptible
    from api.screen import render
    from models.load import load
    from solver.backend import Limits
    from solver.solve import Options, solve

    if options.html:
        raise BadInput([Problem("--html", "not supported yet", options.html, "--json or --out")])
    instance = load(options.file, options.changes)
    limits = Limits(options.time_limit, options.gap, options.seed)
    plan = interruptible(lambda: solve(instance, Options(limits, options.plan_only)), limits)
    document = plan.as_json()
    if options.out is not None:
        _write(options.out, json.dumps(document, indent=2, allow_nan=False) + "\n")
    if options.json:
        _print(document)
    else:
        print(render(plan, instance))
    return {"infeasible": INFEASIBLE, "stopped": STOPPED}.get(plan.status, SOLVED)


def _write(path: Path, text: str) -> None:
    """The whole file or none of it: written beside its place and moved there; devices and pipes are written to."""
    import tempfile

    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            if path.is_dir():
                raise IsADirectoryError(0, "is a directory")
            path.write_text(text, encoding="utf-8")
            return
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=".inferplan-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(beside, (path.stat().st_mode if path.exists() else 0o666 & ~_umask()) & 0o777)
            os.replace(beside, path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput([Problem("--out", f"cannot be written: {reason}", str(path))]) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _check(options: argparse.Namespace) -> int:
    from api import tables
    from models.load import load
    from solver.check import check

    found = check(load(options.file, options.changes))
    _print(found) if options.json else print(tables.check(found))
    return SOLVED


def _compare(options: argparse.Namespace) -> int:
    from api import tables
    from api.run import interruptible
    from models.load import load
    from solver.backend import Limits
    from solver.compare import compare

    instance = load(options.file, options.changes)
    limits = Limits()
    rows = interruptible(lambda: compare(instance, limits), limits)
    if options.json:
        _print({"instance": instance.name, "rows": [row.model_dump(mode="json") for row in rows]})
    else:
        print(tables.compare(instance.name, rows))
    return STOPPED if any(row.status == "stopped" for row in rows) else SOLVED


def _verify(options: argparse.Namespace) -> int:
    from itertools import islice

    from api.planfile import differences, read
    from models.load import load
    from solver.verify import verify

    instance = load(options.file, options.changes)
    plan = read(options.plan)
    if plan.status not in ("optimal", "feasible"):
        raise BadInput([Problem("status", "there is no plan to verify", plan.status, "optimal or feasible")])
    if plan.instance_sha256 != instance.sha256():
        message = (
            f"the plan was made for another instance, or the file has changed since ({plan.instance_sha256[:12]}...)"
        )
        accepted = f"a plan of {instance.name} as it stands: solve again"
        changed = list(islice(differences(plan.instance_document, instance.document()), 5))
        message += f"; differs in {', '.join(changed)}" if changed else ""
        raise BadInput([Problem("instance_sha256", message, None, accepted)])
    violations = verify(plan, instance)
    if options.json:
        _print({"ok": not violations, "violations": violations})
    elif violations:
        print("\n".join(["the plan does not hold:", *(f"  {text}" for text in violations)]))
    else:
        print(f"{plan.instance}: the plan holds. Limits, rates, times and cost were computed again from the formulas;")
        print("  that nothing better exists, alternatives and next steps were not: solve again for those")
    return INFEASIBLE if violations else SOLVED


def _catalog(options: argparse.Namespace) -> int:
    from api import tables
    from models import catalog
    from models.errors import nearest

    kinds = list(catalog.KINDS)
    if options.kind is not None and options.kind not in kinds:
        guess = nearest(options.kind, kinds)
        raise BadInput([Problem("KIND", f"no such kind; {guess}".rstrip("; "), options.kind, ", ".join(kinds))])
    entries = [
        {"kind_of_entry": kind, **(catalog.entry(kind, name) or {})}
        for kind in (kinds if options.kind is None else [options.kind])
        for name in catalog.names(kind)
    ]
    if options.name is not None:
        known = [entry["name"] for entry in entries]
        entries = [entry for entry in entries if entry["name"] == options.name]
        if not entries:
            guess = nearest(options.name, known)
            message = f"not in the catalog of {options.kind}" + (f"; {guess}" if guess else "")
            raise BadInput([Problem("NAME", message, options.name, ", ".join(known))])
    if options.json:
        _print({"entries": entries})
    else:
        print(tables.catalog(options.kind, entries, options.name is not None))
    return SOLVED


def _schema(options: argparse.Namespace) -> int:
    from api.schema import document

    _print(document(options.what))
    return SOLVED


if __name__ == "__main__":
    sys.exit(main())
