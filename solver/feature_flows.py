"""Features of images that cross links and the encoder cache in one regime of a plan. Part of the verifier."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from models.instance import Instance
from models.plan import Plan
from solver.formulas import encoder
from solver.shapes import BYTES
from solver.topology import Path, Topology


@dataclass(frozen=True)
class _Flow:
    """Requests/s of a workload whose images are encoded at one place and used at another."""

    workload: str
    rate: float
    encoder: str | None
    target: str
    apart: bool = True
    """Whether they are units of their own."""


def violations(
    plan: Plan,
    instance: Instance,
    topology: Topology,
    regime: tuple[Mapping[str, Mapping[str, float]], Mapping[str, float]],
    used: dict[str, float],
) -> Iterator[str]:
    """What the encoder cache cannot do, and ways that are missing; bytes/s on channels are added to ``used``."""
    rates, carried = regime
    cache = next((name for name, store in instance.hardware.stores.items() if store.holds == "features"), None)
    flows = [
        _Flow(name, rate, pool.group, pool.group, apart=False)
        for pool in plan.pools
        if pool.begins and pool.part_of is None and pool.scheme != "encode-pd" and pool.measured is None
        for name, rate in rates.get(pool.name, {}).items()
    ]
    for handoff in plan.handoffs:
        workload, found = instance.workloads[handoff.workload], handoff.features
        if (found is not None) != (handoff.scheme == "encode-pd" and workload.images > 0.0):
            yield f"handoff[{handoff.name}]: {handoff.scheme} goes another way"
        elif found is not None:
            encoded = workload.image_hits < 1.0
            if (found.encoder is not None) != encoded or found.cache != (cache if workload.image_hits else None):
                yield f"handoff[{handoff.name}]: its features come another way"
            flows.append(_Flow(handoff.workload, carried.get(handoff.name, 0.0), found.encoder, handoff.source))
    busy = {"read": 0.0, "write": 0.0}
    for flow in flows:
        for word, path, load in _moves(instance, topology, flow, cache):
            if path is None:
                yield f"features[{flow.workload}]: nothing joins {flow.encoder or cache}, {flow.target} and the cache"
                return
            for channel in path.channels:
                used[channel] = used.get(channel, 0.0) + load
            if word in busy:
                busy[word] += load
    for word, load in busy.items():
        own = getattr(instance.hardware.stores[cache], word) if cache else None
        if own is not None and load > own * (1.0 + 1e-6):
            yield f"store[{cache},{word}]: {load:.6g} of {own:.6g} B/s"


def _moves(
    instance: Instance, topology: Topology, flow: _Flow, cache: str | None
) -> Iterator[tuple[str, Path | None, float]]:
    """What a flow moves: whether it reads or writes the cache, its path, and bytes/s."""
    workload = instance.workloads[flow.workload]
    llm = instance.models[workload.model]
    if not flow.rate or not workload.images or llm.encoder is None:
        return
    each = encoder.feature_bytes(llm.encoder.tokens, llm.hidden_size, BYTES["bf16"])
    missed = encoder.missed_images(workload.images, workload.image_hits)
    whole = math.ceil(workload.images) * each
    if workload.image_hits:
        hits = flow.rate * (workload.images - missed) * each
        yield "read", topology.path(cache, flow.target, whole) if cache else None, hits
        if missed:
            way = topology.path(flow.encoder, cache, whole) if flow.encoder and cache else None
            yield "write", way, flow.rate * missed * each
    if missed and flow.encoder is not None and flow.apart:
        yield "handed over", topology.path(flow.encoder, flow.target, whole), flow.rate * missed * each
