"""The options of `inferplan new`, read: each into what the file says, or into a problem."""

import argparse
import os
import re
from pathlib import Path

from api.new import cluster, config, jsonfile, nodes
from api.new.text import WORKLOAD, Demand, Model
from models import catalog
from models.blanks import BLANK
from models.errors import BadInput, Problem, nearest
from models.files import resolve

MOST_NODES_BYTES = 128 * 2**20
"""A node with its list of images takes some 20 kB."""
MOST_CONFIG_BYTES = 4 * 2**20
CONFIG = "config.json"
TEXTS = ("rate", "users", "think_time", "input", "output", "ttft", "tpot", "ttft_p95", "tpot_p95", "name", "model")
PLACES = {
    "name": "--name",
    **{f"workloads.{WORKLOAD}.{key}": f"--{key}" for key in ("rate", "users", "input", "output")},
    f"workloads.{WORKLOAD}.think_time": "--think-time",
}
"""Where in the file an option stands -> the option."""


def option(name: str) -> str:
    """An option as people write it."""
    return "--" + name.replace("_", "-")


def unreadable(options: argparse.Namespace) -> list[Problem]:
    """Options that hold nothing, or what no file can hold."""
    given = {name: text for name in TEXTS if (text := getattr(options, name)) is not None}
    control = "a control character is in the text"
    return [
        Problem(option(name), control if text.strip() else "is empty", text, "printable text")
        for name, text in given.items()
        if not text.strip() or not text.isprintable()
    ]


def combinations(options: argparse.Namespace) -> list[Problem]:
    """What is missing among the options, or does not go together."""
    problems: list[Problem] = []
    if options.model is None:
        problems.append(Problem("--model", "missing", None, "a name of the catalog, or a config.json"))
    if options.rate is None and options.users is None:
        problems.append(Problem("--rate", "missing", None, "--rate 5/s, or --users 9000 --think-time 45s"))
    if options.rate is not None and options.users is not None:
        problems.append(Problem("--users", "stands beside --rate", options.users, "one of the two"))
    if options.think_time is not None and options.users is None:
        problems.append(Problem("--think-time", "stands without --users", options.think_time, "--users beside it"))
    for name in ("input", "output"):
        if getattr(options, name) is None:
            problems.append(Problem(option(name), "missing", None, "tokens of one request, e.g. 2000"))
    for name in ("ttft", "tpot"):
        if getattr(options, name) is not None and getattr(options, f"{name}_p95") is not None:
            value = getattr(options, f"{name}_p95")
            problems.append(Problem(f"--{name}-p95", f"stands beside --{name}", value, "one of the two"))
    return problems


def demand(options: argparse.Namespace) -> Demand:
    """What arrives, as the file says it; a user's pause that was not stated is left blank."""
    keys: dict[str, str | int] = {}
    for name in ("rate", "users", "think_time", "input", "output"):
        text = getattr(options, name)
        if text is not None:
            keys[name] = _plain(text)
        elif name == "think_time" and options.users is not None:
            keys[name] = BLANK
    targets: dict[str, str] = {}
    for name in ("ttft", "tpot"):
        text = getattr(options, f"{name}_p95") or getattr(options, name)
        if text is not None:
            targets[name] = text.strip()
    percentiles = frozenset(name for name in targets if getattr(options, f"{name}_p95") is not None)
    return Demand(keys, targets, percentiles)


def _plain(text: str) -> str | int:
    """Text as the instance file would read it, where that is a number."""
    value = resolve(text.strip())
    return value if isinstance(value, int) and not isinstance(value, bool) else text.strip()


def groups(path: Path) -> cluster.Cluster:
    """The groups of a list of nodes. Raises BadInput."""
    shown = "standard input" if str(path) == jsonfile.STANDARD_INPUT else path.name
    return cluster.join(nodes.read(jsonfile.read(path, "--nodes", MOST_NODES_BYTES), shown), shown)


def model(text: str) -> Model:
    """The model that a name of the catalog, a repository or a file speaks of. Raises BadInput."""
    known = {name.casefold(): name for name in catalog.names("models")}
    repositories = {_repository(name): name for name in catalog.names("models")}
    found = known.get(text.casefold()) or {key.casefold(): name for key, name in repositories.items()}.get(
        text.casefold()
    )
    if found:
        return Model(cluster.slug(found), found)
    path = Path(text)
    try:
        path = path / CONFIG if path.is_dir() else path
        there = path.exists()
    except (OSError, ValueError):  # too long, or with a NUL: no path
        there = False
    if there:
        return _described(path)
    guess = nearest(text, [*catalog.names("models"), *repositories])
    if text.endswith(".json") or path.name == CONFIG:
        raise BadInput([Problem("--model", "no such file", text, "a config.json, or a name of the catalog")])
    message = "neither a file nor in the catalog of models" + (f"; {guess}" if guess else "")
    accepted = "a config.json, a folder that holds one, or one of " + ", ".join(catalog.names("models"))
    raise BadInput([Problem("--model", message, text, accepted)])


def _described(path: Path) -> Model:
    shape, problems = config.understand(jsonfile.read(path, "--model", MOST_CONFIG_BYTES), path.name)
    if shape is None:
        raise BadInput(problems)
    name = cluster.slug(_called(path)) or cluster.slug(str(shape.keys["model_type"]))
    return Model(name, None, shape, f"from {path.name}")


def _called(path: Path) -> str:
    """What a model is called after its file: the folder, or the repository in a cache of Hugging Face."""
    if path.name != CONFIG:
        return re.sub(r"\.json$", "", path.name)
    parts = Path(os.path.abspath(path)).parts  # as given: in such a cache the file is a link
    cached = [part.rpartition("--")[2] for part in parts if part.startswith("models--")]
    return cached[-1] if cached else parts[-2]


def _repository(name: str) -> str:
    return str((catalog.entry("models", name) or {}).get("repository", name))
