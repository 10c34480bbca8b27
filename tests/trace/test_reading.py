"""Files of every format, packed or not; and what is wrong in them, with its line."""

import bz2
import gzip
import io
import json
import lzma
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.errors import BadInput, Problem
from models.trace import reading
from models.trace.chunks import Codes, Store
from models.trace.reading import Options, read, trace_of
from solver.trace.generate import Conversations, conversations
from solver.trace.generate import write as write_trace
from tests.trace import naive

MOONCAKE = [
    {"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": [7, 8, 9]},
    {"timestamp": 3000, "input_length": 1024, "output_length": 6, "hash_ids": [7, 8]},
    {"timestamp": 3000, "input_length": 1100, "output_length": 7, "hash_ids": [7, 8]},
]


def jsonl(*records: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], Path]:
    def made(data: bytes) -> Path:
        path = tmp_path / "trace"
        path.write_bytes(data)
        return path

    return made


Made = Callable[[bytes], Path]


def problems(path: Path, how: Options | None = None) -> list[Problem]:
    with pytest.raises(BadInput) as caught:
        read(path, how)
    return list(caught.value.problems)


# --- formats ------------------------------------------------------------------------------------------


def test_mooncake(file: Made) -> None:
    trace = read(file(jsonl(*MOONCAKE)))
    assert (trace.format, trace.block_tokens, trace.requests, trace.span) == ("mooncake", 512, 3, 3.0)
    assert (trace.accesses, trace.distinct, trace.input_tokens, trace.output_tokens) == (7, 3, 3624, 18)
    [chunk] = trace.chunks()
    assert chunk.times.tolist() == [0.0, 3.0, 3.0]
    assert chunk.starts.tolist() == [0, 3, 5, 7]
    assert chunk.blocks[:2].tolist() == chunk.blocks[3:5].tolist()
    assert chunk.tokens(512).tolist() == [512, 512, 476, 512, 512, 512, 512]


def test_partial_blocks_dropped(file: Made) -> None:
    trace = read(file(jsonl(*MOONCAKE)), Options(partial="drop"))
    assert [chunk.counts.tolist() for chunk in trace.chunks()] == [[2, 2, 2]]


def test_bailian(file: Made) -> None:
    one = {"chat_id": 1, "parent_chat_id": -1, "timestamp": 1.5, "input_length": 40, "output_length": 3, "type": "text"}
    trace = read(file(jsonl({**one, "turn": 1, "hash_ids": [5, 6, 2**64 - 1]})))
    assert (trace.format, trace.block_tokens, trace.start, trace.distinct) == ("bailian", 16, 1.5, 3)


def test_azure(file: Made) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
    text += "2023-11-16 18:17:04.0319600,0,8\n"
    trace = read(file(text.encode()))
    assert (trace.format, trace.block_tokens, trace.span, trace.input_tokens) == ("azure", None, 0.052, 4808)
    newer = "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-10 00:00:00.009930+00:00,10,20\r\n"
    assert read(file(newer.encode())).start == 1715299200.00993


def test_burstgpt(file: Made) -> None:
    text = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    text += "5,a,1.2,GPT-4,100,50,150,Conversation log\n9.5,a,1.2,GPT-4,400,0,400,Conversation log\n\n"
    trace = read(file(text.encode()))
    assert (trace.format, trace.requests, trace.span, trace.block_tokens) == ("burstgpt", 2, 4.5, None)
    made = read(file(text.encode()), Options(sessions=True, block_tokens=16))
    [chunk] = made.chunks()
    assert chunk.counts.tolist() == [7, 25]
    assert len(set(chunk.blocks[:7].tolist()) & set(chunk.blocks[7:].tolist())) == 6  # whole blocks of 100 tokens
    assert made.distinct == 26


def test_a_turn_that_is_shorter_begins_anew(file: Made) -> None:
    text = "time,input,output,session\n0,100,50,a\n1,140,1,a\n2,150,1,\n3,150,1,\n"
    [chunk] = read(file(text.encode()), Options(sessions=True, block_tokens=10)).chunks()
    assert len(set(chunk.blocks.tolist())) == len(chunk.blocks)


