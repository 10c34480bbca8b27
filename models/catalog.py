"""The catalog: one YAML file an entry, a source for every number, found beside the packages."""

from functools import cache
from pathlib import Path
from typing import Any

from models import files

INSTANCES = Path(__file__).resolve().parent.parent / "instances"
CATALOG = INSTANCES / "catalog"
KINDS = {
    "accelerators": "accelerators",
    "servers": "servers",
    "models": "llms",
    "links": "links",
    "storage": "storage",
    "cpus": "cpus",
}
"""Kind as users say it -> folder."""


@cache
def names(kind: str) -> tuple[str, ...]:
    """Names of the entries of ``kind``, sorted."""
    return tuple(sorted(path.stem for path in (CATALOG / KINDS[kind]).glob("*.yaml")))


@cache
def _read(kind: str, name: str) -> dict[str, Any]:
    return files.read(CATALOG / KINDS[kind] / f"{name}.yaml").data


def entry(kind: str, name: str) -> dict[str, Any] | None:
    """The entry as plain data, or None when the catalog has no such name."""
    return dict(_read(kind, name)) if name in names(kind) else None
