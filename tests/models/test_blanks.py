"""Blanks: every `???` of a file is one problem that says what fits there."""

from collections.abc import Iterator
from typing import Any

import pytest

from models import blanks, files
from models.errors import BadInput, Problem
from models.load import build
from tests.instances import document


def found(text: str, *changes: str) -> list[Problem]:
    with pytest.raises(BadInput) as caught:
        build(files.parse(text), changes)
    return list(caught.value.problems)


BLANK_FILE = """\
schema: 1
name: ???
hardware:
  groups:
    one:
      accelerator: ???
      servers: ???
      per_server: ???
      price: ???
    two:
      accelerator:
        name: mine
        memory: ???
        bandwidth: ???
        compute:
          bf16: ???
      servers: 1
      per_server: 1
      price: 1/h
      usable_memory: ???
      startup: ???
  links:
    net:
      connects:
        - one
        - ???
      bandwidth: ???
      per: ???
models:
  m:
    catalog: ???
  shape: ???
workloads:
  chat:
    model: ???
    rate: ???
    input: ???
    output: ???
    batch: ???
service:
  drain: ???
schemes: ???
billing:
  pay: ???
objective: ???
"""


def test_every_blank_is_one_problem_with_its_line_and_what_fits() -> None:
    problems = found(BLANK_FILE)
    lines = [number for number, line in enumerate(BLANK_FILE.splitlines(), start=1) if "???" in line]
    assert [problem.line for problem in problems] == lines
    assert {problem.message for problem in problems} == {"left blank"}
    assert {problem.value for problem in problems} == {"???"}
    fits = {problem.path: problem.accepted or "" for problem in problems}
    for path, words in {
        "name": "of your own",
        "hardware.groups.one.accelerator": "H100-SXM-80GB",
        "hardware.groups.one.servers": "whole number",
        "hardware.groups.one.price": "a price per time, e.g. 2.5 USD/h",
        "hardware.groups.two.accelerator.memory": "a size in bytes",
        "hardware.groups.two.accelerator.bandwidth": "a byte rate",
        "hardware.groups.two.accelerator.compute.bf16": "312 TFLOP/s",
        "hardware.groups.two.usable_memory": "a share",
        "hardware.groups.two.startup": "a time",
        "hardware.links.net.connects[1]": "one of one, two",
        "hardware.links.net.bandwidth": "200 Gbit/s",
        "hardware.links.net.per": "server",
        "models.m.catalog": "Qwen3-8B",
        "models.shape": "num_hidden_layers",
        "workloads.chat.model": "one of m, shape",
        "workloads.chat.rate": "3.5/s",
        "workloads.chat.input": "whole number",
        "workloads.chat.batch": "max",
        "service.drain": "a time",
        "schemes": "allow",
        "billing.pay": "used",
        "objective": "throughput",
    }.items():
        assert words in fits[path], path


def leaves(data: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    else:
        yield path


@pytest.mark.parametrize("path", list(leaves(document())), ids=".".join)
def test_any_value_may_be_blank(path: tuple[str, ...]) -> None:
    data = document()
    here = data
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = "???"
    mine = [problem for problem in found(files.dump(data)) if problem.path == ".".join(path)]
    assert [problem.message for problem in mine] == ["left blank"]
    assert mine[0].accepted


def test_other_problems_stand_beside_blanks() -> None:
    problems = found(BLANK_FILE, "workloads.chat.input=-3", "hardware.groups.one.colour=red")
    messages = {problem.path: problem.message for problem in problems}
    assert messages["workloads.chat.input"] == "is too small"
    assert messages["hardware.groups.one.colour"] == "unknown key"
    assert messages["workloads.chat.output"] == "left blank"


def test_a_blank_under_an_unknown_key_is_an_unknown_key() -> None:
    problems = found(BLANK_FILE, "hardware.groups.one.colour=???")
    assert [problem.message for problem in problems if problem.path.endswith("colour")] == ["unknown key"]


def test_a_change_fills_a_blank_and_may_be_one() -> None:
    paths = [problem.path for problem in found(BLANK_FILE, "workloads.chat.rate=5/s", "about=???")]
    assert "workloads.chat.rate" not in paths
    assert "about" in paths


@pytest.mark.parametrize("text", ['"???"', "'???'", "???", '" ??? "'])
def test_quotes_and_spaces_do_not_matter(text: str) -> None:
    problems = found(f"schema: {text}\n")
    assert [problem.message for problem in problems if problem.path == "schema"] == ["left blank"]


def test_a_blank_inside_braces_needs_quotes_and_says_so() -> None:
    [problem] = found("schema: 1\nhardware: {groups: {a: {price: ???}}}\n")
    assert problem.line == 2
    assert "in quotes" in (problem.accepted or "")
    [problem] = found("schema: {\n")
    assert problem.accepted is None


def test_question_marks_in_other_text_are_text() -> None:
    assert not list(blanks.places({"about": "what fits ???", "name": "??"}))
    assert list(blanks.places({"a": [{"b": "???"}, "???"]})) == ["a[0].b", "a[1]"]