def test_generic_files(file: Made) -> None:
    csv = "Arrival_Time, prompt tokens ,completion_tokens,blocks\n1000,9,1,3 4 5\n2000,8,1,3;4\n"
    trace = read(file(csv.encode()), Options(block_tokens=4, time_unit="ms"))
    assert (trace.format, trace.span, trace.distinct, trace.accesses) == ("csv", 1.0, 3, 5)
    keys = {"when": "2026-01-31T12:00:00.5", "in": 9, "out": 2}
    how = Options(columns={"time": "when", "input": "in", "output": "out"})
    trace = read(file(jsonl(keys)), how)
    assert (trace.format, trace.input_tokens, trace.block_tokens) == ("jsonl", 9, None)
    assert read(file(jsonl(*MOONCAKE)), Options(format="jsonl", block_tokens=512)).span == 3000.0


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_packed_files(file: Made, pack: Callable[[bytes], bytes]) -> None:
    assert read(file(pack(jsonl(*MOONCAKE)))).requests == 3
    assert read(file(pack(jsonl(MOONCAKE[0])) + pack(jsonl(MOONCAKE[1])))).requests == 2


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_packed_files_that_are_cut_off(file: Made, pack: Callable[[bytes], bytes]) -> None:
    rng = np.random.default_rng(0)
    many = [
        {"timestamp": i, "input_length": int(rng.integers(10**9)), "output_length": 1, "hash_ids": []}
        for i in range(3000)
    ]
    packed = pack(jsonl(*({**one, "hash_ids": None} for one in many)))
    for keep in (len(packed) // 2, len(packed) - 3):
        *_, problem = problems(file(packed[:keep]))
        assert "cut off" in problem.message
        assert problem.line is not None
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    damaged[len(packed) // 2 + 7] ^= 0xFF
    assert problems(file(bytes(damaged)))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(jsonl(*MOONCAKE)))))
    assert read(Path("-")).requests == 3


def test_blocks_fewer_by_the_last_one(file: Made) -> None:
    trace = read(file(jsonl({**MOONCAKE[0], "hash_ids": [7, 8]})))
    [chunk] = trace.chunks()
    assert chunk.tokens(512).tolist() == [512, 512]


# --- what is wrong ------------------------------------------------------------------------------------

GOOD = MOONCAKE[0]


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        ({"timestamp": -1.0}, "time", "is earlier"),
        ({"timestamp": None}, "timestamp", "is missing"),
        ({"timestamp": "soon"}, "timestamp", "is not a time"),
        ({"timestamp": True}, "timestamp", "is not a time"),
        ({"timestamp": [1]}, "timestamp", "is not a time"),
        ({"timestamp": 10**400}, "timestamp", "is not a time"),
        ({"timestamp": float("nan")}, "timestamp", "is not a time"),
        ({"timestamp": float("inf")}, "timestamp", "is not a time"),
        ({"input_length": -1500}, "input_length", "is negative"),
        ({"input_length": 1500.5}, "input_length", "is no length"),
        ({"input_length": "1500"}, "input_length", "is no length"),
        ({"input_length": True}, "input_length", "is no length"),
        ({"input_length": 10**30}, "input_length", "is no length"),
        ({"output_length": None}, "output_length", "is missing"),
        ({"output_length": float("nan")}, "output_length", "is no length"),
        ({"hash_ids": [1, 2]}, "", ""),
        ({"hash_ids": [1]}, "hash_ids", "holds 1 blocks for 1,500 tokens"),
        ({"hash_ids": [1, 2, 3, 4]}, "hash_ids", "holds 4 blocks"),
        ({"hash_ids": [1, 2, 2]}, "hash_ids", "names a block twice"),
        ({"hash_ids": [1, 2, 3.0]}, "hash_ids", "holds something else"),
        ({"hash_ids": [1, 2, -3]}, "hash_ids", "holds something else"),
        ({"hash_ids": [1, 2, 2**64]}, "hash_ids", "holds something else"),
        ({"hash_ids": [1, 2, True]}, "hash_ids", "holds something else"),
        ({"hash_ids": [1, 2, None]}, "hash_ids", "holds something else"),
        ({"hash_ids": "1 2 3"}, "hash_ids", "is no list"),
        ({"hash_ids": None}, "blocks", "has no blocks"),
    ],
)
def test_a_line_that_is_wrong(file: Made, change: dict[str, Any], place: str, message: str) -> None:
    data = jsonl(GOOD, GOOD) + json.dumps({**GOOD, **change}).encode() + b"\n" + jsonl(GOOD)
    if not message:
        assert read(file(data)).requests == 4
        return
    [problem] = problems(file(data))
    assert (problem.line, problem.path) == (3, place)
    assert message in problem.message
    trace = read(file(data), Options(skip_bad=True))
    assert trace.requests == 3
    assert trace.skipped[0] == 1
    assert trace.skipped[1][0].line == 3


