"""Units of several GPUs by hand: Llama-3.1-70B in BF16 on H100 at half of peak, NVLink at 360 GB/s a GPU and 5 us.

The model: 80 layers, h = 8192, 64 heads and 8 KV heads of 128, f = 28672, vocabulary 128256. One layer has
2 x 8192 x 8192 + 2 x 8192 x 1024 + 3 x 8192 x 28672 = 855 638 016 parameters, all of them 68 451 041 280; the head has
8192 x 128256 = 1 050 673 152, norms 80 x 16384 + 8192 = 1 318 912. Kept: 2 B x (layers + 2 heads + norms) =
141 107 412 992 B; read in a pass: one head less, 139 006 066 688 B. State: 2 x 80 x 8 x 128 x 2 B = 327 680 B a token.
A GPU: 494.7 TFLOP/s, 1.675 TB/s, 72 GB usable.
"""

from typing import Any

import pytest

from models import files
from models.instance import Instance
from models.load import build
from models.plan import Plan
from solver import physics, units
from solver.attention import Tokens
from solver.formulas import parallel
from solver.solve import Options, solve

NEAR = 1e-9
WORKLOAD = {"model": "m", "rate": "0.01/s", "input": 1024, "output": 257}


def instance(servers: int = 1, per_server: int = 8, **changes: Any) -> Instance:
    """One group of H100; ``changes`` replace or add keys of the document, group keys under ``group``."""
    group = {"accelerator": "H100-SXM-80GB", "servers": servers, "per_server": per_server, "price": "2/h"}
    data: dict[str, Any] = {
        "schema": 1,
        "name": "parallel",
        "hardware": {
            "groups": {"h100": {**group, **changes.pop("group", {})}},
            "links": {"l": {"connects": ["h100"], "bandwidth": "50 GB/s", "startup": "10 us"}},
        },
        "models": {"m": {"catalog": "Llama-3.1-70B"}},
        "workloads": {"w": WORKLOAD},
        "schemes": {"allow": ["pd-direct"]},
        "objective": "throughput",
    }
    return build(files.parse(files.dump({**data, **changes})))


def seconds(kind: units.Kind, batch: int, tp: int, pp: int = 1, hop: tuple[float, float] | None = None) -> Any:
    """Unit-seconds of a request of the workload."""
    made = instance()
    shape = physics.shape_of(made.models["m"])
    card = physics.device_of(made, made.hardware.groups["h100"], "bf16", tp, pp, hop)
    return units.demand(kind, shape, card, made.workloads["w"], batch)


def test_sums_over_gpus() -> None:
    # 8 GPUs, 1 MB: 2 x 7/8 x 1e6 / 360e9 = 4.8611 us on the wire and 2 x 5 us
    assert parallel.allreduce_seconds(1e6, 8, 360e9, 5e-6) == pytest.approx(14.861111111111e-6, rel=NEAR)
    assert parallel.allreduce_seconds(1e6, 1, 360e9, 5e-6) == 0.0
    assert parallel.activation_bytes(3, 8192, 2.0) == 49_152


@pytest.mark.parametrize(("layers", "stages", "most", "last"), [(80, 1, 80, 80), (80, 3, 27, 26), (61, 4, 16, 15)])
def test_layers_are_dealt_to_stages(layers: int, stages: int, most: int, last: int) -> None:
    assert parallel.largest_stage_layers(layers, stages) == most
    assert parallel.last_stage_layers(layers, stages) == last


@pytest.mark.parametrize(
    ("heads", "tp", "share"), [(8, 1, 1.0), (8, 2, 0.5), (8, 8, 0.125), (8, 16, 0.125), (1, 4, 1.0)]
)
def test_heads_fewer_than_gpus_are_kept_several_times(heads: int, tp: int, share: float) -> None:
    assert parallel.state_share(heads, tp) == share


