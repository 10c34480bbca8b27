"""Every format comes back as it went out; damaged files are refused with what is wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.experts.writing import WRITERS
from models.errors import BadInput
from models.experts import maps, reading
from models.experts.layout import Layout
from models.experts.loads import loads
from solver.experts.place import place
from tests.experts.synthetic import skewed

TOKENS = skewed(3, 8)
LAYOUT = Layout((3,) * 4, engine=True)


@pytest.mark.parametrize("engine", list(WRITERS))
@pytest.mark.parametrize("first", [0, 2])
def test_maps_come_back(engine: str, first: int, tmp_path: Path) -> None:
    placement, _ = place(TOKENS, LAYOUT)
    ids = tuple(range(first, first + 3))
    path = tmp_path / ("map.yaml" if engine == "trtllm" else "map.json")
    path.write_text(WRITERS[engine](placement, ids, first + 4))
    assert (maps.read(path, LAYOUT, ids, 8).slots == placement.slots).all()


def test_what_engines_ask_for() -> None:
    placement, _ = place(TOKENS, LAYOUT)
    sglang = json.loads(WRITERS["sglang"](placement, (2, 3, 4), 6))
    assert list(sglang) == ["physical_to_logical_map"]  # other keys break it
    assert [len(row) for row in sglang["physical_to_logical_map"]] == [12] * 6
    assert sglang["physical_to_logical_map"][2:5] == placement.rows()
    assert all(set(row) == set(range(8)) for row in sglang["physical_to_logical_map"])
    assert "initial_global_assignments" in (text := WRITERS["trtllm"](placement, (2, 3, 4), 6))
    assert "num_slots: 12" in text
    assert "layer_updates_per_iter: 0" in text
    ascend = json.loads(WRITERS["vllm-ascend"](placement, (2, 3, 4), 6))
    assert ascend["moe_layer_count"] == 3
    assert [d["device_id"] for d in ascend["layer_list"][0]["device_list"]] == [0, 1, 2, 3]


def test_loads_of_every_kind(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", TOKENS)
    np.savez(tmp_path / "b.npz", x=TOKENS, y=2 * TOKENS)
    (tmp_path / "c.csv").write_text("\n".join(",".join(f"{v:g}" for v in row) for row in TOKENS))
    (tmp_path / "d.json").write_text(json.dumps(TOKENS.tolist()))
    long = [f"{i},{e},{TOKENS[i, e]:g}" for i in range(3) for e in range(8)]
    (tmp_path / "e.csv").write_text("\n".join(["layer,expert,tokens", *long]))
    (tmp_path / "f.json").write_text(json.dumps({"logical_count": [(TOKENS / 2).tolist()] * 2}))
    np.save(tmp_path / "g.npy", np.stack([TOKENS / 4] * 4))
    for name in ("a.npy", "c.csv", "d.json", "e.csv", "f.json", "g.npy"):
        [array] = reading.read(tmp_path / name).arrays.values()
        assert np.allclose(array, TOKENS), name
    both = reading.read(tmp_path / "b.npz").arrays
    assert list(both) == ["x", "y"]
    assert np.allclose(both["y"], 2 * TOKENS)


def test_recordings(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"rank": 0, "logical_count": [[0] * 8, [0] * 8, *TOKENS.tolist()]}))
    found = reading.read(path)
    assert found.layer_ids == (2, 3, 4)
    assert np.allclose(found.arrays["r"], TOKENS)
    where = [[0, 1, 2, 0], [2, 1, 0, 1]]
    passes = [{"global_physical_count": [[1, 2, 3, 4], [5, 6, 7, 8]]}] * 2
    path.write_text(json.dumps({"records": passes, "last_physical_to_logical_map": where}))
    assert reading.read(path).arrays["r"].tolist() == [[10, 4, 6], [14, 28, 10]]


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        [[1, 2], [3]],
        ["a"],
        [[None]],
        5,
        {"logical_count": 3},
        {"logical_count": [["a"]]},
        {"records": []},
        {"records": [1], "last_physical_to_logical_map": [[0]]},
        {"records": [{"global_physical_count": [[1, 2]]}], "last_physical_to_logical_map": [[0]]},
        {"records": [{"global_physical_count": [[1]]}], "last_physical_to_logical_map": [[-1]]},
        [[[[1]]]],
    ],
)
def test_loads_that_are_none(document: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput):
        loads(reading.read(path).arrays)


@pytest.mark.parametrize("name", ["x.npz", "x.npy", "x.csv", "x.json", "x.pt", "x.txt", "missing.csv"])
def test_damaged_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if not name.startswith("missing"):
        path.write_bytes(b"\x00\xff junk,\n1,2,3")
    with pytest.raises(BadInput):
        reading.read(path)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([[0] * 12] * 2, "2 layers in the map, 3 in the loads"),
        ([[0] * 11] * 3, "row 0 has 11 slots, the cards have 12"),
        ([[8, *range(8), 0, 0, 0]] * 3, "expert 8 in the map, the loads have 8"),
        ([[0] * 12] * 3, "expert 1 of layer 0 is on no card"),
        ([["a"] * 12] * 3, "not a row of expert numbers"),
        ({"layer_list": [{}]}, "not a map of experts"),
        ({"initial_global_assignments": {"0": [0] * 12}}, "layer 1 is not in initial_global_assignments"),
        (7, "not a map of experts"),
    ],
)
def test_maps_that_do_not_match(document: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document))
    with pytest.raises(BadInput, match=words):
        maps.read(path, LAYOUT, (0, 1, 2), 8)
