"""Quantities of whole deployments: what solved instances give. Inputs are those of values.yaml; results SI.

Instances know no MLA models yet. Where ``kv_model`` is one, its bytes go over the link by the formulas, beside the
pools of the workload's own model.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

from models.told import Row
from solver import compare, data, settle
from solver.formulas import cost, drain, handoff, stages
from solver.limits import Limits
from tests.golden.by_roofline import pool_rate
from tests.golden.reading import (
    CONSTANTS,
    Cards,
    Quantity,
    document,
    in_bytes_per_s,
    in_seconds,
    instance,
    kv,
    per_second,
)


@cache
def solved(text: str, scheme: str) -> compare.Alternative:
    """The best that a scheme does with the cards of a document, or with the split that it fixes."""
    return compare.alternative(data.gather(instance(text)), scheme, Limits())


def row(scheme: str, workload: str, **asked: Any) -> Row:
    """The row of a scheme; ``asked`` is what :func:`document` takes."""
    return solved(document(workload, **asked), scheme).row


def known(value: float | None) -> float:
    """A number that the row must have."""
    assert value is not None
    return value


def throughput(scheme: str, workload: str, **asked: Any) -> float:
    """Requests/s that a scheme completes."""
    return known(row(scheme, workload, **asked).throughput)


# --- rates of schemes ---------------------------------------------------------------------------------


def colocated_rate(workload: str, cluster: Cards) -> float:
    return throughput("replicas", workload, cluster=cluster)


def chunked_rate(workload: str, cluster: Cards) -> float:
    return throughput("chunked", workload, cluster=cluster)


def rate_gap(workload: str, cluster: Cards, arrival: str) -> float:
    return per_second(arrival) - colocated_rate(workload, cluster)


def pd_rate(
    workload: str, prefill: Cards, decode: Cards, link: str, kv_model: str | None = None, copies: int = 1
) -> float:
    described = CONSTANTS["workloads"][workload]
    if kv_model in (None, described["model"]) and copies == 1:
        return throughput("pd-direct", workload, prefill=prefill, decode=decode, link=link)
    payload = kv(kv_model or described["model"], described["input"])
    return stages.separated_rate(
        pool_rate(workload, prefill, "prefill"),
        pool_rate(workload, decode, "decode"),
        handoff.link_rate(in_bytes_per_s(link), payload, copies),
    )


def best_pd_rate(workload: str, cluster: Cards, link: str) -> float:
    return throughput("pd-direct", workload, cluster=cluster, link=link)


def best_pd_split(workload: str, cluster: Cards, link: str) -> list[int]:
    split = row("pd-direct", workload, cluster=cluster, link=link).split
    assert all(split["prefill"][card] + split["decode"][card] == count for card, count in cluster.items())
    return [split["prefill"][card] for card in cluster]


def best_pd_prefill_cards(workload: str, cluster: Cards, link: str) -> float:
    return sum(best_pd_split(workload, cluster, link))


def splits(cluster: Cards) -> Iterator[tuple[Cards, Cards]]:
    """Every way to give each card to prefill or to decode, those of the first kind last."""
    for counts in product(*(range(count + 1) for count in cluster.values())):
        prefill = dict(zip(cluster, counts, strict=True))
        yield prefill, {card: count - prefill[card] for card, count in cluster.items()}


def splits_reaching(workload: str, cluster: Cards, link: str, target: str) -> float:
    least = per_second(target) * (1.0 - 1e-6)
    return sum(pd_rate(workload, prefill, decode, link) >= least for prefill, decode in splits(cluster))


def best_pd_gain(workload: str, cluster: Cards, link: str) -> float:
    return best_pd_rate(workload, cluster, link) / colocated_rate(workload, cluster) - 1.0


def pd_over_colocated(workload: str, cluster: Cards, prefill: Cards, decode: Cards, link: str) -> float:
    return pd_rate(workload, prefill, decode, link) / colocated_rate(workload, cluster)


def swapped_over_right(workload: str, prefill: Cards, decode: Cards, link: str) -> float:
    right = pd_rate(workload, prefill, decode, link)
    swapped = pd_rate(workload, decode, prefill, link)
    return round(swapped, 2) / round(right, 2)  # of the rates as printed


def derated_rate(workload: str, derate: float, prefill: Cards, decode: Cards, link: str) -> float:
    return throughput("pd-direct", workload, prefill=prefill, decode=decode, link=link, derate=derate)


def spare_rate(scheme: str, workload: str, arrival: str, **asked: Any) -> float:
    return throughput(scheme, workload, arrival=arrival, **asked) - per_second(arrival)


# --- the link -----------------------------------------------------------------------------------------


def handoff_bytes(scheme: str, workload: str, **asked: Any) -> float:
    return known(row(scheme, workload, **asked).payload_bytes_per_request)


def direct_channel(workload: str, prefill: Cards, decode: Cards, link: str) -> float:
    return known(row("pd-direct", workload, prefill=prefill, decode=decode, link=link).channel_capacity)


def channel_load(workload: str, prefill: Cards, decode: Cards, link: str, kv_model: str, copies: int) -> float:
    rate = pd_rate(workload, prefill, decode, link, kv_model, copies)
    return handoff.handoff_bandwidth(rate, kv(kv_model, CONSTANTS["workloads"][workload]["input"]), copies)


def link_threshold(workload: str, prefill: Cards, decode: Cards, kv_model: str) -> float:
    cards = known(row("pd-direct", workload, prefill=prefill, decode=decode).compute_capacity)
    return handoff.handoff_bandwidth(cards, kv(kv_model, CONSTANTS["workloads"][workload]["input"]))


# --- drain and money ----------------------------------------------------------------------------------


def drain_end(scheme: str, workload: str, **asked: Any) -> float:
    return known(row(scheme, workload, **asked).drained_s)


def backlog_at(time: str, startup: str, scheme: str, workload: str, arrival: str, cluster: Cards) -> float:
    service = throughput(scheme, workload, cluster=cluster, startup=startup, arrival=arrival)
    return drain.backlog_at(in_seconds(time), per_second(arrival), service, in_seconds(startup))


def drain_seconds(scheme: str, workload: str, startup: str, **asked: Any) -> float:
    return drain_end(scheme, workload, startup=startup, **asked) - in_seconds(startup)


def backlog_after_burst(burst: int, time: str, workload: str, arrival: str, **asked: Any) -> float:
    service, arriving = throughput("pd-direct", workload, arrival=arrival, **asked), per_second(arrival)
    pause = burst / arriving  # a stop that makes as many wait
    return drain.backlog_at(pause + in_seconds(time), arriving, service, pause)


def margin(workload: str, **asked: Any) -> float:
    chosen = solved(document(workload, **asked), "pd-direct").chosen
    assert chosen is not None
    return known(settle.margin(chosen.data, chosen.counts, "arrivals")) - 1.0


def cost_full_load(scheme: str, workload: str, **asked: Any) -> float:
    return known(row(scheme, workload, **asked).cost_per_1000_at_capacity)


def qualifying_rate(workload: str, qualifying: float, **asked: Any) -> float:
    return cost.qualifying_rate(throughput("pd-direct", workload, **asked), qualifying)


QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (
        colocated_rate,
        chunked_rate,
        rate_gap,
        pd_rate,
        best_pd_rate,
        best_pd_split,
        best_pd_prefill_cards,
        splits_reaching,
        best_pd_gain,
        pd_over_colocated,
        swapped_over_right,
        derated_rate,
        spare_rate,
        handoff_bytes,
        direct_channel,
        channel_load,
        link_threshold,
        drain_end,
        drain_seconds,
        backlog_at,
        backlog_after_burst,
        margin,
        cost_full_load,
        qualifying_rate,
    )
}
"""Quantity -> how it follows from its inputs."""
