"""Units that divide a layer against an accounting of their own: seconds, memory, bytes on links, and which are made."""

import random

import pytest

from models.instance import Instance
from solver.candidate import Candidate
from solver.data import Data, gather
from tests.against import generate_layouts
from tests.against.layout_search import own, plain_seconds, plain_step
from tests.against.layout_sizes import held_tokens, means
from tests.against.layout_units import Degrees, LayoutUnit
from tests.against.network import Network

EXACT = 1e-9
ALONE, MIXED = 2e-4, 3e-3
"""What the bounding line of a paced unit may be below its step, with one workload and with several."""
SEEDS = (*range(24), 26, 30, 38, 62, 121, 146, 188)


@pytest.fixture(scope="module", params=SEEDS)
def data(request: pytest.FixtureRequest) -> Data:
    return gather(generate_layouts.built(generate_layouts.document(request.param)))


def divided(data: Data) -> list[tuple[Candidate, LayoutUnit]]:
    network = Network(data.instance.hardware)
    found = [c for c in data.candidates if c.device is not None and c.device.layout is not None and not c.face]
    return [(c, own(data.instance, network, c)) for c in found]


def test_seconds_of_a_request(data: Data) -> None:
    for candidate, unit in divided(data):
        loads = {name: data.instance.workloads[name] for name in candidate.demand}
        mine = unit.requests(loads, candidate.stage, dict(candidate.batches)) if candidate.tau is None else {}
        for name, workload in loads.items():
            assert candidate.tau is not None or candidate.demand[name] == pytest.approx((mine[name],), rel=EXACT)
            if name in candidate.first:
                assert candidate.first[name] == pytest.approx(unit.first(workload), rel=EXACT)


def test_memory_and_batches(data: Data) -> None:
    for candidate, unit in divided(data):
        use = candidate.memory
        assert use is not None
        loads = {name: data.instance.workloads[name] for name in candidate.demand}
        buffer = max(unit.buffer(w, candidate.stage) for w in loads.values())
        assert (use.weights, use.experts) == pytest.approx((unit.weights, unit.experts), rel=EXACT)
        assert use.buffers == pytest.approx(buffer, rel=EXACT)
        assert use.used <= use.capacity * (1 + EXACT)
        assert use.capacity == pytest.approx(unit.memory, rel=EXACT)
        for name, w in loads.items():
            most, batch = unit.batch(w, candidate.stage, buffer), candidate.batches[name]
            if candidate.stage == "prefill":
                assert batch == 1
            elif candidate.tau is None:
                stated = w.batch if isinstance(w.batch, int) else most
                assert batch == (stated if w.decodes else 1), candidate.label
            else:  # held on average, by Little's law
                room = unit.memory - unit.weights - unit.experts - buffer
                assert not w.decodes or batch <= room * unit.streams / (held_tokens(w) * unit.kept) * (1 + EXACT)


def test_parts(data: Data) -> None:
    for candidate, unit in divided(data):
        for part in candidate.parts:
            other = data.instance.hardware.groups[part.group]
            weights, experts = unit.part
            longest = max(w.longest_input for w in data.instance.workloads.values() if w.model == candidate.model)
            assert (part.weights, part.experts) == pytest.approx((weights, experts), rel=EXACT)
            assert part.buffers == pytest.approx(unit.part_inputs(longest), rel=EXACT)
            assert part.memory == pytest.approx(other.accelerator.memory * other.usable, rel=EXACT)
            assert weights + experts + unit.part_inputs(longest) <= part.memory * (1 + EXACT)
            assert part.cards % (part.block or 1) == 0
            assert part.block <= other.per_server


def test_bytes_on_links(data: Data) -> None:
    for candidate, unit in divided(data):
        for name, shares in candidate.charges.items():
            w = data.instance.workloads[name]
            new = sum(one.share * (one.input - one.cached) for one in w.classes) if candidate.stage != "decode" else 0.0
            tokens = new + (
                sum(one.share * (one.output - 1) for one in w.classes) if candidate.stage != "prefill" else 0
            )
            mine = {_channel(place): share * tokens for place, share in unit.charges().items()}
            assert shares == pytest.approx(mine, rel=EXACT), candidate.label
        if not candidate.charges:
            assert not unit.charges(), candidate.label


def _channel(place: tuple[str, ...]) -> str:
    side = "".join("->" if word == ">" else word for word in place[1:])
    return f"link[{place[0]}[{side}]]" if side else f"link[{place[0]}]"


def test_stated_degrees_are_all_made_where_they_fit(data: Data) -> None:
    """Every spread unit of degrees that a group states, of prefill, whose only limits are memory and joints."""
    instance, network = data.instance, Network(data.instance.hardware)
    if any(w.targets.ttft for w in instance.workloads.values()):
        return
    made = {
        (c.group, c.model, c.cut.tp, c.cut.ep, c.cut.dp, c.cut.micro)
        for c in data.candidates
        if c.cut is not None and c.kind.layout == "spread" and c.stage == "prefill" and not c.face and c.cut.ep > 1
    }
    for name, group in instance.hardware.groups.items():
        for model in {w.model for w in instance.workloads.values()}:
            if group.tp is None or group.ep is None or group.dp is None:
                continue
            expected = {
                (name, model, tp, ep, dp, micro)
                for tp in group.tp
                for ep in group.ep
                for dp in group.dp
                for micro in (1,)  # prompts come whole
                if _can_be(instance, network, name, model, (tp, ep, dp, micro))
            }
            assert {one for one in made if one[:2] == (name, model)} == expected


