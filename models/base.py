"""What every described thing has in common: frozen, unknown keys refused, whole numbers kept whole."""

from pydantic import BaseModel, ConfigDict


class Described(BaseModel):
    """A frozen pydantic model that refuses unknown keys and takes only finite numbers."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        populate_by_name=True,
        protected_namespaces=(),
        defer_build=True,
        strict=True,
    )
