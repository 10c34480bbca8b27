"""The documentation tells the truth: its examples run, its tables are complete, its links lead somewhere."""

import importlib
import inspect
import pkgutil
import typing
from argparse import SUPPRESS, _SubParsersAction
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from api import cli
from api.report.page import PARTS
from models.base import Described
from models.catalog import KINDS
from models.instance import Instance
from models.load import load
from models.plan import Plan
from models.workload import READ_AS, PoolLimit
from solver import formulas
from solver.data import gather
from solver.milp import master
from tests.docs.examples import ROOT, Shell, blocks, commands, matches, normal, pages, renewed
from tests.docs.markdown import anchors, code, described_models, links, rows

REFERENCE = ROOT / "docs" / "reference"
PAGES = [*pages(), ROOT / "CHANGELOG.md"]
GIVEN_BY_THE_CATALOG = {("Llm", "weights"), ("Llm", "kv")}
"""Required in an instance, yet filled in when it is read."""


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


# --- examples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_examples_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for block in blocks(text_of(page)):
        if block.language != "console":
            shell.write(block)
            continue
        for command in commands(block.text):
            real = shell.run(command.words)
            if not matches(command.output, real):
                shown = [normal(line) for line in command.output]
                assert shown == [normal(line) for line in renewed(command.output, real)], command.shown


def test_the_readme_shows_the_whole_first_screen() -> None:
    consoles = [block for block in blocks(text_of(ROOT / "README.md")) if block.language == "console"]
    shown = [command for block in consoles for command in commands(block.text)]
    demo = [command for command in shown if command.words == ("make", "demo")]
    assert len(demo) == 1
    assert "..." not in demo[0].output


@pytest.mark.parametrize(
    ("shown", "same"),
    [
        (["a", "b"], False),
        (["a", "b", "t  0.20 s"], True),
        (["...", "t  0.20 s"], True),
        (["a", "..."], True),
        (["...", "b", "..."], True),
        (["...", "c", "..."], False),
        (["b", "..."], False),
    ],
)
def test_outputs_are_compared_line_by_line(shown: list[str], same: bool) -> None:
    assert matches(shown, ["a", "b", "t  0.10 s"]) is same


# --- links and pictures -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(text_of(page)):
        if "://" in link:
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.is_relative_to(ROOT), f"{link} leads out of the project"
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(text_of(target)), f"{link}: no such heading"


def test_the_picture_says_what_the_plan_says(tmp_path: Path) -> None:
    picture = ElementTree.parse(ROOT / "docs" / "eight-cards.svg").getroot()
    words = " ".join(" ".join(picture.itertext()).split())
    shell = Shell(tmp_path)
    shell.run(["inferplan", "solve", "instances/chapter/eight-cards.yaml", "--plan-only", "--out", "plan.json"])
    plan = Plan.model_validate_json((tmp_path / "plan.json").read_text())
    assert plan.drain is not None
    assert plan.drain.drained_s is not None
    for pool in plan.pools:
        assert f"up to {pool.capacity:.2f} req/s" in words
    assert f"gone in second {plan.drain.drained_s:.0f}," in words
    assert f"{plan.drain.backlog:.0f} requests in second {plan.drain.ready_s:.0f}" in words
    assert f"{plan.handoffs[0].bytes_per_request / 2**30:.3f} GiB" in words


# --- tables -----------------------------------------------------------------------------------------


def models_below(annotation: object, seen: set[object] | None = None) -> Iterator[type[Described]]:
    """The models that a type speaks of, those inside them included; a model may speak of itself."""
    seen = set() if seen is None else seen
    if inspect.isclass(annotation) and issubclass(annotation, Described) and annotation not in seen:
        seen.add(annotation)
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_below(field.annotation, seen)
    for argument in typing.get_args(annotation):
        yield from models_below(argument, seen)


@pytest.mark.parametrize(
    ("page", "top"),
    [(REFERENCE / "instance-format.md", Instance), (ROOT / "docs" / "how-to" / "read-the-plan-json.md", Plan)],
    ids=["instance", "plan"],
)
def test_every_key_has_a_row(page: Path, top: type[Described]) -> None:
    models = {model.__name__: model for model in models_below(top)}
    tables = described_models(text_of(page))
    assert set(tables) == set(models)
    for name, model in models.items():
        keys = [field.alias or key for key, field in model.model_fields.items()]
        keys += READ_AS if name == "Workload" and top is Instance else []
        assert sorted(code(row[0]) for row in tables[name]) == sorted(keys), name


def test_required_keys_are_said_to_be_required() -> None:
    tables = described_models(text_of(REFERENCE / "instance-format.md"))
    for model in set(models_below(Instance)):
        said = {code(row[0]): row[2].startswith("required") for row in tables[model.__name__]}
        for key, field in model.model_fields.items():
            if (model.__name__, key) not in GIVEN_BY_THE_CATALOG:
                assert said[field.alias or key] is field.is_required(), f"{model.__name__}.{key}"


