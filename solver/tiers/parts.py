"""Parts of prompts that come back: how much of each is found within an age, and what requests leave of it.

Everything is per request of the workload and in bytes of state.
"""

import bisect
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from models.instance import Instance
from models.reuse import Reuse
from models.workload import Workload
from solver import physics
from solver.formulas import retention, state
from solver.physics import Shape

NOBODY = 1e-12
"""Share that counts as none: times that scatter leave such at ages far below them, and linear programs get lost."""


@dataclass(frozen=True)
class Part:
    """A part of the prompt of a workload."""

    workload: str
    number: int
    """Among the parts of its workload, in the order of the prompt."""
    said: Reuse
    rate: float
    """Requests/s of the workload."""
    hit: float
    """Bytes found again by a request that finds them."""
    kept: float
    """Bytes that a request leaves, mean over all."""

    @property
    def prompt(self) -> bool:
        """Whether it is a system prompt, of which there are few different ones."""
        return self.said.kind == "system-prompt"

    def mean(self, copies: float) -> float:
        """Mean seconds between two uses of a system prompt, in one of so many places that see requests in turn."""
        return self.said.distinct * copies / (self.rate * self.said.share)

    @property
    def most(self) -> float:
        """Requests that ever find it, as a share."""
        return self.said.share if self.prompt else self._distribution[2]

    @property
    def again(self) -> float:
        """Of those that find it, the share whose state had been found before: by chance unless stated."""
        if self.prompt:
            return 1.0
        return self.said.again if self.said.again is not None else min(1.0, self.hit * self.most / self.kept)

    def found(self, age: float, copies: float = 1.0) -> float:
        """Share of the requests that find it within ``age``; ``copies`` places see requests in turn."""
        if self.prompt:
            return self.most * retention.exponential_share(age, self.mean(copies))
        share = self._distribution[0](age) / copies
        return share if share > NOBODY else 0.0

    def integral(self, age: float, copies: float = 1.0) -> float:
        """That, integrated over ages from 0, in s."""
        if self.prompt:
            return self.most * retention.exponential_integral(age, self.mean(copies))
        return self._distribution[1](age) / copies

    @cached_property
    def _distribution(self) -> tuple[Callable[[float], float], Callable[[float], float], float]:
        """Found within an age, its integral, and the share that returns at all; of a conversation."""
        said, returns = self.said.interval, self.said.returns or 0.0
        if said is None:
            points = [(0.0, 0.0), *((one.age, one.share) for one in self.said.curve or [])]
            return _curve(points)
        if said.mean is not None:
            mean = said.mean
            return (
                lambda age: returns * retention.exponential_share(age, mean),
                lambda age: returns * retention.exponential_integral(age, mean),
                returns,
            )
        both = said.median or 1.0, said.p90 or 2.0
        return (
            lambda age: returns * retention.lognormal_share(age, *both),
            lambda age: returns * retention.lognormal_integral(age, *both),
            returns,
        )

    def ages(self, copies: float, steps: int) -> list[float]:
        """Ages at which so many equal parts of all that returns have returned, and the corners of a curve."""
        corners = [one.age for one in self.said.curve or []]
        low, high = 1e-6, 1e9
        found = [
            _when(lambda age: self.found(age, copies), self.found(high, copies) * k / steps, low, high)
            for k in range(1, steps)
        ]
        last = _when(lambda age: self.found(age, copies), self.found(high, copies) * 0.999, low, high)
        return sorted({*corners, *found, last})


def _when(found: Callable[[float], float], share: float, low: float, high: float) -> float:
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if found(middle) < share else (low, middle)
    return high


def _curve(points: list[tuple[float, float]]) -> tuple[Callable[[float], float], Callable[[float], float], float]:
    ages, shares = [p[0] for p in points], [p[1] for p in points]
    sums = [0.0]
    for (a, f), (b, g) in itertools.pairwise(points):
        sums.append(sums[-1] + (b - a) * (f + g) / 2.0)

    def found(age: float) -> float:
        at = bisect.bisect_right(ages, age) - 1
        if at + 1 >= len(ages):
            return shares[-1]
        return shares[at] + (shares[at + 1] - shares[at]) * (age - ages[at]) / (ages[at + 1] - ages[at])

    def integral(age: float) -> float:
        at = bisect.bisect_right(ages, age) - 1
        return sums[at] + (age - ages[at]) * (shares[at] + found(age)) / 2.0

    return found, integral, shares[-1]


def parts(instance: Instance) -> tuple[Part, ...]:
    """Every part of every workload."""
    found = []
    for name, workload in instance.workloads.items():
        shape = physics.shape_of(instance.models[workload.model])
        before = 0
        for number, said in enumerate(workload.reuse or []):
            hit = shape.kept.at(before + said.tokens_per_hit) - shape.kept.at(before)
            found.append(Part(name, number, said, workload.rate, hit, _kept(shape, workload, said, before, hit)))
            before += said.tokens_per_hit
    return tuple(found)


def _kept(shape: Shape, workload: Workload, said: Reuse, before: int, hit: float) -> float:
    if said.kind == "system-prompt":
        return said.share * hit
    if said.tokens_kept is not None:
        return shape.kept.at(before + said.tokens_kept) - shape.kept.at(before)
    return max(whole_state(shape, workload) - shape.kept.at(before), hit)


def whole_state(shape: Shape, workload: Workload) -> float:
    """Bytes of the state of a finished request, mean over its classes."""
    return sum(one.share * shape.kept.at(state.covered_tokens(one.input, one.output)) for one in workload.classes)


def cached_tokens(workload: Workload) -> list[int]:
    """Tokens that are found when the first part is, the first two are, and so on."""
    total, found = 0, []
    for one in workload.reuse or []:
        total += one.tokens_per_hit
        found.append(total)
    return found
