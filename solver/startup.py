"""When a unit is ready: a time that is stated, or the longest path of its steps (section 9.6.1)."""

import math

from models.instance import Instance
from solver.formulas.stages import memory_seconds
from solver.transition.graph import Step, ready, schedule

GRAIN = 1e-6
"""Seconds by which a sum of steps may miss a whole second through rounding."""


def seconds(instance: Instance, group: str, weights: float) -> float:
    """Seconds from stopped to ready of a unit with ``weights`` bytes on each GPU, on ``group``.

    Steps give whole seconds, rounded up: each different time is a phase of the drain.
    """
    own, service = instance.hardware.groups[group].startup, instance.service
    if own is not None or not service.steps:
        return service.startup if own is None else own
    steps = [
        Step(
            name,
            memory_seconds(weights, step.weights_at) if step.weights_at is not None else step.takes or 0.0,
            tuple(step.after),
            step.within,
        )
        for name, step in service.steps.items()
    ]
    return float(math.ceil(ready(schedule(steps)) - GRAIN))
