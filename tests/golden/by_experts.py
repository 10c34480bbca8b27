"""Quantities of experts in host memory, on GPUs and in copies. Inputs are those of values-ex*.yaml; results SI."""

from collections.abc import Sequence

from models.hardware import Efficiency
from solver.expert_work import Engine, Expert, Tiles, expert_of, gpu, socket
from solver.formulas import experts, handoff, offload, replication, stages, tiles
from solver.offload import Offload
from solver.replication import Layer, Replication, weigh
from solver.skew import Placement
from tests.golden.reading import (
    CONSTANTS,
    Quantity,
    accelerator,
    cpu_socket,
    in_bytes,
    in_bytes_per_s,
    in_seconds,
    llm,
    per_second,
)


def expert(model: str) -> Expert:
    """A routed expert of a model, in BF16."""
    return expert_of(llm(model))


def engine(card: str) -> Engine:
    """A card at the efficiency of the constants."""
    share = CONSTANTS["efficiency"]
    return gpu(accelerator(card), Efficiency(compute=share, bandwidth=share))


def chosen(model: str) -> int:
    """Experts that a token chooses."""
    count = llm(model).num_experts_per_tok
    assert count
    return count


# --- weights and rows ---------------------------------------------------------------------------------


def expert_params(model: str) -> float:
    return expert(model).params


def expert_bytes(model: str, experts: int = 1, layers: int = 1) -> float:
    return expert(model).weights * experts * layers


def replica_bytes_ratio(model: str, layers: int, instead: int) -> float:
    return expert_bytes(model, layers=layers) / expert_bytes(model, layers=instead)


def read_ratio(model: str, spread: int, concentrated: int) -> float:
    return expert_bytes(model, spread) / expert_bytes(model, concentrated)


def dispatches(tokens: int, chosen: int) -> float:
    return experts.dispatches(tokens, chosen)


def mean_rows(tokens: int, chosen: int, places: int) -> float:
    return experts.mean_rows(tokens, chosen, places)


def expert_work(model: str, rows: int) -> float:
    return expert(model).flops(rows)


def active_experts(model: str, tokens: int) -> float:
    count = llm(model).experts
    assert count
    return experts.active_experts(count, chosen(model), tokens)


def active_bytes(model: str, tokens: int) -> float:
    return expert(model).weights * active_experts(model, tokens)


# --- CPU and GPU --------------------------------------------------------------------------------------


def expert_read(model: str, cpu: str, experts: int = 1, remote: bool = False) -> float:
    host = socket(cpu_socket(cpu), "avx512", remote)  # reading is the same whatever the kernel
    return stages.memory_seconds(expert_bytes(model, experts), host.bandwidth)


def expert_move(model: str, link: str, experts: int = 1) -> float:
    return handoff.transfer_seconds(expert_bytes(model, experts), in_bytes_per_s(link))


def expert_compute(
    model: str, rows: float, cpu: str | None = None, kernel: str = "", card: str = "", remote: bool = False
) -> float:
    where = socket(cpu_socket(cpu), kernel, remote) if cpu else engine(card)
    return stages.compute_seconds(expert(model).flops(rows), where.flops)


def concentrated_over_even(model: str, card: str, tokens: int, chosen: int, cards: int) -> float:
    alone = expert_compute(model, dispatches(tokens, chosen), card=card)
    return alone / expert_compute(model, mean_rows(tokens, chosen, cards), card=card)


def offloaded(
    model: str,
    link: str,
    startup: str,
    cpu: str = "xeon-8452y",
    kernel: str = "amx",
    card: str = "a100-40gb-pcie",
    remote: bool = False,
) -> Offload:
    """An expert between a CPU and a card; each path needs only one of them."""
    host = socket(cpu_socket(cpu), kernel, remote)
    return Offload(expert(model), host, engine(card), in_bytes_per_s(link), in_seconds(startup))


def experts_on_cpu(
    model: str, rows: int, cpu: str, kernel: str, link: str, startup: str, experts: int = 1, remote: bool = False
) -> float:
    return experts * offloaded(model, link, startup, cpu, kernel, remote=remote).on_cpu(rows)


def experts_on_gpu(model: str, rows: int, card: str, link: str, startup: str, experts: int = 1) -> float:
    return experts * offloaded(model, link, startup, card=card).on_gpu(rows)


def cpu_over_gpu(
    model: str, rows: int, cpu: str, kernel: str, card: str, link: str, startup: str, experts: int
) -> float:
    there = experts_on_cpu(model, rows, cpu, kernel, link, startup, experts)
    return there / experts_on_gpu(model, rows, card, link, startup, experts)


