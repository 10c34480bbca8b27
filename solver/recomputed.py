"""One pool of a plan, from the formulas: its GPUs, its memory, what a request takes on it. Part of the verifier.

Nothing here knows how candidates were made; a pool is what the plan says it is.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from models.given import Measured
from models.instance import Instance
from models.llm import Llm
from models.plan import Plan, Pool
from models.workload import Workload
from solver import cuts, physics
from solver.cut import Cut, Leg
from solver.formulas import encoder, memory, state
from solver.layouts import build
from solver.physics import Device, Shape, Step, Work
from solver.tiers.states import behind, early_layers, room
from solver.topology import Topology


def built_of(plan: Plan, pool: Pool, instance: Instance, topology: Topology) -> "Built":
    """A pool of a plan with its parts."""
    return Built(pool, instance, topology, tuple(part for part in plan.pools if part.part_of == pool.name))


@dataclass(frozen=True)
class Built:
    """A pool with what stands behind it."""

    pool: Pool
    instance: Instance
    topology: Topology
    parts: tuple[Pool, ...] = ()

    @cached_property
    def shape(self) -> Shape:
        """Of its model."""
        whole = physics.shape_of(self.instance.models[self.pool.model])
        elsewhere = self.pool.scheme == "encode-pd" and self.pool.serves == "prefill"
        return replace(whole, encoder=None) if elsewhere or self.pool.serves == "decode" else whole

    @property
    def measured(self) -> Measured | None:
        """The measured unit that it is made of."""
        return self.instance.measured.get(self.pool.measured or "")

    @cached_property
    def cut(self) -> Cut | None:
        """How it is cut, from its degrees and parts; None where such a unit cannot be, or was measured."""
        pool, said = self.pool, self.pool.parallelism
        where = (self.instance, self.topology, pool.group)
        if self.measured is not None:
            return None
        micro, spare = pool.micro_batches, pool.redundant_experts
        if self.parts:
            part = self.parts[0]
            beside = (part.group, part.cards_per_unit, part.stage == "expert")
            return build.apart(*where, pool.model, self.shape, said.tp, said.dp, *beside, micro, spare)
        if pool.resident_experts is not None:
            return build.hosted(self.instance, pool.group, pool.model, self.shape, said.tp, pool.resident_experts)
        if said.ep > 1 or said.dp > 1:
            return build.spread(*where, self.shape, said.tp, said.ep, said.dp, micro, spare)
        return cuts.one(*where, self.shape, said.tp, said.pp)

    @property
    def blocks(self) -> list[tuple[str, int, int]]:
        """Group, size and number of the blocks of GPUs that have to be in one server."""
        pool, cut = self.pool, self.cut
        if cut is None:
            group = self.instance.hardware.groups[pool.group]
            whole = pool.cards_per_unit <= group.per_server
            size = pool.cards_per_unit if whole else pool.parallelism.tp
            return [(pool.group, size, pool.cards_per_unit // size)]
        found = [(pool.group, cut.block, (cut.cards + cut.inside) // cut.block)]
        return [*found, *((p.group, p.block, p.cards // p.block) for p in cut.parts if p.block)]

    @property
    def legs(self) -> tuple[Leg, ...]:
        """What passes between its parts over links of the cluster."""
        return () if self.cut is None else self.cut.legs

    @property
    def device(self) -> Device:
        """One of its GPUs."""
        if self.cut is None:
            raise ValueError("a unit without a cut has no device")
        return self.cut.device

    def impossible(self) -> str:
        """Why such a unit cannot be; "" when it can."""
        pool, said, group = self.pool, self.pool.parallelism, self.instance.hardware.groups[self.pool.group]
        sizes = (pool.cards_per_unit, *(part.cards_per_unit for part in self.parts))
        counts = (said.tp, said.pp, said.ep, said.dp, *sizes, pool.micro_batches)
        few = min(pool.resident_experts or 0, pool.redundant_experts) < 0
        if min(counts) < 1 or (pool.step_s is not None and pool.step_s <= 0) or few:
            return "is cut, or paced, by nothing"
        if self.measured is not None:
            same = (self.measured.group, self.measured.model, self.measured.stage)
            if pool.cards_per_unit != self.measured.size:
                return f"{pool.cards_per_unit} GPUs are not the {self.measured.size} that were measured"
            return "" if same == (pool.group, pool.model, pool.stage) else "is not what was measured"
        if pool.measured is not None:
            return "names a measured unit that is not in the instance"
        if pool.cards_per_unit != said.tp * said.pp * (said.ep if said.dp == 1 else said.dp):
            return f"{pool.cards_per_unit} GPUs are not TP{said.tp} x PP{said.pp} x DP{said.dp} x EP{said.ep}"
        if said.tp > group.per_server:
            return "a unit does not fit in a server"
        if self.shape.heads % said.tp:
            return "its GPUs cannot share the heads of the model"
        for key, place, degree in self._degrees():
            for stated in (getattr(self.instance.hardware.groups[place], key), getattr(self._model, key)):
                if stated is not None and degree not in stated:
                    return f"{key.upper()}{degree} is not allowed"
        cut = self.cut
        if cut is None or (cut.ep, cut.dp, cut.pp) != (said.ep, said.dp, said.pp):
            return "its parts do not fit, or no link joins them"
        mine = [(part.stage, part.group, part.cards) for part in cut.parts]
        if mine != [(part.stage, part.group, part.cards_per_unit) for part in self.parts]:
            return "its parts are others"
        return ""

    @property
    def _model(self) -> Llm:
        return self.instance.models[self.pool.model]

    def _degrees(self) -> Iterator[tuple[str, str, int]]:
        """Degrees that may have been stated: key, group, degree."""
        pool, said = self.pool, self.pool.parallelism
        yield "tp", pool.group, said.tp
        if said.ep > 1 or self.parts:
            yield "dp", pool.group, said.dp
        if not self.parts and pool.resident_experts is None and self.shape.routed is not None:
            yield "ep", pool.group, said.ep
        yield from (("ep", part.group, part.cards_per_unit) for part in self.parts if part.stage == "expert")

    def seconds(self, name: str, cached: int = 0) -> tuple[float, ...]:
        """Unit-seconds of a request that finds ``cached`` tokens, by resource; all of them count against the units."""
        workload = self.instance.workloads[name]
        if self.measured is not None:
            return (_measured_seconds(self.measured, name, workload),)
        kind = self.pool.serves
        if kind == "encode":
            return (encoder.missed_images(workload.images, workload.image_hits) * self._image().seconds,)
        before = self._before(behind(workload, cached) if cached else workload)
        if kind == "prefill":
            return (before[0],)
        if self.pool.step_s is not None:
            return self._paced(workload, before, self.pool.step_s)
        calls, size = physics.mean_calls(workload), self._in_step(name)
        step = self._bound(name)
        own = (
            calls * (step.beside / size + step.compute + step.beside_each),
            calls * ((step.fixed + step.beside) / size + step.memory + step.beside_each),
        )
        if self.pool.scheme == "hybrid":
            return (max(own) + before[0],)
        if kind == "decode" or self.pool.scheme == "chunked":
            return before[0] + own[0], before[1] + own[1]
        return (before[0] + max(own),)

    def _bound(self, name: str) -> Step:
        """The step as a straight line, for every mix of the batches: the most experts touched, or the slowest start."""
        largest = max(self._in_step(other) for other in {name, *self.pool.rates})
        loads = {other: self.instance.workloads[other] for other in {name, *self.pool.rates}}
        lines = {n: physics.workload_decode(self.shape, self.device, w).upto(largest) for n, w in loads.items()}
        if self.device.layout is None:
            return lines[name]
        return replace(lines[name], fixed=max((lines[n].fixed for n, w in loads.items() if w.decodes), default=0.0))

    def _in_step(self, name: str) -> float:
        """Requests of a step of one stage, when the unit is full of a workload."""
        batch = self.pool.batches.get(name, 1)
        return float(batch) if self.device.pp == 1 else float(max(1, batch // self.device.pp))

    def _paced(self, workload: Workload, before: tuple[float, float], tau: float) -> tuple[float, ...]:
        gpu, sigma, room = self.device, tau / self.device.pp, self._room()
        calls, line = physics.mean_calls(workload), self._line(workload)
        together = [self._line(other) for other in self._decoding()]  # the slowest step paces all
        beside = max((one.beside for one in together), default=0.0)
        fixed = beside + max((one.fixed for one in together), default=0.0)
        if sigma <= fixed or room <= 0.0:
            return (float("inf"),) * 4
        compute = before[0] + calls * (line.compute + line.beside_each)
        reading = before[1] + calls * (line.memory + line.beside_each)
        in_flight = calls * tau
        held = in_flight * physics.held_state(self.shape, gpu, workload) / gpu.streams if calls else 0.0
        slots = in_flight / workload.batch if isinstance(workload.batch, int) else 0.0
        return (
            compute / (1.0 - beside / sigma),
            reading / (1.0 - fixed / sigma),
            held / room,
            slots,
        )

    def _decoding(self) -> list[Workload]:
        return [w for w in (self.instance.workloads[name] for name in self.pool.rates) if w.decodes]

    def _room(self) -> float:
        """Bytes of a GPU that state may fill."""
        return self.device.memory - physics.weights_on_card(self.shape, self.device) - self.buffer()

    def _line(self, workload: Workload) -> Step:
        """The step as a straight line, exact at the most that the unit holds; see `Step.upto`."""
        gpu, sigma, largest = self.device, (self.pool.step_s or 0.0) / self.device.pp, 1.0
        stated = [other.batch for other in self._decoding()]
        sizes = [float(batch) for batch in stated if isinstance(batch, int)]
        for name in self.pool.rates:
            other = self.instance.workloads[name]
            held = physics.held_state(self.shape, gpu, other)
            most = self._room() * gpu.streams / held if held else 1.0
            calls, first = physics.mean_calls(other), self._before(other)
            each = [seconds / calls if calls else 0.0 for seconds in first]
            step = physics.workload_decode(self.shape, gpu, other)
            largest = max(largest, step.within(sigma, max(1.0, most / gpu.pp), *each))
        if sizes and len(sizes) == len(stated):
            largest = min(largest, max(1.0, max(sizes) / gpu.pp))
        return physics.workload_decode(self.shape, gpu, workload).upto(largest)

    def _before(self, workload: Workload) -> tuple[float, float]:
        """Compute and memory seconds of the prefill of a request, where its units do that too."""
        if self.pool.serves == "decode":
            return 0.0, 0.0
        classes = [(one.share, physics.class_prefill(self.shape, self.device, one)) for one in workload.classes]
        classes.append((encoder.missed_images(workload.images, workload.image_hits), self._image()))
        if self.pool.scheme == "chunked":
            compute = sum(share * (part.compute + part.beside) for share, part in classes)
            return compute, sum(share * (part.memory + part.beside) for share, part in classes)
        whole = sum(share * part.seconds for share, part in classes) / self.device.streams
        return whole, whole

    def _image(self) -> Work:
        """One image through the encoder, where its units hold one."""
        return physics.encode(self.shape, self.device)

    def buffer(self) -> float:
        """Bytes of a GPU that are kept free for states, and features of images, that come or go."""
        states = {"prefill": 2.0, "decode": 1.0}.get(self.pool.serves, 1.0 if self.pool.scheme == "chunked" else 0.0)
        states = 3.0 if self.pool.scheme == "hybrid" else states
        sets = {"encode": 2.0, "decode": 0.0}.get(self.pool.serves, 1.0)
        states = 0.0 if self.pool.serves == "encode" else states
        served = [self.instance.workloads[name] for name in self.pool.rates]
        each = [
            states * physics.input_state(self.shape, self.device, w) + sets * math.ceil(w.images) * self.shape.features
            for w in served
        ]
        return max(each, default=0.0)

    @property
    def weights(self) -> float:
        """Bytes of weights on its fullest GPU, parts apart."""
        if self.pool.serves == "encode":
            return self.shape.encoder_resident / self.device.tp
        return physics.weights_on_card(self.shape, self.device)

    def needed_bytes(self) -> float:
        """Bytes of a GPU: weights, the largest batch that the plan states, buffer; room for the longest request."""
        gpu, held = self.device, 0.0
        if self.pool.serves == "encode":
            return self.weights + self.buffer()
        for name in self.pool.rates if self.pool.serves != "prefill" else ():
            workload = self.instance.workloads[name]
            longest = physics.largest_state(self.shape, gpu, workload)
            stated = math.ceil(self.pool.batches[name] / gpu.streams) * physics.held_state(self.shape, gpu, workload)
            held = max(held, longest, 0.0 if self.pool.step_s is not None else stated)
        return memory.resident_bytes(physics.weights_on_card(self.shape, gpu), held, 1.0, self.buffer())

    def room(self) -> float:
        """Bytes of whole states that a unit leaves free, beside system prompts; 0 where it was measured."""
        if self.cut is None or self.pool.memory is None:
            return 0.0
        served = [self.instance.workloads[name] for name in self.pool.rates]
        early = early_layers(self.instance, self.pool.group)
        return room(self.shape, self.cut, served, self.pool.memory.free, early)

    def tokens(self, name: str) -> float:
        """Tokens of a request that pass through its units."""
        total, serves = 0.0, self.pool.serves
        for one in self.instance.workloads[name].classes:
            new = one.input - one.cached if serves != "decode" else 0
            total += one.share * (new + (state.decode_calls(one.output) if serves != "prefill" else 0.0))
        return total


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
