"""Exchanges between cards: bounds by hand under other conditions, and against every cut of small graphs."""

from itertools import chain, combinations
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver import exchange
from solver.exchange import Stages, bound, combine, dispatch, one_group, two_pools
from solver.formulas import exchange as formulas

some = settings(max_examples=60, deadline=None, derandomize=True, database=None)
ROW = 8192  # one activation of width 4096 in BF16
SOURCES = [(0, 0), (0, 1), (0, 2), (0, 3)]


def rows(*groups: float) -> dict[Any, float]:
    return {(1, group): each for group, each in enumerate(groups)}


def every_cut(graph: "nx.DiGraph[Any]", traffic: exchange.Traffic) -> float:
    """The tightest of all cuts: each node on either side, cards on both sides by what they send and what they receive.

    Written on its own: it knows nothing of flows.
    """
    cards = {card for pair, size in traffic.items() if pair[0] != pair[1] and size for card in pair}
    halves = [(node, way) for node in graph for way in (("out", "in") if node in cards else ("relay",))]
    least = 0.0
    for inside in map(set, chain.from_iterable(combinations(halves, size) for size in range(1, len(halves)))):
        crossing = sum(
            size for (a, b), size in traffic.items() if a != b and (a, "out") in inside and (b, "in") not in inside
        )
        width = sum(
            edge["capacity"]
            for a, b, edge in graph.edges(data=True)
            if (a, "out" if a in cards else "relay") in inside and (b, "in" if b in cards else "relay") not in inside
        )
        if crossing:
            least = max(least, crossing / width)
    return least


# --- by hand ------------------------------------------------------------------------------------------


def test_two_pools_in_one_server() -> None:
    # section 9.4.1, last row: 5120 rows = 40 MiB into one card at 450 GB/s: 93.2 us, both ways; 390.7 us of compute
    graph = two_pools(4, 4, 450e9)
    groups = rows(5120, 1024, 1024, 1024)
    there = bound(graph, dispatch(groups, SOURCES, ROW))
    back = bound(graph, combine(groups, SOURCES, ROW))
    assert there.seconds == there.receive == pytest.approx(93.20676e-6, rel=1e-6)
    assert back.seconds == back.send == pytest.approx(93.20676e-6, rel=1e-6)
    layer = Stages(there.seconds, 0.39068835e-3, back.seconds)
    assert layer.total == pytest.approx(0.57710186e-3)
    assert max(layer.all) == layer.compute  # more bandwidth would not help


def test_more_sources_than_groups_and_a_narrow_fabric() -> None:
    # 8 sources, 4000 rows x 8192 B = 32.768 MB: 4.096 MB each / 50 GB/s = 81.92 us; 3000 rows = 24.576 MB: 491.52 us;
    # all of it over 60 GB/s: 546.13 us
    sources = [(0, index) for index in range(8)]
    found = bound(two_pools(8, 2, 50e9, 60e9), dispatch(rows(3000, 1000), sources, ROW))
    assert found.send == pytest.approx(81.92e-6)
    assert found.receive == pytest.approx(491.52e-6)
    assert found.cut == found.seconds == pytest.approx(32.768e6 / 60e9)
    assert found.across == {("switch 0", "switch 1")}
    # over 100 GB/s the fabric takes 327.7 us and the busy group binds again
    assert bound(two_pools(8, 2, 50e9, 100e9), dispatch(rows(3000, 1000), sources, ROW)).seconds == found.receive


def test_fp8_halves_what_it_is_used_for_only() -> None:
    graph, groups = two_pools(4, 4, 50e9), rows(2048, 2048, 2048, 2048)
    assert bound(graph, dispatch(groups, SOURCES, ROW / 2)).seconds == pytest.approx(0.16777216e-3)
    assert bound(graph, combine(groups, SOURCES, ROW)).seconds == pytest.approx(0.33554432e-3)


def test_a_slower_port_of_one_card_binds() -> None:
    graph = two_pools(4, 4, 50e9)
    graph.edges["switch 1", (1, 3)]["capacity"] = 12.5e9  # 100 Gbit/s: 16 MiB take 1.342 ms
    found = bound(graph, dispatch(rows(2048, 2048, 2048, 2048), SOURCES, ROW))
    assert found.seconds == found.receive == pytest.approx(1.34217728e-3)
    assert found.across == {("switch 1", (1, 3))}


def test_cards_of_two_servers_use_their_own_ports_for_the_other_server() -> None:
    # 1 MB to each of 7 others: 3 inside at 450 GB/s, 4 outside over one port of 50 GB/s: 80 us
    graph = one_group(2, 4, 450e9, 50e9)
    cards = [(server, index) for server in range(2) for index in range(4)]
    found = bound(graph, {(a, b): 1e6 for a in cards for b in cards})
    assert found.send == pytest.approx(7e6 / 500e9)  # as if all could take both ways
    assert found.seconds == found.cut == pytest.approx(4e6 / 50e9)


def test_an_uplink_that_a_server_shares_binds_though_all_traffic_is_even() -> None:
    # 4 cards x 4 cards x 1 MB leave each server over 50 GB/s: 320 us
    graph: nx.DiGraph[Any] = nx.DiGraph()
    cards = [(server, index) for server in range(2) for index in range(4)]
    ends = [(card, f"hub {card[0]}", 450e9) for card in cards] + [("hub 0", "fabric", 50e9), ("hub 1", "fabric", 50e9)]
    for one, other, capacity in ends:
        graph.add_edge(one, other, capacity=capacity)
        graph.add_edge(other, one, capacity=capacity)
    found = bound(graph, {(a, b): 1e6 for a in cards for b in cards})
    assert found.seconds == pytest.approx(16e6 / 50e9)
    assert len(found.across) == 1


