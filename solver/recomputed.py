"""One pool of a plan, from the formulas: its GPUs, its memory, what a request takes on it. Part of the verifier.

Nothing here knows how candidates were made; a pool is what the plan says it is.
"""

import math
from dataclasses import dataclass
from functools import cached_property

from models.given import Measured
from models.instance import Instance
from models.plan import Pool
from models.workload import Workload
from solver import physics
from solver.formulas import memory, state
from solver.physics import Device, Shape, Step
from solver.topology import Path, Topology


@dataclass(frozen=True)
class Built:
    """A pool with what stands behind it."""

    pool: Pool
    instance: Instance
    topology: Topology

    @cached_property
    def shape(self) -> Shape:
        """Of its model."""
        return physics.shape_of(self.instance.models[self.pool.model])

    @property
    def measured(self) -> Measured | None:
        """The measured unit that it is made of."""
        return self.instance.measured.get(self.pool.measured or "")

    @property
    def block(self) -> int:
        """GPUs that have to be in one server."""
        tp, pp = self.pool.parallelism.tp, self.pool.parallelism.pp
        group = self.instance.hardware.groups[self.pool.group]
        if self.measured is not None:
            return self.measured.size if self.measured.size <= group.per_server else tp
        together = tp * pp <= group.per_server and group.scale_up is not None
        return tp * pp if pp == 1 or together else tp

    @cached_property
    def across(self) -> Path | None:
        """Way between its stages where they stand in different servers."""
        apart = self.measured is None and self.block < self.pool.cards_per_unit
        return self.topology.hop(self.pool.group) if apart else None

    @cached_property
    def device(self) -> Device:
        """One of its GPUs."""
        group = self.instance.hardware.groups[self.pool.group]
        cut, wired = self.pool.parallelism, group.scale_up
        hop = None
        if cut.pp > 1:
            path = self.across
            if path is not None:
                hop = (path.bandwidth, path.startup)
            elif wired is not None:
                hop = (wired.payload_bandwidth, wired.startup)
        return physics.device_of(self.instance, group, self.shape.precision, cut.tp, cut.pp, hop)

    def impossible(self) -> str:
        """Why such a unit cannot be; "" when it can."""
        cut, group = self.pool.parallelism, self.instance.hardware.groups[self.pool.group]
        if min(cut.tp, cut.pp, self.pool.cards_per_unit) < 1 or (
            self.pool.step_s is not None and self.pool.step_s <= 0
        ):
            return "is cut, or paced, by nothing"
        if self.pool.cards_per_unit != (self.measured.size if self.measured else cut.tp * cut.pp):
            return f"{self.pool.cards_per_unit} GPUs are not TP{cut.tp} x PP{cut.pp}"
        if self.block > group.per_server:
            return "a unit does not fit in a server"
        if self.measured is not None:
            same = (self.measured.group, self.measured.model, self.measured.stage)
            return "" if same == (self.pool.group, self.pool.model, self.pool.stage) else "is not what was measured"
        if self.pool.measured is not None:
            return "names a measured unit that is not in the instance"
        if cut.tp > 1 and (group.scale_up is None or self.shape.heads % cut.tp):
            return "its GPUs cannot share the heads of the model"
        for stated in (group.tp, self.instance.models[self.pool.model].tp):
            if stated is not None and cut.tp not in stated:
                return f"TP{cut.tp} is not allowed"
        if self.block < self.pool.cards_per_unit and self.across is None:
            return "no link joins its stages"
        return ""

    def seconds(self, name: str) -> tuple[float, ...]:
        """Unit-seconds of a request, by resource; all of them count against the units."""
        workload = self.instance.workloads[name]
        if self.measured is not None:
            return (_measured_seconds(self.measured, name, workload),)
        gpu, kind = self.device, self.pool.stage
        classes = [(one.share, physics.class_prefill(self.shape, gpu, one)) for one in workload.classes]
        whole = sum(share * part.seconds for share, part in classes)
        if kind == "prefill":
            return (whole,)
        compute = sum(share * (part.compute + part.beside) for share, part in classes)
        reading = sum(share * (part.memory + part.beside) for share, part in classes)
        first = {"decode": (0.0, 0.0), "chunked": (compute, reading)}
        before = first.get("decode" if kind == "decode" else self.pool.scheme, (whole, whole))
        if self.pool.step_s is not None:
            return self._paced(workload, before, self.pool.step_s)
        calls, size = physics.mean_calls(workload), self._in_step(name)
        largest = size if gpu.layout is not None else max(self._in_step(other) for other in self.pool.rates)
        step = physics.workload_decode(self.shape, gpu, workload).upto(largest)
        own = (
            calls * (step.beside / size + step.compute + step.beside_each),
            calls * ((step.fixed + step.beside) / size + step.memory + step.beside_each),
        )
        if self.pool.scheme == "hybrid":
            return (max(own) + (0.0 if kind == "decode" else whole),)
        if kind == "decode" or self.pool.scheme == "chunked":
            return before[0] + own[0], before[1] + own[1]
        return (whole + max(own),)

    def _in_step(self, name: str) -> float:
        """Requests of a step of one stage, when the unit is full of a workload."""
        batch = self.pool.batches.get(name, 1)
        return float(batch) if self.device.pp == 1 else float(max(1, batch // self.device.pp))

    def _paced(self, workload: Workload, before: tuple[float, float], tau: float) -> tuple[float, ...]:
        gpu, sigma, room = self.device, tau / self.device.pp, self._room()
        calls, line = physics.mean_calls(workload), self._line(workload)
        if sigma <= line.fixed + line.beside or room <= 0.0:
            return (float("inf"),) * 4
        compute = before[0] + calls * (line.compute + line.beside_each)
        reading = before[1] + calls * (line.memory + line.beside_each)
        in_flight = calls * tau
        held = in_flight * physics.held_state(self.shape, gpu, workload) / gpu.streams if calls else 0.0
        slots = in_flight / workload.batch if isinstance(workload.batch, int) else 0.0
        return (
            compute / (1.0 - line.beside / sigma),
            reading / (1.0 - (line.fixed + line.beside) / sigma),
            held / room,
            slots,
        )

    def _room(self) -> float:
        """Bytes of a GPU that state may fill."""
        return self.device.memory - physics.weights_on_card(self.shape, self.device) - self.buffer()

    def _line(self, workload: Workload) -> Step:
        """The step as a straight line for every batch that fits, in memory and in the step time; see `Step.upto`."""
        sigma = (self.pool.step_s or 0.0) / self.device.pp
        largest = 1.0
        for name in self.pool.rates:
            other = self.instance.workloads[name]
            held = physics.held_state(self.shape, self.device, other)
            most = self._room() * self.device.streams / held if held else 1.0
            most = min(most, float(other.batch)) if isinstance(other.batch, int) else most
            step = physics.workload_decode(self.shape, self.device, other)
            size = max(1.0, step.within(sigma, max(1.0, most / self.device.pp)))
            if self.device.layout is None or other == workload:
                largest = max(largest, size)
        return physics.workload_decode(self.shape, self.device, workload).upto(largest)

    def buffer(self) -> float:
        """Bytes of a GPU that are kept free for states that come or go."""
        states = {"prefill": 2.0, "decode": 1.0}.get(self.pool.stage, 0.0 if self.pool.scheme == "replicas" else 1.0)
        states = 3.0 if self.pool.scheme == "hybrid" else states
        served = [self.instance.workloads[name] for name in self.pool.rates]
        return max((states * physics.input_state(self.shape, self.device, w) for w in served), default=0.0)

    def needed_bytes(self) -> float:
        """Bytes of a GPU: weights, the largest batch that the plan states, buffer; room for the longest request."""
        gpu, held = self.device, 0.0
        for name in self.pool.rates if self.pool.stage != "prefill" else ():
            workload = self.instance.workloads[name]
            longest = physics.largest_state(self.shape, gpu, workload)
            stated = math.ceil(self.pool.batches[name] / gpu.streams) * physics.held_state(self.shape, gpu, workload)
            held = max(held, longest, 0.0 if self.pool.step_s is not None else stated)
        return memory.resident_bytes(physics.weights_on_card(self.shape, gpu), held, 1.0, self.buffer())

    def crossing(self, name: str) -> float:
        """Bytes of a request between the servers of a unit."""
        if self.across is None:
            return 0.0
        workload, tokens = self.instance.workloads[name], 0.0
        for one in workload.classes:
            new = one.input - one.cached if self.pool.stage != "decode" else 0
            tokens += one.share * (new + (state.decode_calls(one.output) if self.pool.stage != "prefill" else 0.0))
        return (self.device.pp - 1) * tokens * self.shape.hidden * self.shape.other_bytes


def _measured_seconds(unit: Measured, name: str, workload: Workload) -> float:
    if name in unit.rates:
        return 1.0 / unit.rates[name]
    total = 0.0
    for one in workload.classes:
        rates = [p.rate for p in unit.table if p.input >= one.input and p.output >= one.output]
        if not rates:
            return float("inf")
        total += one.share / max(rates)
    return total
