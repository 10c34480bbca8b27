"""Images encoded on units of their own: hand-computed needs, every split of a few GPUs, links, cache, first tokens."""

import itertools
import json
from typing import Any

import pytest

from models.errors import BadInput
from models.instance import Instance
from models.plan import Plan
from solver import physics, units
from solver.compare import compare
from solver.data import gather
from solver.formulas import encoder
from solver.limits import Limits
from solver.queueing.queues import queues
from solver.solve import Options, solve
from solver.verify import verify
from tests.instances import from_document

near = pytest.approx
PATCHES, TOKENS, IMAGES = 1000, 250, 4
INPUT, OUTPUT, BATCH, CACHED = 3000, 201, 16, 1500
FLOPS, BANDWIDTH, WIRE = 100e12, 1e12, 1e12

# the language model: 10 layers of width 1024 with 8 heads of 128, 2 of them for KV, and 4096 inside
LAYERS, HIDDEN, KV_HEADS, WIDE, VOCABULARY = 10, 1024, 2, 4096, 32_000
LAYER = 2 * HIDDEN * HIDDEN + 2 * HIDDEN * KV_HEADS * 128 + 3 * HIDDEN * WIDE
HEAD, NORMS = HIDDEN * VOCABULARY, LAYERS * 2 * HIDDEN + HIDDEN
KV = 2 * LAYERS * KV_HEADS * 128 * 2
"""Bytes of state of a token."""
FEATURES = TOKENS * HIDDEN * 2
"""Bytes of an image."""


def document(**changes: Any) -> dict[str, Any]:
    """A cluster of 9 GPUs at their peak, and requests of four images."""
    gpu = {"name": "gpu", "memory": "80 GB", "bandwidth": "1 TB/s", "compute": {"bf16": "100 TFLOP/s"}}
    data: dict[str, Any] = {
        "schema": 1,
        "name": "images",
        "hardware": {
            "groups": {"gpus": {"accelerator": gpu, "servers": 9, "per_server": 1, "price": "1/h"}},
            "links": {"net": {"connects": ["gpus"], "bandwidth": "1 TB/s"}},
            "stores": {"ec": {"on": "net", "for": "features", "capacity": "1 TB"}},
            "efficiency": {"compute": 1, "bandwidth": 1},
        },
        "models": {
            "vl": {
                "num_hidden_layers": LAYERS,
                "hidden_size": HIDDEN,
                "num_attention_heads": 8,
                "num_key_value_heads": KV_HEADS,
                "head_dim": 128,
                "intermediate_size": WIDE,
                "vocab_size": VOCABULARY,
                "encoder": {
                    "num_hidden_layers": 20,
                    "hidden_size": 1000,
                    "num_attention_heads": 10,
                    "intermediate_size": 4000,
                    "other_parameters": 8e6,
                    "patches": PATCHES,
                    "tokens": TOKENS,
                },
            }
        },
        "workloads": {
            "see": {
                "model": "vl",
                "rate": "1/s",
                "images": IMAGES,
                "input": INPUT,
                "output": OUTPUT,
                "batch": BATCH,
            }
        },
        "schemes": {"allow": ["encode-pd"]},
        "objective": "throughput",
    }
    data["workloads"]["see"].update(changes)
    return data


def image_seconds() -> float:
    """Of one image: 20 layers of 4 h^2 + 2 h f, pairs of all patches, and the rest once a feature."""
    layers = 20 * (4 * 1000**2 + 2 * 1000 * 4000)
    return (2 * PATCHES * layers + 4 * 20 * 1000 * PATCHES**2 + 2 * TOKENS * 8e6) / FLOPS


def prefill_seconds(cached: int = 0) -> float:
    new = INPUT - cached
    pairs = new * cached + new * (new + 1) / 2
    return (2 * new * LAYERS * LAYER + 4 * LAYERS * HIDDEN * pairs + 2 * HEAD) / FLOPS


