"""Quantities that the formulas and the physics give without a solve. Inputs are those of values.yaml; results SI."""

from typing import TypeVar

from models.units import BYTE_RATE, FLOP_RATE, MONEY_RATE, parse
from solver.formulas import cost, drain, handoff, memory, parameters, stages, state, work
from solver.units import DECODE, PREFILL, REPLICA
from tests.golden.reading import (
    Cards,
    Quantity,
    accelerator,
    in_bytes,
    in_bytes_per_s,
    in_seconds,
    kv,
    llm,
    one,
    per_second,
    per_token,
    shape,
    share,
)

QUANTITIES: dict[str, Quantity] = {}
"""Every function below by its name."""
F = TypeVar("F", bound=Quantity)


def quantity(function: F) -> F:
    """Enter a function in QUANTITIES."""
    QUANTITIES[function.__name__] = function
    return function


# --- state and memory ---------------------------------------------------------------------------------


@quantity
def kv_bytes(model: str, tokens: int, batch: int = 1, form: str = "native") -> float:
    return kv(model, tokens, batch, form)


@quantity
def kv_ratio(model_a: str, form_a: str, model_b: str, form_b: str) -> float:
    return per_token(model_a, form_a) / per_token(model_b, form_b)


@quantity
def final_kv_bytes(workload: str, batch: int) -> float:
    described = one(workload, "a100-80gb-sxm").workload
    return kv(described.model, state.covered_tokens(described.input, described.output), batch)


@quantity
def kv_over_weights(model: str, tokens: int, batch: int) -> float:
    return kv(model, tokens, batch) / shape(model).resident


@quantity
def replicated_state(model: str, tokens: int, replicas: int) -> float:
    return state.replicated_state_bytes(kv(model, tokens), replicas)


@quantity
def state_copies(model: str, tokens: int, replicas: int) -> float:
    return replicated_state(model, tokens, replicas) / kv(model, tokens)


@quantity
def state_residency(model: str, tokens: int, duration: str) -> float:
    return state.state_residency(kv(model, tokens), in_seconds(duration))


@quantity
def decode_calls(output: int) -> float:
    return state.decode_calls(output)


@quantity
def covered_tokens(input: int, output: int) -> float:
    return state.covered_tokens(input, output)


@quantity
def weight_bytes(model: str) -> float:
    return shape(model).resident


@quantity
def resident_bytes(
    model: str, tokens: int, batch: int, receive_tokens: int, kv_model: str | None = None, weights: bool = True
) -> float:
    kept = kv_model or model
    resident = shape(model).resident if weights else 0.0
    return memory.resident_bytes(resident, kv(kept, tokens), batch, kv(kept, receive_tokens))


@quantity
def card_memory(card: str) -> float:
    return one("base", card).device.memory


@quantity
def states_that_fit(model: str, tokens: int, capacity: str) -> float:
    return handoff.states_that_fit(in_bytes(capacity), kv(model, tokens))


# --- handoffs and links -------------------------------------------------------------------------------


@quantity
def bandwidth(link: str) -> float:
    return in_bytes_per_s(link)


@quantity
def kv_transfer(model: str, tokens: int, link: str, startup: str = "0 s") -> float:
    return handoff.transfer_seconds(kv(model, tokens), in_bytes_per_s(link), in_seconds(startup))


@quantity
def startup_share(model: str, tokens: int, link: str, startup: str) -> float:
    return handoff.startup_share(kv(model, tokens), in_bytes_per_s(link), in_seconds(startup))


@quantity
def link_rate(model: str, tokens: int, link: str, copies: int = 1) -> float:
    return handoff.link_rate(in_bytes_per_s(link), kv(model, tokens), copies)


@quantity
def handoff_bandwidth(model: str, tokens: int, rate: str, copies: int = 1) -> float:
    return handoff.handoff_bandwidth(per_second(rate), kv(model, tokens), copies)


@quantity
def link_backlog_growth(model: str, tokens: int, rate: str, link: str) -> float:
    return handoff.link_backlog_growth(per_second(rate), kv(model, tokens), in_bytes_per_s(link))


# --- work and stage times -----------------------------------------------------------------------------


@quantity
def prefill_flops(model: str, new: int) -> float:
    cost_of = shape(model)
    return work.prefill_flops(new, 0, cost_of.layers, cost_of.channels, cost_of.layer_params, cost_of.head_params)


@quantity
def prefill_weight_bytes(model: str, new: int) -> float:
    cost_of = shape(model)
    return cost_of.read + parameters.gathered_row_bytes(new, cost_of.hidden, cost_of.other_bytes)


@quantity
def decode_flops(model: str, batch: int, context: int) -> float:
    cost_of = shape(model)
    return work.decode_step_flops(
        batch, context, cost_of.layers, cost_of.channels, cost_of.layer_params, cost_of.head_params
    )


