"""A trace as the workload of an instance: by hand, and by what a retention of any time finds, holds and writes."""

from math import inf
from pathlib import Path

import numpy as np
import pytest
import yaml

from api.cli import main
from api.trace.snippet import document
from benchmarks.prediction import Sizes, instance, part
from models import files
from models.load import build
from models.reuse import Reuse as Part
from models.trace.chunks import Trace
from models.trace.reading import trace_of
from solver.formulas import retention
from solver.tiers.parts import parts
from solver.trace.ages import Ages
from solver.trace.fitted import fit
from solver.trace.generate import Conversations, conversations
from solver.trace.retention import TtlCurve
from solver.trace.reuse import Reuse, hot_blocks, of_trace, popularity, steady_curve, steady_third
from tests.trace import naive
from tests.trace.naive import SIZE


def made(like: Conversations, requests: int, seed: int, warm: float = 0.0) -> Trace:
    """A generated trace, from ``warm`` s on."""
    found = conversations(requests, like, seed)
    rows = ((r["timestamp"] / 1e3, r["input_length"], r["output_length"], r["hash_ids"]) for r in found)
    return part(trace_of(rows, like.block_tokens), warm, inf)


def counted(trace: Trace, first: int = 0) -> Reuse:
    return of_trace(trace, first)


@pytest.mark.parametrize("seed", range(4))
def test_the_access_before_the_last(seed: int) -> None:
    requests = naive.some(seed, tree=seed % 2 == 0)
    trace = naive.made(requests, (17, 60))
    ages = Ages(second=True)
    seen: dict[int, list[float]] = {}
    for chunk in trace.chunks():
        aged = ages.of(chunk)
        assert aged.second is not None
        wanted = []
        for block, now in zip(chunk.blocks.tolist(), aged.now.tolist(), strict=True):
            before = seen.setdefault(block, [])
            wanted.append(now - before[-2] if len(before) > 1 else inf)
            before.append(now)
        assert aged.second.tolist() == pytest.approx(wanted)


def test_again_by_hand() -> None:
    requests = [(float(t), 4, [0]) for t in range(4)] + [(9.0, 8, [7, 8]), (10.0, 8, [7, 9])]
    found = Reuse(naive.made(requests, (2,)), np.zeros(10, dtype=bool))
    for chunk in naive.made(requests, (2,)).chunks():
        found.feed(chunk)
    assert found.all.third == pytest.approx(2 / 4)  # of block 0 three returns, two of them later ones; of block 7 one
    assert (found.requests, found.inputs, found.outputs) == (6, 32, 6)
    assert found.other.readers == 6
    assert found.other.tokens == 32


def test_a_trace_without_beginning() -> None:
    """Blocks that come back after 10 s, for ever: of the first 10 s nothing can be seen to return."""
    requests = [(float(t), 4, [t % 10]) for t in range(40)]
    trace = naive.made(requests, (13,))
    found = Reuse(trace, np.zeros(10, dtype=bool))
    for chunk in trace.chunks():
        found.feed(chunk)
    assert found.curve("token", "other")[-1] == (10.0, 0.75)
    assert steady_curve(found.other) == [(10.0, 1.0)]
    assert found.other.third == pytest.approx(20 / 30)
    assert steady_third(found.other) == pytest.approx(1.0)


def test_hot_blocks_become_a_system_prompt() -> None:
    like = Conversations(system=4 * 512, turns=3.0, gap=(20.0, 0.5), rate=2.0)
    found = fit(counted(made(like, 1500, 5)), 512, 250.0)
    prompt, talk = found.parts
    assert (prompt.kind, prompt.tokens_per_hit, prompt.share, prompt.distinct) == ("system-prompt", 2048, 1.0, 1)
    assert talk.curve is not None
    assert talk.again is not None
    assert 0.3 < talk.curve[-1].share < 0.7
    assert 0.3 < talk.again < 0.8
    assert found.rate == pytest.approx(1500 / 250)


def test_two_prompts() -> None:
    rows = [(float(t), 20, [*((0, 1) if t % 2 else (5, 6, 7)), 100 + t]) for t in range(80)]
    trace = naive.made(rows)
    hot = hot_blocks(trace, popularity(trace))
    assert hot.sum() == 5
    found = fit(counted(trace), SIZE, trace.span)
    assert [(one.kind, one.tokens_per_hit, one.distinct) for one in found.parts] == [("system-prompt", 10, 2)]


def test_a_prompt_that_few_read_is_part_of_the_conversation() -> None:
    rows = [(float(t), 12, [1000 + t % 40, 2000 + t % 40, *([0] if t % 10 == 0 else [])]) for t in range(200)]
    found = fit(counted(naive.made(rows)), SIZE, 200.0)
    assert found.folded
    [talk] = found.parts
    assert talk.kind == "conversation"


