"""What happens where nothing can be written: codes stay, and no traceback is seen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.examples import ROOT

COMMAND = f"{sys.executable} -m api.cli"
BAD = "check missing.yaml"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize(
    ("line", "codes"),
    [
        (f"{BAD} --json >/dev/full", {1}),
        (f"{BAD} 2>/dev/full", {1}),
        ("glossary >/dev/full", {1}),
        ("glossary >&-", {0}),
        (f"{BAD} >&-", {2}),
        (f"{BAD} 2>&-", {2}),
    ],
)
def test_no_place_for_output(line: str, codes: set[int]) -> None:
    done = shell(f"{COMMAND} {line}")
    assert done.returncode in codes
    assert "Traceback" not in done.stderr
    assert "AttributeError" not in done.stderr


def test_a_reader_that_has_had_enough() -> None:
    done = shell(f"set -o pipefail; {COMMAND} {BAD} --json | true")
    assert done.returncode in (0, 2)  # which of both ends first is chance
    assert "Traceback" not in done.stderr


def shell(line: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
