"""What node labels and machine types call a GPU -> its name in the catalog. What is not listed is not guessed.

Sources: the product names that NVIDIA's GPU feature discovery takes from the driver, the labels of AMD's device
plugin, and the pages on GPU machine types of the three large clouds.
"""

import re

from models import catalog

_NVIDIA = {
    "A100-SXM4-80GB": "A100-SXM-80GB",
    "A100-SXM-80GB": "A100-SXM-80GB",
    "A100-PCIE-40GB": "A100-PCIe-40GB",
    "B200": "B200",
    "H100-80GB-HBM3": "H100-SXM-80GB",
    "H20": "H20-SXM5-96GB",
    "H200": "H200-SXM-141GB",
    "L40S": "L40S",
}
_AMD = re.compile(r"(?:AMD-)?INSTINCT-MI300X(?:-(?:OAM|HF|VF))?")
_AMD_DEVICES = dict.fromkeys(("74a1", "74a9", "74b5"), "MI300X")
_GKE = {
    "nvidia-a100-80gb": "A100-SXM-80GB",
    "nvidia-b200": "B200",
    "nvidia-h100-80gb": "H100-SXM-80GB",
    "nvidia-h100-mega-80gb": "H100-SXM-80GB",
    "nvidia-h200-141gb": "H200-SXM-141GB",
}
_MACHINES = {
    "p4de.24xlarge": "A100-SXM-80GB",
    "p5.4xlarge": "H100-SXM-80GB",
    "p5.48xlarge": "H100-SXM-80GB",
    "p5e.48xlarge": "H200-SXM-141GB",
    "p5en.48xlarge": "H200-SXM-141GB",
    "p6-b200.48xlarge": "B200",
    "standard_nd96amsr_a100_v4": "A100-SXM-80GB",
    "standard_nd96isr_h100_v5": "H100-SXM-80GB",
    "standard_nd96isr_h200_v5": "H200-SXM-141GB",
    "standard_nd96isr_mi300x_v5": "MI300X",
}
_SHARED = re.compile(r"-SHARED$", re.IGNORECASE)
_SPLIT = re.compile(r"-MIG-.*$", re.IGNORECASE)
_TOLERANCE = (0.9, 1.12)
"""Memory that a driver reports over what the vendor prints, for the same product."""


def of_product(label: str) -> str | None:
    """Catalog name for a product label of NVIDIA or AMD, or None."""
    plain = bare(label).upper().replace("_", "-").replace(" ", "-")
    if _AMD.fullmatch(plain):
        return _known("MI300X")
    return _known(_NVIDIA.get(plain.removeprefix("NVIDIA-")))


def of_device(identity: str) -> str | None:
    """Catalog name for a PCI device id of AMD, or None."""
    return _known(_AMD_DEVICES.get(identity.lower().removeprefix("0x")))


def of_gke(label: str) -> str | None:
    """Catalog name for the accelerator label of Google Kubernetes Engine, or None."""
    return _known(_GKE.get(label.lower()))


def of_machine(kind: str) -> str | None:
    """Catalog name for the machine type of a cloud, or None."""
    if kind.startswith("g6e."):
        return _known("L40S")
    return _known(_MACHINES.get(kind.lower()))


def bare(label: str) -> str:
    """The product without the suffixes for shared and split GPUs."""
    return _SHARED.sub("", _SPLIT.sub("", label))


def is_shared(label: str) -> bool:
    """Whether a product label says that several containers share a GPU."""
    return bool(_SHARED.search(label))


def is_split(label: str) -> bool:
    """Whether a product label is that of a slice of a GPU (MIG)."""
    return bool(_SPLIT.search(label))


def same_memory(name: str, mebibytes: int) -> bool:
    """Whether the memory that a node reports can be that of the catalog entry ``name``."""
    from models.units import BYTES, parse

    entry = catalog.entry("accelerators", name) or {}
    low, high = _TOLERANCE
    return low <= mebibytes * 2**20 / parse(entry["memory"], BYTES) <= high


def _known(name: str | None) -> str | None:
    return name if name in catalog.names("accelerators") else None