def test_weights_and_state_of_a_gpu() -> None:
    made = instance()
    shape = physics.shape_of(made.models["m"])

    def card(tp: int, pp: int = 1) -> physics.Device:
        return physics.device_of(made, made.hardware.groups["h100"], "bf16", tp, pp)

    assert physics.weights_on_card(shape, card(2)) == 70_553_706_496
    assert physics.weights_on_card(shape, card(8)) == 17_638_426_624
    # of 3 stages the first keeps 27/80 of layers and norms and the embedding: 46 205 342 884.8 + 2 101 346 304 B
    assert physics.weights_on_card(shape, card(2, 3)) == pytest.approx((46_205_343_129.6 + 2_101_346_304) / 2, rel=NEAR)
    assert physics.state_on_card(shape, card(2), Tokens(1.0)) == 163_840
    assert physics.state_on_card(shape, card(16), Tokens(1.0)) == 40_960  # one of eight heads, on two GPUs each
    assert physics.state_on_card(shape, card(2, 3), Tokens(1.0)) == pytest.approx(163_840 * 27 / 80, rel=NEAR)


def test_decode_step_at_tp2() -> None:
    # batch 6 at context 1152: weights 139 006 066 688 / 1.675e12 / 2 = 41.494348 ms; a request reads 8192 B of rows
    # a GPU and 1153 x 163 840 B: 0.11278550 ms. Sums: 160 x 2 x 5 us = 1.6 ms, 160 x 16 384 / 360e9 = 7.2817778 us a
    # request. (41.494348 + 1.6) / 6 + 0.11278550 + 0.0072817778 = 7.3024586 ms a token, 256 of them
    compute, memory = seconds(units.DECODE, 6, 2)
    token = (41.49434826507463e-3 + 1.6e-3) / 6 + 0.11278549970149253e-3 + 7.2817777777777775e-6
    assert memory == pytest.approx(256 * token, rel=NEAR)
    assert memory == pytest.approx(1.869429, rel=1e-6)
    # compute: (2 x 68 451 041 280 + 2 621 440 x 1153 + 2 x 1 050 673 152) / 494.7e12 / 2 = 0.14354755 ms a request
    assert compute == pytest.approx(256 * (0.1435475532484334e-3 + 1.6e-3 / 6 + 7.2817777777777775e-6), rel=NEAR)


def test_prefill_at_tp2() -> None:
    # 2 x 1024 x 68 451 041 280 + 2 621 440 x 524 800 + 2 x 1 050 673 152 = 141.5656 TFLOP: 143.08224 ms on two GPUs;
    # sums: 160 x (1024 x 16 384 / 360e9 + 10 us) = 9.0565404 ms beside it
    assert seconds(units.PREFILL, 1, 2)[0] == pytest.approx(143.08223731528602e-3 + 9.056540444444445e-3, rel=NEAR)
    # chunked: both resources are taken beside by the sums
    _, memory = seconds(units.CHUNKED, 6, 2)
    assert memory - seconds(units.DECODE, 6, 2)[1] == pytest.approx(
        41.499356389253735e-3 + 9.056540444444445e-3, rel=NEAR
    )


def test_decode_in_stages_works_on_parts_of_the_batch() -> None:
    # TP8 x PP2 over a link of 50 GB/s and 10 us: 40 layers a stage. The last reads the head too:
    # (2 x (34 225 520 640 + 659 456) + 2 101 346 304) / 1.675e12 / 8 = 5.2653217 ms; sums 80 x 10 us; a hop of
    # 16 384 / 50e9 + 10 us. A request reads 1024 x 2 B rows and 1153 x 327 680 / 2 / 8 B: 14.099106 us
    step = (70_553_706_496 / 1.675e12 / 8, 80 * 10e-6 + 10e-6)
    each = (16_384 / 8 + 1153 * 20_480) / 1.675e12 + 80 * 14 / 8 * 16_384 / 360e9 + 16_384 / 50e9
    assert step[0] == pytest.approx(5.2653e-3, rel=1e-4)
    for batch, part in ((16, 8), (17, 8), (18, 9)):
        _, memory = seconds(units.DECODE, batch, 8, 2, (50e9, 10e-6))
        assert memory == pytest.approx(256 * (sum(step) / part + each), rel=NEAR)


