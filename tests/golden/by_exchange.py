"""Quantities of exchanges between cards, of micro-batches and of handoffs in each layer. Results SI."""

from collections.abc import Sequence
from typing import Any

from solver import exchange, pipeline, skew
from solver.exchange import Stages, Traffic
from solver.formulas import exchange as formulas
from solver.formulas import experts as formulas_of_experts
from solver.formulas import handoff, separation
from solver.formulas import pipeline as closed
from solver.separation import Handoffs, handoffs
from tests.golden.by_experts import engine, expert, mean_rows
from tests.golden.by_formula import kv_transfer
from tests.golden.reading import Quantity, in_bytes_per_s, in_seconds, kv, llm, per_second

# --- rows of cards ------------------------------------------------------------------------------------


def other_expert_rows(tokens: int, chosen: int, experts: int, hot: int) -> float:
    return skew.one_hot(tokens, chosen, experts, hot)[-1]


def loads(tokens: int, chosen: int, experts: int, hot: int, cards: int) -> list[float]:
    """Rows of cards, the first expert hot."""
    return skew.by_index(experts, cards).loads(skew.one_hot(tokens, chosen, experts, hot))


def hot_card_rows(tokens: int, chosen: int, experts: int, hot: int, cards: int) -> float:
    return max(loads(tokens, chosen, experts, hot, cards))


def hot_card_excess(tokens: int, chosen: int, experts: int, hot: int, cards: int) -> float:
    return skew.skew(loads(tokens, chosen, experts, hot, cards)) - 1.0


def hot_card_shrink(tokens: int, chosen: int, experts: int, hot: int, few: int, many: int) -> float:
    fewer, more = (hot_card_rows(tokens, chosen, experts, hot, cards) for cards in (few, many))
    return fewer / more


def mean_shrink(tokens: int, chosen: int, few: int, many: int) -> float:
    return mean_rows(tokens, chosen, few) / mean_rows(tokens, chosen, many)


def idle_share(**conditions: int) -> float:
    return formulas_of_experts.idle_share(skew.skew(loads(**conditions)))


def random_excess(tokens: int, chosen: int, experts: int, cards: int, batches: int, seed: int) -> float:
    return skew.random_skew(tokens, chosen, skew.by_index(experts, cards), batches, seed).mean - 1.0


def experts_per_card(experts: int, redundant: int, cards: int) -> float:
    return formulas_of_experts.experts_per_card(experts, redundant, cards)


def expert_skew(groups: Sequence[int]) -> float:
    return skew.skew(groups)


# --- both exchanges -----------------------------------------------------------------------------------


def exchanged_bytes(model: str, rows: int) -> float:
    return expert(model).activations(rows)


def receive_seconds(model: str, rows: int, link: str) -> float:
    return handoff.transfer_seconds(exchanged_bytes(model, rows), in_bytes_per_s(link))


def dispatched_rows(groups: Sequence[int], sources: int, row_bytes: float = 1.0) -> Traffic:
    """Traffic to groups in one pool from as many rows of each source in another."""
    rows = {(1, group): each for group, each in enumerate(groups)}
    return exchange.dispatch(rows, [(0, source) for source in range(sources)], row_bytes)


def rows_per_source(groups: Sequence[int], sources: int) -> float:
    return sum(rows for (source, _), rows in dispatched_rows(groups, sources).items() if source == (0, 0))


def dispatch_bytes(model: str, groups: Sequence[int], sources: int) -> float:
    return sum(dispatched_rows(groups, sources, exchanged_bytes(model, 1)).values())


def group_bytes(model: str, groups: Sequence[int], sources: int, group: int) -> float:
    sent = dispatched_rows(groups, sources, exchanged_bytes(model, 1))
    return sum(size for (_, to), size in sent.items() if to == (1, group))


def pool_cut(cards: int, link: str) -> float:
    traffic = dispatched_rows([cards] * cards, cards)
    return sum(traffic.values()) / exchange.bound(exchange.two_pools(cards, cards, in_bytes_per_s(link)), traffic).cut


def layer(
    model: str,
    groups: Sequence[int],
    sources: int,
    card: str,
    link: str,
    fabric: str | None = None,
    dispatched: str = "bf16",
) -> Stages:
    """Least times of a layer; weights are not read, as the example has it."""
    between = in_bytes_per_s(fabric) if fabric else None
    graph = exchange.two_pools(sources, len(groups), in_bytes_per_s(link), between)
    row, where = exchanged_bytes(model, 1), engine(card)
    there = dispatched_rows(groups, sources, row / 2 if dispatched == "fp8" else row)
    back = exchange.combine(
        {(1, group): each for group, each in enumerate(groups)}, [(0, source) for source in range(sources)], row
    )
    busiest = formulas.card_seconds(expert(model).flops(max(groups)), 0.0, where.flops, where.bandwidth)
    return Stages(exchange.bound(graph, there).seconds, busiest, exchange.bound(graph, back).seconds)


