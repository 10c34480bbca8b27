"""Lists of Kubernetes nodes for tests, in the shape that `kubectl get nodes -o json` prints."""

from typing import Any

READY = {"type": "Ready", "status": "True"}
PRODUCT, COUNT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.memory"
H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3", COUNT: "8", MEMORY: "81559"}
L40S = {PRODUCT: "NVIDIA-L40S", COUNT: "4", MEMORY: "46068"}


def node(name: str, labels: dict[str, str] | None = None, gpus: int | None = None, **more: Any) -> dict[str, Any]:
    """A node that is ready; `spec`, `status` and `resource` change it."""
    resources: dict[str, Any] = {"cpu": "191450m", "memory": "2113458404Ki", "pods": "110"}
    if gpus is not None:
        resources[more.get("resource", "nvidia.com/gpu")] = str(gpus)
    status = {
        "allocatable": resources,
        "capacity": resources,
        "conditions": [{"type": "MemoryPressure", "status": "False"}, READY],
        "images": [{"names": ["registry.example/engine:1"], "sizeBytes": 12}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"providerID": f"test:///{name}", **more.get("spec", {})},
        "status": {**status, **more.get("status", {})},
    }


def listed(*nodes: Any, kind: str = "List") -> dict[str, Any]:
    """What kubectl prints."""
    return {"apiVersion": "v1", "kind": kind, "items": list(nodes), "metadata": {"resourceVersion": ""}}
