"""Made-up conversations as a trace: for tests, examples and measurements of speed. The same seed, the same trace."""

import heapq
import json
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any


@dataclass(frozen=True)
class Conversations:
    """What the conversations are like. Lengths in tokens, times in s; lognormal ones by their median and spread."""

    rate: float = 5.0
    """Sessions that begin in a second, as a Poisson process."""
    turns: float = 4.0
    """Turns of a session in the mean, geometric."""
    gap: tuple[float, float] = (120.0, 0.8)
    """From one turn to the next: median, and standard deviation of the logarithm."""
    system: int = 1024
    """A prompt that every request begins with."""
    question: tuple[float, float] = (2000.0, 1.0)
    """New input of a turn."""
    answer: tuple[float, float] = (250.0, 0.8)
    """Output of a turn, which the next turn begins with too."""
    longest: int = 131_072
    """Input of a request at most: a session ends before it would need more."""
    block_tokens: int = 512


def conversations(requests: int, like: Conversations = Conversations(), seed: int = 0) -> Iterator[dict[str, Any]]:
    """So many requests in the order of their times, as Mooncake's traces have them.

    Keys: timestamp in ms, input_length, output_length, hash_ids; a block stands for everything before it too, so two
    requests share blocks where their prompts begin alike. A last block that is not full is never shared.
    """
    draw = random.Random(seed)
    fresh = like.system // like.block_tokens
    system = list(range(fresh))
    due: list[tuple[float, int, int, list[int], int]] = []  # time, number, input so far, its whole blocks, turns left
    time = number = 0.0
    for _ in range(requests):
        while not due or time <= due[0][0]:
            heapq.heappush(due, (time, int(number), like.system, system, _turns(draw, like.turns)))
            number += 1
            time += draw.expovariate(like.rate)
        now, session, context, blocks, left = heapq.heappop(due)
        taken = min(context + _length(draw, like.question), like.longest)
        given = _length(draw, like.answer)
        count = -(-taken // like.block_tokens)
        ids = [*blocks, *range(fresh, fresh + count - len(blocks))]
        fresh += count - len(blocks)
        yield {"timestamp": round(now * 1e3), "input_length": taken, "output_length": given, "hash_ids": ids}
        if left > 1 and taken + given < like.longest:
            later = now + draw.lognormvariate(math.log(like.gap[0]), like.gap[1])
            heapq.heappush(due, (later, session, taken + given, ids[: taken // like.block_tokens], left - 1))


def _turns(draw: random.Random, mean: float) -> int:
    return 1 if mean <= 1.0 else 1 + int(math.log(1.0 - draw.random()) / math.log(1.0 - 1.0 / mean))


def _length(draw: random.Random, law: tuple[float, float]) -> int:
    return max(1, round(draw.lognormvariate(math.log(law[0]), law[1])))


def write(file: IO[bytes], records: Iterable[dict[str, Any]]) -> None:
    """Requests as JSON, one a line."""
    for record in records:
        file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
