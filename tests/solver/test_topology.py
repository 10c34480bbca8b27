"""The graph: which path a handoff takes, what it charges, how long it lasts."""

import gc
import weakref
from typing import Any

import pytest

from models.instance import Instance
from models.workload import Scheme
from solver.compare import alternative, compare
from solver.data import gather
from solver.limits import Limits
from solver.topology import Topology, channel_names
from tests.instances import document, from_document

V = 1_207_959_552.0
"""State of 8192 tokens of Qwen3-8B, in bytes."""


def with_links(links: dict[str, Any], stores: dict[str, Any] | None = None, **groups: Any) -> Instance:
    data = document()
    data["hardware"]["links"] = links
    data["hardware"]["stores"] = stores or {}
    data["hardware"]["groups"].update(groups)
    for scheme in ("pd-direct", "pd-pooled"):
        assert scheme in data["schemes"]["allow"]
    return from_document(data)


def best(instance: Instance, scheme: Scheme) -> float:
    return alternative(gather(instance), scheme, Limits()).row.throughput or 0.0


def link(*places: str, **more: Any) -> dict[str, Any]:
    return {"connects": list(places), "bandwidth": "25 GB/s", "duplex": "shared", **more}


def test_the_quickest_path_is_taken_and_every_link_of_it_is_charged() -> None:
    instance = with_links(
        {
            "slow": link("a100", "h20", bandwidth="1 GB/s"),
            "rack1": link("a100", startup="2 us"),
            "rack2": link("h20", startup="3 us"),
            "spine": link("rack1", "rack2", bandwidth="10 GB/s", startup="5 us"),
        }
    )
    path = Topology(instance.hardware).path("a100", "h20", V)
    assert path is not None
    assert path.links == ("rack1", "spine", "rack2")
    assert path.channels == ("rack1", "spine", "rack2")
    assert path.seconds(V) == pytest.approx(V / 10e9 + 10e-6)


def test_the_quickest_path_is_that_of_the_narrowest_link_not_of_the_sum() -> None:
    links = {
        "one": link("a100", "h20", bandwidth="10 GB/s"),
        "near": link("a100", bandwidth="15 GB/s", startup="5 us"),
        "far": link("h20", "near", bandwidth="15 GB/s"),
    }
    topology = Topology(with_links(links).hardware)
    long, short = topology.path("a100", "h20", V), topology.path("a100", "h20", 1.0)
    assert long is not None
    assert short is not None
    assert long.links == ("near", "far")
    assert long.seconds(V) == pytest.approx(V / 15e9 + 5e-6)
    assert short.links == ("one",)


def test_groups_and_stores_do_not_relay() -> None:
    other = {"accelerator": "L40S", "servers": 1, "per_server": 1, "price": "1/h"}
    instance = with_links({"left": link("a100", "mid"), "right": link("mid", "h20")}, mid=other)
    topology = Topology(instance.hardware)
    assert topology.path("a100", "h20", V) is None
    assert topology.path("a100", "mid", V) is not None


@pytest.mark.parametrize(
    ("more", "before", "after", "charged"),
    [
        ({}, "a100", "h20", ["l"]),
        ({}, "a100", "a100", ["l"]),
        ({"duplex": "per-direction"}, "a100", "h20", ["l[a100->]", "l[->h20]"]),
        ({"duplex": "per-direction"}, "h20", "a100", ["l[h20->]", "l[->a100]"]),
        ({"duplex": "per-direction"}, "a100", "a100", ["l[a100->]", "l[->a100]"]),
        ({"duplex": "per-direction", "per": "server"}, "a100", "h20", ["l[a100->]", "l[->h20]"]),
        ({"per": "server"}, "a100", "h20", ["l[a100]", "l[h20]"]),
        ({"per": "server"}, "a100", "a100", ["l[a100]", "l[a100]"]),
    ],
)
def test_channels_of_a_crossing(more: dict[str, Any], before: str, after: str, charged: list[str]) -> None:
    hardware = with_links({"l": link("a100", "h20", **more)}).hardware
    assert channel_names(hardware, "l", before, after) == charged


