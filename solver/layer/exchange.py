"""Dispatch and combine of one layer: what bounds them, the busiest card, micro-batches, and what one change gives."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from models.layer.asked import Exchange
from solver import exchange, skew
from solver.crossovers import SPAN, Flip
from solver.exchange import Bound, Card, Stages, Traffic
from solver.expert_work import gpu
from solver.formulas import exchange as formulas
from solver.formulas import handoff
from solver.layer.case import Case, Computed, rows_of
from solver.layer.shape import experts_of
from solver.pipeline import contention_limit
from solver.shapes import BYTES

SAME = 1.0 + 1e-9


@dataclass(frozen=True)
class Way:
    """One exchange, payload only."""

    bytes: float
    """From card to card, all together."""
    send_s: float
    """Of the card that takes longest to send."""
    receive_s: float
    cut_s: float
    """Of the tightest cut of the links."""
    seconds: float
    binds: str
    """`send`, `receive`, both, or `cut` when that takes longer than any card."""
    edges: tuple[str, ...]
    """Links that lead out of that cut."""


@dataclass(frozen=True)
class MicroBatches:
    """The stages at the same time, on parts of the batch."""

    batches: int
    seconds: float
    saving_s: float
    exchange_limit: float | None
    """Factor on both exchanges at which nothing is saved any more."""
    compute_limit: float | None
    """The same on the experts."""


@dataclass(frozen=True)
class Step:
    """One thing changed, all else as it is."""

    change: str
    staged_s: float
    saving_s: float


@dataclass(frozen=True)
class Messages:
    """Whether bytes or requests are what a NIC runs out of."""

    row_bytes: float
    crossover_bytes: float
    binds: str


@dataclass(frozen=True)
class Exchanged:
    """The answer."""

    rows: tuple[float, ...]
    """Of each card with experts."""
    mean_rows: float
    skew: float
    """The busiest over the mean."""
    row_link_s: float
    """One row over the link of a card."""
    row_compute_s: float
    """One row on a card."""
    dispatch: Way
    compute: Computed
    combine: Way
    staged_s: float
    """All three, each waiting for the whole batch."""
    exchange_share: float
    longest: str
    """The stage that takes longest."""
    most_batches_per_s: float
    """That every card and link bears, in the mean."""
    micro_batches: MicroBatches | None
    messages: Messages | None
    steps: tuple[Step, ...]
    crossovers: tuple[Flip, ...]


def exchanged(asked: Exchange) -> Exchanged:
    """The answer to an `exchange` section."""
    whole = experts_of(asked)
    rows = tuple(rows_of(asked, whole))
    case = Case(whole, gpu(asked.gpu, asked.efficiency), asked, rows)
    (there, back), computed = case.bounds(), case.computed()
    stages = Stages(there.seconds, computed.seconds, back.seconds)
    traffic = case.traffic()
    row_bytes = case.row_bytes[1]
    longest = max(zip(stages.all, ("dispatch", "compute", "combine"), strict=True), key=lambda one: one[0])[1]
    return Exchanged(
        rows,
        sum(rows) / len(rows),
        skew.skew(rows),
        handoff.transfer_seconds(row_bytes, asked.link),
        case.whole.expert.flops(1.0) / case.engine.flops,
        _way(traffic[0], there),
        computed,
        _way(traffic[1], back),
        stages.total,
        stages.exchange_share,
        longest,
        formulas.admitted_rate(1.0, max(stages.all)),
        _micro(stages, asked.micro_batches) if asked.micro_batches else None,
        _messages(case, asked.requests) if asked.requests else None,
        tuple(_steps(case, stages)),
        (*_narrow(asked, sum(traffic[1].values()), back), *_flips(case, computed.seconds)),
    )


def _way(traffic: Traffic, found: Bound) -> Way:
    least = found.seconds / SAME
    ends = [name for name, taken in (("send", found.send), ("receive", found.receive)) if taken >= least]
    edges = tuple(sorted(f"{_called(before)} -> {_called(after)}" for before, after in found.across))
    return Way(
        sum(size for (before, after), size in traffic.items() if before != after),
        found.send,
        found.receive,
        found.cut,
        found.seconds,
        " and ".join(ends) or "cut",
        edges,
    )


def _called(node: Card) -> str:
    return node if isinstance(node, str) else f"card {node[0]}.{node[1]}"


def _micro(stages: Stages, batches: int) -> MicroBatches:
    taken = stages.pipelined(batches)
    limits = [contention_limit(stages.all, batches, slowed) for slowed in ((0, 2), (1,))]
    exchange_limit, compute_limit = (limit if math.isfinite(limit) else None for limit in limits)
    return MicroBatches(batches, taken, stages.total - taken, exchange_limit, compute_limit)


def _messages(case: Case, requests: float) -> Messages:
    row, least = case.row_bytes[0], formulas.message_crossover(case.asked.link, requests)
    return Messages(row, least, "bytes" if row > least else "requests")


def _steps(case: Case, now: Stages) -> Iterator[Step]:
    asked = case.asked
    tried = {"twice the link of each card": case.changed(link=2.0 * asked.link).stages()}
    if asked.between is not None:
        tried["twice what the switches carry"] = case.changed(between=2.0 * asked.between).stages()
    if asked.group is not None:
        wider = asked.group.model_copy(update={"inside": 2.0 * asked.group.inside})
        tried["twice the link inside servers"] = case.changed(group=wider).stages()
    if asked.dispatch == "bf16":
        tried["dispatch in FP8"] = replace(now, dispatch=now.dispatch * BYTES["fp8"] / BYTES["bf16"])
    if skew.skew(case.rows) > SAME:
        even = (sum(case.rows) / len(case.rows),) * len(case.rows)
        tried["rows spread evenly"] = replace(case, rows=even).stages()
    tried["cards twice as quick"] = replace(now, compute=now.compute / 2.0)
    for change, stages in tried.items():
        yield Step(change, stages.total, now.total - stages.total)


def _narrow(asked: Exchange, crossing: float, found: Bound) -> Iterator[Flip]:
    """What the switches of two pools must carry so that they do not bind; all the traffic crosses them."""
    if asked.between is not None:
        enough = crossing / max(found.send, found.receive)
        yield Flip("exchange.between", "an exchange", enough, "B/s", "the switches", "a card", asked.between)


def _flips(case: Case, compute: float) -> Iterator[Flip]:
    """The link of a card from which the experts take longer than either exchange.

    All links carry as much both ways, and results are no smaller than inputs, so that combine is the slower one.
    """
    stated, fixed = case.asked.link, _fixed(case)
    link = stated / SPAN
    while link <= stated * SPAN:
        moved = case.changed(link=link)
        graph, (_, back) = moved.graph(), moved.traffic()
        found = exchange.bound(graph, back)
        if found.seconds <= compute * SAME:
            if link > stated / SPAN:
                yield Flip("exchange.link", "the layer", link, "B/s", "an exchange", "the experts", stated)
            return
        widths = {edge: graph.edges[edge]["capacity"] for edge in found.across}
        kept = sum(width for edge, width in widths.items() if edge in fixed)
        scaled = (sum(widths.values()) - kept) / link
        if not scaled:
            return  # what binds does not depend on this link
        # The next link is that at which this cut takes as long as the experts; another cut may then bind.
        link = (found.seconds * sum(widths.values()) / compute - kept) / scaled


def _fixed(case: Case) -> set[tuple[Card, Card]]:
    """Edges that another link of the cards leaves as they are."""
    wider = case.changed(link=2.0 * case.asked.link).graph()
    return {
        (before, after)
        for before, after, edge in case.graph().edges(data=True)
        if wider.edges[before, after]["capacity"] == edge["capacity"]
    }
