"""What each workload gets from the pools that serve it: rates, first tokens, times per token."""

from models.plan import Seconds, WorkloadResult
from models.workload import Workload
from solver import latency, measured, units
from solver.chosen import FULL, Chosen
from solver.formulas import cost as money
from solver.latency import Latency
from solver.physics import shape_of
from solver.regimes import Settled
from solver.tiers import told


def workloads(chosen: Chosen) -> dict[str, WorkloadResult]:
    """What each workload gets: rates and times."""
    results = {}
    for name, workload in chosen.instance.workloads.items():
        first_load, token_load = _times(chosen, name, workload, chosen.load)
        first_full, token_full = _times(chosen, name, workload, chosen.settled)
        served = chosen.served(name)
        results[name] = WorkloadResult(
            rate=workload.rate,
            served=served,
            capacity=max(served, chosen.settled.throughput * workload.rate / chosen.instance.rate),
            ttft_s=Seconds(at_load=first_load, at_capacity=first_full),
            tpot_s=Seconds(at_load=token_load, at_capacity=token_full),
            qualifying_rate=money.qualifying_rate(served, workload.qualifying),
            reuse=told.reused(chosen, name),
        )
    return results


def _times(chosen: Chosen, name: str, workload: Workload, flows: Settled) -> tuple[float | None, float | None]:
    """The slowest first token and time per token among the pools that serve a workload."""
    first: list[float | None] = []
    token: list[float | None] = []
    floor = 1e-9 * chosen.settled.throughput
    prefills: dict[tuple[str, bool], list[tuple[float, float]]] = {}
    for index, candidate in chosen.used:
        rate = chosen.rates(index, flows).get(name, 0.0)
        if rate <= floor or candidate.stage == "encode":
            continue
        times = pool_latency(chosen, index, name, flows)
        if candidate.stage != "prefill" and workload.decodes:
            token.append(times.per_token)
        after = candidate.after_encode and workload.images > 0.0
        if candidate.stage == "prefill" and (workload.decodes or after) and times.first_token is not None:
            prefills.setdefault((candidate.group, after), []).append((times.first_token, rate))
        elif candidate.stage != "decode":
            first.append(times.first_token)
    for (group, after), waiting in prefills.items():
        routes = [
            (route.waits, flows.routes[r])
            for r, route in enumerate(chosen.data.routes)
            if (route.workload, route.source) == (name, group)
            and (route.features is not None) == after
            and flows.routes[r] > floor
        ]
        first.append(slowest(waiting, routes, workload.targets.ttft is not None))
    return _slowest(first), _slowest(token)


def slowest(units: list[tuple[float, float]], routes: list[tuple[float, float]], matched: bool) -> float:
    """The longest prefill and handoff together, from seconds and rates of units and routes of one place.

    Where a target asks for it, ``matched``, the slowest units use the quickest routes.
    """
    if not routes:
        return max(seconds for seconds, _ in units)
    if not matched:
        return max(seconds for seconds, _ in units) + max(seconds for seconds, _ in routes)
    waiting, ways = sorted(units, reverse=True), sorted(routes)
    longest, left = 0.0, 0.0
    way = iter(ways)
    seconds = ways[0][0]
    for prefill, rate in waiting:
        while rate > 1e-7 * sum(r for _, r in units):
            if left <= 0.0:
                found = next(way, None)
                if found is None:
                    return longest
                seconds, left = found
            longest = max(longest, prefill + seconds)
            used = min(rate, left)
            rate, left = rate - used, left - used
            if left < 1e-7 * sum(r for _, r in units):
                left = 0.0
    return longest


def _slowest(times: list[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def pool_latency(chosen: Chosen, index: int, name: str, flows: Settled) -> Latency:
    """Times of a workload on a pool with ``flows``."""
    candidate = chosen.data.candidates[index]
    workload = chosen.instance.workloads[name]
    if candidate.measured is not None or candidate.device is None:
        said = measured.times(chosen.instance.measured[candidate.measured or ""], workload)
        return Latency(said.ttft, said.tpot)
    shape, gpu = units.shape_of(candidate.kind, chosen.instance.models[candidate.model]), candidate.device
    each = {n: rate / chosen.counts[index] for n, rate in chosen.rates(index, flows).items()}
    served = {n: chosen.instance.workloads[n] for n in candidate.demand}
    if candidate.shared is not None:
        return _shared(chosen, index, name, flows)
    less = chosen.saved(index, flows)
    if candidate.tau is not None:
        return latency.at_pace(candidate.kind, shape, gpu, served, candidate.tau, each, name, less)
    if max(chosen.busy(index, flows)) >= FULL:
        need = max(chosen.needs(index, flows)[name])
        return latency.full(candidate.kind, shape, gpu, workload, candidate.batches[name], need)
    return latency.at(candidate.kind, shape, gpu, served, candidate.batches, each, name, less)


def _shared(chosen: Chosen, index: int, name: str, flows: Settled) -> Latency:
    """Times on a unit of several uses: all its prefills stretch all its decode steps."""
    owner = chosen.data.owners[index]
    unit, workloads = chosen.data.candidates[owner], chosen.instance.workloads
    prefills: dict[str, float] = {}
    decodes: dict[str, float] = {}
    for use in chosen.uses[owner]:
        stage = chosen.data.candidates[use].stage
        for workload, rate in chosen.rates(use, flows).items():
            each = rate / chosen.counts[owner]
            prefills[workload] = prefills.get(workload, 0.0) + (each if stage != "decode" else 0.0)
            decodes[workload] = decodes.get(workload, 0.0) + (each if stage != "prefill" else 0.0)
    if unit.device is None:
        return Latency(None, None)
    shape, stage = shape_of(chosen.instance.models[unit.model]), chosen.data.candidates[index].stage
    found = latency.in_turn(shape, unit.device, workloads, unit.batches, prefills, decodes, name)
    return Latency(None if stage == "decode" else found.first_token, None if stage == "prefill" else found.per_token)