@quantity
def decode_weight_bytes(model: str, batch: int, context: int) -> float:
    return prefill_weight_bytes(model, batch)  # one token of each request, whatever its context


@quantity
def decode_kv_bytes(model: str, batch: int, context: int) -> float:
    return work.decode_kv_read_bytes(batch, context, shape(model).kv_per_token)


@quantity
def effective_peak(peak: str, efficiency: float) -> float:
    return stages.effective_peak(parse(peak, FLOP_RATE if "FLOP" in peak else BYTE_RATE), efficiency)


@quantity
def efficiency_between(low: int, low_share: str, high: int, high_share: str, batch: int) -> float:
    return stages.efficiency_between(batch, low, share(low_share), high, share(high_share))


@quantity
def card_ratio(field: str, card_a: str, card_b: str) -> float:
    a, b = accelerator(card_a), accelerator(card_b)
    return a.compute["bf16"] / b.compute["bf16"] if field == "compute" else a.bandwidth / b.bandwidth


@quantity
def stage_value(workload: str, card: str, field: str) -> float:
    at = one(workload, card)
    if field in ("step", "step_compute"):
        return at.step.seconds if field == "step" else at.step.compute
    return max(at.demand({"prefill": PREFILL, "decode": DECODE, "both": REPLICA}[field]))


@quantity
def stage_ratio(workload_a: str, card_a: str, field: str, workload_b: str, card_b: str) -> float:
    return stage_value(workload_a, card_a, field) / stage_value(workload_b, card_b, field)


@quantity
def prefill_rate(workload: str, card: str) -> float:
    at = one(workload, card)
    return (at.workload.input - at.workload.cached) / at.prefill.seconds


@quantity
def decode_rate(workload: str, card: str) -> float:
    at = one(workload, card)
    return at.batch / at.step.seconds


@quantity
def pool_rate(workload: str, cards: Cards, stage: str) -> float:
    return stages.pool_rate(dict(cards), {card: stage_value(workload, card, stage) for card in cards})


@quantity
def cards_for_load(rate: str, demand: str) -> float:
    return per_second(rate) / stages.pool_rate({"gpu": 1}, {"gpu": in_seconds(demand)})


@quantity
def prefill_interval(cards: int, rate: str) -> float:
    return cards / per_second(rate)


# --- chunked prefill ----------------------------------------------------------------------------------


@quantity
def stall_steps(workload: str, card: str) -> float:
    at = one(workload, card)
    return stages.stalled_steps(at.prefill.seconds, at.step.seconds)


@quantity
def piggyback_tokens(workload: str, card: str) -> float:
    at = one(workload, card)
    new = at.workload.input - at.workload.cached
    per_token = prefill_flops(at.workload.model, new) / new
    return stages.piggyback_tokens(at.step.compute, at.step.memory, per_token, at.device.bf16_flops)


@quantity
def piggyback_chunks(workload: str, card: str) -> float:
    return stages.chunks(one(workload, card).workload.input, piggyback_tokens(workload, card))


@quantity
def piggyback_first_token(workload: str, card: str) -> float:
    return stages.chunked_first_token_seconds(piggyback_chunks(workload, card), one(workload, card).step.seconds)


# --- MLA: more work for the query, for fewer bytes ----------------------------------------------------


@quantity
def mla_extra_flops(model: str, layers: int | None = None) -> float:
    described = llm(model)
    nope, latent, v_dim = described.qk_nope_head_dim, described.kv_lora_rank, described.v_head_dim
    assert nope
    assert latent
    assert v_dim
    return work.mla_query_flops(
        layers or described.num_hidden_layers, described.num_attention_heads, nope, latent, v_dim
    )


@quantity
def mla_extra_time(model: str, card: str, calls: int = 1) -> float:
    return calls * stages.compute_seconds(mla_extra_flops(model), one("base", card).device.bf16_flops)


@quantity
def mla_decode_demand(workload: str, card: str, mla_model: str) -> float:
    calls = int(state.decode_calls(one(workload, card).workload.output))
    return stage_value(workload, card, "decode") + mla_extra_time(mla_model, card, calls)


@quantity
def mla_decode_pool(workload: str, card: str, cards: int, mla_model: str) -> float:
    return stages.pool_rate({card: cards}, {card: mla_decode_demand(workload, card, mla_model)})


# --- drain and money ----------------------------------------------------------------------------------


@quantity
def required_rate(arrival: str, startup: str, deadline: str) -> float:
    return drain.required_rate(per_second(arrival), in_seconds(startup), in_seconds(deadline))


@quantity
def requests_in(rate: str, time: str) -> float:
    return per_second(rate) * in_seconds(time)


@quantity
def cost_per_thousand(hourly: str, rate: str) -> float:
    return cost.cost_per_thousand(parse(hourly, MONEY_RATE), per_second(rate))
