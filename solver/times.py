"""What each workload gets from the pools that serve it: rates, first tokens, times per token."""

from models.plan import Seconds, WorkloadResult
from models.workload import Workload
from solver import latency, physics, units
from solver.assemble import FULL, Chosen
from solver.formulas import cost as money
from solver.latency import Latency


def workloads(chosen: Chosen) -> dict[str, WorkloadResult]:
    """What each workload gets: rates and times."""
    results = {}
    for name, workload in chosen.instance.workloads.items():
        first_load, token_load = _times(chosen, name, workload, chosen.scale)
        first_full, token_full = _times(chosen, name, workload, 1.0)
        results[name] = WorkloadResult(
            rate=workload.rate,
            served=workload.rate,
            capacity=chosen.settled.throughput * workload.rate / chosen.instance.rate,
            ttft_s=Seconds(at_load=first_load, at_capacity=first_full),
            tpot_s=Seconds(at_load=token_load, at_capacity=token_full),
            qualifying_rate=money.qualifying_rate(workload.rate, workload.qualifying),
        )
    return results


def _times(chosen: Chosen, name: str, workload: Workload, scale: float) -> tuple[float | None, float | None]:
    """The slowest first token and time per token among the pools that serve a workload."""
    first: list[float | None] = []
    token: list[float | None] = []
    for index, candidate in chosen.used:
        if chosen.rates(index).get(name, 0.0) <= 1e-9 * chosen.settled.throughput:
            continue
        times = pool_latency(chosen, index, name, scale)
        if candidate.stage != "prefill" and workload.output > 1:
            token.append(times.per_token)
        if candidate.stage == "decode":
            continue
        wait = 0.0
        if candidate.stage == "prefill" and workload.output > 1:
            wait = max(
                route.seconds
                for route in (chosen.data.routes[r] for r in chosen.live_routes)
                if route.workload == name and route.source == candidate.group
            )
        first.append(None if times.first_token is None else times.first_token + wait)
    return _slowest(first), _slowest(token)


def _slowest(times: list[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def pool_latency(chosen: Chosen, index: int, name: str, scale: float) -> Latency:
    """Times of a workload on a pool at ``scale`` times its flows at capacity."""
    candidate = chosen.data.candidates[index]
    shape = physics.shape_of(chosen.instance.models[candidate.model])
    gpu = units.device(chosen.instance, candidate.group, shape)
    if max(chosen.busy(index)) * scale >= FULL:
        workload = chosen.instance.workloads[name]
        need = max(candidate.demand[name])
        return latency.full(candidate.kind, shape, gpu, workload, candidate.batches[name], need)
    each = {n: rate * scale / chosen.counts[index] for n, rate in chosen.rates(index).items()}
    served = {n: chosen.instance.workloads[n] for n in candidate.demand}
    return latency.at(candidate.kind, shape, gpu, served, candidate.batches, each, name)
