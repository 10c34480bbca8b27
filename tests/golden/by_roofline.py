"""Quantities of work and stage times on a card, and of pools of cards. Inputs are those of values.yaml; results SI."""

from models.units import BYTE_RATE, FLOP_RATE, parse
from solver.formulas import parameters, stages, state, work
from solver.passes import read_bytes
from solver.units import DECODE, PREFILL, REPLICA
from tests.golden.by_formula import kv_transfer
from tests.golden.reading import (
    Cards,
    Quantity,
    accelerator,
    in_seconds,
    llm,
    one,
    per_second,
    shape,
    share,
)

# --- work and stage times -----------------------------------------------------------------------------


def prefill_flops(model: str, new: int, cached: int = 0) -> float:
    cost_of = shape(model)
    return work.prefill_flops(new, cached, cost_of.layers, cost_of.channels, cost_of.layer_params, cost_of.head_params)


def prefill_weight_bytes(model: str, new: int) -> float:
    cost_of = shape(model)
    return read_bytes(cost_of, cost_of.read_params(new)) + parameters.gathered_row_bytes(
        new, cost_of.hidden, cost_of.other_bytes
    )


def decode_flops(model: str, batch: int, context: int) -> float:
    cost_of = shape(model)
    return work.decode_step_flops(
        batch, context, cost_of.layers, cost_of.channels, cost_of.layer_params, cost_of.head_params
    )


def decode_weight_bytes(model: str, batch: int, context: int) -> float:
    return prefill_weight_bytes(model, batch)  # one token of each request, whatever its context


def decode_kv_bytes(model: str, batch: int, context: int) -> float:
    return work.decode_kv_read_bytes(batch, context, shape(model).kv.per_token)


def effective_peak(peak: str, efficiency: float) -> float:
    return stages.effective_peak(parse(peak, FLOP_RATE if "FLOP" in peak else BYTE_RATE), efficiency)


def efficiency_between(low: int, low_share: str, high: int, high_share: str, batch: int) -> float:
    return stages.efficiency_between(batch, low, share(low_share), high, share(high_share))


def card_ratio(field: str, card_a: str, card_b: str) -> float:
    a, b = accelerator(card_a), accelerator(card_b)
    return a.compute["bf16"] / b.compute["bf16"] if field == "compute" else a.bandwidth / b.bandwidth


def stage_value(workload: str, card: str, field: str) -> float:
    at = one(workload, card)
    if field in ("step", "step_compute"):
        return at.step.seconds if field == "step" else at.step.compute
    return max(at.demand({"prefill": PREFILL, "decode": DECODE, "both": REPLICA}[field]))


def stage_ratio(workload_a: str, card_a: str, field: str, workload_b: str, card_b: str) -> float:
    return stage_value(workload_a, card_a, field) / stage_value(workload_b, card_b, field)


def stage_drop(workload: str, card: str, field: str, reference: str) -> float:
    return 1.0 - stage_ratio(workload, card, field, reference, card)


def reuse_saving(workload: str, card: str, link: str, reuses: int) -> float:
    state_kept = one(workload, card).workload
    moved = (1 + reuses) * kv_transfer(
        state_kept.model, state_kept.classes[0].input, link
    )  # a detour, and one read a reuse
    return reuses * stage_value(workload, card, "prefill") - moved


def prefill_rate(workload: str, card: str) -> float:
    at = one(workload, card)
    return (at.workload.classes[0].input - at.workload.cached) / at.prefill.seconds


def decode_rate(workload: str, card: str) -> float:
    at = one(workload, card)
    return at.batch / at.step.seconds


def pool_rate(workload: str, cards: Cards, stage: str) -> float:
    return stages.pool_rate(dict(cards), {card: stage_value(workload, card, stage) for card in cards})


def decode_units_per_prefill_unit(prefill: str, decode: str, speedup: float = 1.0) -> float:
    return per_second(prefill) / faster_decode_pool(1, decode, speedup)


def faster_decode_pool(units: int, decode: str, speedup: float) -> float:
    return stages.pool_rate({"unit": units}, {"unit": 1.0 / (per_second(decode) * speedup)})


def decode_units_freed(prefill: str, decode: str, speedup: float) -> float:
    before = decode_units_per_prefill_unit(prefill, decode)
    return before - decode_units_per_prefill_unit(prefill, decode, speedup)


def cards_for_load(rate: str, demand: str) -> float:
    return per_second(rate) / stages.pool_rate({"gpu": 1}, {"gpu": in_seconds(demand)})


def prefill_interval(cards: int, rate: str) -> float:
    return cards / per_second(rate)


# --- chunked prefill ----------------------------------------------------------------------------------


def stall_steps(workload: str, card: str) -> float:
    at = one(workload, card)
    return stages.stalled_steps(at.prefill.seconds, at.step.seconds)


def piggyback_tokens(workload: str, card: str) -> float:
    at = one(workload, card)
    new = at.workload.classes[0].input - at.workload.cached
    per_token = prefill_flops(at.workload.model, new) / new
    return stages.piggyback_tokens(at.step.compute, at.step.memory, per_token, at.device.bf16_flops)


def piggyback_chunks(workload: str, card: str) -> float:
    return stages.chunks(one(workload, card).workload.classes[0].input, piggyback_tokens(workload, card))


def piggyback_first_token(workload: str, card: str) -> float:
    return stages.chunked_first_token_seconds(piggyback_chunks(workload, card), one(workload, card).step.seconds)


# --- MLA: more work for the query, for fewer bytes ----------------------------------------------------


def mla_extra_flops(model: str, layers: int | None = None) -> float:
    described = llm(model)
    nope, latent, v_dim = described.qk_nope_head_dim, described.kv_lora_rank, described.v_head_dim
    assert nope
    assert latent
    assert v_dim
    return work.mla_query_flops(
        layers or described.num_hidden_layers, described.num_attention_heads, nope, latent, v_dim
    )


def mla_extra_time(model: str, card: str, calls: int = 1) -> float:
    return calls * stages.compute_seconds(mla_extra_flops(model), one("base", card).device.bf16_flops)


def mla_decode_demand(workload: str, card: str, mla_model: str) -> float:
    calls = int(state.decode_calls(one(workload, card).workload.classes[0].output))
    return stage_value(workload, card, "decode") + mla_extra_time(mla_model, card, calls)


def mla_decode_pool(workload: str, card: str, cards: int, mla_model: str) -> float:
    return stages.pool_rate({card: cards}, {card: mla_decode_demand(workload, card, mla_model)})


QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (
        prefill_flops,
        prefill_weight_bytes,
        decode_flops,
        decode_weight_bytes,
        decode_kv_bytes,
        effective_peak,
        efficiency_between,
        card_ratio,
        stage_value,
        stage_ratio,
        stage_drop,
        reuse_saving,
        prefill_rate,
        decode_rate,
        pool_rate,
        decode_units_per_prefill_unit,
        faster_decode_pool,
        decode_units_freed,
        cards_for_load,
        prefill_interval,
        stall_steps,
        piggyback_tokens,
        piggyback_chunks,
        piggyback_first_token,
        mla_extra_flops,
        mla_extra_time,
        mla_decode_demand,
        mla_decode_pool,
    )
}
"""Quantity -> how it follows from its inputs."""
