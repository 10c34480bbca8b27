"""Bad instances: every problem at once, each with its place, line, value and what would be accepted."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from models import files, later
from models.errors import BadInput, Problem
from models.instance import Instance
from models.load import build, load
from tests.instances import EIGHT, document, eight, from_document


def refused(data: dict[str, Any]) -> list[Problem]:
    with pytest.raises(BadInput) as caught:
        from_document(data)
    return list(caught.value.problems)


def change(path: str, value: object) -> dict[str, Any]:
    """The eight-card document with one value set; `None` as value removes the key."""
    data = document()
    *parents, last = path.split(".")
    here = data
    for key in parents:
        here = here[key]
    if value is None:
        del here[last]
    else:
        here[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("workloads.reasoning.rate", "25 GB/s", "is a byte rate"),
        ("workloads.reasoning.rate", 3.5, "has no unit"),
        ("workloads.reasoning.rate", "0/s", "too small"),
        ("workloads.reasoning.rate", "-1/s", "too small"),
        ("workloads.reasoning.rate", "nan/s", "not"),
        ("workloads.reasoning.rate", "1e400/s", "not a finite number"),
        ("workloads.reasoning.rate", ["3.5/s"], "not a quantity"),
        ("workloads.reasoning.rate", None, "missing"),
        ("workloads.reasoning.input", 0, "too small"),
        ("workloads.reasoning.input", "many", "not a whole number"),
        ("workloads.reasoning.input", 8192.5, "not a whole number"),
        ("workloads.reasoning.input", float("nan"), "not a whole number"),
        ("workloads.reasoning.output", True, "not a whole number"),
        ("workloads.reasoning.cached", 8192, "not less than the input"),
        ("workloads.reasoning.cached", -1, "greater than or equal to 0"),
        ("workloads.reasoning.batch", 0, "greater than or equal to 1"),
        ("workloads.reasoning.batch", "all", "max"),
        ("workloads.reasoning.qualifying", "120 %", "too large"),
        ("workloads.reasoning.qualifying", 0, "too small"),
        ("workloads.reasoning.model", "qwen3-8", 'did you mean "qwen3-8b"'),
        ("workloads", {}, "at least 1 item"),
        ("workloads.reasoning.longest", {"input": 100, "output": 2000}, "shorter than the input"),
        ("workloads.reasoning.allow", ["a10"], "no group of this name"),
        ("workloads.reasoning.allow", [], "at least 1 item"),
        ("workloads.reasoning.deny", ["a100", "h20"], "leaves no group"),
        ("models", {}, "at least 1 item"),
        ("models.qwen3-8b.catalog", "Qwen3-8", 'did you mean "Qwen3-8B"'),
        ("models.qwen3-8b.weights", "int3", "'bf16', 'fp8' or 'int4'"),
        ("models.qwen3-8b.num_key_value_heads", 5, "does not divide"),
        ("models.qwen3-8b.handoff_state", "DeepSeek-V4", 'did you mean "DeepSeek-V3"'),
        ("models.qwen3-8b.query_work", "added", "needs a handoff_state"),
        ("hardware.groups", {}, "at least 1 item"),
        ("hardware.groups.a100.accelerator", "A100-SXM-80G", 'did you mean "A100-SXM-80GB"'),
        ("hardware.groups.a100.servers", -1, "0 or more, or 'unlimited'"),
        ("hardware.groups.a100.servers", 10**12, "10000000 or less, or 'unlimited'"),
        ("hardware.groups.a100.servers", "endless", "'unlimited'"),
        ("hardware.groups.a100.price", "3.5 GB/h", "is a byte rate"),
        ("hardware.groups.a100.price", "-1/h", "too small"),
        ("hardware.groups.a100.price", None, "the objective is a cost"),
        ("hardware.groups.a100.usable_memory", 0, "too small"),
        ("hardware.groups.a100.server", "HGX-A100", "not in the catalog of servers"),
        ("hardware.links.rdma.bandwidth", "3.5/s", "is a plain rate"),
        ("hardware.links.rdma.bandwidth", "200 Gb/s", "Gbit/s or GB/s"),
        ("hardware.links.rdma.bandwidth", "0 B/s", "too small"),
        ("hardware.links.rdma.bandwidth", 25, "has no unit"),
        ("hardware.links.rdma.connects", ["a100", "h200"], 'did you mean "h20"'),
        ("hardware.links.rdma.connects", ["a100", "a100"], "named twice"),
        ("hardware.links.rdma.connects", [], "at least 1 item"),
        ("hardware.links.rdma.duplex", "half", "'shared' or 'per-direction'"),
        ("hardware.links.rdma.startup", "5", "has no unit"),
        ("hardware.stores.kv-pool.on", "roce", "no link of this name"),
        ("hardware.stores.kv-pool.capacity", "64 GiBi", "unit"),
        ("hardware.efficiency.compute", 1.5, "too large"),
        ("hardware.efficiency.compute", 0.0, "too small"),
        ("service.startup", "-10 s", "too small"),
        ("service.drain", "0 s", "too small"),
        ("service.drain", "60", "has no unit"),
        ("schemes.allow", [], "at least 1 item"),
        ("schemes.allow", ["replica"], "'replicas'"),
        ("schemes.mix", "maybe", "boolean"),
        ("objective", "latency", "'effective_cost'"),
        ("schema", 2, "1"),
        ("name", 7, "string"),
        ("limits", {"pools": [{"stage": "prefill"}]}, "bounds nothing"),
        ("limits", {"pools": [{"at_least": 3, "at_most": 1}]}, "more than at_most"),
        ("limits", {"pools": [{"exactly": 3, "at_most": 1}]}, "stands beside another bound"),
        ("limits", {"pools": [{"group": "b200", "exactly": 3}]}, "no group of this name"),
    ],
)
def test_one_problem_is_said_with_its_place(path: str, value: object, words: str) -> None:
    problems = refused(change(path, value))
    assert any(words in f"{p.message}; {p.accepted}" for p in problems), problems
    assert any(problem.path.startswith(path.split(".")[0]) for problem in problems)
    assert all(problem.line for problem in problems)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("workloads.reasoning.targets", {"e2e": "20 s"}, "not supported yet"),
        ("hardware.groups.a100.at", "north", "not supported yet"),
        ("hardware.links.rdma.within", [], "not supported yet"),
        ("limits", {"budget": {"total": 1}}, "not supported yet"),
        ("limits", {"spare": {"units": 1, "servers": 1}}, "not supported yet"),
        ("models.qwen3-8b.adapters", ["a"], "not supported yet"),
    ],
)
def test_what_is_known_but_not_built_is_refused_as_such(path: str, value: object, message: str) -> None:
    assert message in [problem.message for problem in refused(change(path, value))]


def test_every_later_key_is_refused_as_such() -> None:
    places = {
        "hardware.groups.*": "hardware.groups.a100",
        "hardware.links.*": "hardware.links.rdma",
        "hardware.stores.*": "hardware.stores.kv-pool",
        "models.*": "models.qwen3-8b",
        "workloads.*": "workloads.reasoning",
        "workloads.*.targets": "workloads.reasoning.targets",
    }
    for pattern, keys in later.KEYS.items():
        for key in keys:
            path = ".".join(part for part in (places.get(pattern, pattern), key) if part)
            data = document()
            here: Any = data
            for part in path.split(".")[:-1]:
                here = here.setdefault(part, {})
            here[key] = 1
            assert "not supported yet" in [problem.message for problem in refused(data)], path


@pytest.mark.parametrize(
    ("path", "guess"),
    [
        ("workload", 'did you mean "workloads"'),
        ("hardware.group", 'did you mean "groups"'),
        ("hardware.groups.a100.server_count", "unknown key"),
        ("hardware.links.rdma.bandwith", 'did you mean "bandwidth"'),
        ("workloads.reasoning.ratio", 'did you mean "rate"'),
        ("service.drains", 'did you mean "drain"'),
    ],
)
def test_unknown_keys_get_the_nearest_known_one(path: str, guess: str) -> None:
    problem = next(p for p in refused(change(path, 1)) if p.path == path)
    assert problem.message.startswith("unknown key")
    assert guess in problem.message
    assert problem.accepted


def test_all_problems_of_a_file_come_at_once_in_its_order() -> None:
    text = textwrap.dedent(
        """\
        schema: 1
        name: many
        hardware:
          groups:
            a100: {accelerator: A100-SXM-81GB, servers: -1, per_server: 4, price: 1/h}
          links:
            rdma: {connects: [a100, h20], bandwidth: 25}
        models:
          m: {catalog: Qwen3-8B, layers: 3}
        workloads:
          chat:
            model: n
            rate: 25 GB/s
            input: -5
            output: 10
        """
    )
    with pytest.raises(BadInput) as caught:
        build(files.parse(text))
    places = [(problem.line, problem.path) for problem in caught.value.problems]
    assert places == sorted(places, key=lambda place: place[0] or 0)
    assert {path for _, path in places} == {
        "hardware.groups.a100.accelerator",
        "hardware.groups.a100.servers",
        "hardware.links.rdma.connects[1]",
        "hardware.links.rdma.bandwidth",
        "models.m.layers",
        "workloads.chat.model",
        "workloads.chat.rate",
        "workloads.chat.input",
    }
    assert {path: line for line, path in places}["workloads.chat.rate"] == 13


def test_a_yaml_bomb_and_a_ten_megabyte_file_are_one_problem(tmp_path: Path) -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(8)
    )
    large = tmp_path / "large.yaml"
    large.write_text("about: " + "x" * 10_000_000)
    with pytest.raises(BadInput, match="more than 100,000 values"):
        files.parse(bomb)
    with pytest.raises(BadInput, match="the limit is"):
        load(large)


def test_names_with_dots_are_reached_by_set_and_found_in_lines() -> None:
    text = EIGHT.read_text().replace("qwen3-8b", "qwen2.5")
    instance = build(files.parse(text), ["models.qwen2.5.kv=fp8", "workloads.reasoning.rate=2/s"])
    assert instance.models["qwen2.5"].kv == "fp8"
    with pytest.raises(BadInput) as caught:
        build(files.parse(text.replace("kv: bf16", "kv: bf17")))
    problem = caught.value.problems[0]
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "qwen2.5: {" in row)
    assert (problem.path, problem.line) == ("models.qwen2.5.kv", line)


def test_a_catalog_entry_may_be_changed_in_place() -> None:
    data = change("hardware.groups.a100.accelerator", {"catalog": "A100-SXM-80GB", "memory": "40 GB"})
    data["models"]["qwen3-8b"]["num_hidden_layers"] = 30
    instance = from_document(data)
    card = instance.hardware.groups["a100"].accelerator
    assert (card.memory, card.bandwidth) == (40e9, 2039e9)
    assert instance.models["qwen3-8b"].num_hidden_layers == 30


def test_a_server_gives_its_accelerator_and_a_link_its_numbers() -> None:
    data = document()
    data["hardware"]["groups"]["a100"] = {"server": "DGX-A100-80GB", "servers": 1, "price": "1/h"}
    data["hardware"]["links"]["rdma"] = {"catalog": "NIC-200G", "connects": ["a100", "h20"]}
    instance = from_document(data)
    group, link = instance.hardware.groups["a100"], instance.hardware.links["rdma"]
    assert (group.cards, group.accelerator.name, group.usable) == (8, "A100-SXM-80GB", 0.9)
    assert (link.bandwidth, link.duplex, link.startup) == (25e9, "per-direction", 5e-6)
    assert link.link_efficiency < 1.0


def test_the_resolved_document_reads_back_as_the_same_instance() -> None:
    instance = eight()
    again = build(files.parse(files.dump(instance.document())))
    assert again == instance
    assert again.sha256() == instance.sha256()
    assert isinstance(again, Instance)


def test_full_is_another_word_for_per_direction() -> None:
    assert from_document(change("hardware.links.rdma.duplex", "full")).hardware.links["rdma"].duplex == "per-direction"


def test_more_cards_than_are_counted_exactly_are_refused() -> None:
    data = change("hardware.groups.a100.servers", 10**7)
    data["hardware"]["groups"]["a100"]["per_server"] = 11
    assert [problem.message for problem in refused(data)] == ["110,000,000 GPUs"]


@pytest.mark.parametrize(
    ("path", "value", "accepted"),
    [
        ("workloads.reasoning.batch", 0, "1 or more, or 'max'"),
        ("workloads.reasoning.batch", 10**7, "1000000 or less, or 'max'"),
        ("workloads.reasoning.batch", "all", "a whole number, or 'max'"),
        ("workloads.reasoning.cached", -1, "0 or more"),
        ("workloads.reasoning.deny", "a100", "a list, e.g. [one, two]"),
        ("hardware.groups.a100.labels", [1], "keys, each with a value"),
        ("schemes.mix", "maybe", "true or false"),
        ("name", 7, "a string, in quotes where it reads as something else"),
        ("models.qwen3-8b.kv", "int3", "'bf16' or 'fp8'"),
    ],
)
def test_a_wrong_value_is_one_problem_that_says_what_would_be_right(path: str, value: object, accepted: str) -> None:
    problems = refused(change(path, value))
    assert [(p.path, p.accepted) for p in problems] == [(path, accepted)]


PLANS = [path for path in sorted(EIGHT.parents[1].glob("*/*.yaml")) if path.parent.name != "catalog"]


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_instance_reads_back_from_its_resolved_document(path: Path) -> None:
    instance = load(path)
    assert build(files.parse(files.dump(instance.document()))).sha256() == instance.sha256()
