"""`inferplan layer`: every kind of bad input, told at once and where it stands."""

from pathlib import Path
from typing import Any

import pytest

from tests.layer.conftest import Run
from tests.layer.test_golden import COPIES, EXPERTS, FILES, HOT, SKEW, STAY

BAD = """\
schema: 1
name: bad
offload:
  model: Qwen3-8B
  cpu: Xeon-Platinum-8452
  kernel: amx
  gpu: A100-PCIe-40GB
  link: 25 GB
  rows: [1, -2, .nan, many]
  homes: [0, 2, 0, 0]
exchange:
  model: Qwen3-235B-A22B
  gpu: H100-SXM-80GB
  rows: []
  link: 50 GB/s
skew: {tokens: 64, chosen: 8, experts: 128, cards: [8, 256], hot: 65}
copies:
  model: Qwen3-235B-A22B
  gpu: {catalog: H100-SXM-80GB, memory: 80}
  cards: 2
  rows: [8, 8]
  copies: [{expert: 1, to: 1}, {expert: 1, to: 1}, {expert: 0, to: 0}, {expert: 2, to: 1}, {expert: 0, to: 2}]
  link: 450 GB/s
  spare: 64 MiB
separate: {model: Qwen3-8B, link: 25 GB/s, input: 8192, output: [], stateof: DeepSeek-V3}
tiles: {rows: [0, 0], tile: 0}
pipeline: {stages: {a: 1 ms}, batches: 2, slower: {b: 2, a: 0.5}, ready: [0 s]}
"""


def problems(document: Any) -> dict[str, tuple[int, str]]:
    return {one["path"]: (one["line"], one["message"]) for one in document["error"]["problems"]}


def test_everything_wrong_is_told_at_once_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    code, document = run(tmp_path / "bad.yaml")
    assert code == 2
    assert problems(document) == {
        "offload.model": (4, "is a dense model"),
        "offload.cpu": (5, 'is no name of the catalog; did you mean "Xeon-Platinum-8452Y"?'),
        "offload.link": (8, "is a size in bytes"),
        "offload.rows[1]": (9, "is negative"),
        "offload.rows[2]": (9, "is not finite"),
        "offload.rows[3]": (9, "is not a number of rows"),
        "offload.homes[1]": (10, "no such socket"),
        "exchange.sources": (11, "missing, and so is group"),
        "exchange.rows": (14, "is empty"),
        "skew.cards[1]": (16, "some cards would have no expert"),
        "skew.hot": (16, "is more than one row of each token"),
        "copies.gpu.memory": (19, "has no unit"),
        "copies.copies[1].to": (22, "the card has expert 1 already"),
        "copies.copies[2].to": (22, "the card has expert 0 already"),
        "copies.copies[3].expert": (22, "no such expert"),
        "copies.copies[4].to": (22, "no such card"),
        "separate.output": (25, "is empty"),
        "separate.stateof": (25, 'unknown key; did you mean "state_of"?'),
        "tiles.rows": (26, "no expert has any"),
        "tiles.tile": (26, "input should be greater than or equal to 1"),
        "pipeline.slower.b": (27, "no such stage"),
        "pipeline.slower.a": (27, "input should be greater than or equal to 1"),
        "pipeline.ready": (27, "1 times for 2 micro-batches"),
    }
    assert all(one["accepted"] for one in document["error"]["problems"] if "unknown key" not in one["message"])


