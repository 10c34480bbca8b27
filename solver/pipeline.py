"""Micro-batches through stages, each of which works on one at a time: when each is done, even or not.

The recurrence is exact for any times; for equal micro-batches it gives the closed form of
:mod:`solver.formulas.pipeline` (sections 9.3.4 and 9.4.3).
"""

from collections.abc import Sequence

from solver.formulas import pipeline


def finished(times: Sequence[Sequence[float]], ready: Sequence[float] | None = None) -> list[list[float]]:
    """Second at which each micro-batch leaves each stage; ``times[i][s]`` are those of micro-batch i in stage s.

    A stage starts on a micro-batch when the one before has left it, and when this one has left the stage before; the
    first stage not before the micro-batch is ``ready``.
    """
    done: list[list[float]] = []
    for index, row in enumerate(times):
        arrived = ready[index] if ready else 0.0
        left: list[float] = []
        for stage, taken in enumerate(row):
            free = done[-1][stage] if done else 0.0
            arrived = max(arrived, free) + taken
            left.append(arrived)
        done.append(left)
    return done


def total(times: Sequence[Sequence[float]]) -> float:
    """Second at which the last micro-batch leaves the last stage."""
    return finished(times)[-1][-1]


def split(stages: Sequence[float], batches: int, slowed: Sequence[float] | None = None) -> list[list[float]]:
    """A batch in equal micro-batches, each stage by its factor the slower for what it shares with others."""
    factors = slowed or [1.0] * len(stages)
    return [[taken * factor / batches for taken, factor in zip(stages, factors, strict=True)]] * batches


def contention_limit(stages: Sequence[float], batches: int, slowed: Sequence[int]) -> float:
    """Factor on the stages that ``slowed`` names at which micro-batches take as long as the batch in one piece."""
    parts = [taken / batches for taken in stages]
    kept = [taken for stage, taken in enumerate(parts) if stage not in slowed]
    return pipeline.slowdown_limit(kept, [parts[stage] for stage in slowed], batches)


def token_seconds(paths: Sequence[Sequence[float]], merge: float = 0.0, barrier: bool = False) -> list[float]:
    """When each token goes on: after the last of its own experts, or, at a barrier, after the last of all tokens."""
    own = [pipeline.merge_seconds(each, merge) for each in paths]
    return [max(own)] * len(own) if barrier else own
