"""A trace as the workload of an instance: rate, mean lengths, and the parts of its prompts that come back.

Hot blocks become a system prompt, the others a conversation. Shares are of requests, such that a share times
`tokens_per_hit` is the tokens that a request finds in the mean; what a request leaves is counted in whole blocks, since
that is what memory holds and what is written.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from models.reuse import CurvePoint, Reuse
from solver.trace.reuse import Class, curve, steady_curve, steady_third
from solver.trace.reuse import Reuse as Counts

LEAST_AGE = 1e-3
"""Seconds; requests of one moment count as so far apart."""
AGE_DIGITS, DIGITS = 6, 4
"""Of ages, and of shares, that are told."""
LEAST_SHARE = 1e-6
"""Of a point of a curve."""


@dataclass(frozen=True)
class Fitted:
    """What an instance says of a workload."""

    rate: float | None
    """Requests/s; None where all come at once."""
    input: int
    output: int
    parts: tuple[Reuse, ...]
    """In the order of the prompt; none where nothing comes back."""
    steady: bool
    """Whether the curve is that of a trace without beginning."""
    folded: bool
    """Whether hot blocks are part of the conversation, since fewer requests read one than find any of their history."""
    capped: int | None
    """Tokens that a request finds that finds any, where that is more than the mean input has room for."""


def fit(counts: Counts, block_tokens: int, seconds: float, steady: bool = True) -> Fitted:
    """The workload of the requests that count, which came in ``seconds``."""
    requests = counts.requests
    whole = max(2, round(counts.inputs / requests)) if requests else 2
    rate = requests / seconds if seconds > 0.0 and requests else None
    prompt = _prompt(counts, block_tokens, whole)
    talk, capped = _conversation(counts.other, counts, block_tokens, whole, prompt, steady)
    folded = prompt is not None and talk is not None and talk.curve is not None and talk.curve[-1].share > prompt.share
    if folded:
        prompt = None
        talk, capped = _conversation(counts.all, counts, block_tokens, whole, None, steady)
    parts = tuple(part for part in (prompt, talk) if part is not None)
    output = max(1, round(counts.outputs / requests)) if requests else 1
    return Fitted(rate, whole, output, parts, steady, folded, capped)


def _prompt(counts: Counts, size: int, whole: int) -> Reuse | None:
    hot, blocks = counts.hot, counts.hot_blocks
    if not hot.readers or not hot.tokens:
        return None
    tokens = min(max(1, round(hot.tokens / hot.readers)), whole - 1)
    chains = min(counts.chains, max(1, round(blocks * size / tokens))) if counts.chains > 1 else 1
    return Reuse(
        kind="system-prompt", tokens_per_hit=tokens, share=min(1.0, hot.readers / counts.requests), distinct=chains
    )


def _conversation(
    kind: Class, counts: Counts, size: int, whole: int, before: Reuse | None, steady: bool
) -> tuple[Reuse | None, int | None]:
    room = whole - 1 - (before.tokens_per_hit if before else 0)
    shares = steady_curve(kind) if steady else curve(kind.ages, kind.tokens)
    again = steady_third(kind) if steady else kind.third
    if not shares or not kind.requests or room < 1 or again is None:
        return None, None
    each = kind.tokens / counts.requests
    finds = max(1, round(kind.again[1] / kind.requests), round(shares[-1][1] * each))
    tokens = min(finds, room)
    kept = max(round(kind.accesses * size / counts.requests), 1)
    points = list(_rising((age, min(1.0, share * each / tokens)) for age, share in shares))
    if not points:
        return None, None
    kept = max(kept, -int(-points[-1].share * tokens // 1))
    part = Reuse(tokens_per_hit=tokens, tokens_kept=kept, curve=points, again=float(f"{min(1.0, again):.{DIGITS}g}"))
    return part, finds if finds > tokens else None


def _rising(points: Iterable[tuple[float, float]]) -> list[CurvePoint]:
    """Points as instances take them: ages above 0 and rising."""
    found: list[tuple[float, float]] = []
    for age, share in points:
        later, told = float(f"{max(age, LEAST_AGE):.{AGE_DIGITS}g}"), float(f"{share:.{DIGITS}g}")
        if share < LEAST_SHARE:
            continue
        if found and found[-1][0] >= later:
            found.pop()
        found.append((later, told))
    return [CurvePoint.model_validate({"age": f"{age!r} s", "share": share}) for age, share in found]
