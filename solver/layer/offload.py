"""Experts in host memory, asked for one layer: each side's time, sockets, what stays on the GPU, what the CPU bears."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from models.layer.asked import Offloading
from solver.crossovers import Flip, around, changes
from solver.expert_work import Engine, gpu, socket
from solver.formulas import experts as formulas
from solver.formulas import offload as closed
from solver.layer.shape import Experts, experts_of
from solver.offload import Offload, keep, socket_seconds


@dataclass(frozen=True)
class Side:
    """Experts with the same number of rows."""

    rows: float
    experts: int
    cpu_s: float
    """Of one of them."""
    cpu_waits_for: str
    """`reading` or `computing`."""
    gpu_s: float
    quicker: str
    """`cpu` or `gpu`; the CPU where both are as quick."""


@dataclass(frozen=True)
class Socket:
    """A CPU socket and the experts in its memory."""

    socket: int
    experts: int
    rows: float
    seconds: float
    """Reading and computing, all in turn."""


@dataclass(frozen=True)
class Touched:
    """Experts whose weights a batch reads."""

    experts: int
    bytes: float
    read_s: float
    """From host memory, by one socket."""
    random_experts: float | None
    """Expected, if each token chose evenly and whatever the others choose; unknown without tokens."""
    random_bytes: float | None


@dataclass(frozen=True)
class Resident:
    """Experts of each layer that stay on the GPU."""

    fit: int | None
    """As many as fit; unknown without a memory."""
    kept: int
    layer_bytes: float
    bytes: float
    """Over all layers."""
    fits: bool | None
    in_turn_s: float
    """The layer, when the experts that stay and those that do not wait for each other."""
    overlapped_s: float
    """No less than this when both run at the same time."""


@dataclass(frozen=True)
class Borne:
    """Whether weights fit in host memory, and whether the CPU keeps up."""

    weights: float
    """Bytes of all experts."""
    host_memory: float
    fits: bool
    tokens_per_s: float
    ceiling_per_s: float
    """Tokens whose experts the CPU can compute."""
    growth_per_s: float
    """Tokens more that wait, each second."""


@dataclass(frozen=True)
class Offloaded:
    """The answer."""

    expert_params: float
    expert_bytes: float
    sides: tuple[Side, ...]
    cpu_s: float
    """All experts on the CPU, in turn."""
    gpu_s: float
    """All on the GPU."""
    best_s: float
    """Each on its quicker side."""
    quicker: str
    last_cpu_rows: float
    """Rows of an expert up to which the CPU is at least as quick."""
    first_gpu_rows: float
    """Rows from which the GPU is quicker; infinite: never."""
    cpu_knee_rows: float
    """Rows at which the CPU turns from reading to computing."""
    gpu_knee_rows: float
    touched: Touched
    sockets: tuple[Socket, ...]
    busiest_socket: int
    resident: Resident | None
    demand: Borne | None
    crossovers: tuple[Flip, ...]


def offloaded(asked: Offloading) -> Offloaded:
    """The answer to an `offload` section."""
    whole, both = experts_of(asked), sides_of(asked)
    rows = rows_of(asked, whole)
    cpu_s, gpu_s, quicker = _layer(both, rows)
    sockets = _sockets(asked, both, rows)
    return Offloaded(
        whole.expert.params,
        whole.expert.weights,
        tuple(_side(both, each, count) for each, count in sorted(Counter(each for each in rows if each).items())),
        cpu_s,
        gpu_s,
        both.batch(rows)[0],
        quicker,
        both.last_cpu_rows(),
        both.first_gpu_rows(),
        _knee(both, both.cpu),
        _knee(both, both.gpu),
        _touched(asked, whole, both, rows),
        sockets,
        max(sockets, key=lambda one: one.seconds).socket,
        _resident(asked, whole, both, rows),
        _borne(asked, whole, both),
        tuple(_flips(both, rows)),
    )


def sides_of(asked: Offloading) -> Offload:
    """One expert, with one socket and a GPU at the two ends of the link."""
    host = socket(asked.cpu, asked.kernel, asked.read == "remote")
    return Offload(experts_of(asked).expert, host, gpu(asked.gpu, asked.efficiency, "bf16"), asked.link, asked.startup)


def rows_of(asked: Offloading, whole: Experts) -> list[float]:
    """Rows of each expert that is spoken of."""
    if asked.tokens is not None:
        over = asked.over or whole.count
        return [formulas.mean_rows(asked.tokens, whole.chosen, over)] * over
    stated = asked.rows or []
    return stated * (asked.over or 1) if len(stated) == 1 else stated


def _layer(both: Offload, rows: list[float]) -> tuple[float, float, str]:
    cpu_s = sum(both.on_cpu(each) for each in rows if each)
    gpu_s = sum(both.on_gpu(each) for each in rows if each)
    return cpu_s, gpu_s, "gpu" if gpu_s < cpu_s else "cpu"


def _knee(both: Offload, engine: Engine) -> float:
    return closed.knee_rows(engine.flops, engine.bandwidth, both.expert.weight_bytes)


def _side(both: Offload, rows: float, count: int) -> Side:
    [quicker] = both.batch([rows])[1]
    waits = "computing" if rows > _knee(both, both.cpu) else "reading"
    return Side(rows, count, both.on_cpu(rows), waits, both.on_gpu(rows), quicker)


def _touched(asked: Offloading, whole: Experts, both: Offload, rows: list[float]) -> Touched:
    active = sum(each > 0 for each in rows)
    size = whole.bytes(active)
    drawn = formulas.active_experts(whole.count, whole.chosen, asked.tokens) if asked.tokens else None
    return Touched(active, size, size / both.cpu.bandwidth, drawn, None if drawn is None else whole.bytes(drawn))


def _sockets(asked: Offloading, both: Offload, rows: list[float]) -> tuple[Socket, ...]:
    homes = asked.homes or [index % asked.sockets for index in range(len(rows))]
    taken = socket_seconds(both.expert, rows, homes, dict.fromkeys(range(asked.sockets), both.cpu))
    there = {one: [each for each, home in zip(rows, homes, strict=True) if home == one and each] for one in taken}
    return tuple(Socket(one, len(there[one]), sum(there[one]), seconds) for one, seconds in taken.items())


def _resident(asked: Offloading, whole: Experts, both: Offload, rows: list[float]) -> Resident | None:
    if asked.gpu_memory is None and asked.keep is None:
        return None
    fit = None
    if asked.gpu_memory is not None:
        fit = int(formulas.resident_experts(asked.gpu_memory, whole.expert.weights, whole.layers, whole.count))
    kept = asked.keep or fit or 0
    stay = keep(both, [*rows, *[0.0] * (whole.count - len(rows))], kept)
    fits = None if fit is None else kept <= fit
    return Resident(fit, kept, whole.bytes(kept), whole.bytes(kept, whole.layers), fits, stay.in_turn, stay.overlapped)


def _borne(asked: Offloading, whole: Experts, both: Offload) -> Borne | None:
    if asked.demand is None:
        return None
    weights, memory = whole.bytes(whole.count, whole.layers), asked.sockets * asked.cpu.memory
    flops = asked.sockets * both.cpu.flops
    ceiling = formulas.token_ceiling(flops, whole.layers, whole.chosen, whole.expert.params)
    growth = formulas.token_backlog_growth(asked.demand, ceiling)
    return Borne(weights, memory, weights <= memory, asked.demand, ceiling, growth)


def _flips(both: Offload, rows: list[float]) -> Iterator[Flip]:
    active = [each for each in rows if each]
    first = both.first_gpu_rows()
    if math.isfinite(first) and first > 1 and active:
        yield Flip("offload.rows", "an expert", first, "rows", "cpu", "gpu", sum(active) / len(active))
    for key, stated, unit in (("link", both.link, "B/s"), ("startup", both.startup, "s")):
        if stated and active:
            for value, below, above in changes(partial(_quicker, both, rows, key), around(stated)):
                yield Flip(f"offload.{key}", "the layer", value, unit, below, above, stated)


def _quicker(both: Offload, rows: list[float], key: str, value: float) -> str:
    moved = replace(both, link=value) if key == "link" else replace(both, startup=value)
    return _layer(moved, rows)[2]
