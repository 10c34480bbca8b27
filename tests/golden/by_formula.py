"""Quantities of state, links, drain and money that the formulas give. Inputs are those of values.yaml; results SI."""

from models.units import MONEY_RATE, parse
from solver.formulas import cost, drain, handoff, memory, state
from tests.golden.reading import (
    Quantity,
    in_bytes,
    in_bytes_per_s,
    in_seconds,
    kv,
    one,
    per_second,
    per_token,
    shape,
)

# --- state and memory ---------------------------------------------------------------------------------


def kv_bytes(model: str, tokens: int, batch: int = 1, form: str = "native") -> float:
    return kv(model, tokens, batch, form)


def kv_ratio(model_a: str, form_a: str, model_b: str, form_b: str) -> float:
    return per_token(model_a, form_a) / per_token(model_b, form_b)


def final_kv_bytes(workload: str, batch: int) -> float:
    described = one(workload, "a100-80gb-sxm").workload
    [length] = described.classes
    return kv(described.model, state.covered_tokens(length.input, length.output), batch)


def kv_over_weights(model: str, tokens: int, batch: int) -> float:
    return kv(model, tokens, batch) / shape(model).resident


def replicated_state(model: str, tokens: int, replicas: int) -> float:
    return state.replicated_state_bytes(kv(model, tokens), replicas)


def state_copies(model: str, tokens: int, replicas: int) -> float:
    return replicated_state(model, tokens, replicas) / kv(model, tokens)


def state_residency(model: str, tokens: int, duration: str) -> float:
    return state.state_residency(kv(model, tokens), in_seconds(duration))


def decode_calls(output: int) -> float:
    return state.decode_calls(output)


def prefill_calls(output: int) -> float:
    return output - decode_calls(output)  # every output token comes from a call


def tokens_in_steps(steps: int, batch: int) -> float:
    return steps * batch


def tokens_registered(requests: int, tokens: int) -> float:
    return requests * tokens


def covered_tokens(input: int, output: int) -> float:
    return state.covered_tokens(input, output)


def weight_bytes(model: str) -> float:
    return shape(model).resident


def resident_bytes(
    model: str, tokens: int, batch: int, receive_tokens: int, kv_model: str | None = None, weights: bool = True
) -> float:
    kept = kv_model or model
    resident = shape(model).resident if weights else 0.0
    return memory.resident_bytes(resident, kv(kept, tokens), batch, kv(kept, receive_tokens))


def two_states(model: str, tokens: int) -> float:
    return memory.double_buffer_bytes(kv(model, tokens))


def card_memory(card: str) -> float:
    return one("base", card).device.memory


def states_that_fit(model: str, tokens: int, capacity: str) -> float:
    return handoff.states_that_fit(in_bytes(capacity), kv(model, tokens))


# --- handoffs and links -------------------------------------------------------------------------------


def bandwidth(link: str) -> float:
    return in_bytes_per_s(link)


def kv_transfer(model: str, tokens: int, link: str, startup: str = "0 s") -> float:
    return handoff.transfer_seconds(kv(model, tokens), in_bytes_per_s(link), in_seconds(startup))


def startup_share(model: str, tokens: int, link: str, startup: str) -> float:
    return handoff.startup_share(kv(model, tokens), in_bytes_per_s(link), in_seconds(startup))


def link_rate(model: str, tokens: int, link: str, copies: int = 1) -> float:
    return handoff.link_rate(in_bytes_per_s(link), kv(model, tokens), copies)


def handoff_bandwidth(model: str, tokens: int, rate: str, copies: int = 1) -> float:
    return handoff.handoff_bandwidth(per_second(rate), kv(model, tokens), copies)


def link_backlog_growth(model: str, tokens: int, rate: str, link: str) -> float:
    return handoff.link_backlog_growth(per_second(rate), kv(model, tokens), in_bytes_per_s(link))


def pooled_bytes(model: str, tokens: int, reuses: int = 0) -> float:
    return handoff.pooled_payload(kv(model, tokens), reuses)


def pooled_wait(model: str, tokens: int, link: str) -> float:
    once = kv_transfer(model, tokens, link)
    return handoff.pooled_residence_seconds(once, once)


def pooled_extra_wait(model: str, tokens: int, link: str) -> float:
    return pooled_wait(model, tokens, link) - kv_transfer(model, tokens, link)


# --- drain and money ----------------------------------------------------------------------------------


def required_rate(arrival: str, startup: str, deadline: str) -> float:
    return drain.required_rate(per_second(arrival), in_seconds(startup), in_seconds(deadline))


def startup_backlog(arrival: str, startup: str) -> float:
    return drain.startup_backlog(per_second(arrival), in_seconds(startup))


def steps_to_recover(spent: str, saved: str) -> float:
    return in_seconds(spent) / in_seconds(saved)


def requests_in(rate: str, time: str) -> float:
    return per_second(rate) * in_seconds(time)


def cost_per_thousand(hourly: str, rate: str) -> float:
    return cost.cost_per_thousand(parse(hourly, MONEY_RATE), per_second(rate))


QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (
        kv_bytes,
        kv_ratio,
        final_kv_bytes,
        kv_over_weights,
        replicated_state,
        state_copies,
        state_residency,
        decode_calls,
        prefill_calls,
        tokens_in_steps,
        tokens_registered,
        covered_tokens,
        weight_bytes,
        resident_bytes,
        two_states,
        card_memory,
        states_that_fit,
        bandwidth,
        kv_transfer,
        startup_share,
        link_rate,
        handoff_bandwidth,
        link_backlog_growth,
        pooled_bytes,
        pooled_wait,
        pooled_extra_wait,
        required_rate,
        startup_backlog,
        steps_to_recover,
        requests_in,
        cost_per_thousand,
    )
}
"""Quantity -> how it follows from its inputs."""
