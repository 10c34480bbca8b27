"""Small instances with units of several GPUs, lengths, targets and purchases on which the solver was once wrong."""

from typing import Any

import pytest

from models.plan import Plan
from solver.solve import Options, solve
from tests.against.told import Document, built, solved
from tests.against.wide_search import wide_brute_force

CARD = {"name": "own", "memory": "40 GB", "bandwidth": "1.2 TB/s", "compute": {"bf16": "150 TFLOP/s"}}
NEAR = 1e-6


def document(load: dict[str, Any], allow: str, **keys: Any) -> Document:
    """One group of four GPUs on one link; keys under `group` and `hardware` come on top, others at the top."""
    group = {"accelerator": CARD, "servers": 2, "per_server": 2, "price": "1/h", "tp": 1, **keys.pop("group", {})}
    links = {"l": {"connects": ["g"], "bandwidth": "50 GB/s", "startup": "50 us"}}
    lengths = {} if "lengths" in load else {"input": 1000, "output": 200}
    return {
        "schema": 1,
        "name": "found",
        "hardware": {"groups": {"g": group}, "links": links, **keys.pop("hardware", {})},
        "models": {"m": {"catalog": "Qwen3-8B"}},
        "workloads": {"w": {"model": "m", "rate": "0.01/s", **lengths, **load}},
        "schemes": {"allow": [allow]},
        "objective": "throughput",
        **keys,
    }


def same_as_search(asked: Document) -> Plan:
    plan, best = solved(asked), wide_brute_force(built(asked))
    assert best is not None
    assert plan.throughput == pytest.approx(best.throughput, rel=NEAR)
    return plan


@pytest.mark.parametrize("allow", ["replicas", "chunked"])
def test_a_unit_in_smaller_blocks_is_kept(allow: str) -> None:
    """Two units of TP2 x PP2 leave a GPU in each of four servers of 3; the slower TP1 x PP4 can use them."""
    group = {"servers": 4, "per_server": 3, "tp": [1, 2], "pp": [2, 4], "scale_up": {"bandwidth": "450 GB/s"}}
    narrow = {**CARD, "memory": "24 GB"}
    models = {"m": {"catalog": "Qwen3-32B"}}
    plan = same_as_search(document({"batch": 4}, allow, group={**group, "accelerator": narrow}, models=models))
    assert {(p.parallelism.tp, p.parallelism.pp, p.units) for p in plan.pools} == {(2, 2, 2), (1, 4, 1)}


def test_requests_of_one_token_cross_no_link() -> None:
    """Half of the requests end with prefill, so that the link carries twice as many as if each crossed it."""
    every = {"share": "100 %", "input": 4000, "output": 2}
    half = [{**every, "share": "50 %"}, {"share": "50 %", "input": 4000, "output": 1}]
    links = {"links": {"l": {"connects": ["g"], "bandwidth": "0.5 GB/s", "duplex": "shared"}}}
    asked = {"models": {"m": {"catalog": "Qwen3-8B", "kv": "fp8"}}, "hardware": links}
    one, two = (same_as_search(document({"lengths": mix}, "pd-direct", **asked)) for mix in ([every], half))
    # 4000 tokens x 73 728 B = 0.2949 GB: 1.695 requests/s, or twice that
    assert one.throughput == pytest.approx(0.5e9 / (4000 * 73_728), rel=NEAR)
    assert two.throughput == pytest.approx(2 * 0.5e9 / (4000 * 73_728), rel=NEAR)


def test_a_store_holds_each_length_for_its_own_time() -> None:
    """Long states stay longer: rate x mean of V (write + read), not of the mean V."""
    lengths = [{"share": "90 %", "input": 500, "output": 2}, {"share": "10 %", "input": 30_000, "output": 2}]
    hardware = {
        "links": {"l": {"connects": ["g"], "bandwidth": "10 GB/s"}},
        "stores": {"s": {"on": "l", "capacity": "4.5 GB", "write": "2 GB/s", "read": "2 GB/s"}},
    }
    load = {"lengths": lengths}
    plan = same_as_search(document(load, "pd-pooled", hardware=hardware, group={"servers": 40}))
    sizes = [(0.9, 500 * 147_456), (0.1, 30_000 * 147_456)]
    held = sum(share * size * 2 * size / 2e9 for share, size in sizes)  # write and read at 2 GB/s each
    store = next(row for row in plan.resources if row.name == "store[s]")
    assert store.binding
    assert plan.throughput == pytest.approx(4.5e9 / held, rel=NEAR)


