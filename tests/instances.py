"""Instances for tests: the eight-card file, changed in places."""

from pathlib import Path
from typing import Any

from models import files
from models.instance import Instance
from models.load import build, load

ROOT = Path(__file__).resolve().parent.parent
EIGHT = ROOT / "instances" / "chapter" / "eight-cards.yaml"


def eight(*changes: str) -> Instance:
    """The eight-card instance with `PATH=VALUE` changes."""
    return load(EIGHT, changes)


def document() -> dict[str, Any]:
    """The eight-card file as plain data, to be changed at will."""
    return files.read(EIGHT).data


def from_document(data: dict[str, Any]) -> Instance:
    """The instance of a changed document."""
    return build(files.parse(files.dump(data)))