def test_what_few_long_requests_find_fits_the_mean_input() -> None:
    rows: naive.Requests = []
    for t in range(100):
        long = t % 10 == 0
        rows.append((float(t), 400 if long else 4, list(range(100)) if long and t % 20 == 0 else [500 + t]))
    found = fit(counted(naive.made([(t, n if len(ids) > 1 else 4, ids) for t, n, ids in rows])), SIZE, 99.0, False)
    talk = found.parts[-1]
    assert found.capped == 400
    assert talk.tokens_per_hit == found.input - 1
    assert talk.curve is not None
    assert talk.curve[-1].share * talk.tokens_per_hit == pytest.approx(4 * 400 / 100, rel=1e-3)


def test_nothing_comes_back() -> None:
    found = fit(counted(naive.made([(float(t), 8, [t, 100 + t]) for t in range(9)])), SIZE, 8.0)
    assert found.parts == ()
    assert document(found)["workload"] == {"rate": "1.125/s", "input": 8, "output": 1}


CASES = [
    Conversations(rate=4.0, turns=3.0, gap=(40.0, 0.7), question=(1500.0, 0.7)),
    Conversations(rate=3.0, turns=4.0, gap=(20.0, 0.8), question=(800.0, 0.9), system=0),
    Conversations(rate=6.0, turns=2.0, gap=(80.0, 0.5), system=3 * 512),
]


@pytest.mark.parametrize("like", CASES)
@pytest.mark.parametrize("steady", [True, False])
def test_formulas_say_what_a_retention_does(like: Conversations, steady: bool) -> None:
    """The parts in an instance find, hold and write what the trace does whose blocks are kept for a time."""
    trace = made(like, 9000, 3, 300.0)
    first = trace.requests // 2
    since = float(next(trace.chunks()).times[first])
    seconds = trace.span - since
    found = fit(counted(trace, first), 512, seconds, steady)
    listed = parts(instance(found, Sizes(10, 10), 512))
    token = listed[0].hit / found.parts[0].tokens_per_hit
    times = [10.0, 30.0, 60.0, 120.0, 240.0]
    curve = TtlCurve(trace, times, first, since)
    for chunk in trace.chunks():
        curve.feed(chunk)
    tokens = curve.counted[1]
    for kept in curve.at():
        age = kept.seconds
        if age > since:  # not all of it has filled yet
            continue
        hits = sum(one.rate * one.hit * one.found(age) for one in listed) / token
        alive = sum(retention.live_bytes(one.rate, one.kept, one.hit, age, one.integral(age)) for one in listed) / token
        new = sum(retention.written_bytes(one.rate, one.kept, one.hit, one.found(age)) for one in listed) / token
        assert hits == pytest.approx(kept.tokens / seconds, rel=0.02, abs=0.002 * tokens / seconds)
        assert alive == pytest.approx((kept.mean_live or 0.0) * 512, rel=0.05)  # what came before counts there
        blocks = (sum(len(chunk.blocks) for chunk in trace.chunks()) - first_blocks(trace, first) - kept.blocks) * 512
        assert new == pytest.approx(blocks / seconds, rel=0.02)


def first_blocks(trace: Trace, first: int) -> int:
    return int(next(trace.chunks()).starts[first])


def test_the_snippet_is_a_workload(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = naive.file_of(tmp_path / "requests.jsonl", 900, rate=1.0)
    for words in ([], ["--as-counted"], ["--warm-up", "30 %"]):
        assert main(["trace", str(path), "--reuse", *words]) == 0
        text = capsys.readouterr().out
        assert main(["trace", str(path), "--json", *words]) == 0
        told = yaml.safe_load(capsys.readouterr().out)["instance_reuse"]
        assert told["steady"] == ("--as-counted" not in words)
        one, other = (_loaded(workload) for workload in (yaml.safe_load(text), told["workload"]))
        assert one == other
        assert [part.kind for part in one] == ["system-prompt", "conversation"]


def _loaded(workload: dict[str, object]) -> list[Part]:
    base = {
        "schema": 1,
        "name": "made",
        "hardware": {"groups": {"h200": {"server": "HGX-H200", "servers": 1, "price": "3/h"}}},
        "models": {"deepseek": {"catalog": "DeepSeek-V3", "weights": "fp8"}},
        "workloads": {"chat": {"model": "deepseek", **workload}},
    }
    return build(files.Document(base, {}, "made")).workloads["chat"].reuse or []
