"""`inferplan new`: from nodes, a model and what arrives to a file that `inferplan check` understands."""

import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from models import catalog, files
from models.load import build
from tests.api.kubernetes import COUNT, H100, L40S, MEMORY, PRODUCT, listed, node

DEMAND = ("--rate", "5/s", "--input", "2000", "--output", "300")
MODEL = ("--model", "Qwen3-8B")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Any], Path]:
    def writing(document: Any) -> Path:
        path = tmp_path / "nodes.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return writing


Written = Callable[[Any], Path]


def made(run: Run, *words: str | Path) -> dict[str, Any]:
    """What `--json` says of a file that was written."""
    code, out, err = run("new", *words, "--json")
    assert code == 0, out + err
    assert all(note in err for note in json.loads(out)["notes"])
    document: dict[str, Any] = json.loads(out)
    assert set(document) == {"file", "instance", "blanks", "notes"}
    return document


def groups(run: Run, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = made(run, "--nodes", path, *MODEL, *DEMAND)["instance"]["hardware"]["groups"]
    return found


def problems(run: Run, *words: str | Path) -> dict[str, dict[str, Any]]:
    """The problems of bad input by their place."""
    code, out, err = run("new", *words, "--json")
    assert (code, err) == (2, ""), out + err
    found = json.loads(out)["error"]["problems"]
    assert all(set(problem) == {"path", "line", "value", "message", "accepted"} for problem in found)
    assert len({problem["path"] for problem in found}) == len(found)
    return {problem["path"]: problem for problem in found}


# --- the file ---------------------------------------------------------------------------------------


def test_the_file_can_be_checked_once_its_blanks_are_filled(run: Run, written: Written, tmp_path: Path) -> None:
    nodes = written(listed(node("a", H100, 8), node("b", H100, 8), node("c", L40S, 4)))
    target = tmp_path / "mine.yaml"
    code, out, err = run("new", "--nodes", nodes, *MODEL, *DEMAND, "-o", target)
    assert (code, err) == (0, "")
    assert "3 places left blank" in out
    assert f"inferplan check {target}" in out
    code, out, err = run("check", target)
    assert code == 2
    assert err.count("left blank") == 3
    fills = ("hardware.groups.h100.price=2.5/h", "hardware.groups.l40s.price=0.8/h")
    network = "hardware.links.network.bandwidth=100 Gbit/s"
    code, out, err = run("check", target, *(f"--set={change}" for change in (*fills, network)))
    assert (code, err) == (0, "")
    assert "mine: valid" in out
    assert "h100: 2 servers x 8 H100-SXM-80GB" in out
    assert run("solve", target, "--plan-only", *(f"--set={change}" for change in (*fills, network)))[0] == 0


def test_prices_may_be_deleted_for_an_objective_without_cost(run: Run, written: Written, tmp_path: Path) -> None:
    nodes = written(listed(node("a", H100, 8)))
    code, out, _ = run("new", "--nodes", nodes, *MODEL, *DEMAND)
    assert code == 0
    text = "\n".join(line for line in out.splitlines() if "price: ???" not in line)
    text = text.replace("# objective: throughput", "objective: throughput")
    assert "price" not in build(files.parse(text)).document()["hardware"]["groups"]["h100"]


def test_what_is_commented_out_reads_when_the_signs_are_taken_away(run: Run, written: Written) -> None:
    code, out, _ = run("new", "--nodes", written(listed(node("a", H100, 8))), *MODEL, *DEMAND)
    assert code == 0
    keys = r"^(  )?# ( *(?:links|network|connects|bandwidth|per|service):)"
    opened = re.sub(keys, lambda found: (found[1] or "") + found[2], out, flags=re.MULTILINE)
    opened = opened.replace('"???"', "25 GB/s").replace("???", "1/h")
    instance = build(files.parse(opened))
    assert instance.hardware.links["network"].bandwidth == 25e9
    assert instance.service.drain == 600.0


def test_json_names_the_blanks_with_their_lines(run: Run, written: Written) -> None:
    nodes = written(listed(node("a", H100, 8), node("b", L40S, 4)))
    words = ("--nodes", nodes, *MODEL, *DEMAND)
    document = made(run, *words)
    lines = run("new", *words)[1].splitlines()
    assert document["file"] is None
    assert [blank["path"] for blank in document["blanks"]] == [
        "hardware.groups.h100.price",
        "hardware.groups.l40s.price",
        "hardware.links.network.bandwidth",
    ]
    for blank in document["blanks"]:
        assert "???" in lines[blank["line"] - 1]
        assert "e.g." in blank["accepted"]
    assert document["instance"] == files.parse("\n".join(lines)).data
    assert document["instance"]["hardware"]["links"]["network"]["connects"] == ["h100", "l40s"]


def test_without_nodes_the_groups_are_blank(run: Run) -> None:
    document = made(run, *MODEL, *DEMAND)
    assert document["instance"]["hardware"]["groups"] == {
        "gpus": {"accelerator": "???", "servers": "???", "per_server": "???", "price": "???"}
    }
    assert len(document["blanks"]) == 4
    assert "links" not in document["instance"]["hardware"]


def test_an_existing_file_stays_unless_forced(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "mine.yaml"
    target.write_text("precious")
    assert "the file exists" in problems(run, *MODEL, *DEMAND, "-o", target)["-o"]["message"]
    assert target.read_text() == "precious"
    assert made(run, *MODEL, *DEMAND, "-o", target, "--force")["file"] == str(target)
    assert target.read_text().startswith("# Written by")
    assert "-o" in problems(run, *MODEL, *DEMAND, "-o", tmp_path / "no" / "where.yaml")
    assert "-o" in problems(run, *MODEL, *DEMAND, "-o", tmp_path)


@pytest.mark.parametrize(
    ("words", "name"),
    [((), "my-cluster"), (("--name", "prod: eu #1"), "prod: eu #1"), (("-o", "some.plan.yaml"), "some.plan")],
)
def test_the_instance_has_a_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert made(run, *MODEL, *DEMAND, *words)["instance"]["name"] == name


# --- nodes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("product", "memory", "accelerator"),
    [
        ("NVIDIA-H200", "143771", "H200-SXM-141GB"),
        ("NVIDIA-H100-80GB-HBM3", "81559", "H100-SXM-80GB"),
        ("NVIDIA-A100-SXM4-80GB", "81920", "A100-SXM-80GB"),
        ("A100-SXM4-80GB", "81251", "A100-SXM-80GB"),
        ("NVIDIA-A100-PCIE-40GB", "40960", "A100-PCIe-40GB"),
        ("NVIDIA-H20", "97871", "H20-SXM5-96GB"),
        ("NVIDIA-L40S", "46068", "L40S"),
        ("NVIDIA-B200", "183359", "B200"),
        ("NVIDIA-L40S-SHARED", "46068", "L40S"),
    ],
)
def test_products_of_the_catalog(run: Run, written: Written, product: str, memory: str, accelerator: str) -> None:
    labels = {PRODUCT: product, COUNT: "8", MEMORY: memory}
    [group] = groups(run, written(listed(node("a", labels, 8)))).values()
    assert group["accelerator"] == accelerator
    assert accelerator in catalog.names("accelerators")
    assert (group["servers"], group["per_server"], group["price"]) == (1, 8, "???")
    assert group["labels"] == {PRODUCT: product, COUNT: "8"}


@pytest.mark.parametrize(
    ("labels", "resource", "accelerator"),
    [
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "amd.com/gpu", "MI300X"),
        ({"amd.com/gpu.device-id": "74a1"}, "amd.com/gpu", "MI300X"),
        ({"beta.amd.com/gpu.device-id.74a1": "8"}, "amd.com/gpu", "MI300X"),
        ({"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, "nvidia.com/gpu", "H100-SXM-80GB"),
        ({"node.kubernetes.io/instance-type": "p5.48xlarge"}, "nvidia.com/gpu", "H100-SXM-80GB"),
        ({"beta.kubernetes.io/instance-type": "p5en.48xlarge"}, "nvidia.com/gpu", "H200-SXM-141GB"),
        ({"node.kubernetes.io/instance-type": "g6e.12xlarge"}, "nvidia.com/gpu", "L40S"),
        ({"node.kubernetes.io/instance-type": "Standard_ND96isr_H100_v5"}, "nvidia.com/gpu", "H100-SXM-80GB"),
    ],
)
def test_other_labels_that_name_a_gpu(
    run: Run, written: Written, labels: dict[str, str], resource: str, accelerator: str
) -> None:
    [group] = groups(run, written(listed(node("a", labels, 8, resource=resource)))).values()
    assert group["accelerator"] == accelerator
    assert group["per_server"] == 8


@pytest.mark.parametrize(
    ("product", "memory", "name"),
    [
        ("NVIDIA-A100-SXM4-40GB", "40960", "a100-sxm4-40gb"),
        ("NVIDIA-H100-PCIe", "81559", "h100-pcie"),
        ("NVIDIA-H200-NVL", "143771", "h200-nvl"),
        ("NVIDIA-H20", "143771", "h20"),  # another memory than the one in the catalog
        ("Tesla-T4", "15360", "tesla-t4"),
    ],
)
def test_a_product_that_is_not_in_the_catalog_is_described(
    run: Run, written: Written, product: str, memory: str, name: str
) -> None:
    nodes = written(listed(node("a", {PRODUCT: product, MEMORY: memory}, 8)))
    found = groups(run, nodes)
    assert list(found) == [name]
    assert found[name]["accelerator"] == {
        "name": product,
        "memory": f"{memory} MiB",
        "bandwidth": "???",
        "compute": {"bf16": "???"},
    }
    if product == "NVIDIA-H20":
        assert "is not that of H20-SXM5-96GB" in run("new", "--nodes", nodes, *MODEL, *DEMAND)[1]


def test_gpus_that_nothing_names(run: Run, written: Written) -> None:
    assert groups(run, written(listed(node("a", {}, 2))))["gpu"]["accelerator"] == "???"
    machine = {"node.kubernetes.io/instance-type": "own.metal"}
    described = groups(run, written(listed(node("a", machine, 2))))["own.metal"]["accelerator"]
    assert described["name"] == "own.metal"
    assert described["memory"] == "???"


def test_nodes_are_grouped_by_product_and_number(run: Run, written: Written) -> None:
    nodes = [node("a", H100, 8), node("b", L40S, 4), node("c", H100, 8), node("d", {**H100, COUNT: "4"}, 4)]
    found = groups(run, written(listed(*nodes)))
    assert {name: (group["servers"], group["per_server"]) for name, group in found.items()} == {
        "h100": (2, 8),
        "l40s": (1, 4),
        "h100-x4": (1, 4),
    }


def test_only_labels_that_all_nodes_of_a_group_share_are_kept(run: Run, written: Written) -> None:
    one = node("a", {**H100, "node.kubernetes.io/instance-type": "p5.48xlarge"}, 8)
    two = node("b", {**H100, "node.kubernetes.io/instance-type": "p5.4xlarge"}, 8)
    assert groups(run, written(listed(one, two)))["h100"]["labels"] == {PRODUCT: H100[PRODUCT], COUNT: "8"}


def test_nodes_that_no_plan_can_use_are_named_with_the_reason(run: Run, written: Written) -> None:
    away = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    split = {**L40S, PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}
    nodes = listed(
        node("good", H100, 8),
        *(node(f"cpu-{number}") for number in range(9)),
        node("away", H100, 8, status=away),
        node("cordoned", H100, 8, spec={"unschedulable": True}),
        node("mig-single", split, 8),
        node("mig-mixed", H100, 0, status={"allocatable": {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}}),
        node("amd-split", {"amd.com/gpu.device-id": "74a1"}, 8, resource="amd.com/cpx_nps4"),
        node("gke-split", {"cloud.google.com/gke-gpu-partition-size": "1g.5gb"}, 8),
        node("broken", H100, 0),
        kind="NodeList",
    )
    path = written(nodes)
    assert {name: group["servers"] for name, group in groups(run, path).items()} == {"h100": 1}
    text, notes = run("new", "--nodes", path, *MODEL, *DEMAND)[1:]
    assert "1 of 17 nodes" in text
    for line in (
        "without GPUs: cpu-0, cpu-1, cpu-2, cpu-3 and 5 more.",
        "not ready: away.",
        "cordoned: cordoned.",
        "with split GPUs (MIG or partitions): mig-single, mig-mixed, amd-split, gke-split.",
        "whose GPUs cannot be allocated: broken.",
    ):
        assert f"# Left out, {line}" in text
        assert line in notes


def test_shared_gpus_count_whole(run: Run, written: Written) -> None:
    labels = {PRODUCT: "NVIDIA-L40S-SHARED", COUNT: "4", "nvidia.com/gpu.replicas": "10"}
    nodes = written(listed(node("a", L40S, 4), node("b", labels, 40)))
    assert {name: group["per_server"] for name, group in groups(run, nodes).items()} == {"l40s": 4, "l40s-x4": 4}
    assert "shared by several containers" in run("new", "--nodes", nodes, *MODEL, *DEMAND)[2]
    del labels[COUNT]
    assert groups(run, written(listed(node("b", labels, 40))))["l40s"]["per_server"] == 4
    gke = {"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"}
    gke["cloud.google.com/gke-max-shared-clients-per-gpu"] = "2"
    assert groups(run, written(listed(node("b", gke, 16))))["h200"]["per_server"] == 8


def test_a_plugin_without_gpus_beside_the_right_one(run: Run, written: Written) -> None:
    both = {"allocatable": {"amd.com/gpu": "0", "nvidia.com/gpu": "8"}}
    assert groups(run, written(listed(node("a", H100, status=both))))["h100"]["per_server"] == 8


def test_what_can_be_allocated_counts(run: Run, written: Written) -> None:
    seven = node("a", H100, 8, status={"allocatable": {"nvidia.com/gpu": 7}})
    nodes = written(listed(seven))
    assert groups(run, nodes)["h100"]["per_server"] == 7
    assert "says 8, 7 can be allocated" in run("new", "--nodes", nodes, *MODEL, *DEMAND)[1]
    nodes = written(listed(node("a", H100)))
    assert groups(run, nodes)["h100"]["per_server"] == 8
    assert "the number is that of the label" in run("new", "--nodes", nodes, *MODEL, *DEMAND)[1]


def test_taints_are_told_apart_from_the_usual_one(run: Run, written: Written) -> None:
    usual = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    own = {"key": "team", "value": "a", "effect": "NoSchedule"}
    nodes = written(listed(node("a", H100, 8, spec={"taints": [usual, own]}), node("b", H100, 8)))
    text = run("new", "--nodes", nodes, *MODEL, *DEMAND)[1]
    assert "# Taint team=a:NoSchedule (a)." in text
    assert "present" not in text


def test_one_node_and_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch, written: Written) -> None:
    assert groups(run, written(node("a", H100, 8)))["h100"]["servers"] == 1
    text = json.dumps(listed(node("a", H100, 8))).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert "From standard input: 1 of 1 nodes" in run("new", "--nodes", "-", *MODEL, *DEMAND)[1]


@pytest.mark.parametrize(
    ("document", "place", "message"),
    [
        ("", "--nodes", "not valid JSON"),
        ("{", "--nodes", "not valid JSON"),
        ('{"kind": "List", "items": NaN}', "--nodes", "NaN is not a number"),
        ('{"kind": "List", "items": [-Infinity]}', "--nodes", "-Infinity is not a number"),
        ('{"items": ' + "9" * 5000 + "}", "--nodes", "too many digits"),
        ("[" * 100_000, "--nodes", "nested too deep"),
        ("[]", "--nodes", "not an object"),
        ("\ud800", "--nodes", "not UTF-8"),
        ({}, "nodes.json kind", "not a list of nodes"),
        ({"kind": "PodList", "items": []}, "nodes.json kind", "not a list of nodes"),
        ({"kind": ["List"]}, "nodes.json kind", "not a list of nodes"),
        ({"kind": "List"}, "nodes.json items", "missing"),
        ({"kind": "List", "items": {}}, "nodes.json items", "not a list"),
        (listed(), "nodes.json items", "no node with GPUs"),
        (listed(node("a")), "nodes.json items", "no node with GPUs"),
        (listed({"kind": "Pod"}), "nodes.json items[0].kind", "not a node"),
        (listed(3), "nodes.json items[0]", "not an object"),
        (listed({}), "nodes.json items[0].metadata.name", "missing"),
        (listed(node("a"), node("a")), "nodes.json items[1].metadata.name", "stands above"),
        (listed({"metadata": 7}), "nodes.json items[0].metadata", "not an object"),
        (listed({"metadata": {"name": "a", "labels": ["x"]}}), "nodes.json items[0].metadata.labels", "not an object"),
        (listed(node("a", H100, 8, spec={"taints": [1]})), "nodes.json items[0].spec.taints", "not a list of objects"),
        (listed(node("a", H100, 8, status={"conditions": {}})), "nodes.json items[0].status.conditions", "not a list"),
        (listed(node("a", {**H100, COUNT: "-8"})), f"nodes.json items[0].metadata.labels.{COUNT}", "not a label value"),
        (listed(node("a", {**H100, COUNT: "8e3"})), f"nodes.json items[0].metadata.labels.{COUNT}", "not a count"),
        (listed(node("a", {PRODUCT: "x\ny"}, 8)), f"nodes.json items[0].metadata.labels.{PRODUCT}", "not a label"),
        (listed(node("a", {PRODUCT: "x" * 64}, 8)), f"nodes.json items[0].metadata.labels.{PRODUCT}", "not a label"),
        (listed(node("a", {PRODUCT: "\ud800"}, 8)), f"nodes.json items[0].metadata.labels.{PRODUCT}", "not a label"),
        (
            listed(node("a", H100, 8, status={"allocatable": {"nvidia.com/gpu": "-1"}})),
            "nodes.json items[0].status.allocatable.nvidia.com/gpu",
            "not a count",
        ),
        (
            listed(node("a", H100, 8, status={"allocatable": {"nvidia.com/gpu": 8.5}})),
            "nodes.json items[0].status.allocatable.nvidia.com/gpu",
            "not a count",
        ),
        (
            listed(node("a", H100, 8, status={"capacity": {"nvidia.com/gpu": "9" * 30}})),
            "nodes.json items[0].status.capacity.nvidia.com/gpu",
            "not a count",
        ),
    ],
)
def test_bad_lists_of_nodes(run: Run, tmp_path: Path, document: Any, place: str, message: str) -> None:
    path = tmp_path / "nodes.json"
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    found = problems(run, "--nodes", path, *MODEL, *DEMAND)
    assert message in found[place]["message"]


def test_every_bad_node_is_reported_up_to_a_limit(run: Run, written: Written) -> None:
    found = problems(run, "--nodes", written(listed(*range(500))), *MODEL, *DEMAND)
    assert len(found) == 101
    assert found["nodes.json"]["message"] == "400 more problems are not shown"


def test_texts_of_strangers_cannot_leave_their_comment(run: Run, written: Written) -> None:
    evil = "x\nobjective: gpus\n\u2028\x1b[31m" + "y" * 500
    taint = {"key": evil, "value": evil, "effect": evil}
    nodes = written(listed(node(evil, H100, 8, spec={"taints": [taint]}), node("cpu" + evil)))
    code, out, err = run("new", "--nodes", nodes, *MODEL, *DEMAND)
    assert code == 0
    assert "objective" not in files.parse(out).data
    assert "\x1b" not in out + err
    assert "\u2028" not in out + err


def test_files_that_cannot_be_read(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no such file" in problems(run, "--nodes", tmp_path / "none", *MODEL, *DEMAND)["--nodes"]["message"]
    assert "directory" in problems(run, "--nodes", tmp_path, *MODEL, *DEMAND)["--nodes"]["message"]
    assert "--nodes" in problems(run, "--nodes", "a\0b", *MODEL, *DEMAND)
    big = tmp_path / "big.json"
    big.write_text("{}")
    os.truncate(big, 2**30)
    assert "more than" in problems(run, "--nodes", big, *MODEL, *DEMAND)["--nodes"]["message"]
    assert "more than" in problems(run, "--model", big, *DEMAND)["--model"]["message"]


# --- what arrives -----------------------------------------------------------------------------------


def test_everything_missing_is_said_at_once(run: Run) -> None:
    found = problems(run)
    assert set(found) == {"--model", "--rate", "--input", "--output"}
    assert {problem["message"] for problem in found.values()} == {"missing"}


def test_everything_wrong_is_said_at_once(run: Run, written: Written) -> None:
    nodes = written(listed({}))
    words = ("--nodes", nodes, "--model", "Qwen3-8", "--rate", "-5/s", "--input", "0", "--output", "nan")
    found = problems(run, *words)
    assert set(found) == {"nodes.json items[0].metadata.name", "--model", "--rate", "--input", "--output"}
    assert 'did you mean "Qwen3-8B"?' in found["--model"]["message"]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--rate", text) for text in ("5", "0/s", "-1/s", "nan/s", "inf/s", "1e999/s", "5 GB/s", "5/s/s", "", " ")),
        *(("--input", text) for text in ("-5", "0", "1.5", "nan", "inf", "true", "null", "many", "9" * 99, "", "\x1b")),
        *(("--output", text) for text in ("-5", "0", "[1]", "1\n2", "\ud800")),
        ("--name", ""),
        ("--name", "a\nb"),
    ],
)
def test_bad_numbers(run: Run, option: str, value: str) -> None:
    given = dict(zip(DEMAND[::2], DEMAND[1::2], strict=True)) | {option: value}
    found = problems(run, *MODEL, *(f"{key}={text}" for key, text in given.items()))
    assert set(found) == {option}