def test_every_formula_has_a_row() -> None:
    functions = {
        (name, f"solver/formulas/{module.name}.py")
        for module in pkgutil.iter_modules(formulas.__path__)
        for name, function in inspect.getmembers(
            importlib.import_module(f"solver.formulas.{module.name}"), inspect.isfunction
        )
        if function.__module__ == f"solver.formulas.{module.name}" and not name.startswith("_")
    }
    table = [(code(function), code(file)) for _, function, file, _ in rows(text_of(REFERENCE / "formulas.md"))]
    assert sorted(table) == sorted(functions)


EVERY_ROW = [
    "billing.pay=used",
    "hardware.bundles={more: {cards: {a100: 4}, price: 4/h}}",
    "hardware.links.rdma.step={price: 1/h, at_most: 2}",
    "hardware.groups.h20={accelerator: H20-SXM5-96GB, servers: 1, per_server: 6, price: 1/h}",
    "limits.spare={units: 1}",
    "models.qwen3-8b.tp=4",
    "workloads.reasoning.targets={ttft: 300 ms}",
    "workloads.reasoning.batch=null",
]
"""Changes that bring rows which few instances have."""


WITH_TIERS = [
    "hardware.links.net={connects: [a100, h20], bandwidth: 1.5 GB/s}",
    "hardware.stores.pool={on: net, capacity: 1 TB, read: 10 GB/s, write: 10 GB/s}",
    "tiers.dram={capacity: {max: 1 TiB, step: 64 GiB}, bandwidth: 100 GB/s}",
    "tiers.behind={drives: {count: 1, size: 4 TB, read: 7 GB/s, write: 4 GB/s}, holds: exclusive}",
    "tiers.ssd={drives: {max: 4, size: 4 TB, read: 7 GB/s, write: 4 GB/s}, endurance: {writes_per_day: 1}, "
    "write_policy: [all, second_hit, never], admission: 1000000}",
    "tiers.pool={store: pool}",
    "workloads.reasoning.reuse=[{kind: system-prompt, tokens_per_hit: 512, distinct: 2}, "
    "{tokens_per_hit: 4096, curve: {10 s: 8 %, 10 min: 60 %}}]",
    "workloads.reasoning.tool_wait={mean: 5 s}",
    "models.qwen3-8b.tp=[1, 2]",
    "workloads.reasoning.targets={ttft: 1.2 s}",
    "service.drain=null",
]
"""Changes that bring the rows about state that is kept for later."""
WITH_TIMES_TO_LIVE = [*WITH_TIERS, "tiers.behind=null", "tiers.dram.eviction=ttl"]


def test_every_row_of_the_model_has_a_row() -> None:
    path = ROOT / "instances" / "chapter" / "eight-cards.yaml"
    instance = load(path, ["hardware.stores.kv-pool.read=20 GB/s"])
    dropped = "workloads.reasoning.minimum_share=0.5", "service.drain=null"
    limits = instance.limits.model_copy(update={"pools": [PoolLimit(at_least=1)]})
    instance = instance.model_copy(update={"limits": limits})
    slow = instance.hardware.groups["h20"].model_copy(update={"startup": 20.0})
    hardware = instance.hardware.model_copy(update={"groups": {**instance.hardware.groups, "h20": slow}})
    names = {
        row.name
        for one in (
            instance,
            instance.model_copy(update={"hardware": hardware}),
            load(path, EVERY_ROW),
            load(path, dropped),
            load(path, WITH_TIERS),
            load(path, WITH_TIMES_TO_LIVE),
        )
        for row in master.build(gather(one)).model.rows
    }
    pages = [text_of(REFERENCE / page) for page in ("formulation.md", "tiers.md")]
    table = [code(row[1]) for page in pages for row in rows(page) if len(row) == 3 and "`" in row[1]]
    assert {_kind(name) for name in names} == {_kind(name) for name in table if name}


def _kind(name: str) -> tuple[str, int]:
    """A row name without what tells rows of one kind apart."""
    word, _, inside = name.partition("[")
    first = inside.partition("]")[0]
    return word, len(first.split(",")) if first else 0


def test_every_part_of_the_report_has_a_row() -> None:
    table = rows(text_of(ROOT / "docs" / "how-to" / "read-the-report.md"))
    assert [row[0] for row in table] == ["headline", *(title for _, title, _ in PARTS)]


def test_the_command_line_is_described() -> None:
    page = text_of(REFERENCE / "cli.md")
    [action] = [a for a in cli.parser()._actions if isinstance(a, _SubParsersAction)]
    for name, command in action.choices.items():
        if name in cli.LATER:
            continue
        assert f"## `inferplan {name}" in page
        for option in command._actions:
            if option.help is not SUPPRESS:
                assert all(word in page for word in option.option_strings if word.startswith("--") and word != "--help")
    for kind in KINDS:
        assert f"`{kind}`" in page