@pytest.mark.parametrize(
    "line",
    [b"{", b"[1]", b"null", b"\xff\xfe{}", b"[" * 100_000, b'{"timestamp": 1, "input_length": ' + b"9" * 5000 + b"}"],
)
def test_a_line_that_is_no_request(file: Made, line: bytes) -> None:
    [problem] = problems(file(jsonl(GOOD) + line + b"\n" + jsonl(GOOD)))
    assert problem.line == 2


def test_the_first_line_may_be_wrong_too(file: Made) -> None:
    [problem] = problems(file(jsonl({key: GOOD[key] for key in ("input_length", "output_length", "hash_ids")}, GOOD)))
    assert (problem.line, problem.path, problem.message) == (1, "timestamp", "is missing")
    assert problems(file(b"{]\n" + jsonl(GOOD)))[0].line == 1


def test_a_file_that_is_cut_off(file: Made) -> None:
    [problem] = problems(file(jsonl(*MOONCAKE)[:-20]))
    assert problem.line == 3
    assert "cut off" in problem.message
    [problem] = problems(file(b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9,5,5\n2023-11-16 18:1"))
    assert problem.line == 3
    assert "cut off" in problem.message


def test_many_problems_are_counted(file: Made) -> None:
    found = problems(file(jsonl(GOOD, *[{**GOOD, "input_length": -1}] * 30)))
    assert [one.line for one in found[:-1]] == list(range(2, 22))
    assert "10 more lines" in found[-1].message
    trace = read(file(jsonl(GOOD, *[{**GOOD, "input_length": -1}] * 30)), Options(skip_bad=True))
    assert (trace.skipped[0], len(trace.skipped[1])) == (30, 20)


def test_files_without_requests(file: Made, tmp_path: Path) -> None:
    for data in (b"", b"\n\n", b"time,input,output\n"):
        assert "holds no requests" in problems(file(data))[0].message
    assert "holds no requests" in problems(file(jsonl({**GOOD, "input_length": -1})), Options(skip_bad=True))[0].message
    assert "JSON array" in problems(file(b'[{"timestamp": 0}]'))[0].message
    assert problems(file(b"a,b\n1,2\n"))[0].message == "has no column for time"
    assert "cannot be read" in problems(tmp_path)[0].message
    assert "cannot be read" in problems(tmp_path / "none")[0].message
    assert "cannot be read" in problems(Path("a\0b"))[0].message


def test_a_head_line_that_is_broken(file: Made) -> None:
    assert "is not CSV" in problems(file(b"time,in\rput,output\n1,2,3\n"))[0].message
    assert problems(file(b"time,input,output\n1,2,3\n1,2\r4,3\n"))[0].line == 3


@pytest.mark.parametrize(
    ("how", "place"),
    [
        (Options(format="moon"), "--format"),
        (Options(format="azure"), "--format"),
        (Options(columns={"tokens": "n"}), "--columns"),
        (Options(columns={"session": "who"}), "--columns"),
        (Options(time_unit="min"), "--time-unit"),
        (Options(sessions=True), "--columns"),
    ],
)
def test_options_that_do_not_fit(file: Made, how: Options, place: str) -> None:
    assert problems(file(jsonl(*MOONCAKE)), how)[0].path == place


def test_blocks_need_a_size(file: Made) -> None:
    generic = {"time": 1, "input": 9, "output": 2, "blocks": [1]}
    assert problems(file(jsonl(generic)))[0].message == "has blocks, and does not tell their size"
    text = b"time,input,output,session\n0,9,1,a\n"
    assert problems(file(text), Options(sessions=True))[0].path == "--sessions"
    data = jsonl({**GOOD, "session_id": "a"})
    assert "blocks of its own" in problems(file(data), Options(sessions=True))[0].message


# --- order and time -----------------------------------------------------------------------------------


def test_order(file: Made) -> None:
    late = jsonl(MOONCAKE[1], MOONCAKE[0], MOONCAKE[2])
    [problem] = problems(file(late))
    assert (problem.line, problem.value) == (2, "0 s after 3 s")
    trace = read(file(late), Options(sort=True))
    assert [chunk.inputs.tolist() for chunk in trace.chunks()] == [[1500, 1024, 1100]]
    assert trace.span == 3.0


def test_spreading_of_ticks(file: Made) -> None:
    times = [0, 0, 0, 3000, 3000, 6000, 6000, 6000]
    data = jsonl(*({**GOOD, "timestamp": time} for time in times))
    [chunk] = read(file(data), Options(spread=True)).chunks()
    assert chunk.times.tolist() == [0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 7.0, 8.0]


# --- size ---------------------------------------------------------------------------------------------


def test_chunks_and_spilling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = naive.file_of(tmp_path / "t.jsonl", 300)
    [whole] = read(path).chunks()
    monkeypatch.setattr(reading, "CHUNK", 100)
    monkeypatch.setattr(Store.__init__, "__defaults__", (500,))
    trace = read(path)
    parts, again = list(trace.chunks()), list(trace.chunks())
    assert len(parts) > 10
    for name in ("times", "inputs", "outputs"):
        joined = np.concatenate([getattr(part, name) for part in parts])
        assert joined.tolist() == getattr(whole, name).tolist()
    assert [part.blocks.tolist() for part in parts] == [part.blocks.tolist() for part in again]
    one, other = (np.concatenate([part.blocks for part in some]) for some in (parts, [whole]))
    assert len(set(zip(one.tolist(), other.tolist(), strict=True))) == trace.distinct == len(set(one.tolist()))


def test_memory_grows_with_distinct_blocks_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 5000)
    monkeypatch.setattr(Store.__init__, "__defaults__", (10_000,))
    peaks = []
    for repeats in (4, 40):
        path = tmp_path / "t.jsonl"
        with open(path, "wb") as out:
            for i in range(repeats):
                for record in MOONCAKE[:2]:
                    ids = list(range(1000))
                    one = {**record, "timestamp": i, "input_length": 512_000, "hash_ids": ids}
                    out.write(jsonl(*[one] * 10))
        tracemalloc.start()
        trace = read(path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert trace.distinct == 1000
    assert peaks[1] < 1.5 * peaks[0]


def test_codes() -> None:
    codes = Codes()
    ids = np.array([5, 2**63, 5, 1], dtype=np.uint64)
    first = codes.of(ids)
    assert first[0] == first[2]
    assert sorted(set(first.tolist())) == [0, 1, 2]
    again = codes.of(np.array([1, 9, 2**63], dtype=np.uint64))
    assert again.tolist() == [first[3], 3, first[1]]
    assert len(codes) == 4


def test_made_up_conversations(tmp_path: Path) -> None:
    like = Conversations(rate=2.0, system=1024)
    records = list(conversations(400, like, 1))
    assert records == list(conversations(400, like, 1)) != list(conversations(400, like, 2))
    with open(tmp_path / "t", "wb") as out:
        write_trace(out, records)
    trace = read(tmp_path / "t")
    assert (trace.requests, trace.format) == (400, "mooncake")
    assert all(record["hash_ids"][:2] == [0, 1] for record in records)
    assert 0.2 < 1.0 - trace.distinct / trace.accesses < 0.9
    alone = list(conversations(50, Conversations(turns=1.0), 1))
    own = [block for record in alone for block in record["hash_ids"][2:]]
    assert len(set(own)) == len(own)


def test_requests_at_hand(tmp_path: Path) -> None:
    path = naive.file_of(tmp_path / "t.jsonl", 50)
    records = conversations(50, Conversations(), 0)
    made = trace_of(
        ((one["timestamp"] / 1e3, one["input_length"], one["output_length"], one["hash_ids"]) for one in records), 512
    )
    [ours], [theirs] = made.chunks(), read(path).chunks()
    for name in ("times", "inputs", "outputs", "starts", "blocks"):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
    assert trace_of([(0.0, 5, 1, None)]).block_tokens is None
    with pytest.raises(BadInput, match="earlier"):
        trace_of([(1.0, 5, 1, None), (0.0, 5, 1, None)])
    with pytest.raises(BadInput, match="holds no requests"):
        trace_of([])
