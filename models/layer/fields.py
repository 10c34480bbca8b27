"""Fields of layer questions: entries of the catalog, and rows of experts."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from models import catalog
from models.errors import nearest, shown
from models.hardware import Accelerator, Cpu
from models.llm import Llm
from models.plain import mapping

MOST_ROWS = 1e9
MOST_EXPERTS = 4096


def described(kind: str, value: object) -> dict[str, Any] | None:
    """What stands for a name of the catalog, or for an entry with changes; None where the catalog has no such name."""
    name = mapping(value).get("catalog") if isinstance(value, dict) else value
    found = catalog.entry(kind, name) if isinstance(name, str) else {} if isinstance(value, dict) else None
    if found is None:
        return None
    merged = {**found, **{key: entry for key, entry in mapping(value).items() if key != "catalog"}}
    if kind == "models":
        fp8 = mapping(merged.get("quantization_config")).get("quant_method") == "fp8"
        merged = {"weights": "fp8" if fp8 else "bf16", "kv": "bf16", **merged}
    return merged


@dataclass(frozen=True)
class FromCatalog:
    """Marks a field that may be a name of the catalog, `{catalog: NAME, ...}` with changes, or a description."""

    kind: str

    def read(self, value: object) -> object:
        """The description that stands for ``value``."""
        found = described(self.kind, value)
        if found is not None:
            return found
        name = mapping(value).get("catalog") if isinstance(value, dict) else value
        known = catalog.names(self.kind)
        reason = "is no name of the catalog"
        if isinstance(name, str) and (guess := nearest(name, known)):
            reason += f"; {guess}"
        accepted = ", ".join(known)
        context = {"message": f"{shown(name)} {reason}", "reason": reason, "accepted": accepted}
        raise PydanticCustomError("catalog", "{message}", context)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        names = {"type": "string", "enum": list(catalog.names(self.kind))}
        changed = {"type": "object", "properties": {"catalog": names}, "required": ["catalog"]}
        own = handler(schema)
        full = handler.resolve_ref_schema(own)
        full["required"] = [key for key in full["required"] if key not in ("weights", "kv")]  # see `described`
        return {"anyOf": [names, changed, own]}


def _row(value: object) -> object:
    needed = f"a number from 0 to {MOST_ROWS:,.0f}"
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None:
        reason = "is not a number of rows"
    elif not math.isfinite(number):
        reason = "is not finite"
    elif number < 0:
        reason = "is negative"
    elif number > MOST_ROWS:
        reason = "is too large"
    else:
        return float(number)
    raise PydanticCustomError("rows", "{message}", {"message": reason, "reason": reason, "accepted": needed})


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


CatalogLlm = Annotated[Llm, FromCatalog("models")]
CatalogGpu = Annotated[Accelerator, FromCatalog("accelerators")]
CatalogCpu = Annotated[Cpu, FromCatalog("cpus")]
Rows = Annotated[float, BeforeValidator(_row)]
RowList = Annotated[list[Rows], Field(min_length=1, max_length=MOST_EXPERTS)]
OneOrMore = BeforeValidator(_listed)
"""A single value is a list of one."""
Index = Annotated[int, Field(ge=0, le=MOST_EXPERTS - 1)]
"""Of an expert, a card or a socket, counted from 0."""
