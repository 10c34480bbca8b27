"""Rows that a grouped GEMM pads, and micro-batches through stages."""

import math
from dataclasses import dataclass

from models.layer.asked import Padding, Pipeline
from solver import pipeline
from solver.formulas import pipeline as closed
from solver.formulas import tiles
from solver.layer.shape import experts_of


@dataclass(frozen=True)
class Ran:
    """Rows that run."""

    rows: float
    ratio: float
    """Over the valid ones."""
    flops: float | None
    """Unknown without a model or a shape."""


@dataclass(frozen=True)
class Padded:
    """The answer to `tiles`."""

    valid: Ran
    non_empty: Ran
    """Experts that have rows are padded."""
    every: Ran
    """Those without rows take a tile too."""


def padded(asked: Padding) -> Padded:
    """The answer to a `tiles` section."""
    expert = experts_of(asked).expert if asked.model or asked.expert else None
    valid = sum(asked.rows)
    counts = (valid, *(tiles.padded_rows(asked.rows, asked.tile, empty) for empty in (False, True)))
    return Padded(*(Ran(rows, rows / valid, expert.flops(rows) if expert else None) for rows in counts))


@dataclass(frozen=True)
class Limit:
    """How much slower a stage may become when stages overlap."""

    stage: str
    factor: float | None
    """At which nothing is saved any more; None: without a limit."""


@dataclass(frozen=True)
class Token:
    """When a token goes on."""

    token: str
    seconds: float
    """After its own experts."""
    at_barrier_s: float
    """After those of all tokens."""


@dataclass(frozen=True)
class Piped:
    """The answer to `pipeline`."""

    serial_s: float
    """One stage at a time."""
    pipelined_s: float
    saving_s: float
    """What may be added to the pipeline until it takes as long."""
    period_s: float
    """Of one micro-batch once the pipeline is full: the slowest stage."""
    first_s: float
    """When the first micro-batch is done."""
    with_contention_s: float | None
    with_late_parts_s: float | None
    """When the last part is done, with parts that are there later."""
    limits: tuple[Limit, ...]
    tokens: tuple[Token, ...]


def piped(asked: Pipeline) -> Piped:
    """The answer to a `pipeline` section."""
    names, times, count = list(asked.stages), list(asked.stages.values()), asked.batches
    whole = [taken * count for taken in times]
    even = pipeline.split(whole, count)
    factors = [asked.slower.get(stage, 1.0) for stage in names]
    own = pipeline.token_seconds(list(asked.tokens.values()), asked.merge) if asked.tokens else []
    joint = pipeline.token_seconds(list(asked.tokens.values()), asked.merge, barrier=True) if asked.tokens else []
    return Piped(
        closed.serial_seconds(times, count),
        pipeline.total(even),
        closed.pipeline_saving(times, count),
        max(times),
        pipeline.finished(even)[0][-1],
        pipeline.total(pipeline.split(whole, count, factors)) if asked.slower else None,
        pipeline.finished(even, asked.ready)[-1][-1] if asked.ready else None,
        tuple(_limit(stage, whole, count, index) for index, stage in enumerate(names)),
        tuple(Token(*row) for row in zip(asked.tokens, own, joint, strict=True)),
    )


def _limit(stage: str, whole: list[float], count: int, index: int) -> Limit:
    factor = pipeline.contention_limit(whole, count, (index,))
    return Limit(stage, factor if math.isfinite(factor) else None)