def decode_seconds(batch: int = BATCH) -> float:
    """Of a request, in full steps: reading binds."""
    context = INPUT + (OUTPUT - 1) / 2
    weights = 2 * (LAYERS * LAYER + HEAD + NORMS)
    reading = (weights / batch + KV * (context + 1) + 2 * HIDDEN) / BANDWIDTH
    computing = (2 * LAYERS * LAYER + 4 * LAYERS * HIDDEN * (context + 1) + 2 * HEAD) / FLOPS
    assert reading > computing
    return (OUTPUT - 1) * reading


def best(needs: tuple[float, ...], gpus: int = 9) -> tuple[float, tuple[int, ...]]:
    """Every split of the GPUs over stages: the most requests/s, and the split."""
    splits = (s for s in itertools.product(range(gpus + 1), repeat=len(needs)) if sum(s) <= gpus)
    found = [(min(n / need for n, need in zip(split, needs, strict=True)), split) for split in splits]
    most = max(rate for rate, _ in found)
    return most, min((split for rate, split in found if rate >= most * (1 - 1e-12)), key=lambda s: (sum(s), s))


def planned(data: dict[str, Any]) -> tuple[Plan, Instance]:
    instance = from_document(data)
    plan = solve(instance, Options(plan_only=True))
    assert verify(plan, instance) == []
    return plan, instance


def sizes(plan: Plan) -> dict[str, int]:
    found: dict[str, int] = {}
    for pool in plan.pools:
        found[pool.stage] = found.get(pool.stage, 0) + pool.units
    return found


def test_the_encoder_of_qwen2_vl_by_hand() -> None:
    inside = encoder.encoder_layer_parameters(32, 1280, 5120, False)
    assert inside == 629_145_600.0
    assert inside + 46_069_760 == 675_215_360.0  # "675M" of its report
    flops = encoder.image_flops(4096, 1024, 32, 1280, inside, 46_069_760)
    assert flops == 5_153_960_755_200.0 + 2_748_779_069_440.0 + 94_350_868_480.0
    assert encoder.feature_bytes(1024, 3584, 2.0) == 7_340_032.0
    assert encoder.missed_images(3.0, 0.25) == 2.25
    assert encoder.encoder_layer_parameters(1, 10, 20, True) == 4 * 100 + 3 * 200


@pytest.mark.parametrize("hits", [0.0, 0.5, 0.75])
@pytest.mark.parametrize("cached", [0, CACHED])
def test_each_hit_lowers_the_need_of_its_own_stage(hits: float, cached: int) -> None:
    plan, instance = planned(document(image_hits=hits, cached=cached))
    needs = (IMAGES * (1 - hits) * image_seconds(), prefill_seconds(cached), decode_seconds())
    data = gather(instance)
    for stage, need in zip(("encode", "prefill", "decode"), needs, strict=True):
        mine = [c for c in data.candidates if c.stage == stage and "encode-pd" in c.schemes]
        assert [max(c.demand["see"]) for c in mine] == [near(need)], stage
    most, split = best(needs)
    assert plan.throughput == near(most, rel=1e-6)
    assert sizes(plan) == dict(zip(("encode", "prefill", "decode"), split, strict=True))


def test_pools_follow_what_is_found() -> None:
    """Hits of the encoder cache take units from E, hits of the prefix from P; both serve more."""
    plans = {}
    for hits, cached in itertools.product((0.0, 0.75), (0, CACHED)):
        data = document(image_hits=hits, cached=cached)
        data["hardware"]["groups"]["gpus"]["servers"] = 20
        plans[hits, cached] = planned(data)[0]
    none, images, prefix = plans[0.0, 0], plans[0.75, 0], plans[0.0, CACHED]
    assert sizes(images)["encode"] < sizes(none)["encode"]
    assert sizes(images)["prefill"] >= sizes(none)["prefill"]
    assert sizes(prefix)["prefill"] < sizes(none)["prefill"]
    assert sizes(prefix)["encode"] >= sizes(none)["encode"]
    rates = [plans[key].throughput or 0.0 for key in ((0.0, 0), (0.75, 0), (0.75, CACHED))]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]


