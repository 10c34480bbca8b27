"""Units that divide a layer: figures of sections 9.1.1, 9.3 and 9.4, limits in which they are known, and order."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from solver import physics
from solver.attention import Tokens
from solver.cut import Cut
from solver.data import gather
from solver.layouts import build, sections
from solver.layouts.apart import Apart
from solver.layouts.spread import Spread
from solver.shapes import Shape
from solver.topology import Topology
from tests.against.generate_layouts import HOST, built
from tests.against.test_layout_plans import LARGE, planned

MS, GIB = 1e-3, 2**30


def document(model: str | dict[str, Any], link: dict[str, Any], servers: int = 1, **group: Any) -> dict[str, Any]:
    """Two groups of H100 on one link."""
    one = {"accelerator": "H100-SXM-80GB", "servers": servers, "per_server": 8, "host": HOST, **group}
    return {
        "schema": 1,
        "name": "limits",
        "models": {"m": {"catalog": model} if isinstance(model, str) else model},
        "hardware": {"groups": {"a": one, "b": dict(one)}, "links": {"l": {"connects": ["a", "b"], **link}}},
        "workloads": {"w": {"model": "m", "rate": "1/s", "input": 1000, "output": 100}},
        "schemes": {"allow": ["pd-direct", "replicas", "expert-pool", "attention-ffn", "cpu-experts"]},
        "objective": "throughput",
    }


def apart(asked: dict[str, Any], sizes: tuple[int, int], other: str, pooled: bool, micro: int = 1) -> tuple[Cut, Shape]:
    """A unit with `sizes` GPUs for attention and for the rest."""
    instance = built(asked)
    shape = physics.shape_of(instance.models["m"])
    where = (instance, Topology(instance.hardware), "a", "m", shape)
    cut = build.apart(*where, 1, sizes[0], other, sizes[1], pooled, micro)
    assert cut is not None
    return cut, shape


def test_experts_that_tokens_touch() -> None:
    """About 126 of 128 for 64 tokens of 8 each (section 9.3.3)."""
    shape = physics.shape_of(built(document("Qwen3-235B-A22B", {"bandwidth": "1 GB/s"})).models["m"])
    assert shape.routed is not None
    assert shape.routed.touched(64.0) == pytest.approx(128 * (1 - (120 / 128) ** 64))
    assert round(shape.routed.touched(64.0)) == 126
    assert shape.routed.touched(1.0) == pytest.approx(8.0)


PORTS = {"bandwidth": "50 GB/s", "ports": 4, "per": "server"}
ONE = {"bandwidth": "50 GB/s", "ports": 1}


@pytest.mark.parametrize(
    ("link", "other", "skew", "exchange", "compute"),
    [
        (PORTS, "b", 1.0, 0.336, 0.156),
        (PORTS, "b", 2.5, 0.839, 0.391),
        (ONE, "b", 1.0, 1.342, 0.156),
        (PORTS, "a", 2.5, 0.093, 0.391),
    ],
)
def test_example_of_exchanges(
    monkeypatch: pytest.MonkeyPatch, link: dict[str, Any], other: str, skew: float, exchange: float, compute: float
) -> None:
    """Example 9.5: 1024 tokens of 8 experts each, four GPUs with attention, four with experts."""
    monkeypatch.setattr(sections, "excess", lambda *_: skew - 1.0)
    asked = document("Qwen3-235B-A22B", link, accelerator=ROOMY, scale_up={"bandwidth": "450 GB/s"})
    cut, shape = apart(asked, (4, 4), other, True)
    layout = cut.device.layout
    assert isinstance(layout, Apart)
    assert shape.routed is not None
    rows = sections.busiest_rows(shape.routed, 1024.0, 4, 32)
    startups = shape.routed.layers * layout.startup
    assert (layout.way(shape, 1024.0) - startups) / 94 == pytest.approx(exchange * MS, abs=0.0005 * MS)
    assert 2 * rows * shape.routed.params / cut.device.matrix_flops == pytest.approx(compute * MS, abs=0.0005 * MS)


ROOMY = {"catalog": "H100-SXM-80GB", "memory": "400 GB"}


def test_example_of_dense_handoffs() -> None:
    """Example 9.4: 72 transfers of a step of Qwen3-8B take 0.384 ms; a prefill of 8192 tokens about 193 ms."""
    asked = document("Qwen3-8B", {"bandwidth": "25 GB/s", "startup": "5 us"})
    asked["schemes"]["allow"] = ["attention-ffn"]
    cut, shape = apart(asked, (1, 1), "b", False)
    layout = cut.device.layout
    assert isinstance(layout, Apart)
    assert 2 * layout.way(shape, 1.0) == pytest.approx(0.384 * MS, abs=0.0005 * MS)
    assert 2 * layout.way(shape, 8192.0) - 72 * 5e-6 == pytest.approx(193 * MS, abs=0.5 * MS)


def test_skew_of_chance() -> None:
    """The busiest of 8 GPUs has 4 % more rows, of 256 GPUs 52 % (section 9.4.1: 4.4 and 52.6 by simulation)."""
    assert sections.excess(256, 8, 8, 1024.0) == pytest.approx(0.044, abs=0.003)
    assert sections.excess(256, 8, 256, 1024.0) == pytest.approx(0.526, abs=0.02)
    assert sections.excess(256, 8, 8, 4 * 1024.0) == pytest.approx(sections.excess(256, 8, 8, 1024.0) / 2)


def test_state_of_the_same_attention_everywhere() -> None:
    """TP2 x EP4: 8192 tokens of Qwen3-235B-A22B take 5.875 GiB over eight GPUs, four times theirs (section 9.1.1)."""
    instance = built(document("Qwen3-235B-A22B", {"bandwidth": "1 GB/s"}, accelerator=ROOMY))
    shape = physics.shape_of(instance.models["m"])
    cut = build.spread(instance, Topology(instance.hardware), "a", shape, 2, 4, 1)
    assert cut is not None
    assert cut.cards == 8
    assert 8 * physics.state_on_card(shape, cut.device, Tokens(8192.0)) == 5.875 * GIB


def test_one_expert_each() -> None:
    """With as many places as experts each GPU has one, and reads it if any row comes."""
    model = {**LARGE, "num_experts": 8, "num_experts_per_tok": 2}
    instance = built(document(model, {"bandwidth": "1 GB/s"}))
    shape = physics.shape_of(instance.models["m"])
    cut = build.spread(instance, Topology(instance.hardware), "a", shape, 1, 8, 8)
    assert cut is not None
    assert shape.routed is not None
    one = shape.element_bytes * shape.routed.layers * shape.routed.params
    layout = cut.device.layout
    assert isinstance(layout, Spread)
    assert layout.weights(shape, cut.device)[1] == one
    for tokens in (1.0, 3.0, 300.0):
        assert sections.busiest_touched(shape.routed, tokens, 8, 1) == pytest.approx(1.0)
    assert sections.spread_experts(shape, shape.routed, cut.device, 1.0, 8, 1, 1) == pytest.approx(
        one / cut.device.bandwidth
    )


@pytest.mark.parametrize("pooled", [True, False])
def test_micro_batches(pooled: bool) -> None:
    """One micro-batch takes the chain; of very many the slowest part decides, which has to do all of them."""
    link = {"bandwidth": "100 GB/s", "ports": 8, "per": "server", "startup": "1 us"}
    asked = document(LARGE, link)
    (one, shape), (many, _) = (apart(asked, (4, 2), "b", pooled, micro) for micro in (1, 64))
    chain, lots = one.device.layout, many.device.layout
    assert isinstance(chain, Apart)
    assert isinstance(lots, Apart)
    batch, context = 4096.0, Tokens(500.0)
    kept = shape.own_params if pooled else shape.attention_params
    sums = (2.0 if pooled else 1.0) * shape.layers

    def parts(tokens: float) -> tuple[float, float, float]:
        own = sections.attention_step(shape, one.device, kept, sums, tokens / 4, context)
        return own, chain.elsewhere(shape, tokens), chain.way(shape, tokens)

    own, other, way = parts(batch)
    assert chain.step(shape, one.device, context)(batch) == pytest.approx(own + other + 2 * way)
    assert lots.step(shape, many.device, context)(batch) == pytest.approx(64 * max(parts(batch / 64)))


def _seconds(asked: dict[str, Any]) -> dict[tuple[str, str], float]:
    found = gather(built(asked)).candidates
    return {(c.stage, c.label): c.demand["w"][-1] for c in found if c.cut is not None and c.cut.device.layout}


def _faster(key: str) -> Callable[[dict[str, Any]], None]:
    def change(asked: dict[str, Any]) -> None:
        for group in asked["hardware"]["groups"].values():
            if key == "compute":
                group["accelerator"]["compute"] = {"bf16": "600 TFLOP/s"}
            elif key == "memory":
                group["accelerator"]["bandwidth"] = "3 TB/s"
            elif key == "inside":
                group["scale_up"] = {"bandwidth": "80 GB/s", "startup": "1 us"}
            elif key == "host":
                group["host"]["link"] = {"bandwidth": "60 GB/s", "startup": "1 us"}
        if key == "link":
            asked["hardware"]["links"]["l"]["bandwidth"] = "40 GB/s"
        if key == "ports":
            asked["hardware"]["links"]["l"]["ports"] = 4

    return change


@pytest.mark.parametrize("per", ["link", "server"])
@pytest.mark.parametrize("key", ["compute", "memory", "inside", "host", "link", "ports"])
def test_more_is_never_slower(key: str, per: str) -> None:
    card = {"name": "own", "memory": "1 GB", "bandwidth": "1 TB/s", "compute": {"bf16": "200 TFLOP/s"}}
    inside = {"bandwidth": "40 GB/s", "startup": "5 us"}
    link = {"bandwidth": "10 GB/s", "startup": "5 us", "per": per, "ports": 1}
    asked = document(LARGE, link, 2, accelerator=card, scale_up=inside, per_server=4)
    asked["workloads"]["w"]["batch"] = 16
    faster = copy.deepcopy(asked)
    _faster(key)(faster)
    before, after = _seconds(asked), _seconds(faster)
    both = set(before) & set(after)
    assert len(both) > 20
    for name in both:
        assert after[name] <= before[name] * (1 + 1e-9), name


@pytest.mark.parametrize("scheme", ["replicas", "expert-pool", "attention-ffn"])
def test_more_gpus_never_serve_less(scheme: str) -> None:
    card = {"name": "own", "memory": "1 GB", "bandwidth": "1 TB/s", "compute": {"bf16": "200 TFLOP/s"}}
    inside = {"bandwidth": "40 GB/s", "startup": "5 us"}
    served = []
    for servers in (1, 2, 3, 4):
        link = {"bandwidth": "10 GB/s", "per": "server", "ports": 2}
        asked = document(LARGE, link, servers, accelerator=card, scale_up=inside, per_server=2)
        asked["schemes"]["allow"] = [scheme]
        asked["workloads"]["w"]["rate"] = "0.001/s"
        served.append(planned(asked).throughput or 0.0)
    assert served == sorted(served)
    assert served[0] > 0.0
