"""The JSON Schema of instance files, catalog shorthands included, of plans, and of the files of questions."""

import ast
import inspect
import itertools
import textwrap
from typing import Any

from models import catalog
from models.base import Described
from models.instance import Instance
from models.layer.asked import LayerQuestion
from models.plan import Plan
from models.routing import Routing
from models.transition import Transition
from models.workload import READ_AS

_SHORT = {"Accelerator": "accelerators", "Link": "links", "Llm": "models"}


def document(what: str) -> dict[str, Any]:
    """The schema of an `instance`, a `plan`, or a question, with what each key means."""
    other: dict[str, type[Described]] = {
        "plan": Plan,
        "routing": Routing,
        "transition": Transition,
        "layer": LayerQuestion,
    }
    if what in other:
        return _explained(other[what].model_json_schema(by_alias=True), other[what])
    schema = _explained(Instance.model_json_schema(by_alias=True), Instance)
    for name, kind in _SHORT.items():
        described = schema["$defs"][name]
        entry = {"type": "string", "enum": list(catalog.names(kind)), "description": "An entry; keys beside it win."}
        described["properties"]["catalog"] = entry
        own = [key for key in described.pop("required", []) if key not in ("weights", "kv")]
        wanted = [key for key in own if key == "connects"]  # the catalog knows no places
        described["anyOf"] = [{"required": ["catalog", *wanted]}, {"required": own}]
    llm = schema["$defs"]["Llm"]["properties"]
    llm["handoff_state"]["anyOf"] = [llm["catalog"], {"$ref": "#/$defs/Llm"}]
    group = schema["$defs"]["Group"]
    names = {"type": "string", "enum": list(catalog.names("accelerators"))}
    group["properties"]["accelerator"] = {"anyOf": [names, {"$ref": "#/$defs/Accelerator"}]}
    group["required"] = ["servers"]
    group["anyOf"] = [{"required": ["server"]}, {"required": ["accelerator", "per_server"]}]
    links = {"type": "string", "enum": list(catalog.names("links"))}
    group["properties"]["scale_up"] = {"anyOf": [links, {"$ref": "#/$defs/ScaleUp"}]}
    schema["$defs"]["ScaleUp"]["properties"]["catalog"] = links
    schema["$defs"]["ScaleUp"]["required"] = []
    for described in (schema["$defs"]["Group"], schema["$defs"]["Llm"]):
        for key in ("tp", "pp"):
            described["properties"][key]["anyOf"].append({"type": "integer", "minimum": 1})
    _workload(schema["$defs"]["Workload"])
    schema["$defs"]["Link"]["properties"]["duplex"]["enum"] = ["shared", "per-direction", "full"]
    return schema


def _workload(described: dict[str, Any]) -> None:
    """Keys that are read as others: they stand in a file, and not in what was read."""
    for key, text in READ_AS.items():
        described["properties"][key] = {"description": text, **_KINDS.get(key, {"type": "string"})}
    described["required"] = [key for key in described["required"] if key != "rate"]
    described["anyOf"] = [{"required": [key]} for key in ("rate", "users", "per_day", "arrivals")]


_KINDS = {key: {"type": "number"} for key in ("users", "per_day", "dispersion")}


def _explained(schema: dict[str, Any], top: type[Described]) -> dict[str, Any]:
    """The schema with the text under each attribute as the description of its key.

    pydantic can do this when a class is made, but then every start of the program pays for it.
    """
    for model in [top, *_below(Described)]:
        described = schema if model is top else schema.get("$defs", {}).get(model.__name__)
        if described is None:
            continue
        for name, text in _texts(model).items():
            key = model.model_fields[name].alias or name
            described["properties"][key].setdefault("description", text)
    return schema


def _below(base: type[Described]) -> list[type[Described]]:
    found = []
    for model in base.__subclasses__():
        found.extend([model, *_below(model)])
    return found


def _texts(model: type[Described]) -> dict[str, str]:
    """Attribute -> the string that stands under it in the source, those that are inherited too."""
    bases = [base for base in model.__bases__ if issubclass(base, Described) and base is not Described]
    texts: dict[str, str] = {name: text for base in bases for name, text in _texts(base).items()}
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for before, after in itertools.pairwise(statements):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
