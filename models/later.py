"""Keys of the instance format that are known but not built yet: refused, never ignored."""

KEYS: dict[str, frozenset[str]] = {
    "": frozenset({"offers", "periods", "scenarios", "finance", "frontier", "cases"}),
    "hardware": frozenset({"sites", "numa", "cpus"}),
    "hardware.efficiency": frozenset({"file", "model"}),
    "hardware.groups.*": frozenset({"at", "retire", "resale", "power", "host_memory", "drives"}),
    "hardware.links.*": frozenset({"within", "price", "multipath"}),
    "hardware.stores.*": frozenset({"price", "nodes"}),
    "models.*": frozenset({"adapters", "parallelism"}),
    "workloads.*": frozenset({"priority", "deadline"}),
    "workloads.*.targets": frozenset({"e2e"}),
    "limits.spare": frozenset({"servers"}),
    "limits": frozenset({"budget", "power", "racks", "vendor_share", "efficiency_margin", "pin", "forbid"}),
    "service": frozenset({"simulate"}),
}
"""Path pattern (`*` is any name) -> keys that are known there."""


def key_is_later(parent: tuple[str | int, ...], key: str) -> bool:
    """Whether ``key`` under ``parent`` is known but not built yet."""
    for pattern, keys in KEYS.items():
        parts = pattern.split(".") if pattern else []
        same = len(parts) == len(parent) and all(a in ("*", b) for a, b in zip(parts, parent, strict=True))
        if same and key in keys:
            return True
    return False
