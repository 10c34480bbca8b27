"""Quantities of state in memory, on drives and on pages. Inputs are those of values.yaml; results SI."""

from solver import passes
from solver.formulas import handoff, pages, prefetch, tiers
from tests.golden.by_formula import kv_transfer
from tests.golden.by_roofline import stage_value
from tests.golden.reading import Quantity, in_bytes, in_bytes_per_s, in_seconds, kv, one, per_second, per_token, shape

# --- places -------------------------------------------------------------------------------------------


def memory_after_weights(model: str, capacity: str) -> float:
    return tiers.memory_after_weights(in_bytes(capacity), shape(model).resident)


def share_of_card(capacity: str, cards: int) -> float:
    return tiers.share_of_card(in_bytes(capacity), cards)


def path_fetch(model: str, tokens: int, links: list[str]) -> float:
    return tiers.path_seconds(kv(model, tokens), [in_bytes_per_s(link) for link in links])


def repeated_reads(model: str, tokens: int, link: str, reads: int) -> float:
    return tiers.repeated_read_seconds(kv(model, tokens), in_bytes_per_s(link), reads)


def link_demand_share(model: str, tokens: int, rate: str, link: str) -> float:
    return handoff.handoff_bandwidth(per_second(rate), kv(model, tokens)) / in_bytes_per_s(link)


def blocks_bytes(model: str, blocks: int, block_tokens: int) -> float:
    return pages.page_bytes(per_token(model), block_tokens, blocks)


def prompt_state(workload: str, card: str) -> float:
    described = one(workload, card).workload
    return kv(described.model, described.classes[0].input)


def state_production(workload: str, card: str) -> float:
    return tiers.state_production(prompt_state(workload, card), stage_value(workload, card, "prefill"))


def production_share(workload: str, card: str, bandwidth: str) -> float:
    return state_production(workload, card) / in_bytes_per_s(bandwidth)


def retention(workload: str, card: str, capacity: str) -> float:
    return tiers.retention_seconds(in_bytes(capacity), state_production(workload, card))


def hbm_retention(workload: str, card: str) -> float:
    at = one(workload, card)
    free = tiers.memory_after_weights(at.device.memory, at.shape.resident)
    return tiers.retention_seconds(free, state_production(workload, card))


def capacity_for_interval(workload: str, card: str, interval: str) -> float:
    return tiers.capacity_for_interval(state_production(workload, card), in_seconds(interval))


# --- saving, and what drives endure -------------------------------------------------------------------


def save_and_use(model: str, tokens: int, write: str, read: str, uses: int = 1) -> float:
    return tiers.save_and_use_seconds(kv_transfer(model, tokens, write), kv_transfer(model, tokens, read), uses)


def save_over_recompute(workload: str, card: str, link: str) -> float:
    described = one(workload, card).workload
    spent = save_and_use(described.model, described.classes[0].input, link, link)
    return spent / stage_value(workload, card, "prefill")


def break_even_bandwidth(workload: str, card: str, uses: int) -> float:
    return tiers.break_even_bandwidth(prompt_state(workload, card), stage_value(workload, card, "prefill"), uses)


def rated_write_rate(capacity: str) -> float:
    return tiers.sustained_write_rate(in_bytes(capacity), writes_per_day=1)


def writes_over_rated(workload: str, card: str, capacity: str) -> float:
    return state_production(workload, card) / rated_write_rate(capacity)


def writable_share(workload: str, card: str, capacity: str) -> float:
    return tiers.writable_share(rated_write_rate(capacity), state_production(workload, card))


def drive_life(workload: str, card: str, capacity: str, rated_life: str) -> float:
    return tiers.drive_life(in_seconds(rated_life), rated_write_rate(capacity), state_production(workload, card))


def retention_at_rated_writes(capacity: str) -> float:
    return tiers.retention_seconds(in_bytes(capacity), rated_write_rate(capacity))


# --- reading layer by layer ---------------------------------------------------------------------------