def test_ports_of_servers_add_up_but_one_transfer_uses_one() -> None:
    data = document()
    data["hardware"]["groups"]["a100"].update(servers=4, per_server=1)
    data["hardware"]["links"] = {"l": link("a100", "h20", duplex="per-direction", per="server", ports=2)}
    data["hardware"]["stores"] = {}
    topology = Topology(from_document(data).hardware)
    assert {name: c.capacity for name, c in topology.channels.items()} == {
        "l[a100->]": 200e9,
        "l[->a100]": 200e9,
        "l[h20->]": 50e9,
        "l[->h20]": 50e9,
    }
    path = topology.path("a100", "h20", V)
    assert path is not None
    assert path.seconds(V) == pytest.approx(V / 25e9)


def test_everything_that_shares_a_link_adds_up() -> None:
    narrow = with_links(
        {"l": link("a100", "h20", bandwidth="1.207959552 GB/s")}, {"pool": {"on": "l", "capacity": "1 TB"}}
    )
    assert best(narrow, "pd-direct") == pytest.approx(1.0)
    assert best(narrow, "pd-pooled") == pytest.approx(0.5)  # written and read over the same channel
    apart = with_links(
        {"l": link("a100", "h20", bandwidth="1.207959552 GB/s", duplex="per-direction")},
        {"pool": {"on": "l", "capacity": "1 TB"}},
    )
    assert best(apart, "pd-pooled") == pytest.approx(1.0)  # in by one direction, out by the other


def test_handoffs_inside_a_group_cross_its_link_unless_free() -> None:
    inside = with_links({"l": link("h20", bandwidth="1.207959552 GB/s")}, a100={**GONE})
    assert best(inside, "pd-direct") == pytest.approx(1.0)
    data = document()
    data["hardware"]["groups"]["h20"]["inside_handoffs"] = "free"
    data["hardware"]["links"], data["hardware"]["stores"] = {}, {}
    data["hardware"]["groups"]["a100"] = GONE
    assert best(from_document(data), "pd-direct") == pytest.approx(1.1385385)  # 2 prefill, 2 decode


GONE: dict[str, Any] = {
    "accelerator": {"catalog": "L40S", "memory": "8 GB"},
    "servers": 1,
    "per_server": 1,
    "price": "1/h",
}
"""A group on which nothing fits."""


def test_a_store_limits_by_space_and_by_its_own_bandwidth() -> None:
    links = {"l": link("a100", "h20")}
    stay = 2.0 * V / 25e9
    tight = with_links(links, {"pool": {"on": "l", "capacity": f"{2.0 * V * V / 25e9 * 1.01} B"}})
    assert best(tight, "pd-pooled") == 0.0  # less than one state: never used
    room = with_links(links, {"pool": {"on": "l", "capacity": f"{V} B"}})
    assert best(room, "pd-pooled") == pytest.approx(min(4.554153973, 1.0 / stay), rel=1e-6)
    slow = with_links(links, {"pool": {"on": "l", "capacity": "1 TB", "write": f"{2 * V} B/s"}})
    assert best(slow, "pd-pooled") == pytest.approx(2.0)


def test_places_without_a_path_leave_separation_out_with_its_reason() -> None:
    rows = {row.scheme: row for row in compare(with_links({}), Limits())}
    assert rows["pd-direct"].throughput == 0.0
    assert rows["pd-direct"].reason == "no path between any two places that it could use"
    assert rows["pd-pooled"].reason == "there is no store"
    assert rows["chunked"].throughput == pytest.approx(4.16577, rel=1e-5)


def test_link_efficiency_counts() -> None:
    instance = with_links({"l": link("a100", "h20", bandwidth="2.415919104 GB/s", link_efficiency=0.5)})
    assert best(instance, "pd-direct") == pytest.approx(1.0)


def test_a_topology_is_gone_when_nobody_holds_it() -> None:
    topology = Topology(with_links({"rdma": link("a100", "h20")}).hardware)
    path = topology.path("a100", "h20", V)
    assert path is not None
    assert topology.path("a100", "h20", V) == path
    held = weakref.ref(topology)
    del topology
    gc.collect()
    assert held() is None
