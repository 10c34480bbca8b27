"""Kubernetes nodes as `kubectl get nodes -o json` lists them: what GPUs they have that a plan can use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from api.new import products
from models.errors import BadInput, Problem, shown
from models.files import MAX_PROBLEMS

PRODUCT, COUNT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory"
REPLICAS = "nvidia.com/gpu.replicas"
AMD_PRODUCT, AMD_DEVICE = "amd.com/gpu.product-name", "amd.com/gpu.device-id"
GKE, GKE_SLICE = "cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu-partition-size"
GKE_CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
MACHINES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
USED = (PRODUCT, COUNT, MEMORY, REPLICAS, AMD_PRODUCT, AMD_DEVICE, GKE, GKE_SLICE, GKE_CLIENTS, *MACHINES)
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
_OWN_TAINTS = ("nvidia.com/gpu", "amd.com/gpu", "node.kubernetes.io/")
"""Taints that every GPU node may carry, or that the node's state explains."""


@dataclass(frozen=True)
class Node:
    """A node with GPUs that a plan can use."""

    name: str
    product: str
    """What the label calls the GPU; empty where nothing names it."""
    named_by: str
    """That label."""
    accelerator: str | None
    """Its name in the catalog."""
    gpus: int
    memory: int | None
    """MiB of a GPU as the driver reports it."""
    labels: dict[str, str]
    taints: tuple[str, ...]
    remarks: tuple[str, ...]


@dataclass
class Found:
    """What a list of nodes holds."""

    nodes: list[Node] = field(default_factory=list)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """Reason -> names of the nodes."""


def read(document: dict[str, Any], file: str) -> Found:
    """The nodes of a NodeList, a List of nodes or one Node. Raises BadInput with every problem."""
    reader = _Reader(file)
    found = Found()
    for node, path in reader.nodes(document):
        reader.take(node, path, found)
    if not reader.problems and not found.nodes:
        reasons = "; ".join(f"{len(names):,} {reason}" for reason, names in found.left_out.items())
        accepted = "at least one node that is ready and has GPUs"
        reader.report("items", "no node with GPUs that can be used", reasons or "no nodes", accepted)
    if reader.problems:
        raise BadInput(reader.shown_problems())
    return found