def plan(**changes: Any) -> Plan:
    found = solve(instance(**changes), Options(plan_only=True))
    assert found.status == "optimal"
    return found


def test_four_gpus_at_tp2_are_one_prefill_and_one_decode_unit() -> None:
    # 72 GB less 70 553 706 496 B and a buffer of 1024 x 163 840 B leave room for 6 requests of 1280 tokens
    found = plan(per_server=4, group={"tp": 2})
    assert {(p.stage, p.units, p.cards_per_unit, p.batch) for p in found.pools} == {
        ("prefill", 1, 2, None),
        ("decode", 1, 2, 6),
    }
    assert found.throughput == pytest.approx(1 / 1.8694294, rel=1e-6)


def test_units_that_do_not_nest_leave_gpus_idle() -> None:
    """Servers of 6: one unit of TP4 in each, and the two GPUs left over make no other."""
    found = plan(servers=2, per_server=6, group={"tp": 4}, schemes={"allow": ["replicas"]})
    assert [(p.units, p.cards) for p in found.pools] == [(2, 8)]  # 12 GPUs would be three units in number
    mixed = plan(servers=2, per_server=6, group={"tp": [2, 4]}, schemes={"allow": ["replicas"]})
    assert sum(p.cards for p in mixed.pools) == 12


def test_stages_in_several_servers_charge_the_link() -> None:
    # servers of 4, TP4 x PP2: prefill passes 1024 x 16 384 B from stage to stage, decode 256 x 16 384 B
    found = plan(servers=2, per_server=4, group={"tp": 4, "pp": 2}, schemes={"allow": ["replicas"]})
    assert [(p.units, p.cards_per_unit) for p in found.pools] == [(1, 8)]
    crossing = {t.link: t.bytes_per_s for t in found.traffic}
    assert crossing["l[h100->]"] == pytest.approx(0.01 * 1280 * 16_384, rel=1e-6)
    inside = plan(servers=1, per_server=8, group={"tp": 4, "pp": 2}, schemes={"allow": ["replicas"]})
    assert max(t.bytes_per_s for t in inside.traffic) == 0.0


def pools(rate: str, measured: dict[str, Any]) -> Plan:
    """Fewest GPUs for ``rate`` with units that were measured alone."""
    return plan(
        servers=8,
        group={"tp": 1, "inside_handoffs": "free"},
        models={"m": {"catalog": "Llama-3.1-8B"}},
        workloads={"w": {**WORKLOAD, "rate": rate}},
        schemes={"allow": ["replicas", "pd-direct"]},
        objective="gpus",
        measured={name: {"group": "h100", "model": "m", **unit} for name, unit in measured.items()},
    )


def test_pools_sized_apart_need_fewer_gpus_than_copies_of_a_fixed_pair() -> None:
    """A prefill unit of one GPU completes 3 requests/s, a decode unit of one GPU 5.

    For 15/s, copies of one of each (3/s, the prefill is full) take 5 x 2 = 10 GPUs; copies of two and one (5/s) take
    3 x 3 = 9; five prefill and three decode units take 8.
    """
    apart = {"p": {"stage": "prefill", "rates": {"w": "3/s"}}, "d": {"stage": "decode", "rates": {"w": "5/s"}}}
    assert pools("15/s", {"pair": {"cards": 2, "rates": {"w": "3/s"}}}).objective.value == 10
    assert pools("15/s", {"three": {"cards": 3, "rates": {"w": "5/s"}}}).objective.value == 9
    found = pools("15/s", {**apart, "pair": {"cards": 2, "rates": {"w": "3/s"}}})
    assert found.objective.value == 8
    assert {p.stage: p.units for p in found.pools} == {"prefill": 5, "decode": 3}