def test_elsewhere_the_encoder_is_where_requests_begin() -> None:
    data = document()
    data["schemes"]["allow"] = ["pd-direct"]
    plan, instance = planned(data)
    most, split = best((IMAGES * image_seconds() + prefill_seconds(), decode_seconds()))
    assert plan.throughput == near(most, rel=1e-6)
    assert sizes(plan) == dict(zip(("prefill", "decode"), split, strict=True))
    held = {pool.stage: pool.memory.weights for pool in plan.pools if pool.memory is not None}
    own = 2 * (20 * (4 * 1000**2 + 2 * 1000 * 4000) + 8e6)
    assert held["prefill"] - held["decode"] == near(own)
    rows = {row.scheme: row for row in compare(instance, Limits(30.0))}
    whole = IMAGES * image_seconds() + prefill_seconds() + decode_seconds()
    assert rows["replicas"].throughput == near(9 / whole)


def test_memory_of_each_kind_of_unit() -> None:
    plan, _ = planned(document(image_hits=0.5))
    held = {pool.stage: pool.memory for pool in plan.pools}
    language = 2 * (LAYERS * LAYER + 2 * HEAD + NORMS)
    assert held["encode"] is not None
    assert held["prefill"] is not None
    assert held["encode"].weights == near(2 * (20 * 12e6 + 8e6))
    assert held["encode"].buffers == 2 * IMAGES * FEATURES
    assert held["prefill"].weights == near(language)
    assert held["prefill"].buffers == 2 * INPUT * KV + IMAGES * FEATURES


def test_requests_without_images_share_prefill_and_decode() -> None:
    data = document()
    data["workloads"]["read"] = {"model": "vl", "rate": "1/s", "input": INPUT, "output": OUTPUT, "batch": BATCH}
    plan, _ = planned(data)
    encode, prefill, decode = IMAGES * image_seconds(), prefill_seconds(), decode_seconds()
    most, split = best((encode / 2, prefill, decode))  # of the mix, half has images
    assert plan.throughput == near(most, rel=1e-6)
    assert sizes(plan) == dict(zip(("encode", "prefill", "decode"), split, strict=True))
    rates = {pool.stage: set(pool.rates) for pool in plan.pools}
    assert rates == {"encode": {"see"}, "prefill": {"see", "read"}, "decode": {"see", "read"}}
    assert {h.workload: h.features is not None for h in plan.handoffs} == {"see": True, "read": False}


def apart(wire: str, **changes: Any) -> dict[str, Any]:
    """Encode units on a group of their own, behind a narrow link."""
    data = document(**changes)
    hardware = data["hardware"]
    gpus = hardware["groups"]["gpus"]
    eyes = {**gpus["accelerator"], "memory": "2 GB"}  # too small for the language model
    hardware["groups"]["gpus"] = {**gpus, "inside_handoffs": "free"}
    hardware["groups"]["eyes"] = {**gpus, "accelerator": eyes, "servers": 20}
    hardware["links"] = {
        "net": {"connects": ["gpus"], "bandwidth": "1 TB/s"},
        "eye": {"connects": ["eyes", "gpus"], "bandwidth": wire},
    }
    data["limits"] = {"pools": [{"stage": "encode", "group": "gpus", "exactly": 0}]}
    return data


def test_features_share_their_link() -> None:
    plan, _ = planned(apart("4 MB/s"))
    assert plan.throughput == near(4e6 / (IMAGES * FEATURES), rel=1e-6)
    [handoff] = plan.handoffs
    assert handoff.name == "see: eyes -> gpus -> gpus"
    assert handoff.features is not None
    assert (handoff.features.encoder, handoff.features.links) == ("eyes", ["eye"])
    assert handoff.features.bytes_per_request == IMAGES * FEATURES
    assert "link[eye[eyes->]]" in {row.name for row in plan.resources if row.binding}


