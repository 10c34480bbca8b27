"""The instance: everything a solve needs, typed, frozen and checked."""

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import Field

from models.base import Described
from models.given import CurrentPool, Measured
from models.hardware import Hardware
from models.llm import Llm
from models.tiers import Tier
from models.workload import Billing, Limits, Objective, Schemes, Service, Workload


class Instance(Described):
    """One deployment question. Files are YAML; see `inferplan schema` for every key and unit."""

    schema_version: Literal[1] = Field(alias="schema")
    """Version of the format: 1."""
    name: str
    about: str = ""
    hardware: Hardware
    tiers: dict[str, Tier] = Field(default_factory=dict)
    """Places that keep context state beside the GPU, fastest first; `hbm`, what a plan leaves free, is always there."""
    models: Annotated[dict[str, Llm], Field(min_length=1)]
    workloads: Annotated[dict[str, Workload], Field(min_length=1)]
    measured: dict[str, Measured] = Field(default_factory=dict)
    """Units with measured rates."""
    service: Service = Field(default_factory=Service)
    schemes: Schemes = Field(default_factory=Schemes)
    billing: Billing = Field(default_factory=Billing)
    objective: Objective = "effective_cost"
    limits: Limits = Field(default_factory=Limits)
    current: list[CurrentPool] = Field(default_factory=list)
    """What runs today; it is evaluated as it stands."""

    @property
    def rate(self) -> float:
        """Arrivals of all workloads, in requests/s."""
        return sum(workload.rate for workload in self.workloads.values())

    @property
    def drops(self) -> bool:
        """Whether some requests may be turned away."""
        return any(workload.minimum_share < 1.0 for workload in self.workloads.values())

    @property
    def reuses(self) -> bool:
        """Whether state is kept for later: prefixes come back, or requests wait for tools."""
        return any(workload.reuse or workload.tool_wait for workload in self.workloads.values())

    def startup(self, group: str) -> float:
        """Seconds from stopped to ready for units on ``group`` where the service states no steps."""
        own = self.hardware.groups[group].startup
        return self.service.startup if own is None else own

    def document(self) -> dict[str, Any]:
        """The resolved instance as plain data with units, which reads back as the same instance."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def sha256(self) -> str:
        """Digest of the resolved document, whatever the comments and order of the file."""
        return digest(self.document())


def digest(document: dict[str, Any]) -> str:
    """SHA-256 of a resolved document."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
