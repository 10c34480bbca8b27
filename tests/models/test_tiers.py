"""Reuse and tiers as they are said: every problem named with its place, and nothing read as something else."""

from copy import deepcopy
from typing import Any

import pytest

from models import files
from models.errors import BadInput
from models.instance import Instance
from models.load import build

BASE: dict[str, Any] = {
    "schema": 1,
    "name": "kept",
    "hardware": {
        "groups": {
            "a": {"accelerator": "A100-SXM-80GB", "servers": 2, "per_server": 8, "price": "1/h"},
            "b": {"accelerator": "H20-SXM5-96GB", "servers": 1, "per_server": 8, "price": "1/h"},
        },
        "links": {"net": {"connects": ["a", "cache"], "bandwidth": "200 Gbit/s"}},
        "stores": {"cache": {"on": "net", "capacity": "4 TB"}},
    },
    "tiers": {
        "dram": {"capacity": {"max": "1 TiB", "step": "64 GiB"}, "bandwidth": "200 GB/s", "price_per_step": "0.02/h"},
        "ssd": {"drives": {"max": 8, "size": "7.68 TB", "read": "6.5 GB/s", "write": "3 GB/s"}},
        "pool": {"store": "cache", "in": ["a"]},
    },
    "models": {"m": {"catalog": "Qwen3-8B"}},
    "workloads": {
        "chat": {
            "model": "m",
            "rate": "3/s",
            "input": 4000,
            "output": 200,
            "reuse": {"tokens_per_hit": 3000, "curve": {"10 s": "8 %", "10 min": "60 %"}},
        }
    },
}


def change(path: str, value: object) -> dict[str, Any]:
    data = deepcopy(BASE)
    *parts, last = path.split(".")
    here: Any = data
    for part in parts:
        here = here.setdefault(part, {})
    if value is None:
        here.pop(last, None)
    else:
        here[last] = value
    return data


def made(data: dict[str, Any]) -> Instance:
    return build(files.parse(files.dump(data)))


def test_what_is_said_is_read() -> None:
    instance = made(BASE)
    (part,) = instance.workloads["chat"].reuse or []
    assert [(point.age, point.share) for point in part.curve or []] == [(10.0, 0.08), (600.0, 0.6)]
    assert instance.tiers["dram"].capacity is not None
    assert instance.tiers["dram"].capacity.step == 64 * 2.0**30
    assert instance.tiers["ssd"].policies == ("all", "never")
    assert made(instance.document()) == instance


def test_hbm_may_keep_nothing() -> None:
    instance = made(change("tiers.hbm", {"in": []}))
    assert not instance.tiers["hbm"].on("a")
    assert made(instance.document()) == instance


