"""Quantities of routing, of moving what runs and of failures. Inputs are those of values.yaml; results SI."""

from solver.formulas import migration, recovery, routing, state, tiers
from solver.routing.objectives import Outcome
from tests.golden.by_roofline import decode_rate
from tests.golden.by_tiers import extend_seconds
from tests.golden.reading import Quantity, in_bytes_per_s, in_seconds, kv, one, per_token

# --- one place ----------------------------------------------------------------------------------------


def first_token(queue: str, ready: str, work: str, overlap: bool = True) -> float:
    formula = routing.first_token_overlapped if overlap else routing.first_token_serial
    return formula(in_seconds(queue), in_seconds(ready), in_seconds(work))


def overlap_saving(queue: str, ready: str) -> float:
    return routing.overlap_saving(in_seconds(queue), in_seconds(ready))


def route_time(
    queue: str,
    model: str,
    card: str,
    prefix: int,
    new: int,
    hit: bool = False,
    remote: str | None = None,
    lookup: str = "0 s",
    host: str | None = None,
) -> float:
    if not hit and remote is None:  # nothing of the state is there: all tokens are new
        return routing.first_token_overlapped(in_seconds(queue), 0.0, extend_seconds(model, card, prefix + new, 0))
    links = [in_bytes_per_s(link) for link in (remote, host) if link is not None]
    ready = 0.0 if hit else tiers.path_seconds(kv(model, prefix), links, in_seconds(lookup))
    return routing.first_token_overlapped(in_seconds(queue), ready, extend_seconds(model, card, new, prefix))


def budget(target: float, lookup: str, host: str, model: str, card: str, prefix: int, new: int) -> float:
    fixed = tiers.path_seconds(kv(model, prefix), [in_bytes_per_s(host)], in_seconds(lookup))
    return routing.read_budget(target, extend_seconds(model, card, new, prefix), fixed)


def route_remote_budget(queue_a: str, lookup: str, host: str, model: str, card: str, prefix: int, new: int) -> float:
    target = route_time(queue_a, model, card, prefix, new, hit=True)
    return budget(target, lookup, host, model, card, prefix, new)


def route_tie_hit(queue_a: str, lookup: str, host: str, model: str, card: str, prefix: int, new: int) -> float:
    left = route_remote_budget(queue_a, lookup, host, model, card, prefix, new)
    return routing.crossover_bandwidth(kv(model, prefix), left)


def route_tie_recompute(queue_b: str, lookup: str, host: str, model: str, card: str, prefix: int, new: int) -> float:
    target = route_time(queue_b, model, card, prefix, new)
    return routing.crossover_bandwidth(kv(model, prefix), budget(target, lookup, host, model, card, prefix, new))


# --- where the state is, is not certain ---------------------------------------------------------------


def two_points(queue: str, model: str, card: str, prefix: int, new: int) -> tuple[float, float]:
    return route_time(queue, model, card, prefix, new, hit=True), route_time(queue, model, card, prefix, new)


def miss_penalty(queue: str, model: str, card: str, prefix: int, new: int) -> float:
    hit, miss = two_points(queue, model, card, prefix, new)
    return miss - hit


def two_point_mean(p: float, queue: str, model: str, card: str, prefix: int, new: int) -> float:
    return routing.two_point_mean(*two_points(queue, model, card, prefix, new), p)


def two_point_quantile(p: float, q: float, queue: str, model: str, card: str, prefix: int, new: int) -> float:
    return routing.two_point_quantile(*two_points(queue, model, card, prefix, new), p, q)


def hit_probability_for_mean(queue_a: str, queue_b: str, model: str, card: str, prefix: int, new: int) -> float:
    target = route_time(queue_b, model, card, prefix, new)
    return routing.hit_probability_for_mean(target, *two_points(queue_a, model, card, prefix, new))


def hit_probability_for_quantile(
    target: str, q: float, queue: str, model: str, card: str, prefix: int, new: int
) -> float:
    points = two_points(queue, model, card, prefix, new)
    return routing.hit_probability_for_quantile(in_seconds(target), *points, q)


# --- the request or all tasks; queue or preparation ----------------------------------------------------


def outcome(ends: list[str]) -> Outcome:
    target, *others = (in_seconds(end) for end in ends)
    return Outcome(target, tuple(others))


def target_saving(affinity: list[str], idle: list[str]) -> float:
    return outcome(affinity).target - outcome(idle).target


def all_tasks_delay(affinity: list[str], idle: list[str]) -> float:
    return outcome(idle).all_tasks - outcome(affinity).all_tasks


def preparation(steps: list[str]) -> float:
    return routing.preparation_seconds([in_seconds(step) for step in steps])


def queue_behind_preparation(queue: str, steps: list[str]) -> float:
    return in_seconds(queue) - preparation(steps)


# --- moving a decode worker; replaying after a failure -------------------------------------------------


def state_growth(workload: str, card: str) -> float:
    return migration.state_growth(decode_rate(workload, card), per_token(one(workload, card).workload.model))


def held_state(workload: str, card: str) -> float:
    at = one(workload, card)
    [length] = at.workload.classes
    return kv(at.workload.model, state.mean_context(length.input, length.output), at.batch)


def catch_up_rate(workload: str, card: str, link: str) -> float:
    return migration.catch_up_rate(in_bytes_per_s(link), state_growth(workload, card))


def catch_up_seconds(workload: str, card: str, link: str) -> float:
    growth = state_growth(workload, card)
    return migration.catch_up_seconds(held_state(workload, card), in_bytes_per_s(link), growth)


def grown_meanwhile(workload: str, card: str, link: str) -> float:
    return migration.grown_bytes(state_growth(workload, card), catch_up_seconds(workload, card, link))


def replayed_tokens(input: int, outputs: int, saved: int) -> float:
    return recovery.replayed_tokens(input, outputs, saved)


def rebuilt_tokens(input: int, outputs: int, saved: int) -> float:
    return saved + replayed_tokens(input, outputs, saved)


QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (
        first_token,
        overlap_saving,
        route_time,
        route_remote_budget,
        route_tie_hit,
        route_tie_recompute,
        miss_penalty,
        two_point_mean,
        two_point_quantile,
        hit_probability_for_mean,
        hit_probability_for_quantile,
        target_saving,
        all_tasks_delay,
        preparation,
        queue_behind_preparation,
        state_growth,
        catch_up_rate,
        catch_up_seconds,
        grown_meanwhile,
        replayed_tokens,
        rebuilt_tokens,
    )
}
"""Quantity -> how it follows from its inputs."""
