"""The HTML report: one file, complete, equal to the plan, and harmless whatever the names in it."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from api.backlog import curve
from api.cli import main
from api.report import figures, render
from api.report.markup import MOST_ROWS, data, escape, table, tag
from api.report.page import HERE, PLOTLY
from models.instance import Instance
from models.plan import Plan
from models.units import GIB
from solver.solve import solve
from tests.instances import EIGHT, ROOT, eight

LIMIT = 2_500_000
"""Bytes of a report."""
EVIL = """</script><script>alert(1)</script><img src="https://evil.example/x" onerror='alert(2)'>&amp;"""
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Elements, text outside scripts, and whether every element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)
        if name == "script":
            self.scripts.append("")

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, text: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text
        elif not (self.open and self.open[-1] == "style"):
            self.words.append(text)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def solved(*changes: str) -> tuple[Plan, Instance]:
    instance = eight(*changes)
    return solve(instance), instance


@pytest.fixture(scope="module")
def plain() -> tuple[Plan, Instance]:
    return solved()


@pytest.fixture(scope="module")
def infeasible() -> tuple[Plan, Instance]:
    return solved("service.drain=40s")


def hostile() -> tuple[Plan, Instance]:
    """The eight-card plan with a hostile name wherever a name or text may stand."""
    plan, instance = solved()
    names = ("reasoning", "a100", "h20", "rdma", "kv-pool", "qwen3-8b", "A100-SXM-80GB")

    def spoil(value: Any) -> Any:
        if isinstance(value, dict):
            return {spoil(key): spoil(item) for key, item in value.items()}
        if isinstance(value, list):
            return [spoil(item) for item in value]
        if isinstance(value, str):
            for name in names:
                value = value.replace(name, name + EVIL)
        return value

    document = spoil(instance.document())
    document.update(about=EVIL + "\u202e\ud800", name="n" + EVIL)
    document["hardware"]["groups"]["a100" + EVIL]["labels"] = {EVIL: EVIL}
    bad = Instance.model_validate(document)
    changed = spoil(plan.as_json())
    changed.update(instance="n" + EVIL, instance_document=document, warnings=[EVIL], cost=changed["cost"])
    changed["cost"]["currency"] = EVIL
    return Plan.model_validate_json(json.dumps(changed).replace("\\ud800", "")), bad


def scripts_of_ours(text: str) -> str:
    """The report without the two scripts that come with the program."""
    for path in (PLOTLY, HERE / "script.js"):
        script = path.read_text(encoding="utf-8")
        assert script in text
        text = text.replace(script, "")
    return text


# --- one file -----------------------------------------------------------------------------------------


def test_a_report_is_small_and_the_same_each_time(plain: tuple[Plan, Instance]) -> None:
    text = render(*plain)
    assert len(text.encode("utf-8")) <= LIMIT
    assert render(*plain) == text


def test_nothing_is_fetched(plain: tuple[Plan, Instance]) -> None:
    text = scripts_of_ours(render(*plain))
    reader = Reader(text)
    assert reader.open == []
    for _, attributes in reader.elements:
        for key in ("src", "href", "xlink:href", "srcset", "action", "poster", "data", "background"):
            assert (attributes.get(key) or "#").startswith(("#", "data:,"))
    assert "url(" not in text
    assert "@import" not in text
    [policy] = [a["content"] for n, a in reader.elements if n == "meta" and "http-equiv" in a]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert policy.count("'sha256-") == 2


def test_the_vendored_scripts_can_stand_in_a_page() -> None:
    for path in (PLOTLY, HERE / "script.js"):
        text = path.read_bytes().decode("utf-8").lower()
        assert "</script" not in text
        assert "<!--" not in text
        assert "\r" not in text  # a browser would change it, and its digest
    assert (PLOTLY.parent / "plotly-LICENSE").read_text().startswith("MIT License")


def test_tables_and_parts_are_told_apart_without_eyes(plain: tuple[Plan, Instance]) -> None:
    reader = Reader(render(*plain))
    names = [name for name, _ in reader.elements]
    assert names.count("caption") == names.count("table") > 8
    assert all(attributes.get("scope") in ("row", "col") for name, attributes in reader.elements if name == "th")
    identities = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    targets = [a["href"] for n, a in reader.elements if n == "a"]
    assert all(target is not None and target[1:] in identities for target in targets)
    assert {f"figure-{name}" for name in figures(*plain)} <= set(identities)


# --- what it says -------------------------------------------------------------------------------------


def test_everything_of_the_plan_is_named(plain: tuple[Plan, Instance]) -> None:
    plan, instance = plain
    text = Reader(render(plan, instance)).text
    for rows in (plan.pools, plan.resources, plan.handoffs, plan.marginal, plan.assumptions):
        assert all(row.name in text for row in rows)
    for name in (*plan.workloads, *instance.hardware.groups, *instance.hardware.links, *instance.hardware.stores):
        assert name in text
    assert all(row.scheme in text for row in plan.alternatives)
    assert all(warning in text for warning in plan.warnings)
    for words in (
        "OPTIMAL",
        "gap 0 %",
        "Run prefill on 4 x A100-SXM-80GB and decode on 4 x H20-SXM5-96GB, handing the KV over directly",
        "3.50 requests/s served of 4.55 possible; startup backlog gone in second 43 of 60.",
        "0.63 credits per 1000 qualifying requests (8.00 credits/h, all 8 GPUs paid).",
        "misses the deadline by 2.571 s",
        "+1 a100: 5.12 requests/s (+0.56)",
        "904.7 ms",
        plan.instance_sha256,
        "num_key_value_heads: 8",
    ):
        assert words in text


def test_figures_are_the_numbers_of_the_plan(plain: tuple[Plan, Instance]) -> None:
    plan, instance = plain
    made = figures(plan, instance)
    assert set(made) == {"memory", "utilisation", "backlog", "schemes"}
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    for trace in made["memory"]["data"]:
        part = trace["name"].lower()
        wanted = [getattr(pool.memory, part) / GIB for pool in plan.pools]
        assert (trace["y"], trace["x"]) == ([pool.name for pool in plan.pools], wanted)
    [bars] = made["utilisation"]["data"]
    shares = {row.name: 100.0 * row.utilisation for row in plan.resources}
    assert dict(zip(bars["y"], bars["x"], strict=True)) == shares
    binding = {row.name for row in plan.resources if row.binding}
    assert {name for name, text in zip(bars["y"], bars["text"], strict=True) if "binds" in text} == binding
    [area] = made["backlog"]["data"]
    assert list(zip(area["x"], area["y"], strict=True)) == [*curve(plan, instance), (60.0, 0.0)]
    [rates] = made["schemes"]["data"]
    others = {row.scheme: row.throughput for row in plan.alternatives}
    assert dict(zip(rates["y"], rates["x"], strict=True)) == {"this plan": plan.throughput, **others}


def test_axes_have_units(plain: tuple[Plan, Instance]) -> None:
    titles = {name: figure["layout"]["xaxis"]["title"]["text"] for name, figure in figures(*plain).items()}
    assert titles == {
        "memory": "GiB of one GPU",
        "utilisation": "% used at the stated arrivals",
        "backlog": "seconds from the start of startup",
        "schemes": "requests/s at most",
    }


def test_the_report_holds_the_figures(plain: tuple[Plan, Instance]) -> None:
    reader = Reader(render(*plain))
    assert [json.loads(text) for text in reader.scripts[:1]] == [figures(*plain)]


def test_an_infeasible_plan_has_a_report(infeasible: tuple[Plan, Instance]) -> None:
    plan, instance = infeasible
    assert plan.status == "infeasible"
    assert set(figures(plan, instance)) == {"schemes"}
    text = Reader(render(plan, instance)).text
    assert "INFEASIBLE" in text
    assert "No plan keeps every limit; this is proven." in text
    for conflict in plan.conflicts:
        assert all(limit in text for limit in conflict.limits)
    assert all(relaxation.text in text for relaxation in plan.relaxations)
    assert "deadline 40 s -> 43.21 s" in text


def test_a_stopped_plan_has_a_report(infeasible: tuple[Plan, Instance]) -> None:
    plan, instance = infeasible
    nothing = {"status": "stopped", "conflicts": [], "relaxations": [], "alternatives": [], "assumptions": []}
    stopped = plan.model_copy(update=nothing)
    assert figures(stopped, instance) == {}
    text = render(stopped, instance)
    assert "<script" not in text
    assert "Stopped before a plan was found" in Reader(text).text


def test_unknown_numbers_are_left_out(plain: tuple[Plan, Instance]) -> None:
    plan, instance = plain
    pools = [pool.model_copy(update={"memory": None}) for pool in plan.pools]
    cost = plan.cost.model_copy(update={name: None for name in type(plan.cost).model_fields if name != "currency"})
    bare = plan.model_copy(update={"pools": pools, "cost": cost, "drain": None, "marginal": [], "alternatives": []})
    assert set(figures(bare, instance)) == {"utilisation"}
    text = Reader(render(bare, instance)).text
    assert "a price that counts is missing" in text
    assert "Startup backlog" not in text


@pytest.mark.parametrize("name", ["mixed-outputs-three-groups", "output-129-mixed", "narrow-link"])
def test_other_instances_have_reports(name: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert main(["solve", str(EIGHT.parent / f"{name}.yaml"), "--plan-only", "--html", str(file)]) == 0
    assert Reader(file.read_text(encoding="utf-8")).open == []


def test_a_large_instance_stays_inside_the_limit(plain: tuple[Plan, Instance]) -> None:
    plan, instance = plain
    many = [f"{n:04}".ljust(64, "x") for n in range(600)]

    def repeated(rows: list[Any], key: str = "name") -> list[Any]:
        return [rows[0].model_copy(update={key: name}) for name in many]

    update: dict[str, Any] = {name: repeated(getattr(plan, name)) for name in ("pools", "resources", "handoffs")}
    update |= {name: repeated(getattr(plan, name)) for name in ("marginal", "assumptions")}
    update["traffic"] = repeated(plan.traffic, "link")
    update["workloads"] = dict.fromkeys(many, plan.workloads["reasoning"])
    update["instance_document"] = {**plan.instance_document, "more": dict.fromkeys(many, "<" * 4000)}
    groups = dict.fromkeys([*instance.hardware.groups, *many], instance.hardware.groups["a100"])
    link = instance.hardware.links["rdma"].model_copy(update={"connects": many})
    hardware = instance.hardware.model_copy(update={"groups": groups, "links": {"rdma": link, "more": link}})
    workloads = dict.fromkeys(many, instance.workloads["reasoning"])
    asked = {"hardware": hardware, "workloads": workloads, "about": "long " * 100_000}
    text = render(plan.model_copy(update=update), instance.model_copy(update=asked))
    assert len(text.encode("utf-8")) <= LIMIT
    assert f"{600 - MOST_ROWS:,} more rows" in text
    assert "more characters are in the plan as JSON" in text
    assert "groups, links or stores are not drawn" in text


# --- hostile names ------------------------------------------------------------------------------------


def test_hostile_names_stay_text() -> None:
    text = scripts_of_ours(render(*hostile()))
    reader = Reader(text)
    assert reader.open == []
    assert "img" not in [name for name, _ in reader.elements]
    assert len(reader.scripts) == 3
    assert not [key for _, attributes in reader.elements for key in attributes if key.startswith("on")]
    assert "alert(1)" in reader.text
    assert "https://evil.example" in reader.text
    assert "\u202e" not in text
    assert "alert" not in "".join(reader.scripts[1:])
    embedded = json.loads(reader.scripts[0])
    assert any("alert(1)" in name for name in embedded["utilisation"]["data"][0]["y"])
    for figure in embedded.values():  # plotly reads tags in these
        layout = figure["layout"]
        shown = [*layout["yaxis"].get("ticktext", []), *(note["text"] for note in layout.get("annotations", []))]
        for trace in figure["data"]:
            shown += [*trace["hovertext"], *trace.get("text", []), trace.get("name", "")]
        assert not [text for text in shown if re.search(r"<(?!br>)", text)]


@pytest.mark.parametrize("text", ["<b>", "a & b", '"', "'", "</script>", "<!--"])
def test_text_is_escaped_once(text: str) -> None:
    escaped = escape(text)
    assert not set("<>\"'") & set(escaped)
    assert escape(escaped) is escaped
    assert Reader(tag("p", text)).words == [text]
    assert Reader(tag("p", "", title=text)).elements == [("p", {"title": text})]
    assert Reader(table(text, [text], [[text]])).words == [text] * 3
    assert not set("<>&") & set(data({text: [text]}))
    assert json.loads(data({text: [text]})) == {text: [text]}


def test_what_utf8_has_not_is_written_as_an_escape() -> None:
    assert escape("a\ud800\u202eb\x00\nc") == "a\\ud800\\u202eb\\x00\nc"


# --- the command --------------------------------------------------------------------------------------


def test_solve_writes_the_report_and_prints_as_ever(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, plan = tmp_path / "report.html", tmp_path / "plan.json"
    assert main(["solve", str(EIGHT), "--plan-only", "--json", "--html", str(file), "--out", str(plan)]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["status"] == "optimal"
    assert plan.read_text() == printed
    again = Plan.model_validate_json(printed)
    assert file.read_text(encoding="utf-8") == render(again, eight())
    assert sorted(tmp_path.iterdir()) == [plan, file]
    assert main(["solve", str(EIGHT), "--set", "service.drain=40s", "--plan-only", "--html", str(file)]) == 3
    assert "INFEASIBLE" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["no/report.html", "", ".", "a\0b"])
def test_a_report_that_cannot_be_written_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["solve", str(EIGHT), "--plan-only", "--json", "--html", name]) == 2
    [problem] = json.loads(capsys.readouterr().out)["error"]["problems"]
    assert problem["path"] == "--html"
    assert "cannot be written" in problem["message"]
    assert list(tmp_path.iterdir()) == []


def test_a_solve_without_a_report_does_not_load_it() -> None:
    program = (
        "import sys; from api.cli import main; main(sys.argv[1:]); print([m for m in sys.modules if 'report' in m])"
    )
    command = [sys.executable, "-c", program, "solve", str(EIGHT), "--plan-only"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert not re.search(r"api\.report", done.stdout.splitlines()[-1])
