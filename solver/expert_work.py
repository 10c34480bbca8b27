"""One expert of a layer, what computes it, and a grouped GEMM over the experts of a card, tile by tile."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.hardware import Accelerator, Cpu, Efficiency
from models.llm import Llm
from solver.formulas import experts, parallel, parameters, stages, tiles
from solver.shapes import BYTES


@dataclass(frozen=True)
class Engine:
    """What a processor reaches."""

    flops: float
    """FLOP/s."""
    bandwidth: float
    """B/s of the memory that holds the weights."""

    def seconds(self, flops: float, read: float) -> float:
        """Roofline time of so much work and traffic."""
        return stages.roofline_seconds(
            stages.compute_seconds(flops, self.flops), stages.memory_seconds(read, self.bandwidth)
        )


def gpu(card: Accelerator, efficiency: Efficiency, precision: str = "bf16") -> Engine:
    """A GPU at a share of its peaks."""
    peak = card.compute.get(precision, card.compute["bf16"])
    return Engine(
        stages.effective_peak(peak, efficiency.compute), stages.effective_peak(card.bandwidth, efficiency.bandwidth)
    )


def socket(cpu: Cpu, kernel: str, remote: bool = False) -> Engine:
    """A CPU socket under one kernel, as measured; ``remote`` when the weights lie in the other socket's memory."""
    return Engine(cpu.kernels[kernel], cpu.remote_bandwidth if remote else cpu.bandwidth)


@dataclass(frozen=True)
class Expert:
    """A gated expert: two matrices from width ``hidden`` to ``width``, one back."""

    hidden: int
    width: int
    weight_bytes: float = 2.0
    """Of a parameter: 2 in BF16, 1 in FP8, 0.5 in INT4 without its scales."""
    activation_bytes: float = 2.0

    @property
    def params(self) -> float:
        """Parameters."""
        return parameters.expert_parameters(self.hidden, self.width, 1.0)

    @property
    def weights(self) -> float:
        """Bytes of the weights."""
        return experts.weight_bytes(self.params, self.weight_bytes)

    def flops(self, rows: float) -> float:
        """Work of ``rows`` rows."""
        return experts.expert_flops(rows, self.params)

    def activations(self, rows: float) -> float:
        """Bytes of ``rows`` inputs, or of as many outputs."""
        return parallel.activation_bytes(rows, self.hidden, self.activation_bytes)


def expert_of(llm: Llm, weight_bytes: float | None = None) -> Expert:
    """A routed expert of a mixture of experts, in the precision of its layers unless told otherwise."""
    kept = BYTES[llm.weights] if weight_bytes is None else weight_bytes
    return Expert(llm.hidden_size, llm.moe_intermediate_size or llm.intermediate_size, kept, BYTES["bf16"])


@dataclass(frozen=True)
class Tiles:
    """Output tiles of a grouped GEMM."""

    rows: int = 64
    columns: int = 128

    def traffic(self, expert: Expert, rows: Sequence[float]) -> float:
        """Bytes that the experts of a card read and write; ``rows`` are those of each of them."""
        tile = (self.rows, self.columns, expert.weight_bytes, expert.activation_bytes)
        return sum(tiles.expert_bytes(each, expert.hidden, expert.width, *tile) for each in rows)

    def flops(self, expert: Expert, rows: Sequence[float]) -> float:
        """Work that runs, padding included."""
        return expert.flops(tiles.padded_rows(rows, self.rows))

    def seconds(self, expert: Expert, rows: Sequence[float], engine: Engine) -> float:
        """Time of the experts of a card: the longer of all the work and all the traffic."""
        return engine.seconds(self.flops(expert, rows), self.traffic(expert, rows))
