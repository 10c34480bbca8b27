"""AF against PD over a step and over whole requests: handoffs only."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from models.layer.asked import Separation
from solver.crossovers import Flip, around, changes
from solver.formulas import handoff, separation, state
from solver.separation import Handoffs, handoffs


@dataclass(frozen=True)
class OneHandoff:
    """PD: the state of the input, once."""

    bytes: float
    payload_s: float
    seconds: float
    in_parts_s: float
    """The same bytes in as many transfers as a step under AF has."""
    most_per_s: float
    """Handoffs that the link carries."""
    needed: float | None
    """B/s for the rate that is stated."""


@dataclass(frozen=True)
class EveryLayer:
    """AF: there and back in every layer."""

    messages: int
    """Of a step."""
    message_bytes: float
    step_bytes: float
    step_payload_s: float
    step_startup_s: float
    step_s: float
    prefill_bytes: float
    prefill_s: float


@dataclass(frozen=True)
class Request:
    """A whole request."""

    output: int
    steps: int
    pd_s: float
    decode_s: float
    """All its decode steps under AF."""
    decode_over_pd: float | None
    """None where nothing is handed over."""
    af_s: float
    """Prefill and decode steps under AF."""
    quicker: str
    """`af` or `pd`, prefill included."""


@dataclass(frozen=True)
class Separated:
    """The answer."""

    pd: OneHandoff
    af: EveryLayer
    step_quicker: str
    """`af` or `pd`: one step against one handoff."""
    critical_startup_s: float | None
    """Below it a step under AF is quicker than the handoff; None: never."""
    af_dearer_from_step: int
    """Decode steps from which AF has taken longer than the handoff, prefill apart."""
    requests: tuple[Request, ...]
    crossovers: tuple[Flip, ...]


def separated(asked: Separation) -> Separated:
    """The answer to a `separate` section."""
    both = handoffs(asked.model, asked.link, asked.startup, asked.state_of)
    payload = both.kept.at(asked.input)
    startup = both.critical_startup(asked.input)
    pd_s, steps = both.pd_seconds(asked.input, 2), both.step_bytes()
    pd = OneHandoff(
        payload,
        handoff.transfer_seconds(payload, asked.link),
        pd_s,
        separation.messages_seconds(payload, both.messages, asked.link, asked.startup),
        handoff.link_rate(asked.link, payload),
        handoff.handoff_bandwidth(asked.rate, payload) if asked.rate else None,
    )
    af = EveryLayer(
        round(both.messages),
        steps / both.messages,
        steps,
        separation.messages_seconds(steps, 0.0, asked.link, 0.0),
        separation.messages_seconds(0.0, both.messages, asked.link, asked.startup),
        both.step_seconds(),
        both.step_bytes(asked.input),
        both.step_seconds(asked.input),
    )
    return Separated(
        pd,
        af,
        _quicker(af.step_s, pd_s),
        startup if startup > 0 else None,
        round(both.dearer_after(asked.input)),
        tuple(_request(both, asked.input, output) for output in asked.output),
        tuple(_flips(asked, both, startup)),
    )


def _quicker(af: float, pd: float) -> str:
    return "af" if af < pd else "pd"


def _request(both: Handoffs, tokens: int, output: int) -> Request:
    pd_s, steps = both.pd_seconds(tokens, output), round(state.decode_calls(output))
    decode_s, af_s = steps * both.step_seconds(), both.af_seconds(tokens, output)
    return Request(output, steps, pd_s, decode_s, decode_s / pd_s if pd_s else None, af_s, _quicker(af_s, pd_s))


def _flips(asked: Separation, both: Handoffs, startup: float) -> Iterator[Flip]:
    """The startup of one step, the output from which AF has taken longer, then startup and link of each output.

    Prefill apart: a prefill under AF hands over more than its state wherever KV heads are no wider than the model.
    """
    if startup > 0:
        yield Flip("separate.startup", "one step", startup, "s", "af", "pd", asked.startup)
    dearer = both.dearer_after(asked.input) + 1.0  # the first token needs no step
    if math.isfinite(dearer):
        yield Flip("separate.output", "decode", dearer, "tokens", "af", "pd", float(asked.output[0]))
    for output in asked.output:
        for key, stated, unit in (("startup", both.startup, "s"), ("link", both.link, "B/s")):
            for value, below, above in changes(partial(_moved, both, asked.input, output, key), around(stated)):
                yield Flip(f"separate.{key}", f"decode of {output} tokens", value, unit, below, above, stated)


def _moved(both: Handoffs, tokens: int, output: int, key: str, value: float) -> str:
    moved = replace(both, startup=value) if key == "startup" else replace(both, link=value)
    found = _request(moved, tokens, output)
    return _quicker(found.decode_s, found.pd_s)