REUSE = "workloads.chat.reuse"
BAD: list[tuple[str, object, str, str]] = [
    (REUSE, {}, REUSE, "says nothing of when it returns"),
    (REUSE, [], REUSE, "0 parts of a prompt"),
    (REUSE, {"tokens_per_hit": 4000, "curve": {"1 s": "5 %"}}, REUSE, "the parts have 4000 tokens"),
    (REUSE, {"tokens_per_hit": 0, "curve": {"1 s": "5 %"}}, "tokens_per_hit", "too small"),
    (REUSE, {"tokens_per_hit": 9, "curve": {"1 s": "50 %", "2 s": "40 %"}}, "share", "less than at an earlier age"),
    (REUSE, {"tokens_per_hit": 9, "curve": {"2 s": "5 %", "1 s": "40 %"}}, "age", "not later"),
    (REUSE, {"tokens_per_hit": 9, "curve": {"1 s": "105 %"}}, "share", "too large"),
    (REUSE, {"tokens_per_hit": 9, "curve": {"1": "5 %"}}, "age", "unit"),
    (REUSE, {"tokens_per_hit": 9, "curve": {}}, "curve", "empty"),
    (REUSE, {"tokens_per_hit": 9, "curve": {"1 s": float("nan")}}, "share", ""),
    (REUSE, {"tokens_per_hit": 9, "interval": {"mean": "1 s"}}, "returns", "go together"),
    (
        REUSE,
        {"tokens_per_hit": 9, "interval": {"mean": "1 s", "p90": "2 s"}, "returns": 0.5},
        "interval",
        "distribution",
    ),
    (REUSE, {"tokens_per_hit": 9, "interval": {"median": "3 s", "p90": "2 s"}, "returns": 0.5}, "p90", "not above"),
    (REUSE, {"kind": "system-prompt", "tokens_per_hit": 9, "curve": {"1 s": "5 %"}}, "curve", "means nothing"),
    (REUSE, {"tokens_per_hit": 9, "share": 0.5, "curve": {"1 s": "5 %"}}, "share", "means nothing"),
    (
        REUSE,
        {"tokens_per_hit": 9, "tokens_kept": 5, "curve": {"1 s": "60 %"}},
        "tokens_kept",
        "more than requests leave",
    ),
    ("tiers.dram.capacity", None, "tiers.dram", "says nothing of where"),
    ("tiers.dram.store", "cache", "tiers.dram", "says it twice"),
    ("tiers.dram.in", ["a", "c"], "tiers.dram.in[1]", "no group of this name"),
    ("tiers.dram.capacity", {"max": "1 GiB", "step": "2 GiB"}, "tiers.dram.capacity.step", "more than max"),
    ("tiers.dram.capacity", {"max": "1 TiB", "step": "1 MB"}, "tiers.dram.capacity.step", "steps"),
    ("tiers.dram.endurance", {"writes_per_day": 1}, "tiers.dram.endurance", "stands without drives"),
    ("tiers.dram.holds", "both", "tiers.dram.holds", "none of the words"),
    ("tiers.ssd.drives.max", None, "tiers.ssd.drives", "says not how many"),
    ("tiers.ssd.write_policy", ["often"], "tiers.ssd.write_policy[0]", "none of the words"),
    ("tiers.ssd.admission", 100, "tiers.ssd.admission", "stands without second_hit"),
    ("tiers.ssd.endurance", {"writes_per_day": 0}, "tiers.ssd.endurance.writes_per_day", ""),
    ("tiers.pool.in", ["a", "b"], "tiers.pool", "no path joins b"),
    ("tiers.pool.store", "cash", "tiers.pool.store", "did you mean"),
    ("tiers.hbm", {"capacity": "1 TB"}, "tiers.hbm.capacity", "means nothing for hbm"),
    ("tiers.hbm", {"holds": "exclusive", "write_policy": "never"}, "tiers.hbm.holds", "means nothing for hbm"),
    ("tiers.hbm", {"fetch": "layer-wise", "early_layers": 4}, "tiers.hbm.early_layers", "means nothing for hbm"),
    ("tiers.hbm", {"fetch": "prefetch", "wait": "1 s"}, "tiers.hbm.wait", "means nothing for hbm"),
    ("tiers.pool.nodes", {"max": 2, "size": "1 TB", "read": "1 GB/s"}, "tiers.pool.nodes.read", "adds to no bandwidth"),
    ("tiers.dram.wait", "1 s", "tiers.dram.wait", "stands without fetch"),
    ("tiers.dram.headroom", 0.5, "tiers.dram.headroom", ""),
    ("tiers.dram.colour", "red", "tiers.dram.colour", "unknown key"),
    (
        "tiers",
        {"ssd": {"holds": "exclusive", "write_policy": "all", "capacity": "1 TB"}},
        "write_policy",
        "does not go",
    ),
    ("workloads.chat.tool_wait", {"calls": 2}, "workloads.chat.tool_wait.mean", "missing"),
    ("hardware.groups.a.servers", "unlimited", "tiers.dram.in", "bought are not supported yet"),
    ("limits.spare", {"units": 1}, "workloads.chat.reuse", "not supported yet beside limits.spare"),
]


@pytest.mark.parametrize(("path", "value", "place", "words"), BAD, ids=[f"{p}-{w[:24]}" for p, _, _, w in BAD])
def test_what_cannot_be_is_named(path: str, value: object, place: str, words: str) -> None:
    data = change(path, value)
    with pytest.raises(BadInput) as raised:
        made(data)
    assert any(place in problem.path and words in problem.message for problem in raised.value.problems), [
        (problem.path, problem.message) for problem in raised.value.problems
    ]
