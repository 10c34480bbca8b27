"""Experts that a question is about."""

from dataclasses import dataclass

from models.layer.asked import OfExperts
from solver.expert_work import Expert, expert_of
from solver.formulas import experts
from solver.shapes import BYTES

WEIGHTS = {"int8": 1.0, "int4": 0.5, **BYTES}
"""Bytes of a weight by precision."""


@dataclass(frozen=True)
class Experts:
    """One expert, and how many there are; 0 where nothing says it."""

    expert: Expert
    count: int
    """Of a layer."""
    chosen: int
    """By a token."""
    layers: int
    """With experts."""

    def bytes(self, count: float, layers: float = 1.0) -> float:
        """Weights of ``count`` experts in each of ``layers`` layers."""
        width = self.expert.weight_bytes
        return experts.weight_bytes(self.expert.params, width, count, layers)


def experts_of(asked: OfExperts) -> Experts:
    """The experts of a section: a shape of its own, or those of its model."""
    width = WEIGHTS[asked.weights] if asked.weights else None
    own = asked.expert
    if own is not None:
        expert = Expert(own.hidden, own.width, WEIGHTS["bf16"] if width is None else width, BYTES["bf16"])
        return Experts(expert, own.experts or 0, own.chosen or 0, own.layers or 0)
    llm = asked.model
    assert llm is not None  # checked when the file was read
    return Experts(expert_of(llm, width), llm.experts or 0, llm.num_experts_per_tok or 1, llm.sparse_layers)
