"""`inferplan layer --json`, run in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.cli import main

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def running(path: Path, *more: str) -> tuple[int, Any]:
        code = main(["layer", str(path), "--json", *more])
        caught = capsys.readouterr()
        assert caught.err == ""
        return code, json.loads(caught.out)

    return running