ONE_BAD = {
    EXPERTS: {
        "offload.kernel=avx": ("offload.kernel", 'the CPU has no such kernel; did you mean "avx512"?'),
        "offload.cpu={catalog: Xeon-Platinum-8452Y, kernels: {avx512: 2 TFLOP/s}}": (
            "offload.kernel",
            "the CPU has no such kernel",
        ),
        "offload.cpu={name: mine, cores: 8, memory: 64 GB, bandwidth: 50 GB/s, kernels: {amx: 5 TFLOP/s}}": (
            "offload.cpu.remote_bandwidth",
            "missing",
        ),
        "offload.rows=null": ("offload.tokens", "missing, and so are rows"),
        "offload.tokens=64": ("offload.tokens", "stands beside rows"),
        "offload.over=129": ("offload.over", "the layer has 128 experts"),
        "offload.rows=0": ("offload.rows", "no expert has any"),
        "offload.rows=[1, 2]": ("offload.over", "stands beside a list of rows"),
        "offload.homes=[0, 0]": ("offload.homes", "2 for 8 experts"),
        "offload.model=null": ("offload.model", "missing: whose experts"),
        "offload.expert={hidden: 4096, width: 1536}": ("offload.expert", "stands beside a model"),
        "offload.gpu=A100": ("offload.gpu", 'is no name of the catalog; did you mean "A100-PCIe-40GB"?'),
    },
    STAY: {
        "offload.over=7": ("offload.over", "each token chooses 8 experts"),
        "offload.keep=129": ("offload.keep", "the layer has 128 experts"),
    },
    HOT: {
        "exchange.group={servers: 1, per_server: 4, inside: 450 GB/s}": (
            "exchange.group",
            "stands beside sources",
        ),
        "exchange.rows=[0, 0]": ("exchange.rows", "no expert has any"),
        "exchange.rows=null": ("exchange.tokens", "missing, and so are rows"),
        "exchange.tokens=64": ("exchange.tokens", "stands beside rows"),
        "exchange.hot=64": ("exchange.hot", "stands beside rows"),
        f"exchange.rows={[1] * 33}": ("exchange.rows", "has too many items"),
    },
    SKEW: {
        "skew.cards=300": ("skew.cards", "some cards would have no expert"),
        "skew.redundant=257": ("skew.redundant", "is more than a second copy of each"),
        "skew.chosen=257": ("skew.chosen", "is more than there are"),
        "skew.link=null": ("skew.link", "missing: a time needs bytes and a link"),
        "skew.tokens=1000000": ("skew.random.batches", "too many choices to draw"),
    },
    COPIES: {
        "copies.homes=[0, 0]": ("copies.homes", "2 for 8 experts"),
        "copies.homes=[0, 0, 0, 0, 0, 0, 0, 8]": ("copies.homes[7]", "no such card"),
    },
}


@pytest.mark.parametrize(
    ("name", "change", "path", "message"),
    [(name, change, *told) for name, changes in ONE_BAD.items() for change, told in changes.items()],
)
def test_one_thing_wrong(run: Run, name: str, change: str, path: str, message: str) -> None:
    code, document = run(FILES / f"{name}.yaml", "--set", change)
    assert code == 2
    assert [(one["path"], one["message"]) for one in document["error"]["problems"]] == [(path, message)]


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        ("schema: 1\nname: x", "", "asks nothing"),
        ("schema: 1\nname: x\nskew: 3", "skew", "is not a mapping of keys"),
        ("schema: 2\nname: x\ntiles: {rows: [1], tile: 8}", "schema", "is none of the words that can stand here"),
        ("[1, 2]", "", "the top level is a list"),
    ],
)
def test_a_file_that_asks_nothing(run: Run, tmp_path: Path, text: str, path: str, message: str) -> None:
    (tmp_path / "bad.yaml").write_text(text + "\n")
    code, document = run(tmp_path / "bad.yaml")
    assert code == 2
    assert (path, message) in [(one["path"], one["message"]) for one in document["error"]["problems"]]


def test_a_shape_that_leaves_out_what_is_needed(run: Run) -> None:
    own = ("--set", "offload.model=null", "--set", "offload.expert={hidden: 4096, width: 1536}")
    code, document = run(FILES / f"{STAY}.yaml", *own)
    assert code == 2
    assert {one["path"] for one in document["error"]["problems"]} == {
        f"offload.expert.{key}" for key in ("experts", "chosen", "layers")
    }