def extend_seconds(model: str, card: str, new: int, cached: int) -> float:
    assert one("base", card).workload.model == model
    return passes.prefill(shape(model), one("base", card).device, new, cached).seconds


def read_then_compute(link: str, model: str, card: str, new: int, cached: int) -> float:
    return prefetch.read_then_compute_seconds(
        kv_transfer(model, cached, link), extend_seconds(model, card, new, cached)
    )


def layer_bytes(model: str, cached: int, layers: int = 1) -> float:
    return prefetch.layer_bytes(kv(model, cached), shape(model).layers, layers)


def layer_read(link: str, model: str, cached: int) -> float:
    return handoff.transfer_seconds(layer_bytes(model, cached), in_bytes_per_s(link))


def layer_compute(model: str, card: str, new: int, cached: int) -> float:
    return extend_seconds(model, card, new, cached) / shape(model).layers


def layer_read_over_compute(link: str, model: str, card: str, new: int, cached: int) -> float:
    return layer_read(link, model, cached) / layer_compute(model, card, new, cached)


def layerwise_seconds(link: str, model: str, card: str, new: int, cached: int, early: int = 0) -> float:
    read, compute = layer_read(link, model, cached), layer_compute(model, card, new, cached)
    return prefetch.layerwise_seconds(shape(model).layers, read, compute, early)


def buffer_bytes(link: str, model: str, card: str, new: int, cached: int) -> float:
    read, compute = kv_transfer(model, cached, link), extend_seconds(model, card, new, cached)
    return prefetch.buffer_bytes(in_bytes_per_s(link), read, compute)


def buffer_in_layers(link: str, model: str, card: str, new: int, cached: int) -> float:
    return buffer_bytes(link, model, card, new, cached) / layer_bytes(model, cached)


def buffer_layers(link: str, model: str, card: str, new: int, cached: int) -> float:
    return prefetch.buffer_layers(buffer_bytes(link, model, card, new, cached), layer_bytes(model, cached))


def layers_left(link: str, model: str, card: str, new: int, cached: int) -> float:
    read, compute = layer_read(link, model, cached), layer_compute(model, card, new, cached)
    layers = shape(model).layers
    return layers - prefetch.layers_early(layers, read, compute)


# --- pages --------------------------------------------------------------------------------------------


def page_bytes(model: str, page_tokens: int, pages_read: int = 1) -> float:
    return pages.page_bytes(per_token(model), page_tokens, pages_read)


def page_segments(model: str) -> float:
    return pages.page_segments(shape(model).layers)


def segment_bytes(model: str, page_tokens: int) -> float:
    return pages.segment_bytes(page_bytes(model, page_tokens), page_segments(model))


def whole_pages(tokens: int, page_tokens: int) -> float:
    return pages.whole_pages(tokens, page_tokens)


def unused_bytes(model: str, page_tokens: int, read: int, used: int) -> float:
    read_pages, used_pages = whole_pages(read, page_tokens), whole_pages(used, page_tokens)
    return pages.unused_bytes(read_pages, used_pages, page_bytes(model, page_tokens))


def used_share(page_tokens: int, read: int, used: int) -> float:
    return whole_pages(used, page_tokens) / whole_pages(read, page_tokens)


QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (
        memory_after_weights,
        share_of_card,
        path_fetch,
        repeated_reads,
        link_demand_share,
        blocks_bytes,
        state_production,
        production_share,
        retention,
        hbm_retention,
        capacity_for_interval,
        save_and_use,
        save_over_recompute,
        break_even_bandwidth,
        rated_write_rate,
        writes_over_rated,
        writable_share,
        drive_life,
        retention_at_rated_writes,
        extend_seconds,
        read_then_compute,
        layer_bytes,
        layer_read,
        layer_compute,
        layer_read_over_compute,
        layerwise_seconds,
        buffer_bytes,
        buffer_in_layers,
        buffer_layers,
        layers_left,
        page_bytes,
        page_segments,
        segment_bytes,
        whole_pages,
        unused_bytes,
        used_share,
    )
}
"""Quantity -> how it follows from its inputs."""
