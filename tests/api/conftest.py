"""The command line in process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from api.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command: its exit code, standard output, standard error."""

    def running(*words: str | Path) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        caught = capsys.readouterr()
        return code, caught.out, caught.err

    return running
