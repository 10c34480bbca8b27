"""Nodes joined into groups of identical servers, each with what the instance file says about it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from api.new.nodes import Found, Node
from models.errors import shown

_NAMED = 4
"""Nodes that a comment names before it counts the rest."""


@dataclass(frozen=True)
class Group:
    """Identical servers, as they stand in the file."""

    name: str
    nodes: tuple[str, ...]
    accelerator: str | None
    """Name in the catalog; None where the catalog has none."""
    product: str
    named_by: str
    servers: int
    per_server: int
    memory: int | None
    """MiB of a GPU, where all its nodes report the same."""
    labels: dict[str, str]
    """Those that all its nodes share."""
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Cluster:
    """The groups, and what the file says above them."""

    groups: tuple[Group, ...]
    remarks: tuple[str, ...] = ()


def join(found: Found, file: str) -> Cluster:
    """Groups by product and number of GPUs, in the order of the list."""
    by_kind: dict[tuple[str, str | None, int, bool], list[Node]] = {}
    for node in found.nodes:
        shared = any("shared" in remark for remark in node.remarks)
        by_kind.setdefault((node.product, node.accelerator, node.gpus, shared), []).append(node)
    groups: list[Group] = []
    for alike in by_kind.values():
        groups.append(_group(alike, [group.name for group in groups]))
    left = sum(map(len, found.left_out.values()))
    remarks = [f"From {shown(file)}: {len(found.nodes):,} of {len(found.nodes) + left:,} nodes."]
    remarks += [f"Left out, {reason}: {listed(names)}." for reason, names in found.left_out.items()]
    return Cluster(tuple(groups), tuple(remarks))


def listed(names: Sequence[str]) -> str:
    """The first names and the number of the rest: "gpu-1, gpu-2 and 14 more"."""
    first = ", ".join(shown(name, 40) for name in names[:_NAMED])
    return first + (f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else "")


def slug(text: str) -> str:
    """A short name of letters, digits, dots and dashes."""
    return re.sub("[^a-z0-9.]+", "-", text.lower())[:40].strip("-.")


def _group(nodes: list[Node], taken: Iterable[str]) -> Group:
    first = nodes[0]
    memories = {node.memory for node in nodes}
    return Group(
        name=_name(first, taken),
        nodes=tuple(node.name for node in nodes),
        accelerator=first.accelerator,
        product=first.product,
        named_by=first.named_by,
        servers=len(nodes),
        per_server=first.gpus,
        memory=first.memory if len(memories) == 1 else None,
        labels={k: v for k, v in first.labels.items() if all(node.labels.get(k) == v for node in nodes)},
        remarks=(*_told(nodes, "remarks"), *(f"taint {text}" for text in _told(nodes, "taints"))),
    )


def _told(nodes: list[Node], attribute: str) -> list[str]:
    """What is to be said of nodes, each thing once, with the nodes where it is not said of all."""
    texts: dict[str, list[str]] = {}
    for node in nodes:
        for text in getattr(node, attribute):
            texts.setdefault(shown(text, 160), []).append(node.name)
    return [text if len(names) == len(nodes) else f"{text} ({listed(names)})" for text, names in texts.items()]


def _name(node: Node, taken: Iterable[str]) -> str:
    """The model of the GPU, and where that is taken the number of GPUs too."""
    if node.accelerator:
        short = slug(node.accelerator.partition("-")[0])
    else:
        short = slug(re.sub("^nvidia-", "", node.product, flags=re.IGNORECASE)) or "gpu"
    known = set(taken)
    candidates = [short, f"{short}-x{node.gpus}", *(f"{short}-{number}" for number in range(2, len(known) + 3))]
    return next(name for name in candidates if name not in known)
