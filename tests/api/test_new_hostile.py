"""`inferplan new` with every part of its input replaced by junk: an answer or a refusal, never a fault."""

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.cli import main, parser
from api.new.command import compose
from models import blanks, files
from models.errors import BadInput
from tests.api.kubernetes import H100, listed, node
from tests.api.test_new_models import DEEPSEEK, GEMMA_3, GPT_OSS, LLAMA, QWEN3, QWEN3_MOE, QWEN3_NEXT

DEMAND = ("--rate", "5/s", "--input", "2000", "--output", "300")
TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
LABELS = {**H100, "nvidia.com/gpu.replicas": "1", "node.kubernetes.io/instance-type": "p5.48xlarge"}
NODES = listed(node("a", LABELS, 8, spec={"unschedulable": False, "taints": [TAINT]}), node("b", LABELS, 8))
JUNK: tuple[Any, ...] = (None, True, -1, 2.5, 10**40, "", "8", "???", "\ud800", "a\nb: c", [None], {"a": {}})
MODELS = {
    "llama": {**LLAMA, "quantization_config": None, "layer_types": ["full_attention"], "sliding_window": None},
    "moe": {**QWEN3_MOE, "shared_expert_intermediate_size": None, "mlp_only_layers": [], "decoder_sparse_step": 1},
    "deepseek": DEEPSEEK,
    "gemma-3": GEMMA_3,
    "gpt-oss": {**GPT_OSS, "num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]},
    "qwen3-next": QWEN3_NEXT,
    "windows": {**QWEN3, "sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 4},
    "seeing": {"model_type": "llava", "text_config": LLAMA, "torch_dtype": "bfloat16"},
}


def variations(document: Any) -> Iterator[Any]:
    """The document with each of its parts, small and large, replaced by each kind of junk or taken away."""
    for path in places(document):
        for junk in (*JUNK, KeyError):
            changed = copy.deepcopy(document)
            here = changed
            for key in path[:-1]:
                here = here[key]
            if junk is KeyError:
                del here[path[-1]]
            else:
                here[path[-1]] = junk
            yield changed


def places(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


def judge(options: argparse.Namespace) -> None:
    """A file that can be read back, with blanks as its only problems, or a refusal that names a place."""
    try:
        draft = compose(options)
    except BadInput as error:
        refused = error.problems
    else:
        refused = ()
        assert files.parse(draft.text).data == draft.document
        assert set(draft.document) == {"schema", "name", "hardware", "models", "workloads", "billing"}
        assert [blank.path for blank in draft.blanks] == list(blanks.places(draft.document))
    assert all(problem.path and problem.message for problem in refused)


def test_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    options = parser().parse_args(["new", "--nodes", str(path), "--model", "Qwen3-8B", *DEMAND])
    for changed in variations(NODES):
        path.write_text(json.dumps(changed))
        judge(options)


@pytest.mark.parametrize("name", list(MODELS))
def test_models(tmp_path: Path, name: str) -> None:
    path = tmp_path / "config.json"
    options = parser().parse_args(["new", "--model", str(path), *DEMAND])
    for changed in variations(MODELS[name]):
        path.write_text(json.dumps(changed))
        judge(options)


@pytest.mark.parametrize("option", ["--rate", "--users", "--think-time", "--input", "--output", "--ttft", "--name"])
def test_options(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setenv("INFERPLAN_DEBUG", "1")
    given = dict(zip(DEMAND[::2], DEMAND[1::2], strict=True))
    if option in ("--users", "--think-time"):
        del given["--rate"]
        given["--users"] = "9"
    for junk in JUNK:
        words = [f"{key}={text}" for key, text in {**given, option: str(junk)}.items()]
        code = main(["new", "--model", "Qwen3-8B", *words, "--json"])
        document = json.loads(capsys.readouterr().out)
        assert code in (0, 2)
        if code == 2:
            assert {problem["path"] for problem in document["error"]["problems"]} == {option}