def last_cpu_rows(model: str, cpu: str, kernel: str, card: str, link: str, startup: str) -> float:
    return offloaded(model, link, startup, cpu, kernel, card).last_cpu_rows()


def first_gpu_rows(model: str, cpu: str, kernel: str, card: str, link: str, startup: str) -> float:
    return offloaded(model, link, startup, cpu, kernel, card).first_gpu_rows()


def cpu_knee(cpu: str, kernel: str, remote: bool = False, weight_bytes: float = 2.0) -> float:
    host = socket(cpu_socket(cpu), kernel, remote)
    return offload.knee_rows(host.flops, host.bandwidth, weight_bytes)


def remote_read_increase(cpu: str) -> float:
    model = "qwen3-235b-a22b"  # any: the size of an expert drops out
    return expert_read(model, cpu, remote=True) / expert_read(model, cpu) - 1.0


def token_ceiling(model: str, cpu: str, kernel: str) -> float:
    host = socket(cpu_socket(cpu), kernel)
    return experts.token_ceiling(host.flops, llm(model).num_hidden_layers, chosen(model), expert(model).params)


def token_backlog_growth(model: str, cpu: str, kernel: str, demand: str) -> float:
    return experts.token_backlog_growth(per_second(demand), token_ceiling(model, cpu, kernel))


# --- tiles and copies ---------------------------------------------------------------------------------


def padded_rows(rows: Sequence[int], tile: int, empty: bool = False) -> float:
    return tiles.padded_rows(rows, tile, empty)


def padding_factor(rows: Sequence[int], tile: int, empty: bool = False) -> float:
    return padded_rows(rows, tile, empty) / padded_rows(rows, 1)


def padded_work(model: str, rows: Sequence[int], tile: int, empty: bool = False) -> float:
    return expert(model).flops(padded_rows(rows, tile, empty))


def copied(count: int) -> list[tuple[int, int]]:
    """One copy each of so many experts, all of them on card 0 before: expert 1 on card 1, and so on."""
    return [(index, index) for index in range(1, count + 1)]


def replicated_rows(rows: Sequence[int], copies: int) -> float:
    placement = Placement(len(rows), ((0,),) * len(rows)).with_copies(copied(copies))
    return max(placement.loads(rows))


def on_one_card(model: str, rows: Sequence[int], card: str) -> Layer:
    """A layer with as many cards as experts, all of these on the first."""
    return Layer(expert(model), Tiles(64, 128), engine(card), Placement(len(rows), ((0,),) * len(rows)))


def weighed(
    model: str,
    rows: Sequence[int],
    copies: int,
    card: str = "h100-sxm",
    link: str = "450 GB/s",
    startup: str = "5 us",
    space: str = "64 MiB",
) -> Replication:
    """Copies of hot experts on one card, weighed."""
    spare = dict.fromkeys(range(len(rows)), in_bytes(space))
    there = on_one_card(model, rows, card)
    return weigh(there, rows, copied(copies), in_bytes_per_s(link), in_seconds(startup), spare)


def replicated_seconds(model: str, rows: Sequence[int], copies: int, card: str) -> float:
    return on_one_card(model, rows, card).seconds(rows) - weighed(model, rows, copies, card).saving


def replica_saving(model: str, rows: Sequence[int], copies: int, card: str) -> float:
    return weighed(model, rows, copies, card).saving


def replica_copying(model: str, copies: int, link: str, startup: str) -> float:
    return weighed(model, [1] * (copies + 1), copies, link=link, startup=startup).copying


def replica_payback(model: str, rows: Sequence[int], copies: int, card: str, link: str, startup: str) -> float:
    return weighed(model, rows, copies, card, link, startup).payback


def replica_fits(model: str, space: str) -> float:
    return replication.copies_fit(in_bytes(space), expert(model).weights)


QUANTITIES: dict[str, Quantity] = {
    function.__name__: function
    for function in (
        expert_params,
        expert_bytes,
        replica_bytes_ratio,
        read_ratio,
        dispatches,
        mean_rows,
        expert_work,
        active_experts,
        active_bytes,
        expert_read,
        expert_move,
        expert_compute,
        concentrated_over_even,
        experts_on_cpu,
        experts_on_gpu,
        cpu_over_gpu,
        last_cpu_rows,
        first_gpu_rows,
        cpu_knee,
        remote_read_increase,
        token_ceiling,
        token_backlog_growth,
        padded_rows,
        padding_factor,
        padded_work,
        replicated_rows,
        replicated_seconds,
        replica_saving,
        replica_copying,
        replica_payback,
        replica_fits,
    )
}
"""Quantity -> how it follows from its inputs."""
