"""Context state as a function of length: layers keep all tokens, those of a window, or a state of constant size
(sections 9.2.2 and 9.5.1).

Everything that grows with the context is linear in two counts, the tokens that full layers see and those that sliding
layers see; a part of the layers (a pipeline stage) has a share of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from models.attention import FULL, LINEAR, SLIDING
from solver.formulas import parallel, state, work


@dataclass(frozen=True)
class Tokens:
    """Tokens, or query-key pairs, of a layer with full attention and of a sliding one."""

    full: float
    window: float = 0.0


def mean(weighted: Sequence[tuple[float, Tokens]]) -> Tokens:
    """Weighted mean."""
    total = sum(weight for weight, _ in weighted)
    full = sum(weight * tokens.full for weight, tokens in weighted)
    return Tokens(full / total, sum(weight * tokens.window for weight, tokens in weighted) / total)


@dataclass(frozen=True)
class Shares:
    """Part of a model: its full and sliding layers over all that see tokens, its linear ones over all of those."""

    full: float
    sliding: float = 0.0
    linear: float = 0.0

    def of(self, tokens: Tokens) -> float:
        """Tokens that its layers see, as a mean over all layers of the model that see any."""
        return self.full * tokens.full + self.sliding * tokens.window


@dataclass(frozen=True)
class Layers:
    """What the layers of a model see."""

    kinds: tuple[str, ...] = ()
    """Of each layer; none: all have full attention."""
    window: float = 0.0
    """Tokens that sliding layers see, the newest one included."""

    @property
    def linear(self) -> int:
        """Layers with linear attention."""
        return self.kinds.count(LINEAR)

    def shares(self, share: float = 1.0, part: range | None = None) -> Shares:
        """Of a part with ``share`` of the layers, by number; where none are named, of each kind alike."""
        if not self.kinds:
            return Shares(share)
        here, scale = (self.kinds, share) if part is None else (self.kinds[part.start : part.stop], 1.0)
        seeing, linear = max(1, len(self.kinds) - self.linear), max(1, self.linear)
        return Shares(
            scale * here.count(FULL) / seeing, scale * here.count(SLIDING) / seeing, scale * here.count(LINEAR) / linear
        )

    def kept(self, tokens: float) -> Tokens:
        """Tokens whose state is kept of a request of ``tokens`` tokens."""
        return Tokens(tokens, state.windowed_tokens(tokens, self.window))

    def pairs(self, new: float, cached: float) -> Tokens:
        """Query-key pairs of a prefill of ``new`` tokens behind ``cached`` ones."""
        return Tokens(work.causal_pairs(new, cached), work.windowed_pairs(new, cached, self.window))

    def context(self, input_tokens: float, output: float) -> Tokens:
        """Mean context of the decode calls of a request."""
        return Tokens(
            state.mean_context(input_tokens, output), state.windowed_context(input_tokens, output, self.window)
        )


@dataclass(frozen=True)
class State:
    """Context state of one request."""

    layers: Layers
    per_token: float
    """Bytes of a token in all layers that see tokens."""
    heads: int
    """KV heads that it is cut by; an MLA state counts as one."""
    constant: float = 0.0
    """Bytes of all layers with linear attention, whatever the length."""

    def at(self, tokens: float) -> float:
        """Bytes of a request of ``tokens`` tokens."""
        return self.held(self.layers.kept(tokens), self.layers.shares(), 1)

    def held(self, tokens: Tokens, shares: Shares, tp: int) -> float:
        """Bytes on one of ``tp`` GPUs that hold ``shares`` of the layers."""
        cut = parallel.state_share(self.heads, tp)
        return (
            state.state_bytes(tokens.full, self.per_token * shares.full * cut)
            + state.state_bytes(tokens.window, self.per_token * shares.sliding * cut)
            + shares.linear * self.constant / tp
        )

    def read(self, requests: float, context: Tokens, shares: Shares, tp: int) -> float:
        """Bytes that a decode step of so many requests moves on one of those GPUs."""
        cut = parallel.state_share(self.heads, tp)
        return (
            shares.full * (work.decode_kv_read_bytes(requests, context.full, self.per_token) * cut)
            + shares.sliding * (work.decode_kv_read_bytes(requests, context.window, self.per_token) * cut)
            + requests * shares.linear * work.recurrent_traffic_bytes(self.constant) / tp
        )
