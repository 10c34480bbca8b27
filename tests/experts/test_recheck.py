"""`inferplan verify LOADS EXPERTS.json`: proofs travel with a placement and are checked against the loads alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from api.cli import main


@pytest.fixture(params=[["--slots", "10"], ["--slots", "12", "--separate"], ["--slots", "12", "--worst"]])
def made(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    draw = np.random.default_rng(3)
    loads, placement = tmp_path / "loads.json", tmp_path / "experts.json"
    names = ("one", "two")[: len(request.param) - 1]
    loads.write_text(json.dumps({name: draw.integers(1, 200, (3, 8)).tolist() for name in names}))
    assert main(["experts", str(loads), "--cards", "4", *request.param, "--json"]) == 0
    placement.write_text(capsys.readouterr().out)
    return loads, placement


def test_what_was_written_holds(made: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *map(str, made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"ok": True, "violations": []}


def part(document: dict[str, Any]) -> dict[str, Any]:
    """Where layers and map of a scenario are."""
    one: dict[str, Any] = document if document["layers"] else next(iter(document["scenarios"].values()))
    return one


def row(document: dict[str, Any]) -> dict[str, Any]:
    layer = part(document)["layers"][0]
    one: dict[str, Any] = next(iter(layer["scenarios"].values())) if "scenarios" in layer else layer
    return one


def swapped(document: dict[str, Any]) -> None:
    """A whole placement, of two experts that took each other's names."""
    rows = part(document)["physical_to_logical_map"]
    rows[0] = [{0: 1, 1: 0}.get(expert, expert) for expert in rows[0]]


TAMPERED: list[Callable[[dict[str, Any]], object]] = [
    lambda d: row(d).update(bound=row(d)["bound"] * 1.2),
    lambda d: row(d).update(busiest=row(d)["busiest"] * 0.9),
    lambda d: row(d).update(kind="because"),
    lambda d: next(iter(d["scenarios"].values())).update(gap=0.0, balancedness=1.0),
    lambda d: d.update(balancedness_min=0.999999),
    swapped,
]


@pytest.mark.parametrize("tamper", TAMPERED)
def test_other_claims_do_not(
    made: tuple[Path, Path], tamper: Callable[[dict[str, Any]], object], capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(made[1].read_text())
    tamper(document)
    made[1].write_text(json.dumps(document))
    assert main(["verify", *map(str, made)]) == 3
    assert "does not hold" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["time", "layers", "scenarios", "slots_per_card"])
def test_what_is_missing_is_told(made: tuple[Path, Path], key: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(made[1].read_text())
    for one in (document, part(document)):
        one.pop(key, None)
    made[1].write_text(json.dumps(document))
    assert main(["verify", *map(str, made)]) == 2
    assert key in capsys.readouterr().err
