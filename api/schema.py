"""The JSON Schema of instance files, catalog shorthands included, and of plans."""

from typing import Any

from models import catalog
from models.instance import Instance
from models.plan import Plan

_SHORT = {"Accelerator": "accelerators", "Link": "links", "Llm": "models"}


def document(what: str) -> dict[str, Any]:
    """The schema of an `instance` or a `plan`."""
    if what == "plan":
        return Plan.model_json_schema(by_alias=True)
    schema = Instance.model_json_schema(by_alias=True)
    for name, kind in _SHORT.items():
        described = schema["$defs"][name]
        entry = {
            "type": "string",
            "enum": list(catalog.names(kind)),
            "description": "A catalog entry; keys beside it win.",
        }
        described["properties"]["catalog"] = entry
        own = [key for key in described.pop("required", []) if key not in ("weights", "kv")]
        wanted = [key for key in own if key == "connects"]  # the catalog knows no places
        rest = [key for key in own if key not in wanted]
        described["anyOf"] = [{"required": ["catalog", *wanted]}, {"required": [*wanted, *rest]}]
    group = schema["$defs"]["Group"]
    names = {"type": "string", "enum": list(catalog.names("accelerators"))}
    group["properties"]["accelerator"] = {"anyOf": [names, group["properties"]["accelerator"]]}
    group["required"] = ["servers"]
    group["anyOf"] = [{"required": ["server"]}, {"required": ["accelerator", "per_server"]}]
    schema["$defs"]["Link"]["properties"]["duplex"]["enum"] = ["shared", "per-direction", "full"]
    return schema
