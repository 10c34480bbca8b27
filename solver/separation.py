"""Handoffs of a whole request: once after prefill (PD), or there and back in every layer of every step (AF).

Transfers only, one after the other; what overlaps with computing is not counted (section 9.3.4).
"""

import math
from dataclasses import dataclass

from models.llm import Llm
from solver import shapes
from solver.attention import State
from solver.formulas import handoff, separation, state


@dataclass(frozen=True)
class Handoffs:
    """What a model hands over, and the link that it goes over."""

    layers: int
    """Layers whose feed-forward network is elsewhere."""
    hidden: int
    activation_bytes: float
    """Of an element of an activation."""
    kept: State
    """Context state by its length."""
    link: float
    """B/s, one direction."""
    startup: float
    """Seconds of each transfer."""

    @property
    def messages(self) -> float:
        """Transfers of a step under AF."""
        return separation.layer_messages(self.layers)

    def step_bytes(self, tokens: float = 1.0) -> float:
        """Bytes of a step of ``tokens`` tokens under AF."""
        return separation.layer_bytes(self.layers, self.hidden, self.activation_bytes, tokens)

    def step_seconds(self, tokens: float = 1.0) -> float:
        """Seconds of the transfers of a step under AF; a prefill is a step of all its tokens."""
        return separation.messages_seconds(self.step_bytes(tokens), self.messages, self.link, self.startup)

    def af_seconds(self, tokens: float, output: float) -> float:
        """A whole request under AF: its prefill, then a step for each further token."""
        return self.step_seconds(tokens) + state.decode_calls(output) * self.step_seconds()

    def pd_seconds(self, tokens: float, output: float) -> float:
        """A whole request under PD: one handoff of the input's state, none when prefill gives all the output."""
        if output <= 1:
            return 0.0
        payload = self.kept.at(tokens)
        return handoff.transfer_seconds(payload, self.link, self.startup)

    def critical_startup(self, tokens: float) -> float:
        """Startup below which one AF decode step is quicker than one PD handoff."""
        payload = self.kept.at(tokens)
        return separation.critical_startup(payload, self.step_bytes(), self.messages, self.link)

    def dearer_after(self, tokens: float) -> float:
        """Decode steps after which AF has taken longer than the one PD handoff, prefill apart."""
        return float(math.floor(self.pd_seconds(tokens, 2) / self.step_seconds()) + 1)


def handoffs(llm: Llm, link: float, startup: float, state_of: Llm | None = None) -> Handoffs:
    """A model's handoffs over a link; ``state_of`` another model when its context state is handed over instead."""
    return Handoffs(
        llm.num_hidden_layers, llm.hidden_size, shapes.BYTES["bf16"], shapes.state_of(state_of or llm), link, startup
    )