def test_hits_are_read_from_the_cache_and_misses_written_to_it() -> None:
    data = document(image_hits=0.75)
    data["hardware"]["stores"]["ec"] |= {"read": "30 MB/s", "write": "1 TB/s"}
    plan, _ = planned(data)
    assert plan.throughput == near(30e6 / (3 * FEATURES), rel=1e-6)
    assert "store[ec,read]" in {row.name for row in plan.resources if row.binding}
    data["hardware"]["stores"]["ec"] |= {"read": "1 TB/s", "write": "5 MB/s"}
    plan, _ = planned(data)
    assert plan.throughput == near(5e6 / FEATURES, rel=1e-6)
    data["schemes"]["allow"] = ["pd-direct"]  # the same where the encoder stands with prefill
    plan, _ = planned(data)
    assert plan.throughput == near(5e6 / FEATURES, rel=1e-6)


def test_the_first_token_waits_for_images_features_and_state() -> None:
    wire = 50e6
    data = apart("50 MB/s")
    wait = IMAGES * image_seconds() + IMAGES * FEATURES / wire + prefill_seconds()  # handoffs inside are free
    plan, _ = planned(data)
    assert plan.workloads["see"].ttft_s.at_load == near(wait)
    data["workloads"]["see"]["targets"] = {"ttft": f"{1.001 * wait} s"}
    plan, _ = planned(data)
    assert plan.status == "optimal"
    assert plan.workloads["see"].ttft_s.at_capacity == near(wait)
    data["workloads"]["see"]["targets"] = {"ttft": f"{0.999 * wait} s"}
    assert solve(from_document(data)).status == "infeasible"
    del data["limits"]
    assert {pool.group for pool in planned(data)[0].pools} == {"gpus"}  # only encoders nearby are quick enough