def test_directions_that_share_a_channel_are_added_up() -> None:
    # 1 MB each way through one channel of 10 GB/s: 200 us, not 100
    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_edge("entry", "exit", capacity=10e9)
    for card in "ab":
        graph.add_edge(card, "entry", capacity=100e9)
        graph.add_edge("exit", card, capacity=100e9)
    assert bound(graph, {("a", "b"): 1e6, ("b", "a"): 1e6}).seconds == pytest.approx(200e-6)


def test_what_stays_on_a_card_takes_no_time() -> None:
    assert bound(two_pools(1, 1, 50e9), {((0, 0), (0, 0)): 1e9, ((0, 0), (1, 0)): 0.0}).seconds == 0.0


def test_traffic_without_a_path_is_refused() -> None:
    graph = two_pools(1, 1, 50e9)
    graph.remove_edge("switch 0", "switch 1")
    with pytest.raises(ValueError, match="no path"):
        bound(graph, {((0, 0), (1, 0)): 1.0})


# --- a layer, and a shared pool -----------------------------------------------------------------------


def test_a_card_with_few_rows_reads_weights() -> None:
    # four experts of 36 MiB at 1675 GB/s: 90.15 us; one row each: 0.305 us at 494.7 TFLOP/s
    taken = formulas.card_seconds(4 * 2 * 18874368, 4 * 37748736, 494.7e12, 1675e9)
    assert taken == pytest.approx(90.1462e-6, rel=1e-5)


def test_micro_batches_of_a_layer() -> None:
    # 300, 100, 200 us in four: 75 + 25 + 50 + 3 x 75 = 375 us
    assert Stages(300e-6, 100e-6, 200e-6).pipelined(4) == pytest.approx(375e-6)
    assert Stages(300e-6, 100e-6, 200e-6).exchange_share == pytest.approx(5 / 6)


def test_messages_of_a_slower_nic() -> None:
    assert formulas.message_crossover(12.5e9, 54e6) == pytest.approx(231.48, rel=1e-4)  # 100 Gbit/s


def test_admission_to_a_shared_pool() -> None:
    # 19.3 GFLOP a batch on the busiest card at 494.7 TFLOP/s: below 25 596 batches/s; 40 MiB at 50 GB/s: below 1192
    assert formulas.admitted_rate(494.7e12, 512 * 2 * 18874368) == pytest.approx(25595.8, rel=1e-4)
    assert formulas.admitted_rate(50e9, 40 * 2**20) == pytest.approx(1192.09, rel=1e-5)


# --- against every cut --------------------------------------------------------------------------------

SIZES = st.integers(0, 5)


@given(st.data())
@some
def test_of_one_card_to_another_the_bound_is_the_tightest_cut(data: st.DataObject) -> None:
    nodes = list(range(data.draw(st.integers(2, 6))))
    graph: nx.DiGraph[Any] = nx.DiGraph()
    for index in nodes:  # a ring, so that there is a path; and chords
        graph.add_edge(index, (index + 1) % len(nodes), capacity=data.draw(st.integers(1, 5)))
    for a, b in combinations(nodes, 2):
        if data.draw(st.booleans()):
            graph.add_edge(a, b, capacity=data.draw(st.integers(1, 5)))
    traffic = {(0, 1): float(data.draw(SIZES))}
    found = bound(graph, traffic)
    assert found.cut == found.seconds == pytest.approx(every_cut(graph, traffic))  # maximum flow, minimum cut


@given(st.data())
@some
def test_on_trees_the_bound_is_the_tightest_cut(data: st.DataObject) -> None:
    switches = data.draw(st.integers(1, 3))
    parents = {index: data.draw(st.integers(0, index - 1)) for index in range(1, switches)}
    places = data.draw(st.lists(st.integers(0, switches - 1), min_size=2, max_size=4))
    graph: nx.DiGraph[Any] = nx.DiGraph()
    joined = [(f"s{child}", f"s{parent}") for child, parent in parents.items()]
    for a, b in joined + [(card, f"s{place}") for card, place in enumerate(places)]:
        graph.add_edge(a, b, capacity=data.draw(st.integers(1, 4)))
        graph.add_edge(b, a, capacity=data.draw(st.integers(1, 4)))
    cards = range(len(places))
    traffic = {(a, b): float(data.draw(SIZES)) for a in cards for b in cards}
    assert bound(graph, traffic).seconds == pytest.approx(every_cut(graph, traffic))


@given(st.data())
@some
def test_on_any_graph_it_is_no_more_than_that(data: st.DataObject) -> None:
    graph = one_group(2, 2, data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9)))
    for edge in list(graph.edges):
        graph.edges[edge]["capacity"] = data.draw(st.integers(1, 9))
    cards = [(server, index) for server in range(2) for index in range(2)]
    traffic = {(a, b): float(data.draw(SIZES)) for a in cards for b in cards}
    found, tightest = bound(graph, traffic), every_cut(graph, traffic)
    assert max(found.send, found.receive) <= found.seconds <= tightest * (1 + 1e-12)