def _can_be(instance: Instance, network: Network, name: str, model: str, degrees: tuple[int, int, int, int]) -> bool:
    group, llm = instance.hardware.groups[name], instance.models[model]
    tp, ep, dp, micro = degrees
    heads, kv = llm.num_attention_heads, 1 if llm.kv_lora_rank else llm.num_key_value_heads
    widths = {llm.intermediate_size, llm.moe_intermediate_size or tp}
    divides = not heads % tp and not any(width % tp for width in widths) and (not kv % tp or not tp % kv)
    if not llm.experts or ep < 2 or llm.experts % ep or group.scale_up is None or not divides or tp > group.per_server:
        return False
    if dp > 1:
        together = ep == tp * dp and (ep <= group.per_server or ep % group.per_server == 0)
        joined = ep <= group.per_server or any(name in ends for ends in network.ends.values())
        ok = together and joined
    else:
        ok = tp > 1 and tp * ep <= group.per_server and micro == 1
    if not ok:
        return False
    unit = LayoutUnit(instance, network, name, model, Degrees("spread", tp, ep, dp, micro, None, None))
    loads = [w for w in instance.workloads.values() if w.model == model and w.may_use(name)]
    room = unit.memory - unit.weights - unit.experts
    return any(unit.buffer(w, "prefill") <= room for w in loads)


def test_a_step_is_kept_whatever_the_mix(data: Data) -> None:
    """At rates that fill a unit, the requests that it then holds get their tokens in the seconds that are left."""
    draw = random.Random(5)
    for candidate, unit in divided(data):
        names, tau = list(candidate.demand), candidate.tau
        parts = [{name: float(name == one) for name in names} for one in names]
        parts += [{name: draw.random() ** 2 for name in names} for _ in range(6 if len(names) > 1 else 0)]
        for part in parts if candidate.stage != "prefill" else ():
            assert all(least >= 0.0 for need in candidate.demand.values() for least in need)
            rows = range(len(candidate.resources))
            fullest = max(sum(part[n] * need[k] for n, need in candidate.demand.items()) for k in rows)
            rates = {name: share / fullest for name, share in part.items()}
            loads = {name: data.instance.workloads[name] for name in rates}
            first = {n: unit.request(w, "prefill", 1) if candidate.stage == "both" else 0.0 for n, w in loads.items()}
            prefill = sum(rates[n] * first[n] for n in rates)
            calls = {n: rates[n] * means(w)[0] for n, w in loads.items() if w.decodes}
            if not any(calls.values()):
                continue
            pace = tau or 1.0 / sum(each / candidate.batches[n] for n, each in calls.items())  # full, else as promised
            total = sum(calls.values()) * pace
            context = sum(each * means(loads[n])[1] for n, each in calls.items()) / sum(calls.values())
            busy = prefill + unit.step(context, total) / pace
            assert busy <= 1 + (ALONE if 1.0 in part.values() else MIXED), (candidate.label, busy, tau)


def test_units_of_tensor_parallelism_read_the_experts_that_are_touched(data: Data) -> None:
    """Unit-seconds of a request, and of paced units whether steps of any mix are kept."""
    network, draw = Network(data.instance.hardware), random.Random(6)
    for candidate in data.candidates:
        if candidate.cut is None or candidate.device is None or candidate.device.layout is not None:
            continue
        if candidate.pp > 1 or candidate.kind.layout != "spread" or candidate.face:
            continue
        unit = own(data.instance, network, candidate)
        loads = {name: data.instance.workloads[name] for name in candidate.demand}
        most, tau = max(candidate.batches.values()), candidate.tau
        for name, w in loads.items() if tau is None else ():
            mine = plain_seconds(unit, w, candidate.stage, candidate.batches[name], most)
            assert candidate.demand[name] == pytest.approx(mine, rel=EXACT), candidate.label
        for _ in range(5 if tau is not None else 0):
            assert tau is not None
            part = {name: draw.random() for name in loads}
            rows = range(len(candidate.resources))
            fullest = max(sum(part[n] * need[k] for n, need in candidate.demand.items()) for k in rows)
            calls = {n: part[n] / fullest * means(w)[0] for n, w in loads.items()}
            if not any(calls.values()):
                continue
            context = sum(each * means(loads[n])[1] for n, each in calls.items()) / sum(calls.values())
            first = {n: plain_seconds(unit, w, "prefill", 1, 1)[0] for n, w in loads.items()}
            prefill = sum(part[n] / fullest * first[n] for n in loads) if candidate.stage == "both" else 0.0
            busy = prefill + plain_step(unit, context, sum(calls.values()) * tau) / tau
            assert busy <= 1 + 1e-6, (candidate.label, busy, tau)