def test_encoders_load_sooner() -> None:
    """Weights are read at 10 MB/s: 496 MB of the encoder, and those of the language model, each in whole seconds."""
    data = document(rate="0.5/s")
    data["service"] = {"steps": {"load": {"weights_at": "10 MB/s"}}, "drain": "10 min"}
    data["objective"], data["billing"] = "effective_cost", {"pay": "used"}
    plan, instance = planned(data)
    ready = {c.stage: c.startup for c in gather(instance).candidates if "encode-pd" in c.schemes}
    language = 2 * (LAYERS * LAYER + 2 * HEAD + NORMS)
    assert ready == {"encode": 50.0, "prefill": -(-language // 10**7), "decode": -(-language // 10**7)}
    assert plan.drain is not None
    assert plan.drain.met


def test_two_kinds_of_gpus_against_every_split() -> None:
    """Three stages on two groups of unlike GPUs: all ways to give 4 + 4 GPUs something to do."""
    data = document()
    gpus = data["hardware"]["groups"]["gpus"]
    slow = {**gpus["accelerator"], "bandwidth": "1.6 TB/s", "compute": {"bf16": "40 TFLOP/s"}}
    data["hardware"]["groups"] = {"gpus": {**gpus, "servers": 4}, "slow": {**gpus, "accelerator": slow, "servers": 4}}
    data["hardware"]["links"]["net"]["connects"] = ["gpus", "slow"]
    needs = (IMAGES * image_seconds(), prefill_seconds(), decode_seconds())
    others = (2.5 * needs[0], 2.5 * needs[1], needs[2] / 1.6)  # reading binds decode on both
    splits = [s for s in itertools.product(range(5), repeat=3) if sum(s) <= 4]
    most = max(
        min(a / need + b / other for a, b, need, other in zip(one, two, needs, others, strict=True))
        for one, two in itertools.product(splits, splits)
    )
    plan, _ = planned(data)
    assert plan.throughput == near(most, rel=1e-6)


def test_what_runs_today_may_have_encode_units() -> None:
    data = document()
    stages = (("encode", 2), ("prefill", 3), ("decode", 4))
    data["current"] = [{"group": "gpus", "units": n, "stage": stage, "scheme": "encode-pd"} for stage, n in stages]
    today = solve(from_document(data)).current
    assert today is not None
    needs = (IMAGES * image_seconds(), prefill_seconds(), decode_seconds())
    assert today.throughput == near(min(n / need for (_, n), need in zip(stages, needs, strict=True)))


def test_requests_whose_images_are_all_known_need_no_encoder() -> None:
    plan, _ = planned(document(image_hits=1))
    assert set(sizes(plan)) == {"prefill", "decode"}
    assert [h.name for h in plan.handoffs] == ["see: ec -> gpus -> gpus"]
    read = IMAGES * FEATURES / WIRE
    assert plan.workloads["see"].ttft_s.at_load == near(read + prefill_seconds() + INPUT * KV / WIRE)
    data = document(image_hits=1)
    data["schemes"]["allow"] = ["replicas"]
    assert planned(data)[0].workloads["see"].ttft_s.at_load == near(read + prefill_seconds())


def test_one_output_token_ends_with_prefill() -> None:
    plan, _ = planned(document(output=1, batch=None))
    most, split = best((IMAGES * image_seconds(), prefill_seconds()))
    assert plan.throughput == near(most, rel=1e-6)
    assert sizes(plan) == dict(zip(("encode", "prefill"), split, strict=True))
    [handoff] = plan.handoffs
    assert (handoff.name, handoff.bytes_per_request) == ("see: gpus -> gpus", 0.0)
    assert plan.workloads["see"].ttft_s.at_load == near(
        IMAGES * image_seconds() + IMAGES * FEATURES / WIRE + prefill_seconds()
    )


@pytest.mark.parametrize("scheme", ["replicas", "chunked", "hybrid", "pd-pooled", "attention-ffn"])
@pytest.mark.parametrize("hits", [0.0, 0.5])
def test_every_scheme_has_an_encoder(scheme: str, hits: float) -> None:
    data = document(image_hits=hits)
    data["hardware"]["stores"]["kv"] = {"on": "net", "capacity": "1 TB"}
    data["schemes"]["allow"] = [scheme]
    plan, _ = planned(data)
    assert plan.throughput is not None
    data["workloads"]["see"]["images"] = data["workloads"]["see"]["image_hits"] = 0
    without = planned(data)[0].throughput
    assert without is not None
    assert 0 < plan.throughput < without


def test_a_cut_divides_the_encoder_too() -> None:
    shape = units.shape_of(units.ENCODE, from_document(document()).models["vl"])
    instance = from_document(document())
    one, two = (physics.device_of(instance, instance.hardware.groups["gpus"], "bf16", tp) for tp in (1, 2))
    assert physics.encode(shape, two).compute == near(physics.encode(shape, one).compute / 2)
    assert physics.weights_on_card(shape, two) == near(physics.weights_on_card(shape, one) / 2)
    assert physics.encode(units.shape_of(units.AFTER_ENCODE, instance.models["vl"]), one).seconds == 0.0


def broken(plan: Plan, instance: Instance, change: Any) -> list[str]:
    data = plan.as_json()
    change(data)
    return verify(Plan.model_validate_json(json.dumps(data)), instance)


def test_the_verifier_knows_encode_units() -> None:
    plan, instance = planned(document(image_hits=0.5))
    at = next(i for i, pool in enumerate(plan.pools) if pool.stage == "encode")

    def fewer(data: dict[str, Any]) -> None:
        data["pools"][at]["units"] = data["pools"][at]["cards"] = 1

    def idle(data: dict[str, Any]) -> None:
        data["pools"][at]["rates"]["see"]["at_capacity"] *= 0.5

    def uncached(data: dict[str, Any]) -> None:
        data["handoffs"][0]["features"]["cache"] = None

    def unencoded(data: dict[str, Any]) -> None:
        data["handoffs"][0]["features"] = None

    def disguised(data: dict[str, Any]) -> None:
        for part in (*data["pools"], *data["handoffs"]):
            part["scheme"] = "pd-direct"

    for change, word in (
        (fewer, "capacity[encode@gpus]"),
        (idle, "handoff[see,encode@gpus]"),
        (uncached, "its features come another way"),
        (unencoded, "goes another way"),
        (disguised, "pd-direct is not allowed"),
    ):
        assert any(word in text for text in broken(plan, instance, change)), word


def test_the_verifier_knows_the_cache() -> None:
    data = document(image_hits=0.75)
    plan, _ = planned(data)
    data["hardware"]["stores"]["ec"]["read"] = "1 MB/s"
    assert any("store[ec,read]" in text for text in verify(plan, from_document(data)))


def test_queues_before_encode_units_are_refused() -> None:
    plan, instance = planned(document())
    with pytest.raises(BadInput, match="encode images"):
        queues(plan, instance)


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"images": -1}, "workloads.see.images", "greater than or equal to 0"),
        ({"images": float("nan")}, "workloads.see.images", "finite"),
        ({"images": 13}, "workloads.see.images", "3,250 features are more than the 3,000 tokens"),
        ({"image_hits": 1.5}, "workloads.see.image_hits", "too large"),
        ({"image_hits": -0.5}, "workloads.see.image_hits", "too small"),
        ({"image_hits": "nan"}, "workloads.see.image_hits", "not"),
        ({"images": 0, "image_hits": 0.5}, "workloads.see.image_hits", "stands without images"),
    ],
)
def test_bad_images_are_named(changes: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        from_document(document(**changes))
    assert [(p.path, message in p.message) for p in caught.value.problems] == [(path, True)]


def test_what_images_need_is_named() -> None:
    data = document(image_hits=0.5)
    del data["models"]["vl"]["encoder"]
    del data["hardware"]["stores"]
    with pytest.raises(BadInput) as caught:
        from_document(data)
    found = {p.path: p.message for p in caught.value.problems}
    assert found == {
        "workloads.see.images": "the model has no encoder",
        "workloads.see.image_hits": "no store keeps features of images",
        "schemes.allow[0]": "no model has an encoder",
    }
    data = document(image_hits=0.5)
    data["hardware"]["stores"]["ec"]["capacity"] = "2 MB"
    data["hardware"]["stores"]["more"] = {"on": "net", "for": "features", "capacity": "1 TB"}
    data["models"]["vl"]["encoder"]["num_attention_heads"] = 7
    with pytest.raises(BadInput) as caught:
        from_document(data)
    assert {p.path for p in caught.value.problems} == {
        "hardware.stores.ec.capacity",
        "hardware.stores.more.for",
        "models.vl.encoder.num_attention_heads",
    }


def test_images_of_another_size_change_the_catalog_entry() -> None:
    data = document(model="qwen")
    data["models"] = {"qwen": {"catalog": "Qwen2-VL-7B", "encoder": {"patches": 1024, "tokens": 256}}}
    found = from_document(data).models["qwen"].encoder
    assert found is not None
    assert (found.patches, found.tokens, found.num_hidden_layers) == (1024, 256, 32)


def test_a_cache_that_nothing_joins() -> None:
    data = document(image_hits=0.5)
    data["hardware"]["links"]["island"] = {"connects": ["ec"], "bandwidth": "1 GB/s"}
    data["hardware"]["stores"]["ec"]["on"] = "island"
    with pytest.raises(BadInput, match="no path joins"):
        solve(from_document(data))
    data["schemes"]["allow"] = ["replicas"]
    plan = solve(from_document(data))
    assert plan.status == "infeasible"
    assert "no link joins it and the encoder cache" in json.dumps(plan.as_json())