def test_a_late_first_token_is_refused_where_the_batch_is_chosen() -> None:
    """A prefill of 1000 tokens takes about 0.2 s whatever the batch."""
    assert solved(document({"targets": {"ttft": "50 ms"}}, "replicas")).status == "infeasible"
    assert solved(document({"targets": {"ttft": "500 ms"}}, "replicas")).status == "optimal"


def test_a_stated_batch_bounds_no_step_that_others_share() -> None:
    """Alone, two requests at once keep the target; the prefills of the other workload stretch every step."""
    other = {"model": "m", "rate": "1/s", "input": 4000, "output": 20}
    targets = {"batch": 2, "targets": {"tpot": "40 ms"}}
    asked = document(targets, "replicas")
    asked["workloads"]["other"] = other
    plan = solved(asked)  # which would not have been verified
    assert plan.status == "optimal"
    assert (plan.workloads["w"].tpot_s.at_load or 0.0) <= 0.04 * (1 + NEAR)
    assert all(pool.step_s is not None for pool in plan.pools if "w" in pool.rates)


def test_rented_gpus_need_no_packing() -> None:
    """GPUs rented one by one are where they are needed: units of two do not have to fill servers of three."""
    group = {"servers": "unlimited", "rent": "gpu", "per_server": 3, "tp": 2, "scale_up": {"bandwidth": "450 GB/s"}}
    plan = solved(document({"rate": "9/s"}, "replicas", group=group, objective="cost"))
    assert plan.status == "optimal"
    assert sum(pool.cards for pool in plan.pools) % 6 != 0


def test_a_time_per_token_binds_no_request_of_one_token() -> None:
    asked = document({"targets": {"tpot": "60 ms"}}, "chunked")
    asked["workloads"]["one"] = {"model": "m", "rate": "1/s", "input": 500, "output": 1, "targets": {"tpot": "1 ms"}}
    assert solved(asked).status == "optimal"


def test_one_more_card_counts_where_bundles_bring_the_same() -> None:
    """All cards come from one bundle of one; one more doubles what can be served."""
    bundles = {"bundles": {"b": {"cards": {"g": 1}, "price": "1/h", "at_most": 1}}}
    group = {"servers": 0, "per_server": 1}
    keys = {"group": group, "billing": {"pay": "used"}, "objective": "cost"}
    asked = document({}, "replicas", **keys)
    asked["hardware"].update(bundles)
    plan = solve(built(asked))
    more = next(one for one in plan.marginal if one.name == "cards[g]")
    assert more.gain == pytest.approx(plan.throughput, rel=NEAR)
    asked["workloads"]["w"]["rate"] = f"{3.5 * (plan.throughput or 0.0)!r}/s"
    told = {change.path: change.after for change in solve(built(asked)).relaxations}
    assert told["hardware.groups.g"] == "3"  # beside the one of the bundle
    assert told["hardware.bundles.b.at_most"] == "4"


def test_the_margin_of_efficiency_beside_a_target_is_that_of_the_target() -> None:
    """The unit has seconds to spare long after it misses its time per token."""
    asked = document({"batch": 8, "targets": {"tpot": "29.6 ms"}}, "pd-direct")
    plan = solve(built(asked), Options())
    assert plan.status == "optimal"
    (margin,) = [one for one in plan.marginal if one.name == "efficiency"]
    assert 0.9 < margin.step < 1.0
    for share, status in ((1.0, "optimal"), (0.998, "infeasible")):
        stated = 0.5 * margin.step * share
        asked["hardware"]["efficiency"] = {"compute": stated, "bandwidth": stated}
        assert solved(asked).status == status