class _Reader:
    """Walks the document and gathers what is wrong with it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.names: set[str] = set()

    def report(self, path: str, message: str, value: object = None, accepted: str | None = None) -> None:
        text = None if value is None else shown(value)
        self.problems.append(Problem(f"{self.file} {path}".strip(), message, text, accepted))

    def shown_problems(self) -> list[Problem]:
        more = len(self.problems) - MAX_PROBLEMS
        last = [Problem(self.file, f"{more:,} more problems are not shown")] if more > 0 else []
        return [*self.problems[:MAX_PROBLEMS], *last]

    def nodes(self, document: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
        """Every node that is an object, with its path."""
        kind = document.get("kind")
        if kind == "Node":
            yield document, ""
            return
        items = document.get("items")
        if kind not in ("NodeList", "List"):
            self.report("kind", "not a list of nodes", kind, "NodeList, List or Node: kubectl get nodes -o json")
        elif not isinstance(items, list):
            self.report("items", "missing" if items is None else "not a list", items, "a list of nodes")
        else:
            for index, item in enumerate(items):
                path = f"items[{index}]"
                if not isinstance(item, dict):
                    self.report(path, "not an object", item, "a node")
                elif item.get("kind", "Node") != "Node":
                    self.report(f"{path}.kind", "not a node", item["kind"], "Node: kubectl get nodes -o json")
                else:
                    yield item, f"{path}."

    def take(self, node: dict[str, Any], path: str, found: Found) -> None:
        """Add the node to what was found, or its problems to the problems."""
        before = len(self.problems)
        metadata = self.mapping(node, "metadata", path)
        spec, status = self.mapping(node, "spec", path), self.mapping(node, "status", path)
        name = metadata.get("name")
        if not isinstance(name, str) or not name:
            self.report(f"{path}metadata.name", "missing" if name is None else "not a name", name, "the node's name")
            return
        if name in self.names:
            self.report(f"{path}metadata.name", "a node of this name stands above", name, "each node once")
        self.names.add(name)
        labels = self.labels(self.mapping(metadata, "labels", f"{path}metadata."), f"{path}metadata.labels")
        counts = {
            key: self.counts(self.mapping(status, key, f"{path}status."), f"{path}status.{key}")
            for key in ("allocatable", "capacity")
        }
        taints = self.objects(spec, "taints", f"{path}spec.")
        conditions = self.objects(status, "conditions", f"{path}status.")
        if len(self.problems) > before:
            return
        reason = _unfit(labels, counts, spec, conditions)
        if reason:
            found.left_out.setdefault(reason, []).append(name)
            return
        made = _node(name, labels, counts, taints)
        if isinstance(made, Node):
            found.nodes.append(made)
        else:
            found.left_out.setdefault(made, []).append(name)

    def mapping(self, parent: dict[str, Any], key: str, path: str) -> dict[str, Any]:
        value = parent.get(key)
        if value is not None and not isinstance(value, dict):
            self.report(f"{path}{key}", "not an object", value, "keys, each with a value")
        return value if isinstance(value, dict) else {}

    def objects(self, parent: dict[str, Any], key: str, path: str) -> list[dict[str, Any]]:
        value = parent.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.report(f"{path}{key}", "not a list of objects", value, "a list of objects")
            return []
        return value

    def labels(self, labels: dict[str, Any], path: str) -> dict[str, str]:
        """The labels as they are; those that are read here must be label values."""
        for key in USED:
            value = labels.get(key, "")
            if not isinstance(value, str) or not _VALUE.fullmatch(value):
                accepted = "a label value: at most 63 letters, digits, '-', '_' and '.'"
                self.report(f"{path}.{key}", "not a label value", value, accepted)
            elif key in (COUNT, MEMORY, REPLICAS, GKE_CLIENTS) and value and not re.fullmatch("[0-9]{1,7}", value):
                self.report(f"{path}.{key}", "not a count", value, 'a whole number in quotes, e.g. "8"')
        return {key: value for key, value in labels.items() if isinstance(value, str)}

    def counts(self, resources: dict[str, Any], path: str) -> dict[str, int]:
        """The GPU resources of a node."""
        counts = {}
        for key, value in resources.items():
            if not key.startswith(("nvidia.com/", "amd.com/")):
                continue
            text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
            if re.fullmatch("[0-9]{1,7}", text):
                counts[key] = int(text)
            else:
                self.report(f"{path}.{key}", "not a count", value, 'a whole number, e.g. "8"')
        return counts


Counts = dict[str, dict[str, int]]


def _unfit(
    labels: dict[str, str], counts: Counts, spec: dict[str, Any], conditions: list[dict[str, Any]]
) -> str | None:
    """Why no plan can use a node, or None."""
    resources = {**counts["capacity"], **counts["allocatable"]}
    named = any(labels.get(key) for key in (PRODUCT, AMD_PRODUCT, AMD_DEVICE, GKE))
    sliced = any(count and ("/mig-" in key or "_nps" in key) for key, count in resources.items())
    if not named and not any(resources.values()):
        return "without GPUs"
    ready = [condition.get("status") for condition in conditions if condition.get("type") == "Ready"]
    if ready and ready[-1] != "True":
        return "not ready"
    if spec.get("unschedulable") is True:
        return "cordoned"
    if sliced or products.is_split(labels.get(PRODUCT, "")) or labels.get(GKE_SLICE):
        return "with split GPUs (MIG or partitions)"
    return None


def _node(name: str, labels: dict[str, str], counts: Counts, taints: list[dict[str, Any]]) -> Node | str:
    """The node, or why no plan can use it."""
    product, named_by, accelerator = _product(labels)
    gpus, remarks = _gpus(labels, counts)
    if isinstance(gpus, str):
        return gpus
    memory = int(labels[MEMORY]) if labels.get(MEMORY) else None
    if accelerator and memory is not None and not products.same_memory(accelerator, memory):
        remarks.append(f"{memory:,} MiB of GPU memory is not that of {accelerator}")
        accelerator = None
    kept = {key: labels[key] for key in (PRODUCT, COUNT, AMD_PRODUCT, AMD_DEVICE, GKE, *MACHINES) if labels.get(key)}
    return Node(name, product, named_by, accelerator, gpus, memory, kept, _taints(taints), tuple(remarks))


def _product(labels: dict[str, str]) -> tuple[str, str, str | None]:
    """What the GPU is called, the label that says so, and its name in the catalog."""
    for key in (PRODUCT, AMD_PRODUCT):
        if labels.get(key):
            return products.bare(labels[key]), key, products.of_product(labels[key])
    device = labels.get(AMD_DEVICE) or next(
        (
            key.rpartition(".")[2]
            for key in labels
            if f"{AMD_DEVICE}." in key and _VALUE.fullmatch(key.rpartition(".")[2])
        ),
        "",
    )
    if device:
        return f"AMD device {device}", AMD_DEVICE, products.of_device(device)
    if labels.get(GKE):
        return labels[GKE], GKE, products.of_gke(labels[GKE])
    for key in MACHINES:
        if labels.get(key):
            return labels[key], key, products.of_machine(labels[key])
    return "", "", None


def _gpus(labels: dict[str, str], counts: Counts) -> tuple[int | str, list[str]]:
    """GPUs of a node that pods can get, and what is to be said about the number; or why there are none."""
    labelled = int(labels.get(COUNT) or 0)
    replicas = int(labels.get(REPLICAS) or labels.get(GKE_CLIENTS) or 1)
    offered = _offered(counts)
    if products.is_shared(labels.get(PRODUCT, "")) or replicas > 1:
        whole = labelled or (offered // replicas if offered and replicas > 1 else 0)
        remark = "the GPUs are shared by several containers today; a plan takes them whole"
        return whole or "with shared GPUs of unknown number", [remark]
    if offered is not None:
        differs = labelled and labelled != offered
        remarks = [f"{COUNT} says {labelled}, {offered} can be allocated"] if differs else []
        return offered or "whose GPUs cannot be allocated", remarks
    remark = "no nvidia.com/gpu among the node's resources: the number is that of the label"
    return labelled or "whose GPUs cannot be allocated", [remark]


def _offered(counts: Counts) -> int | None:
    """GPUs that the node offers to pods; a plugin of the other maker may offer none beside them."""
    for key in ("allocatable", "capacity"):
        found = [counts[key][name] for name in RESOURCES if name in counts[key]]
        if found:
            return max(found)
    return None


def _taints(taints: list[dict[str, Any]]) -> tuple[str, ...]:
    """Taints that a pod must tolerate beyond the usual ones, as kubectl writes them."""
    texts = []
    for taint in taints:
        key, value, effect = (str(taint.get(part) or "") for part in ("key", "value", "effect"))
        if not key.startswith(_OWN_TAINTS):
            texts.append(f"{key}{'=' if value else ''}{value}:{effect}")
    return tuple(texts)