def test_usage_errors_stand_at_their_option(run: Run) -> None:
    assert problems(run, "--rate")["--rate"]["message"] == "expected one argument"
    assert "unrecognized" in problems(run, "--model", "x", "--speed", "3")["command line"]["message"]


def test_options_that_exclude_each_other(run: Run) -> None:
    words = ("--users", "9", "--ttft", "2s", "--ttft-p95", "2s", "--tpot", "1s", "--tpot-p95", "1s")
    found = problems(run, *MODEL, *DEMAND, *words)
    assert {"--users", "--ttft-p95", "--tpot-p95"} <= set(found)
    assert "without --users" in problems(run, *MODEL, *DEMAND, "--think-time", "45s")["--think-time"]["message"]


# --- models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["Qwen3-32B", "qwen3-32b", "Qwen/Qwen3-32B", "qwen/qwen3-32b"])
def test_names_and_repositories_of_the_catalog(run: Run, text: str) -> None:
    models = made(run, "--model", text, *DEMAND)["instance"]["models"]
    assert models == {"qwen3-32b": {"catalog": "Qwen3-32B"}}


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("Qwen3-32", "Qwen3-32B"),
        ("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Llama-3.1-70B"),
        ("Qwen/Qwen3-8B-Base", "Qwen/Qwen3-8B"),
    ],
)
def test_the_nearest_model_is_suggested(run: Run, text: str, guess: str) -> None:
    problem = problems(run, "--model", text, *DEMAND)["--model"]
    assert f'did you mean "{guess}"?' in problem["message"]
    assert "Qwen3-8B" in problem["accepted"]


