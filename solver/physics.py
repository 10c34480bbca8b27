"""From described hardware and models to stage times: the formulas applied, one request at a time.

Every function here takes a :class:`Shape` (what a model costs) and a :class:`Device` (what a GPU gives).
"""

from dataclasses import dataclass

from models.hardware import Group
from models.instance import Instance
from models.llm import Llm
from models.workload import Request, Workload
from solver.formulas import memory, parameters, stages, state, work

BYTES = {"bf16": 2.0, "fp8": 1.0}
"""Bytes of an element by precision."""


@dataclass(frozen=True)
class Shape:
    """What a model costs: parameters, bytes, and the width of its attention."""

    layers: int
    hidden: int
    channels: int
    layer_params: float
    head_params: float
    resident: float
    """Weight bytes that a unit keeps."""
    read: float
    """Weight bytes that one pass reads, embedding rows apart."""
    other_bytes: float
    """Bytes of an element of embeddings, head and norms."""
    kv_per_token: float
    """Bytes of state that attention reads."""
    state_per_token: float
    """Bytes of state that are kept and handed over; the same unless the model has a `handoff_state`."""
    query_flops: float
    """Work of a decode call that nothing hides, beside the roofline."""
    precision: str
    """Of the layer matrices."""


@dataclass(frozen=True)
class Device:
    """What one GPU gives: usable memory in bytes, effective FLOP/s and B/s."""

    memory: float
    matrix_flops: float
    """For layer matrices, in the precision of the weights where the GPU has it."""
    bf16_flops: float
    """For attention and the output head."""
    bandwidth: float


@dataclass(frozen=True)
class Work:
    """Compute and memory seconds of a piece of work."""

    compute: float
    memory: float

    @property
    def seconds(self) -> float:
        """Roofline time."""
        return stages.roofline_seconds(self.compute, self.memory)


@dataclass(frozen=True)
class Step:
    """A decode step of b requests: memory seconds ``fixed + b memory``, compute seconds ``b compute``."""

    fixed: float
    memory: float
    compute: float

    def at(self, batch: float) -> Work:
        """The step at ``batch`` requests."""
        return Work(batch * self.compute, self.fixed + batch * self.memory)


def shape_of(llm: Llm) -> Shape:
    """The costs of a dense model with MHA or GQA attention."""
    layer_bytes, other_bytes = BYTES[llm.weights], BYTES["bf16"]
    layer = parameters.layer_parameters(
        llm.num_hidden_layers,
        llm.hidden_size,
        llm.num_attention_heads,
        llm.num_key_value_heads,
        llm.head_dim,
        llm.intermediate_size,
    )
    head = parameters.head_parameters(llm.hidden_size, llm.vocab_size)
    norm = parameters.norm_parameters(llm.num_hidden_layers, llm.hidden_size, llm.head_dim, llm.qk_norm)
    return Shape(
        layers=llm.num_hidden_layers,
        hidden=llm.hidden_size,
        channels=llm.num_attention_heads * llm.head_dim,
        layer_params=layer,
        head_params=head,
        resident=parameters.resident_weight_bytes(layer, head, norm, layer_bytes, other_bytes, llm.tie_word_embeddings),
        read=parameters.read_weight_bytes(layer, head, norm, layer_bytes, other_bytes),
        other_bytes=other_bytes,
        kv_per_token=state_bytes_per_token(llm),
        state_per_token=state_bytes_per_token(llm.handoff_state or llm),
        query_flops=_query_flops(llm.handoff_state) if llm.handoff_state and llm.query_work == "added" else 0.0,
        precision=llm.weights,
    )


def state_bytes_per_token(llm: Llm) -> float:
    """Context state of one token: compact where the model has MLA, else keys and values of its KV heads."""
    if llm.kv_lora_rank and llm.qk_rope_head_dim:
        return state.kv_bytes_per_token_mla(
            llm.num_hidden_layers, llm.kv_lora_rank, llm.qk_rope_head_dim, BYTES[llm.kv]
        )
    return state.kv_bytes_per_token_gqa(llm.num_hidden_layers, llm.num_key_value_heads, llm.head_dim, BYTES[llm.kv])


def _query_flops(llm: Llm) -> float:
    """Query-side work of a token under compact MLA (section 9.2.3)."""
    nope, value = llm.qk_nope_head_dim or 0, llm.v_head_dim or 0
    return work.mla_query_flops(llm.num_hidden_layers, llm.num_attention_heads, nope, llm.kv_lora_rank or 0, value)


def device_of(instance: Instance, group: Group, precision: str) -> Device:
    """One GPU of ``group`` at the efficiency that applies to it."""
    card = group.accelerator
    efficiency = group.efficiency or instance.hardware.efficiency
    bf16 = card.compute["bf16"]
    return Device(
        memory=memory.usable_bytes(card.memory, group.usable),
        matrix_flops=stages.effective_peak(card.compute.get(precision, bf16), efficiency.compute),
        bf16_flops=stages.effective_peak(bf16, efficiency.compute),
        bandwidth=stages.effective_peak(card.bandwidth, efficiency.bandwidth),
    )


def prefill(shape: Shape, device: Device, new: float, cached: float) -> Work:
    """Prefill of ``new`` tokens behind ``cached`` ones."""
    pairs = work.causal_pairs(new, cached)
    other = work.attention_flops(shape.layers, shape.channels, pairs) + work.head_flops(1.0, shape.head_params)
    compute = stages.compute_seconds(
        work.prefill_matrix_flops(new, shape.layer_params), device.matrix_flops
    ) + stages.compute_seconds(other, device.bf16_flops)
    read = shape.read + parameters.gathered_row_bytes(new, shape.hidden, shape.other_bytes)
    return Work(compute, stages.memory_seconds(read, device.bandwidth))


def decode(shape: Shape, device: Device, context: float) -> Step:
    """A decode step at mean context ``context``."""
    other = work.attention_flops(shape.layers, shape.channels, context + 1.0) + work.head_flops(1.0, shape.head_params)
    compute = stages.compute_seconds(
        work.prefill_matrix_flops(1.0, shape.layer_params), device.matrix_flops
    ) + stages.compute_seconds(other, device.bf16_flops)
    read = parameters.gathered_row_bytes(1.0, shape.hidden, shape.other_bytes) + work.decode_kv_read_bytes(
        1.0, context, shape.kv_per_token
    )
    beside = stages.compute_seconds(shape.query_flops, device.bf16_flops)
    return Step(
        fixed=stages.memory_seconds(shape.read, device.bandwidth),
        memory=stages.memory_seconds(read, device.bandwidth) + beside,
        compute=compute + beside,
    )


def workload_prefill(shape: Shape, device: Device, workload: Workload) -> Work:
    """Prefill of one request of ``workload``."""
    return prefill(shape, device, workload.input - workload.cached, workload.cached)


def workload_decode(shape: Shape, device: Device, workload: Workload) -> Step:
    """A decode step of requests of ``workload``."""
    return decode(shape, device, state.mean_context(workload.input, workload.output))


def handoff_payload(shape: Shape, workload: Workload) -> float:
    """Bytes that one request hands from prefill to decode: the state of its whole input, cached part included."""
    return state.state_bytes(workload.input, shape.state_per_token)


def final_state(shape: Shape, request: Request) -> float:
    """Bytes of state of a request whose output is complete."""
    return state.state_bytes(state.covered_tokens(request.input, request.output), shape.state_per_token)


def input_state(shape: Shape, request: Request) -> float:
    """Bytes of state of the input of a request."""
    return state.state_bytes(request.input, shape.state_per_token)