def exchange_stage(field: str, **conditions: Any) -> float:
    stages = layer(**conditions)
    return {"dispatch": stages.dispatch, "compute": stages.compute, "combine": stages.combine}[field]


def staged_seconds(**conditions: Any) -> float:
    return layer(**conditions).total


def exchange_share(**conditions: Any) -> float:
    return layer(**conditions).exchange_share


def compute_share(**conditions: Any) -> float:
    return 1.0 - exchange_share(**conditions)


def hotspot_stretch(groups: Sequence[int], **conditions: Any) -> float:
    even = [sum(groups) // len(groups)] * len(groups)
    return staged_seconds(groups=groups, **conditions) / staged_seconds(groups=even, **conditions)


def message_crossover(link: str, messages: str) -> float:
    return formulas.message_crossover(in_bytes_per_s(link), per_second(messages))


# --- micro-batches and merging ------------------------------------------------------------------------


def micro_batched(batches: int, **conditions: Any) -> float:
    return layer(**conditions).pipelined(batches)


def micro_batch_saving(batches: int, **conditions: Any) -> float:
    return staged_seconds(**conditions) - micro_batched(batches, **conditions)


def in_turn(stages: Sequence[str], batches: int) -> float:
    return closed.serial_seconds([in_seconds(taken) for taken in stages], batches)


def pipelined(stages: Sequence[str], batches: int) -> float:
    return pipeline.total([[in_seconds(taken) for taken in stages]] * batches)


def pipeline_saving(stages: Sequence[str], batches: int) -> float:
    return closed.pipeline_saving([in_seconds(taken) for taken in stages], batches)


def merged(paths: Sequence[str]) -> float:
    [done] = pipeline.token_seconds([[in_seconds(path) for path in paths]])
    return done


# --- handoffs in each layer ---------------------------------------------------------------------------


def handed(model: str, link: str = "25 GB/s", startup: str = "0 s", state_of: str | None = None) -> Handoffs:
    """What a model hands over, or what it would with the state of another."""
    return handoffs(llm(model), in_bytes_per_s(link), in_seconds(startup), llm(state_of) if state_of else None)


def af_messages(model: str) -> float:
    return handed(model).messages


def af_message(model: str) -> float:
    return af_bytes(model) / af_messages(model)


def af_bytes(model: str, tokens: int = 1) -> float:
    return handed(model).step_bytes(tokens)


def af_startups(model: str, startup: str) -> float:
    return separation.messages_seconds(0.0, af_messages(model), in_bytes_per_s("25 GB/s"), in_seconds(startup))


def af_seconds(model: str, link: str, startup: str, tokens: int = 1, steps: int = 1) -> float:
    return steps * handed(model, link, startup).step_seconds(tokens)


def af_request(model: str, input: int, output: int, link: str, startup: str) -> float:
    return handed(model, link, startup).af_seconds(input, output)


def critical_startup(model: str, tokens: int, link: str, state_of: str | None = None) -> float:
    return handed(model, link, state_of=state_of).critical_startup(tokens)


def af_over_pd(model: str, tokens: int, link: str, startup: str, steps: int, state_of: str | None = None) -> float:
    once = kv_transfer(state_of or model, tokens, link)  # the payload alone, as printed
    return af_seconds(model, link, startup, steps=steps) / once


def split_transfer(model: str, tokens: int, link: str, startup: str, parts: int = 1) -> float:
    return separation.messages_seconds(kv(model, tokens), parts, in_bytes_per_s(link), in_seconds(startup))


SIMULATED: dict[str, Quantity] = {"random_excess": random_excess}
"""Drawn with a seed; the values are near those of another generator."""
QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (
        other_expert_rows,
        hot_card_rows,
        hot_card_excess,
        hot_card_shrink,
        mean_shrink,
        idle_share,
        random_excess,
        experts_per_card,
        expert_skew,
        exchanged_bytes,
        receive_seconds,
        rows_per_source,
        dispatch_bytes,
        group_bytes,
        pool_cut,
        exchange_stage,
        staged_seconds,
        exchange_share,
        compute_share,
        hotspot_stretch,
        message_crossover,
        micro_batched,
        micro_batch_saving,
        in_turn,
        pipelined,
        pipeline_saving,
        merged,
        af_messages,
        af_message,
        af_bytes,
        af_startups,
        af_seconds,
        af_request,
        critical_startup,
        af_over_pd,
        split_transfer,
    )
}
"""Quantity -> how it follows from its inputs."""