@pytest.mark.parametrize("text", ["none/config.json", "./none.json", "x" * 5000, "?" * 3, "a\u0000b"])
def test_models_that_are_nowhere(run: Run, text: str) -> None:
    assert "--model" in problems(run, "--model", text, *DEMAND)


# --- users and targets ------------------------------------------------------------------------------


def test_users_in_place_of_a_rate(run: Run) -> None:
    words = ("--users", "1800", "--input", "2000", "--output", "300")
    document = made(run, *MODEL, *words, "--think-time", "45s")
    chat = document["instance"]["workloads"]["chat"]
    assert (chat["users"], chat["think_time"]) == (1800, "45s")
    assert "rate" not in chat
    blank = made(run, *MODEL, *words)["blanks"][-1]
    assert blank["path"] == "workloads.chat.think_time"
    assert "a time, e.g." in blank["accepted"]
    bad = ("--input", "2000", "--output", "300", "--think-time", "45")
    assert set(problems(run, *MODEL, "--users", "1800", *bad)) == {"--think-time"}
    assert set(problems(run, *MODEL, "--users", "-3", "--input", "2000", "--output", "300")) == {"--users"}


def test_targets(run: Run) -> None:
    document = made(run, *MODEL, *DEMAND, "--ttft", "2s", "--tpot", "50 ms")
    assert document["instance"]["workloads"]["chat"]["targets"] == {"ttft": "2s", "tpot": "50 ms"}
    assert document["notes"] == []
    assert set(problems(run, *MODEL, *DEMAND, "--ttft", "2", "--tpot", "-5ms")) == {"--ttft", "--tpot"}


def test_a_percentile_becomes_a_hard_limit_and_says_so(run: Run) -> None:
    words = (*MODEL, *DEMAND, "--ttft-p95", "2s", "--tpot", "50ms")
    code, out, err = run("new", *words)
    assert code == 0
    assert files.parse(out).data["workloads"]["chat"]["targets"] == {"ttft": "2s", "tpot": "50ms"}
    said = "ttft was asked for as p95; it stands here as a hard limit on every request, without queueing"
    assert f"# {said}." in out
    assert err == f"note: {said}\n"
    assert "tpot was" not in out
    code, out, err = run("new", *words, "--json")
    assert json.loads(out)["notes"] == [said]
    assert said in err
    assert set(problems(run, *MODEL, *DEMAND, "--ttft-p95", "2", "--tpot-p95", "nan")) == {"--ttft-p95", "--tpot-p95"}
